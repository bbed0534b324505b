"""Which conclusions carry jitter: the tables of docs/explanation/how-true.md.

`python -m benchmarks.reality.conclusions FOLDER` plays what conclusions.toml says below FOLDER, in an hour on
one core, and prints docs/evidence/how-true.json, from which `make evidence` writes the page. Seed by seed, an
arm is compared with another one of its level of jitter, and with itself without jitter. All levels of an
experiment have one horizon, the latest second that all of its runs reach.
"""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import driftscale
from docs.writing.evidence import as_text
from experiments.cli import main
from experiments.results.statistics.medians import Bounds, exactly, median_estimate, ratio

if TYPE_CHECKING:
    from driftscale import Results

COMMAND = "python -m benchmarks.reality.conclusions runs/jitter > docs/evidence/how-true.json"
WHAT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SEEDS, ENOUGH = range(10), 9
"""So many of the seeds have to agree; chance does that once in 47 times (a sign test, both sides)."""
HALF_A_POINT = 0.005

Figures = Mapping[str, Sequence[Bounds]]
"""The figures of an arm by name, those of a target as `first_reached_s@0.5`, in order of seeds."""
Outcomes = Mapping[tuple[str, str], Figures]
"""The figures by level of jitter and by experiment and arm, such as ("visits", "digits/fielding")."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of the pages: a figure of an arm beside that of another arm lies between two numbers.

    Accuracies and gains are compared by differences in percentage points, counts by the arm's over the other
    arm's, times by the other arm's over the arm's. With `denied` the sentence says that this is not shown.
    """

    text: str
    arm: str
    beside: str
    figure: str
    above: float = 0.0
    below: float = math.inf
    denied: bool = False

    def cell(self, outcomes: Outcomes, level: str) -> str:
        """The median with least and most, how many seeds lie between the numbers, and whether that fails."""
        arm, beside = (outcomes[level, name][self.figure] for name in (self.arm, self.beside))
        points = {"accuracy": 100, "pp": 1}.get(self.figure.rpartition("_")[2], 0)
        if points:
            per_seed = [exactly(points * (a.low - b.low)) for a, b in zip(arm, beside, strict=True)]
        else:
            is_time = self.figure.partition("@")[0].endswith("_s")
            over = zip(beside, arm, strict=True) if is_time else zip(arm, beside, strict=True)
            per_seed = [ratio(*pair) for pair in over]
        count = sum(self.above < bounds.low and bounds.high <= self.below for bounds in per_seed)
        shown = f"{spread(per_seed, 1 if points else 2)}; {count}/{len(per_seed)}"
        return shown if (count >= ENOUGH) != self.denied else f"**fails**: {shown}"


def time_cell(times: Sequence[Bounds], without: Sequence[Bounds]) -> str:
    """The logs of the ratios of times, seed by seed, and how many times are after the horizon."""
    ratios = [ratio(one, base) for one, base in zip(times, without, strict=True)]
    shown = spread([Bounds(_log(item.low), _log(item.high)) for item in ratios], 2)
    later = sum(math.isinf(one.high) for one in times)
    return f"{shown}; {later} later" if later else shown


def spread(per_seed: Sequence[Bounds], decimals: int) -> str:
    """The median of numbers with the least and the most, each as far as it is known."""
    lows, highs = sorted(item.low for item in per_seed), sorted(item.high for item in per_seed)
    stated = (median_estimate(per_seed).median, Bounds(lows[0], highs[0]), Bounds(lows[-1], highs[-1]))
    median, least, most = (_shown(item, decimals) for item in stated)
    return f"{median} ({least} to {most})"


def figures(results: Results, arm: str, horizon_s: float) -> Figures:
    """The figures of an arm in `summary.json`, and `round_s`, the mean seconds of a round."""
    summary = results.summary
    of_arm = summary[summary["arm"] == arm].sort_values("seed")
    named = {
        f"{name}@{target:g}" if target > 0 else name: [Bounds(low, high) for low, high in rows.to_numpy()]
        for (name, target), rows in of_arm.groupby(["figure", "target"], dropna=False)[["low", "high"]]
    }
    return {**named, "round_s": [exactly(horizon_s / rounds.low) for rounds in named["rounds"]]}


def played(folder: Path, experiment: str) -> Outcomes:
    """The figures of an experiment at all levels; runs that are not below `folder` yet are played."""
    what = WHAT["experiment"][experiment]
    targets = {goal + more for goal in what["targets"].values() for more in (0, HALF_A_POINT)}

    def run(level: str, report: Mapping[str, Any]) -> Results:
        jitter = {f"devices.jitter.{key}": sd for key, sd in WHAT["level"][level].items()}
        out = folder / level.replace(" ", "-") / experiment
        settings = {**what.get("settings", {}), **jitter, **report}
        return driftscale.run(
            what["config"], settings, SEEDS, out, "auto", arms=what["targets"], progress=False
        )

    ends = [run(level, {}).rounds.groupby(["arm", "seed"])["closed_s"].max().min() for level in WHAT["level"]]
    horizon_s = math.floor(min(ends))
    sys.stderr.write(f"{experiment}: up to {horizon_s:,} s\n")
    report = {"report.horizon_s": horizon_s, "report.targets": sorted(targets)}
    return {
        (level, f"{experiment}/{arm}"): figures(results, arm, horizon_s)
        for level in WHAT["level"]
        for results in [run(level, report)]
        for arm in what["targets"]
    }


def tables(outcomes: Outcomes) -> Mapping[str, Any]:
    """The content of docs/evidence/how-true.json."""
    without, *jittered = WHAT["level"]
    sentences = [Sentence(**row) for row in WHAT["sentence"]]
    times = []
    for experiment, what in WHAT["experiment"].items():
        for arm, target in what["targets"].items():
            of_level = {level: outcomes[level, f"{experiment}/{arm}"] for level in WHAT["level"]}
            goal, harder = (f"first_reached_s@{at:g}" for at in (target, target + HALF_A_POINT))
            base = of_level[without]
            cells = [time_cell(of_level[level][goal], base[goal]) for level in jittered]
            times.append(
                [f"{experiment}: `{arm}`, {100 * target:.0f} %", *cells, time_cell(base[harder], base[goal])]
            )
    both = {"page": "docs/explanation/how-true.md", "commands": [COMMAND]}
    holds = [[one.text, *(one.cell(outcomes, level) for level in WHAT["level"])] for one in sentences]
    return {
        "typed_in": True,
        "tables": {
            "sentences": {**both, "header": ["sentence", *WHAT["level"]], "rows": holds},
            "times": {**both, "header": ["time to", *jittered, "half a point more"], "rows": times},
        },
    }


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _shown(item: Bounds, decimals: int) -> str:
    low, high = (f"{round(end, decimals) + 0.0:.{decimals}f}" for end in (item.low, item.high))
    if math.isinf(item.low):
        return "?" if math.isinf(item.high) else f"<= {high}"
    return f">= {low}" if math.isinf(item.high) else low if low == high else f"{low} … {high}"


def conclude() -> None:
    """Play what is missing below the folder of the command line, and print the tables."""
    outcomes: dict[tuple[str, str], Figures] = {}
    for experiment in WHAT["experiment"]:
        outcomes |= played(Path(sys.argv[1]), experiment)
    sys.stdout.write(as_text(tables(outcomes)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.reality.conclusions FOLDER")
    main(conclude)
