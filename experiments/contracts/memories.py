"""Contract of memories: the (client, model) pairs that train, and samples that their clients hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coordinator.assignment import Assignment
from coordinator.checks import check_ranges
from coordinator.memories import Memory
from coordinator.view import View
from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import NUM_LABELS, LabelStream, initial
from experiments.contracts.rounds import Rounds, Scripted
from experiments.contracts.watched import Watch
from experiments.sameness import left_alone, resumed, same

NUM_CLIENTS = 5


@and_no_global_generator
def check_memory(make: Callable[[], Memory]) -> None:
    """Check a memory over data steps in which models are merged, dropped and added, and samples expire.

    Once all clients hold data at every step, and once some come and go.

    * `rows` returns pairs of a participant and a model of the bank, sorted and distinct, each with samples
      that its client holds; `samples` returns the same samples for the pair.
    * `trains` is True for exactly those clients that have a pair.
    * Two fresh memories return the same on equal histories, one of them stored and restored all the time.
    * It does not write to its arguments.
    * It reads the true concepts only if it declares `oracle = True`.

    Args:
        make: Makes a fresh memory.

    Raises:
        AssertionError: The memory breaks a rule, which the message names.
        RunError: The memory's state cannot be stored, or changes in an attribute that is not declared.
    """
    _play(make, None)
    turnover = np.ones((len(_history()), NUM_CLIENTS), dtype=bool)
    turnover[:2, 0], turnover[1:, 1], turnover[1:4, 3] = False, False, False
    _play(make, turnover)


def _play(make: Callable[[], Memory], turnover: Bools | None) -> None:
    """Run two fresh memories side by side, one of them stored and restored all the time, and compare them.

    `turnover`: as in `LabelStream`.
    """
    shares = np.full((len(_history()), NUM_CLIENTS, NUM_LABELS), 1 / NUM_LABELS)
    script = dict(enumerate(_history()))
    twins = []
    for memory in (make(), resumed(make)):
        watched, stream = _Watched(memory), LabelStream(shares, turnover=turnover)
        twins.append((watched, Rounds(stream, clusterer=Scripted(script), memory=watched)))
    for _ in script:
        outputs = []
        for watched, rounds in twins:
            rounds.open()
            outputs.append(_outputs(watched, watched.view))
            rounds.dispatch()
        assert same(*outputs), "two fresh memories behave differently on equal histories"


def _history() -> list[Assignment]:
    """Assignments of five data steps.

    Clients are members of three models; then model 1 merges into 0, 2 is dropped, and one is added; then all
    clients leave the new model; then they return to it, for two steps, until the arrivals of step 0 have
    expired.
    """
    first = np.array([[0, -1], [2, 1], [-1, -1], [1, -1], [0, 2]])
    second = np.array([[0, -1], [1, 0], [1, -1], [0, -1], [-1, -1]])
    third = np.array([0, 0, 0, 0, -1])
    return [
        Assignment.fresh(first, 3, np.stack([initial(number) for number in range(3)])),
        Assignment(
            mixing=np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]),
            extra=initial(0)[None, :],
            successor=np.array([0, 0, -1]),
            members=second,
        ),
        Assignment.moved(third, 2),
        Assignment.moved(second, 2),
        Assignment.moved(second[:, :1], 2),
    ]


class _Watched(Memory):
    """Wraps a memory: checks what it returns; `view` is the last view that `claim` received."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.watch = Watch(memory)
        self.view: View

    def models_changed(self, assignment: Assignment) -> None:
        with left_alone(assignment):
            self.memory.models_changed(assignment)

    def claim(self, view: View) -> None:
        self.view = view
        with left_alone(view):
            self.memory.claim(self.watch.over(view))

    def samples(self, clients: Ints, model: int, view: View) -> SampleRanges:
        with left_alone(clients, view):
            samples = self.memory.samples(clients, model, self.watch.over(view))
        check_ranges(samples, clients, view)
        return samples

    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        with left_alone(clients, view):
            client, model, samples = self.memory.rows(clients, self.watch.over(view))
        assert len(client) == len(model) == len(samples), "rows: must have samples for each pair"
        pairs = list(zip(client.tolist(), model.tolist(), strict=True))
        assert pairs == sorted(set(pairs)), f"{pairs}: not sorted by client and model, or not distinct"
        assert client.dtype == model.dtype == np.int64, "clients and models must be int64"
        assert np.isin(client, clients).all(), f"{pairs}: pairs of clients that do not participate"
        assert ((model >= 0) & (model < len(view.model_ids))).all(), f"{pairs}: models must be in the bank"
        check_ranges(samples, client, view)
        return client, model, samples

    def trains(self, clients: Ints, view: View) -> Bools:
        with left_alone(clients, view):
            trains = self.memory.trains(clients, self.watch.over(view))
        assert trains.dtype == np.bool_, f"trains is {trains.dtype}, not bool"
        return trains


def _outputs(memory: _Watched, view: View) -> list[Any]:
    """The results of the memory at one data step: `rows` of several sets of clients, and all `samples`."""
    everyone = np.arange(NUM_CLIENTS)
    client_sets = (everyone, np.array([0, 1, 4]), everyone[:0])
    return [[_rows(memory, clients, view) for clients in client_sets], _samples(memory, view)]


def _rows(memory: _Watched, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
    client, model, samples = memory.rows(clients, view)
    for row, (client_id, model_row) in enumerate(zip(client.tolist(), model.tolist(), strict=True)):
        alone = memory.samples(np.array([client_id]), model_row, view)
        assert same(alone, samples.take(np.array([row]))), (
            f"samples of client {client_id} for model {model_row} are not those that it trains the model on"
        )
    assert same((client, model, samples), memory.rows(clients, view)), (
        "two equal calls of rows return different pairs or samples"
    )
    shuffled = clients[::-1]
    trains = memory.trains(shuffled, view)
    assert same(trains, np.isin(shuffled, client)), "trains does not name the clients that rows has pairs of"
    return client, model, samples


def _samples(memory: _Watched, view: View) -> list[SampleRanges]:
    """For each model, the samples of all clients; also checks that they do not depend on the call."""
    by_model, clients = [], np.arange(view.num_clients)
    for model in range(len(view.model_ids)):
        samples = memory.samples(clients, model, view)
        subset = np.array([1, 3])
        assert same(samples.take(subset), memory.samples(subset, model, view)), (
            "samples of a client depend on the other clients of the call"
        )
        by_model.append(samples)
    return by_model
