"""The contracts notice what they are there to notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgParameters
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.detectors.changed import Changed
from coordinator.memories.held import Held
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncParameters
from coordinator.selectors.random import Random
from emulator.plugins import NoParameters
from experiments import contracts
from tests.fakes import NOTHING, FakeAvailability, ints
from traces.drift.label_mix import LabelMix, LabelMixParameters


def test_a_part_without_a_docstring_is_refused():
    class Mute(Single):
        pass

    with pytest.raises(AssertionError, match="Mute has no docstring"):
        contracts.check_part(Mute, NOTHING)


def test_parameters_that_can_be_changed_are_refused():
    class Soft(NoParameters, frozen=False):
        pass

    class Part(Single):
        """A part."""

        Parameters = Soft

    with pytest.raises(AssertionError, match="not frozen"):
        contracts.check_part(Part, Soft())


class Spoilt(Single):
    """Single, whose first answer `spoil` turns into something else."""

    def __init__(self, spoil) -> None:
        super().__init__(NOTHING)
        self.spoil = spoil

    def on_data(self, view):
        answer = super().on_data(view)
        return self.spoil(view, answer) if answer is not None else None


def spoils():
    def half(view, answer):
        return replace(answer, remix=answer.remix / 2)

    def stranger(view, answer):
        return replace(answer, members=answer.members + 1)

    def missing(view, answer):
        return replace(answer, members=answer.members[1:])

    def nothing(view, answer):
        return None

    def vandal(view, answer):
        view.reports[0, 0] += 1
        return answer

    def heirs(view, answer):
        return replace(answer, heir=ints(0))

    rng = np.random.default_rng(0)

    def whim(view, answer):
        return Assignment.fresh(rng.integers(2, size=view.num_clients), 2, view.initial(0))

    return [
        (half, "sum to 1"),
        (stranger, "rows of the new models"),
        (missing, "a row for each client"),
        (nothing, "must answer"),
        (vandal, "writes to what it is shown"),
        (heirs, "a row for each old model"),
        (whim, "differently"),
    ]


@pytest.mark.parametrize(("spoil", "complaint"), spoils(), ids=lambda value: getattr(value, "__name__", ""))
def test_clusterers_that_break_a_rule_are_refused(spoil, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_clusterer(lambda: Spoilt(spoil))


def test_a_clusterer_that_says_nothing_is_refused():
    class Silent(Clusterer):
        Parameters = NoParameters

    with pytest.raises(AssertionError, match="must answer"):
        contracts.check_clusterer(Silent)


@pytest.mark.parametrize(
    ("pick", "complaint"),
    [
        (lambda pool, wanted, rng: np.concatenate(pool.lanes), "not ascending"),
        (lambda pool, wanted, rng: np.sort(np.concatenate(pool.lanes)), "of"),
        (lambda pool, wanted, rng: np.arange(wanted.sum()), "not all of these"),
        (lambda pool, wanted, rng: np.sort(rng.choice(pool.ids(0), size=wanted[0] and 1)), "differently"),
    ],
    ids=["unsorted", "too many", "strangers", "at a whim"],
)
def test_selectors_that_break_a_rule_are_refused(pick, complaint):
    rng = np.random.default_rng(5)

    class Picky(Random):
        def select(self, pool, wanted, view):
            return pick(pool, wanted, rng)

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_selector(lambda: Picky(NOTHING))


def test_detectors_that_write_to_the_last_report_are_refused():
    class Greedy(Changed):
        def detect(self, signal, last):
            last[...] = signal
            return np.zeros(len(signal), dtype=bool)

    with pytest.raises(AssertionError, match="writes to what it is shown"):
        contracts.check_detector(lambda: Greedy(NOTHING))


def test_memories_that_pair_in_disorder_are_refused():
    class Backwards(Held):
        def rows(self, clients, view):
            client, model, samples = super().rows(clients, view)
            order = np.arange(len(client))[::-1]
            return client[order], model[order], samples.take(order)

    with pytest.raises(AssertionError, match="not sorted"):
        contracts.check_memory(lambda: Backwards(NOTHING))


def test_aggregators_that_touch_a_model_without_updates_are_refused():
    class Drag(FedAvg):
        def aggregate(self, updates, view):
            return super().aggregate(updates, view) * np.float32(0.9)

    with pytest.raises(AssertionError, match="must stay"):
        contracts.check_aggregator(lambda: Drag(FedAvgParameters()))


def test_aggregators_that_aggregate_in_place_are_refused():
    class InPlace(FedAvg):
        def aggregate(self, updates, view):
            view.models[...] = super().aggregate(updates, view)
            return view.models

    with pytest.raises(AssertionError, match="writes to what it is shown"):
        contracts.check_aggregator(lambda: InPlace(FedAvgParameters()))


def test_pacings_that_ask_an_empty_lane_are_refused():
    class Even(Sync):
        def quota(self, sizes):
            return np.full_like(sizes, 2)

    with pytest.raises(AssertionError, match="can give none"):
        contracts.check_pacing(lambda cohort: Even(SyncParameters(), cohort))


def test_availability_that_answers_now_instead_of_later_is_refused():
    class Now(FakeAvailability):
        def next_online_s(self, ids, time_s):
            starts = [min((s for s, _ in self.intervals[c] if s >= time_s), default=np.inf) for c in ids]
            return np.array(starts)

    sessions = {client: [(10.0, 20.0), (30.0, 40.0)] for client in range(2)}
    contracts.check_availability(FakeAvailability(sessions), 2, [0.0, 10.0, 25.0])
    with pytest.raises(AssertionError, match="strictly later"):
        contracts.check_availability(Now(sessions), 2, [0.0, 10.0, 25.0])


def test_availability_with_a_cursor_is_refused():
    class Cursor(FakeAvailability):
        """As emulators had it: asking moves on."""

        asked = 0

        def online(self, ids, time_s):
            self.asked += 1
            return np.full(len(ids), self.asked < 4)

    with pytest.raises(AssertionError):
        contracts.check_availability(Cursor({}), 1, [0.0, 1.0])


def test_drifts_that_do_not_share_out_everything_are_refused():
    class Lossy(LabelMix):
        def shares(self, *args, **kwargs):
            return super().shares(*args, **kwargs) * 0.99

    with pytest.raises(AssertionError):
        contracts.check_drift(lambda: Lossy(LabelMixParameters()))


def test_the_cohort_a_pacing_is_made_for_is_handed_to_it():
    seen = []

    def make(cohort: CohortSize) -> Sync:
        seen.append(cohort)
        return Sync(SyncParameters(), cohort)

    contracts.check_pacing(make)
    assert {cohort.participants for cohort in seen} == {10}
