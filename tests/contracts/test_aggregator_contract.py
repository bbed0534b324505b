"""The contract of aggregators refuses aggregators that break a rule beyond those of `test_contracts`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.aggregators.fedadam import FedAdam, FedAdamSettings
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.fedbuff import FedBuff, FedBuffSettings
from emulator.errors import RunError
from experiments import contracts


def test_moments_that_stay_behind_when_models_are_reordered_are_refused():
    class Unmoved(FedAdam):
        def models_changed(self, assignment):
            if self._first is not None:
                rows = np.arange(assignment.num_models) % len(self._first)
                self._first, self._second = self._first[rows], self._second[rows]

    with pytest.raises(AssertionError, match=r"must follow the mixing matrix \(`models_changed`\)"):
        contracts.check_aggregator(lambda: Unmoved(FedAdamSettings()))


def test_moments_that_start_anew_in_copies_are_refused():
    class Forgetful(FedAdam):
        def models_changed(self, assignment):
            self._first = self._second = None

    with pytest.raises(AssertionError, match="a copy does not step as the model would have"):
        contracts.check_aggregator(lambda: Forgetful(FedAdamSettings()))


def test_moments_that_are_not_stored_are_refused():
    class Undeclared(FedAdam):
        state_fields = ("_first",)

    with pytest.raises(RunError, match="_second has changed since it was made"):
        contracts.check_aggregator(lambda: Undeclared(FedAdamSettings()))


class Reading(FedAvg):
    """Reads `loss_before`, without effect."""

    def aggregate(self, updates, view):
        assert len(updates.metrics["loss_before"]) == len(updates)
        return super().aggregate(updates, view)


def test_metrics_that_are_not_among_the_needs_are_refused():
    with pytest.raises(AssertionError, match="reads the metric 'loss_before' of updates, which is not among"):
        contracts.check_aggregator(lambda: Reading(FedAvgSettings()))


def test_aggregators_that_depend_on_the_groups_of_updates_are_refused():
    class Grouped(FedAvg):
        def aggregate(self, updates, view):
            models = super().aggregate(updates, view)
            ahead = updates.group is not None and len(updates) > 0
            return np.where(np.isin(view.model_ids, updates.model)[:, None] & ahead, 2 * models, models)

    with pytest.raises(AssertionError, match="the groups in which updates were trained change the models"):
        contracts.check_aggregator(lambda: Grouped(FedAvgSettings()))


def test_updates_of_clients_without_samples_must_not_move_a_model_by_momentum():
    class Rolling(FedAvg):
        def aggregate(self, updates, view):
            moved = np.isin(view.model_ids, updates.model)[:, None]
            return np.where(moved, super().aggregate(updates, view) + np.float32(0.1), view.models)

    with pytest.raises(AssertionError, match="without updates all models must stay"):
        contracts.check_aggregator(lambda: Rolling(FedAvgSettings()))


def test_aggregators_that_divide_by_the_size_of_updates_are_refused():
    class Divided(FedAvg):
        def aggregate(self, updates, view):
            models = super().aggregate(updates, view)
            moved = np.isin(view.model_ids, updates.model[updates.num_samples > 0])[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                divided = models / np.float32(np.abs(updates.delta).max(initial=0))
            return np.where(moved, divided, models)

    with pytest.raises(AssertionError, match="models are not finite after 1 equal updates"):
        contracts.check_aggregator(lambda: Divided(FedAvgSettings()))


def test_aggregators_whose_declared_weights_ignore_staleness_are_refused():
    class Careless(FedBuff):
        def weights(self, model, num_samples, view):
            return super().weights(model, num_samples, replace(view, staleness=0 * model))

    with pytest.raises(AssertionError, match="having declared"):
        contracts.check_aggregator(lambda: Careless(FedBuffSettings()))


def test_aggregators_that_divide_by_nothing_but_stale_updates_are_refused():
    class Fresh(FedBuff):
        def aggregate(self, updates, view):
            models = super().aggregate(updates, view)
            moved = np.isin(view.model_ids, updates.model[updates.num_samples > 0])[:, None]
            lost = len(updates) > 0 and updates.staleness.min() > 0
            return np.where(moved & lost, np.float32(np.inf), models)

    with pytest.raises(AssertionError, match=r"not finite after updates of staleness \[7, 7, 7\]"):
        contracts.check_aggregator(lambda: Fresh(FedBuffSettings()))
