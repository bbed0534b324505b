"""Which arms train alike, and which adaptations are no use of another arm's training."""

from __future__ import annotations

import json
from collections.abc import Sequence

from coordinator.federation.evaluation.uses import trains_alike
from coordinator.federation.method import Parts
from emulator.errors import ConfigurationError
from experiments.build import build_parts
from experiments.config import Arm, Experiment
from experiments.results.reading.deciding import deciding
from experiments.uses import ADAPTATION, EVALUATE_WITH, WITHOUT


def refuse_unfit_use(parts: Parts, arm: Arm) -> None:
    """ConfigurationError if an arm that `evaluate_with` has made trains otherwise for its adaptation."""
    if arm.evaluate_with is not None and (why := _own_training(parts)):
        raise ConfigurationError(
            f"{EVALUATE_WITH} of arm {arm.evaluate_with!r}: {ADAPTATION} = {arm.adaptation.kind!r} {why}; "
            f"give it an arm of its own"
        )


def _own_training(parts: Parts) -> str:
    """Why an adaptation is no use of the models that others train; empty if it is one."""
    adaptation = parts.adaptation
    if not adaptation.federates:
        return "federates nothing, so that there is no training to share"
    if not trains_alike(adaptation):
        return "has a say in how clients train, or reads their samples otherwise"
    if adaptation.needs_label_shares and not parts.always_reports_labels:
        return "has clients report shares of labels that they do not report anyway, which takes time"
    return ""


def trained_alike(experiment: Experiment, arms: Sequence[str]) -> list[list[str]]:
    """The `arms` (names) in groups, each of arms of which one training serves all.

    The first arm of a group is the one that trains: one whose models are used as they are, if there is one.
    """
    tables = deciding(experiment.resolved())["arm"]
    groups: dict[str, list[str]] = {}
    for name in arms:
        others = {key: value for key, value in tables[name].items() if key not in ("name", ADAPTATION)}
        groups.setdefault(json.dumps(others, sort_keys=True, default=str), []).append(name)
    return [part for group in groups.values() for part in _parted(experiment, group)]


def _parted(experiment: Experiment, group: Sequence[str]) -> list[list[str]]:
    """Arms that differ in their adaptation alone, in groups of one training."""
    if len(group) == 1:
        return [list(group)]
    arms = {name: experiment.find_arm(name) for name in group}
    apart = [name for name, arm in arms.items() if _own_training(build_parts(experiment, arm))]
    together = [name for name in group if name not in apart]
    together.sort(key=lambda name: arms[name].adaptation.kind != WITHOUT)
    return [*([together] if together else []), *([name] for name in apart)]
