"""Gains over the best baseline, gains of clusters at the same adaptation, and the gap closed, by hand."""

import math

import numpy as np
import pytest

from experiments.results.reading.configured_arms import configured_arms
from experiments.results.statistics.comparisons import Compared, Run, comparisons
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables.accuracy import TABLE as ACCURACY
from experiments.results.tables.baselines import IN_ACCURACY, TABLE
from experiments.results.tables.costs import TRAINED_SAMPLES
from experiments.results.tables.summary import measure, summarise
from experiments.results.tables.table import text_table
from tests.experiments.synthetic_runs import a_run

T, T_JOINT = 4.302653, 8.860234
"""Student's t with two degrees of freedom: of 95 %, and of 95 % for four comparisons at once."""

HALF = T * 2 / math.sqrt(3)
"""Half the interval of the mean of 2, 4 and 6."""

TUNED = {"kind": "tuned", "steps": 5}


def an_arm(name, clusterer="single", **keys):
    return {"name": name, "clusterer": {"kind": clusterer}, "solver": [{"kind": "sgd"}], **keys}


PLAIN = an_arm("global", baseline=True)
ADAPTED = an_arm("tuned", adaptation=TUNED, baseline=True)
FIELDING = an_arm("fielding", "fielding", adaptation={"kind": "none"})
BOTH = an_arm("both", "fielding", adaptation=TUNED)
ORACLE = an_arm("oracle", "oracle", adaptation=TUNED)

ACCURACIES = {
    "global": (0.50, 0.50, 0.50),
    "tuned": (0.52, 0.60, 0.53),  # the best: 0.55 on average
    "fielding": (0.52, 0.54, 0.56),
    "both": (0.54, 0.64, 0.59),
    "oracle": (0.62, 0.70, 0.63),
}


def runs_of(arms, accuracies):
    """The runs of these arms, whose accuracy in each seed is that of `ACCURACIES` but for `accuracies`."""
    return [
        a_run(arm["name"], seed, [value, value])
        for arm in arms
        for seed, value in enumerate({**ACCURACIES, **accuracies}[arm["name"]])
        if value is not None
    ]


def a_summary(*arms, **accuracies):
    """The summary of these runs."""
    return summarise(
        runs_of(arms, accuracies),
        name="x",
        window=1,
        reference_arm=arms[0]["name"],
        configured=configured_arms({"arm": arms}),
    )


def rows_of(*arms, **accuracies):
    return {row.arm: row for row in a_summary(*arms, **accuracies).rows}


BEST, CLUSTERS, GAP, TRAINED = (
    "over the best without clusters",
    "clusters, same adaptation",
    "gap closed",
    "samples trained per client",
)


def headings_of(summary, table=TABLE):
    return text_table(table.shown_columns(summary), summary.rows).headings


def cell(summary, arm, heading):
    """The text of a cell."""
    table = text_table(TABLE.shown_columns(summary), summary.rows)
    return " ".join(dict(table.rows)[arm][table.headings.index(heading)].lines)


ALL = (PLAIN, ADAPTED, FIELDING, BOTH, ORACLE)


def test_the_best_baseline_is_that_of_the_highest_mean_and_gains_over_it_are_paired_by_seed():
    rows = rows_of(*ALL)
    gain = rows["both"]["gain_over_best_pp"]
    assert gain.over == "tuned"
    assert gain.per_seed == pytest.approx([2, 4, 6])
    assert (gain.mean, *gain.ci95) == pytest.approx((4, 4 - HALF, 4 + HALF), abs=1e-4)
    joint = T_JOINT * 2 / math.sqrt(3)
    assert gain.ci95_joint == pytest.approx((4 - joint, 4 + joint), abs=1e-3)
    assert rows["fielding"]["gain_over_best_pp"].per_seed == pytest.approx([0, -6, 3])
    assert rows["global"]["gain_over_best_pp"].per_seed == pytest.approx([-2, -10, -3])
    assert rows["tuned"]["gain_over_best_pp"] is None
    assert gain.as_json()["over"] == "tuned"


def test_what_clusters_add_is_beside_the_one_model_arm_with_the_same_adaptation():
    rows = rows_of(*ALL)
    found = {arm: rows[arm]["gain_of_clusters_pp"] for arm in ("fielding", "both", "oracle")}
    assert {arm: gain.over for arm, gain in found.items()} == {
        "fielding": "global",
        "both": "tuned",
        "oracle": "tuned",
    }
    assert found["fielding"].per_seed == pytest.approx([2, 4, 6])
    assert rows["global"]["gain_of_clusters_pp"] is rows["tuned"]["gain_of_clusters_pp"] is None


