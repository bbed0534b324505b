import re

import numpy as np
import pytest

from coordinator.assignment import Assignment, Fit
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from emulator.messages import PairwiseTrigger, Trigger
from tests.fakes import FakeExecutor, FakeStream, Population, a_view, one_hot

NEVER = 1e9  # a threshold that no shift reaches


OF_THE_TRIGGER = ("threshold", "shift_from")


class Story:
    """A Fielding clusterer that sees one drift after another."""

    def __init__(self, reports, **settings) -> None:
        self.reports = np.array(reports, dtype=np.float64)
        trigger = {key: settings.pop(key) for key in OF_THE_TRIGGER if key in settings}
        if trigger:
            settings["trigger"] = {"kind": "centre_shift", **trigger}
        self.clusterer = Fielding(FieldingSettings(**settings))
        self.assignment: Assignment | None = None
        self.round = 0
        self.triggers: list[Trigger] = []
        self.drift({})

    def drift(self, to: dict[int, list[float]]) -> Assignment | None:
        """Drifted clients report; returns the clusterer's assignment."""
        for client, report in to.items():
            self.reports[client] = report
        view = a_view(
            self.reports.copy(),
            drifted=list(to),
            assignment=self.assignment,
            round_=self.round,
            triggers=self.triggers,
        )
        self.round += 1
        assignment = self.clusterer.on_data(view)
        self.assignment = assignment or self.assignment
        return assignment

    @property
    def lanes(self) -> list[int]:
        assert self.assignment is not None
        return self.assignment.lane_of_client.tolist()


def two_clusters(**settings) -> Story:
    """{0, 1, 2} on label 0 and {3, 4, 5} on label 1, of three labels."""
    return Story(one_hot(0, 0, 0, 1, 1, 1, of=3), **settings)


def test_it_clusters_everybody_at_first():
    assert two_clusters().lanes == [0, 0, 0, 1, 1, 1]


def test_clients_report_label_histograms_for_as_long_as_it_lasts():
    story = two_clusters()
    assert story.clusterer.needs_reports


def test_without_drift_it_returns_none():
    assert two_clusters().drift({}) is None


def test_a_drifted_client_moves_to_the_nearest_centre():
    story = two_clusters(threshold=NEVER)
    assignment = story.drift({1: [0.25, 0.75, 0]})
    assert assignment is not None
    assert not assignment.reclustered
    assert assignment.mixing.tolist() == [[1, 0], [0, 1]]
    assert assignment.successor.tolist() == [0, 1]
    assert story.lanes == [0, 1, 0, 1, 1, 1]


def test_a_client_that_did_not_drift_does_not_move_even_if_another_centre_is_nearer_now():
    # Clients 0 and 1 move to the other cluster and pull its centre towards client 2, which stays where it is.
    story = two_clusters(threshold=NEVER)
    story.reports[2] = [0.4, 0.6, 0]  # ignored: no detector flagged it
    assert story.drift({0: [0, 1, 0], 1: [0, 1, 0]}) is not None
    assert story.lanes == [1, 1, 0, 1, 1, 1]


def test_centres_are_held_still_while_clients_move():
    # Centres (1, 0, 0) and (0, 1, 0). Client 0 goes to (0, 1/2, 1/2), which is nearer to the second centre
    # (1 against 2), and would pull it to (0, 7/8, 1/8) if centres followed. Client 1 goes to
    # (.46, .44, .1): 1.08 from the first; 1.12 from the second, but .46 + .435 + .025 = .92 from the pulled
    # one. So client 1 stays, in either order.
    for order in ([0, 1], [1, 0]):
        story = two_clusters(threshold=NEVER)
        reports = {0: [0, 0.5, 0.5], 1: [0.46, 0.44, 0.1]}
        story.drift({client: reports[client] for client in order})
        assert story.lanes == [1, 0, 0, 1, 1, 1]


def test_ties_go_to_the_lowest_cluster():
    story = two_clusters(threshold=NEVER)
    story.drift({4: [0.5, 0.5, 0], 2: [0, 0, 1]})
    assert story.lanes == [0, 0, 0, 1, 0, 1]


