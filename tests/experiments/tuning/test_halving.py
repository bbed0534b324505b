from __future__ import annotations

from collections.abc import Sequence

from experiments.tuning.halving import DIVERGED, choose, finalists, mean_score, rival_of
from experiments.tuning.rows import Setting
from tests.experiments.tuning.hand_made import row_of

FIVE = row_of([["a"], ["b"], ["c"], ["d"], ["e"]])


def on_one_seed(**scores: float) -> dict[str, list[float]]:
    return {arm: [score] for arm, score in scores.items()}


def values(settings: Sequence[Setting]) -> list[float]:
    return [setting.values["k"] for setting in settings]


def test_the_best_three_on_the_first_seed_are_finalists_in_the_order_of_the_grid() -> None:
    assert values(finalists(FIVE, on_one_seed(a=0.1, b=0.5, c=0.4, d=0.9, e=0.2))) == [1, 2, 3]


def test_of_equal_ones_the_smaller_is_a_finalist() -> None:
    assert values(finalists(FIVE, on_one_seed(a=0.5, b=0.5, c=0.5, d=0.5, e=0.9))) == [0, 1, 4]


def test_diverged_settings_are_worse_than_all_others_and_never_finalists() -> None:
    scores = on_one_seed(a=DIVERGED, b=0.0, c=DIVERGED, d=0.1, e=DIVERGED)
    assert values(finalists(FIVE, scores)) == [1, 3]
    assert finalists(FIVE, on_one_seed(**dict.fromkeys("abcde", DIVERGED))) == []


def test_a_setting_counts_with_its_best_use() -> None:
    row = row_of([["a", "a+t"], ["b", "b+t"], ["c", "c+t"], ["d", "d+t"]])
    scores = on_one_seed(a=0.1, b=0.3, c=0.3, d=0.3)
    scores |= {"a+t": [0.9], "b+t": [0.2], "c+t": [DIVERGED], "d+t": [0.1]}
    assert values(finalists(row, scores)) == [0, 1, 2]


def test_the_choice_is_by_the_mean_over_all_seeds() -> None:
    scores = {"a": [0.75, 0.25], "b": [0.625, 0.625], "c": [0.9, DIVERGED]}
    chosen = choose(FIVE.settings[:3], scores)
    assert chosen is not None
    assert (chosen.best.name, chosen.mean, chosen.ties) == ("b", 0.625, [])
    assert mean_score(scores, "c") < mean_score(scores, "a") == 0.5


def test_ties_are_broken_by_the_grid_and_told() -> None:
    chosen = choose(FIVE.settings[1:4], {name: [0.25, 0.75] for name in "bcd"})
    assert chosen is not None
    assert (chosen.setting.values["k"], values(chosen.ties)) == (1, [2, 3])


def test_of_equal_uses_the_first_is_the_best() -> None:
    chosen = choose(row_of([["a", "a+t"]]).settings, {"a": [0.5], "a+t": [0.5]})
    assert chosen is not None
    assert (chosen.best.name, chosen.ties) == ("a", [])


def test_a_use_that_is_not_the_best_has_its_own_best_settings() -> None:
    row = row_of([["a", "a5+t", "a9+t"]])
    chosen = choose(row.settings, {"a": [0.8], "a5+t": [0.4], "a9+t": [0.5]})
    assert chosen is not None
    assert (chosen.best.name, [tried.name for tried in chosen.uses]) == ("a", ["a", "a9+t"])


def test_where_every_setting_diverged_none_is_chosen() -> None:
    assert choose(FIVE.settings[:2], {"a": [DIVERGED], "b": [DIVERGED]}) is None
    assert choose([], {}) is None


def test_the_rival_is_the_best_baseline_and_the_first_of_equal_ones() -> None:
    low, high, same = (
        choose(row_of([[f"x+{use}"]]).settings, {f"x+{use}": [score]})
        for use, score in (("low", 0.2), ("high", 0.6), ("same", 0.6))
    )
    assert rival_of([low, high, same]) == "high"
    assert rival_of([low, None]) == "low"
    assert rival_of([None]) is None
