"""The contract of memories refuses memories that break a rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.memories.held import Held, HeldSettings
from emulator.messages import SampleRanges
from emulator.storage.state_tree import as_tree, from_tree
from experiments import contracts


def called(value) -> str:
    return getattr(value, "__name__", "")


class Turned(Held):
    """Held, whose rows `turn` changes."""

    def __init__(self, turn) -> None:
        super().__init__(HeldSettings())
        self.turn = turn

    def rows(self, clients, view):
        return self.turn(*super().rows(clients, view))


def wrong_pairs():
    def backwards(client, model, samples):
        order = np.arange(len(client))[::-1]
        return client[order], model[order], samples.take(order)

    def twice(client, model, samples):
        order = np.repeat(np.arange(len(client)), 2)
        return client[order], model[order], samples.take(order)

    def short(client, model, samples):
        return client, model, samples.take(np.arange(len(client))[1:])

    def strangers(client, model, samples):
        return client + 1, model, samples

    def missing(client, model, samples):
        return client, model + 3, samples

    def narrow(client, model, samples):
        return client, model.astype(np.int32), samples

    return [
        (backwards, "not sorted"),
        (twice, "not distinct"),
        (short, "samples for each pair"),
        (strangers, "do not participate"),
        (missing, "models must be in the bank"),
        (narrow, "must be int64"),
    ]


def wrong_ranges():
    rng = np.random.default_rng(6)

    def weightless(client, model, samples):
        return client, model, replace(samples, weight=0 * samples.weight)

    def reversed_(client, model, samples):
        return client, model, replace(samples, first=samples.last, last=samples.first)

    def greedy(client, model, samples):
        return client, model, replace(samples, last=samples.last + 1)

    def ragged(client, model, samples):
        return client, model, replace(samples, first=samples.first[1:])

    def late(client, model, samples):
        return client, model, replace(samples, offsets=samples.offsets + 1)

    def tangled(client, model, samples):
        swapped = samples.offsets.copy()
        swapped[1:-1] = swapped[1:-1][::-1]
        return client, model, replace(samples, offsets=swapped)

    def changed(client, model, samples):
        return client, model, replace(samples, bootstrap=True)

    def whim(client, model, samples):
        return client, model, replace(samples, weight=rng.random(len(samples.weight)) + 1)

    return [
        (weightless, "above zero"),
        (reversed_, "end before it begins"),
        (greedy, "does not hold"),
        (ragged, "end with the ranges"),
        (late, "begin at 0"),
        (tangled, "must not descend"),
        (changed, "are not those that it trains the model on"),
        (whim, "are not those that it trains the model on"),
    ]


@pytest.mark.parametrize(("turn", "complaint"), [*wrong_pairs(), *wrong_ranges()], ids=called)
def test_memories_that_break_a_rule_are_refused(turn, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_memory(lambda: Turned(turn))


def test_memories_whose_samples_depend_on_the_other_clients_are_refused():
    class Shared(Held):
        def samples(self, clients, model, view):
            samples = super().samples(clients, model, view)
            return replace(samples, weight=samples.weight / max(len(clients), 1))

    with pytest.raises(AssertionError, match="depend on the other clients of the call"):
        contracts.check_memory(lambda: Shared(HeldSettings()))


def test_memories_that_keep_expired_samples_are_refused():
    class Hoard(Held):
        """Keeps training on the samples that each client held first."""

        state_fields = ("_first",)

        def __init__(self, settings):
            super().__init__(settings)
            self._first = None

        def _of(self, clients, view):
            if self._first is None:
                self._first = as_tree(view.held(np.arange(view.num_clients)))
            return from_tree(SampleRanges, self._first).take(clients)

    with pytest.raises(AssertionError, match="does not hold"):
        contracts.check_memory(lambda: Hoard(HeldSettings()))


def test_memories_that_write_to_assignments_are_refused():
    class Greedy(Held):
        def models_changed(self, assignment):
            assignment.successor[:] = -1

    with pytest.raises(AssertionError, match="writes to its arguments"):
        contracts.check_memory(lambda: Greedy(HeldSettings()))


def test_memories_that_behave_differently_on_equal_histories_are_refused():
    made = []

    def make():
        made.append(Held(HeldSettings(window=1 + len(made))))
        return made[-1]

    with pytest.raises(AssertionError, match="behave differently on equal histories"):
        contracts.check_memory(make)