def test_a_drift_that_moves_nobody_is_no_new_assignment_but_moves_the_centre():
    story = two_clusters(threshold=NEVER)
    for _ in range(2):
        assert story.drift({5: [0, 0.7, 0.3]}) is None
    # The second centre went from (0, 1, 0) to (0, .9, .1).
    # (.52, .44, .04) is .96 from the first centre, and 1.04 from the second: it stays.
    # (.48, .44, .08) is 1.04 from the first and .96 from the second, 1.12 from where that was: it moves.
    story.drift({0: [0.52, 0.44, 0.04], 1: [0.48, 0.44, 0.08]})
    assert story.lanes == [0, 1, 0, 1, 1, 1]


def test_an_empty_cluster_keeps_its_centre_and_clients_may_come_back_to_it():
    story = two_clusters(threshold=NEVER)
    story.drift({client: [0, 1, 0] for client in (0, 1, 2)})
    assert story.lanes == [1] * 6
    # (0, .45, .55) is 1.1 from (0, 1, 0), 2 from the empty cluster's (1, 0, 0), and 1 from a centre of zeros.
    story.drift({4: [0.9, 0.1, 0], 5: [0, 0.45, 0.55]})
    assert story.lanes == [1, 1, 1, 1, 0, 1]


def test_an_empty_cluster_gets_no_participants():
    before, after = one_hot(0, 0, 1, 1, of=2), one_hot(1, 1, 1, 1, of=2)
    played = Population(
        FakeExecutor([1, 1, 0.5, 0.5], pull=1.0),
        stream=FakeStream([before, after]),
        clusterer=Fielding(FieldingSettings(trigger={"threshold": NEVER})),
        participants=2,
        rounds=2,
    ).play()
    first, second = played.records
    assert first.members.tolist() == [0, 0, 1, 1]
    assert second.members.tolist() == [1, 1, 1, 1]
    assert second.clusters == [0, 1]
    assert second.moved == 2
    assert len(second.participants) == 2
    assert [wave.model.tolist() for wave in played.executor.waves] == [[0, 1], [1, 1]]
    assert played.models[0] == [1.0]  # as the first round left it


def test_the_threshold_is_a_share_of_the_mean_distance_of_the_new_centres():
    # Three clusters of two on three labels, distances 2, 2, 2. Client 1 becomes (0, 0.6, 0.4): nearest to
    # the second centre (.8; third 1.2). First centre stays (1, 0, 0), the second goes from (0, 1, 0) to the
    # mean of three, (0, 2.6/3, .4/3): a shift of .8/3 = .2667. Distances 2, 2 and 2 - .8/3: a mean of 1.9111.
    # Border: .2667 / 1.9111 = 0.13953 (of the old centres it would be 0.13333, of the largest 0.13333, of
    # the smallest 0.15385).
    reports = one_hot(0, 0, 1, 1, 2, 2, of=3)
    for threshold, reclustered in ((0.139, True), (0.140, False)):
        story = Story(reports, threshold=threshold)
        assert story.lanes == [0, 0, 1, 1, 2, 2]
        assignment = story.drift({1: [0, 0.6, 0.4]})
        assert assignment is not None
        assert assignment.reclustered is reclustered


def test_one_centre_is_enough_to_recluster_everybody():
    # The first centre moves by 2/3 (one of three goes to label 2), the second by nothing: a mean of shifts
    # would be 1/3. Distance 2. Threshold .25 x 2 = .5.
    assignment = two_clusters(threshold=0.25).drift({0: [0, 0, 1]})
    assert assignment is not None
    assert assignment.reclustered
    # Client 0 was equally far from both, moved to (stayed in) the first cluster, and comes from there.
    assert assignment.lane_of_client.tolist() == [0, 1, 1, 2, 2, 2]
    assert assignment.mixing.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert assignment.successor.tolist() == [1, 2]


