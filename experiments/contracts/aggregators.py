"""Contract of aggregators: new models made of updates, and state that follows the models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from coordinator.aggregators import Aggregator
from coordinator.assignment import Assignment
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, TaskMetric, Updates
from emulator.storage.round_schema import refuse_wrong_noted
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import NUM_LABELS, NUM_PARAMETERS, LabelStream, initial
from experiments.contracts.rounds import Rounds, Scripted
from experiments.contracts.watched import Watch
from experiments.sameness import left_alone, resumed, same

MEMBERS = (2, 0, 2, 0)
"""The model that each client is a member of at first, of three: nobody is a member of model 1."""


@and_no_global_generator
def check_aggregator(make: Callable[[], Aggregator]) -> None:
    """Check an aggregator over rounds in which models change, and on updates of some of the models.

    * Models without updates, or with updates from clients without samples alone, stay as they are.
    * One client, and clients whose updates are all the same, make finite models.
    * It does not write to its arguments.
    * Two fresh aggregators return the same models for equal updates, one of them stored and restored.
    * What it keeps for each model follows the models: when these are copied or reordered, a copy makes the
      step that the model would have made.
    * In which groups the updates were trained changes the models by rounding only.
    * If `weights` returns weights, `aggregate` calls `weighted_sum` once, with these, also of stale updates.
    * Stale updates, which start from other models than the present ones, make finite models, and leave models
      without updates as they are.
    * It broadcasts the arrays that it declares, a row for each model, which changes with that model alone. If
      it reads what clients remember, it needs whole rounds.
    * Numbers that it notes are finite, with names that the log can have.
    * It reads no metrics of the updates but `loss` and those it `needs`.
    * It reads the true concepts only if it declares `oracle = True`.

    Args:
        make: Makes a fresh aggregator.

    Raises:
        AssertionError: The aggregator breaks a rule, which the message names.
        RunError: The aggregator's state cannot be stored, or changes in an attribute that is not declared.
    """
    twins = [_aggregating(aggregator, MEMBERS, _history()) for aggregator in (make(), resumed(make))]
    assert same(*(watched.made for watched in twins)), "equal updates get different models"
    view = _remembering(make(), twins[0].view)
    updates = _updates([2, 0, 2], view, num_samples=[5, 1, 2])
    twins = [_WatchedAggregator(make()), _WatchedAggregator(resumed(make))]
    for watched in twins:
        watched.step(updates, view)
    assert same(*(watched.made for watched in twins)), "equal updates get different models"
    for count in (0, 1, 3):
        silent = replace(updates, num_samples=np.zeros(3, dtype=np.int64), delta=0 * updates.delta)
        some = silent.take(np.arange(count))
        assert np.array_equal(make().aggregate(some, _received(some, view)), view.models), (
            "without updates all models must stay as they are"
        )
    _check_few_clients(make, updates, view)
    _check_stale(make, updates, view)
    _check_copies(make, view)
    _check_broadcast(make, updates, view)
    for group in ([0, 1, 1], [0, 1, 2]):
        together, apart = make(), make()
        for turn in range(2):
            grouped = replace(updates, delta=(turn + 1) * updates.delta, group=np.array(group))
            known = _received(grouped, view)
            models = together.aggregate(replace(grouped, group=None), known)
            assert np.allclose(apart.aggregate(grouped, known), models, rtol=1e-5, atol=1e-6), (
                "the groups in which updates were trained change the models"
            )


def _check_broadcast(make: Callable[[], Aggregator], updates: ArrayUpdates, view: View) -> None:
    """Check what is sent along with the models, before and after a step without updates of one of them."""
    aggregator = make()
    assert aggregator.needs_whole_rounds or not aggregator.averages, (
        "an aggregator that reads what clients remember needs whole rounds"
    )
    numbers = np.random.default_rng(2).normal(size=view.models.shape)
    view = replace(view, remembered=dict.fromkeys(sorted(aggregator.averages), numbers))
    sent = [dict(aggregator.broadcast(view))]
    aggregator.aggregate(updates, _received(updates, view))
    sent.append(dict(aggregator.broadcast(view)))
    for arrays in sent:
        assert arrays.keys() == aggregator.broadcasts, (
            f"it broadcasts {sorted(arrays)}; it declares {sorted(aggregator.broadcasts)}"
        )
        for name, array in arrays.items():
            assert array.shape == view.models.shape, f"{name} must have a row for each model, of its size"
            assert array.dtype == np.float32, f"{name} is {array.dtype}, not float32"
            assert np.isfinite(array).all(), f"{name} must be finite"
    without = ~np.isin(view.model_ids, updates.model)
    for name, array in sent[0].items():
        assert np.array_equal(array[without], sent[1][name][without]), (
            f"{name} changes for a model without updates: it is frozen with the model's version"
        )


def _check_few_clients(make: Callable[[], Aggregator], updates: ArrayUpdates, view: View) -> None:
    """Check that one client, identical clients, and clients that have not moved make finite models."""
    for rows in ([0], [0, 0], [0, 0, 0, 0, 0]):
        alike = replace(updates.take(np.array(rows)), client=np.arange(len(rows)))
        for delta in (alike.delta, 0 * alike.delta):
            aggregator = _WatchedAggregator(make())
            for _ in range(2):
                models = aggregator.step(replace(alike, delta=delta), view)
                assert np.isfinite(models).all(), f"models are not finite after {len(rows)} equal updates"


def _check_stale(make: Callable[[], Aggregator], updates: ArrayUpdates, view: View) -> None:
    """Check that updates that are all fresh, all stale, or some of each, make finite models."""
    fresh = _WatchedAggregator(make()).step(updates, view)
    for late in ([0, 0, 0], [0, 3, 1], [7, 7, 7], [10**9, 0, 2]):
        aggregators = _WatchedAggregator(make()), _WatchedAggregator(resumed(make))
        stale = replace(updates, late=np.array(late))
        models, again = (aggregator.step(stale, view) for aggregator in aggregators)
        assert np.isfinite(models).all(), f"models are not finite after updates of staleness {late}"
        assert same(models, again), "equal updates, some of which are stale, get different models"
        assert any(late) or same(models, fresh), "updates of staleness 0 are not as those that say nothing"


def _check_copies(make: Callable[[], Aggregator], view: View) -> None:
    """Check that a copy of a model makes the step of that model, after an assignment has reordered them."""
    source = np.array([2, 0, 0, 1])
    mixing = np.eye(3)[source]
    assignment = Assignment(
        mixing=mixing,
        extra=np.zeros((0, NUM_PARAMETERS), dtype=np.float32),
        successor=np.array([1, 3, 0]),
        members=np.zeros((view.num_clients, 1), dtype=np.int64),
    )
    members = np.array([[1, 2], [3, -1], [0, -1], [-1, -1]])  # all copies have the members of their model
    copied = replace(
        view,
        models=view.models[source],
        model_ids=view.model_ids.max() + 1 + np.arange(4),
        assignment=replace(assignment, members=members[view.members[:, 0]]),
    )
    plain, changed = _WatchedAggregator(make()), _WatchedAggregator(make())
    for aggregator in (plain, changed):
        for scale in (1, -2):
            updates = _updates([2, 0, 2, 1], view, num_samples=[5, 1, 2, 3])
            aggregator.step(replace(updates, delta=np.float32(scale) * updates.delta), view)
    changed.models_changed(assignment)
    stepped = plain.step(_updates([2, 0, 1], view, num_samples=[5, 1, 2]), view)
    rows = np.array([0, 1, 1, 2])
    updates = _updates([2, 0, 1], view, num_samples=[5, 1, 2]).take(rows)
    updates = replace(updates, client=np.arange(4), model=copied.model_ids)
    assert np.allclose(changed.step(updates, copied), stepped[source], rtol=1e-6, atol=1e-7), (
        "after models were copied and reordered, a copy does not step as the model would have: what is kept "
        "for each model must follow the mixing matrix (`models_changed`)"
    )


def _updates(models: Sequence[int], view: View, num_samples: Sequence[int]) -> ArrayUpdates:
    """An update of each of `models`, rows of the view; at most four."""
    count = len(models)
    delta = np.random.default_rng(1).normal(size=(4, NUM_PARAMETERS)).astype(np.float32)[:count]
    return ArrayUpdates(
        client=np.arange(count),
        model=view.model_ids[list(models)],
        num_samples=np.array(num_samples),
        num_steps=np.full(count, 4),
        delta=delta,
        metrics={
            "loss": np.array([0.5, 0.25, 1.0, 2.0])[:count],
            "loss_before": np.array([1.5, 0.5, 2.0, 0.75])[:count],
            "loss_squared": np.array([0.3, 0.1, 1.1, 4.2])[:count],
            "batch_losses": np.outer([1.5, 0.5, 2.0, 0.75], [1, 0.9, 0.7, 0.6])[:count],
            "step_norm": np.array([4.0, 2.0, 7.5, 1.0])[:count],
            "batch_errors": np.outer([0.75, 0.25, 1.0, 0.5], [1, 1, 0.5, 0.5])[:count],
        },
    )


def _received(updates: ArrayUpdates, view: View) -> View:
    """The view with the models that updates started from: the present ones, or older ones of stale ones."""
    row = np.searchsorted(view.model_ids, updates.model)
    older = view.models - np.float32(0.25)
    started = np.where(updates.staleness > 0, row + len(older), row)
    return replace(view, received=np.concatenate([view.models, older]), started=started)


def _remembering(aggregator: Aggregator, view: View) -> View:
    """The view with what clients remember, the same for all models, of the slots that it averages."""
    means = np.tile(np.linspace(-1, 1, view.models.shape[1]), (len(view.models), 1))
    return replace(view, remembered=dict.fromkeys(sorted(aggregator.averages), means))


class _WatchedAggregator(Aggregator):
    """Wraps an aggregator: checks the models it returns and keeps them in `made`.

    `view` is the view of the last call of `aggregate`.
    """

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, aggregator: Aggregator) -> None:
        self.aggregator = aggregator
        self.watch = Watch(aggregator)
        self.made: list[Floats32] = []
        self.view: View
        self._declared: Floats | None = None

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return self.aggregator.needs

    def models_changed(self, assignment: Assignment) -> None:
        with left_alone(assignment):
            self.aggregator.models_changed(assignment)

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats | None:
        with left_alone(model, num_samples, view):
            self._declared = self.aggregator.weights(model, num_samples, self.watch.over(view))
        return self._declared

    def step(self, updates: ArrayUpdates, view: View) -> Floats32:
        """Ask for the weights, then for the models, as the federation does."""
        known = view if updates.late is None else replace(view, staleness=updates.late)
        self.weights(updates.model, updates.num_samples, known)
        return self.aggregate(updates, _received(updates, view))

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        assert isinstance(updates, ArrayUpdates)
        view = _remembering(self.aggregator, view)
        self.view, declared, used = self.watch.over(view), self._declared, []
        metrics = _NeededMetrics(updates.metrics, {"loss", *self.needs})

        class Listening(ArrayUpdates):
            def weighted_sum(self, weights: Floats) -> Floats:
                used.append(weights)
                return super().weighted_sum(weights)

        with left_alone(updates, view):
            models = self.aggregator.aggregate(Listening(**{**vars(updates), "metrics": metrics}), self.view)
        assert models.shape == view.models.shape, f"models of shape {models.shape}, not {view.models.shape}"
        assert models.dtype == np.float32, f"models are {models.dtype}, not float32"
        untouched = ~np.isin(view.model_ids, updates.model)
        assert np.array_equal(models[untouched], view.models[untouched]), (
            "a model without updates must stay as it is"
        )
        if declared is not None:
            assert len(used) == 1, (
                f"it declares its weights, but calls weighted_sum {len(used)} times, not once"
            )
            assert same(used[0], declared), f"it uses the weights {used[0]}, having declared {declared}"
        try:
            refuse_wrong_noted({name: float(number) for name, number in self.aggregator.noted.items()})
        except ValueError as error:
            raise AssertionError(f"the log refuses what it notes: {error}") from error
        self.made.append(models)
        return models


class _NeededMetrics(dict[str, Floats]):
    """The columns of `metrics` with these `names`; AssertionError for one that has another name."""

    def __init__(self, metrics: Mapping[str, Floats], names: set[str]) -> None:
        super().__init__({name: column for name, column in metrics.items() if name in names})
        self._names = names

    def __missing__(self, name: str) -> Floats:
        if name in self._names:
            raise KeyError(name)
        raise AssertionError(f"it reads the metric {name!r} of updates, which is not among its `needs`")


def _aggregating(
    aggregator: Aggregator, members: Sequence[int], history: Mapping[int, Assignment]
) -> _WatchedAggregator:
    """The aggregator, wrapped, after the rounds of `history`, in which all clients participated.

    `history`: the assignments of rounds 0, 1, ...
    """
    watched = _WatchedAggregator(aggregator)
    all_participate = Sync(SyncSettings(), CohortSize(len(members)))
    stream = LabelStream(np.full((1, len(members), NUM_LABELS), 1 / NUM_LABELS))
    played = Rounds(stream, clusterer=Scripted(history), aggregator=watched, pacing=all_participate)
    for _ in history:
        played.play()
    return watched


def _history() -> dict[int, Assignment]:
    """Assignments of the four clients of `MEMBERS` by round: the last ones leave three models.

    After two rounds model 2 is split; then the children and model 1 are merged, and a fresh model is added;
    then all are mixed anew.
    """
    nobody_left = np.zeros((0, NUM_PARAMETERS), dtype=np.float32)
    members = np.array(MEMBERS)
    return {
        0: _first(members, 3),
        1: Assignment.moved(members, 3),
        2: Assignment(
            np.eye(3)[[0, 1, 2, 2]], nobody_left, np.array([0, 1, 2]), np.array([[2], [0], [3], [0]])
        ),
        3: Assignment(
            mixing=np.array([[1, 0, 0, 0, 0], [0, 0.5, 0.25, 0.25, 0], [0, 0, 0, 0, 1]]),
            extra=initial(5)[None],
            successor=np.array([0, 1, 1, 1]),
            members=np.array([[1], [0], [1], [2]]),
        ),
        4: Assignment.reclustered_from(np.array([1, 0, 1, 2]), np.array([2, 2, 0, 1]), 3, 3),
        5: Assignment.moved(np.array([2, 2, 0, 0]), 3),
    }


def _first(members: Ints, num_models: int) -> Assignment:
    """The first assignment, of models that are all different."""
    starts = np.random.default_rng(4).normal(size=(num_models, NUM_PARAMETERS)).astype(np.float32)
    return Assignment.fresh(members, num_models, starts)


@and_no_global_generator
def check_robust_aggregator(make: Callable[[], Aggregator]) -> None:
    """Check a robust aggregator: the contract of all aggregators, and bounded influence of single updates.

    * It passes `check_aggregator`.
    * One update of ten, however large, moves its model by at most twice the largest norm of the honest
      updates, and no other model at all.
    * The order of the rows and the updates of clients without samples change the models by rounding only.

    Args:
        make: Makes a fresh aggregator.

    Raises:
        AssertionError: The aggregator breaks a rule, which the message names.
        RunError: As `check_aggregator`.
    """
    check_aggregator(make)
    members = np.array([0] * 10 + [1] * 3)
    view = _aggregating(make(), members.tolist(), {0: _first(members, 2)}).view
    honest = np.random.default_rng(2).normal(size=(12, NUM_PARAMETERS)).astype(np.float32)
    updates = ArrayUpdates(
        client=np.arange(12),
        model=view.model_ids[[0] * 10 + [1] * 2],
        num_samples=np.full(12, 5),
        num_steps=np.full(12, 4),
        delta=honest,
        metrics={"loss": np.full(12, 0.5)},
    )
    view = _received(updates, view)
    before = make().aggregate(updates, view)
    most = 2 * np.linalg.norm(honest, axis=1).max()
    for size in (1e3, 1e6, 1e30):
        wild = replace(updates, delta=honest.copy())
        wild.delta[3] = size
        models = make().aggregate(wild, view)
        moved = np.linalg.norm(models[0].astype(np.float64) - view.models[0])
        assert moved <= most, f"one update of ten, of size {size:g}, moves its model by {moved:.3g}"
        assert np.array_equal(models[1], before[1]), "a large update of one model moves another model"
    order = np.random.default_rng(3).permutation(12)
    turned = make().aggregate(updates.take(order), replace(view, started=view.started[order]))
    assert np.allclose(turned, before, rtol=1e-5, atol=1e-6), "the order of the rows changes the models"
    silent = replace(updates, num_samples=np.array([5] * 9 + [0] + [5] * 2))
    loud = replace(silent, delta=honest.copy())
    loud.delta[9] = 7.0
    sampled = np.flatnonzero(silent.num_samples > 0)
    less = make().aggregate(silent.take(sampled), replace(view, started=view.started[sampled]))
    heard = make().aggregate(loud, view)
    assert np.allclose(heard, less, rtol=1e-5, atol=1e-6), "an update without samples moves a model"