@pytest.mark.parametrize(
    ("arms", "over"),
    [
        ((PLAIN, BOTH), None),  # no one-model arm has that adaptation
        ((PLAIN, {**FIELDING, "solver": [{"kind": "fedprox"}]}), None),
        ((PLAIN, {**FIELDING, "training": {"local_steps": 1}}), None),
        ((PLAIN, {**PLAIN, "name": "tuned", "detectors": {}}, FIELDING), None),  # two are alike
        ((PLAIN, {**PLAIN, "name": "tuned", "memory": {"kind": "claimed"}}, FIELDING), "global"),
        ((PLAIN, {**FIELDING, "representation": {"kind": "embedding"}, "detectors": {}}), "global"),
    ],
)
def test_without_exactly_one_arm_that_differs_in_clusters_alone_they_add_nothing_known(arms, over):
    gain = a_summary(*arms).rows[-1]["gain_of_clusters_pp"]
    assert gain.over == over
    assert (gain.mean is None) == (over is None)


def test_the_gap_closed_is_a_share_of_that_between_the_best_and_the_oracle_seed_by_seed():
    rows = rows_of(*ALL)
    closed = rows["both"]["gap_closed"]  # the oracle is 10 pp above the best in each seed
    assert closed.per_seed == pytest.approx([0.2, 0.4, 0.6])
    assert (closed.mean, *closed.ci95) == pytest.approx((0.4, 0.4 - HALF / 10, 0.4 + HALF / 10), abs=1e-5)
    assert rows["tuned"]["gap_closed"] is rows["oracle"]["gap_closed"] is None
    assert rows["global"]["gap_closed"] is None


@pytest.mark.parametrize(
    "oracle",
    [
        (0.53, 0.60, 0.52),
        (0.62, 0.61, 0.54),
        (0.62, 0.70, None),
        (0.52, 0.70, 0.63),
    ],  # gaps 1, 0, -1; 10, 1, 1; under three seeds; 0 in one seed
)
def test_a_gap_that_is_not_shown_to_be_above_0_cannot_be_closed(oracle):
    closed = rows_of(*ALL, oracle=oracle)["both"]["gap_closed"]
    assert (closed.mean, closed.per_seed) == (None, [None] * 3)


def test_one_seed_in_which_the_oracle_is_no_better_than_the_best_leaves_the_gap_unmeasured():
    # Gaps of 10, 10, 10, 10, 9 and then of 10, ..., -0.1 pp: both intervals are above 0.
    best, others = (0.5,) * 6, {"global": (0.4,) * 6, "fielding": (0.55,) * 6, "both": (0.55,) * 6}
    shown = rows_of(*ALL, tuned=best, oracle=(0.6,) * 5 + (0.59,), **others)["both"]["gap_closed"]
    assert shown.mean == pytest.approx((5 * 0.5 + 5 / 9) / 6)
    summary = a_summary(*ALL, tuned=best, oracle=(0.6,) * 5 + (0.499,), **others)
    assert summary.rows[-1]["gain_over_best_pp"].ci95[0] > 0
    assert summary.rows[3]["gap_closed"].mean is None
    assert "n/a unless oracle - tuned is above 0 in every seed and in its whole interval." in TABLE.note(
        summary
    )


def test_without_an_oracle_there_is_no_gap_and_no_column_of_it():
    summary = a_summary(PLAIN, FIELDING)
    assert [row["gap_closed"] for row in summary.rows] == [None, None]
    assert headings_of(summary) == [BEST, CLUSTERS, TRAINED]


def test_of_several_oracles_and_of_equal_baselines_the_highest_and_the_first_count():
    rows = rows_of(
        *ALL, an_arm("other", "oracle"), other=(0.72, 0.80, 0.73), **{"global": ACCURACIES["tuned"]}
    )
    assert rows["both"]["gain_over_best_pp"].over == "global"
    assert rows["both"]["gap_closed"].per_seed == pytest.approx([0.1, 0.2, 0.3])
    assert rows["oracle"]["gap_closed"].per_seed == pytest.approx([0.5] * 3)


def test_the_note_names_all_oracles_and_those_that_are_not_finished():
    other, third = an_arm("other", "oracle"), an_arm("third", "oracle")
    note = TABLE.note(a_summary(*ALL, other, third, other=(0.72, 0.80, 0.73), third=(None,) * 3))
    assert "Gap closed is (arm - tuned) / (other - tuned), seed by seed" in note
    assert (
        " other has the highest mean accuracy of oracle, other over the 3 seeds that all of them have. Of "
        "the oracles, third has finished no seed in common with the first arm. " in note
    )


