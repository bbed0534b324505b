"""The contract of adaptations refuses those that break a rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.adaptations import Adaptation, ClientView, Served
from coordinator.adaptations.none import NoAdaptation
from emulator.messages import InferencePlan, Work
from experiments import contracts
from tests.fakes import NOTHING


def with_offsets(view: ClientView, offsets: np.ndarray) -> Served:
    return Served(view.models, replace(view.plan, offsets=offsets))


class ByTheFleet(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        most = view.label_counts().max(axis=0)
        return with_offsets(view, np.tile(most, (len(view.clients), view.plan.models.shape[1], 1)))


class ByPosition(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        place = np.arange(len(view.clients), dtype=float)[:, None, None]
        return with_offsets(view, np.zeros((*view.plan.models.shape, view.num_labels)) + place)


class Forgetful(NoAdaptation):
    calls = 0

    def adapt(self, view: ClientView) -> Served:
        self.calls += 1
        return Served(view.models + self.calls, view.plan)


class Greedy(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        view.models[:] = 0
        return Served(view.models, view.plan)


class Curious(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        view.reported_shares()
        return Served(view.models, view.plan)


class Doubling(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        same = np.zeros((*view.plan.models.shape, view.num_labels), dtype=np.int64)
        return Served(view.models, replace(view.plan, outputs=same))


class Unheld(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        with np.errstate(divide="ignore", invalid="ignore"):
            none = np.log(view.label_counts()) * 0
        return with_offsets(view, np.repeat(none[:, None], view.plan.models.shape[1], axis=1))


class Unserved(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, InferencePlan.own(len(view.clients)))


class Sending(NoAdaptation):
    def work(self, view: ClientView) -> Work | None:
        return Work.of(len(view.clients), upload_bytes=4.0)


@pytest.mark.parametrize(
    ("adaptation", "rule"),
    [
        (ByTheFleet, "depends on the other clients"),
        (ByPosition, "depends on the order of the clients"),
        (Greedy, "writes to its arguments"),
        (Curious, "reads reported_shares without needs_label_shares"),
        (Doubling, "outputs must be permutations of the labels"),
        (Unheld, "offsets must not be NaN"),
        (Unserved, "a plan's models must be rows of the bank, or -1"),
        (Sending, "an adaptation moves no bytes"),
    ],
)
def test_adaptations_that_break_a_rule_are_refused(adaptation: type[Adaptation], rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        contracts.check_adaptation(lambda: adaptation(NOTHING))


def test_adaptations_whose_state_is_not_declared_are_refused() -> None:
    with pytest.raises(Exception, match="its attribute calls has changed since it was made"):
        contracts.check_adaptation(lambda: Forgetful(NOTHING))