def test_models_may_start_anew_at_a_reclustering_but_not_as_clients_move():
    settings = {"threshold": 0.25, "reclustered_init": "initial"}
    assignment = two_clusters(**settings).drift({0: [0, 0, 1]})
    assert assignment is not None
    assert assignment.lane_of_client.tolist() == [0, 1, 1, 2, 2, 2]
    assert assignment.mixing.tolist() == [[0, 0, 1]] * 3
    assert len(assignment.extra) == 1
    moved = two_clusters(**settings).drift({1: [0.45, 0.55, 0]})
    assert moved is not None
    assert moved.mixing.tolist() == [[1, 0], [0, 1]]


# -- the trigger in the log ------------------------------------------------------------------------------


def test_every_drift_evaluates_the_trigger_and_logs_what_it_compared():
    # As above: a shift of 2/3 between centres that are 2 apart.
    for threshold, fired in ((1 / 3, True), (0.34, False), ("never", False), (0, True)):
        story = two_clusters(threshold=threshold)
        story.drift({0: [0, 0, 1]})
        [trigger] = story.triggers
        assert trigger.shift == pytest.approx(2 / 3)
        assert trigger.mean_distance == pytest.approx(2)
        assert trigger.threshold == (None if threshold == "never" else threshold)
        assert (trigger.clusters, trigger.fired) == (2, fired)
        assert story.drift({}) is None
        assert len(story.triggers) == 1  # no client drifted, so no trigger was evaluated


def test_the_first_clustering_evaluates_no_trigger():
    assert two_clusters().triggers == []


def test_a_drift_that_moves_nobody_is_logged_too():
    story = two_clusters()
    assert story.drift({5: [0, 0.7, 0.3]}) is None
    [trigger] = story.triggers
    assert trigger.shift == pytest.approx(0.2)
    assert not trigger.fired


def test_a_shift_from_the_last_global_clustering_is_what_adds_up():
    story = two_clusters(shift_from="last_global")
    slow_drift(story, 3)
    assert [trigger.shift for trigger in story.triggers] == pytest.approx([0.1, 0.2, 0.3])
    story = two_clusters()
    slow_drift(story, 3)
    assert [trigger.shift for trigger in story.triggers] == pytest.approx([0.1, 0.1, 0.1])


def test_a_single_centre_has_no_distance_to_another():
    story = Story(one_hot(0, 0, 0, 0, of=2))
    story.drift({client: [0, 1] for client in range(4)})
    story.drift({3: [1, 0]})
    assert story.triggers == [Trigger(2.0, None, 1 / 3, 1, False), Trigger(0.5, None, 1 / 3, 1, True)]


def test_the_log_of_a_run_states_why_clients_were_not_reclustered():
    quiet, slight, large = one_hot(0, 0, 1, 1, of=4), one_hot(0, 0, 1, 1, of=4), one_hot(0, 2, 1, 3, of=4)
    slight[3] = [0, 0.9, 0.1, 0]
    records = (
        Population(
            FakeExecutor([1.0] * 4),
            stream=FakeStream([quiet, quiet, slight, large]),
            clusterer=Fielding(FieldingSettings(max_clusters=3)),
            rounds=4,
        )
        .play()
        .records
    )
    assert [record.trigger is not None for record in records] == [False, False, True, True]
    assert [record.silhouettes is not None for record in records] == [True, False, False, True]
    assert records[0].silhouettes == {}  # two different reports
    silent, fired = records[2].trigger, records[3].trigger
    assert (silent.fired, silent.clusters, records[2].reclustered) == (False, 2, False)
    assert silent.shift == pytest.approx(0.1)
    assert silent.mean_distance == pytest.approx(2.0)
    assert (fired.fired, fired.clusters, records[3].reclustered) == (True, 2, True)
    assert list(records[3].silhouettes) == [2, 3]


def slow_drift(story: Story, steps: int) -> list[int]:
    """Clients 3 to 5 go from label 1 to label 2 by 1/20 a drift; returns the drifts that re-clustered."""
    fired = []
    for step in range(1, steps + 1):
        report = [0, 1 - step / 20, step / 20]
        assignment = story.drift(dict.fromkeys((3, 4, 5), report))
        if assignment is not None and assignment.reclustered:
            fired.append(step)
    return fired


