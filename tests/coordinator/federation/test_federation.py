import json
import math
from dataclasses import replace

import numpy as np
import pytest

from coordinator.adaptations.alone import Alone, AloneSettings
from coordinator.assignment import Assignment
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.detectors.changed import Changed
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.memories.held import Held, HeldSettings
from emulator.errors import RunError
from emulator.messages import InferencePlan
from tests.fakes import (
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Population,
    a_fleet,
    fresh,
    ints,
    one_hot,
)

INF = math.inf
VISIT_S = 9.0  # a visit with one parameter and one sample on the default fleet


# -- registration and reports ---------------------------------------------------------------------------


def reporting(num_clients: int = 3, **settings) -> Population:
    """Clients whose label alternates, and a clusterer that needs reports of 2 numbers, which are 8 bytes."""
    turns = [one_hot(*[step % 2] * num_clients, of=2) for step in range(4)]
    return Population(
        FakeExecutor([1.0] * num_clients),
        stream=FakeStream(turns),
        clusterer=FakeClusterer({0: fresh([0] * num_clients)}, reports=True),
        rounds=4,
        **settings,
    )


def test_all_clients_register_before_round_0_online_or_not_in_no_time_but_for_control_bytes():
    offline = FakeAvailability({1: [(500.0, INF)]})
    records = reporting(availability=offline).play().records
    assert (records[0].changed, records[0].reported, records[0].control_bytes) == (3, 3, 24)
    assert records[0].dispatched_s == 0.0
    assert records[0].participants == [0, 2]


def test_the_clusterer_sees_the_reports_of_all_clients_at_its_first_call():
    population = reporting(availability=FakeAvailability({1: [(500.0, INF)]}))
    population.play()
    first = population.clusterer.views[0]
    assert first.reports.tolist() == [[1, 0]] * 3
    assert first.drifted.tolist() == [0, 1, 2]


def test_an_offline_client_reports_once_it_is_online():
    # Rounds take 8 s of report and 9 s of visit after the first, which has no report: they open at 0, 9, 26
    # and 43 s. Client 1 is away from 5 s on, and back at 40 s.
    population = reporting(availability=FakeAvailability({1: [(0.0, 5.0), (40.0, INF)]}))
    records = population.play().records
    assert [record.opened_s for record in records] == [0, 9, 26, 43]
    assert [record.changed for record in records] == [3, 2, 2, 3]
    assert [record.reported for record in records] == [3, 2, 2, 3]
    assert [record.control_bytes for record in records] == [24, 40, 56, 80]
    views = population.clusterer.views
    assert [view.drifted.tolist() for view in views] == [[0, 1, 2], [0, 2], [0, 2], [0, 1, 2]]
    # It reports the data that it holds then, not those it held when they changed.
    assert views[2].reports.tolist() == [[1, 0], [1, 0], [1, 0]]
    assert views[3].reports.tolist() == [[0, 1], [0, 1], [0, 1]]


def test_a_client_that_drifted_and_drifted_back_while_it_was_away_has_nothing_to_report():
    population = reporting(availability=FakeAvailability({1: [(0.0, 5.0), (20.0, INF)]}))
    records = population.play().records
    # Round 2, at 26 s: the label is that of round 0 again. Client 1 was checked, and did not report.
    assert (records[2].changed, records[2].reported) == (3, 2)
    assert population.clusterer.views[2].drifted.tolist() == [0, 2]


def test_new_data_with_the_same_histogram_is_looked_at_but_not_reported():
    records = (
        Population(
            FakeExecutor([1.0, 1.0]),
            stream=FakeStream([one_hot(0, 1, of=2)] * 2, touched=[[0, 0], [0, 1]]),
            clusterer=FakeClusterer({0: fresh([0, 0])}, reports=True),
            rounds=2,
        )
        .play()
        .records
    )
    assert (records[1].changed, records[1].reported, records[1].control_bytes) == (1, 0, 16)
    assert records[1].dispatched_s == records[1].opened_s


