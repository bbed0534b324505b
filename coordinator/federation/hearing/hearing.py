"""Which clients are heard as a round is opened, and the costs of what they measure and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from coordinator.federation.client_requests import ClientRequests
from coordinator.federation.hearing.client_data import ClientData
from coordinator.federation.hearing.reports import Reports
from coordinator.federation.method import Parts
from coordinator.federation.run import Run
from coordinator.population import Hear
from emulator.arrays import NO_IDS, Bools, Floats, Ints
from emulator.errors import RunError
from emulator.messages import BYTES_PER_PARAMETER, BYTES_PER_REPORTED_NUMBER
from emulator.storage.stateful import Stateful


@dataclass(frozen=True)
class Heard:
    """What the coordinator learned of the clients.

    `changed`: ids, ascending, of the clients with new data; `drift`: by detector name (N,) which clients
    drifted, those `decided` (n,), ascending, by the detector's test. `checked` clients checked their data for
    drift, and `reported` sent a report, of which `nonfinite` were not finite, and so not used; who did so
    twice counts twice.
    """

    changed: Ints
    drift: Mapping[str, Bools]
    checked: int = 0
    reported: int = 0
    nonfinite: int = 0
    decided: Ints = field(default_factory=lambda: NO_IDS)

    def among(self, holding: Bools, since: Ints) -> Heard:
        """What was learned of the clients `holding` data (N,); the counts are of all that were heard.

        It decides nothing about clients whose data have changed `since` (n,).
        """
        if len(self.changed) == len(self.decided) == 0:
            return self
        drift = {name: flags & holding for name, flags in self.drift.items()}
        changed, decided = (ids[holding[ids]] for ids in (self.changed, self.decided))
        return replace(self, changed=changed, drift=drift, decided=np.setdiff1d(decided, since))

    def and_then(self, later: Heard) -> Heard:
        """What was learned in both."""
        if len(self.changed) == 0 and self.checked == 0:
            return later
        drift = {name: flags | self.drift[name] for name, flags in later.drift.items()}
        return Heard(
            np.union1d(self.changed, later.changed),
            drift or self.drift,
            self.checked + later.checked,
            self.reported + later.reported,
            self.nonfinite + later.nonfinite,
            np.union1d(self.decided, later.decided),
        )


NOTHING_HEARD = Heard(NO_IDS, {})


class Hearing(Stateful):
    """Hears the clients of one run, and charges what they measure and send.

    State: the reports, the clients whose updates arrived in the last round, and those whose report of new
    data was not finite, both ascending; of the latter at present models only, where they report again.
    """

    state_fields = ("reports", "_last_cohort", "_unheard")

    def __init__(self, run: Run, parts: Parts, data: ClientData, requests: ClientRequests) -> None:
        self._run = run
        self._parts = parts
        self._data = data
        self._requests = requests
        self._takes_reports = parts.needs_reports
        self._detectors = parts.detectors_on("representation")
        size = parts.representation.size(data) if parts.needs_reports else 0
        self.reports = Reports(run.stream.num_clients, size)
        self._everyone = np.arange(run.stream.num_clients)
        self._last_cohort = NO_IDS
        self._unheard = NO_IDS

    def round_closed(self, cohort: Ints) -> None:
        """Take note of the clients (n,), ascending, whose updates arrived in this round."""
        self._last_cohort = cohort

    def check_ins(self, round_: int, now_s: float) -> Heard:
        """Hear the clients that were offline at the last opening and have come online since.

        They report the data that they held then, so this must be called before the trace advances. There are
        none unless `round.hear` is "check_in", nor of reports at present models: those are comparable with
        others of the same opening only.
        """
        if self._hears != "check_in" or self._anew:
            return NOTHING_HEARD
        clients, online_s = self.reports.checked_in(now_s)
        self.reports.taken(clients)
        return self._heard(round_, clients, clients, now_s - online_s)

    def data_changed(self, changed: Ints, holding: Bools, left: Ints) -> None:
        """Take note of a new data step: the data of clients `changed` (n,), and who is `holding` data (N,).

        What clients that `left` (n,) have reported is forgotten, with their news.
        """
        self.reports.data_changed(changed if holding.all() else changed[holding[changed]])
        if len(left) > 0:
            self.reports.forget(left)
            self._last_cohort = np.setdiff1d(self._last_cohort, left)
            self._unheard = np.setdiff1d(self._unheard, left)

    def register_first(self, round_: int) -> Heard:
        """Hear all clients that hold data, also those offline, before the first round.

        Raises RunError if a report is not finite.
        """
        clients = self.reports.all_with_news() if self._asks else NO_IDS
        return self._registered(round_, clients, np.zeros(len(clients)))

    def register(self, round_: int, joined: Ints) -> Heard:
        """Hear the clients `joined` (n,), ascending, which hold data now, and did not at the step before.

        To join is an act of the client: whatever `round.hear` says, it registers at once, also offline, and
        as those before the first round did: with a report if the arm took reports then. It is charged, and
        nobody waits for it. Raises RunError if a report is not finite.
        """
        if len(joined) == 0 or not (self._asks or self._takes_reports):
            return NOTHING_HEARD
        return self._registered(round_, joined, np.full(len(joined), np.inf))

    def _registered(self, round_: int, clients: Ints, head_start_s: Floats) -> Heard:
        """Hear `clients` (n,), ascending, as they register, having begun `head_start_s` (n,) before."""
        if len(clients) == 0:
            return NOTHING_HEARD
        self.reports.taken(clients)
        return self._heard(round_, clients, clients, head_start_s, registering=True)

    def new_data(self, round_: int, now_s: float, holding: Bools, joined: Ints) -> Heard:
        """Hear the clients with new data as a round is opened: those that `round.hear` says.

        They are among those `holding` data (N,); the ones that have `joined` are heard already. For
        clusterers that use reports from a later round on see `Clusterer.reports_from`.
        """
        clusterer = self._parts.clusterer
        early = round_ < clusterer.reports_from and self._anew and not self._parts.others_need_reports
        if early or not self._asks:
            return NOTHING_HEARD
        all_check = clusterer.needs_reports and 0 < clusterer.reports_from <= round_
        followed = self._last_cohort if clusterer.follows_participants else None
        everyone = self._hears == "everyone"
        if everyone:
            news = self.reports.all_with_news(followed)
        else:
            news = self.reports.online_with_news(self._run.availability, now_s, followed)
        clients = news
        if all_check or (self._anew and len(news) + len(joined) > 0):
            # Reports at present models are not comparable with earlier ones: all that can be heard report.
            clients = np.flatnonzero(holding) if followed is None else followed
            clients = np.setdiff1d(clients, joined)
            if not everyone:
                clients = clients[self._run.availability.online(clients, now_s)]
            clients = np.union1d(news, clients)
        if all_check:
            news = clients
        self.reports.taken(news)
        return self._heard(round_, news, clients, self._head_start_s(clients, now_s))

    @property
    def _asks(self) -> bool:
        """Whether clients check their new data."""
        return self._parts.clusterer.watches_data or self._parts.needs_reports

    @property
    def _hears(self) -> Hear:
        """Whose reports are heard.

        A clusterer that watches data without reports sends requests, to which only clients online respond.
        """
        clusterer = self._parts.clusterer
        requests = clusterer.watches_data and not clusterer.needs_reports
        return "online" if requests or not self._parts.needs_reports else self._run.settings.hear

    @property
    def _anew(self) -> bool:
        """Whether reports are measured at the present models, and so not comparable with earlier ones."""
        return self._parts.needs_reports and self._parts.representation.at_present_models

    def _head_start_s(self, clients: Ints, now_s: float) -> Floats:
        """(n,) virtual seconds before `now_s` at which `clients` (n,) began to report.

        0, or inf for clients that are heard although they are offline: nobody waits for them.
        """
        if self._hears != "everyone":
            return np.zeros(len(clients))
        return np.where(self._run.availability.online(clients, now_s), 0.0, np.inf)

    def _heard(
        self, round_: int, news: Ints, clients: Ints, head_start_s: Floats, registering: bool = False
    ) -> Heard:
        """Let `clients` (n,), ascending, measure their data, and receive the reports of those that drifted.

        Of these, the clients with `news` have new data. They began `head_start_s` (n,) before this moment.
        """
        representation, detectors = self._parts.representation, self._detectors
        if not (self._parts.needs_reports or (registering and self._takes_reports)):
            return Heard(news, {})
        if len(clients) == 0:
            return Heard(news, dict.fromkeys(detectors, np.zeros(len(self._everyone), dtype=bool)))
        signal = self._run.faults.reported(clients, representation.measure(clients, self._data))
        finite = np.isfinite(signal).all(axis=1)
        usable, count = clients[finite], int(np.count_nonzero(~finite))
        if registering and count > 0:
            raise RunError(
                f"round {round_}: the report of client {clients[~finite][0]} is not finite ({count} of "
                f"{len(clients)} are not); no client can be clustered without"
            )
        if self._anew and not registering:
            self.reports.replace(usable, signal[finite])
            new = np.union1d(news, self._unheard)
            drifted = np.isin(self._everyone, np.intersect1d(new, usable))
            self._unheard = np.setdiff1d(new, usable)
            reporting, drift, decided = clients, dict.fromkeys(detectors, drifted), NO_IDS
        else:
            heard, drift, decided = self.reports.hear(usable, signal[finite], detectors)
            reporting = np.union1d(heard, clients[~finite])
        self._charge(round_, clients, np.isin(clients, reporting), head_start_s, registering)
        return Heard(news, drift, len(news), len(reporting), count, decided)

    def _charge(
        self, round_: int, clients: Ints, reports: Bools, head_start_s: Floats, registering: bool
    ) -> None:
        """Charge `clients` (n,) for measuring, and those that `reports` (n,) marks for sending a report.

        All that are `registering` download the reference model, if there is one.
        """
        measuring, reference = self._parts.representation.work(clients, self._data), self._data.reference
        downloaded = reference.num_bytes if registering and reference is not None else 0.0
        report_bytes = np.float64(BYTES_PER_REPORTED_NUMBER * self.reports.latest.shape[1])
        work = replace(
            measuring,
            download_bytes=measuring.download_bytes + downloaded,
            upload_bytes=np.where(reports, report_bytes, 0.0),
        )
        spent = work.download_bytes + work.upload_bytes + work.forward_samples + work.trained_samples
        rows = np.flatnonzero(spent > 0)
        if len(rows) > 0:
            model_bytes = BYTES_PER_PARAMETER * self._data.num_parameters("global")
            num_models = float(work.download_bytes[rows].sum()) / model_bytes
            if reference is None or reference.of_arm:
                receives = work.download_bytes > 0
                work.download_bytes[receives] += self._run.base.sent(clients[receives])
            self._requests.charge(round_, clients[rows], work.take(rows), num_models, head_start_s[rows])
