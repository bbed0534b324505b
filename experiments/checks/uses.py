"""Which arms train alike, and which adaptations are no use of another arm's training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.federation.evaluation.uses import trains_alike
from coordinator.federation.method import Parts
from emulator.errors import ConfigurationError
from emulator.own_parts import is_ours
from experiments.build import build_parts
from experiments.config import Arm, Experiment
from experiments.extending import ADAPTATION, EVALUATE_WITH, WITHOUT
from experiments.results.reading.deciding import deciding


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
    Arms with different names for the same are trained apart: who has two of them compares their trainings.
    So are those with an adaptation of one's own.
    """
    tables = deciding(experiment.resolved())["arm"]
    groups: dict[tuple[str, int], list[str]] = {}
    same: Counter[str] = Counter()
    for name in arms:
        table = {key: value for key, value in tables[name].items() if key != "name"}
        same[_text(table)] += 1
        others = {key: value for key, value in table.items() if key != ADAPTATION}
        groups.setdefault((_text(others), same[_text(table)]), []).append(name)
    return [part for group in groups.values() for part in _parted(experiment, group)]


def _text(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True, default=str)


def _parted(experiment: Experiment, group: Sequence[str]) -> list[list[str]]:
    """Arms that differ in their adaptation alone, in groups of one training."""
    if len(group) == 1:
        return [list(group)]
    arms = {name: experiment.find_arm(name) for name in group}
    # What an adaptation of one's own does to the models that it is shown, or to a generator, is not known.
    apart = [
        name
        for name, arm in arms.items()
        if not is_ours(arm.adaptation.part) or _own_training(build_parts(experiment, arm))
    ]
    together = [name for name in group if name not in apart]
    together.sort(key=lambda name: arms[name].adaptation.kind != WITHOUT)
    return [*([together] if together else []), *([name] for name in apart)]
