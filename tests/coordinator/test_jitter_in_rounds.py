"""The effects of jitter on the rounds of a coordinator.

With the default fleet a visit takes 4 s down, 1 s of training and 4 s up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coordinator.adaptations.tuned import Tuned, TunedSettings
from coordinator.federation.faults import Faults
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.sync import SyncSettings
from coordinator.population import FaultSettings
from coordinator.selectors.oort import Oort, OortSettings
from coordinator.view import View
from emulator.arrays import Floats
from emulator.latency import NO_JITTER, Jitter
from emulator.messages import Work
from emulator.seeding import RandomStreams
from tests.fakes import FakeClusterer, FakeExecutor, Played, Population, ints

CLIENTS = 6
SPREAD = Jitter(compute=0.5, network=0.3, model=0.4)


def played(**settings: Any) -> Played:
    changed = {"rounds": 3, "jitter": SPREAD, **settings}
    return Population(FakeExecutor([1.0] * CLIENTS), log_visits=True, **changed).play()


def seconds(dispatch: int) -> Floats:
    """(CLIENTS, 3) the phases of visits to all clients, by hand."""
    streams = RandomStreams(0)
    compute, network = SPREAD.visit_factors(streams, dispatch, np.arange(CLIENTS))
    device = SPREAD.device_factors(streams, CLIENTS, "fake")
    assert device is not None
    return np.stack([4 * network, compute * device, 4 * network], axis=1)


def test_phases_are_those_of_the_profile_times_the_factors_of_visit_and_device() -> None:
    run = played()
    for record, visits in zip(run.records, run.visits, strict=True):
        phases = np.stack([visits.download_s, visits.compute_s, visits.upload_s], axis=1)
        np.testing.assert_allclose(phases, seconds(record.round), rtol=1e-14)
        assert record.closed_s == pytest.approx(record.opened_s + phases.sum(axis=1).max(), rel=1e-14)
    assert len({visits.download_s[0] for visits in run.visits}) == 3


def test_a_visit_of_a_client_has_the_same_factors_under_two_selectors() -> None:
    """Under sync a dispatch is a round."""
    by_random, by_oort = (
        {
            (visits.round, client): phases
            for visits in run.visits
            for client, *phases in zip(visits.client, visits.download_s, visits.compute_s, strict=True)
        }
        for run in (
            played(participants=3, rounds=8),
            played(participants=3, rounds=8, selector=Oort(OortSettings())),
        )
    )
    both = by_random.keys() & by_oort.keys()
    assert by_random.keys() != by_oort.keys()
    assert len(both) > 5
    assert all(by_random[visit] == by_oort[visit] for visit in both)


def test_the_coordinator_expects_the_profile() -> None:
    expected = []

    class Expecting(FakeClusterer):
        def on_participants(self, view: View) -> None:
            expected.append(view.expected_s(view.participants).tolist())

    played(clusterer=Expecting(), rounds=1)
    assert expected == [[9.0] * CLIENTS]


def test_a_crash_comes_at_its_share_of_the_visit_with_its_jitter() -> None:
    faults = FaultSettings(crash=0.5)
    (visits,) = played(faults=faults, rounds=1).visits
    drawn = Faults(faults, CLIENTS, RandomStreams(0)).visits(0, np.arange(CLIENTS), Work.of(CLIENTS))
    crashed = np.flatnonzero(visits.crashed)
    assert 0 < len(crashed) < CLIENTS
    expected_s = (drawn.crashes_at * seconds(0).sum(axis=1))[crashed]
    np.testing.assert_allclose(visits.end_s[crashed], expected_s, rtol=1e-14)


def test_a_deadline_cuts_the_bytes_of_visits_that_jitter_made_longer() -> None:
    (record,) = played(pacing=SyncSettings(deadline_s=9.0), rounds=1).records
    download_s, compute_s, upload_s = seconds(0).T
    total_s = download_s + compute_s + upload_s
    assert record.completed == np.flatnonzero(total_s <= 9).tolist()
    assert 0 < len(record.completed) < CLIENTS
    up = np.where(total_s <= 9, 4.0, 4 * np.clip((9 - download_s - compute_s) / upload_s, 0, 1))
    assert record.upload_bytes == pytest.approx(up.sum())


def test_buffered_visits_have_the_factors_of_their_dispatch() -> None:
    run = played(pacing=lambda cohort: Buffered(BufferedSettings(buffer=2), cohort))
    for visits in run.visits:
        assert visits.dispatch is not None
        for client, dispatch, compute_s in zip(visits.client, visits.dispatch, visits.compute_s, strict=True):
            assert compute_s == pytest.approx(seconds(int(dispatch))[client, 1], rel=1e-14)


def test_requests_and_adaptations_have_the_factor_of_the_device_and_no_jitter_of_their_own() -> None:
    """A forward pass of one sample takes a third of a second, and a client tunes its copy for one."""

    class Scoring(FakeClusterer):
        def on_participants(self, view: View) -> None:
            view.score(view.participants, ints(0), "held")

    def seconds_of(jitter: Jitter) -> tuple[Floats, float]:
        run = played(clusterer=Scoring(), adaptation=Tuned(TunedSettings()), rounds=1, jitter=jitter)
        [visits], [record] = run.visits, run.records
        assert record.adaptation_s is not None
        return visits.requests_s, record.adaptation_s

    (without, plain_s), (given, adaptation_s) = seconds_of(NO_JITTER), seconds_of(SPREAD)
    device = SPREAD.device_factors(RandomStreams(0), CLIENTS, "fake")
    assert device is not None
    np.testing.assert_allclose(given - without, (device - 1) / 3, rtol=1e-12)
    assert plain_s > 0
    assert adaptation_s == pytest.approx(plain_s * device.mean(), rel=1e-12)
