from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from coordinator.detectors.stepd import Stepd, StepdSettings, statistic
from emulator.storage.state_tree import from_bytes, to_bytes

Scores = list[tuple[float, float]]
"""(correct, total) of the scores of one client, in order."""


def opened(num_clients: int = 1, **settings: Any) -> Stepd:
    detector = Stepd(StepdSettings(**settings))
    detector.open(num_clients)
    return detector


def detected(scores: Scores, detector: Stepd | None = None, **settings: Any) -> list[bool]:
    """After which scores of client 0 it is flagged."""
    part = detector or opened(**settings)
    return [bool(part.detect(np.array([0]), np.array([score], dtype=float), None)[0]) for score in scores]


def of(*numbers: float) -> float:
    return float(statistic(*(np.array([number], dtype=float) for number in numbers))[0])


def test_the_printed_test_has_the_values_of_the_paper() -> None:
    # p = 20/21, D = 1.05: (1 - 0.525) / sqrt(20/21 1/21 1.05), published as 2.17.
    assert of(20, 20, 0, 1) == pytest.approx(2.1767, abs=5e-5)
    # p = 18.1/21: (0.8 - 0.525) / sqrt(0.8619 0.1381 1.05).
    assert of(18, 20, 0.1, 1) == pytest.approx(0.7779, abs=5e-5)


def test_the_test_of_proportions_by_hand() -> None:
    # 80 of 100, then 12 of 25: p = 92/125, D = 0.05, (0.32 - 0.025) / sqrt(0.736 0.264 0.05).
    assert of(80, 100, 12, 25) == pytest.approx(0.295 / math.sqrt(0.736 * 0.264 * 0.05))
    assert of(5, 5, 3, 3) == of(0, 5, 0, 3) == 0


def test_only_a_total_collapse_is_significant_as_printed() -> None:
    perfect: Scores = [(30, 30)] * 20
    assert detected([*perfect, (0, 30)], test="literal")[-1]
    assert not detected([*perfect, (9, 30)], test="literal")[-1]
    assert detected([*perfect, (9, 30)])[-1]
    assert not detected([(27, 30)] * 20 + [(3, 30)], test="literal")[-1]


def test_a_flag_needs_a_tail_of_at_most_the_significance() -> None:
    scores: Scores = [(80, 100), (12, 25)]
    tail = 1 - NormalDist().cdf(of(80, 100, 12, 25))
    assert detected(scores, significance=tail * 1.0001) == [False, True]
    assert detected(scores, significance=tail * 0.9999) == [False, False]


def test_a_rise_is_no_drift_and_nor_is_a_first_score() -> None:
    for test in ("stepd", "literal", "threshold"):
        assert detected([(0, 50), (50, 50)], test=test) == [False, False]
        assert not any(detected([(50, 50)] * 4, test=test))
        assert not any(detected([(0, 50)] * 4, test=test))


def test_a_threshold_compares_with_the_mean_of_the_scores_whatever_their_samples() -> None:
    # The mean of 1 and 0.5 is 0.75, over 2 and over 200 samples.
    scores: Scores = [(2, 2), (100, 200), (10, 20)]
    assert detected(scores, test="threshold", delta=0.24) == [False, True, True]
    assert detected(scores, test="threshold", delta=0.25) == [False, True, False]


def test_the_new_score_joins_the_queue_and_a_flag_forgets_nothing() -> None:
    # Against 90 of 100; then against 100 of 200, of which 10 of 100 is still a fall.
    assert detected([(90, 100), (10, 100), (10, 100)]) == [False, True, True]
    # With a queue of one the third is compared with its like.
    assert detected([(90, 100), (10, 100), (10, 100)], queue=1) == [False, True, False]


def test_a_client_without_samples_is_not_flagged_and_remembers_nothing() -> None:
    assert detected([(0, 0), (90, 100), (0, 0), (10, 100)], queue=1) == [False, False, False, True]
    detector = opened(3)
    detector.detect(np.arange(3), np.array([[0, 0], [1, 2], [0, 0.0]]), None)
    assert detector.state()["_scores"].tolist() == [[1], [1]]


