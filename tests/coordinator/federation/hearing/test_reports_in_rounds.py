"""What reports cost, who reports, and what is done with those that cannot be used, over rounds."""

from collections.abc import Collection

import numpy as np
import pytest

from coordinator.detectors import Detector
from coordinator.federation.hearing.client_data import Reference
from coordinator.representations import Representation
from coordinator.representations.base import ReferenceSettings
from coordinator.representations.embedding import Embedding
from coordinator.representations.gradient import Gradient, GradientSettings
from coordinator.representations.label import Label
from emulator.errors import RunError
from tests.fakes import (
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Population,
    fresh,
    ints,
)

FIRST, SECOND = [1.0, 0.0], [0.0, 1.0]


class Always(Detector):
    """Every client that checks its data has drifted."""

    Settings = type(NOTHING)

    def detect(self, clients, signal, last):
        return np.ones(len(signal), dtype=bool)


def population(representation, histograms, reference=None, **more) -> Population:
    """Two or more clients in one cluster, whose data are those of `histograms` (steps, N, L)."""
    clients = len(histograms[0])
    return Population(
        more.pop("executor", FakeExecutor([0.0] * clients)),
        stream=FakeStream(histograms, train=more.pop("train", None)),
        clusterer=FakeClusterer({0: fresh([0] * clients)}, reports=True),
        representation=representation,
        reference=reference,
        rounds=len(histograms),
        **more,
    )


def frozen(clients: int, cost: float = 1.0) -> Reference:
    """A reference model of three parameters, all 2."""
    executor = FakeExecutor([0.0] * clients, num_parameters=3)
    return Reference(executor, np.full(3, 2, dtype=np.float32), ints(1, 1), cost)


def control_bytes(played: Population) -> list[float]:
    """The bytes of control traffic of each round."""
    return np.diff([0.0, *(record.control_bytes for record in played.play().records)]).tolist()


def test_a_label_histogram_costs_four_bytes_for_each_label_of_each_client_that_drifted():
    played = population(Label(NOTHING), [[FIRST, FIRST, FIRST], [FIRST, SECOND, FIRST]])
    assert control_bytes(played) == [3 * 8, 8]


def test_an_embedding_costs_its_numbers_and_once_the_reference_model():
    """Two numbers up from each client; three parameters down at registration."""
    histograms = [[FIRST, FIRST], [FIRST, SECOND]]
    played = population(Embedding(ReferenceSettings()), histograms, frozen(2))
    played.detectors = {"always": Always(NOTHING)}
    assert control_bytes(played) == [2 * (8 + 12), 8]


def test_the_distance_of_clients_is_measured_for_nothing_in_its_own_representation():
    """Embeddings of the fake executor are (samples, 2): with 1, 2 and 4 of them, squares are 1, 4 and 9."""
    counts = {"train": [1, 2, 4]}
    by_label = population(Label(NOTHING), [[FIRST, FIRST, SECOND]], **counts).play()
    measured = population(
        Label(NOTHING),
        [[FIRST, FIRST, SECOND]],
        client_distance=Embedding(ReferenceSettings()),
        measuring=frozen(3),
        **counts,
    ).play()
    [shares], [record] = by_label.records, measured.records
    assert shares.mean_client_distance == pytest.approx((1 + 1 + 2) / 3)
    assert record.mean_client_distance == pytest.approx((10 / 2 + 5 / 2 + 13 / 2) / 3)
    assert record.unclustered_distance == record.mean_client_distance
    assert (record.control_bytes, record.closed_s) == (shares.control_bytes, shares.closed_s)


def test_a_gradient_at_the_frozen_model_costs_as_many_bytes_as_that_model():
    played = population(Gradient(GradientSettings()), [[FIRST, FIRST], [FIRST, SECOND]], frozen(2))
    played.detectors = {"always": Always(NOTHING)}
    assert control_bytes(played) == [2 * (12 + 12), 12]


def test_a_sketched_gradient_costs_as_many_bytes_as_the_sketch():
    sketched = Gradient(GradientSettings(sketch=2))
    played = population(sketched, [[FIRST, FIRST], [FIRST, SECOND]], frozen(2))
    played.detectors = {"always": Always(NOTHING)}
    assert control_bytes(played) == [2 * (8 + 12), 8]


def test_at_the_global_model_all_clients_report_anew_and_download_it_each_time():
    histograms = [[FIRST, FIRST, FIRST], [FIRST, SECOND, FIRST], [FIRST, SECOND, FIRST]]
    played = population(Gradient(GradientSettings(at="global")), histograms)
    assert control_bytes(played) == [3 * (4 + 4), 3 * (4 + 4), 0]
    models = [parameters.tolist() for parameters, _ in played.executor.measured]
    assert models[0] == [0.0]


