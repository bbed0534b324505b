"""Contract of every part, and those of detectors, selectors, aggregators and schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from coordinator.aggregators import Aggregator
from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.detectors import Detector
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.schedules import Schedule
from coordinator.selectors import Selector
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.deprecated import renamed_arguments, settings_class
from emulator.errors import RunError
from emulator.messages import ArrayUpdates, Updates
from emulator.plugins import Settings
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.numbers import check_numbers
from experiments.contracts.ports import NUM_LABELS, NUM_PARAMETERS, LabelStream, initial
from experiments.contracts.resumed import resumed
from experiments.contracts.rounds import Rounds, Scripted
from experiments.contracts.sameness import left_alone, same
from experiments.contracts.watched import Watch

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    "",
    "no such choice",
    [],
    [[]],
    {},
    {"kind": 1},
    {"no_such_key": {}},
)
"""Values that are tried in place of every setting: it must take them, or refuse with a ValidationError."""

LANES = (np.array([1, 4, 5, 9, 12]), np.array([0, 2]), np.zeros(0, dtype=np.int64), np.array([7]))
"""The clients of each lane; client 5 is offline."""

TASKS = (np.array([0, 0, 1, 3]), np.array([0, 2, 1, 2]))
"""Clients and models of the tasks that every schedule gets in addition to those of a round."""

TASK_SETTINGS = {"learning_rate": 0.1, "local_steps": 20.0, "batch_size": 10.0}


@renamed_arguments(parameters="settings")
def check_part(part: type, settings: Settings) -> None:
    """Check the class of a part and its settings.

    * The class has a docstring, and every one of its settings a description.
    * Its `Settings` are a frozen subclass of `emulator.plugins.Settings`, and equal themselves after being
      written as JSON and read back.
    * They refuse unknown keys and invalid values with a pydantic ValidationError.
    * Every number among them passes `check_numbers`.

    Args:
        part: The class of the part.
        settings: Valid settings of the part.

    Raises:
        AssertionError: The part breaks a rule, which the message names.
    """
    assert (part.__doc__ or "").strip().splitlines(), f"{part.__name__} has no docstring"
    declared = settings_class(part)
    assert isinstance(declared, type), f"{part.__name__} has no class Settings"
    assert issubclass(declared, Settings), (
        f"{part.__name__}.Settings is not a subclass of emulator.plugins.Settings"
    )
    assert isinstance(settings, declared)
    assert settings.model_config.get("frozen"), f"{declared.__name__} is not frozen"
    written = settings.model_dump(mode="json", by_alias=True)
    assert declared.model_validate(written) == settings, f"{written} reads back as something else"
    for name, field in declared.model_fields.items():
        assert (field.description or "").strip(), (
            f"{declared.__name__}: {name} has no description, which `driftscale parts` shows; write a "
            f"docstring below the field"
        )
        for value in STRANGE:
            _refusal(declared, {**written, field.alias or name: value})
    complaint = _refusal(declared, {**written, "no_such_key": 1})
    assert "no_such_key" in complaint, f"{declared.__name__} accepts an unknown key, or does not name it"
    check_numbers(declared, written)


def _refusal(settings: type[Settings], table: Mapping[str, Any]) -> str:
    """The message with which `settings` refuse the table; empty if they accept it.

    Raises AssertionError if they refuse it by another error than a ValidationError.
    """
    try:
        settings.model_validate(table)
    except ValidationError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{settings.__name__} refuses {dict(table)} with a {type(error).__name__} ({error}); a validator "
            f"must raise a ValueError that states what is wrong"
        ) from error
    return ""


@and_no_global_generator
def check_detector(make: Callable[[], Detector]) -> None:
    """Check a detector on several pairs of representations.

    * It returns a flag for each client; none for no clients.
    * Two fresh detectors return the same flags for equal representations, one of them stored and restored.
    * It does not write to its arguments.

    Args:
        make: Makes a fresh detector.

    Raises:
        AssertionError: The detector breaks a rule.
        RunError: The detector's state cannot be stored, or changes in an attribute that is not declared.
    """
    one_each, spread = np.eye(NUM_LABELS), np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    pairs = [
        (one_each[[0, 0, 0, 1, 1, 1, 1, 0]], one_each[[0, 2, 0, 1, 1, 2, 1, 0]]),
        (one_each[[0, 1]], one_each[[0, 1]]),
        (spread, spread[::-1].copy()),
    ]
    for first, second in pairs:
        outputs = []
        for detector in (make(), resumed(make)):
            with left_alone(first, second):
                flags = detector.detect(second, first)
            assert flags.shape == (len(first),), f"flags have shape {flags.shape}, not ({len(first)},)"
            assert flags.dtype == np.bool_, f"flags are {flags.dtype}, not bool"
            outputs.append(flags)
        assert same(*outputs), "two fresh detectors behave differently on equal representations"
    no_clients = np.zeros((0, NUM_LABELS))
    assert make().detect(no_clients, no_clients).shape == (0,), "for no clients there must be no flags"


@and_no_global_generator
def check_selector(make: Callable[[], Selector]) -> None:
    """Check a selector in a round of several lanes with one client offline.

    * Participants are ascending, distinct and online candidates; no lane has more of them than wanted.
    * Two fresh selectors choose the same participants on equal views, one of them stored and restored.
    * It does not write to its arguments.
    * It reads the true concepts only if it declares `oracle = True`.

    Args:
        make: Makes a fresh selector.

    Raises:
        AssertionError: The selector breaks a rule, which the message names.
        RunError: The selector chooses nobody where participants are wanted, or its state cannot be stored, or
            changes in an attribute that is not declared.
    """
    lane = np.full(13, -1)
    for number, ids in enumerate(LANES):
        lane[ids] = number
    start = Assignment.fresh(np.maximum(lane, 0), len(LANES), _starts(len(LANES)), lanes=lane)
    online = np.arange(13)[None] != 5
    for wanted in ([2, 2, 2, 1], [9, 0, 1, 1], [0, 0, 0, 0]):
        outputs = []
        for selector in (make(), resumed(make)):
            watched = _WatchedSelector(selector)
            rounds = Rounds(_even_stream(13), online, clusterer=Scripted({0: start}), selector=watched)
            rounds.open()
            sizes = rounds.federation.lane_sizes(0)
            # A round without participants raises RunError: a mistake of the selector only if some are wanted.
            with nullcontext() if any(wanted) else suppress(RunError):
                rounds.federation.select(0, sizes, np.array(wanted), 0.0)
            outputs.append(watched.chosen)
        assert same(*outputs), "two fresh selectors behave differently on equal views"


class _WatchedSelector(Selector):
    """Wraps a selector: checks the participants it returns; `chosen` has those of the last call."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.watch = Watch(selector)
        self.chosen: Ints | None = None

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        lanes = [candidates.ids(lane) for lane in range(len(candidates))]
        with left_alone(lanes, wanted, view):
            self.chosen = chosen = self.selector.select(candidates, wanted, self.watch.over(view))
        assert 5 not in chosen, "client 5 is offline and must not be chosen"
        assert chosen.tolist() == sorted(set(chosen.tolist())), f"{chosen}: not ascending and distinct"
        taken = [int(np.isin(chosen, ids).sum()) for ids in lanes]
        assert sum(taken) == len(chosen), f"{chosen}: not all of these are candidates"
        most = [min(count, len(ids)) for count, ids in zip(wanted.tolist(), LANES, strict=True)]
        assert all(got <= limit for got, limit in zip(taken, most, strict=True)), (
            f"{taken} participants by lane; must be at most {most}"
        )
        return chosen


