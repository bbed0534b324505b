"""`emulator.ports.Executor` by workers: the same numbers as in one process, to the bit.

Cohorts and slabs are those of `LocalExecutor`. Updates stay with the workers that trained them; what comes
back of them is what is asked for, sums by preference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    StateSpec,
    TrainTasks,
)
from emulator.ports import Segment
from emulator.state_tree import Tree
from executor.executor import LocalExecutor
from executor.workers.packing import packed_plan, packed_ranges, packed_tasks
from executor.workers.pool import Context, Job, Pool, Worker
from executor.workers.serving import unfolded

JOBS_EACH = 4  # messages to a worker for what is cut finely: enough to even out, few enough to cost little
COLLECTED_BYTES = 2**26  # of updates, or sums of them, in one message


class RemoteExecutor:
    """Trains and scores what `local` would, by the workers of `pool`, which `set_up` describes it to.

    `threads` is how many cohorts a worker trains side by side.
    """

    def __init__(self, local: LocalExecutor, pool: Pool, set_up: Context, threads: int) -> None:
        self._local = local
        self._pool = pool
        self._set_up = set_up
        self._threads = threads
        self._models = Context("models", -1, np.zeros((0, 0), dtype=np.float32))
        self.halved_cohorts = 0

    @property
    def strategy(self) -> str:
        return self._local.strategy

    @property
    def chunk(self) -> int:
        return self._local.chunk

    @property
    def layout(self) -> Mapping[str, Segment]:
        return self._local.layout

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return self._local.state

    @property
    def num_parameters(self) -> int:
        return self._local.num_parameters

    def initial(self, number: int) -> Floats32:
        return self._local.initial(number)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> RemoteUpdates:
        """The update of each task, as `LocalExecutor.train` has it; it stays with the workers until the next
        wave. Where `weights` say what they will be mixed by, sums come back with all else."""
        contexts = self._contexts(models)
        cohorts, steps = self._local.cut(tasks, models, start)
        wave = TrainedWave(self._pool, self._pool.number(), cohorts, self.num_parameters)
        expected = None if weights is None else Mixing.of(weights, cohorts)
        for groups in _runs(len(cohorts), max(1, min(self._threads, -(-len(cohorts) // len(self._pool))))):
            members = np.concatenate([cohorts[group] for group in groups])
            body = {
                "wave": wave.number,
                "groups": list(groups),
                "sizes": [len(cohorts[group]) for group in groups],
                "tasks": packed_tasks(tasks.take(members), start[members]),
                "weights": {} if expected is None else expected.among(groups),
            }
            wave.add(groups, Job("train", float(steps[members].sum()), _always(body), contexts), body)
        loss, finite = np.full(len(tasks), np.nan), np.ones(len(tasks), dtype=np.bool_)
        widths = {"parameters": self.num_parameters, "scalar": 1}
        state = {
            name: np.zeros((len(tasks), widths[slot.shape]), dtype=np.float32)
            for name, slot in self.state.items()
        }
        for members, answer in wave.train():
            loss[members], finite[members] = answer["loss"], answer["finite"]
            for name, rows in answer["state"].items():
                state[name][members] = rows
            self.halved_cohorts += answer["halved"]
            if expected is not None:
                expected.found.update(answer["sums"])
        return RemoteUpdates(
            tasks.client,
            tasks.model,
            tasks.samples.counts(),
            steps,
            {"loss": loss},
            state,
            finite,
            wave,
            expected,
        )

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        """As `LocalExecutor.score`."""
        names = sorted(metrics)
        counts, labels = samples.counts(), self._local.num_labels
        shapes = {name: (labels, labels) if name == "confusion" else () for name in names}
        found = {name: np.zeros((len(counts), len(models), *shapes[name])) for name in names}
        contexts = self._contexts(models)
        slabs = self._local.cut_scores(len(models), counts)

        def body(rows: Ints, sizes: list[int]) -> Tree:
            return {"samples": packed_ranges(samples.take(rows)), "sizes": sizes, "metrics": names}

        for rows, answer in self._by_slabs("score", slabs, counts, body, contexts):
            for name in names:
                found[name][rows] = answer[name]
        return Scores(counts, **found)

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        """As `LocalExecutor.evaluate`."""
        accuracy, loss = np.full(len(plan.models), np.nan), np.full(len(plan.models), np.nan)
        contexts = self._contexts(models)
        slabs = self._local.cut_evaluation(plan, samples)

        def body(rows: Ints, sizes: list[int]) -> Tree:
            ranges = packed_ranges(samples.take(rows))
            return {"plan": packed_plan(plan.take(rows)), "samples": ranges, "sizes": sizes}

        for rows, answer in self._by_slabs("evaluate", slabs, samples.counts(), body, contexts):
            accuracy[rows], loss[rows] = answer["accuracy"], answer["loss"]
        return Evaluation(accuracy, loss)

    def _by_slabs(
        self,
        kind: str,
        slabs: Sequence[Ints],
        counts: Ints,
        body: Callable[[Ints, list[int]], Tree],
        contexts: Sequence[Context],
    ) -> list[tuple[Ints, Tree]]:
        """Several slabs a message; the rows of each message, with its answer."""
        messages, jobs = [], []
        for run in _runs(len(slabs), -(-len(slabs) // (JOBS_EACH * len(self._pool)))):
            rows = np.concatenate([slabs[place] for place in run])
            messages.append(rows)
            said = body(rows, [len(slabs[place]) for place in run])
            jobs.append(Job(kind, float(counts[rows].sum()), _always(said), contexts))
        return [(messages[answer.index], answer.body) for answer in self._pool.answers(jobs)]

    def _contexts(self, models: Floats32) -> tuple[Context, Context]:
        """What a worker needs before anything else; the same models are not sent again."""
        if not _same(models, self._models.body):
            self._models = Context("models", self._pool.number(), models.copy())
        return self._set_up, self._models


@dataclass
class _Unit:
    """Groups that were sent to be trained together, and who holds their updates."""

    groups: Sequence[int]
    job: Job
    body: Tree
    holder: Worker | None = None


@dataclass
class TrainedWave:
    """Where the updates of a wave are: by group, which is a cohort, as `groups` (of rows) has them."""

    pool: Pool
    number: int
    groups: Sequence[Ints]
    num_parameters: int
    units: list[_Unit] = field(default_factory=list)

    def add(self, groups: Sequence[int], job: Job, body: Tree) -> None:
        self.units.append(_Unit(groups, job, body))

    def train(self) -> list[tuple[Ints, Tree]]:
        """Train all; the rows of each message, with its answer."""
        found = []
        for answer in self.pool.answers([unit.job for unit in self.units]):
            unit = self.units[answer.index]
            unit.holder = answer.worker
            found.append((np.concatenate([self.groups[group] for group in unit.groups]), answer.body))
        return found

    def collect(self, what: str, each_bytes: Sequence[int], weights: Mapping[int, Floats]) -> dict[int, Tree]:
        """Of each group in `weights` what is asked of its updates (`Serving._collect`), `each_bytes` of it.

        What is with a worker that is lost, or that straggles, is trained again by another.
        """
        jobs, asked = [], []
        for units in self._together(each_bytes, weights):
            groups = [group for unit in units for group in unit.groups if group in weights]
            asked.append((units, groups))
            jobs.append(self._collecting(what, units, groups, weights))
        found: dict[int, Tree] = {}
        for answer in self.pool.answers(jobs):
            units, groups = asked[answer.index]
            found |= dict(zip(groups, answer.body, strict=True))
            for unit in units:
                unit.holder = answer.worker
        return found

    def _collecting(
        self, what: str, units: Sequence[_Unit], groups: Sequence[int], weights: Mapping[int, Floats]
    ) -> Job:
        holders = {id(unit): unit.holder for unit in units}  # as they are now

        def body(worker: Worker) -> Tree:
            return {
                "wave": self.number,
                "what": what,
                "groups": list(groups),
                "weights": [weights[group] for group in groups],
                "again": [unit.body for unit in units if holders[id(unit)] is not worker],
            }

        return Job("collect", 0.0, body, units[0].job.contexts, units[0].holder)

    def _together(self, each_bytes: Sequence[int], wanted: Mapping[int, Floats]) -> list[list[_Unit]]:
        """Units that are asked of one worker in one message."""
        found: list[list[_Unit]] = []
        by_holder: dict[int, tuple[list[_Unit], int]] = {}
        for unit in self.units:
            size = sum(each_bytes[group] for group in unit.groups if group in wanted)
            if not any(group in wanted for group in unit.groups):
                continue
            units, filled = by_holder.get(id(unit.holder), ([], COLLECTED_BYTES))
            if not units or filled + size > COLLECTED_BYTES:
                units, filled = [], 0
                found.append(units)
            units.append(unit)
            by_holder[id(unit.holder)] = units, filled + size
        return found


@dataclass
class Mixing:
    """What the updates of a wave are mixed by, and the sums over each group that have come back.

    `weights` (k, n); of each group the rows of these that count in it, `models`, and where there are any, its
    part of them, `of_group`.
    """

    weights: Floats
    models: Sequence[Ints]
    of_group: Mapping[int, Floats]
    found: dict[int, Tree] = field(default_factory=dict)

    @classmethod
    def of(cls, weights: Floats, groups: Sequence[Ints]) -> Mixing:
        parts = [weights[:, members] for members in groups]
        models = [np.flatnonzero(part.any(axis=1)) for part in parts]
        of_group = {group: parts[group][rows] for group, rows in enumerate(models) if len(rows)}
        return cls(weights, models, of_group)

    def among(self, groups: Sequence[int]) -> dict[int, Floats]:
        """Those that concern `groups`."""
        return {group: self.of_group[group] for group in groups if group in self.of_group}

    def total(self, num_parameters: int) -> Floats:
        """(k, P), summed over the groups in their order."""
        sums = np.zeros((len(self.weights), num_parameters))
        for group, weights in self.of_group.items():
            sums[self.models[group]] += unfolded(self.found[group], weights)
        return sums


@dataclass(frozen=True)
class RemoteUpdates:
    """Updates whose rows are with workers; `emulator.messages.Updates`.

    Row i of these is row `kept[i]` of the wave.
    """

    client: Ints
    model: Ints
    num_samples: Ints
    num_steps: Ints
    metrics: Mapping[str, Floats]
    state: Mapping[str, Floats32]
    finite: Bools
    wave: TrainedWave
    expected: Mixing | None = None  # of the whole wave: what came back with the training
    kept: Ints | None = None
    _rows: list[Floats32] = field(default_factory=list, repr=False)  # all of them, once they were asked for

    def __len__(self) -> int:
        return len(self.client)

    def take(self, rows: Ints) -> RemoteUpdates:
        return replace(
            self,
            client=self.client[rows],
            model=self.model[rows],
            num_samples=self.num_samples[rows],
            num_steps=self.num_steps[rows],
            metrics={name: column[rows] for name, column in self.metrics.items()},
            state={name: column[rows] for name, column in self.state.items()},
            finite=self.finite[rows],
            kept=self._places[rows],
            _rows=[self._rows[0][rows]] if self._rows else [],
        )

    def mix(self, weights: Floats) -> Floats:
        if self._rows:
            return self._here().mix(weights)
        spread = np.zeros((len(weights), self._wave_size))
        spread[:, self._places] = weights
        if self.expected is not None and np.array_equal(spread, self.expected.weights):
            return self.expected.total(self.wave.num_parameters)
        mixing = Mixing.of(spread, self.wave.groups)
        each = [8 * len(rows) * self.wave.num_parameters for rows in mixing.models]
        mixing.found = self.wave.collect("sums", each, mixing.of_group)
        return mixing.total(self.wave.num_parameters)

    def gram(self) -> Floats:
        return self._here().gram()

    def norms(self) -> Floats:
        if self._rows:
            return self._here().norms()
        norms = np.zeros(self._wave_size)
        found = self.wave.collect("norms", [8 * len(rows) for rows in self.wave.groups], self._all_groups())
        for group, values in found.items():
            norms[self.wave.groups[group]] = values
        return norms[self._places]

    def rows(self, columns: slice) -> Floats32:
        return self._here().rows(columns)

    @property
    def _wave_size(self) -> int:
        return sum(len(members) for members in self.wave.groups)

    @property
    def _places(self) -> Ints:
        return np.arange(len(self)) if self.kept is None else self.kept

    def _all_groups(self) -> dict[int, Floats]:
        nothing = np.zeros((0, 0))
        return dict.fromkeys(range(len(self.wave.groups)), nothing)

    def _here(self) -> ArrayUpdates:
        """All of these, in memory; fetched once."""
        group = np.zeros(self._wave_size, dtype=np.int64)
        for number, members in enumerate(self.wave.groups):
            group[members] = number
        if not self._rows:
            whole = np.zeros((self._wave_size, self.wave.num_parameters), dtype=np.float32)
            each = [4 * len(rows) * self.wave.num_parameters for rows in self.wave.groups]
            for number, rows in self.wave.collect("rows", each, self._all_groups()).items():
                whole[self.wave.groups[number]] = rows
            self._rows.append(whole[self._places])
        return ArrayUpdates(
            self.client,
            self.model,
            self.num_samples,
            self.num_steps,
            self._rows[0],
            self.metrics,
            self.state,
            group[self._places],
        )


def _always(body: Tree) -> Callable[[Worker], Tree]:
    return lambda worker: body


def _runs(length: int, size: int) -> list[range]:
    """Stretches of `size`, the last one shorter, that make up range(length)."""
    return [range(first, min(first + size, length)) for first in range(0, length, max(1, size))]


def _same(one: Floats32, other: Floats32) -> bool:
    """Whether the two hold the same, not finite numbers included."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()
