"""What notes say of arms whose trigger may fire or not, and of those that start from a file."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.results.drawing.arms import Arm
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.statistics.summary import Summary
from experiments.results.tables import clients
from experiments.results.tables.accuracy import joint_note
from experiments.results.tables.notes import as_warning, intervals_of_single_arms, short_notes
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import a_run

TRIGGER = {"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": 0.5}}


@pytest.mark.parametrize("has_trigger", [False, True])
def test_dots_in_a_table_of_single_arms_are_explained_where_there_are_any(has_trigger: bool) -> None:
    runs = [a_run("fielding", seed, [0.5]) for seed in range(3)]
    note = intervals_of_single_arms([Arm("fielding", runs, [], 0, has_trigger)])
    assert note.endswith("Dots are single seeds, of arms whose trigger may fire or not. ") is has_trigger


def test_joint_intervals_say_why_arms_with_a_trigger_are_not_among_them() -> None:
    names = ("global", "static", "moves", "fielding")
    [note] = joint_note(a_summary(*names), "gain_pp", "gains")
    assert note.endswith("static [+0.0, +0.0], moves [+0.0, +0.0]; arms with a trigger have none.")


@pytest.mark.parametrize("other", ["fielding", "moves"])
def test_a_comparison_of_clients_explains_dots_where_there_are_any(other: str) -> None:
    note = clients.TABLE.note(a_summary("global", other))
    assert ("Dots are single seeds, of arms whose trigger may fire or not." in note) is (other == "fielding")


WARM = {"training": {"start": {"file": "a.safetensors"}}}


def test_arms_that_start_from_a_file_beside_others_are_named_with_it() -> None:
    other = {"training": {"start": {"file": "b.safetensors"}}}
    summary = a_summary("global", "warm", "other", "tuned", warm=WARM, tuned=WARM, other=other)
    starts = [
        "warm, tuned start from a.safetensors: what trained it is not in their time and bytes",
        "other starts from b.safetensors: what trained it is not in its time and bytes",
    ]
    assert summary.warnings()[-2:] == starts
    assert [note for note in short_notes(summary) if "safetensors" in note] == list(map(as_warning, starts))


def test_arms_that_are_all_drawn_need_no_note_and_those_that_all_start_warm_do() -> None:
    assert "start" not in " ".join(a_summary("global", "tuned").warnings())
    warm = a_summary("global", "tuned", **{"global": WARM, "tuned": WARM}).warnings()
    assert warm[-1].startswith("global, tuned start from ")


def a_summary(*names: str, **settings: dict[str, Any]) -> Summary:
    """Three seeds of each arm, with its `settings`, of which `fielding` has a trigger."""
    settings = {"fielding": {"clusterer": TRIGGER}, **settings}
    arms = [{"name": name, **settings.get(name, {})} for name in names]
    runs = [a_run(name, seed, [0.1 * seed, 0.5]) for name in names for seed in range(3)]
    return summarise(
        runs, name="x", window=1, reference_arm="global", configured=configured_arms({"arm": arms})
    )
