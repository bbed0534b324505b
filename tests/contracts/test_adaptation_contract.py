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


class Reading(NoAdaptation):
    """Has the features of all clients read in way 1, which turns them upside down, in training, too."""

    reads = True
    trains = True

    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan, np.ones((*view.plan.models.shape, 1)))

    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        turned = (ways == 1).any(axis=1)[:, None, None]
        return np.where(turned, features[:, ::-1], features)


class Centring(Reading):
    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        return features - features.mean(axis=0) * (ways == 1).any()


class NeverPlain(Reading):
    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        return features[:, ::-1]


class Counting(Reading):
    """Has zeros behind the features, as many as a way has numbers: plain samples have none at first."""

    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        return np.pad(features, ((0, 0), (0, ways.shape[1]), (0, 0)))


class Growing(Reading):
    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        return np.pad(features, ((0, 0), (0, int((ways == 1).any())), (0, 0)))


class WritingSamples(Reading):
    def read(self, features: np.ndarray, ways: np.ndarray) -> np.ndarray:
        features[(ways == 1).any(axis=1)] = 0
        return features


class Unread(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan, np.ones((*view.plan.models.shape, 1)))


class Shapeless(Reading):
    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan, np.ones((len(view.clients), 1)))


class OneForEachModel(Reading):
    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan, view.plan.models[:, :, None].astype(float))


class TrainingOffsets(NoAdaptation):
    trains = True

    def adapt(self, view: ClientView) -> Served:
        return with_offsets(view, np.zeros((*view.plan.models.shape, view.num_labels)))


class TrainingAnother(NoAdaptation):
    trains = True

    def adapt(self, view: ClientView) -> Served:
        return Served(view.models[view.plan.models[:, 0]], InferencePlan.own(len(view.clients)))


class Peeping(NoAdaptation):
    def adapt(self, view: ClientView) -> Served:
        list(view.held())
        return Served(view.models, view.plan)


class Endless(NoAdaptation):
    hears = True

    def choosing_work(self, view: ClientView) -> Work | None:
        return Work.of(len(view.clients), download_bytes=np.inf)


class Refunding(NoAdaptation):
    hears = True

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        return Work.of(len(view.clients), upload_bytes=-4.0)


class WritingReports(NoAdaptation):
    hears = True

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        served.models[:] = 0
        return None


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
        (Centring, "read: a sample depends on the others"),
        (NeverPlain, "read: a sample whose way has no numbers must be as it is"),
        (Counting, "read: a sample whose way has no numbers must be as it is"),
        (Growing, "read: the shape of samples must not depend on their way"),
        (WritingSamples, "writes to its arguments"),
        (Unread, "ways of features are those of an adaptation that `reads`"),
        (Shapeless, "ways must be floats of shape"),
        (OneForEachModel, "ways of a client that several models serve must be the same"),
        (TrainingOffsets, "what trains changes neither models nor offsets"),
        (TrainingAnother, "what trains changes neither models nor offsets"),
        (Peeping, "the adaptation declares that it reads, or hears"),
        (Endless, r"work: download_bytes must be \(5,\) finite numbers, not negative"),
        (Refunding, r"work: upload_bytes must be \(5,\) finite numbers, not negative"),
        (WritingReports, "writes to its arguments"),
    ],
)
def test_adaptations_that_break_a_rule_are_refused(adaptation: type[Adaptation], rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        contracts.check_adaptation(lambda: adaptation(NOTHING))


def test_one_that_reads_and_trains_is_in_order() -> None:
    contracts.check_adaptation(lambda: Reading(NOTHING))


def test_adaptations_whose_state_is_not_declared_are_refused() -> None:
    with pytest.raises(Exception, match="its attribute calls has changed since it was made"):
        contracts.check_adaptation(lambda: Forgetful(NOTHING))
