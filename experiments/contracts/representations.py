"""Contract of representations: what clients report, measured over fake ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from coordinator.assignment import Assignment
from coordinator.checks import check_work
from coordinator.distances import DistanceName
from coordinator.federation.bank import ModelBank
from coordinator.federation.hearing.client_data import ClientData, Reference
from coordinator.representations import Representation
from emulator.arrays import Ints
from emulator.messages import Work
from emulator.ports import unmeasured
from emulator.seeding import RandomStreams
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import NUM_LABELS, NUM_PARAMETERS, LabelStream, ToyModels, initial
from experiments.sameness import left_alone, resumed, same

CLIENTS = 7


@and_no_global_generator
def check_representation(make: Callable[[], Representation]) -> None:
    """Check a representation over two data steps, at two models.

    * A report consists of `size` finite numbers, in float64; with `shares` they are from 0 on and sum to 1.
    * A report depends on the data of its client only: whichever other clients report, it is the same.
    * Two fresh representations measure the same, one of them stored and restored.
    * `distance` names a distance; `at_present_models` and `shares` are bool.
    * The work of a report is finite, from 0 on, and the same whichever other clients report.
    * It does not write to its arguments.

    Args:
        make: Makes a fresh representation.

    Raises:
        AssertionError: The representation breaks a rule, which the message names.
        RunError: Its state cannot be stored, or changes in an attribute that is not declared.
    """
    labels = np.random.default_rng(5).dirichlet(np.ones(NUM_LABELS), size=(2, CLIENTS))
    stream = LabelStream(labels)
    bank = ModelBank(NUM_PARAMETERS)
    bank.apply(Assignment.fresh(np.zeros(CLIENTS, dtype=np.int64), 2, np.stack([initial(1), initial(4)])))
    data = ClientData(
        stream=stream,
        bank=bank,
        executor=ToyModels(stream),
        reference=Reference(ToyModels(stream), initial(3), np.ones(NUM_LABELS, dtype=np.int64), 2.0),
        streams=RandomStreams(9),
        meter=unmeasured,
    )
    first, second = make(), resumed(make)
    known = get_args(DistanceName)
    assert first.distance in known, f"distance = {first.distance!r}; choices: {known}"
    for name in ("at_present_models", "shares"):
        assert isinstance(getattr(first, name), bool), f"{name} = {getattr(first, name)!r}: must be bool"
    for step in range(len(labels)):
        stream.advance_to_round(step)
        everyone = np.arange(CLIENTS)
        whole = _checked(first, everyone, data)
        assert same(whole, _checked(second, everyone, data)), "two fresh representations measure differently"
        for some in (everyone[::2], everyone[:0]):
            reports, work = _checked(first, some, data)
            assert same((reports, work), (whole[0][some], whole[1].take(some))), (
                "a report or its work depends on which other clients report"
            )


def _checked(representation: Representation, clients: Ints, data: ClientData) -> tuple[np.ndarray, Work]:
    """The reports of `clients`, and what they cost, both checked."""
    size = representation.size(data)
    assert isinstance(size, int), f"size = {size!r}: must be an int"
    assert size > 0, f"size = {size}: a report has at least one number"
    with left_alone(clients):
        reports, work = representation.measure(clients, data), representation.work(clients, data)
    assert reports.shape == (len(clients), size), f"reports have shape {reports.shape}"
    assert reports.dtype == np.float64, f"reports are {reports.dtype}, not float64"
    assert np.isfinite(reports).all(), "a report is not finite"
    if representation.shares:
        assert (reports >= 0).all(), "shares must not be negative"
        assert np.allclose(reports.sum(axis=1), 1), "shares must sum to 1"
    check_work(work, len(clients))
    return reports, work
