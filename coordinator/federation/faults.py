"""Fault injection: crashes, packet loss, corruption and byzantine clients, drawn from the run's seed.

The byzantine clients and their misreports are drawn once. Crashes and the jitter of visits are keyed by the
dispatch and the client, packet loss also by the exchange, corruption also by the model: so what befalls a
client does not depend on the other participants. Nothing in this module has state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coordinator.population import Byzantine, FaultSettings, Kind
from emulator.arrays import NO_IDS, Bools, Floats, Ints
from emulator.counts import exact
from emulator.latency import NO_JITTER, Jitter
from emulator.messages import Work
from emulator.seeding import RandomStreams, uniforms

PACKET_BYTES = 1500
"""Maximal size of a packet: Ethernet's MTU."""


@dataclass(frozen=True)
class ByzantineClients:
    """The byzantine clients of one table of the configuration."""

    kind: Kind
    scale: float
    clients: Ints  # ids, ascending


@dataclass(frozen=True)
class VisitFaults:
    """The faults and the jitter in the visits of a dispatch, but for the tampering with their updates."""

    work: Work  # (visits,) what crosses the wire until everything has arrived
    crashes_at: Floats  # (visits,) share of its busy time at which a client's device crashes, or inf
    # (visits,) factors of the computing and (visits,) of the transfers of each; None: all are 1.
    factors: tuple[Floats, Floats] | None = None

    def crash_s(self, start_s: float, busy_s: Floats) -> Floats:
        """(visits,) instants of crashes, or inf; clients are busy for `busy_s` (visits,) from `start_s`."""
        crash_s: Floats = np.zeros(len(busy_s)) + np.inf
        rows = (self.crashes_at <= 1).nonzero()[0]
        crash_s[rows] = start_s + self.crashes_at[rows] * busy_s[rows]
        return crash_s


class Faults:
    """The faults and the jitter of one seed, among `num_clients` clients."""

    def __init__(
        self, settings: FaultSettings, num_clients: int, streams: RandomStreams, jitter: Jitter = NO_JITTER
    ) -> None:
        self.settings, self._jitter = settings, jitter if jitter.of_visits else None
        self._streams = streams
        self._permutations_of: dict[int, Ints] = {}
        self.byzantine = _draw_byzantine(settings.byzantine, num_clients, streams)

    def clients(self, kind: Kind) -> Ints:
        """Ids, ascending, of the byzantine clients of this kind."""
        return np.sort(
            np.concatenate([NO_IDS, *(group.clients for group in self.byzantine if group.kind == kind)])
        )

    # -- visits ---------------------------------------------------------------------------------------------

    def visits(self, dispatch: int, clients: Ints, payload: Work) -> VisitFaults:
        """The faults in the visits of `clients` (visits,) that begin with the dispatch of that number.

        `payload` (visits,) is what they transfer without packet loss.
        """
        factors = None
        if self._jitter is not None:
            factors = self._jitter.visit_factors(self._streams, dispatch, clients)
        return VisitFaults(
            work=self.sent(payload, clients, dispatch, 0),
            crashes_at=self._crashes_at(dispatch, clients),
            factors=factors,
        )

    def _crashes_at(self, number: int, clients: Ints) -> Floats:
        """(n,) the share of its visit, uniform in [0, 1), at which each of `clients` crashes, or inf."""
        if self.settings.crash == 0:
            return np.zeros(len(clients)) + np.inf
        chance, share = uniforms(self._streams.keys("crash", number, clients)).T
        return np.where(chance < self.settings.crash, share, np.inf)

    def tampering(self, number: int | Ints, client: Ints, model: Ints) -> dict[str, Floats]:
        """The columns (n,) of `TrainTasks.tampering` for n tasks, by name; those without effect are left out.

        `number`, (n,) or the same for all, is that of the dispatch, `client` and `model` (n,) are the client
        and the model id of each task.
        """
        columns: dict[str, Floats] = {}
        changes = (("scale", 1.0, -1.0), ("noise", 0.0, 1.0)) if self.byzantine else ()
        for name, neutral, factor in changes:
            kind = "sign_flip" if name == "scale" else "noise"
            column = np.full(len(client), neutral)
            for group in self.byzantine:
                if group.kind == kind:
                    column[_among(client, group.clients)] = factor * group.scale
            if (column != neutral).any():
                columns[name] = column
        if self.settings.corrupt > 0:
            chance = uniforms(self._streams.keys("corrupt", number, client, model))[:, 0]
            corrupted = chance < self.settings.corrupt
            if corrupted.any():
                columns[self.settings.corruption] = corrupted.astype(np.float64)
        return columns

    # -- reports --------------------------------------------------------------------------------------------

    def reported(self, clients: Ints, signal: Floats) -> Floats:
        """(n, D) the reports of `clients` (n,) on their `signal` (n, D).

        A misreporting client permutes its row, always in the same way.
        """
        misreporters = self._misreporters
        if len(misreporters) == 0:
            return signal
        rows = np.flatnonzero(_among(clients, misreporters))
        reported = signal.copy()
        orders = self._permutations(signal.shape[1])[np.searchsorted(misreporters, clients[rows])]
        reported[rows] = np.take_along_axis(signal[rows], orders, axis=1)
        return reported

    @cached_property
    def _misreporters(self) -> Ints:
        return self.clients("misreport")

    def _permutations(self, size: int) -> Ints:
        """(misreporters, size) the permutation that each misreporting client applies to `size` numbers."""
        if size not in self._permutations_of:
            client, number = np.meshgrid(self._misreporters, np.arange(size), indexing="ij")
            draws = uniforms(self._streams.keys("misreport", client.ravel(), number.ravel()))[:, 0]
            order = np.argsort(draws.reshape(client.shape), axis=1, kind="stable")
            self._permutations_of[size] = order
        return self._permutations_of[size]

    # -- links ----------------------------------------------------------------------------------------------

    def sent(self, work: Work, clients: Ints, number: int, exchange: int) -> Work:
        """`work` (n,) with the bytes that cross the wire until all of it has arrived.

        The transfer is exchange number `exchange` of round `number`; `clients` (n,) are distinct. A transfer
        of B bytes consists of ceil(B / 1500) packets of equal size, each of which is resent until it arrives:
        the number of lost packets is negative binomial. Timeouts take no time of their own.
        """
        loss = self.settings.loss
        if loss == 0 or len(clients) == 0:
            return work
        draws = uniforms(self._streams.keys("loss", number, exchange, clients))
        return replace(
            work,
            download_bytes=_resent(work.download_bytes, loss, draws[:, 0]),
            upload_bytes=_resent(work.upload_bytes, loss, draws[:, 1]),
        )