def test_slow_drift_never_adds_up_from_the_previous_centres():
    # Every step moves the second centre by 0.1; the threshold is a third of 2.
    assert slow_drift(two_clusters(), 20) == []


def test_slow_drift_adds_up_from_the_last_global_clustering():
    # Shifts add up to 0.6 after 6 steps and 0.7 > 2/3 after 7; then they are measured from there: 14.
    assert slow_drift(two_clusters(shift_from="last_global"), 20) == [7, 14]


def test_moves_without_a_reclustering_leave_last_global_where_it_was():
    # Client 2 goes over to the second cluster and back, which moves no centre; then the slow drift begins.
    story = two_clusters(shift_from="last_global", threshold=0.3)
    assert story.drift({2: [0, 1, 0]}) is not None
    assert story.lanes == [0, 0, 1, 1, 1, 1]
    assert story.drift({2: [1, 0, 0]}) is not None
    assert story.lanes == [0, 0, 0, 1, 1, 1]
    assert slow_drift(story, 6) == [6]  # 0.6 >= 0.3 x 2


@pytest.mark.parametrize("shift_from", ["previous", "last_global"])
def test_a_threshold_of_never_follows_every_drift_by_moves(shift_from):
    story = two_clusters(threshold="never", shift_from=shift_from)
    turned = story.drift({0: [0, 1, 0], 1: [0, 1, 0], 2: [0, 1, 0], 3: [1, 0, 0], 4: [1, 0, 0], 5: [1, 0, 0]})
    assert turned is not None
    assert not turned.reclustered
    assert story.lanes == [1, 1, 1, 0, 0, 0]
    last = story.drift({client: [0, 0, 1] for client in range(6)})
    assert last is None or not last.reclustered
    assert len(set(story.lanes)) <= 2


def test_a_single_cluster_stays_one_if_the_threshold_is_never():
    story = Story(one_hot(0, 0, 0, 0, of=2), threshold="never")
    assert story.drift({3: [0, 1]}) is None
    assert story.lanes == [0] * 4


def test_a_threshold_of_zero_reclusters_at_every_drift_even_of_a_report_that_is_what_it_was():
    story = two_clusters(threshold=0)
    for _ in range(3):
        assignment = story.drift({0: [1, 0, 0]})
        assert assignment is not None
        assert assignment.reclustered
    assert story.drift({}) is None


def test_clients_can_begin_in_more_clusters_than_stand_out():
    # Two clear groups, in each of which no two report the same.
    reports = [[1 - client / 100, client / 100, 0] for client in range(4)]
    reports += [[0, client / 100, 1 - client / 100] for client in range(4)]
    assert max(Story(reports).lanes) == 1
    assert max(Story(reports, min_clusters=6).lanes) == 5


@pytest.mark.parametrize("shift_from", ["previous", "last_global"])
def test_a_single_cluster_is_split_as_soon_as_reports_differ(shift_from):
    story = Story(one_hot(0, 0, 0, 0, of=2), shift_from=shift_from, threshold=NEVER)
    assert story.lanes == [0] * 4
    assignment = story.drift({3: [0, 1]})
    assert assignment is not None
    assert assignment.reclustered
    assert story.lanes == [0, 0, 0, 1]


def test_a_single_cluster_is_split_even_if_its_centre_stays():
    # (1/2, 1/2) for all; then two clients part to either side, and the mean is what it was.
    story = Story([[0.5, 0.5]] * 4)
    assignment = story.drift({0: [1, 0], 3: [0, 1]})
    assert assignment is not None
    assert assignment.reclustered


def test_a_single_cluster_that_drifts_as_one_stays_as_it_is():
    story = Story(one_hot(0, 0, 0, of=2))
    assert story.drift({client: [0, 1] for client in range(3)}) is None


