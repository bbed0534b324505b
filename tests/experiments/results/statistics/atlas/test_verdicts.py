"""Words, intervals, ranks and regret of an atlas: by hand, and how often words are wrong by simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from emulator.arrays import Floats
from experiments.results.statistics.atlas.verdicts import (
    AHEAD,
    BEHIND,
    EVEN,
    OPEN,
    RIVAL,
    Column,
    Figures,
    Paired,
    Verdict,
    methods,
    paired,
    standing,
    verdict,
)

DRAWS = 1500
MOST_WRONG = 0.05


def beside(points: Sequence[float] | Floats, *, by_ranks: bool = False) -> Paired:
    """The verdict on these differences in percentage points."""
    return paired([0.5 + point / 100 for point in points], [0.5] * len(points), by_ranks=by_ranks)


def figures(accuracy: Sequence[float], *, has_trigger: bool = False, **others: float) -> Figures:
    found = {"sent_bytes": 100.0, "samples": 10.0, "worst_tenth": 0.25, **others}
    return Figures(list(accuracy), has_trigger=has_trigger, **found)  # type: ignore[arg-type]


def column(
    name: str, accuracies: Mapping[str, Sequence[float]], rival: str = "avg", oracles: Sequence[str] = ()
) -> Column:
    """A column of three seeds, whose methods are their own best uses."""
    found = {arm: figures(values) for arm, values in accuracies.items()}
    rows = {arm: arm for arm in accuracies}
    return Column(name, None, {"clients": 8}, [0, 1, 2], [100], rival, rows, list(oracles), found)


# -- words and intervals by hand ---------------------------------------------------------------------------


def test_the_t_interval_is_mean_and_quantile_times_standard_error() -> None:
    found = beside([1.0, 2.0, 3.0])
    half = float(stdtrit(2, 0.975)) * 1.0 / 3**0.5
    assert found.interval == pytest.approx((2 - half, 2 + half))
    assert (found.centre_pp, found.level, found.by_ranks) == (pytest.approx(2.0), 0.95, False)


def test_the_interval_by_ranks_of_ten_is_from_the_second_lowest_to_the_second_highest() -> None:
    """It misses the median if nine or more of ten lie on one side of it: 2 (1 + 10) / 2^10."""
    found = beside([10, -7, 3, 4, 5, 6, 7, 8, 9, 30], by_ranks=True)
    assert found == Paired(6.5, (3.0, 10.0), 1 - 22 / 1024, by_ranks=True)


@pytest.mark.parametrize(("seeds", "ends", "level"), [(6, (1, 6), 62 / 64), (9, (2, 8), 1 - 20 / 512)])
def test_fewer_seeds_have_the_narrowest_ranks_of_95_percent(
    seeds: int, ends: tuple[float, float], level: float
) -> None:
    found = beside(range(1, seeds + 1), by_ranks=True)
    assert (found.interval, found.level) == (ends, level)


def test_five_seeds_have_no_interval_by_ranks_and_two_none_at_all_and_so_are_open() -> None:
    """The lowest and the highest of five hold the median at 93.75 %."""
    assert [beside([5.0] * 5, by_ranks=True).word, beside([5.0] * 6, by_ranks=True).word] == [OPEN, AHEAD]
    assert [beside([5.0, 5.1]).word, beside([5.0, 5.1, 5.2]).word] == [OPEN, AHEAD]
    assert beside([5.0] * 5, by_ranks=True) == Paired(5.0, None, None, by_ranks=True)


@pytest.mark.parametrize(
    ("centre_pp", "interval", "word"),
    [
        (1.0, (0.1, 1.9), AHEAD),
        (0.9, (0.1, 1.7), OPEN),  # above 0, but less than a point
        (0.5, (0.1, 0.9), EVEN),
        (3.0, (-0.1, 6.1), OPEN),
        (3.0, (0.0, 6.0), OPEN),
        (0.0, (-1.0, 1.0), EVEN),
        (0.0, (-1.01, 1.0), OPEN),
        (-1.0, (-1.9, -0.1), BEHIND),
        (-0.9, (-1.7, -0.1), OPEN),
        (1.0, (1.0, 1.0), AHEAD),  # every seed is ahead by a point
        (2.0, None, OPEN),
    ],
)
def test_a_word_is_said_by_the_interval_and_the_mean(
    centre_pp: float, interval: tuple[float, float] | None, word: str
) -> None:
    found = Paired(centre_pp, interval, 0.95, by_ranks=False)
    assert found.word == word
    mirrored = replace(found, centre_pp=-centre_pp, interval=interval and (-interval[1], -interval[0]))
    assert mirrored.word == {AHEAD: BEHIND, BEHIND: AHEAD}.get(word, word)


def test_a_point_is_a_point_whatever_subtraction_adds_to_it() -> None:
    assert 100 * (0.8 - 0.79) > 1 > 100 * (0.03 - 0.02)
    assert paired([0.8] * 3, [0.79] * 3, by_ranks=False).word == AHEAD
    assert paired([0.03] * 3, [0.02] * 3, by_ranks=False).word == AHEAD


# -- how often words are wrong -----------------------------------------------------------------------------


def normal(spread: float) -> Callable[[np.random.Generator, float], Floats]:
    """Differences of ten seeds with that mean."""
    return lambda rng, mean: rng.normal(mean, spread, (DRAWS, 10))


def of_two_modes(spread: float, fires: float, jump: float) -> Callable[[np.random.Generator, float], Floats]:
    """Differences with that median, of which a share lies off by a jump, as where a trigger fires.

    The modes do not overlap, so that the median is the quantile 1/2 / (1 - fires) of the larger one.
    """
    offset = spread * float(ndtri(0.5 / (1 - fires))) * np.sign(jump)

    def drawn(rng: np.random.Generator, median: float) -> Floats:
        has_fired = rng.random((DRAWS, 10)) < fires
        return rng.normal(median - offset, spread, (DRAWS, 10)) + jump * has_fired

    return drawn


NORMAL = [(normal(spread), False) for spread in (0.1, 0.5, 1.0, 3.0)]
TWO_MODES = [
    (of_two_modes(spread, fires, jump), True)
    for spread, fires, jump in ((0.1, 0.3, 5.0), (0.3, 0.45, 5.0), (0.5, 0.1, 5.0), (0.3, 0.3, -5.0))
]


def often(
    word: str, law: Callable[[np.random.Generator, float], Floats], true_pp: float, *, by_ranks: bool
) -> float:
    """The share of experiments with ten seeds in which the word is said of a true difference."""
    drawn = law(np.random.default_rng([20, round(10 * true_pp) + 100]), true_pp)
    return sum(beside(points, by_ranks=by_ranks).word == word for points in drawn) / DRAWS


@pytest.mark.parametrize(("law", "by_ranks"), [*NORMAL, *TWO_MODES])
def test_level_is_rarely_said_of_a_point_and_ahead_rarely_of_nothing(
    law: Callable[[np.random.Generator, float], Floats], by_ranks: bool
) -> None:
    assert often(EVEN, law, 1.0, by_ranks=by_ranks) <= MOST_WRONG
    assert often(AHEAD, law, 0.0, by_ranks=by_ranks) <= MOST_WRONG


def test_words_are_said_of_what_they_mean() -> None:
    assert often(EVEN, normal(0.5), 0.0, by_ranks=False) > 0.95
    assert often(AHEAD, normal(1.0), 3.0, by_ranks=False) > 0.95
    assert often(BEHIND, normal(1.0), -3.0, by_ranks=False) > 0.95
    assert often(AHEAD, of_two_modes(0.3, 0.3, 5.0), 3.0, by_ranks=True) > 0.95


def test_a_median_does_not_show_what_happens_in_a_minority_of_the_seeds() -> None:
    """A trigger that fires in one seed of ten brings 12 points there, and a mean of 1.2, which is level."""
    assert often(EVEN, of_two_modes(0.1, 0.1, 12.0), 0.0, by_ranks=True) > 0.5


def test_a_law_that_has_just_a_point_in_most_seeds_may_be_level_as_a_point_is_within_one() -> None:
    assert beside([1.0] * 8 + [0.0] * 2, by_ranks=True).word == EVEN
    assert beside([1.0] * 9 + [0.0], by_ranks=True).word == AHEAD


# -- cells, regret and standings ---------------------------------------------------------------------------

NONE = column(
    "none", {"avg": [0.5, 0.5, 0.5], "ifca": [0.53, 0.53, 0.53], "oracle": [0.9] * 3}, oracles=["oracle"]
)
SWAP = column("swap", {"avg": [0.6, 0.6, 0.6], "ifca": [0.598, 0.598, 0.598], "apfl": [0.65, 0.65, 0.65]})


def test_a_cell_has_its_regret_from_the_best_that_is_no_oracle() -> None:
    assert verdict(NONE, "ifca") == Verdict("ifca", pytest.approx(0.53), 3, 0.0, AHEAD, beside([3.0] * 3))
    assert verdict(NONE, "avg") == Verdict("avg", 0.5, 3, 3.0, RIVAL, None)
    assert verdict(NONE, "oracle") == Verdict("oracle", pytest.approx(0.9), 3)
    assert verdict(NONE, "apfl") is None


def test_a_method_is_counted_by_words_and_by_regret() -> None:
    found = standing([NONE, SWAP], "ifca")
    assert found.words == {AHEAD: 1, EVEN: 1, BEHIND: 0, OPEN: 0, RIVAL: 0}
    assert (found.cells, found.mean_regret_pp, found.worst_regret_pp) == (2, pytest.approx(2.6), 5.2)
    assert (found.worst_in, found.near_best) == ("swap", 1)
    assert (found.sent_bytes, found.samples, found.worst_tenth) == (100.0, 10.0, 0.25)
    assert standing([NONE, SWAP], "apfl").cells == 1
    assert methods([NONE, SWAP]) == ["avg", "ifca", "apfl"]
    assert methods([NONE, SWAP], oracles=True) == ["oracle"]


def test_a_trigger_of_the_row_or_of_the_rival_makes_the_interval_one_of_ranks() -> None:
    for arm in ("avg", "ifca"):
        told = {**NONE.figures, arm: replace(NONE.figures[arm], has_trigger=True)}
        found = verdict(replace(NONE, figures=told), "ifca")
        assert found is not None
        assert found.paired == Paired(3.0, None, None, by_ranks=True)  # of three seeds
        assert found.word == OPEN


def test_without_the_rival_there_is_no_word_and_with_a_missing_cell_no_zero() -> None:
    unfinished = replace(NONE, figures={"ifca": NONE.figures["ifca"]})
    found = verdict(unfinished, "ifca")
    assert found == Verdict("ifca", pytest.approx(0.53), 3, 0.0, "", None)
    assert verdict(unfinished, "avg") is None
    over_both = standing([unfinished, SWAP], "avg")
    assert (over_both.cells, over_both.words[RIVAL], over_both.mean_regret_pp) == (1, 1, pytest.approx(5.0))
    nowhere = standing([unfinished], "avg")
    assert (nowhere.cells, nowhere.mean_regret_pp, nowhere.worst_regret_pp, nowhere.worst_in) == (
        *(0, None, None),
        "",
    )


def test_a_figure_that_one_drift_lacks_has_no_mean_over_drifts() -> None:
    lacking = replace(SWAP.figures["ifca"], worst_tenth=None)
    columns = [NONE, replace(SWAP, figures={**SWAP.figures, "ifca": lacking})]
    assert standing(columns, "ifca").worst_tenth is None
    assert standing(columns, "ifca").samples == 10.0


@pytest.mark.parametrize("accuracy", [0.2, 0.7])
def test_a_new_row_changes_no_other_word_and_regret_only_where_it_is_the_best(accuracy: float) -> None:
    """With 70 % it is 5 points above the best of `swap`, by which all others are further below it."""
    new = {**SWAP.figures, "new": figures([accuracy] * 3)}
    after = replace(SWAP, rows={**SWAP.rows, "new": "new"}, figures=new)
    further_pp = max(0.0, round(100 * (accuracy - 0.65), 9))
    for row in ("avg", "ifca", "apfl"):
        was, now = verdict(SWAP, row), verdict(after, row)
        assert was is not None
        assert was.regret_pp is not None
        assert now == replace(was, regret_pp=pytest.approx(was.regret_pp + further_pp))
        assert standing([NONE, after], row).words == standing([NONE, SWAP], row).words


def test_a_column_survives_json() -> None:
    assert Column.from_json(json.loads(json.dumps(asdict(NONE)))) == NONE
