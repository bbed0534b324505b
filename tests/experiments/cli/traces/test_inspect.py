"""`driftscale traces`, as from a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli.traces.inspected import MOST_LABELS, MOST_STEPS
from tests.experiments.cli.conftest import Driftscale, Ended
from tests.experiments.small import write_label_trace, write_replay, write_small


@pytest.fixture
def replayed(tmp_path: Path) -> Path:
    """A configuration of three places over four days; its images are not there.

    In every place 13 observations a day: of x, y and z one, two and three, and seven more of one of them, the
    next one every day, another one in every place.
    """
    write_label_trace(tmp_path / "labels.csv")
    return write_replay(tmp_path)


def inspected(driftscale: Driftscale, *arguments: str | Path) -> dict[str, Any]:
    ended = driftscale("traces", "inspect", *arguments, "--format", "json")
    assert ended.code == 0, ended.error
    facts: dict[str, Any] = json.loads(ended.out)
    return facts


def lines(ended: Ended) -> list[str]:
    """The lines of all tables, with one space between cells."""
    assert ended.code == 0, ended.error
    return [" ".join(line.replace("│", " ").split()) for line in ended.out.splitlines()]


def test_the_sources_are_listed(driftscale: Driftscale) -> None:
    listed = json.loads(driftscale("traces", "list", "--format", "json").out)
    assert {row["name"] for row in listed} == {
        "concepts",
        "digits",
        "file",
        "idx",
        "label_replay",
        "markov_text",
        "synthetic",
    }
    assert any(
        line.startswith("label_replay The label histograms of")
        for line in lines(driftscale("traces", "list"))
    )


def test_a_replayed_table_is_shown_as_it_was_observed(driftscale: Driftscale, replayed: Path) -> None:
    facts = inspected(driftscale, replayed)
    assert (facts["name"], facts["source"], facts["of"]) == ("small", "label_replay", "observations")
    assert facts["clients"] == 3
    assert facts["samples"] == {"observed": 3 * 4 * 13}
    assert facts["labels"] == [
        {"label": 0, "name": "z", "observed": 64},
        {"label": 1, "name": "y", "observed": 52},
        {"label": 2, "name": "x", "observed": 40},
    ]
    # It retains two steps, so that the first day is step -1.
    assert facts["arrivals"][0] == {"step": -1, "samples": 39, "clients": 3, "joining": 3, "leaving": 0}
    assert facts["arrivals"][3] == {"step": 2, "samples": 39, "clients": 3, "joining": 0, "leaving": 3}
    assert facts["presence"]["client_names"] == ["here", "there", "yonder"]
    assert facts["presence"]["first_step"] == [-1, -1, -1]
    shift = facts["label_shift"]
    assert (shift["pairs"], shift["cells"], shift["clients_with_min_windows"]) == (9, 12, 0)
    assert shift["consecutive_mean"] == pytest.approx(14 / 13)
    assert shift["consecutive_p90"] == pytest.approx(14 / 13)
    assert shift["between_clients"] == pytest.approx(28 / 39)
    assert shift["first_to_last"] == pytest.approx(0)


def test_the_tables_say_what_the_facts_are(driftscale: Driftscale, replayed: Path) -> None:
    printed = lines(driftscale("traces", "inspect", replayed, "--min-windows", "4"))
    for line in (
        "figures on the observations in the table",
        "groups 3",
        "groups that join later 0",
        "samples: observed 156",
        "observed 52 52 52 52 52 52 52",
        "0 'z' 64",
        "-1 39 3 3 0",
        "groups observed in 4 windows or more 3",
        "distance of such a pair: mean 1.077",
        "distance of a group from the mean of all in a window: mean 0.718",
    ):
        assert line in printed


def test_cells_with_too_few_samples_do_not_count(driftscale: Driftscale, replayed: Path) -> None:
    shift = inspected(driftscale, replayed, "--min-samples", "14")["label_shift"]
    assert shift["cells"] == 0
    assert shift["consecutive_mean"] is None
    assert "distance of such a pair: mean -" in lines(
        driftscale("traces", "inspect", replayed, "--min-samples", "14")
    )


def test_a_table_may_have_more_labels_than_the_images_have_classes(
    driftscale: Driftscale, tmp_path: Path, replayed: Path
) -> None:
    write_label_trace(tmp_path / "labels.csv", kinds=[f"k{number}\x1b" for number in range(MOST_LABELS + 5)])
    assert len(inspected(driftscale, replayed)["labels"]) == MOST_LABELS + 5
    ended = driftscale("traces", "inspect", replayed)
    assert "\x1b[" not in ended.out  # a terminal obeys no label
    assert "\x1b" not in ended.out
    rows = [line for line in lines(ended) if line.startswith(("0 '", f"{MOST_LABELS - 2} '", "6 more"))]
    assert len(rows) == 3


def test_settings_are_overridden_and_those_that_exclude_each_other_refused(
    driftscale: Driftscale, replayed: Path
) -> None:
    assert len(inspected(driftscale, replayed, "--set", "trace.window=year")["arrivals"]) == 1
    ended = driftscale(
        "traces", "inspect", replayed, "--set", "trace.window=year", "--set", "trace.window_days=1"
    )
    assert ended.code == 2
    assert ended.error.startswith(f"{replayed}: trace.window = 'year' and trace.window_days = 1: both give")


def test_a_drawn_trace_is_shown_by_its_samples(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(tmp_path, seeds=[3, 4])
    facts = inspected(driftscale, config, "--min-samples", "6")
    assert (facts["of"], facts["seed"]) == ("samples", 3)
    assert inspected(driftscale, config, "--seed", "4")["seed"] == 4
    # Twelve clients with six training samples at each of three steps, of which the first is owned.
    assert facts["samples"]["train"] == 12 * 3 * 6
    assert set(facts["samples_of_a_client"]["train"].values()) == {3 * 6}
    assert [(step["step"], step["samples"]) for step in facts["arrivals"]] == [(-1, 72), (0, 72), (1, 72)]
    assert sum(label["test"] for label in facts["labels"]) == facts["samples"]["test"]
    assert facts["presence"]["from_the_first_step"] == 12
    assert (facts["label_shift"]["windows"], facts["label_shift"]["pairs"]) == (3, 24)
    assert "figures on the trace of seed 3" in lines(driftscale("traces", "inspect", config))


def test_many_steps_are_condensed(driftscale: Driftscale, tmp_path: Path) -> None:
    write_label_trace(tmp_path / "labels.csv", days=2 * MOST_STEPS + 2)
    printed = lines(driftscale("traces", "inspect", write_replay(tmp_path)))
    # 42 steps in stretches of three
    assert "-1 to 1 117 3 3 0" in printed
    assert "38 to 40 117 3 0 3" in printed
    assert not any(line.startswith("41") for line in printed)


def test_a_folder_without_a_trace_or_a_sweep_is_not_inspected(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "built").mkdir()
    ended = driftscale("traces", "inspect", "built")
    assert (ended.code, ended.error) == (
        2,
        "built: not a trace folder: it has no trace.toml; it needs trace.toml, arrivals.parquet and "
        "features.npy",
    )
    config = write_small(tmp_path)
    config.write_text(config.read_text() + "\n[sweep]\n'round.participants' = [2, 3]\n")
    ended = driftscale("traces", "inspect", config)
    assert ended.code == 2
    assert "has a [sweep]" in ended.error


@pytest.mark.slow
def test_onsets_and_mass_events_of_a_drift_are_shown(driftscale: Driftscale, tmp_path: Path) -> None:
    drift = {"kind": "label_mix", "move_probability": 0, "events": [{"round": 2, "share": 0.75}]}
    config = write_small(tmp_path, trace={"clients": 4, "drift": drift})
    event = {"step": 1, "clients": 3, "share": 0.75}
    assert inspected(driftscale, config)["truth"] == {
        "concepts": None,
        "onsets": 3,
        "clients_with_onset": 3,
        "mass_events": [event],
    }
    printed = lines(driftscale("traces", "inspect", config, "--html", "page.html"))
    for line in (
        "onsets, of a client that begins to receive other data 3",
        "clients with an onset 3",
        "mass events: onsets of half of the clients or more data step 1 (75 %)",
    ):
        assert line in printed
    page = (tmp_path / "page.html").read_text()
    assert "<td>data step 1 (75 %)</td>" in page
    still = write_small(tmp_path, trace={"clients": 4, "drift": "none"})
    assert "mass events: onsets of half of the clients or more none" in lines(
        driftscale("traces", "inspect", still)
    )


def test_nothing_is_said_of_onsets_that_are_not_known(driftscale: Driftscale, replayed: Path) -> None:
    assert set(inspected(driftscale, replayed)["truth"].values()) == {None}
    assert not any("onset" in line for line in lines(driftscale("traces", "inspect", replayed)))
