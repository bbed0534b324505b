from __future__ import annotations

import gc

import numpy as np
import pytest

from benchmarks.figures import Figure, Reference, Spread, Target, figure
from benchmarks.measure import collector_frozen, interleaved, often, timed


def test_contenders_take_turns_and_every_other_repeat_reverses_their_order() -> None:
    called: list[str] = []

    def contender(name: str, value: float) -> float:
        called.append(name)
        return value

    lines: list[str] = []
    samples = interleaved(
        {"a": lambda: contender("a", 1.0), "b": lambda: contender("b", 2.0)}, 3, say=lines.append
    )
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"  # the first pair is the warm-up
    assert {name: values.tolist() for name, values in samples.items()} == {"a": [1.0] * 3, "b": [2.0] * 3}
    assert lines == ["repeat 1/3", "repeat 2/3", "repeat 3/3"]


def test_without_a_warm_up_nothing_is_called_before() -> None:
    called: list[int] = []
    interleaved({"a": lambda: float(len(called)) or called.append(1) or 0.0}, 1, warm_up=False)
    assert called == [1]


def test_work_is_called_once_or_the_given_number_of_times() -> None:
    calls: list[int] = []
    assert timed(lambda: calls.append(1))() >= 0
    assert len(calls) == 1
    assert often(lambda: calls.append(1), 5)() >= 0
    assert len(calls) == 6


@pytest.mark.slow
def test_the_collector_does_not_traverse_earlier_objects() -> None:
    before = gc.get_freeze_count()
    with collector_frozen():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


def a_figure(
    samples: list[float],
    reference: list[float] | None = None,
    target: Target | None = None,
    better: str = "lower",
) -> Figure:
    assert better in ("lower", "higher")
    return figure(
        "a",
        "something",
        np.array(samples),
        "s",
        better="lower" if better == "lower" else "higher",
        against=None if reference is None else Reference(np.array(reference), "the plain way"),
        target=target,
    )


def test_a_figure_is_the_median_with_the_quartiles() -> None:
    median = a_figure([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (median.value, median.spread, median.repeats) == (3.0, Spread(2.0, 4.0), 5)
    assert (median.ratio, median.ratio_spread, median.against, median.verdict) == (None, None, None, None)


def test_the_ratio_is_the_median_over_repeats_and_above_one_where_we_are_better() -> None:
    seconds = a_figure([1.0, 2.0, 10.0], [2.0, 8.0, 10.0])
    assert seconds.ratio == 2.0  # of 2, 4 and 1; that of the medians would be 4
    rates = a_figure([1.0, 2.0, 10.0], [2.0, 8.0, 10.0], better="higher")
    assert rates.ratio == 0.5


@pytest.mark.parametrize(
    ("value", "target", "better", "verdict"),
    [
        (3.0, Target("value", 2.0, 0.5), "lower", "missed"),
        (2.0, Target("value", 2.0, 0.5), "lower", "reached"),
        (0.5, Target("value", 2.0, 0.5), "lower", "stretch"),
        (3.0, Target("value", 2.0), "higher", "reached"),
        (1.9, Target("value", 2.0), "higher", "missed"),
        (2.0, Target("ratio", 4.0, 8.0), "lower", "reached"),  # the reference takes 8
        (1.0, Target("ratio", 4.0, 8.0), "lower", "stretch"),
        (4.0, Target("ratio", 4.0, 8.0), "lower", "missed"),
    ],
)
def test_a_verdict_compares_a_figure_with_its_target(
    value: float, target: Target, better: str, verdict: str
) -> None:
    assert a_figure([value], [8.0], target, better).verdict == verdict


def test_a_target_of_the_ratio_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="figure a: a target of its ratio needs a reference"):
        a_figure([1.0], target=Target("ratio", 2.0))


def test_a_figure_names_the_machine_and_the_versions_that_affect_its_speed() -> None:
    fields = a_figure([1.0]).as_dict()
    assert set(fields["versions"]) == {"python", "driftscale", "numpy", "torch", "scikit-learn"}
    assert fields["machine"].endswith(" cores")
