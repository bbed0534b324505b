"""Checks of a recorded configuration, after which a report can use it without further checks.

A run directory may come from somebody else, or with plug-ins that are not installed
here. So its configuration is read as it stands, and only the keys that a report uses are checked. A
ValueError states what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from coordinator.population import FaultSettings
from emulator.numbers import Seed
from emulator.plugins import Settings
from emulator.storage.bounded import has_controls

MOST_RUNS = 2**15
"""Most arms x seeds of one experiment."""

MOST_EXPERIMENT_BYTES = 2**22
"""Largest `experiment.toml`: each arm takes half a kilobyte or more once its defaults are written out."""

MOST_NAME_BYTES = 255
"""Longest name of an arm, in bytes: it is also the name of a folder."""

MOST_TARGETS = 20
"""Most targets of one report: each has a table of its own."""

LONGEST_S = 1e12
"""Longest virtual time: some thirty thousand years."""

REFERENCE = "reference"

WITHOUT_CLUSTERS = "single"
"""The clusterer that gives all clients one model."""

THRESHOLD = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
"""A threshold in the name of a detector that is one at several."""

Target = float | Literal["reference"]
"""An accuracy, or "reference": that of the reference arm at the horizon, seed by seed."""

MOST_TIMED = 2**14
"""Most runs x targets of one experiment: each takes up to two kilobytes of `summary.json`."""

LISTS = ("seeds", "arm")

EXPERIMENT_FILE = "experiment.toml"


class AtlasChoice(Settings):
    """What was chosen for a column of the atlas, on seeds that are not reported; it decides no run.

    Arms that differ from the best use of a row in their adaptation alone are no rows.
    """

    seeds: tuple[Seed, ...] = Field(min_length=1, description="seeds on which settings and these were chosen")
    rival: str = Field(description="arm that every row is compared with")
    best: dict[str, str] = Field(default_factory=dict, description="by row, the arm that is its best use")

    def but_for(self, newer: AtlasChoice) -> AtlasChoice:
        """The newer choice, and what was chosen here for rows that it does not have."""
        return newer.model_copy(update={"best": {**self.best, **newer.best}})

    def problem(self, arms: Collection[str]) -> str:
        """What is wrong with it in a configuration with these arms; empty if nothing is."""
        best = {f"best.{row}": arm for row, arm in self.best.items()}
        for key, arm in {"rival": self.rival, **best}.items():
            if arm not in arms:
                return f"atlas.{key} = {arm!r}: names no arm; choices: {', '.join(arms)}"
        return ""


def require(holds: bool, rule: str) -> None:
    """Raise ValueError, which states the rule, unless it holds."""
    if not holds:
        raise ValueError(rule)


def refuse_too_many_runs(num_arms: int, num_seeds: int, num_targets: int = 0) -> None:
    """Raise ValueError for an experiment that is too large for its files to be read back."""
    runs, of_runs = num_arms * num_seeds, f"{num_arms} arms x {num_seeds} seeds"
    require(runs <= MOST_RUNS, f"{of_runs}: an experiment has at most {MOST_RUNS} runs")
    require(
        runs * num_targets <= MOST_TIMED,
        f"{of_runs} x {num_targets} targets: an experiment has at most {MOST_TIMED} runs x targets; "
        f"run it with fewer report.targets, and report it again with others",
    )


def refuse_unreadable(experiment: Mapping[str, Any]) -> None:
    """Raise ValueError if a recorded configuration breaks a rule that a report depends on.

    The caller has checked that it has a name, and lists of seeds and arms and a report of the right types.
    """
    arms, num_seeds, report = experiment["arm"], len(experiment["seeds"]), experiment["report"]
    refuse_too_many_runs(len(arms), num_seeds)
    for key, value in experiment.items():
        require(isinstance(value, Mapping) or key in (*LISTS, "name"), f"{key} must be a table")
    require(isinstance(experiment["name"], str), "name must be a text")
    _refuse_unreadable_names(experiment["name"], arms)
    for arm in arms:
        require(isinstance(arm.get("training", {}), Mapping), "training of an arm must be a table")
        require(type(arm.get("baseline", False)) is bool, "baseline of an arm must be true or false")
    _refuse_unreadable_report(report)
    names = [arm["name"] for arm in arms]
    require(report.get("headline", names[0]) in names, "report.headline must be the name of an arm")
    require(isinstance(report.get("first", ""), str), "report.first must be the name of a figure or table")
    refuse_too_many_runs(len(arms), num_seeds, len(recorded_targets(report)))
    clients = experiment.get("round", {}).get("evaluate_clients")
    require(clients is None or type(clients) is int, "round.evaluate_clients must be a whole number")
    _refuse_unreadable_published(report.get("published", {}))
    _refuse_unreadable_faults(experiment.get("faults", {}))
    if "detection" in experiment:
        from experiments.results.reading.detection import detection_settings

        detection_settings(experiment)


def recorded_targets(report: Mapping[str, Any]) -> list[Target]:
    """The targets of a recorded `[report]`."""
    targets: list[Target] = report.get("targets", [])
    return targets


def is_target(value: Any) -> bool:
    """Whether `value` is an accuracy above 0 and at most 1, or "reference"."""
    return value == REFERENCE or (is_finite(value) and 0 < value <= 1)


def is_finite(value: Any) -> bool:
    """Whether `value` is an int or a float that is finite; an int must be small enough for a float."""
    if type(value) is int:
        return value.bit_length() < 1024
    return type(value) is float and math.isfinite(value)


def _refuse_unreadable_names(name: str, arms: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if the name of an arm is too long, or any name has control characters."""
    for arm in arms:
        rule = f"the name of an arm has more than {MOST_NAME_BYTES} bytes"
        require(len(arm["name"].encode()) <= MOST_NAME_BYTES, rule)
    for text in (name, *(arm["name"] for arm in arms)):
        require(not has_controls(text), f"name = {text!r}: has characters that nobody can read")