def test_dispatch_waits_for_the_slowest_report():
    # 8 bytes at 8, 2 and 4 bytes/s after a latency of 1, 0.5 and 2 s: 2, 4.5 and 4 s.
    fleet = a_fleet(3, 1.0, 8.0, [8, 2, 4], [1, 0.5, 2])
    records = reporting(fleet=fleet).play().records
    delays = [record.dispatched_s - record.opened_s for record in records]
    assert delays == [0, 4.5, 4.5, 4.5]


def test_only_those_that_report_are_waited_for():
    # Client 1, the slowest, does not drift.
    turns = np.stack([one_hot(step % 2, 0, of=2) for step in range(2)])
    records = (
        Population(
            FakeExecutor([1.0, 1.0]),
            stream=FakeStream(turns),
            fleet=a_fleet(2, upload_bytes_per_s=[8.0, 0.125]),
            clusterer=FakeClusterer({0: fresh([0, 0])}, reports=True),
            rounds=2,
        )
        .play()
        .records
    )
    assert records[1].dispatched_s - records[1].opened_s == 1.0


def test_drift_is_measured_from_the_last_report_so_that_slow_drift_is_reported_in_the_end():
    class Far(Changed):
        """An L1 distance of 0.5 or more is a drift."""

        def detect(self, clients, signal, last):
            return np.abs(signal - last).sum(axis=1) >= 0.5

    # The share of the second label grows by an eighth each round, which is a quarter in L1.
    population = Population(
        FakeExecutor([1.0]),
        stream=FakeStream([[[1 - step / 8, step / 8]] for step in range(6)]),
        clusterer=FakeClusterer({0: fresh([0])}, reports=True),
        detectors={"far": Far(NOTHING)},
        rounds=6,
    )
    records = population.play().records
    assert [record.changed for record in records] == [1] * 6
    assert [record.reported for record in records] == [1, 0, 1, 0, 1, 0]
    assert [view.reports[0, 1] for view in population.clusterer.views] == [0, 0, 0.25, 0.25, 0.5, 0.5]


def test_a_client_reports_when_any_detector_fires_and_the_clusterer_sees_which():
    class First(Changed):
        """Detects drift by the first label alone."""

        def detect(self, clients, signal, last):
            return super().detect(clients, signal[:, :1], last[:, :1])

    turns = [[[0.5, 0.5, 0], [1, 0, 0]], [[0.5, 0, 0.5], [0, 1, 0]]]
    population = Population(
        FakeExecutor([1.0, 1.0]),
        stream=FakeStream(turns),
        clusterer=FakeClusterer({0: fresh([0, 0])}, reports=True),
        detectors={"any": Changed(NOTHING), "first": First(NOTHING)},
        rounds=2,
    )
    assert population.play().records[1].reported == 2
    drifted = {name: flags.tolist() for name, flags in population.clusterer.views[1].drift.items()}
    assert drifted == {"any": [True, True], "first": [False, True]}


def test_without_a_detector_clients_report_only_at_registration():
    records = reporting(detectors={}).play().records
    assert [record.reported for record in records] == [3, 0, 0, 0]


def test_control_bytes_are_kept_apart_from_training_bytes():
    record = reporting().play().records[-1]
    assert (record.control_bytes, record.upload_bytes, record.download_bytes) == (4 * 24, 4 * 12, 4 * 12)


def test_a_client_that_went_offline_while_reports_came_in_is_not_selected():
    # Reports take 8 s: the second round opens at 9 s and is dispatched at 17 s.
    records = reporting(availability=FakeAvailability({0: [(0.0, 12.0), (26.0, INF)]})).play().records
    assert records[1].reported == 3
    assert records[1].participants == [1, 2]


def test_a_client_that_comes_online_during_a_wait_reports_before_the_dispatch():
    # Both drift after round 0, at 9 s. Client 0 reports until 17 s, when it is alone. Client 1 comes back at
    # 50 s and reports; both are sent out at 58 s.
    sessions = {1: [(0.0, 9.0), (50.0, INF)]}
    population = reporting(2, availability=FakeAvailability(sessions), min_online=2)
    population.rounds = 2
    second = population.play().records[1]
    assert (second.opened_s, second.dispatched_s) == (9.0, 58.0)
    assert (second.changed, second.reported) == (2, 2)
    assert [view.drifted.tolist() for view in population.clusterer.views[1:]] == [[0], [1]]