def test_at_the_global_model_offline_clients_do_not_report_anew():
    histograms = [[FIRST, FIRST, FIRST], [FIRST, SECOND, FIRST]]
    played = population(
        Gradient(GradientSettings(at="global")), histograms, availability=FakeAvailability({2: [(0.0, 5.0)]})
    )
    assert control_bytes(played)[1] == 2 * (4 + 4)


def test_at_the_global_model_clients_that_came_online_report_with_all_others_at_the_next_opening():
    """Client 2 drifts in round 1 while offline, and comes online before round 2, in which nobody drifts."""
    played = population(
        Gradient(GradientSettings(at="global")),
        [[FIRST, FIRST, FIRST], [FIRST, FIRST, SECOND], [FIRST, FIRST, SECOND]],
        availability=FakeAvailability({2: [(0.0, 5.0), (12.0, 1e9)]}),
        hear="check_in",
    )
    assert [record.reported for record in played.play().records] == [3, 0, 3]
    assert [view.drifted.tolist() for view in played.clusterer.views[1:]] == [[], [2]]
    assert len(played.executor.measured) == 2  # all three together, at the same model


def test_dispatch_waits_until_the_slowest_report_is_measured_and_sent():
    """A second per sample and per byte: a forward pass takes a third of it, at twice the model's cost."""
    played = population(
        Embedding(ReferenceSettings()), [[FIRST, FIRST], [SECOND, FIRST]], frozen(2, 2.0), train=[6, 3]
    )
    _, second = played.play().records
    assert second.dispatched_s - second.opened_s == pytest.approx(6 * 2 / 3)
    played = population(
        Gradient(GradientSettings()), [[FIRST, FIRST], [SECOND, FIRST]], frozen(2), train=[6, 3]
    )
    played.detectors = {"always": Always(NOTHING)}
    _, second = played.play().records
    assert second.dispatched_s - second.opened_s == pytest.approx(6 + 12)


def test_a_client_that_does_not_report_still_spends_the_time_to_measure():
    played = population(
        Embedding(ReferenceSettings()), [[FIRST, FIRST], [SECOND, FIRST]], frozen(2), train=[6, 3]
    )
    records = played.play().records  # the embedding counts samples, and so has not changed
    assert records[1].reported == 0
    assert records[1].dispatched_s - records[1].opened_s == pytest.approx(2)


class Followers(FakeClusterer):
    """A scripted clusterer that hears the participants of the last round alone."""

    follows_participants = True


def test_at_the_global_model_only_clients_that_are_followed_report_anew():
    """Two of three clients take part in each round; all have new data in round 1."""
    histograms = [[FIRST] * 3, [SECOND] * 3]
    played = population(Gradient(GradientSettings(at="global")), histograms, participants=2)
    played.clusterer = Followers({0: fresh([0] * 3)}, reports=True)
    first, second = played.play().records
    assert len(first.completed) == 2
    assert second.reported == 2
    assert played.clusterer.views[-1].drifted.tolist() == first.completed


class Faulty(Representation):
    """The share of the first label; NaN for client 1 in the measurements `faulty`, counted from 0."""

    Settings = type(NOTHING)
    distance = "l1"
    state_fields = ("measured",)

    def __init__(self, faulty: Collection[int], at_present_models: bool = False) -> None:
        super().__init__(NOTHING)
        self.faulty = faulty
        self.at_present = at_present_models
        self.measured = 0

    @property
    def at_present_models(self):
        return self.at_present

    def size(self, data):
        return 1

    def measure(self, clients, data):
        shares = data.label_histograms(clients)[:, :1]
        faulty = self.measured in self.faulty
        self.measured += 1
        return np.where((clients[:, None] == 1) & faulty, np.nan, shares)


@pytest.mark.parametrize("at_present_models", [False, True])
def test_a_report_that_is_not_finite_is_charged_and_counted_but_not_used(at_present_models):
    played = population(Faulty([1], at_present_models), [[FIRST, FIRST], [SECOND, SECOND]])
    first, second = played.play().records
    assert (first.reported, first.nonfinite_reports) == (2, 0)
    assert (second.reported, second.nonfinite_reports) == (2, 1)
    assert second.control_bytes == 4 * 4
    view = played.clusterer.views[-1]
    assert view.reports.tolist() == [[0.0], [1.0]]
    assert view.drifted.tolist() == [0]


def test_at_present_models_a_client_has_drifted_once_its_report_is_finite():
    """Client 1 has new data in round 1, reported in round 2, in which client 0 has new data."""
    played = population(
        Faulty([1], at_present_models=True), [[FIRST, FIRST], [FIRST, SECOND], [SECOND, SECOND]]
    )
    records = played.play().records
    assert [record.nonfinite_reports for record in records] == [0, 1, 0]
    assert [view.drifted.tolist() for view in played.clusterer.views[1:]] == [[], [0, 1]]


def test_a_registration_that_is_not_finite_ends_the_run():
    with pytest.raises(RunError, match=r"round 0: the report of client 1 is not finite \(1 of 2 are not\)"):
        population(Faulty([0]), [[FIRST, FIRST]]).play()
