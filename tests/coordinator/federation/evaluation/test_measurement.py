from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation.measurement import (
    ClientVectors,
    Measurement,
    accuracy_by_concept,
    measure,
)
from coordinator.federation.training.reading import Reading
from coordinator.representations.base import LocalData
from coordinator.representations.label import Label
from emulator.arrays import Floats, Ints
from emulator.errors import RunError
from emulator.messages import InferencePlan, SampleRanges
from emulator.plugins import NoSettings
from tests.fakes import FakeExecutor, FakeStream, ints


def measured(
    targets: npt.ArrayLike,
    members: Ints,
    histograms: npt.ArrayLike,
    test: list[int] | None = None,
    concepts: npt.ArrayLike | None = None,
    clients: Ints | None = None,
    log_clients: bool = False,
) -> Measurement:
    """The measurement of models that are all 0, so that a client's accuracy is 1 - its target.

    `targets` are those of `clients` (default: all).
    """
    stream = FakeStream([histograms], test=test, concepts=concepts)
    stream.advance_to_round(0)
    bank = ModelBank(num_parameters=1)
    bank.apply(Assignment.fresh(members, int(members.max()) + 1, np.zeros(1, dtype=np.float32)))
    plan = InferencePlan.alike(members[:, None])
    clients = np.arange(len(members)) if clients is None else clients
    vectors = ClientVectors(Label(NoSettings()), stream)  # type: ignore[arg-type]  # its histograms suffice
    executor = FakeExecutor(targets)
    return measure(executor, bank, plan, stream, vectors, clients, log_clients=log_clients)[0]


def test_means_are_over_clients_with_test_samples_and_distances_over_all() -> None:
    histograms = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    measurement = measured([0.25, 0.75, 0.0], ints(0, 0, 1), histograms, test=[1, 1, 0])
    assert measurement.accuracy == (0.75 + 0.25) / 2
    assert measurement.accuracy_std == 0.25
    assert measurement.scored_clients == 2
    assert measurement.mean_client_distance == (2 + 2 + 0) / 3  # client 2 is alone in its cluster: 0
    assert measurement.unclustered_distance == (1 + 2 + 1) / 3


def test_a_client_without_a_model_forms_no_cluster_and_is_in_no_mean() -> None:
    histograms = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    measurement = measured([0.25, 0.75, 1.0, 1.0], ints(0, 0, -1, -1), histograms, log_clients=True)
    assert (measurement.accuracy, measurement.scored_clients) == (0.5, 2)
    assert measurement.mean_client_distance == 2.0
    assert measurement.unclustered_distance == 2.0
    assert measurement.client_accuracy is not None
    assert np.isnan(measurement.client_accuracy).tolist() == [False, False, True, True]


def test_a_sample_of_clients_stands_for_all() -> None:
    histograms = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    concepts = [[0, 0, 0, 0], [1, 0, 0, 0]]
    sampled = ints(1, 3)
    measurement = measured([0.5, 0.25], ints(0, 0, 0, 1), histograms, concepts=concepts, clients=sampled)
    assert measurement.accuracy == (0.5 + 0.75) / 2
    assert (measurement.scored_clients, measurement.drift_cells) == (2, 0)
    assert measurement.mean_client_distance == 0.0  # each of the two is alone in its cluster
    assert measurement.serving is not None
    assert measurement.serving.tolist() == [0, 0, 0, 1]  # known for all clients without scoring them


def test_the_accuracy_of_each_client_is_optional() -> None:
    histograms = np.ones((2, 1))
    assert measured([0.25, 1.0], ints(0, 0), histograms).client_accuracy is None
    accuracy = measured([0.25, 1.0], ints(0, 0), histograms, test=[1, 0], log_clients=True).client_accuracy
    assert accuracy is not None
    np.testing.assert_array_equal(accuracy, np.float32([0.75, np.nan]))


class Unusable(Label):
    def measure(self, clients: Ints, data: LocalData) -> Floats:
        return np.where(clients == 1, np.nan, 1.0)[:, None]


def test_a_measured_vector_that_is_not_finite_ends_the_run() -> None:
    vectors = ClientVectors(Unusable(NoSettings()), FakeStream([[[1.0]] * 3]))  # type: ignore[arg-type]
    with pytest.raises(
        RunError, match=r"^round\.client_distance: the Unusable of client 1 is not finite \(1 of"
    ):
        vectors.of(ints(0, 1, 2))


