"""Implements `emulator.ports.Executor` over several ranks that play the same run.

The results equal those of one process to the bit: task groups and slabs are those of `LocalExecutor`. Each
rank computes its share of them, and all ranks exchange the results. Updates stay in the rank that trained
them; the methods of `Updates` that need more than was exchanged after training are exchanges themselves, so
all ranks must call them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    OfWave,
    SampleRanges,
    Scores,
    SolverFacts,
    TrainTasks,
)
from emulator.ports import SampleReader, Segment
from emulator.storage.state_tree import Tree
from executor.executor import LocalExecutor
from executor.group_sums import GroupWeights, sends_rows, sent_rows, summed
from executor.ranks import Ranks
from executor.sharing import share


class ReplicatedExecutor:
    """Trains and scores as `local` does: a share of the work in this rank, the rest in the other `ranks`."""

    def __init__(self, local: LocalExecutor, ranks: Ranks) -> None:
        self._local = local
        self._ranks = ranks
        self.halved_groups = 0
        """As `LocalExecutor.halved_groups`, summed over all ranks."""

    @property
    def strategy(self) -> str:
        return self._local.strategy

    @property
    def chunk(self) -> int:
        return self._local.chunk

    @property
    def reader(self) -> SampleReader:
        return self._local.reader

    @property
    def layout(self) -> Mapping[str, Segment]:
        return self._local.layout

    @property
    def solver(self) -> SolverFacts:
        return self._local.solver

    @property
    def num_parameters(self) -> int:
        return self._local.num_parameters

    def initial(self, number: int) -> Floats32:
        return self._local.initial(number)

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        """As `LocalExecutor.personal`; every rank computes all of it, which is a pass over its arguments."""
        return self._local.personal(received, state)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ReplicatedUpdates:
        """The update of each task, as `LocalExecutor.train` returns it.

        If `weights` are given, the sums of the updates by them are exchanged along with the other results.
        """
        groups, steps = self._local.cut(tasks, models, start)  # which may turn out to be fewer
        owner = share(np.array([steps[members].sum() for members in groups]), self._ranks.size)
        steps = steps.copy()
        halved = self._local.halved_groups
        local_groups = np.flatnonzero(owner == self._ranks.rank).tolist()
        trained = self._local.train_groups(tasks, models, start, local_groups)
        wave = TrainedWave(self._ranks, groups, owner, trained)
        expected = None if weights is None else GroupWeights.over(weights, groups)
        rows = wave.rows_of(self._ranks.rank)
        content = {
            "metrics": {name: column[rows] for name, column in trained.metrics.items()},
            "finite": trained.take(rows).finite,
            "statistics": trained.statistics[rows],
            "state": {name: column[rows] for name, column in trained.state.items()},
            "steps": trained.num_steps[rows],
            "halved": self._local.halved_groups - halved,
            "sums": None if expected is None else wave.local_sums(expected),
        }
        finite = np.ones(len(tasks), dtype=np.bool_)
        sums: dict[int, Floats | Floats32] = {}
        doing = f"training in dispatch {', '.join(map(str, np.unique(tasks.dispatch)[:3]))}"
        contents = self._ranks.exchange(content, _digest(models, start, weights, tasks), doing)
        for rank, results in enumerate(contents):
            members = wave.rows_of(rank)
            finite[members] = results["finite"]
            steps[members] = results["steps"]
            trained.statistics[members] = results["statistics"]
            for name, column in results["metrics"].items():
                trained.metrics[name][members] = column
            for name, column in results["state"].items():
                trained.state[name][members] = column
            self.halved_groups += results["halved"]
            if expected is not None:
                sums |= wave.sums_of(rank, expected, results["sums"])
        size = trained.delta.shape[1]
        known = None if expected is None else (expected.weights, expected.total(sums, size))
        columns = {**vars(trained), "num_steps": steps, "delta": trained.delta[:, :0], "group": None}
        place = np.arange(len(tasks))
        return ReplicatedUpdates(
            **columns, place=place, size=len(tasks), known=known, wave=wave, usable=finite
        )

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        """As `LocalExecutor.score`."""
        counts, names = samples.counts(), sorted(metrics)
        slabs = self._local.cut_scores(len(models), counts)
        shared = _SharedSlabs(slabs, counts, self._ranks)
        scores = self._local.score(models, samples, metrics, shared.local)
        columns: dict[str, Floats] = {name: getattr(scores, name) for name in names}
        shared.exchange(columns, _digest(models, samples, names), "scoring models")
        return scores

    @property
    def embedding_size(self) -> int:
        return self._local.embedding_size

    def embeddings(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """As `LocalExecutor.embeddings`."""
        return self._shared_reports(self._local.embeddings, parameters, samples, "computing embeddings")

    def gradients(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """As `LocalExecutor.gradients`."""
        return self._shared_reports(self._local.gradients, parameters, samples, "computing gradients")

    def _shared_reports(
        self, compute: Callable[..., Floats32], parameters: Floats32, samples: SampleRanges, doing: str
    ) -> Floats32:
        counts = samples.counts()
        shared = _SharedSlabs(self._local.cut_reports(counts), counts, self._ranks)
        reports = compute(parameters, samples, shared.local)
        shared.exchange({"reports": reports}, _digest(parameters, samples), doing)
        return reports

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        """As `LocalExecutor.evaluate`."""
        slabs = self._local.cut_evaluation(plan, samples)
        shared = _SharedSlabs(slabs, samples.counts(), self._ranks)
        evaluation = self._local.evaluate(models, plan, samples, shared.local)
        columns = {"accuracy": evaluation.accuracy, "loss": evaluation.loss}
        shared.exchange(columns, _digest(models, plan, samples), "evaluating models")
        return evaluation


class _SharedSlabs:
    """Slabs of requests, shared out among the ranks so that their numbers of samples balance.

    `counts` (n,): the number of samples of each request. `local`: the slabs of this rank.
    """

    def __init__(self, slabs: Sequence[Ints], counts: Ints, ranks: Ranks) -> None:
        self._slabs = slabs
        self._ranks = ranks
        self._owner = share(np.array([counts[slab].sum() for slab in slabs]), ranks.size)
        self.local = self._of(ranks.rank)

    def exchange(self, columns: Mapping[str, Floats | Floats32], digest: bytes, doing: str) -> None:
        """Fill in, in place, the rows of `columns` that other ranks have computed. All ranks must call it."""
        rows = [_joined(self._of(rank)) for rank in range(self._ranks.size)]
        local = {name: column[rows[self._ranks.rank]] for name, column in columns.items()}
        for members, results in zip(rows, self._ranks.exchange(local, digest, doing), strict=True):
            for name, column in columns.items():
                column[members] = results[name]

    def _of(self, rank: int) -> list[Ints]:
        return [self._slabs[slab] for slab in np.flatnonzero(self._owner == rank).tolist()]


@dataclass(frozen=True)
class TrainedWave:
    """A trained wave whose updates are spread over the ranks: rank `owner[j]` has those of task group j.

    `groups[j]`: the group's rows of the wave. `trained` has a row for each task of the wave; the updates of
    other ranks' groups are zeros in it.
    """

    ranks: Ranks
    groups: Sequence[Ints]
    owner: Ints
    trained: ArrayUpdates

    def groups_of(self, rank: int) -> list[int]:
        return np.flatnonzero(self.owner == rank).tolist()

    def rows_of(self, rank: int) -> Ints:
        """The wave's rows that `rank` has trained, group after group."""
        return _joined([self.groups[number] for number in self.groups_of(rank)])

    def local_sums(self, group_weights: GroupWeights) -> Tree:
        """This rank's contribution to the sums by `group_weights`, as a tree of at most two arrays.

        Each is a concatenation over this rank's groups: "rows" of updates that are sent as they are, and
        "sums" of the other groups (see `summed`).
        """
        rows: list[Floats | Floats32] = []
        sums: list[Floats | Floats32] = []
        for number in group_weights.among(self.groups_of(self.ranks.rank)):
            weights = group_weights.of_group[number]
            part = summed(weights, self.trained.delta[self.groups[number]])
            (rows if sends_rows(weights) else sums).append(part)
        return {name: np.concatenate(parts) for name, parts in (("rows", rows), ("sums", sums)) if parts}

    def sums_of(self, rank: int, group_weights: GroupWeights, sent: Tree) -> dict[int, Floats | Floats32]:
        """The result of `summed` for each of the groups of `rank`, by group.

        `sent`: the contribution of that rank, which `local_sums` returned there.
        """
        by_group: dict[int, Floats | Floats32] = {}
        filled = {"rows": 0, "sums": 0}
        for number in group_weights.among(self.groups_of(rank)):
            weights = group_weights.of_group[number]
            name = "rows" if sends_rows(weights) else "sums"
            first = filled[name]
            filled[name] += sent_rows(weights)
            by_group[number] = sent[name][first : filled[name]]
        return by_group

    def total(self, group_weights: GroupWeights) -> Floats:
        """(k, P) the sums by `group_weights` over the whole wave; an exchange."""
        contents = self.ranks.exchange(
            self.local_sums(group_weights), _digest(group_weights.weights), "summing updates"
        )
        by_group: dict[int, Floats | Floats32] = {}
        for rank, sent in enumerate(contents):
            by_group |= self.sums_of(rank, group_weights, sent)
        return group_weights.total(by_group, self.trained.delta.shape[1])

    def column(self, of_rows: Callable[[Ints], np.ndarray], doing: str, *inputs: object) -> np.ndarray:
        """(n, ...) a column over the wave's n rows; each rank computes its rows by `of_rows`. An exchange.

        `inputs`: what `of_rows` reads besides the updates; all ranks must have the same.
        """
        parts = self.ranks.exchange(of_rows(self.rows_of(self.ranks.rank)), _digest(doing, *inputs), doing)
        column = np.zeros((len(self.trained), *parts[0].shape[1:]), dtype=parts[0].dtype)
        for rank, part in enumerate(parts):
            column[self.rows_of(rank)] = part
        return column


