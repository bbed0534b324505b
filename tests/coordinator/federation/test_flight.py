"""What is taken out of the flight is what was added, whatever else is in it."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.federation.cohort import Cohort
from coordinator.federation.flight import FROZEN, VISIT, Flight
from emulator.latency import Phases
from emulator.messages import SampleRanges, TrainTasks, Work
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import INF, ints

Range = tuple[int, int, float]
Visit = dict[str, Any]
"""All that is known of a visit, in plain Python: its columns, and those of each of its tasks."""


@dataclass
class Task:
    """A task of a model, by its row in a bank, on some ranges of samples."""

    row: int
    ranges: list[Range] = field(default_factory=lambda: [(0, 1, 1.0)])


@dataclass
class Bank:
    """Models by row; the parameters of each follow from its id and version."""

    ids: list[int]
    versions: list[int]

    @property
    def parameters(self) -> np.ndarray:
        return np.array([[id_, version] for id_, version in zip(self.ids, self.versions, strict=True)], "f4")


def a_cohort(
    dispatch: int,
    first_visit: int,
    clients: dict[int, list[Task]],
    bank: Bank,
    *,
    loses_packets: bool = False,
) -> Cohort:
    """The visits of `clients` and the tasks of each, with numbers that tell them all apart."""
    ids = sorted(clients)
    visit = first_visit + np.arange(len(ids))
    number = visit.astype(np.float64)
    rows = [(visit_, client, task) for visit_, client in enumerate(ids) for task in clients[client]]
    row = np.array([task.row for *_, task in rows], dtype=np.int64)
    ranges = [range_ for *_, task in rows for range_ in task.ranges]
    first, last, weight = np.array(ranges, dtype=np.float64).reshape(-1, 3).T
    serial = 1000.0 * dispatch + np.arange(len(rows))
    payload = Work(number + 0.1, number + 0.2, number + 0.3, number + 0.4)
    return Cohort(
        visit=visit,
        clients=np.array(ids, dtype=np.int64),
        dispatch=visit * 0 + dispatch,
        start_s=number + 0.5,
        requests_s=number + 0.6,
        crash_s=np.where(visit % 2 == 0, INF, number + 0.7),
        gone_s=np.where(visit % 2 == 0, INF, number + 0.6),
        sent_before=visit / 100 if loses_packets else None,
        base=visit / 50 if loses_packets else None,
        ways=Work(number + 0.01, number + 0.02, number + 0.03, number + 0.04) if loses_packets else None,
        payload=payload if loses_packets else None,
        work=replace(payload, download_bytes=number + 9) if loses_packets else payload,
        phases=Phases(number + 0.8, number + 0.9, number + 1.0),
        tasks=TrainTasks(
            client=np.array([client for _, client, _ in rows], dtype=np.int64),
            model=np.array(bank.ids)[row],
            visit=first_visit + np.array([visit_ for visit_, *_ in rows], dtype=np.int64),
            samples=SampleRanges(
                np.cumsum([0, *(len(task.ranges) for *_, task in rows)]),
                first.astype(np.int64),
                last.astype(np.int64),
                weight,
                bootstrap=True,
            ),
            settings={"learning_rate": serial, "local_steps": serial + 0.25},
            dispatch=row * 0 + dispatch,
            step=row * 0 + dispatch // 2,
            state={"moment": np.stack([serial, -serial], axis=1).astype(np.float32)},
            measure=frozenset({"loss_before"}),
        ),
        models=bank.parameters,
        start=row,
        version=np.array(bank.versions)[row],
        label=row + 70,
        row=row,
        bound=row >= 0,
        stayed=row >= 0,
    )


def visits_of(cohort: Cohort) -> list[Visit]:
    """The visits of a cohort, in plain Python."""
    tasks, visits = cohort.tasks, []
    assert cohort.visit[cohort.visit_of_task].tolist() == tasks.visit.tolist()
    assert (np.diff(cohort.visit_of_task) >= 0).all(), "tasks of a visit are together, in their order"
    for row in range(len(cohort)):
        of_visit: Visit = {
            name: getattr(cohort, name)[row].item()
            for name in (*VISIT, *(["sent_before", "base"] if cohort.sent_before is not None else []))
        }
        for name in ("work", "phases", *(["payload", "ways"] if cohort.payload is not None else [])):
            of_visit[name] = [column[row].item() for column in vars(getattr(cohort, name)).values()]
        of_visit["tasks"] = [
            {
                "client": tasks.client[task].item(),
                "model": tasks.model[task].item(),
                "dispatch": tasks.dispatch[task].item(),
                "step": tasks.step[task].item(),
                "settings": {name: column[task].item() for name, column in tasks.settings.items()},
                "state": {name: column[task].tolist() for name, column in tasks.state.items()},
                "ranges": [
                    (
                        tasks.samples.first[j].item(),
                        tasks.samples.last[j].item(),
                        tasks.samples.weight[j].item(),
                    )
                    for j in range(tasks.samples.offsets[task], tasks.samples.offsets[task + 1])
                ],
                "starts": cohort.models[cohort.start[task]].tolist(),
                **{name: getattr(cohort, name)[task].item() for name in FROZEN},
            }
            for task in (cohort.visit_of_task == row).nonzero()[0]
        ]
        visits.append(of_visit)
    return visits


def kept_models(flight: Flight) -> list[tuple[int, int, int]]:
    """(id, version, tasks that start from it) of each model that is kept."""
    state: Any = flight.state()
    starting = Counter({(id_, version): count for id_, version, count in state["_starting"]})
    for id_, version, model, along in state["_models"]:
        assert along == {}
        assert model.tolist() == [id_, version]
        assert model.base is None, "a view would keep all models of its time"
    for cohort in state["_loose"]:
        starting.update(zip(cohort["tasks"]["model"].tolist(), cohort["version"].tolist(), strict=True))
    return sorted((id_, version, count) for (id_, version), count in starting.items())


TWO = Bank(ids=[4, 9], versions=[0, 3])


def three_visits(dispatch: int = 0, first_visit: int = 10, bank: Bank = TWO) -> Cohort:
    """Clients 2, 5 and 6, of which client 5 trains two models, one of them on three ranges."""
    clients = {
        2: [Task(0)],
        5: [Task(0, [(0, 4, 1.0), (9, 11, 0.5), (20, 30, 2.0)]), Task(1, [])],
        6: [Task(1, [(7, 8, 1.0)])],
    }
    return a_cohort(dispatch, first_visit, clients, bank)


# -- one dispatch -----------------------------------------------------------------------------------------


def test_the_only_cohort_is_handed_back_itself_as_in_synchronous_rounds() -> None:
    flight = Flight()
    for dispatch in range(3):
        cohort = three_visits(dispatch, 10 * dispatch)
        flight.add(cohort)
        assert len(flight) == 3
        assert flight.take(cohort.visit) is cohort
        assert (len(flight), kept_models(flight)) == (0, [])


def test_the_only_cohort_is_handed_back_itself_also_after_others_were_taken_in_parts() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    for visit in (11, 12, 10):
        flight.take(ints(visit))
    cohort = three_visits(1, 13)
    flight.add(cohort)
    assert flight.take(cohort.visit) is cohort


ONE = Bank(ids=[4], versions=[0])


def test_a_visit_of_its_own_dispatch_is_handed_back_itself_whatever_else_is_in_flight() -> None:
    flight = Flight()
    cohorts = [a_cohort(dispatch, dispatch, {dispatch: [Task(0)]}, ONE) for dispatch in range(4)]
    for cohort in cohorts[:3]:
        flight.add(cohort)
    assert flight.take(ints(1)) is cohorts[1]
    flight.add(cohorts[3])
    assert flight.take(ints(3)) is cohorts[3]
    assert visits_of(flight.take(ints(0, 2))) == [visits_of(cohorts[row])[0] for row in (0, 2)]


def test_dispatches_in_flight_do_not_keep_the_models_that_nothing_starts_from() -> None:
    flight, bank = Flight(), Bank(ids=list(range(50)), versions=[0] * 50)
    cohorts = [a_cohort(dispatch, dispatch, {dispatch: [Task(dispatch)]}, bank) for dispatch in range(9)]
    models = [weakref.ref(cohort.models) for cohort in cohorts]
    for cohort in cohorts:
        flight.add(cohort)
    del cohorts, cohort
    assert sum(model() is not None for model in models) <= 1  # the newest, whatever their number
    assert kept_models(flight) == [(id_, 0, 1) for id_ in range(9)]


def test_storing_a_flight_moves_nothing_in_it() -> None:
    """Of several ranks, which must train the same tasks from the same arrays, one alone stores its state."""
    flight, cohort = Flight(), three_visits()
    flight.add(cohort)
    flight.state()
    assert flight.take(cohort.visit) is cohort


def test_parts_of_a_cohort_are_its_visits() -> None:
    flight, cohort = Flight(), three_visits()
    expected = visits_of(cohort)
    flight.add(cohort)
    assert visits_of(flight.take(ints(11))) == expected[1:2]
    assert len(flight) == 2
    assert visits_of(flight.take(ints(10, 12))) == expected[::2]


def test_models_are_kept_once_for_each_version_that_a_task_starts_from() -> None:
    flight = Flight()
    later = Bank(ids=[4, 9], versions=[0, 4])  # model 9 has been trained, model 4 has not
    for dispatch, bank in ((0, TWO), (1, later)):
        flight.add(three_visits(dispatch, 10 * dispatch, bank))
    assert kept_models(flight) == [(4, 0, 4), (9, 3, 2), (9, 4, 2)]
    taken = flight.take(ints(0, 1, 2))
    assert len(taken.models) == 2  # those of these tasks
    assert kept_models(flight) == [(4, 0, 2), (9, 4, 2)]
    flight.take(ints(11, 12))
    assert kept_models(flight) == [(4, 0, 1)]
    flight.take(ints(10))
    assert kept_models(flight) == []


def test_there_is_a_payload_besides_what_crosses_the_wire_if_links_lose_packets() -> None:
    for loses_packets in (False, True):
        flight = Flight()
        for dispatch in range(2):
            flight.add(a_cohort(dispatch, dispatch, {3: [Task(0)]}, TWO, loses_packets=loses_packets))
        taken = flight.take(ints(1))
        assert (taken.payload is not None) is loses_packets
        assert taken.work.download_bytes.tolist() == [10.0 if loses_packets else 1.1]


# -- data and models that change ----------------------------------------------------------------------------


def test_tasks_of_clients_whose_data_changed_are_not_bound_to_them_any_more() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    flight.data_changed(ints())
    flight.data_changed(ints(3, 5, 7))
    flight.add(three_visits(1, 20))
    both = flight.take(ints(10, 20, 11, 21, 12, 22))  # by client
    assert both.tasks.visit.tolist() == [10, 20, 11, 11, 21, 21, 12, 22]
    assert both.bound.tolist() == [True, True, False, False, True, True, True, True]


def test_a_flight_without_visits_takes_no_note_of_data() -> None:
    flight = Flight()
    flight.data_changed(ints(3))
    cohort = three_visits()
    flight.add(cohort)
    assert flight.take(cohort.visit) is cohort


def test_a_visit_follows_the_first_of_its_models_that_continues() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    visit, client, row = flight.follow(successor=ints(-1, 0))  # model 4 dies, model 9 is the only one now
    assert (visit.tolist(), client.tolist()) == ([10, 11, 12], [2, 5, 6])
    assert row.tolist() == [-1, 0, 0]  # client 5 trained both
    cohort = flight.take(ints(10, 11, 12))
    assert cohort.row.tolist() == [-1, -1, 0, 0]
    # What they started from, and by which id and label, is as it was.
    assert cohort.tasks.model.tolist() == [4, 4, 9, 9]
    assert cohort.label.tolist() == [70, 70, 71, 71]
    assert cohort.models[cohort.start].tolist() == [[4, 0], [4, 0], [9, 3], [9, 3]]


def test_models_are_followed_from_one_assignment_to_the_next_and_never_come_back() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    assert flight.follow(ints(2, 0))[2].tolist() == [2, 2, 0]  # three models now
    flight.add(three_visits(1, 20, Bank(ids=[9, 12], versions=[3, 0])))  # in rows 0 and 1 of these three
    assert flight.follow(ints(0, -1, 1))[2].tolist() == [1, 1, 0, 0, 0, -1]
    flight.take(ints(10))
    visit, _, row = flight.follow(ints(1, -1))
    assert (visit.tolist(), row.tolist()) == ([11, 12, 20, 21, 22], [1, 1, 1, 1, -1])
    assert flight.take(ints(20, 11, 21, 12, 22)).row.tolist() == [1, -1, 1, 1, -1, 1, -1]


def test_of_two_models_that_both_continue_a_visit_follows_the_first() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    assert flight.follow(ints(5, 3))[2].tolist() == [5, 5, 3]
    assert flight.follow(ints(0, 0, 0, 1, 1, 0))[2].tolist() == [0, 0, 1]


# -- against a plain model ----------------------------------------------------------------------------------


def copied(flight: Flight) -> Flight:
    again = Flight()
    again.restore(from_bytes(to_bytes(flight.state())))
    return again


def test_a_flight_that_was_restored_has_the_states_of_one_that_was_not() -> None:
    flight = Flight()
    flight.add(three_visits(0, 10))
    flight.take(ints(12))  # the last one, and the others move to the tables
    again = copied(flight)
    for each in (flight, again):
        each.add(three_visits(1, 20))
        each.take(ints(10, 21))
    assert to_bytes(again.state()) == to_bytes(flight.state())


def tasks_drawn(data: st.DataObject, num_models: int) -> list[Task]:
    rows = data.draw(st.lists(st.integers(0, num_models - 1), min_size=1, max_size=3, unique=True))
    ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(9, 20), st.just(0.5)), max_size=3)
    return [Task(row, data.draw(ranges)) for row in sorted(rows)]


@settings(max_examples=15)
@given(data=st.data())
def test_what_is_taken_is_what_was_added(data: st.DataObject) -> None:
    flight, bank, there = Flight(), Bank(ids=[0, 1], versions=[0, 0]), dict[int, Visit]()
    next_visit, next_id = 0, 2
    for dispatch in range(data.draw(st.integers(1, 6))):
        clients = data.draw(st.lists(st.integers(0, 5), max_size=4, unique=True))
        cohort = a_cohort(
            dispatch, next_visit, {client: tasks_drawn(data, len(bank.ids)) for client in clients}, bank
        )
        next_visit += len(clients)
        if clients:  # each dispatch has a visit
            flight.add(cohort)
            there |= {visit["visit"]: visit for visit in visits_of(cohort)}
        what = data.draw(st.sampled_from(["train", "store", "data", "models", "models", "nothing"]))
        if what == "train":
            bank = replace(
                bank, versions=[version + data.draw(st.integers(0, 1)) for version in bank.versions]
            )
        elif what == "store":
            flight = copied(flight)
        elif what == "data":
            changed = sorted(data.draw(st.sets(st.integers(0, 5))))
            left = changed[: data.draw(st.integers(0, len(changed)))]
            flight.data_changed(*(np.array(ids, dtype=np.int64) for ids in (changed, left)))
            for task in (task for visit in there.values() for task in visit["tasks"]):
                task["bound"] &= task["client"] not in changed
                task["stayed"] &= task["client"] not in left
        elif what == "models" and there:
            # One to three models are left: old ones, or new.
            count = data.draw(st.integers(1, 3))
            successor = data.draw(
                st.lists(st.integers(-1, count - 1), min_size=len(bank.ids), max_size=len(bank.ids))
            )
            bank = Bank(ids=[next_id + row for row in range(count)], versions=[0] * count)
            next_id += count
            for task in (task for visit in there.values() for task in visit["tasks"]):
                task["row"] = -1 if task["row"] < 0 else successor[task["row"]]
            followed = flight.follow(np.array(successor))
            assert [list(row) for row in zip(*(column.tolist() for column in followed), strict=True)] == [
                [number, visit["clients"], next((t["row"] for t in visit["tasks"] if t["row"] >= 0), -1)]
                for number, visit in sorted(there.items())
            ]
        if there:
            chosen = data.draw(st.sets(st.sampled_from(sorted(there)), min_size=1))
            taken = [there.pop(number) for number in chosen]
            taken.sort(key=lambda visit: (visit["clients"], visit["visit"]))
            numbers = np.array([visit["visit"] for visit in taken], dtype=np.int64)
            assert visits_of(flight.take(numbers)) == taken
        assert len(flight) == len(there)
    starts = {(task["model"], task["version"]) for visit in there.values() for task in visit["tasks"]}
    assert {(id_, version) for id_, version, _ in kept_models(flight)} == starts
