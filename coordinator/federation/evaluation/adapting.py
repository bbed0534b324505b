"""Evaluates clients as an adaptation has them use their models, and counts what adapting costs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NoReturn

import numpy as np

from coordinator.adaptations import Adaptation, ClientView
from coordinator.adaptations.base import Held, Served, Trained
from coordinator.federation.bank import ModelBank
from coordinator.federation.hearing.hearing import NOTHING_HEARD, Heard, Hearing
from coordinator.federation.hearing.reports import Reports
from coordinator.federation.method import RoundSettings
from emulator.arrays import Floats, Floats32, Ints
from emulator.counts import samples_of_steps
from emulator.errors import RunError
from emulator.latency import LatencyModel
from emulator.messages import (
    Evaluation,
    InferencePlan,
    SampleRanges,
    TrainTasks,
    Updates,
    trained_models,
)
from emulator.ports import Executor, Meter, SampleStream, unmeasured
from emulator.storage.stateful import Stateful
from traces.ways import Ways

AT_ONCE = 2**25
"""Numbers that clients are adapted with at once: models of their own, matrices of labels by labels."""

HELD_AT_ONCE = 2**22
"""Features, or sums of them by label, that clients are compared with at once."""

ADAPTED = 2**31 - 1
"""The model id in tasks of adaptations, which no bank has: their batches are streams of their own."""

ADAPTED_AFTER = 3 * 2**30
"""The same for models whose batches follow from the steps that they have taken, which are added to it."""


def _not_now() -> NoReturn:
    raise AssertionError("label counts and reported shares are those of an evaluation")


@dataclass(frozen=True)
class AdaptationFigures:
    """What only a run with an adaptation has in a round's record; see `RoundRecord`."""

    samples: float | None = None
    computing_s: float | None = None
    nonfinite_copies: int = 0


NO_ADAPTATION = AdaptationFigures()


@dataclass(frozen=True)
class Before:
    """What was so before a round was opened: the data step, what scored clients held, and who checked in.

    Before the first round `held` is None.
    """

    step: int
    held: SampleRanges | None
    checked_in: Heard


