"""The table of verdicts in docs/fielding.md: its rows, and a run's figures in the words of their cells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tests.docs.blocks import ROOT

PAGE = "docs/fielding.md"
HEADER = "| claim | its measure | the paper | ours | verdict | command |"
VERDICTS = ("reproduced", "in part", "contradicted", "not tried")
MEASURES = (r"\S+ pp, final \S+ pp", r"distance \S+, final \S+", r"\S+ times sooner at (\d+) %")
FIGURE = re.compile(rf"([\w-]+)(?: over ([\w-]+))?: (?:{'|'.join(MEASURES)})")


@dataclass(frozen=True)
class Figure:
    """A figure of a cell, such as `fielding over moves: +12.3 pp, final +14.0 pp`.

    A figure in points is the mean difference of two arms, paired by seed: over time, and at the horizon. The
    second arm is the reference if none is named. `moves: distance 1.15, final 1.14` is an arm's client
    distance, and `fielding: 1.29 times sooner at 95 %` the median of its speed-up to a target.
    """

    text: str
    arm: str
    base: str | None
    target: float | None

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The figure that `text` is; ValueError if it is none."""
        match = FIGURE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no figure such as 'fielding: +1.2 pp, final +3.4 pp'")
        return cls(text, match[1], match[2], None if match[3] is None else int(match[3]) / 100)

    def measured(self, summary: Mapping[str, Any]) -> str:
        """The same figure, as the `summary.json` of a run has it."""
        name = self.arm if self.base is None else f"{self.arm} over {self.base}"
        if self.target is not None:
            [table] = [table for table in summary["targets"] if table["target"] == self.target]
            speedup = table["arms"][self.arm]["speedup"]["median"]["low"]
            return f"{name}: {speedup:.2f} times sooner at {100 * self.target:.0f} %"
        arms = summary["arms"]
        if ": distance " in self.text:
            means = [arms[self.arm][f"{when}_client_distance"]["mean"] for when in ("mean", "final")]
            return "{}: distance {:.2f}, final {:.2f}".format(name, *means)
        of_arm, of_base = arms[self.arm], arms[self.base or summary["reference_arm"]]
        gains = (
            _points(of_arm[key]["per_seed"], of_base[key]["per_seed"])
            for key in ("mean_accuracy", "final_accuracy")
        )
        return "{}: {} pp, final {} pp".format(name, *gains)


def _points(of_arm: Sequence[float], of_base: Sequence[float]) -> str:
    """The mean difference in percentage points, without a sign if it is 0.0."""
    text = f"{100 * float(np.mean(np.subtract(of_arm, of_base))):+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


@dataclass(frozen=True)
class Row:
    """A row of the table: a claim, what became of it here, and the command that gives its figures."""

    claim: str
    ours: str
    verdict: str
    command: str

    @property
    def words(self) -> list[str]:
        """The words of the command, with the program's name."""
        return shlex.split(self.command)

    @property
    def is_played(self) -> bool:
        """Whether its figures are those of runs, of data that a reader may have."""
        return self.words[:2] == ["driftscale", "run"] and self.verdict != "not tried"

    @property
    def configuration(self) -> str:
        """The name of the shipped configuration that is run."""
        return self.words[2]

    @property
    def figures(self) -> list[Figure]:
        return [Figure.parsed(text) for text in self.ours.split("; ")] if self.is_played else []


def rows() -> list[Row]:
    """The rows of the table, from the page."""
    lines = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    start = lines.index(HEADER) + 2
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    return [_row(line) for line in lines[start:end]]


def _row(line: str) -> Row:
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    if len(cells) != HEADER.count("|") - 1:
        raise ValueError(f"{line!r} has {len(cells)} cells")
    claim, _, _, ours, verdict, command = cells
    return Row(claim, ours, verdict, command.strip("`"))