def plain(scores: Scores, test: str, significance: float, delta: float, queue: int) -> list[bool]:
    """The detector for one client in plain Python."""
    past: Scores = []
    flags = []
    for correct, total in scores:
        if total == 0:
            flags.append(False)
            continue
        flag = False
        if past:
            shares = [one / of_all for one, of_all in past]
            if test == "threshold":
                flag = sum(shares) / len(shares) - correct / total > delta
            else:
                old, number = sum(one for one, _ in past), sum(of_all for _, of_all in past)
                new, of_new = correct, total
                if test == "literal":
                    old, number, new, of_new = sum(shares), len(shares), correct / total, 1
                pooled, spread = (old + new) / (number + of_new), 1 / number + 1 / of_new
                if 0 < pooled < 1 and new / of_new < old / number:
                    gap = abs(old / number - new / of_new) - spread / 2
                    tail = math.erfc(gap / math.sqrt(2 * pooled * (1 - pooled) * spread)) / 2
                    flag = tail <= significance
        flags.append(flag)
        past = [*past, (correct, total)][-queue:]
    return flags


SETTINGS = [
    {"test": "stepd", "significance": 0.05, "delta": 0.2, "queue": 20},
    {"test": "stepd", "significance": 0.6, "delta": 0.2, "queue": 3},
    {"test": "literal", "significance": 0.45, "delta": 0.2, "queue": 20},
    {"test": "threshold", "significance": 0.05, "delta": 0.13, "queue": 7},
]


def drawn(clients: int, calls: int) -> np.ndarray:
    """(calls, clients, 2) scores of a quality that moves, some of no samples."""
    rng = np.random.default_rng(3)
    total = rng.integers(0, 12, (calls, clients)) * (rng.random((calls, clients)) < 0.9)
    return np.stack([rng.binomial(total, rng.choice([0.2, 0.6, 1.0], (calls, clients))), total], 2) * 1.0


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_agrees_with_plain_python_over_series_longer_than_the_queue(settings: dict[str, Any]) -> None:
    series, detector = drawn(9, 70), opened(9, **settings)
    found = np.array([detector.detect(np.arange(9), scores, None) for scores in series])
    expected = [plain([tuple(score) for score in series[:, client]], **settings) for client in range(9)]
    assert found.T.tolist() == expected
    assert 5 < found.sum() < 500


@pytest.mark.parametrize("stored", [0, 1, 7, 33])
def test_it_resumes_and_stores_only_the_clients_that_have_scores(stored: int) -> None:
    series, whole, first = drawn(5, 40), opened(40, queue=6), opened(40, queue=6)
    clients = np.array([31, 4, 9, 17, 2])
    flags = [whole.detect(clients, scores, None).tolist() for scores in series]
    for scores in series[:stored]:
        first.detect(clients, scores, None)
    content, again = to_bytes(first.state()), Stepd(StepdSettings(queue=6))
    again.restore(from_bytes(content))
    assert to_bytes(again.state()) == content
    assert again.state()["_correct"].shape[1] <= 5
    assert [again.detect(clients, scores, None).tolist() for scores in series[stored:]] == flags[stored:]


def test_a_client_that_is_forgotten_begins_anew_and_others_do_not() -> None:
    detector, good, bad = opened(2), np.array([[90, 100], [90, 100.0]]), np.array([[10, 100], [10, 100.0]])
    detector.detect(np.arange(2), good, None)
    detector.forget(np.array([0]))
    assert detector.detect(np.arange(2), bad, None).tolist() == [False, True]


def test_the_memory_is_that_of_the_queue_and_a_count() -> None:
    assert opened(queue=20).bytes_per_client == 8 * 41
    assert opened().clipped == 0


@pytest.mark.parametrize(
    "setting", [{"significance": 0}, {"significance": 1}, {"queue": 0}, {"delta": -0.1}, {"test": "t"}]
)
def test_settings_without_a_meaning_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        StepdSettings(**setting)
