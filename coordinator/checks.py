"""What parts of a method return: checks of assignments, plans, ranges and work, and a rule for each method.

A protocol names the rule of a method by `emulator.plugins.returns`; guards of own parts hold these to it. The
contracts share the checks. All raise WrongAnswerError, an AssertionError that says what must be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from coordinator.assignment import Assignment
from coordinator.schedules.base import TASK_SETTINGS
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import (
    AnyTrigger,
    Combine,
    InferencePlan,
    NamedNumbers,
    PairwiseTrigger,
    SampleRanges,
    Updates,
    Work,
)
from emulator.own.declared import WrongAnswerError, expect, expect_array
from emulator.storage.round_schema import refuse_wrong_noted, refuse_wrong_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.adaptations.base import Adaptation, ClientView, Served
    from coordinator.aggregators.base import Aggregator
    from coordinator.aggregators.by_coordinate import ByCoordinate
    from coordinator.candidates import Candidates
    from coordinator.clusterers.base import Clusterer
    from coordinator.detectors.base import Detector
    from coordinator.detectors.columns import Columns, Rows
    from coordinator.memories.base import Memory
    from coordinator.pacing.base import Pacing
    from coordinator.representations.base import LocalData, Representation
    from coordinator.schedules.base import Schedule
    from coordinator.selectors.base import Selector
    from coordinator.triggers.base import Moved, ReclusteringTrigger


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


def assigned(assignment: Assignment | None, clusterer: Clusterer, view: View) -> None:
    """Rule of the moments of a clusterer."""
    expect(assignment is not None or view.assignment is not None, "the first call must return an assignment")
    if assignment is not None:
        check_assigned(assignment, view, clusterer.fixed_clusters)


def served_by(plan: InferencePlan, clusterer: Clusterer, view: View) -> None:
    """Rule of `Clusterer.serve`."""
    counted = plan.among(view.holding) if len(plan.models) == view.num_clients else plan
    check_plan(counted, view.num_clients, len(view.model_ids))
    most = plan.used.sum(axis=1).max(initial=0)
    expect(clusterer.serves_several or most <= 1, "several models serve a client: declare serves_several")


def participants(chosen: Ints, selector: Selector, candidates: Candidates, wanted: Ints, view: View) -> None:
    """Rule of `Selector.select`."""
    is_ascending = chosen.ndim == 1 and chosen.size > 0 and (chosen[1:] > chosen[:-1]).all()
    if not (is_ascending and chosen[0] >= 0 and chosen[-1] < view.num_clients):
        expect_array(chosen, (chosen.size,), "i", 0, view.num_clients - 1)
        raise WrongAnswerError("must be distinct ids, ascending, at least one")
    assert view.assignment is not None, "clients are selected among the members of models"
    lanes = view.assignment.lane_of_client[chosen]
    expect(lanes.min() >= 0, "must be clients of a lane")
    if (np.bincount(lanes, minlength=len(wanted)) > wanted).any():
        raise WrongAnswerError(f"must be at most {wanted.tolist()} clients, lane by lane")


def models(models: Floats32, aggregator: Aggregator, updates: Updates, view: View) -> None:
    """Rule of `Aggregator.aggregate`."""
    expect_array(models, view.models.shape, "f")


def centre(centre: Floats, aggregator: ByCoordinate, values: Floats32) -> None:
    """Rule of `ByCoordinate.centre`."""
    expect_array(centre, values.shape[1:], "f")


def broadcast(arrays: Mapping[str, Floats32], aggregator: Aggregator, view: View) -> None:
    """Rule of `Aggregator.broadcast`."""
    expect(arrays.keys() == aggregator.broadcasts, f"must have {sorted(aggregator.broadcasts)}")
    for array in arrays.values():
        expect_array(array, view.models.shape, "f")


def weights(
    weights: Floats | None, aggregator: Aggregator, model: Ints, num_samples: Ints, view: View
) -> None:
    """Rule of `Aggregator.weights`."""
    if weights is not None:
        expect_array(weights, (len(view.models), len(model)), "f")


def samples_of(samples: SampleRanges, memory: Memory, clients: Ints, model: int, view: View) -> None:
    """Rule of `Memory.samples`."""
    check_ranges(samples, clients, view)


def pairs(rows: tuple[Ints, Ints, SampleRanges], memory: Memory, clients: Ints, view: View) -> None:
    """Rule of `Memory.rows`."""
    client, model, samples = rows
    expect(client.shape == model.shape == (len(samples),), "must have samples for each pair")
    pairs = client * (len(view.model_ids) + 1) + model
    expect((pairs[1:] > pairs[:-1]).all(), "must be distinct pairs, sorted by client and model")
    expect(np.isin(client, clients).all(), "must be pairs of the participants")
    expect(((model >= 0) & (model < len(view.model_ids))).all(), "models must be rows of the bank")
    check_ranges(samples, client, view)


def trains(trains: Bools, memory: Memory, clients: Ints, view: View) -> None:
    """Rule of `Memory.trains`."""
    expect_array(trains, clients.shape, "b")


def adapted(served: Served, adaptation: Adaptation, view: ClientView) -> None:
    """Rule of `Adaptation.adapt`."""
    check_served(served, len(view.clients), view.num_labels)
    ways, plan = served.ways, served.plan
    if ways is not None:
        expect(adaptation.reads, "ways of features are those of an adaptation that `reads`")
        must = f"ways must be floats of shape {(*plan.models.shape, 'K')}"
        expect(ways.ndim == 3 and ways.shape[:2] == plan.models.shape and ways.dtype.kind == "f", must)
        alike = np.array_equal(ways, np.broadcast_to(ways[:, :1], ways.shape), equal_nan=True)
        expect(adaptation.serves_one or alike, "ways of a client that several models serve must be the same")
    if adaptation.trains:
        kept = len(served.models) == len(view.models) and np.array_equal(plan.models, view.plan.models)
        expect(
            kept and plan.offsets is None, "what trains changes neither models nor offsets, but ways alone"
        )


def read(features: Floats32, adaptation: Adaptation, plain: Floats32, ways: Floats) -> None:
    """Rule of `Adaptation.read`."""
    expect(len(features) == len(plain), f"must have {len(plain)} rows, one for each sample")


def transforms(transforms: Sequence[Any], adaptation: Adaptation) -> None:
    """Rule of `Transforming.transforms`."""
    must = "must be a list of functions, one at least"
    expect(len(transforms) > 0 and all(map(callable, transforms)), must)


def choosing_work(
    work: Work | None, adaptation: Adaptation, view: ClientView, served: Served | None = None
) -> None:
    """Rule of `Adaptation.choosing_work`, and of `Adaptation.sent_out`."""
    adapting_work(work, adaptation, view)


def adapting_work(work: Work | None, adaptation: Adaptation, view: ClientView) -> None:
    """Rule of `Adaptation.work`."""
    if work is not None:
        check_work(work, len(view.clients))


def flags(flags: Bools, detector: Detector, clients: Ints, signal: Floats, last: Floats | None) -> None:
    """Rule of `Detector.detect`."""
    expect_array(flags, clients.shape, "b")


def updated(flags: Bools, detector: Columns, rows: Rows, number: Floats) -> None:
    """Rule of `Columns.update`."""
    expect_array(flags, number.shape, "b")


def quota(quota: Ints, pacing: Pacing, sizes: Ints) -> None:
    """Rule of `Pacing.quota`."""
    expect_array(quota, sizes.shape, "i", 0)


def opened(opened: Ints, pacing: Pacing, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> None:
    """Rule of `Pacing.opens`."""
    expect_array(opened, out.shape, "i", 0)


def due(flags: Bools, pacing: Pacing, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> None:
    """Rule of `Pacing.full` and `absorbs`."""
    rows, lanes = out.shape
    expect(
        flags.shape in ((rows, lanes), (rows, 1)),
        f"must be bools of shape ({rows}, {lanes}) or ({rows}, 1), for {rows} instants and {lanes} lanes",
    )


def size(size: int, representation: Representation, data: LocalData) -> None:
    """Rule of `Representation.size`."""
    expect(size > 0, "must be at least 1")


def reports(reports: Floats, representation: Representation, clients: Ints, data: LocalData) -> None:
    """Rule of `Representation.measure`."""
    shape = (len(clients), representation.size(data))
    expect(reports.shape == shape, f"must be of shape {shape}: a row of `size` numbers for each client")


def reporting_work(work: Work, representation: Representation, clients: Ints, data: LocalData) -> None:
    """Rule of `Representation.work`."""
    check_work(work, len(clients))


def settings(
    settings: Mapping[str, Floats],
    schedule: Schedule,
    client: Ints,
    model: Ints,
    base: Mapping[str, Floats],
    view: View,
) -> None:
    """Rule of `Schedule.task_settings`."""
    expect(settings.keys() == schedule.sets, f"must have the settings in sets, {sorted(schedule.sets)}")
    for name, column in settings.items():
        expect_array(column, client.shape, "fi")
        # The numbers of rules have bounds of their own, which may include 0.
        expect(name not in TASK_SETTINGS or (column > 0).all(), f"{name} must be above 0")


def trigger(trigger: AnyTrigger, part: ReclusteringTrigger, moved: Moved) -> None:
    """Rule of `ReclusteringTrigger.evaluate`."""
    check_trigger(trigger)


def noted(numbers: Mapping[str, float], aggregator: Aggregator) -> None:
    """Rule of `Aggregator.noted`."""
    refuse_wrong_noted(numbers)