def test_seeds_that_one_of_the_two_has_not_finished_do_not_count():
    # The best is chosen on seeds 0 and 1, which both baselines have: 0.56 against 0.5.
    rows = rows_of(PLAIN, ADAPTED, FIELDING, tuned=(0.52, 0.60, None), **{"global": (0.5, 0.5, 0.9)})
    gain = rows["fielding"]["gain_over_best_pp"]
    assert gain.over == "tuned"
    assert gain.per_seed == [pytest.approx(0), pytest.approx(-6), None]
    assert (gain.mean, gain.ci95) == (pytest.approx(-3), None)
    assert rows["fielding"]["gain_of_clusters_pp"].mean == pytest.approx((2 + 4 - 34) / 3)


def test_without_a_seed_of_all_baselines_none_is_the_best():
    summary = a_summary(PLAIN, ADAPTED, an_arm("prior", baseline=True), tuned=(0.5, None), prior=(None, 0.5))
    assert [row["gain_over_best_pp"].mean for row in summary.rows] == [None] * 3
    assert TABLE.note(summary).startswith(
        "Which arm is the best without clusters is not known: no seed is finished in all of global, tuned, "
        "prior."
    )


@pytest.mark.parametrize(
    ("tuned", "chosen"),
    [
        ((0.6, 0.6, 0.6), "is tuned, with the highest mean accuracy of global, tuned over the 3 seeds that"),
        (
            (0.6, 0.6, None),
            "is tuned, with the highest mean accuracy of global, tuned over only 2 seeds that",
        ),
        (
            (0.6, None, None),
            "is tuned, with the highest mean accuracy of global, tuned in the only seed that",
        ),
    ],
)
def test_the_note_says_by_which_seeds_the_best_is_chosen(tuned, chosen):
    note = TABLE.note(a_summary(PLAIN, ADAPTED, FIELDING, tuned=tuned))
    assert note.startswith(f"The best without clusters {chosen} all of them have.")


def test_a_baseline_that_was_not_asked_for_is_not_called_unfinished():
    configured = configured_arms({"arm": [*ALL, an_arm("prior", baseline=True)]})
    known = {"reference_arm": "global", "configured": configured, "left_out": ["prior", "tuned"]}
    runs = runs_of(ALL, {"tuned": (None,) * 3})
    assert TABLE.note(summarise(runs, name="x", window=1, **known)).startswith(
        "The best without clusters of those finished is global; tuned, prior were not asked for."
    )


def test_a_baseline_without_a_finished_seed_is_named_and_the_best_is_that_of_those_finished():
    of_two = a_summary(*ALL, tuned=(None,) * 3)
    assert of_two.rows[2]["gain_over_best_pp"].over == "global"
    assert TABLE.note(of_two).startswith(
        "The best without clusters of those finished is global; tuned has finished no seed in common with "
        "the first arm."
    )
    of_three = a_summary(*ALL, an_arm("prior", baseline=True), prior=(0.4,) * 3, tuned=(None,) * 3)
    assert TABLE.note(of_three).startswith(
        "The best without clusters of those finished is global, with the highest mean accuracy of global, "
        "prior over the 3 seeds that all of them have; tuned has finished no seed in common with the first "
        "arm."
    )
    assert TABLE.note(a_summary(PLAIN, FIELDING)).startswith(
        "The best without clusters is global, the only baseline."
    )


def test_while_no_baseline_is_finished_the_table_is_shown_and_says_so():
    summary = a_summary(FIELDING, BOTH, ADAPTED, tuned=(None,) * 3)
    assert TABLE.says_something(summary)
    assert [cell(summary, "both", heading) for heading in (BEST, CLUSTERS)] == ["n/a", "n/a over tuned"]
    assert TABLE.note(summary).startswith(
        "Which arm is the best without clusters is not known: tuned has finished no seed in common with the "
        "first arm."
    )


def test_a_one_model_arm_that_is_not_finished_is_told_from_a_missing_one():
    summary = a_summary(*ALL, tuned=(None,) * 3)
    gain = summary.rows[-1]["gain_of_clusters_pp"]
    assert (gain.over, gain.mean) == ("tuned", None)
    assert cell(summary, "oracle", CLUSTERS) == "n/a over tuned"
    assert cell(a_summary(PLAIN, BOTH), "both", CLUSTERS) == "n/a"
    twice = a_summary(PLAIN, {**PLAIN, "name": "tuned", "detectors": {}}, FIELDING, tuned=(None,) * 3)
    assert twice.rows[-1]["gain_of_clusters_pp"].over is None  # two are alike, although one is not finished


def test_without_a_baseline_nothing_is_measured_and_nothing_shown():
    summary = a_summary(an_arm("global"), BOTH)
    assert all(row[of.key] is None for row in summary.rows for of in TABLE.quantities)
    assert not TABLE.says_something(summary)


