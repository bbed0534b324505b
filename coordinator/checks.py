"""Checks of what parts of a method return: assignments, inference plans, sample ranges and work.

The guards of own parts and the contracts share them. Each raises WrongAnswerError, an AssertionError, which
says what must be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, get_args

import numpy as np

from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Ints
from emulator.declared import WrongAnswerError, expect
from emulator.messages import (
    AnyTrigger,
    Combine,
    InferencePlan,
    NamedNumbers,
    PairwiseTrigger,
    SampleRanges,
    Work,
)
from emulator.storage.round_schema import refuse_wrong_numbers

if TYPE_CHECKING:
    from coordinator.adaptations.base import Served


def check_assignment(assignment: Assignment, num_clients: int, num_old: int, num_parameters: int) -> None:
    """Check an assignment: the mixing matrix, members, lanes and successors.

    Rows of `mixing` are finite and sum to 1; `members`, lanes and `successor` name existing models; all
    arrays have the declared shapes and dtypes; at least one client has a lane. Successors of an assignment
    that leaves all models as they are must be the models themselves.

    Args:
        assignment: The assignment.
        num_clients: The number of clients.
        num_old: The number of models that existed before.
        num_parameters: The number of parameters of a model.

    Raises:
        AssertionError: The assignment breaks a rule, which the message names.
    """
    num_models = assignment.num_models
    expect(num_models >= 1, "an assignment must have at least one model")
    num_extra = len(assignment.extra)
    expect(
        assignment.mixing.shape == (num_models, num_old + num_extra),
        f"mixing has shape {assignment.mixing.shape}; must be ({num_models}, {num_old} old models + "
        f"{num_extra} extra)",
    )
    expect(np.isfinite(assignment.mixing).all(), "mixing must be finite")
    expect(np.allclose(assignment.mixing.sum(axis=1), 1.0, rtol=0, atol=1e-9), "rows of mixing must sum to 1")
    if num_extra:
        expect(
            assignment.extra.shape == (num_extra, num_parameters),
            f"extra has shape {assignment.extra.shape}, but models have {num_parameters} parameters",
        )
    expect(assignment.extra.dtype == np.float32, f"extra is {assignment.extra.dtype}, not float32")
    members = assignment.members
    expect(members.ndim == 2, "members must have shape (num_clients, width)")
    expect(len(members) == num_clients, "members must have a row for each client")
    expect(members.dtype == np.int64, f"members are {members.dtype}, not int64")
    expect(((members >= -1) & (members < num_models)).all(), "members must be rows of the new models, or -1")
    expect(
        not ((members[:, :-1] < 0) & (members[:, 1:] >= 0)).any(), "-1 must pad rows of members at the end"
    )
    ordered = np.sort(members, axis=1)
    twice = (ordered[:, :-1] == ordered[:, 1:]) & (ordered[:, 1:] >= 0)
    expect(not twice.any(), "a client must not be a member of the same model twice")
    _check_lanes(assignment, num_clients)
    _check_successors(assignment, num_old)


def _check_lanes(assignment: Assignment, num_clients: int) -> None:
    lanes = assignment.lane_of_client
    expect(lanes.shape == (num_clients,), "lanes must have a row for each client")
    expect(lanes.dtype == np.int64, f"lanes are {lanes.dtype}, not int64")
    expect(((lanes >= -1) & (lanes < assignment.num_models)).all(), "lanes must be rows of the models, or -1")
    expect((lanes >= 0).any(), "no client can be selected: every client's lane is -1")


def _check_successors(assignment: Assignment, num_old: int) -> None:
    successor = assignment.successor
    expect(successor.shape == (num_old,), "successor must have a row for each old model")
    expect(successor.dtype == np.int64, f"successor is {successor.dtype}, not int64")
    expect(
        ((successor >= -1) & (successor < assignment.num_models)).all(),
        "successor must be rows of the new models, or -1",
    )
    if not assignment.changes_models:
        expect(
            (successor == np.arange(num_old)).all(),
            "when all models stay as they are, each must be its own successor",
        )


def check_plan(plan: InferencePlan, num_clients: int, num_models: int) -> None:
    """Check an inference plan: models that exist, weights that sum to 1, and a known way to combine them.

    Args:
        plan: The plan.
        num_clients: The number of clients.
        num_models: The number of models in the bank.

    Raises:
        AssertionError: The plan breaks a rule, which the message names.
    """
    models, weights = plan.models, plan.weights
    expect(models.ndim == 2, "a plan's models must have shape (num_clients, width)")
    expect(len(models) == num_clients, "a plan must have a row for each client")
    expect(models.dtype == np.int64, f"a plan's models are {models.dtype}, not int64")
    expect(((models >= -1) & (models < num_models)).all(), "a plan's models must be rows of the bank, or -1")
    expect(weights.shape == models.shape, "a plan must have a weight for each of its models")
    expect(np.isfinite(weights).all(), "a plan's weights must be finite")
    expect((weights >= 0).all(), "a plan's weights must not be negative")
    expect(not weights[models < 0].any(), "a plan's weights must be 0 where models are padded")
    served = (models >= 0).any(axis=1)
    expect(np.allclose(weights[served].sum(axis=1), 1.0, rtol=0, atol=1e-9), "rows of weights must sum to 1")
    expect(plan.combine in get_args(Combine), f"combine = {plan.combine!r}; choices: {get_args(Combine)}")


def check_ranges(samples: SampleRanges, clients: Ints, view: View) -> None:
    """Check sample ranges: a well-formed row for each client, of samples that it holds, with weights above 0.

    Args:
        samples: The ranges.
        clients: The client of each row, of shape (n,).
        view: The view at the same instant; it tells what clients hold.

    Raises:
        AssertionError: The ranges break a rule, which the message names.
    """
    offsets, first, last = samples.offsets, samples.first, samples.last
    expect(len(samples) == len(clients), f"ranges have {len(samples)} rows; must be {len(clients)}")
    expect(offsets[0] == 0, "offsets must begin at 0")
    expect((np.diff(offsets) >= 0).all(), "offsets must not descend")
    expect(offsets[-1] == len(first) == len(last) == len(samples.weight), "offsets must end with the ranges")
    expect((first <= last).all(), "a range must not end before it begins")
    expect((np.isfinite(samples.weight) & (samples.weight > 0)).all(), "weights of ranges must be above zero")
    held = view.held(np.repeat(clients, np.diff(offsets)))
    inside = (held.first <= first) & (last <= held.last)
    expect((inside | (first == last)).all(), "a range has samples that its client does not hold")


def check_assigned(assignment: Assignment, view: View, fixed_clusters: int | None) -> None:
    """Check an assignment that a clusterer returned, of which the rows of clients that hold data count.

    Args:
        assignment: The assignment.
        view: What the clusterer saw.
        fixed_clusters: Its `fixed_clusters`.

    Raises:
        AssertionError: The assignment breaks a rule, which the message names.
    """
    members, num_old = assignment.members, len(view.model_ids)
    lanes = members if assignment.lanes is None else assignment.lanes
    is_complete = members.ndim == 2 and len(members) == len(lanes) == view.num_clients
    counted = assignment.among(view.holding) if is_complete else assignment
    check_assignment(counted, view.num_clients, num_old, view.models.shape[1])
    if fixed_clusters is not None:
        expect(
            assignment.num_models == fixed_clusters,
            f"fixed_clusters = {fixed_clusters}, and an assignment has {assignment.num_models} models",
        )
        expect(
            (assignment.successor == np.arange(num_old)).all(),
            f"fixed_clusters = {fixed_clusters}, and a model is not its own successor",
        )


def check_work(work: Work, rows: int) -> None:
    """Check work: in each column a finite number of each row, not negative; AssertionError if it is not."""
    for name, column in vars(work).items():
        must = f"work: {name} must be ({rows},) finite numbers, not negative"
        expect(column.shape == (rows,) and (np.isfinite(column) & (column >= 0)).all(), must)


def check_served(served: Served, num_clients: int, num_labels: int) -> None:
    """Check what serves clients: a plan of its models, outputs and offsets; AssertionError if it is not."""
    plan = served.plan
    check_plan(plan, num_clients, len(served.models))
    shape = (*plan.models.shape, num_labels)
    if plan.outputs is not None:
        expect(plan.outputs.shape == shape, f"outputs of shape {plan.outputs.shape}, not {shape}")
        is_permuted = (np.sort(plan.outputs, axis=2) == np.arange(num_labels)).all()
        expect(is_permuted, "outputs must be permutations of the labels")
    if plan.offsets is not None:
        expect(plan.offsets.shape == shape, f"offsets of shape {plan.offsets.shape}, not {shape}")
        expect(not np.isnan(plan.offsets).any(), "offsets must not be NaN")


def check_trigger(trigger: AnyTrigger) -> None:
    """Check that the log can hold a trigger: Python's own types, finite; AssertionError if it cannot."""
    if isinstance(trigger, NamedNumbers):
        try:
            refuse_wrong_numbers(vars(trigger))
        except ValueError as error:
            raise WrongAnswerError(f"{trigger}: {error}") from None
        return
    compared = "delta" if isinstance(trigger, PairwiseTrigger) else "shift"
    kinds = type(getattr(trigger, compared)), type(trigger.clusters), type(trigger.fired)
    expect(
        kinds == (float, int, bool),
        f"{trigger}: {compared}, clusters and fired must be a float, an int and a bool of Python",
    )
    is_finite = all(number is None or math.isfinite(number) for number in vars(trigger).values())
    expect(is_finite, f"{trigger}: its numbers must be finite")
