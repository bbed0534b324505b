"""The output of `python -m benchmarks`, with workloads that take no time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import registry
from benchmarks.__main__ import program
from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say
from benchmarks.registry import Workload
from experiments.cli import main
from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401

FIELDS = {
    "name",
    "about",
    "value",
    "unit",
    "better",
    "spread",
    "ratio",
    "ratio_spread",
    "against",
    "threads",
    "repeats",
    "target",
    "verdict",
    "curve",
    "size",
    "machine",
    "versions",
}


def measure_half(repeats: int, say: Say) -> list[Figure]:
    say("hurrying")
    ours, reference = np.full(repeats, 0.5), np.full(repeats, 4.0)
    return [
        figure(
            "half",
            "half a second",
            ours,
            "s",
            better="lower",
            against=Reference(reference, "four seconds"),
            target=Target("ratio", 10.0, 20.0),
        ),
        figure("half-alone", "the same, alone", ours, "s", better="lower"),
    ]


def measure_sizes(repeats: int, say: Say) -> list[Figure]:
    samples = np.arange(1.0, repeats + 1)
    return [
        figure(f"{curve}-{size}", "", samples * size, "ms", better="lower", curve=curve, size=size)
        for curve in ("round", "selection", "training")
        for size in (1, 10)
    ]


class Instant(Workload):
    """A workload whose function is in this module."""

    def load(self) -> registry.Measure:
        measure: registry.Measure = globals()[self.function]
        return measure


@pytest.fixture(autouse=True)
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    workloads = {
        "half": Instant("takes half a second", "", "measure_half"),
        "e1-size": Instant("sizes", "", "measure_sizes"),
        "cohort-size": Instant("no sizes more", "", "measure_half"),
    }
    monkeypatch.setattr(registry, "WORKLOADS", workloads)


@pytest.fixture
def bench(driftscale: Driftscale) -> Driftscale:  # noqa: F811
    """Calls the bench in this process, as from a shell, in an empty folder."""
    return partial(driftscale, by=partial(main, program))


def test_json_has_a_figure_with_all_its_fields(bench: Driftscale) -> None:
    ended = bench("half", "--format", "json")
    assert ended.code == 0  # though it misses its target
    [half, alone] = json.loads(ended.out)["figures"]
    assert set(half) == set(alone) == FIELDS
    assert (half["name"], half["value"], half["unit"], half["ratio"]) == ("half", 0.5, "s", 8.0)
    assert (half["against"], half["verdict"], half["repeats"]) == ("four seconds", "missed", 7)
    assert half["spread"] == {"low": 0.5, "high": 0.5}
    assert half["target"] == {"of": "ratio", "at_least": 10.0, "stretch": 20.0}
    assert (alone["ratio"], alone["against"], alone["target"], alone["verdict"]) == (None,) * 4
    assert "numpy" in half["versions"]


def test_progress_goes_to_stderr(bench: Driftscale) -> None:
    ended = bench("half", "--format", "json")
    lines = ended.err.splitlines()
    assert lines[:2] == ["half: takes half a second", "half: hurrying"]
    assert lines[2].startswith("half: done in 0.")


def test_the_table_shows_value_ratio_and_target(bench: Driftscale) -> None:
    lines = bench("half", "--repeats", "3").out.splitlines()
    assert lines[2].split() == ["half", "0.5", "s", "8x", "1", "at", "least", "10x", "missed"]
    assert lines[3].split() == ["against", "four", "seconds", "[0.5,", "0.5]", "[8,", "8]", "stretch", "20x"]
    assert lines[4].split() == ["half-alone", "0.5", "s", "-", "1", "-"]
    assert lines[-1].startswith("medians of 3 repeats, [quartiles]; ")


def test_all_workloads_run_without_a_name(bench: Driftscale) -> None:
    figures = json.loads(bench("--format", "json").out)["figures"]
    assert len(figures) == 2 + 6 + 2


def test_the_list_names_every_workload(bench: Driftscale) -> None:
    listed = json.loads(bench("--list", "--format", "json").out)
    assert listed[0] == {"name": "half", "what it is": "takes half a second"}
    assert "cohort-size" in bench("--list").out


def test_an_unknown_name_lists_the_choices(bench: Driftscale) -> None:
    ended = bench("hafl")
    assert ended.code == 2
    assert ended.error == (
        "unknown workload 'hafl'; choices: cohort-size, e1-size, half; did you mean 'half'?"
    )


@pytest.mark.slow
def test_a_plot_is_written_beside_the_table(bench: Driftscale) -> None:
    ended = bench("--plot", "sizes.svg", "--repeats", "3")
    assert ended.err.splitlines()[-1] == "plot: sizes.svg"
    assert Path("sizes.svg").read_text().startswith("<?xml")


def test_a_plot_of_too_little_is_refused_before_anything_is_measured(bench: Driftscale) -> None:
    ended = bench("half", "--plot", "sizes.svg")
    assert ended.code == 2
    assert "--plot draws e1-size and cohort-size" in ended.error


def test_the_help_names_the_options_the_workloads_and_the_extra(bench: Driftscale) -> None:
    text = " ".join(bench("--help").out.split())
    for words in ("[ROW]...", "--repeats", "--plot", "--list", "--format", "half, e1-size", "make setup"):
        assert words in text


def test_repeats_are_at_least_one(bench: Driftscale) -> None:
    assert bench("half", "--repeats", "0").code == 2


def test_a_plot_that_no_file_can_be_is_refused(bench: Driftscale) -> None:
    assert bench("--plot", "").error == "--plot: is empty; a path is needed (. is the current folder)"
    assert bench("--plot", "a" * 256).error == f"--plot {'a' * 256}: File name too long"
