"""Reference models: those with which clients measure their reports, and that of `round.client_distance`."""

from __future__ import annotations

import numpy as np

from coordinator.federation.hearing.client_data import Reference
from coordinator.representations.base import ReferenceSettings
from executor.executor import LocalExecutor
from executor.flops import forward_flops
from experiments.build import World, build_parts, objective_of, reader_of, refuse_context, start_of
from experiments.config import Arm, Experiment


def build_reference(experiment: Experiment, arm: Arm, world: World) -> Reference | None:
    """The reference model of one arm, trained in this process; None if the arm does not report with one.

    It is trained once for all arms of a world that have the same settings of it.

    Raises:
        ConfigurationError: The model cannot be trained on these samples.
        InputError: No client holds a training sample at step 0.
        RunError: The model diverged.
        ResumableError: There is not enough memory for it.
    """
    parts = build_parts(experiment, arm)
    settings = parts.representation.reference
    if settings is None or not parts.needs_reports:
        return None
    return _trained(experiment, arm, world, settings)


def build_measuring(experiment: Experiment, arm: Arm, world: World) -> Reference | None:
    """The reference model of `round.client_distance`, trained in this process; None if it needs none.

    It is trained once for all arms of a world. Raises as `build_reference` does.
    """
    settings = experiment.round.client_distance.build().reference
    return None if settings is None else _trained(experiment, arm, world, settings)


def _trained(experiment: Experiment, arm: Arm, world: World, settings: ReferenceSettings) -> Reference:
    executor = reference_executor(experiment, arm, world, settings)
    # Without what a representation has besides, such as a sketch.
    training = {name: getattr(settings, name) for name in ReferenceSettings.model_fields}
    of_arm = arm.reference_model(settings) == arm.training.model
    start, shape = of_arm and arm.training.start, executor.reader.sample_shape
    key = repr({**training, "model": arm.reference_model(settings), "start": start, "shape": shape})
    if key not in world.references:
        rows = world.trace.reference_rows(settings.per_label)
        parameters = executor.pretrained(rows, settings.epochs, settings.batch_size, settings.learning_rate)
        samples = np.bincount(world.trace.labels(rows), minlength=world.trace.num_labels)
        world.references[key] = parameters, samples
    return Reference(executor, *world.references[key], _cost(experiment, arm, world, settings), of_arm)


def reference_executor(
    experiment: Experiment, arm: Arm, world: World, settings: ReferenceSettings
) -> LocalExecutor:
    """The executor of the reference model, with the strategy that suits it, whatever the arm's model has.

    It reads all samples plain.
    """
    of_arm = arm.reference_model(settings) == arm.training.model
    if not of_arm:
        refuse_context(arm.reference_model(settings), "model")
    return LocalExecutor(
        reader_of(arm, world.trace) if of_arm else world.trace,
        arm.reference_model(settings).build(),
        [rule.build() for rule in arm.solver],
        world.streams,
        experiment.executor.model_copy(update={"strategy": "auto"}),
        start=start_of(arm, world) if of_arm else None,
        objective=objective_of(experiment, world.trace),
    )


def _cost(experiment: Experiment, arm: Arm, world: World, settings: ReferenceSettings) -> float:
    """How many times as long as the arm's model the reference model computes, by their FLOPs."""
    model = arm.reference_model(settings)
    if model == arm.training.model:
        return 1.0
    objective = objective_of(experiment, world.trace)
    reference, own = (
        forward_flops(each.build(), reader.sample_shape, objective.num_outputs(reader), reader.integers)
        for each, reader in ((model, world.trace), (arm.training.model, reader_of(arm, world.trace)))
    )
    return reference / own
