"""Contract of adaptations: what serves each client depends on that client alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coordinator.adaptations import Adaptation, ClientView, Served
from coordinator.checks import adapted, check_work, choosing_work
from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation.adapting import Adapting
from coordinator.federation.hearing import Reports
from coordinator.federation.method import RoundSettings
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.latency import DriftscaleLatency
from emulator.messages import InferencePlan, SampleRanges
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import NUM_LABELS, LabelStream, ToyModels, ToySamples, initial, quick_fleet
from experiments.contracts.rounds import with_streams
from experiments.sameness import left_alone, resumed, same
from traces.ways import Read, Ways

CLIENTS = 5
ROUNDS_PER_STEP = 2
SETTINGS = RoundSettings(rounds=8, local_steps=4, batch_size=2, learning_rate=0.1)

LABELS = np.array([[0, 0, 1, 1, 2], [0, 1, 1, 2, 2], [1, 1, 0, 2, 2], [1, 0, 0, 1, 2]])
"""The label that each client has most of, by data step; nobody has the last one."""

BOTH = np.array([[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]])
"""The two models that serve each client."""


@and_no_global_generator
def check_adaptation(make: Callable[[], Adaptation]) -> None:
    """Check an adaptation on five clients over four data steps, of which two models serve each, or one.

    * Its plans pass `check_plan`; outputs are permutations of the labels, and offsets are not NaN.
    * What serves a client is the same if clients come in another order, and if it comes alone.
    * It copes with a label that nobody holds, and with models that are not finite.
    * Two fresh adaptations behave the same, one of them stored and restored before every call.
    * It does not write to the views.
    * `work` is finite, not negative, and moves no bytes; `choosing_work` and what `sent_out` returns are
      finite and not negative.
    * If it `trains`, what serves a client has its own models and offsets; ways are of one that `reads`.
    * `read` reads each sample by itself, and as it is where the numbers of its way are NaN, or there are
      none: the same each time, and unchanged if its shape is.
    * Only if it `reads` or `hears` does it look at samples.
    * Only with `needs_label_shares` does it read `reported_shares`.

    Args:
        make: Makes a fresh adaptation.

    Raises:
        AssertionError: The adaptation breaks a rule, which the message names.
        RunError: The adaptation's state cannot be stored, or changes in an attribute that is not declared.
    """
    everyone, plain = np.arange(CLIENTS), make
    make = lambda: with_streams(plain())  # noqa: E731
    play = partial(_play, read=make().read)
    twins = [play(make(), everyone), play(resumed(make), everyone)]
    assert same(*twins), "two fresh adaptations behave differently on equal views"
    turned = play(make(), everyone[::-1])
    for whole, other in zip(twins[0], turned, strict=True):
        for client in range(CLIENTS):
            _check_same_client(whole, client, other, CLIENTS - 1 - client, "the order of the clients")
    for client in (0, 1):
        alone = play(make(), everyone[client : client + 1])
        for whole, other in zip(twins[0], alone, strict=True):
            _check_same_client(whole, client, other, 0, "the other clients")
    play(make(), everyone, value=np.nan)


def _play(adaptation: Adaptation, clients: Ints, value: float | None = None, *, read: Read) -> list[Served]:
    """What serves `clients` (n,) after each round, where all numbers of the models are `value`, if given.

    If the adaptation hears, all clients have been sent out before. `read` is that of a fresh one.
    """
    stream = LabelStream(0.7 * np.eye(NUM_LABELS)[LABELS] + 0.1 * (np.arange(NUM_LABELS) < 3))
    ways = Ways(ToySamples(stream), read) if adaptation.reads or adaptation.hears else None
    executor = ToyModels(stream, ways)
    bank = ModelBank(executor.num_parameters)
    bank.ids = np.arange(2)
    bank.parameters = np.stack([initial(0), initial(2)])
    if value is not None:
        bank.parameters = np.full_like(bank.parameters, value)
    adapting = Adapting(
        adaptation,
        stream=stream,
        bank=bank,
        executor=executor,
        latency=DriftscaleLatency(quick_fleet(CLIENTS)),
        settings=SETTINGS,
        participants=2,
        scored=np.arange(CLIENTS),
        reports=Reports(CLIENTS, NUM_LABELS),
        ways=ways,
    )
    both = BOTH[clients]
    plan = InferencePlan(both, np.tile([0.75, 0.25], (len(clients), 1)))
    if adaptation.serves_one:
        plan = InferencePlan.alike(both[:, :1])
    shares = np.tile([0.3, 0.3, 0.4, 0.0], (2, 1))
    served = []
    for round_ in range(len(LABELS) * ROUNDS_PER_STEP):
        held, step = stream.held(clients, "train"), stream.step
        if round_ % ROUNDS_PER_STEP == 0:
            stream.advance_to_round(round_ // ROUNDS_PER_STEP)
            if step >= 0:
                leaving = adapting.view(clients, _nobody(clients), held, rounds=round_, step=step)
                with left_alone(leaving):
                    adaptation.data_changes(leaving)
        if adaptation.hears:
            _send_out(adaptation, adapting, stream.held(np.arange(CLIENTS), "train"), round_)
        held = stream.held(clients, "train")
        view = adapting.view(clients, plan, held, rounds=round_ + 1, shares=_told(adaptation, shares))
        view = replace(view, new_data=np.full(len(clients), round_ % ROUNDS_PER_STEP == 0), evaluated=True)
        with left_alone(view):
            served.append(adaptation.adapt(view))
            _check_work(adaptation, view)
        adapted(served[-1], adaptation, view)
        if ways is not None and served[-1].ways is not None:
            _check_reading(read, ways, served[-1].ways[:, 0])
    return served


def _send_out(adaptation: Adaptation, adapting: Adapting, held: SampleRanges, round_: int) -> None:
    """Send all clients out, each with one model."""
    view = adapting.view(np.arange(CLIENTS), InferencePlan.alike(BOTH[:, :1]), held, rounds=round_)
    with left_alone(view):
        served = adaptation.adapt(view)
        works = adaptation.choosing_work(view), adaptation.sent_out(view, served)
    for work in works:
        choosing_work(work, adaptation, view)


def _check_reading(read: Read, ways: Ways, numbers: Floats) -> None:
    """Check how samples are read in ways with `numbers` (n, K)."""
    features = ways.plain(np.arange(len(numbers)))
    with left_alone(features, numbers):
        whole, plain = read(features, numbers), read(features, np.full_like(numbers, np.nan))
    each = [read(features[[row]], numbers[[row]]) for row in range(len(numbers))]
    assert np.allclose(whole, np.concatenate(each)), "read: a sample depends on the others"
    as_it_is = features if plain.shape == features.shape else read(features, numbers[:, :0])
    assert np.array_equal(plain, as_it_is), "read: a sample whose way has no numbers must be as it is"
    assert plain.shape == whole.shape, "read: the shape of samples must not depend on their way"


def _nobody(clients: Ints) -> InferencePlan:
    return InferencePlan.alike(np.full((len(clients), 1), -1))


def _told(adaptation: Adaptation, shares: Floats) -> Callable[[], Floats]:
    """The `reported_shares` of a view."""

    def reported_shares() -> Floats:
        assert adaptation.needs_label_shares, (
            "it reads reported_shares without needs_label_shares: clients have not reported them"
        )
        return shares

    return reported_shares


def _check_work(adaptation: Adaptation, view: ClientView) -> None:
    work = adaptation.work(view)
    if work is None:
        return
    check_work(work, len(view.clients))
    moved = np.concatenate([work.download_bytes, work.upload_bytes])
    assert not moved.any(), "work: an adaptation moves no bytes"


def _check_same_client(left: Served, left_row: int, right: Served, right_row: int, what: str) -> None:
    """Check that the same serves a client in two results, by its rows of both."""
    for ours, theirs in zip(_of_client(left, left_row), _of_client(right, right_row), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6), f"what serves a client depends on {what}"


def _of_client(served: Served, row: int) -> list[Bools | Floats | Floats32 | Ints | Any]:
    plan = served.plan
    columns = [plan.weights[row], served.models[plan.models[row]]]
    return columns + [column[row] for column in (plan.outputs, plan.offsets) if column is not None]