@and_no_global_generator
def check_aggregator(make: Callable[[], Aggregator]) -> None:
    """Check an aggregator over several rounds, and on updates of some of the models.

    * Models without updates stay as they are.
    * It does not write to its arguments.
    * Two fresh aggregators return the same models for equal updates, one of them stored and restored.
    * If `weights` returns weights, `aggregate` calls `weighted_sum` once, with these.
    * It reads the true concepts only if it declares `oracle = True`.

    Args:
        make: Makes a fresh aggregator.

    Raises:
        AssertionError: The aggregator breaks a rule, which the message names.
        RunError: The aggregator's state cannot be stored, or changes in an attribute that is not declared.
    """
    twins = [_aggregating(aggregator, [2, 0, 2, 0], 3, rounds=3) for aggregator in (make(), resumed(make))]
    assert same(*(watched.made for watched in twins)), "equal updates get different models"
    view = twins[0].view
    delta = np.random.default_rng(1).normal(size=(3, NUM_PARAMETERS)).astype(np.float32)
    updates = ArrayUpdates(
        client=np.arange(3),
        model=view.model_ids[[2, 0, 2]],
        num_samples=np.array([5, 1, 2]),
        num_steps=np.array([4, 4, 4]),
        delta=delta,
        metrics={"loss": np.array([0.5, 0.25, 1.0])},
    )
    twins = [_WatchedAggregator(make()), _WatchedAggregator(resumed(make))]
    for watched in twins:
        watched.weights(updates.model, updates.num_samples, view)
        watched.aggregate(updates, view)
    assert same(*(watched.made for watched in twins)), "equal updates get different models"
    nothing = updates.take(np.zeros(0, dtype=np.int64))
    assert np.array_equal(make().aggregate(nothing, view), view.models), (
        "without updates all models must stay as they are"
    )