def test_a_client_whose_loss_is_not_finite_is_not_averaged_away() -> None:
    measurement = measured([0.0, np.nan], ints(0, 0), [[1.0], [1.0]])
    assert measurement.loss is not None
    assert not np.isfinite(measurement.loss)


def test_clients_in_a_drift_are_omitted_from_one_of_the_two_accuracies() -> None:
    # client 1 was last trained on concept 0, and is tested on concept 1
    measurement = measured([0.25, 1.0, 0.0], ints(0, 1, 1), np.ones((3, 1)), concepts=[[0, 0, 1], [0, 1, 1]])
    assert measurement.drift_cells == 1
    assert measurement.accuracy_omitting_drift == (0.75 + 1.0) / 2
    assert measurement.accuracy == (0.75 + 0.0 + 1.0) / 3
    assert measurement.serving.tolist() == [0, 1, 1]


def test_when_all_clients_drift_there_is_no_accuracy_that_omits_drifts() -> None:
    measurement = measured([0.0], ints(0), np.ones((1, 1)), concepts=[[0], [1]])
    assert (measurement.drift_cells, measurement.accuracy_omitting_drift) == (1, None)


def test_without_known_concepts_their_fields_are_empty() -> None:
    measurement = measured([0.0], ints(0), np.ones((1, 1)))
    assert measurement.drift_cells is None
    assert measurement.accuracy_omitting_drift is None
    assert measurement.serving is None


def of_models(
    targets: npt.ArrayLike,
    concepts: npt.ArrayLike | None,
    clients: Ints,
    holding: npt.ArrayLike | None = None,
) -> dict[int, list[float]] | None:
    """The accuracy by concept of models 0 and 1, of `clients` of the population with these `targets`."""
    members = np.zeros(len(np.array(targets)), dtype=np.int64)
    stream = FakeStream(np.ones((1, len(members), 1)), concepts=concepts, holding=holding)
    stream.advance_to_round(0)
    bank = ModelBank(num_parameters=1)
    bank.apply(Assignment.fresh(members, 2, np.zeros(1, dtype=np.float32)))
    bank.publish(np.array([[0.0], [1.0]], dtype=np.float32), np.array([False, True]))
    plan = InferencePlan.alike(members[:, None])
    vectors = ClientVectors(Label(NoSettings()), stream)  # type: ignore[arg-type]  # its histograms suffice
    executor = FakeExecutor(targets)
    score = Reading(None, None, stream=stream, executor=executor).score
    found, _ = measure(executor, bank, plan, stream, vectors, clients, score=partial(score, 1))
    return found.accuracy_by_concept


def test_every_model_is_measured_on_the_tests_of_every_concept_whoever_it_serves() -> None:
    concepts = [[0, 0, 0, 0], [0, 0, 1, 1]]  # those of tests are in the last row
    assert of_models([0.0, 0.0, 1.0, 0.5], concepts, ints(0, 1, 2, 3)) == {0: [1, 0], 1: [0.25, 0.75]}


def test_concepts_are_those_of_the_scored_clients_that_hold_data() -> None:
    concepts = [[0, 0, 0, 0], [3, 9, 7, 3]]
    holding = [[True, True, False, True]]
    assert of_models([0.0, 0.0, 1.0, 0.5], concepts, ints(0, 2, 3), holding) == {3: [0.75, 0.25]}


def test_models_are_not_measured_by_concepts_that_nobody_knows() -> None:
    assert measured([0.0], ints(0), np.ones((1, 1)), concepts=[[0], [1]]).accuracy_by_concept is None
    assert of_models([0.0, 1.0], None, ints(0, 1)) is None


def test_tests_of_a_concept_are_one_pool_of_samples() -> None:
    executor = FakeExecutor([0.0, 0.0, 0.0, 1.0])  # of these clients are the rows 0 to 3
    samples = SampleRanges.one_each(ints(0, 3, 1), ints(3, 4, 1))  # the last client has no test sample
    models = np.array([[0.0], [1.0]], dtype=np.float32)
    scores = executor.score(models, samples, frozenset({"correct"}))
    assert accuracy_by_concept(scores, ints(5, 5, 6)) == {5: [0.75, 0.25]}
