"""What every part must keep to, as plain functions that assert it: ours are run through them, and so can be
a third party's, from its own tests:

    from experiments.contracts import check_part, check_selector

    def test_my_selector():
        check_part(MySelector, MyParameters())
        check_selector(lambda: MySelector(MyParameters()))

Parts have state, so a check takes a function that makes a fresh one. Knows no torch: what a model or a local
rule must keep to is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coordinator.aggregators import Aggregator
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.detectors import Detector
from coordinator.memories import Memory
from coordinator.pacing import CohortSize, Pacing
from coordinator.selectors import Pool, Selector
from coordinator.view import View
from device_profiles import DeviceProfile
from emulator.arrays import Floats, Ints
from emulator.messages import ArrayUpdates, SampleRanges
from emulator.plugins import Parameters
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from traces.drift import Drift

NUM_PARAMETERS = 3
NUM_LABELS = 4


def check_part(part: type, parameters: Parameters) -> None:
    """It says what it is; its parameters are frozen, refuse unknown keys and survive being written out."""
    assert (part.__doc__ or "").strip().splitlines(), f"{part.__name__} has no docstring"
    declared = getattr(part, "Parameters", None)
    assert isinstance(declared, type), f"{part.__name__} has no class Parameters"
    assert issubclass(declared, Parameters), f"{part.__name__}.Parameters is no emulator.plugins.Parameters"
    assert isinstance(parameters, declared)
    assert parameters.model_config.get("frozen"), f"{declared.__name__} is not frozen"
    written = parameters.model_dump(mode="json", by_alias=True)
    assert declared.model_validate(written) == parameters, f"{written} reads back as something else"
    complaint = ""
    try:
        declared.model_validate({**written, "no_such_key": 1})
    except ValueError as error:
        complaint = str(error)
    assert "no_such_key" in complaint, f"{declared.__name__} takes an unknown key, or does not name it"


def check_clusterer(make: Callable[[], Clusterer]) -> None:
    """Its first answer is an assignment, later ones may be; equal views get equal answers, and stay as they
    are; everybody is served by a model that exists."""
    for first, second in _reports():
        answers = []
        for clusterer in (make(), make()):
            view = _view(first, drifted=np.arange(len(first)))
            with _left_alone(view):
                assignment = clusterer.on_data(view)
            assert assignment is not None, "the first call of on_data must answer with an assignment"
            check_assignment(assignment, num_clients=len(first), num_old=0)
            drifted = np.flatnonzero((first != second).any(axis=1))
            view = _view(second, drifted=drifted, assignment=assignment, num_models=assignment.num_models)
            with _left_alone(view):
                later = clusterer.on_data(view)
            if later is not None:
                check_assignment(later, num_clients=len(first), num_old=assignment.num_models)
            last = later or assignment
            serves = clusterer.serve(_view(second, assignment=last, num_models=last.num_models))
            assert serves.shape == (len(first),)
            assert ((serves >= 0) & (serves < last.num_models)).all(), f"{serves}: no such models"
            answers.append((assignment, later))
        assert _same(answers[0], answers[1]), "two fresh clusterers answer equal views differently"


def check_assignment(assignment: Assignment, num_clients: int, num_old: int) -> None:
    """Rows of the remix sum to 1; members and heirs are models that exist; shapes are as declared."""
    num_models = assignment.num_models
    assert num_models >= 1
    assert assignment.remix.shape == (num_models, num_old + len(assignment.extra))
    assert np.allclose(assignment.remix.sum(axis=1), 1.0, rtol=0, atol=1e-9), "rows of remix must sum to 1"
    if len(assignment.extra):
        assert assignment.extra.shape == (len(assignment.extra), NUM_PARAMETERS)
    members = assignment.members
    assert members.ndim == 2, "members must have shape (num_clients, width)"
    assert len(members) == num_clients, "members must have a row for each client"
    assert members.dtype == np.int64
    assert ((members >= -1) & (members < num_models)).all(), "members must be rows of the new models, or -1"
    assert assignment.heir.shape == (num_old,), "heir must have a row for each old model"
    assert ((assignment.heir >= -1) & (assignment.heir < num_models)).all()


def check_detector(make: Callable[[], Detector]) -> None:
    """A flag for each client, none for nobody; equal signals get equal answers, and stay as they are."""
    for first, second in _reports():
        answers = []
        for detector in (make(), make()):
            with _left_alone(first, second):
                found = detector.detect(second, first)
            assert found.shape == (len(first),)
            assert found.dtype == np.bool_
            answers.append(found)
        assert _same(*answers)
    nobody = np.zeros((0, NUM_LABELS))
    assert make().detect(nobody, nobody).shape == (0,)


def check_selector(make: Callable[[], Selector]) -> None:
    """Ascending, distinct, of each lane those it has, and not more than are wanted; equal views get equal
    answers, and the pool stays as it is."""
    lanes = [np.array([1, 4, 5, 9, 12]), np.array([0, 2]), np.zeros(0, dtype=np.int64), np.array([7])]
    for wanted in ([2, 2, 2, 1], [9, 0, 1, 1], [0, 0, 0, 0]):
        answers = []
        for selector in (make(), make()):
            view = _view(np.full((13, NUM_LABELS), 1 / NUM_LABELS))
            with _left_alone(lanes, view):
                chosen = selector.select(Pool(lanes), np.array(wanted), view)
            assert chosen.tolist() == sorted(set(chosen.tolist())), f"{chosen}: not ascending and distinct"
            taken = [int(np.isin(chosen, ids).sum()) for ids in lanes]
            assert sum(taken) == len(chosen), f"{chosen}: not all of these are in the pool"
            most = [min(count, len(ids)) for count, ids in zip(wanted, lanes, strict=True)]
            assert all(got <= limit for got, limit in zip(taken, most, strict=True)), f"{taken} of {most}"
            answers.append(chosen)
        assert _same(*answers), "two fresh selectors answer equal views differently"


def check_memory(make: Callable[[], Memory]) -> None:
    """Pairs of a participant and a model of the bank, sorted and distinct, each with its samples."""
    members = np.array([[0, -1], [2, 1], [-1, -1], [1, -1], [0, 2]])
    assignment = replace(Assignment.moved(members[:, 0], 3), members=members)
    view = _view(np.full((5, NUM_LABELS), 1 / NUM_LABELS), assignment=assignment, num_models=3)
    clients = np.array([0, 1, 4])
    with _left_alone(clients, view):
        client, model, samples = make().rows(clients, view)
    assert len(client) == len(model) == len(samples)
    pairs = list(zip(client.tolist(), model.tolist(), strict=True))
    assert pairs == sorted(set(pairs)), f"{pairs}: not sorted by client and model, or not distinct"
    assert np.isin(client, clients).all()
    assert ((model >= 0) & (model < 3)).all()
    assert _same((client, model, samples), make().rows(clients, view))


def check_aggregator(make: Callable[[], Aggregator]) -> None:
    """Models without updates stay as they are; nothing handed in is changed; equal updates give equal
    models."""
    view = _view(np.full((4, NUM_LABELS), 1 / NUM_LABELS), num_models=3)
    delta = np.random.default_rng(1).normal(size=(3, NUM_PARAMETERS)).astype(np.float32)
    updates = ArrayUpdates(
        client=np.arange(3),
        model=view.model_ids[[2, 0, 2]],
        num_samples=np.array([5, 1, 2]),
        num_steps=np.array([4, 4, 4]),
        delta=delta,
        metrics={"loss": np.array([0.5, 0.25, 1.0])},
    )
    with _left_alone(updates, view):
        models = make().aggregate(updates, view)
    assert models.shape == view.models.shape
    assert models.dtype == np.float32
    assert np.array_equal(models[1], view.models[1]), "a model without updates must stay as it is"
    assert _same(models, make().aggregate(updates, view))


def check_pacing(make: Callable[[CohortSize], Pacing]) -> None:
    """Counts per lane, none negative, none for a lane without clients; a pure function of what it is told."""
    pacing = make(CohortSize(participants=10, over_commit=1.3))
    assert pacing.deadline_s is None or pacing.deadline_s > 0
    for sizes in ([20], [12, 0, 7, 1], [3, 3, 3]):
        counts = np.array(sizes)
        quota = pacing.quota(counts)
        wanted = pacing.wanted(quota)
        for answer in (quota, wanted):
            assert answer.shape == counts.shape
            assert (answer >= 0).all()
            assert not answer[counts == 0].any(), "a lane without clients can give none"
        full = pacing.full(quota, np.zeros_like(quota))
        assert full.shape == counts.shape
        assert full.dtype == np.bool_
        assert pacing.full(quota, wanted).all(), "a lane is full when all that was wanted is back"
        assert counts.tolist() == sizes
        again = make(CohortSize(participants=10, over_commit=1.3))
        assert _same(again.quota(counts), quota)
        assert _same(pacing.wanted(quota), wanted)


def check_availability(availability: Availability, num_clients: int, times_s: Sequence[float]) -> None:
    """Answers are pure, row by row those of each client alone; the next change is strictly later, is one,
    and the first."""
    ids = np.arange(num_clients)
    queries = (availability.online, availability.next_offline_s, availability.next_online_s)
    told = [[query(ids, time_s) for query in queries] for time_s in times_s]
    for time_s, answers in reversed(list(zip(times_s, told, strict=True))):
        for query, answer in zip(queries, answers, strict=True):
            assert answer.shape == (num_clients,)
            assert _same(query(ids[::-1], time_s)[::-1], answer), f"{query} depends on who was asked before"
            assert _same(query(ids[:1], time_s), answer[:1])
            assert len(query(ids[:0], time_s)) == 0
        online, offline_s, online_s = answers
        assert (offline_s > time_s).all(), "next_offline_s must be strictly later"
        assert (online_s > time_s).all(), "next_online_s must be strictly later"
        change_s = np.where(online, offline_s, online_s)
        for client in np.flatnonzero(np.isfinite(change_s)).tolist():
            row, next_s = ids[client : client + 1], float(change_s[client])
            assert availability.online(row, next_s)[0] != online[client], "nothing changes at that instant"
            between = time_s + 0.5 * (next_s - time_s)
            assert availability.online(row, between)[0] == online[client], "it changed before"


def check_drift(make: Callable[[], Drift]) -> None:
    """Label shares, each of a client's windows summing to 1; equal generators give equal shares."""

    def shares() -> Floats:
        return make().shares(
            num_clients=30,
            num_windows=12,
            num_labels=10,
            first_step=-3,
            rounds_per_step=5,
            generator=np.random.default_rng(2),
        )

    first = shares()
    assert first.shape == (30, 12, 10)
    assert (first >= 0).all()
    assert np.allclose(first.sum(axis=2), 1.0, rtol=0, atol=1e-9)
    assert _same(first, shares()), "equal generators must give equal shares"