# -- tasks ----------------------------------------------------------------------------------------------


def test_tasks_name_models_by_id_and_carry_the_settings():
    played = Population(FakeExecutor([1.0, 1.0]), local_steps=7, batch_size=3, rounds=2).play()
    first, second = played.executor.waves
    assert (first.model.tolist(), first.dispatch.tolist()) == ([0, 0], [0, 0])
    assert (second.model.tolist(), second.dispatch.tolist()) == ([0, 0], [1, 1])
    assert {name: column.tolist() for name, column in second.settings.items()} == {
        "learning_rate": [0.1, 0.1],
        "local_steps": [7, 7],
        "batch_size": [3, 3],
    }


def test_a_client_of_two_models_makes_one_visit_that_costs_both():
    wide = Assignment(
        mixing=np.ones((2, 1)),
        extra=np.zeros((1, 1), dtype=np.float32),
        successor=ints(),
        members=np.array([[0, -1], [0, 1]]),
    )
    played = Population(
        FakeExecutor([1.0, -1.0], pull=1.0), clusterer=FakeClusterer({0: wide}), memory=Held(HeldSettings())
    ).play()
    record = played.records[0]
    assert record.participants == [0, 1]
    # Client 0 takes 4 + 1 + 4 s, client 1 twice as long.
    assert record.closed_s == 18.0
    assert (record.download_bytes, record.upload_bytes) == (12, 12)
    (wave,) = played.executor.waves
    assert (wave.client.tolist(), wave.model.tolist(), wave.visit.tolist()) == (
        [0, 1, 1],
        [0, 0, 1],
        [0, 1, 1],
    )
    assert played.models == [[0.0], [-1.0]]


class Faulty(FakeExecutor):
    """Client 1 sends `delta`, and reports `loss` as its loss."""

    def __init__(self, delta, loss):
        super().__init__([1.0, 1.0, 1.0])
        self.faulty = delta, loss

    def train(self, tasks, models, start, weights=None):
        updates = super().train(tasks, models, start, weights)
        delta, loss = updates.delta.copy(), updates.metrics["loss"].copy()
        delta[tasks.client == 1], loss[tasks.client == 1] = self.faulty
        return replace(updates, delta=delta, metrics={"loss": loss})


NOT_FINITE = [(math.nan, 1.0), (-math.inf, 1.0), (0.5, math.inf), (0.5, math.nan)]


@pytest.mark.parametrize(("delta", "loss"), NOT_FINITE)
def test_an_update_that_is_not_finite_is_left_out_and_recorded(delta, loss):
    played = Population(Faulty(delta, loss), rounds=2).play()
    assert [record.rejected for record in played.records] == [[1], [1]]
    assert played.records[0].completed == [0, 1, 2]
    assert played.records[0].train_loss == 1.0
    # Half of the way to 1 in each of two rounds, as with the other two clients alone.
    assert played.models == [[0.75]]


@pytest.mark.parametrize(("delta", "loss"), NOT_FINITE)
def test_or_it_ends_the_run_with_a_hint(delta, loss):
    population = Population(Faulty(delta, loss), nonfinite_updates="stop")
    with pytest.raises(RunError, match=r"round 0: the update of client 1 is not finite.*rate than 0.1"):
        population.play()


class NanAtFirst(FakeExecutor):
    """All updates of the first `rounds` rounds are NaN."""

    def __init__(self, rounds):
        super().__init__([1.0, 1.0])
        self.rounds = rounds

    def train(self, tasks, models, start, weights=None):
        updates = super().train(tasks, models, start, weights)
        delta = np.full_like(updates.delta, math.nan) if tasks.dispatch.max() < self.rounds else updates.delta
        return replace(updates, delta=delta)


def test_a_round_without_any_finite_update_leaves_the_models():
    played = Population(NanAtFirst(2), rounds=3).play()
    assert [record.rejected for record in played.records] == [[0, 1], [0, 1], []]
    assert [record.train_loss for record in played.records] == [None, None, 1.0]
    assert played.models == [[0.5]]


