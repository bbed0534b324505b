"""The effects of faults on the rounds of a coordinator.

With the default fleet a visit takes 4 s down, 1 s of training and 4 s up.
"""

import numpy as np
import pytest

from coordinator.aggregators.median import Median
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.federation.faults import Faults
from coordinator.pacing.sync import SyncSettings
from coordinator.population import FaultSettings
from emulator.emulation import Emulation
from emulator.messages import Work
from emulator.seeding import RandomStreams
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import (
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    MemoryLog,
    Population,
    a_fleet,
    fresh,
    one_hot,
)

INF = float("inf")


def population(num_clients: int = 4, **settings) -> Population:
    faults = FaultSettings(**settings.pop("faults"))
    return Population(FakeExecutor([1.0] * num_clients), faults=faults, **settings)


def crash_s(number: int, clients: int, crash: float, start_s: float = 0.0) -> list[float]:
    faults = Faults(FaultSettings(crash=crash), clients, RandomStreams(0))
    visits = faults.visits(number, np.arange(clients), Work.of(clients))
    return visits.crash_s(start_s, np.full(clients, 9.0)).tolist()


# -- crashes --------------------------------------------------------------------------------------------


def test_a_client_that_crashes_is_dropped_at_once_and_charged_for_the_bytes_it_had_moved():
    record = population(faults={"crash": 0.5}).play().records[0]
    instants = crash_s(0, 4, 0.5)
    crashed = [client for client, at_s in enumerate(instants) if at_s < INF]
    assert 0 < len(crashed) < 4
    assert record.crashed == record.dropped == crashed
    assert record.completed == [client for client in range(4) if client not in crashed]
    down = sum(min(at_s, 4) for at_s in instants)
    up = sum(min(max(at_s - 5, 0), 4) for at_s in instants)
    assert record.download_bytes == pytest.approx(down)
    assert record.upload_bytes == pytest.approx(up)


def test_a_round_in_which_all_crash_is_over_with_the_last_of_them_and_changes_no_model():
    records = population(2, faults={"crash": 0.7}, rounds=20).play().records
    lost = next(record for record in records if len(record.crashed) == 2)
    assert lost.closed_s == pytest.approx(max(crash_s(lost.round, 2, 0.7, lost.dispatched_s)))
    assert lost.train_loss is None


def test_when_every_visit_crashes_nothing_is_learnt():
    played = population(faults={"crash": 1}, rounds=2).play()
    assert [record.crashed for record in played.records] == [record.participants for record in played.records]
    assert [record.train_loss for record in played.records] == [None, None]


def test_a_client_that_goes_offline_first_has_not_crashed():
    instants = crash_s(0, 4, 1.0)
    away_s = min(instants) / 2
    availability = FakeAvailability({0: [(-INF, away_s)]})
    record = population(faults={"crash": 0.9}, availability=availability, rounds=3).play().records[0]
    assert 0 in record.dropped
    assert 0 not in record.crashed


def test_a_client_that_was_abandoned_before_its_crash_has_not_crashed():
    # Of ten clients that take 9 s, some crash in the first 4 s. All others are abandoned then, except for one
    # that is fast and does not crash.
    instants = crash_s(0, 10, 0.6)
    fast = instants.index(INF)
    bytes_per_s = [100.0 if client == fast else 1.0 for client in range(10)]
    record = (
        population(
            10,
            faults={"crash": 0.6},
            pacing=SyncSettings(deadline_s=4.0),
            fleet=a_fleet(10, 1.0, bytes_per_s, bytes_per_s),
        )
        .play()
        .records[0]
    )
    assert record.completed == [fast]
    early = [client for client in range(10) if instants[client] < 4]
    assert record.crashed == early
    assert 0 < len(early) < sum(at_s < INF for at_s in instants)
    assert record.abandoned == 9 - len(early)


def test_a_client_that_crashed_can_be_chosen_again():
    records = population(1, faults={"crash": 0.5}, rounds=8).play().records
    outcomes = [(record.crashed, record.completed) for record in records]
    assert ([0], []) in outcomes
    assert ([], [0]) in outcomes


def test_arms_of_a_seed_share_their_crashes():
    mean = population(6, faults={"crash": 0.4}, rounds=5).play().records
    median = population(6, faults={"crash": 0.4}, rounds=5, aggregator=Median(NOTHING)).play().records
    another_seed = population(6, faults={"crash": 0.4}, rounds=5, seed=1).play().records
    assert [record.crashed for record in mean] == [record.crashed for record in median]
    assert [record.crashed for record in mean] != [record.crashed for record in another_seed]


# -- corrupted and false updates ------------------------------------------------------------------------


