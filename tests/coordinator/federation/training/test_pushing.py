"""Who is sent each new version of a model, in bytes alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from coordinator.federation.bank import ModelBank
from coordinator.federation.base import Base
from coordinator.federation.training.pushing import Pushing
from coordinator.pacing.base import Push
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import FixedSettings
from coordinator.pacing.sync import SyncSettings
from emulator.ledger import Ledger
from tests.fakes import (
    INF,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    Played,
    Population,
    a_fleet,
    fresh,
    ints,
)

CLIENTS, SLOTS, UPDATES, MODEL_BYTES = 20, 4, 60, 4


def played(push: str, *, clients: int = CLIENTS, rounds: int = UPDATES, **fields: Any) -> Played:
    """Updates one by one of clients of different speeds, four of whom train at once."""
    return Population(
        FakeExecutor([1.0] * clients),
        # No two visits ever end together.
        fleet=a_fleet(clients, [1.0 + math.sqrt(client + 1) / 20 for client in range(clients)], 16.0, 16.0),
        pacing=lambda cohort: Buffered(
            BufferedSettings.model_validate({"buffer": 1, "concurrency": SLOTS, "push": push}), cohort
        ),
        participants=1,
        rounds=rounds,
        log_visits=True,
        **fields,
    ).play()


def models_down(run: Played) -> list[float]:
    """The models sent down until the end of each round but the last, which abandons visits."""
    return [record.download_bytes / MODEL_BYTES for record in run.records[:-1]]


def test_without_it_a_model_goes_down_for_each_that_comes_up():
    assert models_down(played("none")) == list(range(1, UPDATES))


def test_active_sends_each_version_to_the_three_who_train_and_to_the_one_that_begins():
    run = played("active")
    assert models_down(run) == [4 * update for update in range(1, UPDATES)]
    assert [record.upload_bytes / MODEL_BYTES for record in run.records] == list(range(1, UPDATES + 1))


def test_online_sends_each_version_to_all_who_do_not_download_it_again():
    # But for the four who began with the first model, which nobody had been sent.
    run = played("online")
    began = [int((rows.dispatch == 0).sum()) for rows in run.visits[: UPDATES - 1]]
    assert sum(began) == SLOTS
    assert models_down(run) == (20 * np.arange(1, UPDATES) + np.cumsum(began)).tolist()


def test_no_instant_depends_on_it():
    closed_s = [record.closed_s for record in played("none").records]
    for push in ("active", "online"):
        assert [record.closed_s for record in played(push).records] == closed_s
    assert [record.models_sent for record in played("active").records[:-1]] == [
        5 * update for update in range(1, UPDATES)
    ]


def test_who_is_offline_is_sent_nothing_and_downloads_when_it_is_dispatched():
    """With two slots, clients 0 and 1 train first; client 2 is there from 8 s on, and fills a third slot."""
    coming = FakeAvailability({2: [(8.0, INF)]})
    run = played("online", clients=3, availability=coming, rounds=30)
    downloads = {
        (int(client), float(start_s)): float(down)
        for visits in run.visits
        for client, start_s, down in zip(
            *(visits.client, visits.dispatched_s, visits.download_bytes), strict=True
        )
    }
    # Who begins with the first model downloads it, and who comes later than the newest one.
    assert [visit for visit, down in downloads.items() if down > 0] == [(0, 0.0), (1, 0.0), (2, 8.0)]
    began = [
        sum(int(down > 0) for down in rows.download_bytes) for rows in run.visits[: len(run.records) - 1]
    ]
    sent = [2 if record.closed_s < 8.0 else 3 for record in run.records[:-1]]
    assert models_down(run) == (np.cumsum(sent) + np.cumsum(began)).tolist()


def test_clusters_are_sent_their_own_models_alone():
    """Six clients in a cluster of four slots' share, and four in the other."""
    two = FakeClusterer({0: fresh([0] * 6 + [1] * 4)})
    run = played("online", clients=10, clusterer=two, rounds=40)
    lanes = [int(rows.lane[rows.outcome == 1][0]) for rows in run.visits[: len(run.records) - 1]]
    sent = [6 if lane == 0 else 4 for lane in lanes]
    before = [float((rows.dispatch == 0).sum()) for rows in run.visits[: len(run.records) - 1]]
    assert models_down(run) == np.cumsum(np.add(sent, before)).tolist()


def a_push(push: Push, bank: ModelBank, ledger: Ledger) -> Pushing:
    """Models of four bytes, of which three are sent."""
    sizes = {"model_bytes": 3.0, "whole_bytes": 4.0}
    return Pushing(push, bank=bank, availability=FakeAvailability(), ledger=ledger, base=Base(), **sizes)


def test_of_a_visit_what_was_downloaded_for_requests_is_not_counted_as_sent_before():
    bank = ModelBank(1)
    bank.apply(fresh([0, 1]))
    pushing = Pushing(
        "online",
        bank=bank,
        availability=FakeAvailability(),
        ledger=Ledger(),
        base=Base(),
        model_bytes=3.0,
        whole_bytes=4.0,
    )
    both = np.array([[0, 1]])
    pushing.published(np.array([True, False]), both, ints(), 0.0)  # the first of two models, to client 0
    visits, zero = ints(0, 0), ints(0, 0)

    def share(*downloaded: bool) -> float:
        return float(pushing.held_shares(visits, zero, ints(0, 1), np.array(downloaded), 1)[0])

    assert [share(False, False), share(True, False), share(False, True), share(True, True)] == [0.5, 0, 1, 0]


def test_models_that_are_sent_in_part_count_as_that_part():
    bank, ledger = ModelBank(1), Ledger()
    bank.apply(fresh([0, 0]))
    pushing = a_push("active", bank, ledger)
    pushing.published(np.array([True]), np.zeros((2, 1), dtype=np.int64), ints(1), 0.0)
    assert (ledger.download_bytes, ledger.models_sent) == (3.0, 0.75)


@pytest.mark.parametrize(
    ("settings", "given"),
    [(FixedSettings, {"duration_s": 60, "push": "active"}), (SyncSettings, {"push": "active"})],
)
def test_rounds_have_none(settings: type[Any], given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown key 'push'; choices: "):
        settings.model_validate(given)