def test_ten_such_rounds_in_a_row_are_divergence():
    assert Population(NanAtFirst(9), rounds=11).play().models == [[0.75]]
    with pytest.raises(
        RunError, match="round 9: training diverged, in 10 rounds in a row no update was finite"
    ):
        Population(NanAtFirst(10), rounds=30).play()


def test_participants_that_are_left_with_nothing_to_train_leave_the_models():
    class TakesAway(FakeClusterer):
        def on_participants(self, view):
            return Assignment.moved(np.full(view.num_clients, -1), 1, lanes=ints(0, 0))

        def serve(self, view):
            return InferencePlan.alike(np.zeros((view.num_clients, 1), dtype=np.int64))

    played = Population(FakeExecutor([1.0, 1.0]), clusterer=TakesAway()).play()
    assert played.records[0].completed == [0, 1]
    assert played.records[0].train_loss is None
    assert played.models == [[0.0]]


# -- records --------------------------------------------------------------------------------------------


def test_members_are_logged_at_first_and_when_they_changed():
    script = {
        0: fresh([0, 1, 1]),
        2: Assignment.moved(ints(0, 1, 0), 2),
        3: Assignment.moved(ints(0, 1, 0), 2),  # the same members again
        4: Assignment.reclustered_from(ints(0, 1, 0), ints(0, 0, 1), 2, 2),
    }
    records = Population(FakeExecutor([1.0] * 3), clusterer=FakeClusterer(script), rounds=6).play().records
    # Overlaps are [[1, 1], [1, 0]]: the matching 0 -> 1, 1 -> 0 keeps two members, the other one only one.
    members = [None if record.members is None else record.members.tolist() for record in records]
    assert members == [[0, 1, 1], None, [0, 1, 0], None, [1, 1, 0], None]
    assert [record.moved for record in records] == [0, 0, 1, 0, 0, 0]
    assert [record.reclustered for record in records] == [False] * 4 + [True, False]
    assert [record.clusters for record in records] == [[0, 1]] * 4 + [[1, 0]] * 2


def by_concept(**changes):
    """Two rounds of two clients: client 0 has concept 0 and trains model 0, client 1 has and trains 1."""
    stream = FakeStream(np.ones((2, 2, 1)), concepts=[[0, 1]] * 3)
    clusterer = FakeClusterer({0: fresh([0, 1])})
    population = {"stream": stream, "clusterer": clusterer, "rounds": 2, "log_model_accuracy": True}
    return Population(FakeExecutor([0.0, 1.0]), **{**population, **changes}).play()


def test_every_model_is_measured_by_concept_at_each_evaluation():
    # Model 1 goes half the way from 0 to 1, and half of the rest.
    of_rounds = [record.accuracy_by_concept for record in by_concept().records]
    assert of_rounds == [{0: [1, 0.5], 1: [0, 0.5]}, {0: [1, 0.25], 1: [0, 0.75]}]
    rarely = by_concept(evaluate_every=2).records
    assert [record.accuracy_by_concept for record in rarely] == [None, of_rounds[1]]


def test_to_measure_models_by_concept_changes_nothing_else():
    logged, plain = by_concept().records, by_concept(log_model_accuracy=False).records
    assert [record.accuracy_by_concept for record in plain] == [None, None]
    assert [replace(record, accuracy_by_concept=None) for record in logged] == plain


def test_models_that_nobody_federates_are_not_measured_by_concept():
    alone = by_concept(clusterer=FakeClusterer({0: fresh([0, 0])}), adaptation=Alone(AloneSettings()))
    assert [record.accuracy_by_concept for record in alone.records] == [None, None]


def test_rows_that_trade_places_are_no_change_of_members():
    swap = Assignment(
        mixing=np.eye(2)[::-1],
        extra=np.zeros((0, 1), dtype=np.float32),
        successor=ints(1, 0),
        members=ints(1, 0)[:, None],
    )
    records = (
        Population(FakeExecutor([1.0, 1.0]), clusterer=FakeClusterer({0: fresh([0, 1]), 1: swap}), rounds=2)
        .play()
        .records
    )
    assert (records[1].members, records[1].moved, records[1].clusters) == (None, 0, [1, 0])