def test_updates_that_are_no_numbers_are_dropped_and_counted():
    played = population(8, faults={"corrupt": 0.4}, rounds=1).play()
    record = played.records[0]
    hit = played.executor.waves[0].tampering["nan"]
    assert record.rejected == np.flatnonzero(hit).tolist()
    assert 0 < len(record.rejected) < 8
    assert record.completed == list(range(8))
    assert played.models == [[0.5]]  # the mean of the updates that arrived intact


def test_byzantine_clients_send_the_opposite_of_what_they_learnt_and_a_median_does_not_mind():
    faulty = {"byzantine": [{"kind": "sign_flip", "share": 0.2, "scale": 4}]}
    assert population(10, faults=faulty).play().models == [[pytest.approx(0.5 * (8 - 4 * 2) / 10)]]
    assert population(10, faults=faulty, aggregator=Median(NOTHING)).play().models == [[0.5]]


# -- reports --------------------------------------------------------------------------------------------


def test_misreporters_report_a_permutation_of_their_histogram():
    clients, labels = 12, 5
    stream = FakeStream([one_hot(*[step] * clients, of=labels) for step in range(3)])
    clusterer = FakeClusterer({0: fresh([0] * clients)}, reports=True)
    faults = {"byzantine": [{"kind": "misreport", "share": 0.5}]}
    population(clients, faults=faults, stream=stream, clusterer=clusterer, rounds=3).play()
    misreporters = Faults(FaultSettings(**faults), clients, RandomStreams(0)).clients("misreport")
    honest = np.setdiff1d(np.arange(clients), misreporters)
    for step, view in enumerate(clusterer.views):
        reported = view.reports.argmax(axis=1)
        assert (reported[honest] == step).all()
        assert (np.sort(view.reports, axis=1) == np.sort(stream.histograms[step], axis=1)).all()
        assert (reported[misreporters] != step).any()
    # A permutation: a misreporter's reports on different labels differ.
    reported = np.stack([view.reports.argmax(axis=1) for view in clusterer.views], axis=1)
    assert all(len(set(row)) == 3 for row in reported.tolist())


# -- lossy links ----------------------------------------------------------------------------------------


def test_lost_packets_are_resent_and_cost_bytes_and_time_but_no_further_models():
    clients = 3
    faults = Faults(FaultSettings(loss=0.6), clients, RandomStreams(0))
    record = population(clients, faults={"loss": 0.6}, rounds=1).play().records[0]
    sent = faults.sent(Work.of(clients, download_bytes=4, upload_bytes=4), np.arange(clients), 0, 0)
    assert sent.upload_bytes.sum() + sent.download_bytes.sum() > 4 * 2 * clients
    assert record.download_bytes == sent.download_bytes.sum()
    assert record.upload_bytes == sent.upload_bytes.sum()
    assert record.closed_s == (sent.download_bytes + 1 + sent.upload_bytes).max()
    assert record.models_sent == 2 * clients


def work(clients: int):
    from emulator.messages import Work

    return Work.of(clients, download_bytes=4, upload_bytes=4, trained_samples=1)


def test_reports_are_lost_too_each_time_anew():
    clients, labels = 40, 2
    stream = FakeStream([one_hot(*[step % 2] * clients, of=labels) for step in range(3)])
    clusterer = FakeClusterer({0: fresh([0] * clients)}, reports=True)
    records = (
        population(clients, faults={"loss": 0.5}, stream=stream, clusterer=clusterer, rounds=3).play().records
    )
    control = np.diff([0.0, *(record.control_bytes for record in records)]) / 8  # reports of 8 bytes
    assert (control > clients).all()
    assert len(set(control.tolist())) == 3
    delays = [record.dispatched_s - record.opened_s for record in records]
    assert delays[0] == 0
    assert all(delay > 8 for delay in delays[1:])


# -- resuming -------------------------------------------------------------------------------------------


def test_a_run_with_faults_that_is_resumed_from_any_step_is_the_same_run():
    turns = [one_hot(*[step % 2] * 6, of=2) for step in range(4)]
    tables = [{"kind": "misreport", "share": 0.3}, {"kind": "sign_flip", "share": 0.3}]
    faults = {"crash": 0.2, "corrupt": 0.2, "loss": 0.3, "byzantine": tables}

    def emulation(log: MemoryLog) -> Emulation:
        clusterer = Fielding(FieldingSettings(max_clusters=2))
        played = population(6, faults=faults, stream=FakeStream(turns), clusterer=clusterer, rounds=4)
        return Emulation(played.coordinator(), log)

    whole = MemoryLog()
    first = emulation(whole)
    states = [(len(whole.records), to_bytes(first.state())) for _ in first.steps()]
    assert len(states) > 8
    assert any(record.crashed for record in whole.records)
    for recorded, content in states:
        rest = MemoryLog(whole.records[:recorded])
        second = emulation(rest)
        second.restore(from_bytes(content))
        second.run()
        assert rest.records == whole.records
