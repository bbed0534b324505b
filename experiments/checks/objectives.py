"""What has no meaning where a model is not trained on labels, refused before any run."""

from __future__ import annotations

from coordinator.federation.method import Parts
from emulator.errors import ConfigurationError
from experiments.build import objective_kind, objective_of
from experiments.config import Arm, Experiment
from traces.trace import Trace


def refuse_unseen_labels(experiment: Experiment, trace: Trace) -> None:
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
    """ConfigurationError if a part reads which labels models tell, and they tell something else."""
    if objective_of(experiment, trace).reads == "labels":
        return
    kind = objective_kind(experiment, trace)
    for name, part in parts.by_name.items():
        if part.needs_labels:
            chosen = getattr(arm, name, None) or arm.detectors.get(name.removeprefix("detector "))
            instead = "set signal = 'losses'" if hasattr(part.settings, "signal") else "take another"
            raise ConfigurationError(
                f"{name} = {(chosen.kind if chosen else part.name)!r}: reads which labels are told, or if "
                f"they are right, and a model of training.objective = {kind!r} tells none; {instead}"
            )