def test_accuracy_is_the_mean_over_clients_of_their_own_with_the_model_that_serves_them():
    played = Population(
        FakeExecutor([1.0, 0.5, 0.25], pull=1.0),
        clusterer=FakeClusterer({0: fresh([0, 1, 1])}),
    ).play()
    record = played.records[0]
    # Models 1 and 0.375: accuracies 1, 0.875, 0.875.
    assert record.accuracy == pytest.approx(2.75 / 3, abs=1e-15)
    assert record.accuracy_std == pytest.approx(np.std([1, 0.875, 0.875]), abs=1e-15)
    assert record.loss == pytest.approx(0.25 / 3, abs=1e-15)


def test_clients_without_test_samples_do_not_count():
    record = (
        Population(FakeExecutor([1.0, 0.0]), stream=FakeStream([[[1.0], [1.0]]], test=[1, 0]))
        .play()
        .records[0]
    )
    # The model is at 0.25: 1 - 0.75 for client 0; client 1 has no test samples.
    assert record.accuracy == 0.25


def test_a_run_without_test_samples_ends_with_the_reason():
    population = Population(FakeExecutor([1.0]), stream=FakeStream([[[1.0]]], test=[0]))
    with pytest.raises(RunError, match="no scored client holds test samples"):
        population.play()


def test_rounds_between_evaluations_measure_nothing_and_the_last_round_always_does():
    records = Population(FakeExecutor([1.0]), rounds=5, evaluate_every=3).play().records
    assert [record.accuracy is not None for record in records] == [False, False, True, False, True]
    assert [record.loss is not None for record in records] == [False, False, True, False, True]
    assert [record.mean_client_distance is None for record in records] == [True, True, False, True, False]
    assert all(record.train_loss is not None for record in records)


def test_the_distances_are_those_of_the_clusters_and_of_one_cluster_of_all():
    played = Population(
        FakeExecutor([1.0] * 4),
        stream=FakeStream([one_hot(0, 0, 1, 1, of=2)]),
        clusterer=FakeClusterer({0: fresh([0, 0, 1, 1])}),
    ).play()
    assert played.records[0].mean_client_distance == 0.0
    assert played.records[0].unclustered_distance == pytest.approx(
        4 / 3
    )  # for each client, two of the three others are at distance 2


def test_evaluation_costs_neither_time_nor_bytes():
    often = Population(FakeExecutor([1.0]), rounds=4).play().records
    seldom = Population(FakeExecutor([1.0]), rounds=4, evaluate_every=4).play().records
    costs = [
        [(r.closed_s, r.download_bytes, r.upload_bytes, r.control_bytes) for r in records]
        for records in (often, seldom)
    ]
    assert costs[0] == costs[1]


def test_the_data_step_is_that_of_the_round():
    turns = [one_hot(step % 2, of=2) for step in range(3)]
    records = (
        Population(FakeExecutor([1.0]), stream=FakeStream(turns, rounds_per_step=2), rounds=6).play().records
    )
    assert [record.step for record in records] == [0, 0, 1, 1, 2, 2]


def test_a_record_is_plain_json():
    turns = [one_hot(0, 1, of=2), one_hot(1, 0, of=2)]
    records = (
        Population(
            FakeExecutor([1.0, -1.0]),
            stream=FakeStream(turns),
            clusterer=Fielding(FieldingSettings()),
            rounds=2,
        )
        .play()
        .records
    )
    for record in records:
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in {**vars(record), "trigger": record.trigger and vars(record.trigger)}.items()
        }
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain


# -- errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [Held(HeldSettings()), Claimed(ClaimedSettings())])
def test_a_clusterer_without_a_first_assignment_is_refused(memory):
    with pytest.raises(RunError, match="the clusterer returned no assignment from its first call"):
        Population(FakeExecutor([1.0]), clusterer=FakeClusterer(script={}), memory=memory).play()
