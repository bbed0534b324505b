"""What tables use of the recorded configuration of each arm: its kind of method, and the size of a visit.

Read as it was recorded, so that plug-ins need not be installed: names of parts are compared, not the parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from experiments.results.reading.recorded import WITHOUT_CLUSTERS

NEVER = "never"
AT_EVERY_DRIFT = 0
"""The thresholds with which Fielding's trigger has nothing to decide."""

CENTRE_SHIFT = "centre_shift"
"""Fielding's trigger, which may have one of these thresholds."""

ORACLE = "oracle"
"""The clusterer that is told the true concepts."""

FIXED = "fixed"
"""The pacing of rounds of a fixed duration."""

WITHOUT_ADAPTATION = "none"

OF_CLUSTERS = ("clusterer", "representation", "detectors")
"""The parts of an arm in which one with clusters may differ from the one-model arm beside it."""

KEEP_THE_SIZE_OF_A_VISIT = ("adaptive_lr",)
"""The schedules that set neither the local steps nor the batch size; those of third parties may."""

BY_CLUSTER = "by_cluster"
"""The schedule that sets what its `clusters` name."""

MOST_SAMPLES = 2**31
"""Most local steps, or samples of a batch, of a configuration that is believed."""


@dataclass(frozen=True)
class ConfiguredArm:
    """An arm by its configuration.

    Attributes:
        clusterer: Kind of its clusterer.
        has_trigger: Whether a trigger decides in each run whether all clients are clustered anew, so that it
            may do so in some seeds and not in others; not one that never fires, or fires at every drift.
        is_baseline: Whether it is an arm without clusters that the others are compared with.
        has_fixed_rounds: Whether its rounds have a fixed duration.
        has_adaptation: Whether its clients adapt the model that serves them.
        beside_clusters: A text that is the same for two arms exactly if they have the same adaptation and are
            equal in all parts and settings but those of `OF_CLUSTERS`.
        samples_per_visit: Local steps x batch size, the samples that a visit trains a model on; None if a
            schedule may set one of them, if it takes epochs, or if they were not recorded.
        start: The file that its initial model is from, as the configuration names it; empty if it is drawn.
    """

    clusterer: str
    has_trigger: bool
    is_baseline: bool
    has_fixed_rounds: bool
    has_adaptation: bool
    beside_clusters: str
    samples_per_visit: float | None
    start: str

    @property
    def has_one_model(self) -> bool:
        """Whether all clients share one model."""
        return self.clusterer == WITHOUT_CLUSTERS

    @property
    def is_oracle(self) -> bool:
        """Whether it is told the true concepts."""
        return self.clusterer == ORACLE


def configured_arms(experiment: Mapping[str, Any]) -> dict[str, ConfiguredArm]:
    """The arms of a recorded configuration by name, in the configured order."""
    return {str(arm["name"]): _configured(arm, experiment) for arm in experiment["arm"]}


def headline_arm(experiment: Mapping[str, Any]) -> str | None:
    """The arm of the report's headline: `report.headline`, or with baselines the last arm of the others.

    An oracle is not taken unless it is named. None, for a headline on all arms, if there is no such arm.
    """
    named: str | None = experiment["report"].get("headline")
    arms = configured_arms(experiment)
    if named is not None or not any(arm.is_baseline for arm in arms.values()):
        return named
    others = [name for name, arm in arms.items() if not arm.is_baseline and not arm.is_oracle]
    return others[-1] if others else None


def _configured(arm: Mapping[str, Any], experiment: Mapping[str, Any]) -> ConfiguredArm:
    adaptation = arm.get("adaptation", {"kind": WITHOUT_ADAPTATION})
    training = {**experiment.get("training", {}), **arm.get("training", {})}
    others = {key: value for key, value in arm.items() if key not in ("name", "baseline", *OF_CLUSTERS)}
    return ConfiguredArm(
        clusterer=_kind(arm.get("clusterer")),
        has_trigger=_has_trigger(arm.get("clusterer")),
        is_baseline=arm.get("baseline", False),
        has_fixed_rounds=_kind(arm.get("pacing")) == FIXED,
        has_adaptation=_kind(adaptation) != WITHOUT_ADAPTATION,
        beside_clusters=json.dumps({**others, "adaptation": adaptation}, sort_keys=True, default=str),
        samples_per_visit=_samples_per_visit(arm, experiment.get("training", {})),
        start=str(_table(training.get("start")).get("file", "")),
    )


def _table(recorded: Any) -> Mapping[str, Any]:
    """A recorded table; empty if it is none."""
    return recorded if isinstance(recorded, Mapping) else {}


def _kind(part: Any) -> str:
    """The kind of a part, whose table has it; empty if it was not recorded."""
    return str(_table(part).get("kind", ""))


def _has_trigger(clusterer: Any) -> bool:
    """Whether the recorded clusterer has a trigger with something to decide."""
    trigger = _table(_table(clusterer).get("trigger"))
    is_idle = _kind(trigger) == CENTRE_SHIFT and trigger.get("threshold") in (NEVER, AT_EVERY_DRIFT)
    return bool(_kind(trigger)) and not is_idle


def _keeps_the_size(schedule: Any) -> bool:
    """Whether a recorded schedule is known to set neither the local steps nor the batch size."""
    if _kind(schedule) != BY_CLUSTER:
        return _kind(schedule) in KEEP_THE_SIZE_OF_A_VISIT
    clusters = schedule.get("clusters")
    numbers = list(clusters.values()) if isinstance(clusters, Mapping) else [None]
    sizes = {"local_steps", "batch_size"}
    return all(isinstance(item, Mapping) and not sizes & set(item) for item in numbers)


def _has_epochs(solver: Any) -> bool:
    """Whether a recorded rule says how many epochs a visit has at most, as `early_stopping` may."""
    rules = solver if isinstance(solver, list) else [solver]
    return any(_table(rule).get("epochs") is not None for rule in rules)


def _samples_per_visit(arm: Mapping[str, Any], shared: Mapping[str, Any]) -> float | None:
    own, schedules = arm.get("training", {}), arm.get("schedules", [])
    training = {**shared, **own}
    if not isinstance(schedules, list) or not all(map(_keeps_the_size, schedules)):
        return None
    of_epochs = "local_epochs" in own or ("local_epochs" in shared and "local_steps" not in own)
    if of_epochs or _has_epochs(arm.get("solver")):  # as many as the client holds
        return None
    factors = (training.get(key) for key in ("local_steps", "batch_size"))
    known = [value for value in factors if type(value) is int and 0 < value < MOST_SAMPLES]
    return float(prod(known)) if len(known) == 2 else None