def no_faults(num_clients: int, streams: RandomStreams) -> Faults:
    """The faults of a population that has none."""
    return Faults(FaultSettings(), num_clients, streams)


def _draw_byzantine(
    tables: Sequence[Byzantine], num_clients: int, streams: RandomStreams
) -> tuple[ByzantineClients, ...]:
    """The byzantine clients of each table: consecutive pieces of one permutation of all clients.

    So no client is in two tables, and adding a table at the end does not change the clients of the others.
    """
    if not tables:
        return ()
    order = streams.generator("byzantine").permutation(num_clients)
    drawn, first = [], 0
    for table in tables:
        last = min(first + math.ceil(exact(table.share) * num_clients), num_clients)
        drawn.append(ByzantineClients(table.kind, table.scale, np.sort(order[first:last]).astype(np.int64)))
        first = last
    return tuple(drawn)


def _among(clients: Ints, ids: Ints) -> Bools:
    """(n,) which of `clients` are in `ids` (ascending)."""
    if len(ids) == 0:
        return np.zeros(len(clients), dtype=bool)
    position = np.minimum(np.searchsorted(ids, clients), len(ids) - 1)
    among: Bools = ids[position] == clients
    return among


def _resent(bytes_: Floats, loss: float, draws: Floats) -> Floats:
    """(n,) bytes sent until all of `bytes_` (n,) have arrived; `draws` (n,) are uniform in [0, 1)."""
    from scipy.stats import nbinom  # takes half a second, so only for runs that lose packets

    packets = np.ceil(bytes_ / PACKET_BYTES)
    sent = bytes_.astype(np.float64)
    rows = np.flatnonzero(packets > 0)
    # For a draw of 0, scipy's inverse is -1.
    again = np.maximum(nbinom.ppf(draws[rows], packets[rows], 1 - loss), 0.0)
    sent[rows] += again * (bytes_[rows] / packets[rows])
    return sent