class _WatchedAggregator(Aggregator):
    """Wraps an aggregator: checks the models it returns and keeps them in `made`.

    `view` is the view of the last call of `aggregate`.
    """

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, aggregator: Aggregator) -> None:
        self.aggregator = aggregator
        self.watch = Watch(aggregator)
        self.made: list[Floats32] = []
        self.view: View
        self._declared: Floats | None = None

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats | None:
        with left_alone(model, num_samples, view):
            self._declared = self.aggregator.weights(model, num_samples, self.watch.over(view))
        return self._declared

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        assert isinstance(updates, ArrayUpdates)
        self.view, declared, used = self.watch.over(view), self._declared, []

        class Listening(ArrayUpdates):
            def weighted_sum(self, weights: Floats) -> Floats:
                used.append(weights)
                return super().weighted_sum(weights)

        with left_alone(updates, view):
            models = self.aggregator.aggregate(Listening(**vars(updates)), self.view)
        assert models.shape == view.models.shape, f"models of shape {models.shape}, not {view.models.shape}"
        assert models.dtype == np.float32, f"models are {models.dtype}, not float32"
        untouched = ~np.isin(view.model_ids, updates.model)
        assert np.array_equal(models[untouched], view.models[untouched]), (
            "a model without updates must stay as it is"
        )
        if declared is not None:
            assert len(used) == 1, (
                f"it declares its weights, but calls weighted_sum {len(used)} times, not once"
            )
            assert same(used[0], declared), f"it uses the weights {used[0]}, having declared {declared}"
        self.made.append(models)
        return models


def _aggregating(
    aggregator: Aggregator, members: Sequence[int], num_models: int, rounds: int
) -> _WatchedAggregator:
    """The aggregator, wrapped, after `rounds` rounds in which all clients participated.

    `members`: the model that each client is a member of.
    """
    watched = _WatchedAggregator(aggregator)
    start = Assignment.fresh(np.array(members), num_models, _starts(num_models))
    all_participate = Sync(SyncSettings(), CohortSize(len(members)))
    stream = _even_stream(len(members))
    played = Rounds(stream, clusterer=Scripted({0: start}), aggregator=watched, pacing=all_participate)
    for _ in range(rounds):
        played.play()
    return watched


@and_no_global_generator
def check_robust_aggregator(make: Callable[[], Aggregator]) -> None:
    """Check a robust aggregator: the contract of all aggregators, and bounded influence of single updates.

    * It passes `check_aggregator`.
    * One update of ten, however large, moves its model by at most twice the largest norm of the honest
      updates, and no other model at all.
    * The order of the rows and the updates of clients without samples change the models by rounding only.

    Args:
        make: Makes a fresh aggregator.

    Raises:
        AssertionError: The aggregator breaks a rule, which the message names.
        RunError: As `check_aggregator`.
    """
    check_aggregator(make)
    view = _aggregating(make(), [0] * 10 + [1] * 3, 2, rounds=1).view
    honest = np.random.default_rng(2).normal(size=(12, NUM_PARAMETERS)).astype(np.float32)
    updates = ArrayUpdates(
        client=np.arange(12),
        model=view.model_ids[[0] * 10 + [1] * 2],
        num_samples=np.full(12, 5),
        num_steps=np.full(12, 4),
        delta=honest,
        metrics={"loss": np.full(12, 0.5)},
    )
    before = make().aggregate(updates, view)
    most = 2 * np.linalg.norm(honest, axis=1).max()
    for size in (1e3, 1e6, 1e30):
        wild = replace(updates, delta=honest.copy())
        wild.delta[3] = size
        models = make().aggregate(wild, view)
        moved = np.linalg.norm(models[0].astype(np.float64) - view.models[0])
        assert moved <= most, f"one update of ten, of size {size:g}, moves its model by {moved:.3g}"
        assert np.array_equal(models[1], before[1]), "a large update of one model moves another model"
    order = np.random.default_rng(3).permutation(12)
    turned = make().aggregate(updates.take(order), view)
    assert np.allclose(turned, before, rtol=1e-5, atol=1e-6), "the order of the rows changes the models"
    silent = replace(updates, num_samples=np.array([5] * 9 + [0] + [5] * 2))
    loud = replace(silent, delta=honest.copy())
    loud.delta[9] = 7.0
    less = make().aggregate(silent.take(np.flatnonzero(silent.num_samples > 0)), view)
    heard = make().aggregate(loud, view)
    assert np.allclose(heard, less, rtol=1e-5, atol=1e-6), "an update without samples moves a model"