def check_device_profile(profile: DeviceProfile) -> None:
    """It says where it comes from, and draws a device for each client; equal generators draw equal fleets."""
    assert profile.name
    assert profile.source
    assert profile.reference_flops is None or profile.reference_flops > 0
    for num_clients in (1, 57):
        fleet = profile.draw(num_clients, np.random.default_rng(3))
        assert len(fleet) == num_clients
        assert _same(fleet, profile.draw(num_clients, np.random.default_rng(3)))


def _reports() -> list[tuple[Floats, Floats]]:
    """Label histograms before and after a drift: two groups, nobody different, two clients, no groups."""
    eye = np.eye(NUM_LABELS)
    groups = eye[[0, 0, 0, 1, 1, 1, 1, 0]]
    spread = np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    return [
        (groups, eye[[0, 2, 0, 1, 1, 2, 1, 0]]),
        (groups[:1].repeat(5, axis=0), eye[[0, 0, 3, 0, 0]]),
        (eye[[0, 1]], eye[[1, 1]]),
        (spread, spread[::-1].copy()),
    ]


def _view(
    reports: Floats,
    drifted: Ints | None = None,
    assignment: Assignment | None = None,
    num_models: int = 0,
) -> View:
    clients = np.arange(len(reports))
    flags = np.isin(clients, [] if drifted is None else drifted)
    held = SampleRanges.one_each(10 * clients, 10 * clients + 1 + clients)
    models = np.random.default_rng(4).normal(size=(num_models, NUM_PARAMETERS)).astype(np.float32)
    return View(
        round=3,
        step=1,
        num_clients=len(reports),
        streams=RandomStreams(9),
        assignment=assignment,
        models=models,
        model_ids=np.arange(num_models) + 10,
        reports=reports.copy(),
        drift={"changed": flags},
        initial=lambda number: np.full(NUM_PARAMETERS, number, dtype=np.float32),
        held=held.take,
    )


@contextmanager
def _left_alone(*seen: Any) -> Iterator[None]:
    """AssertionError when an array that is `seen` was written to meanwhile."""
    kept = [array.copy() for array in _arrays(seen)]
    yield
    assert _same(kept, seen), "it writes to what it is shown"


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    """Every array in `value`, through dataclasses, mappings and sequences."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return _arrays(list(value.values()))
    if isinstance(value, list | tuple):
        return [array for item in value for array in _arrays(item)]
    if hasattr(value, "__dataclass_fields__"):
        return _arrays([getattr(value, item.name) for item in fields(value)])
    return []


def _same(one: Any, other: Any) -> bool:
    """Whether two answers hold the same arrays, to the bit."""
    left, right = _arrays(one), _arrays(other)
    return len(left) == len(right) and all(
        a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True)
    )