class Adapting(Stateful):
    """Applies the adaptation of one run; only runs that have an adaptation have one.

    State: the samples that all clients together have trained on for it so far, the virtual seconds that they
    computed, whose data (N,) changed since that was counted, the copies of this round that were not finite,
    what was heard of shares of labels, and after the last evaluation the models `kept`: the clients (n,) that
    were evaluated, and the models (n, P) that they keep to themselves, if they do.
    """

    state_fields = ("_samples", "_computing_s", "_has_news", "_nonfinite", "_hearing", "kept")

    def __init__(
        self,
        adaptation: Adaptation,
        *,
        stream: SampleStream,
        bank: ModelBank,
        executor: Executor,
        latency: LatencyModel,
        settings: RoundSettings,
        participants: int,
        scored: Ints,
        reports: Reports,
        hearing: Hearing | None = None,
        ways: Ways | None = None,
        meter: Meter = unmeasured,
    ) -> None:
        """`participants` are those of a round, and `scored` the clients that are ever evaluated.

        `hearing` hears shares of labels, if the adaptation needs some and `reports` are of something else.
        `ways` are those that the executor reads, if the adaptation chooses some.
        """
        self.adaptation = adaptation
        self._ways = ways
        self._samples = 0.0
        self._computing_s = 0.0
        self._has_news = np.ones(stream.num_clients, dtype=bool)
        self._nonfinite = 0
        self.kept: tuple[Ints, Floats32] | None = None
        self._stream = stream
        self._bank = bank
        self._executor = executor
        self._latency = latency
        self._settings = settings
        self._scored = scored
        self._hearing = hearing
        self._reports = reports if hearing is None else hearing.reports
        self._meter = meter
        self._participation = participants / stream.num_clients

    def before_opening(self, round_: int, now_s: float) -> Before:
        """Take note of what clients hold as `round_` is about to be opened, before the trace advances."""
        stream = self._stream
        held = stream.held(self._scored, "train") if stream.step >= 0 else None
        checked_in = NOTHING_HEARD if self._hearing is None else self._hearing.check_ins(round_, now_s)
        return Before(stream.step, held, checked_in)

    def opens(
        self, round_: int, now_s: float, before: Before, changed: Ints, joined: Ints, left: Ints
    ) -> Heard:
        """Take note that `round_` is opened; returns what was heard of shares of labels.

        The data of clients `changed` (n,) are others than `before`; those of ids `joined` begin to hold data,
        those that `left` cease to.
        """
        self._has_news[changed] = self._has_news[joined] = True
        if before.held is not None and self._stream.step != before.step:
            with self._meter("evaluate_s"):
                self.data_changes(round_, changed, before.held, before.step)
        hearing, holding = self._hearing, self._stream.holding
        if hearing is None:
            return NOTHING_HEARD
        if len(changed) > 0:
            hearing.data_changed(changed, holding, left)
        if before.held is None:
            return before.checked_in.and_then(hearing.register_first(round_))
        heard = before.checked_in.among(holding, changed).and_then(hearing.register(round_, joined))
        return heard.and_then(hearing.new_data(round_, now_s, holding, joined))

    def data_changes(self, round_: int, changed: Ints, held: SampleRanges, step: int) -> None:
        """Take note that the data of clients `changed` (n,) change as `round_` is opened.

        `held` are the training samples that each scored client held until now, at data step `step`.
        """
        rows = np.flatnonzero(np.isin(self._scored, changed))
        size = self._at_once(1)
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            plan = InferencePlan.alike(np.full((len(some), 1), -1))
            view = self.view(self._scored[some], plan, held.take(some), rounds=round_, step=step)
            self.adaptation.data_changes(replace(view, label_counts=_not_now))

    def round_closes(
        self, round_: int, serving: Callable[[], InferencePlan], evaluated: bool
    ) -> AdaptationFigures:
        """Count what the clients that hold data spend in this round, whether they are scored or not.

        `serving` returns which models serve the N clients, and is called in rounds in which data changed, or
        clients were evaluated. `evaluated`: whether clients were evaluated in this round.
        """
        stream, latency = self._stream, self._latency
        clients = np.flatnonzero(stream.holding)
        new_data = self._has_news[clients]
        self._has_news[clients] = False
        asked = evaluated or new_data.any()
        plan = serving().take(clients) if asked else InferencePlan.alike(np.full((len(clients), 1), -1))
        view = self.view(clients, plan, stream.held(clients, "train"), rounds=round_ + 1)
        work = self.adaptation.work(replace(view, new_data=new_data, evaluated=evaluated))
        if work is not None:
            self._samples += float(work.trained_samples.sum())
            self._computing_s += float(latency.phases(clients, work).compute_s.sum())
        nonfinite, self._nonfinite = self._nonfinite, 0
        return AdaptationFigures(self._samples, self._computing_s, nonfinite)

    def evaluate(
        self,
        round_: int,
        plan: InferencePlan,
        clients: Ints,
        samples: SampleRanges,
        *,
        is_last: bool = False,
    ) -> Evaluation:
        """Evaluate `clients` (n,) on their test `samples`; the models of `plan` serve all N clients.

        If it `is_last`, the models that clients keep to themselves are `kept`.

        Raises RunError if a client is served by several models, and the adaptation is of one.
        """
        if self.adaptation.serves_one and plan.used.sum(axis=1).max(initial=0) > 1:
            raise RunError(
                f"round {round_}: {self.adaptation.name} adapts one model, and the clusterer combines several"
            )
        accuracy, loss = np.full(len(clients), np.nan), np.full(len(clients), np.nan)
        evaluated = np.flatnonzero(plan.used[clients].any(axis=1) & (samples.counts() > 0))
        size = self._at_once(plan.models.shape[1])
        shares = cache(lambda: mean_shares(plan, self._reports.latest, len(self._bank)))
        keeps, kept = is_last and self.adaptation.keeps_models, []
        for first in range(0, len(evaluated), size):
            rows = evaluated[first : first + size]
            held = self._stream.held(clients[rows], "train")
            view = self.view(clients[rows], plan.take(clients[rows]), held, rounds=round_ + 1, shares=shares)
            served = self.adaptation.adapt(view)
            evaluation = self._evaluated(served, samples.take(rows))
            accuracy[rows], loss[rows] = evaluation.accuracy, evaluation.loss
            kept += [served.models] if keeps else []
        if kept:
            self.kept = clients[evaluated], np.concatenate(kept)
        return Evaluation(accuracy, loss)

    def _evaluated(self, served: Served, samples: SampleRanges) -> Evaluation:
        """The evaluation of n clients as they are `served`, on their test `samples`, read in their ways."""
        if served.ways is None or self._ways is None:
            return self._executor.evaluate(served.models, served.plan, samples)
        column = served.plan.used.argmax(axis=1)  # the only one: whoever has ways serves one model
        with self._ways.for_now(served.ways[np.arange(len(column)), column]) as shift:
            return self._executor.evaluate(served.models, served.plan, samples.shifted(shift))

    def _at_once(self, width: int) -> int:
        """The number of clients that are adapted at once, each served by at most `width` models."""
        return max(1, AT_ONCE // (self._executor.num_parameters + width * self._stream.num_labels**2))

    def view(
        self,
        clients: Ints,
        plan: InferencePlan,
        held: SampleRanges,
        *,
        rounds: int,
        step: int | None = None,
        shares: Callable[[], Floats] = _not_now,
        models: Floats32 | None = None,
    ) -> ClientView:
        """The view of `clients` (n,), which the models of `plan` (n, width) serve, and which hold `held`.

        The plan is of rows of `models` (M, P); None: the bank.
        """
        stream, executor = self._stream, self._executor
        present = self._bank.parameters if models is None else models
        step = stream.step if step is None else step
        num_samples = held.counts()
        local_steps = self._settings.steps_of(num_samples)

        def samples(steps: Ints) -> Floats:
            return samples_of_steps(steps, num_samples, self._settings.batch_size, self._settings.last)

        def label_counts() -> Floats:
            return np.rint(stream.label_histograms(clients) * num_samples[:, None])

        def log_probabilities() -> Floats:
            return self._log_probabilities(present, plan, held)

        def losses(ways: Floats) -> Floats:
            return self._losses(present, plan, held, ways)

        def train(
            models: Floats32,
            start: Ints,
            steps: Ints,
            learning_rate: float | None = None,
            state: Mapping[str, Floats32] | None = None,
            taken: Ints | None = None,
        ) -> Trained:
            rate = self._settings.learning_rate if learning_rate is None else learning_rate
            received = models[start]
            state = self._no_state(received) if state is None else state
            tasks = self._tasks(clients, held, steps, rate, rounds - 1, step, state, taken)
            updates = executor.train(tasks, models, start)
            return self._finite(rounds - 1, received, updates, state)

        return ClientView(
            clients=clients,
            plan=plan,
            models=present,
            num_labels=stream.num_labels,
            step=step,
            rounds=rounds,
            new_data=np.zeros(len(clients), dtype=bool),
            evaluated=False,
            local_steps=local_steps,
            batch_size=self._settings.batch_size,
            steps_per_client=self._participation * local_steps.astype(np.float64),
            samples=samples,
            num_samples=num_samples,
            scored=self._scored,
            label_counts=label_counts,
            reported_shares=shares,
            log_probabilities=log_probabilities,
            losses=losses,
            held=lambda: self._held(held),
            train=train,
            initial=executor.initial,
        )

    def _no_state(self, received: Floats32) -> dict[str, Floats32]:
        """The solver's state before any step, of clients that start from `received` (n, P): by slot."""
        solver = self._executor.solver
        size = received.shape[1] - solver.statistics
        return {name: spec.begun(received, size) for name, spec in solver.state.items()}

    def _tasks(
        self,
        clients: Ints,
        held: SampleRanges,
        steps: Ints,
        learning_rate: float,
        round_: int,
        step: int,
        state: Mapping[str, Floats32],
        taken: Ints | None,
    ) -> TrainTasks:
        """Tasks whose batches are those of the round, or if given of the steps `taken` (n,) so far."""
        numbers = {"learning_rate": learning_rate, "batch_size": float(self._settings.batch_size)}
        settings = {name: np.full(len(clients), number) for name, number in numbers.items()}
        return TrainTasks(
            client=clients,
            model=np.full(len(clients), ADAPTED) if taken is None else ADAPTED_AFTER + taken,
            visit=np.full(len(clients), -1),
            samples=held,
            settings={**settings, "local_steps": steps.astype(np.float64)},
            dispatch=np.full(len(clients), round_ if taken is None else 0),
            step=np.full(len(clients), step),
            state=state,
        )

    def _finite(
        self, round_: int, before: Floats32, updates: Updates, state: Mapping[str, Floats32]
    ) -> Trained:
        """The trained models and the solver's state; a client whose copy is not finite keeps those `before`.

        Raises RunError if there is one and `round.nonfinite_updates` is "stop".
        """
        of_slots = [np.isfinite(updates.state[name]).all(axis=1) for name in state]
        finite = np.logical_and.reduce([updates.finite, *of_slots])[:, None]
        failed = updates.client[~finite[:, 0]]
        if len(failed) > 0 and self._settings.nonfinite_updates == "stop":
            raise RunError(
                f"round {round_}: the model that client {failed[0]} trains for its adaptation "
                f"{self.adaptation.name} is not finite ({len(failed)} of {len(before)} are not), and "
                f'round.nonfinite_updates = "stop"; a lower learning rate may help'
            )
        self._nonfinite += len(failed)
        kept = {name: np.where(finite, updates.state[name], rows) for name, rows in state.items()}
        return Trained(np.where(finite, trained_models(updates, before), before), kept)

    def _held(self, held: SampleRanges) -> Iterator[Held]:
        """See `ClientView.held`."""
        assert self._ways is not None, "the adaptation declares that it reads, or hears"
        counts = held.counts()
        each = max(int(counts.max(initial=1)), self._stream.num_labels) * self._ways.num_features
        some = max(1, HELD_AT_ONCE // each)
        for first in range(0, len(held), some):
            clients = np.arange(first, min(first + some, len(held)))
            rows = np.concatenate([held.rows(client) for client in clients.tolist()])
            owner = np.repeat(np.arange(len(clients)), counts[clients])
            yield Held(clients, self._ways.plain(rows), self._ways.labels(rows), owner)

    def _log_probabilities(self, models: Floats32, plan: InferencePlan, held: SampleRanges) -> Floats:
        """(n, width, L, L) see `ClientView.log_probabilities`."""
        num_labels = self._stream.num_labels
        sums = np.zeros((*plan.models.shape, num_labels, num_labels))
        for model, clients, columns in _by_model(plan):
            scores = self._executor.score(
                models[[model]], held.take(clients), frozenset({"log_probabilities"})
            )
            assert scores.log_probabilities is not None
            sums[clients, columns] = scores.log_probabilities[:, 0]
        return sums

    def _losses(self, models: Floats32, plan: InferencePlan, held: SampleRanges, ways: Floats) -> Floats:
        """(n, width, T) see `ClientView.losses`."""
        assert self._ways is not None, "the adaptation declares that it reads"
        sums = np.zeros((*plan.models.shape, len(ways)))
        with self._ways.for_now(ways) as shift:
            for model, clients, columns in _by_model(plan):
                samples = held.take(np.repeat(clients, len(ways))).shifted(np.tile(shift, len(clients)))
                scores = self._executor.score(models[[model]], samples, frozenset({"loss"}))
                assert scores.loss is not None
                sums[clients, columns] = scores.loss.reshape(len(clients), len(ways))
        return sums


def _by_model(plan: InferencePlan) -> Iterator[tuple[int, Ints, Ints]]:
    """Each model that serves someone: its number, and the rows and columns of `plan` that it has."""
    for model in np.unique(plan.models[plan.used]).tolist():
        yield model, *np.nonzero(plan.used & (plan.models == model))


def mean_shares(plan: InferencePlan, shares: Floats, num_models: int) -> Floats:
    """(num_models, L) the mean of the `shares` (N, L) of the clients that each model of `plan` serves.

    Clients whose shares are NaN do not count; a model without others has equal shares.

    >>> shares = np.array([[1.0, 0.0], [0.5, 0.5], [np.nan, np.nan]])
    >>> mean_shares(InferencePlan.alike(np.array([[0], [0], [1]])), shares, 2)
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    num_labels = shares.shape[1]
    clients, columns = np.nonzero(plan.used & np.isfinite(shares).all(axis=1, keepdims=True))
    models = plan.models[clients, columns]
    counts = np.bincount(models, minlength=num_models)[:, None]
    columns_of_labels = shares[clients].T
    sums = np.stack([np.bincount(models, of_label, num_models) for of_label in columns_of_labels], axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1 / num_labels)