def _refuse_unreadable_report(report: Mapping[str, Any]) -> None:
    """Raise ValueError if the window, the horizon or a target is invalid."""
    window, horizon_s = report["window"], report.get("horizon_s")
    require(type(window) is int and window >= 1, "report.window must be a whole number, at least 1")
    require(
        horizon_s is None or (is_finite(horizon_s) and 0 < horizon_s <= LONGEST_S),
        f"report.horizon_s must be a number above 0, at most {LONGEST_S:g}",
    )
    rule = "report.target: of an earlier version of driftscale; report.targets takes its place"
    require("target" not in report, rule)
    targets = recorded_targets(report)
    require(
        isinstance(targets, list) and len(targets) <= MOST_TARGETS and all(map(is_target, targets)),
        f"report.targets must be a list of at most {MOST_TARGETS} numbers above 0, at most 1, "
        f'or "{REFERENCE}"',
    )


def _refuse_unreadable_faults(faults: Any) -> None:
    try:
        FaultSettings.model_validate(faults)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        path = "".join(f".{key}" for key in problem["loc"])
        raise ValueError(f"faults{path}: {problem['msg'].removeprefix('Value error, ')}") from error


def _refuse_unreadable_published(published: Any) -> None:
    rule = "report.published must have tables of an arm's mean, or of its mean and standard deviation"
    require(isinstance(published, Mapping), rule)
    for figure in published.values():
        require(isinstance(figure, Mapping), rule)
        for values in figure.values():
            require(isinstance(values, list) and len(values) in (1, 2) and all(map(is_finite, values)), rule)


def squared_distances(experiment: Mapping[str, Any]) -> dict[str, bool]:
    """Whether an arm's clusterer compares squared distances, by the arm's name.

    Only if its settings name them: no representation has squared distances by default.
    """
    return {
        str(arm["name"]): isinstance(arm.get("clusterer"), dict)
        and arm["clusterer"].get("distance") == "squared_euclidean"
        for arm in experiment["arm"]
    }


def written(value: Any) -> str:
    """A configured value as readable text; a part is its kind, followed by its settings in brackets."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} {written(item)}" for key, item in value.items() if key != "kind")
        if "kind" not in value:
            return inner or "none"
        return f"{value['kind']} ({inner})" if inner else str(value["kind"])
    if isinstance(value, list):
        return ", ".join(written(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def at_threshold(curve: str, threshold: float) -> str:
    """The name of a detector at one of its thresholds.

    >>> at_threshold("ddm", 2.5)
    'ddm@2.5'
    """
    return f"{curve}@{threshold}"


def is_threshold(value: object) -> bool:
    """Whether it is a number that the name of a detector can have."""
    return (
        type(value) in (int, float) and THRESHOLD.fullmatch(str(value)) is not None and len(str(value)) < 25
    )


def curve_of(name: str) -> tuple[str, float | None]:
    """(curve, threshold) of the name of a detector; of another one, the whole name, and None.

    >>> curve_of("ddm@2.5"), curve_of("ddm@1e-09"), curve_of("ddm"), curve_of("me@home")
    (('ddm', 2.5), ('ddm', 1e-09), ('ddm', None), ('me@home', None))
    """
    curve, _, text = name.rpartition("@")
    return (curve, float(text)) if curve and THRESHOLD.fullmatch(text) else (name, None)
