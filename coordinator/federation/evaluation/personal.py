"""The parameters that clients use themselves: how well they do, and how old what they are made of is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation.kept import Own
from coordinator.federation.solver_state import SolverState
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import Evaluation, InferencePlan, SampleRanges, Updates, trained_models
from emulator.ports import Executor, SampleStream

BANDS = (0, 10, 50)
"""The least age, in rounds, of each band of ages."""

AT_ONCE = 2**25
"""Numbers of personal parameters in memory at once."""


@dataclass(frozen=True)
class PersonalFigures:
    """What only a run whose solver makes personal parameters has in a round's record; see `RoundRecord`."""

    personal_accuracy: float | None = None
    personal_accuracy_std: float | None = None
    memory_age: float | None = None
    memory_age_90: float | None = None
    without_memory: float | None = None
    personal_accuracy_by_age: Mapping[int, float | None] | None = None
    clients_by_age: Mapping[int, float | None] | None = None


IMPERSONAL = PersonalFigures()


def figures_by_age(accuracy: Floats, age: Ints) -> PersonalFigures:
    """The figures of n clients with these accuracies (n,) and ages of memory (n,), -1 = none; n >= 1.

    The age that 90 % do not exceed is one that a client has.

    >>> found = figures_by_age(np.array([0.5, 0.7, 0.9, 0.1]), np.array([0, 4, 60, -1]))
    >>> found.memory_age, found.memory_age_90, found.without_memory
    (4.0, 60.0, 0.25)
    >>> {least: round(mean, 2) for least, mean in found.personal_accuracy_by_age.items() if mean is not None}
    {0: 0.6, 50: 0.9}
    >>> found.clients_by_age
    {0: 2, 10: 0, 50: 1}
    """
    known = age[age >= 0]
    band = np.searchsorted(BANDS, age, side="right") - 1  # -1 of clients without memory
    means = [
        float(accuracy[band == row].mean()) if (band == row).any() else None for row in range(len(BANDS))
    ]
    counts = [int((band == row).sum()) for row in range(len(BANDS))]
    return PersonalFigures(
        personal_accuracy=float(accuracy.mean()),
        personal_accuracy_std=float(accuracy.std()),
        memory_age=float(np.median(known)) if len(known) > 0 else None,
        memory_age_90=float(np.quantile(known, 0.9, method="inverted_cdf")) if len(known) > 0 else None,
        without_memory=float((age < 0).mean()),
        personal_accuracy_by_age=dict(zip(BANDS, means, strict=True)),
        clients_by_age=dict(zip(BANDS, counts, strict=True)),
    )


class Personal:
    """Evaluates clients with the parameters that the solver makes for them; it has no state of its own."""

    def __init__(
        self, executor: Executor, solver_state: SolverState, bank: ModelBank, stream: SampleStream
    ) -> None:
        self._executor = executor
        self._solver_state = solver_state
        self._bank = bank
        self._stream = stream
        self._slots, self._mixes = executor.solver.personal, executor.solver.mixes

    def figures(self, round_: int, plan: InferencePlan, clients: Ints, served: Evaluation) -> PersonalFigures:
        """The figures of the `clients` (n,) that have test samples and are served by a model of `plan`.

        `plan` is that of these clients, and `served` their evaluation with the models that serve them, which
        is that of a client without memory, too. Raises RunError if several models serve a client.
        """
        if plan.used.sum(axis=1).max(initial=0) > 1:
            raise RunError(
                f"round {round_}: the solver makes personal parameters of one model, and the clusterer "
                f"combines several"
            )
        samples, row = self._stream.held(clients, "test"), plan.first()
        scored = ((samples.counts() > 0) & (row >= 0)).nonzero()[0]
        accuracy, age = served.accuracy[scored].copy(), np.full(len(scored), -1)
        for places, written, own in self._made(clients[scored], row[scored]):
            accuracy[places] = self._evaluated(own, self._bank.parameters, samples.take(scored[places]))
            age[places] = round_ - written
        return figures_by_age(accuracy, age)

    def own(self, plan: InferencePlan) -> Iterator[Own]:
        """The models of all clients that remember what makes them their own, some at a time.

        `plan` is that of all N clients, each of which one model serves.
        """
        row = plan.first()
        served = (row >= 0).nonzero()[0]
        for _, _, own in self._made(served, row[served]):
            yield own

    def _made(self, clients: Ints, row: Ints) -> Iterator[tuple[Ints, Ints, Own]]:
        """The personal models of those of `clients` (n,) that have memory, some at a time.

        `row` (n,) of the bank is the model that serves each. With them come their places (k,) in `clients`,
        and the round (k,) in which what they are made of was written.
        """
        size = max(1, AT_ONCE // self._executor.num_parameters)
        for first in range(0, len(clients), size):
            some = slice(first, first + size)
            ids = self._bank.ids[row[some]]
            having, written, state = self._solver_state.remembered(self._slots, clients[some], ids)
            if len(having) > 0:
                places = first + having
                models = self._executor.personal(self._bank.parameters[row[places]], state)
                shares = None if self._mixes is None else self._mixes.shares(state, len(having))
                yield places, written, Own(clients[places], row[places], models, shares)

    def trained_accuracy(
        self, updates: Updates, received: Floats32, start: Ints, first: Bools, scored: Ints, shift: Ints
    ) -> float | None:
        """The mean accuracy of the clients among `scored`, each with what it has just trained.

        The n `updates` began with the rows `start` (n,) of the models `received`; those that are `first` (n,)
        count, one of each client. One whose new memory is not finite has what it sent. They read samples as
        they did in training, with `shift` (n,) added to table rows. None if no such client has test samples.
        """
        samples = self._stream.held(updates.client, "test").shifted(shift)
        counts = first & np.isin(updates.client, scored) & (updates.num_steps > 0)
        rows = (counts & (samples.counts() > 0)).nonzero()[0]
        if len(rows) == 0:
            return None
        state = {name: updates.state[name][rows] for name in sorted(self._slots)}
        trained = trained_models(updates.take(rows), received[start[rows]])
        own, shares = trained if self._mixes is None else trained.copy(), np.zeros(len(rows))
        if state:
            finite = np.logical_and.reduce([np.isfinite(slot).all(axis=1) for slot in state.values()])
            some = {name: slot[finite] for name, slot in state.items()}
            own[finite] = self._executor.personal(trained[finite], some)
            if self._mixes is not None:
                shares[finite] = self._mixes.shares(some, int(finite.sum()))
        mixed = None if self._mixes is None else shares
        used = Own(updates.client[rows], np.arange(len(rows)), own, mixed)
        return float(self._evaluated(used, trained, samples.take(rows)).mean())

    def _evaluated(self, own: Own, served: Floats32, samples: SampleRanges) -> Floats:
        """(n,) the accuracy of n clients with what is their `own` of models `served` (M, P), by its rows."""
        models, plan = own.models, InferencePlan.own(len(own.models))
        if own.shares is not None:
            both = np.stack([np.arange(len(models)), len(models) + own.row], axis=1)
            plan = InferencePlan(both, np.stack([own.shares, 1 - own.shares], axis=1), "logits")
            models = np.concatenate([models, served])
        return self._executor.evaluate(models, plan, samples).accuracy
