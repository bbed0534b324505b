"""What any part must keep to, and what those parts must that are asked one thing at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from coordinator.aggregators import Aggregator
from coordinator.assignment import Assignment
from coordinator.candidates import Pool
from coordinator.detectors import Detector
from coordinator.schedules import Schedule
from coordinator.selectors import Selector
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import ArrayUpdates
from emulator.plugins import Parameters
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.numbers import check_numbers
from experiments.contracts.resumed import resumed
from experiments.contracts.sameness import left_alone, same
from experiments.contracts.world import NUM_LABELS, NUM_PARAMETERS, LittleWorld, initial, settled_view

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
"""What a file may hold where a parameter is expected."""

TASK_SETTINGS = {"learning_rate": 0.1, "local_steps": 20.0, "batch_size": 10.0}


def check_part(part: type, parameters: Parameters) -> None:
    """It says what it is, and so does each of its parameters; they are frozen, survive being written out, and
    refuse unknown keys and what else they cannot take with an error that pydantic words; and every number
    among them keeps to `check_numbers`."""
    assert (part.__doc__ or "").strip().splitlines(), f"{part.__name__} has no docstring"
    declared = getattr(part, "Parameters", None)
    assert isinstance(declared, type), f"{part.__name__} has no class Parameters"
    assert issubclass(declared, Parameters), f"{part.__name__}.Parameters is no emulator.plugins.Parameters"
    assert isinstance(parameters, declared)
    assert parameters.model_config.get("frozen"), f"{declared.__name__} is not frozen"
    written = parameters.model_dump(mode="json", by_alias=True)
    assert declared.model_validate(written) == parameters, f"{written} reads back as something else"
    for name, field in declared.model_fields.items():
        assert (field.description or "").strip(), (
            f"{declared.__name__}: {name} has no description, which `driftscale parts` shows; a docstring "
            f"below the field is one"
        )
        for value in STRANGE:
            _refusal(declared, {**written, field.alias or name: value})
    complaint = _refusal(declared, {**written, "no_such_key": 1})
    assert "no_such_key" in complaint, f"{declared.__name__} takes an unknown key, or does not name it"
    check_numbers(declared, written)


def _refusal(parameters: type[Parameters], table: Mapping[str, Any]) -> str:
    """Why `parameters` do not take the table; empty if they do."""
    try:
        parameters.model_validate(table)
    except ValidationError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{parameters.__name__} meets {dict(table)} with a {type(error).__name__} ({error}); a validator "
            f"raises a ValueError that says what is wrong"
        ) from error
    return ""


@and_no_global_generator
def check_detector(make: Callable[[], Detector]) -> None:
    """A flag for each client, none for nobody; equal signals get equal answers, and stay as they are."""
    one_each, spread = np.eye(NUM_LABELS), np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    pairs = [
        (one_each[[0, 0, 0, 1, 1, 1, 1, 0]], one_each[[0, 2, 0, 1, 1, 2, 1, 0]]),
        (one_each[[0, 1]], one_each[[0, 1]]),
        (spread, spread[::-1].copy()),
    ]
    for first, second in pairs:
        answers = []
        for detector in (make(), resumed(make)):
            with left_alone(first, second):
                found = detector.detect(second, first)
            assert found.shape == (len(first),)
            assert found.dtype == np.bool_
            answers.append(found)
        assert same(*answers)
    nobody = np.zeros((0, NUM_LABELS))
    assert make().detect(nobody, nobody).shape == (0,)


@and_no_global_generator
def check_selector(make: Callable[[], Selector]) -> None:
    """Ascending, distinct, of each lane those it has, and not more than are wanted; equal views get equal
    answers, and the pool stays as it is."""
    lanes = [np.array([1, 4, 5, 9, 12]), np.array([0, 2]), np.zeros(0, dtype=np.int64), np.array([7])]
    for wanted in ([2, 2, 2, 1], [9, 0, 1, 1], [0, 0, 0, 0]):
        answers = []
        for selector in (make(), resumed(make)):
            view = settled_view(selector, num_clients=13, num_models=4)
            with left_alone(lanes, view):
                chosen = selector.select(Pool(lanes, _but_five), np.array(wanted), view)
            assert 5 not in chosen, "client 5 is not available"
            assert chosen.tolist() == sorted(set(chosen.tolist())), f"{chosen}: not ascending and distinct"
            taken = [int(np.isin(chosen, ids).sum()) for ids in lanes]
            assert sum(taken) == len(chosen), f"{chosen}: not all of these are in the pool"
            most = [min(count, len(ids)) for count, ids in zip(wanted, lanes, strict=True)]
            assert all(got <= limit for got, limit in zip(taken, most, strict=True)), f"{taken} of {most}"
            answers.append(chosen)
        assert same(*answers), "two fresh selectors answer equal views differently"


def _but_five(ids: Ints) -> Bools:
    others: Bools = ids != 5
    return others


@and_no_global_generator
def check_aggregator(make: Callable[[], Aggregator]) -> None:
    """Models without updates stay as they are; nothing handed in is changed; equal updates give equal
    models; if it says beforehand what it will mix them by, it keeps its word."""
    view = settled_view(make(), num_clients=4, num_models=3)
    delta = np.random.default_rng(1).normal(size=(3, NUM_PARAMETERS)).astype(np.float32)
    updates = ArrayUpdates(
        client=np.arange(3),
        model=view.model_ids[[2, 0, 2]],
        num_samples=np.array([5, 1, 2]),
        num_steps=np.array([4, 4, 4]),
        delta=delta,
        metrics={"loss": np.array([0.5, 0.25, 1.0])},
    )
    with left_alone(updates, view):
        models = make().aggregate(updates, view)
    assert models.shape == view.models.shape
    assert models.dtype == np.float32
    assert np.array_equal(models[1], view.models[1]), "a model without updates must stay as it is"
    twin = resumed(make)
    assert same(models, twin.aggregate(updates, view))
    said = make().weights(updates.model, updates.num_samples, view)
    if said is not None:
        mixed: list[Floats] = []

        class Listening(ArrayUpdates):
            def mix(self, weights: Floats) -> Floats:
                mixed.append(weights)
                return super().mix(weights)

        make().aggregate(Listening(**vars(updates)), view)
        assert len(mixed) == 1, "it says what it will mix the updates by, and mixes them otherwise than once"
        assert same(mixed[0], said), f"it mixes by {mixed[0]}, having said {said}"
    nothing = updates.take(np.zeros(0, dtype=np.int64))
    assert np.array_equal(make().aggregate(nothing, view), view.models), "nothing came back: nothing changes"


@and_no_global_generator
def check_robust_aggregator(make: Callable[[], Aggregator]) -> None:
    """What `check_aggregator` does, and: one update of ten, however large, moves its model no further than a
    small multiple of what the others say, and never another model; neither the order of the rows nor the
    updates of clients without samples change anything but rounding."""
    check_aggregator(make)
    view = settled_view(make(), num_clients=13, num_models=2)
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
        assert np.array_equal(models[1], before[1]), "a wild update moves a model that is not its own"
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
    """It gives what it says it sets, a number above zero for each task, and changes nothing that it is shown;
    equal views get equal answers.

    It is watched over rounds in which one model moves on, and another is replaced by a new one.
    """
    client, model = np.array([0, 0, 1, 3]), np.array([0, 2, 1, 2])
    base = {name: np.full(4, value) for name, value in TASK_SETTINGS.items()}
    none = {name: values[:0] for name, values in base.items()}
    twins = [(schedule, _schedule_world()) for schedule in (make(), resumed(make))]
    for round_ in range(4):
        answers = []
        for schedule, world in twins:
            assert schedule.sets, "a schedule that sets nothing"
            assert schedule.sets <= set(base), f"{sorted(schedule.sets)}: tasks have only {sorted(base)}"
            world.open_round(round_ // 2)
            view = world.view(schedule)
            with left_alone(client, model, base, view):
                schedule.observe(view)
                settings = schedule.settings(client, model, base, view)
            said = sorted(schedule.sets)
            assert sorted(settings) == said, f"{sorted(settings)}: it says it sets {said}"
            for name, values in settings.items():
                assert values.shape == (4,), f"{name}: a number for each task"
                assert (np.isfinite(values) & (values > 0)).all(), f"{name} = {values}: must be above zero"
            no_tasks = schedule.settings(client[:0], model[:0], none, view)
            assert all(len(values) == 0 for values in no_tasks.values()), "numbers for tasks there are not"
            answers.append(settings)
            _move_on(world, round_)
        assert same(*answers), "two fresh schedules answer equal views differently"


def _schedule_world() -> LittleWorld:
    """Four clients and three models, before the first round."""
    world = LittleWorld(np.full((2, 4, NUM_LABELS), 1 / NUM_LABELS))
    everyone = np.zeros(4, dtype=np.int64)
    world.apply(Assignment.fresh(everyone, 3, np.stack([initial(number) for number in range(3)])))
    return world


def _move_on(world: LittleWorld, round_: int) -> None:
    """After a round model 0 is another; after the second, model 2 is a new one."""
    moved = world.bank.parameters + np.float32(0.5 / (1 + round_))
    world.bank.publish(moved, updated=np.array([True, False, False]))
    if round_ == 1:
        remix = np.eye(3, 4)
        remix[2, [2, 3]] = [0.0, 1.0]
        members = np.zeros((4, 1), dtype=np.int64)
        world.apply(Assignment(remix, initial(0)[None, :], np.array([0, 1, -1]), members))
