from __future__ import annotations

from experiments.tuning.halving import Chosen, choose, finalists, mean_score, rival_of
from experiments.tuning.rows import Setting
from tests.experiments.tuning.hand_made import on, row_of

ONE_USE = row_of([["a"], ["b"], ["c"], ["d"], ["e"]])


def values(settings: list[Setting]) -> list[float]:
    return [setting.values["k"] for setting in settings]


def test_the_best_three_on_the_first_seed_are_finalists_in_the_order_of_the_grid() -> None:
    assert values(finalists(ONE_USE, on(7, a=0.1, b=0.5, c=0.4, d=0.9, e=0.2), 7)) == [1, 2, 3]


def test_of_equal_ones_the_smaller_is_a_finalist() -> None:
    assert values(finalists(ONE_USE, on(7, a=0.5, b=0.5, c=0.5, d=0.5, e=0.9), 7)) == [0, 1, 4]


def test_diverged_settings_are_worse_than_all_others_and_never_finalists() -> None:
    assert values(finalists(ONE_USE, on(7, a=None, b=0.0, c=None, d=0.1, e=None), 7)) == [1, 3]
    assert finalists(ONE_USE, on(7, a=None, b=None, c=None, d=None, e=None), 7) == []


def test_a_setting_counts_with_its_best_use() -> None:
    row = row_of([["a", "a+t"], ["b", "b+t"], ["c", "c+t"], ["d", "d+t"]])
    scores = on(7, a=0.1, b=0.3, c=0.3, d=0.3) | on(7, **{"a+t": 0.9, "b+t": 0.2, "c+t": None, "d+t": 0.1})
    assert values(finalists(row, scores, 7)) == [0, 1, 2]


def test_the_choice_is_by_the_mean_over_all_seeds() -> None:
    scores = {"a": {1: 0.9, 2: 0.1}, "b": {1: 0.6, 2: 0.6}, "c": {1: 0.7, 2: None}}
    chosen = choose(ONE_USE.settings[:3], scores, [1, 2])
    assert chosen is not None
    assert (chosen.best.name, chosen.mean, chosen.ties) == ("b", 0.6, [])
    assert mean_score(scores, "c", [1, 2]) < mean_score(scores, "a", [1, 2]) == 0.5


def test_ties_are_broken_by_the_grid_and_told() -> None:
    scores = {name: {1: 0.25, 2: 0.75} for name in "bcd"}
    chosen = choose(ONE_USE.settings[1:4], scores, [1, 2])
    assert chosen is not None
    assert (chosen.setting.values["k"], values(list(chosen.ties))) == (1, [2, 3])


def test_a_use_that_is_not_the_best_has_its_own_best_settings() -> None:
    row = row_of([["a", "a5+t", "a9+t"]])
    scores = on(1, a=0.8, **{"a5+t": 0.4, "a9+t": 0.5})
    chosen = choose(row.settings, scores, [1])
    assert chosen is not None
    assert (chosen.best.name, [tried.name for tried in chosen.uses]) == ("a", ["a", "a9+t"])


def test_where_every_setting_diverged_none_is_chosen() -> None:
    assert choose(ONE_USE.settings[:2], {"a": {1: None}, "b": {1: None}}, [1]) is None
    assert choose([], {}, [1]) is None


def test_the_rival_is_the_best_baseline_and_the_first_of_equal_ones() -> None:
    rows = {name: row_of([[f"{name}-1+{name}"]]) for name in ("low", "high", "same", "other")}
    scores = {
        "low-1+low": {1: 0.2},
        "high-1+high": {1: 0.6},
        "same-1+same": {1: 0.6},
        "other-1+other": {1: 0.9},
    }
    chosen: dict[str, Chosen | None] = {name: choose(row.settings, scores, [1]) for name, row in rows.items()}
    assert rival_of(chosen, ["low", "high", "same"]) == "high"
    assert rival_of({**chosen, "high": None}, ["low", "high"]) == "low"
    assert rival_of({"high": None}, ["high"]) is None