def test_a_reclustering_takes_in_everybody_also_those_that_did_not_drift():
    story = two_clusters()
    # Five of six leave; only client 0 did not drift, and is clustered with the rest.
    assignment = story.drift({1: [0, 0, 1], 2: [0, 0, 1], 3: [1, 0, 0], 4: [0, 0, 1], 5: [1, 0, 0]})
    assert assignment is not None
    assert assignment.reclustered
    assert story.lanes == [0, 1, 1, 0, 1, 0]


def test_after_a_reclustering_clients_move_among_the_new_centres():
    story = two_clusters()
    story.drift({1: [0, 0, 1], 2: [0, 0, 1], 3: [1, 0, 0], 4: [0, 0, 1], 5: [1, 0, 0]})
    assignment = story.drift({0: [0.1, 0, 0.9]})
    assert assignment is not None
    assert story.lanes[0] == story.lanes[1]


def test_a_global_clustering_reports_how_many_clients_it_rests_on_and_a_move_does_not():
    story = Story(one_hot(*[0, 1] * 6, of=3), kmeans_clients=10, silhouette_clients=11)
    assert story.assignment is not None
    assert story.assignment.fitted == Fit(10, 11, {})
    move = story.drift({0: [0, 1, 0]})
    assert move is not None
    assert move.fitted is None
    reclustered = story.drift({client: [0, 0, 1] for client in range(6)})
    assert reclustered is not None
    assert reclustered.reclustered
    assert reclustered.fitted is not None
    assert (reclustered.fitted.kmeans_clients, reclustered.fitted.silhouette_clients) == (10, 11)
    assert list(reclustered.fitted.silhouettes) == [2, 3]


def test_the_reports_it_sees_are_not_written_to():
    clusterer = Fielding(FieldingSettings())
    reports = one_hot(0, 0, 1, 1, of=2)
    reports.flags.writeable = False
    first = clusterer.on_data(a_view(reports))
    assert first is not None
    members = first.members.copy()
    clusterer.on_data(a_view(reports[::-1], drifted=[0, 1, 2, 3], assignment=first))
    assert first.members.tolist() == members.tolist()


def test_a_first_assignment_starts_from_the_initialisation_that_all_methods_share():
    assignment = Fielding(FieldingSettings()).on_data(a_view(one_hot(0, 1, 0, of=2)))
    assert assignment is not None
    assert (assignment.mixing @ assignment.extra).tolist() == [[0, 0], [0, 0]]
    assert assignment.members.tolist() == [[0], [1], [0]]
    assert assignment.successor.tolist() == []


# -- distances, other triggers, and averages at every drift ----------------------------------------------


def test_the_trigger_by_pairs_reclusters_when_two_members_are_farther_apart_than_its_limit():
    story = two_clusters(trigger={"kind": "pairwise", "delta": 0.5, "rule": "fixed"})
    assert story.drift({0: [0.75, 0.25, 0]}) is None
    reclustered = story.drift({0: [0.625, 0.375, 0]})
    assert reclustered is not None
    assert reclustered.reclustered
    assert story.triggers == [PairwiseTrigger(0.5, 0.5, 2, False), PairwiseTrigger(0.75, 0.5, 2, True)]


def test_the_limit_of_a_trigger_by_pairs_is_stored_with_the_clusterer():
    settings = FieldingSettings(trigger={"kind": "pairwise", "delta": 0.5})
    story = two_clusters(trigger={"kind": "pairwise", "delta": 0.5})
    for share in (0.5, 0.0):
        story.drift({0: [share, 1 - share, 0], 3: [1 - share, share, 0]})
    again = Fielding(settings)
    again.restore(story.clusterer.state())
    assert again.state() == story.clusterer.state()
    assert again.state()["_trigger"] == story.clusterer.state()["_trigger"]


def test_a_state_without_that_of_a_trigger_is_refused():
    state = two_clusters().clusterer.state()
    del state["_trigger"]
    with pytest.raises(ValueError, match="state of Fielding"):
        Fielding(FieldingSettings()).restore(state)


