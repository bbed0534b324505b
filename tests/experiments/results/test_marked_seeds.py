import math

import pytest

from experiments.results.marked_seeds import as_json, marked_clause, marked_seeds
from experiments.results.summary import summarise
from tests.experiments.synthetic_runs import a_drifting_run, a_run

# The others of seed 4 have median 12 and are 1, 1, 2 and 2 away from it: the spread is 1.5 x 1.4826 = 2.2239.
LEVEL = {0: 10.0, 1: 11.0, 2: 13.0, 3: 14.0}


def test_a_seed_on_which_every_arm_is_off_is_marked_with_its_median_distance():
    far, near = {**LEVEL, 4: 2.0}, {**LEVEL, 4: 16.5}  # 10 and 4.5 away
    assert marked_seeds({"far": far, "further": far, "near": near}) == {4: pytest.approx(10 / 2.2239)}


def test_one_arm_that_is_not_off_is_enough_against_a_mark():
    off, usual = {**LEVEL, 4: 2.0}, {**LEVEL, 4: 16.4}  # 1.98 spreads
    assert marked_seeds({"off": off, "again": off, "usual": usual}) == {}


def test_two_bad_seeds_do_not_hide_each_other():
    bad = {**LEVEL, 4: 11.5, 5: 12.5, 6: 2.0, 7: 1.0}
    assert list(marked_seeds({"one": bad, "other": bad})) == [6, 7]


def test_an_arm_with_one_figure_in_every_seed_is_left_out():
    off, constant = {**LEVEL, 4: 2.0}, dict.fromkeys(range(5), 86.0)
    assert list(marked_seeds({"off": off, "again": off, "constant": constant})) == [4]
    assert marked_seeds({"off": off, "constant": constant}) == {}  # a single arm has no others to agree with


def test_a_seed_apart_from_others_that_are_equal_is_infinitely_far():
    apart = {**dict.fromkeys(range(4), 50.0), 4: 49.0}
    assert marked_seeds({"a": apart, "b": apart}) == {4: math.inf}
    assert as_json({4: math.inf}) == [{"seed": 4, "distance": None}]
    assert marked_clause(as_json({4: math.inf})).startswith("every arm is off on seed 4: ")


def test_under_five_seeds_or_two_arms_nothing_is_marked():
    off = {**LEVEL, 4: 2.0}
    assert marked_seeds({"only": off}) == {}
    four = {seed: off[seed] for seed in (0, 1, 2, 4)}
    assert marked_seeds({"a": four, "b": four}) == {}


def test_a_seed_that_an_arm_has_not_finished_is_not_marked():
    off, unfinished = {**LEVEL, 4: 2.0}, {**LEVEL, 5: 13.0}
    assert marked_seeds({"off": off, "unfinished": unfinished}) == {}


def test_a_summary_marks_by_the_accuracy_omitting_drift_and_warns():
    cells = [[0, 0], [0, 0]]
    shares = {0: 0.50, 1: 0.52, 2: 0.51, 3: 0.53, 4: 0.20}
    runs = [
        a_drifting_run(arm, seed, [share - lower, share - lower], cells)
        for arm, lower in (("global", 0.0), ("other", 0.1))
        for seed, share in shares.items()
    ]
    summary = summarise(runs, name="a", window=1, reference_arm="global")
    assert list(summary.marked_seeds) == [4]
    assert summary.warnings()[-1].startswith("every arm is off on seed 4 (by 21.2 spreads ")
    (entry,) = summary.as_json()["marked_seeds"]  # type: ignore[misc]
    assert entry["seed"] == 4


def test_without_known_concepts_a_summary_marks_by_the_mean_accuracy():
    shares = {0: 0.50, 1: 0.52, 2: 0.51, 3: 0.53, 4: 0.20}
    runs = [a_run(arm, seed, [share, share]) for arm in ("global", "other") for seed, share in shares.items()]
    assert list(summarise(runs, name="a", window=1, reference_arm="global").marked_seeds) == [4]
