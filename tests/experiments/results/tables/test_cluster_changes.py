"""Four clients in three data steps of two rounds, with changes and losses worked out by hand."""

import re

import numpy as np
import pytest

from experiments.results.pages import write_report
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.cluster_changes import (
    accuracy_losses_pp,
    dips_pp,
    num_replaced,
    says_something,
    share_that_changes,
)
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import TIMING, a_directory, a_record, store


def a_round(number, members=None, accuracy=0.5, **changes):
    """Round `number`, of which two make a data step; `members` are the clusters, if they change."""
    clusters = None if members is None else np.array(members)
    return a_record(number, step=number // 2, members=clusters, accuracy=accuracy, **changes)


def two_moves_and_a_reclustering(**changes):
    """Client 3 moves to and fro in step 0; in step 1 one client moves, in step 2 all but one change."""
    return [
        a_round(0, [0, 0, 1, 0], 0.5, **changes),
        a_round(1, [0, 0, 1, 1], 0.75, moved=1, **changes),
        a_round(2, [0, 1, 1, 1], 0.5, moved=1, **changes),
        a_round(3, None, 0.625, **changes),
        a_round(4, [2, 2, 0, 0], 0.125, reclustered=True, **changes),
        a_round(5, [2, 1, 0, 0], 0.5, moved=1, **changes),
    ]


def test_clients_change_cluster_from_the_end_of_one_step_to_the_end_of_the_next():
    # Ends of steps: 0011, 0111, 2100. One of four clients has changed, then three of four.
    assert share_that_changes(two_moves_and_a_reclustering()) == (1 / 4 + 3 / 4) / 2


def test_a_client_that_returns_within_a_step_has_not_changed():
    records = [a_round(0, [0, 0]), a_round(1), a_round(2, [0, 1]), a_round(3, [0, 0])]
    assert share_that_changes(records) == 0.0


def test_a_client_that_begins_or_ceases_to_hold_data_has_not_changed_and_does_not_count():
    # Of the three clients in a cluster before and after, one has changed; then of two, none.
    records = [a_round(0, [0, 0, 1, -1]), a_round(2, [0, 1, 1, 1]), a_round(4, [0, -1, -1, 1])]
    assert share_that_changes(records) == (1 / 3 + 0) / 2
    assert share_that_changes([a_round(0, [0, -1]), a_round(2, [-1, 0])]) is None


def test_a_reclustering_replaces_no_model_of_a_client_that_holds_no_data():
    assert num_replaced([a_round(0, [0, -1, 1], reclustered=True)]) == 2


def test_one_data_step_and_a_log_without_clusters_have_no_share():
    assert share_that_changes([a_round(0, [0, 1]), a_round(1, [1, 1])]) is None
    assert share_that_changes([a_round(number) for number in range(6)]) is None


def test_accuracy_lost_is_between_the_evaluations_on_both_sides_of_a_data_step():
    assert accuracy_losses_pp(two_moves_and_a_reclustering()) == [25.0, 50.0]
    # Round 2 is not evaluated: the first evaluation of step 1 is that of round 3, where accuracy has risen.
    records = [a_round(0, accuracy=0.25), a_round(1, accuracy=0.5), a_round(2, accuracy=None)]
    assert accuracy_losses_pp([*records, a_round(3, accuracy=0.625)]) == [-12.5]


def test_steps_between_the_same_two_evaluations_are_one_loss():
    unevaluated = [a_round(number, accuracy=None) for number in range(1, 5)]
    assert accuracy_losses_pp([a_round(0, accuracy=0.75), *unevaluated, a_round(5, accuracy=0.5)]) == [25.0]


def evaluated(accuracies, reclustered=()):
    """A round for each accuracy, in percent; None is a round that is not evaluated."""
    shares = [None if percent is None else percent / 100 for percent in accuracies]
    return [
        a_round(number, accuracy=share, reclustered=number in reclustered)
        for number, share in enumerate(shares)
    ]


@pytest.mark.parametrize(
    ("accuracies", "round_", "dip"),
    [
        ([80, 70, 75, 60, *[90] * 7], 1, -20),  # the lowest of rounds 1 to 10 is that of round 3
        ([80, *[90] * 10], 1, 10),  # it only rises: positive
        ([60, 80, *[90] * 9, 85, 50], 2, 5),  # of rounds 2 to 11: round 12 is beyond the ten
        ([80, None, None, *[75] * 9, 70], 2, -10),  # rounds that are not evaluated do not count
        ([80, *[75] * 9], 1, None),  # nine are left
        ([80] * 20, 0, None),  # no evaluation before
        ([None, *[80] * 19], 1, None),
    ],
)
def test_a_dip_is_the_lowest_of_the_next_ten_evaluations_minus_the_last_before(accuracies, round_, dip):
    assert dips_pp(evaluated(accuracies), [round_]) == [None if dip is None else pytest.approx(dip)]


def test_the_dip_of_an_arm_is_over_its_reclusterings_and_beside_it_that_of_the_reference_in_the_same_rounds():
    # Rounds 1, 3 and 5 re-cluster. After round 1: 60 - 80; after round 3, within the same ten: 60 - 90; fewer
    # than ten are left after round 5. The reference falls by 5, and by nothing.
    accuracies = [80, 70, 90, 70, 60, 90, 90, 90, 90, 90, 90, 90, 90]
    base, row = a_summary(
        moves=evaluated([80, *[75] * 12]), always=evaluated(accuracies, reclustered=(1, 3, 5))
    ).rows
    assert row["reclustering_dip_pp"].mean == pytest.approx((-20 - 30) / 2)
    assert row["reclustering_dip_difference_pp"].mean == pytest.approx((-20 + 5 - 30) / 2)
    assert (base["reclustering_dip_pp"].mean, base["reclustering_dip_difference_pp"]) == (None, None)


def test_the_dip_of_an_arm_is_over_the_seeds_that_were_clustered_anew():
    dips = {0: evaluated([80, 70, *[90] * 9], reclustered=(1,)), 1: evaluated([80] * 11)}
    runs = [ReportedRun("moves", seed, {}, evaluated([80] * 11), TIMING) for seed in dips]
    runs += [ReportedRun("fielding", seed, {}, records, TIMING) for seed, records in dips.items()]
    _, row = summarise(runs, name="x", window=1, reference_arm="moves").rows
    for key in ("reclustering_dip_pp", "reclustering_dip_difference_pp"):
        assert row[key].mean == pytest.approx(-10)
        assert row[key].per_seed == [pytest.approx(-10), None]


def test_a_move_replaces_one_model_and_a_reclustering_those_of_all_clients():
    assert num_replaced(two_moves_and_a_reclustering()) == 1 + 1 + 4 + 1
    assert num_replaced([a_round(0, moved=3)]) == 3
    assert num_replaced([a_round(0, reclustered=True)]) is None


def a_summary(**arms):
    """The summary of a run for each arm, with seed 0 and these records; the first is the reference arm."""
    runs = [ReportedRun(arm, 0, {}, records, TIMING) for arm, records in arms.items()]
    return summarise(runs, name="x", window=1, reference_arm=next(iter(arms)))


def test_the_row_of_an_arm_has_mean_and_largest_loss_and_the_difference_from_the_reference():
    flat = [a_round(number, [0, 0, 0, 0] if number == 0 else None) for number in range(6)]
    base, row = a_summary(**{"global": flat, "fielding": two_moves_and_a_reclustering()}).rows
    assert (base["changed_cluster"].mean, base["accuracy_lost_pp"].mean, base["models_replaced"].mean) == (
        0,
        0,
        0,
    )
    assert base["accuracy_lost_difference_pp"] is None
    assert (row["accuracy_lost_pp"].mean, row["largest_loss_pp"].mean) == (37.5, 50.0)
    assert row["accuracy_lost_difference_pp"].per_seed == [37.5]
    assert row["clustering_wall_s"].per_seed == [TIMING.cluster_s]


def test_nothing_after_the_horizon_counts():
    run = ReportedRun("fielding", 0, {}, two_moves_and_a_reclustering(), TIMING)
    summary = summarise([run], name="x", window=1, reference_arm="fielding", horizon_s=40.0)
    (row,) = summary.rows
    assert (row["changed_cluster"].mean, row["models_replaced"].mean) == (0.25, 2)
    assert (row["accuracy_lost_pp"].mean, row["largest_loss_pp"].mean) == (25.0, 25.0)


def static():
    """Four clients in two clusters that never change."""
    return [a_round(number, [0, 0, 1, 1] if number == 0 else None, clusters=[0, 1]) for number in range(6)]


@pytest.mark.slow
def test_the_page_has_the_table_with_its_note(tmp_path):
    directory = a_directory(tmp_path, ["static", "fielding"], [0])
    for arm, records in (("static", static()), ("fielding", two_moves_and_a_reclustering(clusters=[0, 1]))):
        store(directory, ReportedRun(arm, 0, {}, records, TIMING))
    page = write_report(directory).read_text(encoding="utf-8")
    section = page[page.index('<section id="cluster-changes">') :]
    cells = re.findall("<td>(.*?)</td>", section[: section.index("</table>")])
    assert cells[:6] == ["0.0 %", "+0.0 pp", "reference", "+0.0 pp", "0.0", "0.10 s"]
    assert cells[6:] == ["50.0 %", "+37.5 pp", "+37.5 pp", "+50.0 pp", "7.0", "0.10 s"]
    assert "costs no byte and no virtual second in this emulator" in section


def test_the_table_is_shown_where_several_arms_cluster_and_a_client_changes():
    single = [a_round(number, [0, 0, 0, 0] if number == 0 else None) for number in range(6)]
    moving = two_moves_and_a_reclustering(clusters=[0, 1])
    assert not says_something(a_summary(**{"global": single, "fielding": moving}))
    assert not says_something(a_summary(static=static(), other=static()))
    assert says_something(a_summary(static=static(), fielding=moving))
