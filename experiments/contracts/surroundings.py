"""What surrounds a federation must keep to: who is online, how data drift, which devices there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from device_profiles import DeviceProfile
from emulator.arrays import Floats
from emulator.ports import Availability
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.sameness import same
from traces.drift import Drift


@and_no_global_generator
def check_availability(availability: Availability, num_clients: int, times_s: Sequence[float]) -> None:
    """Answers are pure, row by row those of each client alone; the next change is strictly later, is one,
    and the first."""
    ids = np.arange(num_clients)
    queries = (availability.online, availability.next_offline_s, availability.next_online_s)
    told = [[query(ids, time_s) for query in queries] for time_s in times_s]
    for time_s, answers in reversed(list(zip(times_s, told, strict=True))):
        for query, answer in zip(queries, answers, strict=True):
            assert answer.shape == (num_clients,)
            assert same(query(ids[::-1], time_s)[::-1], answer), f"{query} depends on who was asked before"
            assert same(query(ids[:1], time_s), answer[:1])
            assert len(query(ids[:0], time_s)) == 0
        online, offline_s, online_s = answers
        assert (offline_s > time_s).all(), "next_offline_s must be strictly later"
        assert (online_s > time_s).all(), "next_online_s must be strictly later"
        change_s = np.where(online, offline_s, online_s)
        for client in np.flatnonzero(np.isfinite(change_s)).tolist():
            row, next_s = ids[client : client + 1], float(change_s[client])
            assert availability.online(row, next_s)[0] != online[client], "nothing changes at that instant"
            between = time_s + 0.5 * (next_s - time_s)
            assert availability.online(row, between)[0] == online[client], "it changed before"


@and_no_global_generator
def check_drift(make: Callable[[], Drift]) -> None:
    """Label shares, each of a client's windows summing to 1; equal generators give equal shares."""

    def shares() -> Floats:
        windows = make().shares(
            num_clients=30,
            num_windows=12,
            num_labels=10,
            first_step=-3,
            rounds_per_step=5,
            generator=np.random.default_rng(2),
        )
        return np.stack(list(windows), axis=1)  # kept whole, so none may be changed once it was yielded

    first = shares()
    assert first.shape == (30, 12, 10)
    assert (first >= 0).all()
    assert np.allclose(first.sum(axis=2), 1.0, rtol=0, atol=1e-9)
    assert same(first, shares()), "equal generators must give equal shares"


@and_no_global_generator
def check_device_profile(profile: DeviceProfile) -> None:
    """It says where it comes from, and draws a device for each client; equal generators draw equal fleets."""
    assert profile.name
    assert profile.source
    assert profile.reference_flops is None or profile.reference_flops > 0
    for num_clients in (1, 57):
        fleet = profile.draw(num_clients, np.random.default_rng(3))
        assert len(fleet) == num_clients
        assert same(fleet, profile.draw(num_clients, np.random.default_rng(3)))
