"""The table of verdicts in docs/fielding.md: its form, and in a sweep, its figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from emulator.seeding import RandomStreams
from experiments.cli.app import app
from experiments.reading import read_table
from tests.docs.blocks import ROOT
from tests.docs.verdicts import VERDICTS, Figure, Row, rows

DRAWN = 3
SEED = int(os.environ.get("DRIFTSCALE_VERDICTS_SEED", "0"))
"""Decides which rows are played."""

SUMMARY = {
    "reference_arm": "global",
    "targets": [{"target": 0.95, "arms": {"moves": {"speedup": {"median": {"low": 1.287}}}}}],
    "arms": {
        "global": {"mean_accuracy": {"per_seed": [0.5, 0.6]}, "final_accuracy": {"per_seed": [0.5, 0.5]}},
        "moves": {
            "mean_accuracy": {"per_seed": [0.6, 0.6]},
            "final_accuracy": {"per_seed": [0.4, 0.6]},
            "mean_client_distance": {"mean": 1.154},
            "final_client_distance": {"mean": 1.2},
        },
    },
}


def test_a_row_names_arms_that_its_command_plays_and_has_a_figure_and_one_of_four_verdicts() -> None:
    problems = [f"{row.claim}: {problem}" for row in rows() for problem in _problems_of(row)]
    assert problems == []


def _problems_of(row: Row) -> Iterator[str]:
    if row.verdict not in VERDICTS:
        yield f"verdict {row.verdict!r}"
    if not row.is_played:
        return
    file = ROOT / "experiments" / "configs" / f"{row.configuration}.toml"
    shipped = [arm["name"] for arm in read_table(file)["arm"]]
    chosen = row.words[row.words.index("--arms") + 1].split(",") if "--arms" in row.words else shipped
    named = {name for figure in row.figures for name in (figure.arm, figure.base or shipped[0])}
    if not named <= set(chosen) <= set(shipped):
        yield f"figures of {sorted(named)} by a command that plays {chosen} of {shipped}"


def test_rows_have_all_four_verdicts_and_claims_of_their_own() -> None:
    assert {row.verdict for row in rows()} == set(VERDICTS)
    assert len({row.claim for row in rows()}) == len(rows())


@pytest.mark.parametrize(
    "text",
    [
        "moves: +5.0 pp, final 0.0 pp",
        "global over moves: -5.0 pp, final 0.0 pp",
        "moves: distance 1.15, final 1.20",
        "moves: 1.29 times sooner at 95 %",
    ],
)
def test_a_figure_is_read_and_measured_in_the_same_words(text: str) -> None:
    assert Figure.parsed(text).measured(SUMMARY) == text


def test_another_text_is_no_figure() -> None:
    with pytest.raises(ValueError, match="is no figure"):
        Figure.parsed("fielding: about +5 pp")


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("number", range(DRAWN))
def test_a_row_drawn_by_seed_is_what_its_command_gives(number: int, tmp_path: Path) -> None:
    """Of the rows whose data are at hand (DRIFTSCALE_DATA), the three first ones of a random order."""
    state = [row for row in drawn() if _is_at_hand(row)]
    if number >= len(state):
        pytest.skip(f"the data of {len(state)} rows are at hand; set DRIFTSCALE_DATA to their folder")
    row = state[number]
    played = CliRunner().invoke(app, [*row.words[1:], "--out", str(tmp_path / "run")])
    assert played.exit_code == 0, played.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert [figure.measured(summary) for figure in row.figures] == [figure.text for figure in row.figures]


def drawn() -> list[Row]:
    """The rows that can be played, in the order that the seed draws."""
    played = [row for row in rows() if row.is_played]
    order = RandomStreams(SEED).generator("verdicts").permutation(len(played))
    return [played[number] for number in order]


def _is_at_hand(row: Row) -> bool:
    return CliRunner().invoke(app, ["check", row.configuration]).exit_code == 0