@and_no_global_generator
def check_schedule(make: Callable[[], Schedule]) -> None:
    """Check a schedule over rounds in which models change, and one is replaced by a new one.

    * `task_settings` returns exactly the settings in `sets`, each a finite number above 0 for every task.
    * It does not write to its arguments.
    * Two fresh schedules return the same on equal views, one of them stored and restored.
    * It reads the true concepts only if it declares `oracle = True`.

    Args:
        make: Makes a fresh schedule.

    Raises:
        AssertionError: The schedule breaks a rule, which the message names.
        RunError: The schedule's state cannot be stored, or changes in an attribute that is not declared.
    """
    members = np.zeros((4, 1), dtype=np.int64)
    mixing = np.eye(3, 4)
    mixing[2, [2, 3]] = [0.0, 1.0]
    script = {
        0: Assignment.fresh(members, 3, np.stack([initial(number) for number in range(3)])),
        2: Assignment(mixing, initial(0)[None, :], np.array([0, 1, -1]), members),
    }
    twins = []
    for schedule in (make(), resumed(make)):
        watched = _WatchedSchedule(schedule)
        stream = LabelStream(np.full((2, 4, NUM_LABELS), 1 / NUM_LABELS), rounds_per_step=2)
        twins.append((watched, Rounds(stream, clusterer=Scripted(script), schedules=(watched,))))
    for _ in range(4):
        for _, rounds in twins:
            rounds.play()
        assert same(*(watched.outputs for watched, _ in twins)), (
            "two fresh schedules behave differently on equal views"
        )


class _WatchedSchedule(Schedule):
    """Wraps a schedule: checks the settings it returns for a round's tasks, for `TASKS` and for no tasks."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.watch = Watch(schedule)
        self.outputs: list[Mapping[str, Floats]] = []

    def observe(self, view: View) -> None:
        with left_alone(view):
            self.schedule.observe(self.watch.over(view))

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        of_tasks = {name: np.full(len(TASKS[0]), value) for name, value in TASK_SETTINGS.items()}
        self.outputs.append(self._settings(*TASKS, of_tasks, view))
        of_no_tasks = {name: values[:0] for name, values in base.items()}
        self._settings(client[:0], model[:0], of_no_tasks, view)
        return self._settings(client, model, base, view)

    def _settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        sets = sorted(self.schedule.sets)
        assert sets, "a schedule must set at least one setting"
        assert self.schedule.sets <= set(base), f"{sets}: tasks have only {sorted(base)}"
        with left_alone(client, model, base, view):
            settings = self.schedule.task_settings(client, model, base, self.watch.over(view))
        assert sorted(settings) == sets, f"it returns {sorted(settings)}, but declares sets = {sets}"
        for name, values in settings.items():
            if len(client) == 0:
                assert len(values) == 0, f"{name}: {len(values)} numbers for no tasks"
            assert values.shape == client.shape, f"{name}: must have a number for each task"
            assert (np.isfinite(values) & (values > 0)).all(), f"{name} = {values}: must be above zero"
        return settings


def _even_stream(num_clients: int) -> LabelStream:
    """A stream of one data step, in which all labels are equally frequent."""
    return LabelStream(np.full((1, num_clients, NUM_LABELS), 1 / NUM_LABELS))


def _starts(num_models: int) -> Floats32:
    """(num_models, P) initial models, all different."""
    return np.random.default_rng(4).normal(size=(num_models, NUM_PARAMETERS)).astype(np.float32)