def test_cells_name_the_arm_that_a_gain_is_over():
    summary = a_summary(*ALL)
    assert headings_of(summary) == [BEST, CLUSTERS, GAP, TRAINED]
    found = {arm: [cell(summary, arm, heading) for heading in (BEST, CLUSTERS, GAP)] for arm in ACCURACIES}
    assert found["both"] == [
        "+4.0 pp [-1.0, +9.0] over tuned",
        "+4.0 pp [-1.0, +9.0] over tuned",
        "40.0 % [-9.7, 89.7]",
    ]
    assert found["tuned"] == ["the best", "-", "-"]
    assert found["oracle"][2] == "the oracle"
    assert "9 comparisons, each" in TABLE.note(summary)  # 4 over the best, 3 of clusters, 2 of the gap


NOISY = {"global": (0.44, 0.56, 0.44), "tuned": (0.50, 0.50, 0.50), "fielding": (0.55, 0.56, 0.57)}
"""The best is `tuned`, by a hair; `global` varies, so that `fielding` is not shown to be above it."""


def test_a_cell_names_the_baselines_that_an_arm_is_not_shown_to_be_above_although_it_is_above_the_best():
    summary = a_summary(PLAIN, ADAPTED, FIELDING, **NOISY)
    gain = summary.rows[-1]["gain_over_best_pp"]
    assert gain.not_above == ("global",)
    assert gain.as_json()["not_above"] == ["global"]
    assert cell(summary, "fielding", BEST) == "+6.0 pp [+3.5, +8.5] over tuned, not measurably above global"
    shown = a_summary(PLAIN, ADAPTED, FIELDING, **{**NOISY, "global": (0.45, 0.46, 0.47)})
    assert shown.rows[-1]["gain_over_best_pp"].not_above == ()
    assert cell(shown, "fielding", BEST) == "+6.0 pp [+3.5, +8.5] over tuned"


def test_an_arm_level_with_the_best_is_hardly_ever_shown_to_be_above_all_baselines():
    # `global` is level with the arm and varies; `tuned` is below both and does not. Where chance puts
    # `global` last, `tuned` is taken for the best, and the interval of the gain over it alone is above 0.
    rng, arms = np.random.default_rng(3), (PLAIN, ADAPTED, FIELDING)
    above_the_chosen = above_all = 0
    for _ in range(50):
        level, varied = 0.5 + rng.normal(0.0, 0.001, 5), 0.5 + rng.normal(0.0, 0.05, 5)
        runs = runs_of(arms, {"global": varied, "tuned": [0.49] * 5, "fielding": level})
        curves = [accuracy_curve(run, 1) for run in runs]
        horizon = common_horizon(runs, curves)
        measured = [Run.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
        configured = configured_arms({"arm": arms})
        compared = Compared(comparisons(measured, "global", configured), horizon, configured)
        measure(compared, ACCURACY.quantities)
        gain = IN_ACCURACY.gain_over_best(compared.arms[-1], compared)
        above_the_chosen += gain.ci95[0] > 0
        above_all += gain.ci95[0] > 0 and not gain.not_above
    assert above_the_chosen > 0.2 * 50
    assert above_all <= 0.06 * 50  # 2.5 % in the long run


def test_gains_over_a_reference_arm_with_clusters_or_an_adaptation_name_it():
    for reference in (BOTH, ADAPTED):
        summary = a_summary(reference, PLAIN, FIELDING)
        assert headings_of(summary, ACCURACY)[1] == f"over {reference['name']}"
        assert f"gains over {reference['name']} are paired" in ACCURACY.note(summary)
    summary = a_summary(*ALL)
    assert headings_of(summary, ACCURACY)[1] == "over one model"
    assert "; gains over global, the one model, are paired by seed." in ACCURACY.note(summary)
    assert "Final gain is that of the final accuracy, over global." in ACCURACY.note(summary)
    [joint] = TABLE.notes_on_page(summary)
    assert joint.startswith("Intervals of gains in mean accuracy over the best without clusters that hold")


def test_samples_trained_are_beside_baselines_if_there_are_any_and_beside_accuracy_with_adaptations_alone():
    for arms, tables in (
        (ALL, [TABLE]),
        ((an_arm("global"), BOTH), [ACCURACY]),
        ((an_arm("global"), FIELDING), []),
    ):
        summary = a_summary(*arms)
        shown = [table for table in (ACCURACY, TABLE) if table.says_something(summary)]
        assert [table for table in shown if TRAINED in headings_of(summary, table)] == tables
        assert [table for table in shown if TRAINED_SAMPLES in table.note(summary)] == tables
