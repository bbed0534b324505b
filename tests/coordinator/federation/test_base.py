"""Frozen parameters go to each client once. A model takes 4 bytes, its base 12, and a byte 1 s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.single import Single
from coordinator.federation.base import Base
from coordinator.federation.hearing.client_data import Reference
from coordinator.federation.training.pushing import Pushing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.sync import SyncSettings
from coordinator.representations.gradient import Gradient
from coordinator.view import View
from emulator.ledger import Ledger
from emulator.messages import SolverFacts
from tests.fakes import NOTHING, FakeAvailability, FakeClusterer, FakeExecutor, Population, ints


def frozen(clients: int = 2) -> FakeExecutor:
    executor = FakeExecutor([1.0] * clients)
    executor.solver = SolverFacts(base=3)
    return executor


def test_each_client_downloads_it_once_with_its_first_model() -> None:
    run = Population(frozen(), rounds=3).play()
    assert [record.download_bytes for record in run.records] == [2 * 16, 2 * 20, 2 * 24]
    assert [record.upload_bytes for record in run.records] == [8, 16, 24]
    assert [record.models_sent for record in run.records] == [4, 8, 12]  # it is no model
    assert [record.closed_s for record in run.records] == [16 + 1 + 4, 21 + 9, 30 + 9]


def test_who_is_selected_later_downloads_it_then() -> None:
    run = Population(frozen(4), rounds=2, participants=2).play()
    seen = {client for record in run.records for client in record.completed}
    assert run.records[-1].download_bytes == 4 * 4 + 12 * len(seen)


def test_what_did_not_arrive_is_sent_again() -> None:
    # Of client 1 half of the 16 bytes arrive, until it goes offline; it is back for the second round.
    away = FakeAvailability({1: [(0.0, 8.0), (20.0, 1e6)]})
    run = Population(frozen(), availability=away, rounds=2, pacing=SyncSettings(), log_visits=True).play()
    first, second = run.records
    assert (first.dropped, first.download_bytes) == ([1], 16 + 8)
    assert first.models_sent == 2 + 0.5
    assert second.download_bytes - first.download_bytes == 4 + 16
    assert [rows.payload_bytes.tolist() for rows in run.visits] == [[20, 8], [8, 20]]


def test_who_is_sent_out_again_before_the_loss_is_absorbed_downloads_it_again() -> None:
    # Client 1 is away at 8 s, with half of the 16 bytes, and back at 9 s: the first server step is at 30 s.
    run = Population(
        frozen(),
        availability=FakeAvailability({1: [(0.0, 8.0), (9.0, 1e6)]}),
        rounds=2,
        participants=2,
        pacing=lambda cohort: Buffered(BufferedSettings(buffer=2, concurrency=2), cohort),
        log_visits=True,
    ).play()
    first, second = run.visits
    assert first.client.tolist() == [0, 1, 1]
    assert first.download_bytes.tolist() == [16, 8, 16]
    assert first.download_s.tolist() == [16, 16, 16]
    assert second.download_bytes.tolist() == [4, 4]


class Scoring(Single):
    """Has client 1 score the model as the first round opens."""

    def on_data(self, view: View) -> Assignment | None:
        found = super().on_data(view)
        if view.round == 1:
            view.score(ints(1), ints(0), "train")
        return found


def test_a_request_sends_it_too() -> None:
    run = Population(frozen(3), rounds=2, participants=1, clusterer=Scoring(NOTHING)).play()
    trained = {client for record in run.records for client in record.completed}
    first_by_request = 1 not in run.records[0].completed
    assert run.records[-1].control_bytes == 4 + 8 + 12 * first_by_request
    others = trained - {1} if first_by_request else trained
    again = 1 in run.records[1].completed  # it holds the model of this round
    assert run.records[-1].download_bytes == 4 * (2 - again) + 12 * len(others)


@pytest.mark.parametrize(("of_arm", "registered", "visits"), [(True, 4 + 12, 4), (False, 4 + 12, 4 + 12)])
def test_a_reference_model_comes_with_it_and_only_another_one_has_its_own(
    of_arm: bool, registered: int, visits: int
) -> None:
    executor = frozen()
    reference = Reference(executor, np.ones(1, dtype=np.float32), ints(1), 1.0, of_arm)
    run = Population(
        executor,
        clusterer=FakeClusterer(reports=True),
        representation=Gradient(Gradient.Settings()),
        reference=reference,
    ).play()
    assert run.records[0].control_bytes == 2 * (registered + 4)
    assert run.records[0].download_bytes == 2 * visits


def test_a_pushed_model_brings_it_along() -> None:
    run = Population(frozen(), rounds=1)
    coordinator = run.coordinator()
    ledger, base, bank = Ledger(), Base(3, 3), coordinator.federation.bank
    bank.apply(Assignment.fresh(ints(0, 0, 0), 1, np.zeros(1, dtype=np.float32)))
    facts: Mapping[str, Any] = {
        "availability": FakeAvailability({2: []}),
        "model_bytes": 4.0,
        "whole_bytes": 4.0,
    }
    pushing = Pushing("online", bank=bank, ledger=ledger, base=base, **facts)
    for expected in (2 * 16, 2 * 20):
        pushing.published(np.array([True]), np.zeros((3, 1), dtype=np.int64), ints(), 0.0)
        assert ledger.download_bytes == expected
    assert ledger.models_sent == 4
    assert base.sent(ints(0, 1, 2)).tolist() == [0, 0, 12]


def test_it_is_stored_who_has_it() -> None:
    base, again = Base(3, 3), Base(3, 3)
    base.sent(ints(1))
    again.restore(base.state())
    assert again.sent(ints(0, 1, 2)).tolist() == [12, 0, 12]


def test_without_frozen_parameters_nothing_is_kept_and_nothing_charged() -> None:
    base = Base(3, 0)
    assert base.sent(ints(0, 1)).tolist() == [0, 0]
    base.lost(ints(0))
    assert base.state() == {"_has": pytest.approx([])}
