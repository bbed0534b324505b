"""The flight: the visits that are out, or back and not absorbed, with the tasks that were frozen at dispatch.

Knows tasks, models and costs by visit id; when a visit ends, and how, is known to `coordinator.visits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np

from coordinator.federation.cohort import Cohort
from emulator.arrays import NO_IDS, Floats32, Ints
from emulator.latency import Phases
from emulator.messages import SampleRanges, TaskMetric, TrainTasks, Work
from emulator.storage.state_tree import Tree, as_tree, from_tree
from emulator.storage.stateful import Stateful
from emulator.table import Column, Table

WORK = tuple(field.name for field in fields(Work))
PHASES = tuple(field.name for field in fields(Phases))
VISIT = ("visit", "clients", "dispatch", "start_s", "requests_s", "crash_s", "gone_s")
"""Columns of a cohort's visits, besides those of `payload`, `work` and `phases`."""

TASK = ("client", "model", "visit", "dispatch", "step")
"""Columns of `TrainTasks`, besides its mappings and samples."""

FROZEN = ("version", "label", "row", "bound", "stayed")
"""Columns of a cohort's tasks that are not the executor's."""


class Flight(Stateful):
    """The visits in flight, in three tables: a row for each visit, each task, and each range of samples.

    Models, and what is sent along with them, are kept once for each (id, version) that a task starts from.
    """

    state_fields = (
        *("_visits", "_tasks", "_ranges"),
        *("_loose", "_num_loose", "_models", "_starting", "_one_each", "_bootstrap"),
    )

    def __init__(self, measure: frozenset[TaskMetric] = frozenset()) -> None:
        """A flight without visits, of tasks that `measure` these metrics."""
        # NOTE: for performance reasons: a cohort is kept as it is, by its first visit, until some of its
        # visits are taken with or without others. In synchronous rounds, or with a buffer of 1, nothing is
        # copied.
        self._loose: dict[int, Cohort] = {}
        self._num_loose = 0  # visits in `_loose`
        self._visits = Table("visit")
        self._tasks = Table("visit")
        self._ranges = Table("task")
        # While each visit has one task, and each task one range, a row has the same number in all tables.
        self._one_each = True
        # (id, version) -> (P,) the model, and by name what is sent along with it
        self._models: dict[tuple[int, int], tuple[Floats32, dict[str, Floats32]]] = {}
        self._starting: dict[tuple[int, int], int] = {}  # (id, version) -> tasks that start from it
        self._bootstrap = False
        self._measure = measure

    def __len__(self) -> int:
        """The number of visits in flight."""
        return self._visits.count + self._num_loose

    def first_rows(self) -> Ints:
        """(ranges,) the first table row of each range of samples of the tasks in flight."""
        rows = [self._ranges.columns["first"][self._ranges.rows]] if self._ranges.columns else []
        return _joined([*rows, *(cohort.tasks.samples.first for cohort in self._loose.values()), NO_IDS])

    def state(self) -> dict[str, Tree]:
        """The visits in flight; nothing is moved, as the state may be stored by one rank alone.

        Tasks are numbered from 0, so that it is the same whether the flight was ever restored or not.
        """
        state = super().state()
        tasks, ranges = state["_tasks"], state["_ranges"]
        if tasks:
            ranges["task"] = tasks["task"].searchsorted(ranges["task"])
            tasks["task"] = np.arange(len(tasks["task"]))
        return {
            **state,
            "_loose": [as_tree(cohort) for cohort in self._loose.values()],
            "_models": [(*pair, *content) for pair, content in self._models.items()],
            "_starting": [(*pair, count) for pair, count in self._starting.items()],
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`, in a flight without visits."""
        loose = [from_tree(Cohort, tree) for tree in state["_loose"]]
        super().restore(
            {
                **state,
                "_loose": {int(cohort.visit[0]): cohort for cohort in loose},
                "_models": {(id_, version): tuple(content) for id_, version, *content in state["_models"]},
                "_starting": {(id_, version): count for id_, version, count in state["_starting"]},
            }
        )

    def add(self, cohort: Cohort) -> None:
        """Add the visits of a dispatch, whose ids are above all earlier ones."""
        shares = self._num_loose > 0 and len(cohort.models) > 1
        self._loose[int(cohort.visit[0])] = cohort
        self._num_loose += len(cohort.visit)
        if shares:  # or each cohort would keep all models of its instant
            self._to_tables()

    def take(self, visit: Ints) -> Cohort:
        """Remove visits, by their ids (n,), which are ordered by client, and return them in that order."""
        cohort = self._whole(visit)
        if cohort is not None:
            del self._loose[int(cohort.visit[0])]
            self._num_loose -= len(visit)
            return cohort
        if self._loose and visit.max(initial=-1) >= next(iter(self._loose)):  # all others are in the tables
            self._to_tables()
        rows = task_rows = range_rows = self._visits.find(visit)
        of_visit = self._visits.take(rows)
        if not self._one_each:
            task_rows, _ = self._tasks.find_all(visit)
        of_task, offsets = self._tasks.take(task_rows), np.arange(len(task_rows) + 1)
        if not self._one_each:
            range_rows, num_ranges = self._ranges.find_all(of_task["task"])
            offsets[1:] = num_ranges.cumsum()
        of_range = self._ranges.take(range_rows)
        samples = SampleRanges(
            offsets, of_range["first"], of_range["last"], of_range["weight"], self._bootstrap
        )
        models, broadcast, start = self._starts(of_task["model"], of_task["version"])
        for table, removed in (
            (self._visits, rows),
            (self._tasks, task_rows),
            (self._ranges, range_rows),
        ):
            table.remove(removed)
        has = {name: f"{name}.{WORK[0]}" in of_visit for name in ("payload", "ways")}
        works = {
            name: Work(*(of_visit[f"{name}.{column}"] for column in WORK)) if there else None
            for name, there in has.items()
        }
        return Cohort(
            **{name: of_visit[name] for name in VISIT},
            sent_before=of_visit.get("sent_before"),
            base=of_visit.get("base"),
            payload=works["payload"],
            ways=works["ways"],
            work=Work(*(of_visit[f"work.{name}"] for name in WORK)),
            phases=Phases(*(of_visit[name] for name in PHASES)),
            tasks=TrainTasks(
                client=of_task["client"],
                model=of_task["model"],
                visit=of_visit["visit"] if self._one_each else of_task["visit"],
                samples=samples,
                settings=_in_group("settings", of_task),
                dispatch=of_task["dispatch"],
                step=of_task["step"],
                state=_in_group("state", of_task),
                measure=self._measure,
                broadcast=broadcast,
            ),
            models=models,
            start=start,
            **{name: of_task[name] for name in FROZEN},
        )

    def _whole(self, visit: Ints) -> Cohort | None:
        """The cohort that consists of these visits (n,), if it is kept as it is, and easily told to be."""
        cohort: Cohort | None = None
        if len(self._loose) == 1 and self._visits.count == 0:
            (cohort,) = self._loose.values()
        elif visit.size == 1:
            cohort = self._loose.get(int(visit[0]))
        return cohort if cohort is not None and len(cohort.visit) == len(visit) else None

    def data_changed(self, clients: Ints, left: Ints = NO_IDS) -> None:
        """Take note that the data of `clients` (n,), ascending, changed: what their tasks are bound to.

        Those that have `left`, which are among them, hold none any more.
        """
        if len(self) == 0 or len(clients) == 0:
            return
        self._to_tables()
        columns = self._tasks.columns
        columns["bound"][np.isin(columns["client"], clients)] = False
        columns["stayed"][np.isin(columns["client"], left)] = False

    def follow(self, successor: Ints) -> tuple[Ints, Ints, Ints]:
        """Let all tasks follow their models: `successor` (M_old,) is the new row of each, -1 = none.

        Returns the visits in flight, ids (n,) ascending, their clients (n,), and (n,) the row of the first
        model of each that continues; -1: none does.
        """
        self._to_tables()
        columns, rows = self._tasks.columns, self._tasks.rows
        columns["row"][:] = np.append(successor, -1)[columns["row"]]
        visit, row = columns["visit"][rows], columns["row"][rows]
        # Sorted by visit, then by whether the task continues: the first of each visit does, if any does.
        order = np.lexsort((np.arange(len(rows)), row < 0, visit))
        visits, first = np.unique(visit[order], return_index=True)
        return visits, columns["client"][rows][order][first], row[order][first]

    def _to_tables(self) -> None:
        """Append the cohorts that are kept as they are to the tables."""
        cohorts = list(self._loose.values())
        if not cohorts:
            return
        self._loose, self._num_loose = {}, 0
        tasks, samples = [of.tasks for of in cohorts], [of.tasks.samples for of in cohorts]
        self._bootstrap = samples[0].bootstrap
        # All cohorts of a run have a payload of their own, or none has; so it is with the others of these.
        some = [name for name in ("sent_before", "base") if getattr(cohorts[0], name) is not None]
        works = [name for name in ("payload", "ways") if getattr(cohorts[0], name) is not None]
        visits = {name: _joined([getattr(of, name) for of in cohorts]) for name in (*VISIT, *some)}
        for kind, names in (("phases", PHASES), *((name, WORK) for name in ("work", *works))):
            parts = [getattr(of, kind) for of in cohorts]
            begin = "" if kind == "phases" else f"{kind}."
            visits |= {f"{begin}{name}": _joined([getattr(of, name) for of in parts]) for name in names}
        self._visits.append(visits)
        columns = {name: _joined([getattr(of, name) for of in tasks]) for name in TASK}
        columns |= {name: _joined([getattr(of, name) for of in cohorts]) for name in FROZEN}
        for kind in ("settings", "state"):
            of_kind = [getattr(of, kind) for of in tasks]
            columns |= {f"{kind}.{name}": _joined([of[name] for of in of_kind]) for name in of_kind[0]}
        last = self._tasks.columns["task"][-1:] if self._tasks.columns else NO_IDS
        numbers = last.sum() + 1 + np.arange(len(columns["visit"]))
        self._tasks.append({"task": numbers, **columns})
        ranges = {
            name: _joined([getattr(of, name) for of in samples]) for name in ("first", "last", "weight")
        }
        counts = _joined([of.offsets[1:] - of.offsets[:-1] for of in samples])
        self._ranges.append({"task": np.repeat(numbers, counts), **ranges})
        self._one_each &= np.array_equal(visits["visit"], columns["visit"]) and bool((counts == 1).all())
        for cohort in cohorts:
            self._keep_models(cohort)

    def _keep_models(self, cohort: Cohort) -> None:
        model, version = cohort.tasks.model, cohort.version
        first, inverse = _distinct(model, version)
        counts = np.bincount(inverse).tolist()
        for task, count in zip(first.tolist(), counts, strict=True):
            pair = (int(model[task]), int(version[task]))
            if pair not in self._models:
                # Copies: a view would keep all models of that instant.
                row, broadcast = cohort.start[task], cohort.tasks.broadcast
                along = {name: array[row].copy() for name, array in broadcast.items()}
                self._models[pair] = cohort.models[row].copy(), along
            self._starting[pair] = self._starting.get(pair, 0) + count

    def _starts(self, model: Ints, version: Ints) -> tuple[Floats32, dict[str, Floats32], Ints]:
        """The models (K, P) that tasks start from, what is sent along with them, and (n,) each one's row.

        They are taken now. What is sent along is, by name, (K, P).
        """
        if len(model) == 0:
            return np.zeros((0, 0), dtype=np.float32), {}, NO_IDS
        first, inverse = _distinct(model, version)
        pairs = list(zip(model[first].tolist(), version[first].tolist(), strict=True))
        models, broadcasts = zip(*(self._models[pair] for pair in pairs), strict=True)
        for pair, count in zip(pairs, np.bincount(inverse).tolist(), strict=True):
            self._starting[pair] -= count
            if self._starting[pair] == 0:
                del self._starting[pair], self._models[pair]
        along = {name: np.stack([of_model[name] for of_model in broadcasts]) for name in broadcasts[0]}
        return np.stack(models), along, inverse


def _joined(parts: Sequence[Column]) -> Column:
    """The rows of all parts, in order."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _in_group(group: str, columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns whose name begins with `group` and a dot, by the rest of their names."""
    begin = f"{group}."
    return {name.removeprefix(begin): column for name, column in columns.items() if name.startswith(begin)}


def _distinct(model: Ints, version: Ints) -> tuple[Ints, Ints]:
    """The first task (k,) of each distinct pair of model and version, and (n,) the pair of each task.

    >>> _distinct(np.array([4, 7, 4, 4]), np.array([1, 1, 0, 1]))
    (array([2, 0, 1]), array([1, 2, 0, 1]))
    """
    if (model == model[0]).all() and (version == version[0]).all():  # as with one model
        return np.zeros(1, dtype=np.int64), np.zeros(len(model), dtype=np.int64)
    pair = model * (int(version.max()) + 1) + version
    _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    return first, inverse