def test_the_distance_of_the_reports_is_used_unless_the_clusterer_has_its_own():
    # (.5, .5, 0, 0, 0) is nearer to (1, 0, 0, 0, 0) in L1, and to (.2, .2, .2, .2, .2) in Euclidean space.
    for settings, lane in (({}, 0), ({"distance": "euclidean"}, 2), ({"distance": "l1"}, 0)):
        story = Story(
            [[1, 0, 0, 0, 0]] * 2 + [[0, 0, 0, 0, 1]] * 2 + [[0.2] * 5] * 2, threshold=NEVER, **settings
        )
        assert story.lanes == [0, 0, 1, 1, 2, 2]
        story.drift({2: [0.5, 0.5, 0, 0, 0]})
        assert story.lanes[2] == lane


def test_in_the_cosine_a_report_that_only_grew_has_moved_no_centre():
    story = two_clusters(distance="cosine")
    story.drift({0: [7, 0, 0]})
    story.drift({0: [7, 7, 0]})
    assert story.triggers[0].shift == 0
    # Unit rows (.7071, .7071, 0), (1, 0, 0) and (1, 0, 0), with the mean (2.7071, .7071, 0) / 3.
    assert story.triggers[1].shift == pytest.approx(1 - np.cos(np.arctan(np.sqrt(0.5) / (2 + np.sqrt(0.5)))))


def test_averaging_at_every_drift_mixes_the_models_that_members_had():
    story = two_clusters(threshold=NEVER, average="every_drift")
    assignment = story.drift({0: [0, 1, 0]})
    assert assignment is not None
    assert assignment.mixing.tolist() == [[1, 0], [0.25, 0.75]]
    assert assignment.successor.tolist() == [0, 1]
    assert not assignment.reclustered
    assert story.drift({0: [0, 0.9, 0.1]}) is None  # nobody moved: every mean is the model itself


def test_a_model_that_lost_its_members_is_averaged_with_nothing():
    story = two_clusters(threshold=NEVER, average="every_drift")
    assignment = story.drift({client: [0, 1, 0] for client in (0, 1, 2)})
    assert assignment is not None
    assert assignment.mixing.tolist() == [[1, 0], [0.5, 0.5]]


def test_a_reclustering_averages_the_models_of_before_the_moves_only_if_every_drift_does():
    # Client 0 moves to the second cluster before all are re-clustered as {0, 3, 4, 5} and {1, 2}.
    for average, mixing in (("every_drift", [[0.25, 0.75], [1, 0]]), ("reclustering", [[0, 1], [1, 0]])):
        assignment = two_clusters(threshold=0, average=average).drift({0: [0, 1, 0]})
        assert assignment is not None
        assert assignment.lane_of_client.tolist() == [0, 1, 1, 0, 0, 0]
        assert assignment.mixing.tolist() == mixing


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("threshold", 0.25, "0.25"),
        ("threshold", "never", '"never"'),
        ("shift_from", "previous", '"previous"'),
    ],
)
def test_a_setting_of_the_trigger_beside_it_says_where_it_belongs(key, value, written):
    wanted = (
        f'{key} is a setting of the trigger; write trigger = {{ kind = "centre_shift", {key} = {written} }}'
    )
    with pytest.raises(ValueError, match=re.escape(wanted)):
        FieldingSettings(**{key: value})


def test_a_trigger_without_a_kind_is_the_published_one():
    one, other = ({"threshold": 0.5}, {"kind": "centre_shift", "threshold": 0.5})
    assert FieldingSettings(trigger=one) == FieldingSettings(trigger=other)
    assert FieldingSettings() == FieldingSettings(trigger="centre_shift")


@pytest.mark.parametrize("trigger", ["learned", {"kind": "learned", "keep_events": 2}])
def test_a_setting_of_another_trigger_than_the_one_named_is_refused_without_replacing_it(trigger):
    problem = (
        "threshold is a setting of the trigger centre_shift, and the trigger is 'learned', which has its own"
    )
    with pytest.raises(ValueError, match=problem):
        FieldingSettings(trigger=trigger, threshold=0.5)
