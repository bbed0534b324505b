from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.client_requests import ClientRequests
from coordinator.federation.faults import no_faults
from coordinator.federation.method import RoundSettings
from coordinator.federation.run import Run
from coordinator.view import ScoreResponse
from emulator.arrays import Ints
from emulator.counts import LastBatch
from emulator.latency import DriftscaleLatency
from emulator.ledger import Ledger
from emulator.messages import SampleRanges, Work
from emulator.seeding import RandomStreams
from tests.fakes import FakeAvailability, FakeExecutor, FakeStream, a_fleet, ints


class Requesting:
    """Three clients that hold 3, 0 and 6 samples; those of client i are the table rows i, i + 3, ....

    Two models of one parameter, at 0 and at 1; a byte takes 1 s, a trained sample 3 s, a scored one 1 s.
    """

    def __init__(self, offline: Sequence[int] = (), last: LastBatch = "filled") -> None:
        self.ledger = Ledger()
        self.bank = ModelBank(1)
        models = np.array([[0.0], [1.0]], dtype=np.float32)
        self.bank.apply(Assignment.fresh(ints(0, 0, 0), 2, models))
        self.executor = FakeExecutor([0.0, 0.0, 1.0])
        run = Run(
            stream=FakeStream(np.ones((1, 3, 1))),
            availability=FakeAvailability({client: [] for client in offline}),
            latency=DriftscaleLatency(a_fleet(3, seconds_per_sample=3.0)),
            executor=self.executor,
            streams=RandomStreams(0),
            faults=no_faults(3, RandomStreams(0)),
            settings=RoundSettings(rounds=1, local_steps=5, batch_size=2, learning_rate=0.1, last=last),
        )
        self.requests = ClientRequests(run, self.bank, self.ledger)
        self.requests.open_moment(0.0)

    def arrived(self, clients: Ints) -> SampleRanges:
        rows = [np.arange(count) * 3 + client for client, count in enumerate((3, 0, 6))]
        parts = [rows[client] for client in clients.tolist()]
        offsets = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
        flat = np.concatenate([*parts, np.zeros(0, dtype=np.int64)])
        return SampleRanges(offsets, flat, flat + 1, np.ones(len(flat)))

    def score(self, models: Sequence[int] = (0, 1), limit: int | None = None) -> ScoreResponse:
        return self.requests.score(
            0, ints(0, 1, 2), ints(*models), self.arrived, frozenset({"correct"}), limit=limit
        )


def test_clients_with_samples_respond_and_those_offline_or_without_samples_are_missing() -> None:
    response = Requesting().score()
    assert response.clients.tolist() == [0, 2]
    assert response.scores.counts.tolist() == [3, 6]
    assert response.scores.accuracy().tolist() == [[1, 0], [0, 1]]
    assert Requesting(offline=[0]).score().clients.tolist() == [2]


def test_models_down_sums_up_and_a_forward_pass_are_charged() -> None:
    requesting = Requesting()
    requesting.score()
    # per client: 2 models x 4 bytes down; per model a sum and a count of 4 bytes each up
    assert requesting.ledger.control_bytes == 2 * (8 + 16)
    assert requesting.ledger.models_sent == 4
    assert requesting.requests.busy_s(ints(0, 1, 2)).tolist() == [8 + 3 * 2 + 16, 0, 8 + 6 * 2 + 16]
    assert requesting.requests.slowest_s == 36


@pytest.mark.parametrize(("last", "samples"), [("filled", [6, 6]), ("short", [5, 6])])
def test_a_training_request_is_charged_for_the_samples_of_its_batches(
    last: LastBatch, samples: list[int]
) -> None:
    """Three steps in batches of 2: of the 3 samples of client 0, a pass is a batch of 2 and one of 1."""
    requesting = Requesting(last=last)
    requesting.requests.train(0, 0, ints(0, 1, 2), np.zeros(1, dtype="f"), 3, requesting.arrived)
    assert requesting.requests.busy_s(ints(0, 2)).tolist() == [4 + 3 * trained + 4 for trained in samples]


def test_a_model_that_was_downloaded_this_round_is_not_sent_again() -> None:
    requesting = Requesting()
    requesting.score(models=[0])
    requesting.score(models=[0, 1])
    assert requesting.ledger.models_sent == 4
    assert requesting.requests.hold(ints(0, 1, 2), ints(1, 1, 1)).tolist() == [True, False, True]
    requesting.requests.close_round()
    requesting.score(models=[0])
    assert requesting.ledger.models_sent == 6


def test_a_new_version_of_a_model_is_sent_again() -> None:
    requesting = Requesting()
    requesting.score(models=[0])
    requesting.bank.publish(requesting.bank.parameters + 1, updated=np.array([True, False]))
    requesting.score(models=[0])
    assert requesting.ledger.models_sent == 4


def test_several_requests_of_one_moment_add_up_and_the_next_moment_starts_at_zero() -> None:
    requesting = Requesting()
    requesting.score(models=[0])
    requesting.score(models=[0])
    # the second time without a download: 3 forward samples and 8 bytes up
    assert requesting.requests.busy_s(ints(0)).tolist() == [(4 + 3 + 8) + (3 + 8)]
    requesting.requests.open_moment(100.0)
    assert requesting.requests.slowest_s == 0


def test_a_moment_waits_only_for_what_is_left_of_an_exchange_and_charges_all_of_it() -> None:
    requesting = Requesting()
    work = Work.of(3, upload_bytes=10.0)  # 10 s each
    requesting.requests.charge(0, ints(0, 1, 2), work, head_start_s=np.array([4.0, 12.0, np.inf]))
    assert requesting.requests.busy_s(ints(0, 1, 2)).tolist() == [6, 0, 0]
    assert requesting.requests.slowest_s == 6
    assert requesting.ledger.control_bytes == 30


def test_a_limit_is_shared_in_proportion_and_drawn_by_the_seed() -> None:
    requesting = Requesting()
    assert requesting.score(limit=6).scores.counts.tolist() == [2, 4]
    drawn = requesting.executor.scored[0][1]
    again = Requesting()
    again.score(limit=6)
    assert drawn.first.tolist() == again.executor.scored[0][1].first.tolist()
    assert set(drawn.rows(0).tolist()) < {0, 3, 6}
    assert set(drawn.rows(1).tolist()) < {2, 5, 8, 11, 14, 17}


def test_a_client_that_the_limit_leaves_no_sample_gets_no_request() -> None:
    requesting = Requesting()
    response = requesting.score(limit=1)
    assert response.clients.tolist() == [2]
    assert requesting.ledger.models_sent == 2


def test_a_limit_above_what_there_is_changes_nothing() -> None:
    assert Requesting().score(limit=9).scores.counts.tolist() == [3, 6]
