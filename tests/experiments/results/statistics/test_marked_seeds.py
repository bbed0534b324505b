import math

import pytest

from experiments.results.statistics.marked_seeds import MarkedSeed, marked_clause, marked_seeds
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import a_drifting_run, a_run

# The others of seed 4 have median 12 and are 1, 1, 2 and 2 away from it: the spread is 1.5 x 1.4826 = 2.2239.
LEVEL = {0: 10.0, 1: 11.0, 2: 13.0, 3: 14.0}
SHARES = {0: 0.50, 1: 0.52, 2: 0.51, 3: 0.53, 4: 0.20}


def arms(*figures_of_seed_4, level=LEVEL):
    """An arm for each of the figures, all with the same other seeds."""
    return {f"arm {number}": {**level, 4: value} for number, value in enumerate(figures_of_seed_4)}


def seeds(figures):
    return [marked.seed for marked in marked_seeds(figures)]


def test_a_seed_on_which_every_arm_is_off_is_marked_with_its_median_distance():
    figures = arms(2.0, 1.0, 0.0, 16.5, 20.0)  # 10, 11, 12, 4.5 and 8 away
    assert marked_seeds(figures) == [MarkedSeed(4, arms=5, distance=pytest.approx(10 / 2.2239, abs=1e-4))]


def test_one_arm_that_is_not_off_is_enough_against_a_mark():
    assert seeds(arms(2.0, 1.0, 0.0, 3.0, 20.0, 16.4)) == []  # the last by 1.98 spreads


def test_two_bad_seeds_do_not_hide_each_other():
    more = {**LEVEL, 5: 12.5, 6: 2.0, 7: 1.0}
    assert seeds(arms(11.4, 11.5, 11.6, 11.7, 11.8, level=more)) == [6, 7]


@pytest.mark.parametrize("noise", [0.0, 1e-15])
def test_an_arm_with_one_figure_in_every_seed_is_not_judged(noise):
    off = arms(2.0, 1.0, 0.0, 3.0, 4.0)
    constant = {**dict.fromkeys(range(4), 0.86), 4: 0.86 + noise}
    [marked] = marked_seeds({**off, "constant": constant})
    assert (marked.seed, marked.arms) == (4, 5)


def test_a_seed_apart_from_others_that_are_equal_is_infinitely_far():
    [marked] = marked_seeds(arms(51.0, 52.0, 53.0, 54.0, 55.0, level=dict.fromkeys(range(4), 50.0)))
    assert marked == MarkedSeed(4, arms=5, distance=math.inf)
    assert marked.as_json() == {"seed": 4, "arms": 5, "distance": None}
    assert marked_clause([marked.as_json()]).startswith("all 5 arms that can be judged are off on seed 4: ")


def test_under_five_seeds_nothing_is_marked():
    fewer = {seed: LEVEL[seed] for seed in (0, 1, 2)}
    assert seeds(arms(2.0, 1.0, 0.0, 3.0, 4.0, level=fewer)) == []


def test_under_five_arms_with_figures_of_their_own_nothing_is_marked():
    assert seeds(arms(2.0, 1.0, 0.0, 3.0)) == []
    assert seeds(arms(2.0, 1.0, 0.0, 3.0, 3.0)) == []
    assert seeds(arms(2.0, 1.0, 0.0, 3.0, 4.0)) == [4]


def test_a_seed_that_a_judged_arm_has_not_finished_is_not_marked():
    off, unfinished = arms(2.0, 1.0, 0.0, 3.0, 4.0), {**LEVEL, 5: 13.0}
    assert seeds({**off, "unfinished": unfinished}) == []


def test_a_summary_marks_by_the_accuracy_omitting_drift_and_warns():
    cells = [[0, 0], [0, 0]]
    names = ("global", "b", "c", "d", "e")
    runs = [
        a_drifting_run(arm, seed, [share - lower / 50, share - lower / 50], cells)
        for lower, arm in enumerate(names)
        for seed, share in SHARES.items()
    ]
    summary = summarise(runs, name="a", window=1, reference_arm="global")
    # The others have median 51.5 and are 0.5, 0.5, 1.5 and 1.5 away from it: 31.5 / 1.4826 = 21.2.
    clause = (
        "all 5 arms that can be judged are off on seed 4 (by 21.2 spreads of its other seeds in the median"
    )
    assert summary.warnings()[-1].startswith(clause)
    [entry] = summary.as_json()["marked_seeds"]  # type: ignore[misc]
    assert (entry["seed"], entry["arms"], entry["distance"]) == (4, 5, pytest.approx(21.246, abs=1e-3))


def test_without_known_concepts_a_summary_marks_by_the_mean_accuracy():
    runs = [
        a_run(arm, seed, [share - lower / 50, share - lower / 50])
        for lower, arm in enumerate(("global", "b", "c", "d", "e"))
        for seed, share in SHARES.items()
    ]
    summary = summarise(runs, name="a", window=1, reference_arm="global")
    assert [marked.seed for marked in summary.marked_seeds] == [4]