@dataclass(frozen=True)
class ReplicatedUpdates(OfWave):
    """Updates of which each is in the rank that trained it; `usable` (n,): whether it is finite."""

    wave: TrainedWave | None = None
    usable: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    _rows: list[Floats32] = field(default_factory=list, repr=False)  # of the whole wave, once exchanged

    @property
    def finite(self) -> Bools:
        return self.usable

    def weighted_sum(self, weights: Floats) -> Floats:
        if (sums := self.known_sum(weights)) is not None:
            return sums
        if self._rows:
            return self._here().weighted_sum(weights)
        return self._wave.total(GroupWeights.over(self.over_wave(weights), self._wave.groups))

    @property
    def _wave(self) -> TrainedWave:
        assert self.wave is not None
        return self.wave

    def gram(self) -> Floats:
        return self._here().gram()

    def norms(self) -> Floats:
        if self._rows:
            return self._here().norms()
        norms: Floats = self._wave.column(lambda rows: self._wave.trained.take(rows).norms(), "taking norms")
        return norms[self.place]

    def project(self, vectors: Floats | Floats32) -> Floats:
        if self._rows:
            return self._here().project(vectors)
        trained = self._wave.trained
        products: Floats = self._wave.column(
            lambda rows: trained.take(rows).project(vectors), "projecting updates", vectors
        )
        return products[self.place]

    def rows(self, columns: slice) -> Floats32:
        return self._here().rows(columns)

    def _here(self) -> ArrayUpdates:
        """All of these updates as arrays in this rank.

        The first call is an exchange; later ones are not, also on updates that `take` returned.
        """
        trained = self._wave.trained
        if not self._rows:
            self._rows.append(self._wave.column(lambda rows: trained.delta[rows], "reading updates"))
        group_of = trained.group
        assert group_of is not None
        told = self.client, self.model, self.num_samples, self.num_steps
        delta, group = self._rows[0][self.place], group_of[self.place]
        return ArrayUpdates(*told, delta, self.metrics, self.state, group, self.late, self.statistics)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _digest(*contents: object) -> bytes:
    """sha256 over arrays, messages, mappings and sets; over the repr of anything else."""
    state = hashlib.sha256()
    for content in contents:
        _add(state, content)
    return state.digest()


def _add(state: hashlib._Hash, content: object) -> None:
    if isinstance(content, np.ndarray):
        state.update(f"{content.dtype}{content.shape}".encode())
        state.update(np.ascontiguousarray(content).data)
    elif isinstance(content, Mapping):
        for name, item in content.items():
            state.update(name.encode())
            _add(state, item)
    elif isinstance(content, frozenset):  # its own order differs between processes
        state.update(repr(sorted(content)).encode())
    elif isinstance(content, TrainTasks | SampleRanges | InferencePlan):
        _add(state, vars(content))
    else:
        state.update(repr(content).encode())
