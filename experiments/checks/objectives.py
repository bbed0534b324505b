"""What has no meaning where a model is not trained on labels, refused before any run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coordinator.federation.method import Parts
from emulator.errors import ConfigurationError
from executor.objectives.base import Objective
from experiments.build import objective_kind, objective_of, stated_objective
from experiments.config import Arm, Experiment
from traces.files import FACTS, FEATURES, TARGETS, TraceFolder
from traces.files.checking import Finding
from traces.files.checking.features import bad_samples
from traces.trace import Trace

AT_ONCE = 2**14
"""Texts that are looked at together."""


def refuse_unfit_samples(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError if the trace, or a fault, does not fit the objective."""
    _refuse_unseen_labels(experiment, trace)
    _refuse_other_targets(experiment, trace)


def _refuse_unseen_labels(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError if labels, or targets, change that no model sees: in the trace, or by a fault."""
    kind, changes = objective_kind(experiment, trace), getattr(experiment.trace.settings, "changes", ())
    reads = objective_of(experiment, trace).reads
    if any("target" in change.names for change in changes) and (reads != "targets" or kind == "multi_label"):
        raise ConfigurationError(
            f"trace.changes: what = 'target' maps numbers, and training.objective = {kind!r} reads none; set "
            f"'squared_error' or 'absolute_error', or leave it out"
        )
    if reads == "labels":
        return
    unseen = f"changes labels, and no model sees that: training.objective = {kind!r} reads none;"
    for change in changes:
        if change.changes_labels:
            instead = "leave it out" if trace.integers else "change features, as what = { rotate = 30 } does"
            raise ConfigurationError(f"trace.changes: what = {change.names[0]!r} {unseen} {instead}")
    if any(table.kind == "label_flip" and table.share > 0 for table in experiment.faults.byzantine):
        others = "choices: 'sign_flip', 'noise', 'misreport'"
        raise ConfigurationError(f"faults.byzantine: kind = 'label_flip' {unseen} {others}")


def refuse_readers_of_labels(experiment: Experiment, arm: Arm, parts: Parts, trace: Trace) -> None:
    """ConfigurationError if a part reads which labels models tell, and they are trained on something else."""
    if (kind := objective_kind(experiment, trace)) == "labels":
        return
    for name, part in parts.by_name.items():
        if part.needs_labels:
            chosen = getattr(arm, name, None) or arm.detectors.get(name.removeprefix("detector "))
            instead = "set signal = 'losses'" if hasattr(part.settings, "signal") else "take another"
            raise ConfigurationError(
                f"{name} = {(chosen.kind if chosen else part.name)!r}: reads which labels are told, or if "
                f"they are right, which is known with the objective 'labels' alone, and training.objective = "
                f"{kind!r}; {instead}"
            )


def _refuse_other_targets(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError for the first sample with a target that the objective does not know."""
    if bad := _bad_targets(objective_of(experiment, trace), trace.samples.images):
        raise ConfigurationError(
            f"training.objective = {objective_kind(experiment, trace)!r}: {bad[0].path.name}: "
            f"{bad[0].problem}; choose another one, or give other samples"
        )


def refused_of_folder(folder: TraceFolder) -> list[Finding]:
    """What the objective that a trace folder states is refused for: itself, or its targets."""
    reader: Any = folder.features
    try:
        chosen = stated_objective(folder.facts.objective)
        objective = chosen.build()
        objective.check(reader, chosen.kind)
    except ConfigurationError as error:
        return [Finding(folder.path / FACTS, str(error).removeprefix("training."))]
    return _bad_targets(objective, reader, folder.path)


def _bad_targets(objective: Objective, pool: Any, path: Path = Path()) -> list[Finding]:
    """The samples of a pool that have a target which the objective does not know, or no token to tell."""
    if objective.reads == "targets":
        return bad_samples(path / TARGETS, pool.targets(np.arange(len(pool))), objective.rule)
    padding = pool.tokens.padding if objective.reads == "tokens" else None
    for first in range(0, len(pool) if padding is not None else 0, AT_ONCE):
        texts = pool.features(np.arange(first, min(first + AT_ONCE, len(pool))))
        if (empty := (texts[:, 1:] == padding).all(axis=1)).any():
            problem = (
                f"sample {first + int(empty.argmax())}: has no token behind its first one, so none to tell"
            )
            return [Finding(path / FEATURES, problem)]
    return []
