from __future__ import annotations

import pytest

from benchmarks.memory import after_first_quarter, growth_figures, in_a_process, probe, slope
from emulator.errors import RunError


def ignore(text: str) -> None:
    pass


@pytest.mark.slow
def test_a_process_of_its_own_prints_the_bytes_it_added() -> None:
    added = probe("objects", 20_000)
    assert added["objects"] > 20_000 * 100


@pytest.mark.slow
def test_a_process_that_fails_ends_the_bench_with_its_last_line() -> None:
    with pytest.raises(RunError, match="the process that measures 'start x' failed: ValueError"):
        in_a_process("start", "x")


def test_the_slope_is_that_of_the_rounds_after_the_first_quarter() -> None:
    resident = [(number, 1000 + 7 * number if number > 25 else 0) for number in range(1, 101)]
    assert after_first_quarter(resident)[0] == (26, 1182)
    assert slope(after_first_quarter(resident)) == pytest.approx(7.0)


def test_a_step_that_is_taken_once_is_no_slope() -> None:
    assert slope([(number, 10**6 if number > 30 else 0) for number in range(1, 101)]) == 0


def test_growth_is_given_per_round_and_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = [(number, 1000 + 7 * number) for number in range(1, 101)]
    monkeypatch.setattr("benchmarks.memory.in_a_process", lambda module, rounds: resident)
    growth, grown = growth_figures(100, 1, ignore)
    assert (growth.name, growth.value, growth.unit, growth.better) == (
        "memory-growth",
        pytest.approx(7.0),
        "B/round",
        "lower",
    )
    assert (grown.name, grown.value, grown.unit, grown.better) == (
        "memory-grown",
        pytest.approx(0.518),
        "kB",
        "lower",
    )


@pytest.mark.sweep
@pytest.mark.slow
def test_growth_is_bytes_per_round_of_a_run_in_a_process_of_its_own() -> None:
    growth, grown = growth_figures(12, 1, ignore)
    assert (growth.name, growth.unit, growth.better) == ("memory-growth", "B/round", "lower")
    assert (grown.name, grown.unit, grown.better) == ("memory-grown", "kB", "lower")
