"""Client requests besides training: clients that are online respond, which costs virtual time and bytes.

A model version that a client downloaded in this round, to score it, is not sent to it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from coordinator.federation.bank import ModelBank
from coordinator.federation.run import Run
from coordinator.federation.training.reading import Reading
from coordinator.view import ScoreResponse
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.counts import largest_remainder, samples_of_steps
from emulator.ledger import Ledger
from emulator.messages import (
    BYTES_PER_PARAMETER,
    BYTES_PER_REPORTED_NUMBER,
    METRICS_BY_LABEL,
    Metric,
    SampleRanges,
    TrainTasks,
    Updates,
    Work,
)
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful

Resolve = Callable[[Ints], SampleRanges]
"""(n,) client ids -> the samples of each client that a request is about."""

FIRST_REQUESTED = 2**31
"""The model id in the first training request of a round; further ones count up. Ids of the bank are lower."""


class ClientRequests(Stateful):
    """Serves the client requests of one run, scores and training, and charges them, and also the reports.

    A moment is an instant at which parts can make requests: when a round is opened, at selection, at dispatch
    and after aggregation. `open_moment` starts one; `close_round` ends the round.
    """

    state_fields = ("_num_requests", "_exchanges", "_now_s", "_busy_s", "_holders")

    def __init__(self, run: Run, bank: ModelBank, ledger: Ledger) -> None:
        self._run = run
        self._bank = bank
        self._ledger = ledger
        self._num_requests = 0
        self._exchanges = 0
        self._now_s = 0.0
        self._busy_s: Floats | None = None
        self.reading = Reading(None, None, stream=run.stream, executor=run.executor)
        """In which ways clients read samples; the federation sets its own before the run begins."""
        self._holders: dict[tuple[int, int], Bools] = {}

    def state(self) -> dict[str, Tree]:
        holders = [(*content, holds) for content, holds in self._holders.items()]
        return {**super().state(), "_holders": holders}

    def restore(self, state: Mapping[str, Tree]) -> None:
        super().restore(state)
        self._holders = {(model, version): holds for model, version, holds in state["_holders"]}

    def close_round(self) -> None:
        """Forget which models the clients downloaded in this round, and number requests from 0 again."""
        self._num_requests, self._exchanges = 0, 0
        self._holders.clear()

    def open_moment(self, now_s: float) -> None:
        """Start a new moment: clients begin to work on its requests at `now_s`."""
        self._now_s, self._busy_s = now_s, None

    def busy_s(self, clients: Ints) -> Floats:
        """(n,) virtual seconds that each client needs for the requests of this moment."""
        return np.zeros(len(clients)) if self._busy_s is None else self._busy_s[clients]

    def charge(
        self,
        round_: int,
        clients: Ints,
        work: Work,
        num_models: float = 0,
        head_start_s: Floats | float = 0.0,
    ) -> None:
        """Charge an exchange of control traffic, in which `num_models` models are sent in all.

        `work` (n,) is what `clients` (n,) transfer and compute without packet loss; resent packets are
        charged as well. They began `head_start_s` (n,) before this moment, which waits only for what is left
        then; for a client whose head start is inf it does not wait at all.
        """
        self._exchanges += 1  # the exchange 0 of a round is its visits
        work = self._run.faults.sent(work, clients, round_, self._exchanges)
        self._ledger.charge_control(work.download_bytes, work.upload_bytes, num_models)
        if self._busy_s is None:
            self._busy_s = np.zeros(self._run.stream.num_clients)
        self._busy_s[clients] += np.maximum(
            self._run.latency.phases(clients, work).total_s - head_start_s, 0.0
        )

    @property
    def slowest_s(self) -> float:
        """Virtual seconds until the slowest client has responded to the requests of this moment."""
        return 0.0 if self._busy_s is None else float(self._busy_s.max())

    def score(
        self,
        round_: int,
        clients: Ints,
        models: Ints,
        resolve: Resolve,
        metrics: frozenset[Metric],
        limit: int | None = None,
    ) -> ScoreResponse:
        """See `coordinator.view.ScoreRequest`; `resolve` returns the samples that the request is about."""
        responding, ranges = self._responding(clients, resolve)
        if limit is not None:
            rng = self._run.streams.generator("questions", round_, self._num_requests)
            ranges = _limited(ranges, limit, rng)
            drawn = np.flatnonzero(ranges.counts() > 0)
            responding, ranges = responding[drawn], ranges.take(drawn)
        self._num_requests += 1
        with self._run.meter("score_s"):
            parameters = self._bank.parameters[models]
            scores, choosing = self.reading.score(round_, responding, parameters, ranges, metrics)
        downloads = np.zeros(len(responding))
        for model in models.tolist():
            holders = self._holders_of(model)
            downloads += ~holders[responding]
            holders[responding] = True
        matrices = scores.confusion if scores.log_probabilities is None else scores.log_probabilities
        num_labels = 0 if matrices is None else matrices.shape[-1]
        numbers = len(models) * _numbers_per_model(metrics, num_labels)
        model_bytes = float(BYTES_PER_PARAMETER * self._run.executor.num_parameters)
        along = np.zeros(len(responding))
        along[downloads > 0] = self._run.base.sent(responding[downloads > 0])
        work = Work(
            download_bytes=downloads * model_bytes + along,
            upload_bytes=np.full(len(responding), float(BYTES_PER_REPORTED_NUMBER * numbers)),
            forward_samples=(ranges.counts() * len(models)).astype(np.float64),
            trained_samples=np.zeros(len(responding)),
        )
        if choosing is not None:
            work = work.plus(choosing, np.arange(len(responding)))
        self.charge(round_, responding, work, float(downloads.sum()))
        return ScoreResponse(responding, scores)

    def train(
        self, round_: int, step: int, clients: Ints, start: Floats32, steps: int, resolve: Resolve
    ) -> Updates:
        """See `coordinator.view.TrainRequest`; `resolve` returns the samples that each client trains on.

        Updates that are not finite are among those returned.
        """
        responding, ranges = self._responding(clients, resolve)
        received = np.zeros(len(responding), dtype=np.int64)
        ranges, choosing = self.reading.of_tasks(
            round_, responding, start[None], received, ranges, sent_out=False
        )
        # An id of its own: the batches and faults of the bank's models have no part in it. What the solver
        # remembers, and what the aggregator broadcasts, are left out: it begins anew.
        model = np.full(len(responding), FIRST_REQUESTED + self._num_requests)
        self._num_requests += 1
        numbers = {
            "learning_rate": self._run.settings.learning_rate,
            "local_steps": float(steps),
            "batch_size": float(self._run.settings.batch_size),
        }
        tasks = TrainTasks(
            client=responding,
            model=model,
            visit=np.full(len(responding), -1),
            samples=ranges,
            settings={name: np.full(len(responding), number) for name, number in numbers.items()},
            dispatch=np.full(len(responding), round_),
            step=np.full(len(responding), step),
            tampering=self._run.faults.tampering(round_, responding, model),
        )
        with self._run.meter("score_s"):
            trained = self._run.executor.train(tasks, start[None], received)
        model_bytes = float(BYTES_PER_PARAMETER * self._run.executor.num_parameters)
        samples = samples_of_steps(
            tasks.settings["local_steps"],
            ranges.counts(),
            self._run.settings.batch_size,
            self._run.settings.last,
        )
        downloads = model_bytes + self._run.base.sent(responding)
        work = Work.of(
            len(responding), download_bytes=downloads, upload_bytes=model_bytes, trained_samples=samples
        )
        if choosing is not None:
            work = work.plus(choosing, np.arange(len(responding)))
        self.charge(round_, responding, work, 2 * len(responding))
        return trained

    def _responding(self, clients: Ints, resolve: Resolve) -> tuple[Ints, SampleRanges]:
        """Those of `clients` that are online and have samples that a request is about, and these samples."""
        responding = clients[self._run.availability.online(clients, self._now_s)]
        ranges = resolve(responding)
        having = np.flatnonzero(ranges.counts() > 0)
        return responding[having], ranges.take(having)

    def hold(self, clients: Ints, models: Ints) -> Bools:
        """(n,) whether a client holds a model, having downloaded it in this round for a request.

        `clients` (n,) and `models` (n,), rows of the bank, are the pairs of a client and a model.
        """
        held = np.zeros(len(clients), dtype=bool)
        if self._holders:
            for model in np.unique(models).tolist():
                pairs = models == model
                held[pairs] = self._holders_of(model)[clients[pairs]]
        return held

    def _holders_of(self, model: int) -> Bools:
        content = (int(self._bank.ids[model]), int(self._bank.versions[model]))
        if content not in self._holders:
            present = set(zip(self._bank.ids.tolist(), self._bank.versions.tolist(), strict=True))
            for other in self._holders.keys() - present:  # no request will be about these any more
                del self._holders[other]
            self._holders[content] = np.zeros(self._run.stream.num_clients, dtype=bool)
        return self._holders[content]


def _numbers_per_model(metrics: frozenset[Metric], num_labels: int) -> int:
    """Numbers that a client uploads for each model: its sums, and the number of samples."""
    return 1 + sum(num_labels**2 if metric in METRICS_BY_LABEL else 1 for metric in metrics)


def _limited(ranges: SampleRanges, limit: int, generator: np.random.Generator) -> SampleRanges:
    """At most `limit` samples in all, drawn from each row in proportion to its number of samples."""
    counts = ranges.counts()
    if counts.sum() <= limit:
        return ranges
    share = largest_remainder(limit, counts)
    drawn = [
        np.sort(generator.choice(ranges.rows(row), size=int(count), replace=False))
        for row, count in enumerate(share)
    ]
    rows = np.concatenate(drawn)
    offsets = np.concatenate(([0], np.cumsum(share))).astype(np.int64)
    return SampleRanges(offsets, rows, rows + 1, np.ones(len(rows)))
