"""Contracts of availability, drift, partitions and device profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from device_profiles import DeviceProfile
from emulator.arrays import Floats
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from experiments.contracts.generators import and_no_global_generator
from experiments.sameness import left_alone, same
from traces.arrivals import SPLITS
from traces.draw import StreamSettings
from traces.drift import Drift, Population, PopulationContext
from traces.images import ImageSet
from traces.partitions import Partition, Samples
from traces.trace import Trace


@and_no_global_generator
def check_availability(availability: Availability, num_clients: int, times_s: Sequence[float]) -> None:
    """Check the three queries of availability at the given instants.

    * Each is a pure function of time and client: neither the order of queries nor the other clients matter.
    * The next change is strictly later; availability changes then, and (checked at the midpoint) not before.

    Args:
        availability: The availability of all clients.
        num_clients: The number of clients.
        times_s: The instants of the queries, in virtual seconds.

    Raises:
        AssertionError: A query breaks a rule.
    """
    ids = np.arange(num_clients)
    queries = (availability.online, availability.next_offline_s, availability.next_online_s)
    results = [[query(ids, time_s) for query in queries] for time_s in times_s]
    for time_s, at_time in reversed(list(zip(times_s, results, strict=True))):
        for query, of_clients in zip(queries, at_time, strict=True):
            name = query.__name__
            assert of_clients.shape == (num_clients,), (
                f"{name} of {num_clients} clients has shape {of_clients.shape}"
            )
            assert same(query(ids[::-1], time_s)[::-1], of_clients), f"{name} depends on earlier queries"
            assert same(query(ids[:1], time_s), of_clients[:1]), f"{name} depends on the other clients"
            assert len(query(ids[:0], time_s)) == 0, f"{name} of no clients is not empty"
        online, offline_s, online_s = at_time
        assert (offline_s > time_s).all(), "next_offline_s must be strictly later"
        assert (online_s > time_s).all(), "next_online_s must be strictly later"
        change_s = np.where(online, offline_s, online_s)
        for client in np.flatnonzero(np.isfinite(change_s)).tolist():
            row, next_s = ids[client : client + 1], float(change_s[client])
            assert availability.online(row, next_s)[0] != online[client], "nothing changes at that instant"
            between = time_s + 0.5 * (next_s - time_s)
            assert availability.online(row, between)[0] == online[client], "it changes before that instant"


@and_no_global_generator
def check_drift(make: Callable[[], Population]) -> None:
    """Check a drift, or another population, on 30 clients and 10 labels.

    * A drift yields for each of 12 windows an array of label shares of shape (num_clients, num_labels).
    * Shares are not negative and sum to 1; an array is not changed after it was yielded.
    * Equal generators give equal shares.
    * What any population draws for a run of 3 data steps arrives by the last of them; samples have the labels
      of their images, in the same split; every client has some of both splits at step 0.
    * Equal streams give equal samples; drawn with their onsets, they are the same, and known onsets are of
      these clients, up to the last data step.

    Args:
        make: Makes a fresh drift.

    Raises:
        AssertionError: The drift breaks a rule.
        InputError: No client has samples of a split at step 0.
    """
    if isinstance(make(), Drift):
        _check_shares(cast(Callable[[], Drift], make))
    labels = np.repeat(np.arange(10), 6)
    images = ImageSet(
        np.zeros((60, 1), np.uint8), 1.0, labels, 10, train=np.arange(0, 60, 2), test=np.arange(1, 60, 2)
    )
    settings = StreamSettings(rounds_per_step=5, retain_rounds=10)
    context = PopulationContext(settings, 30, num_steps=3, static=False, streams=RandomStreams(2))
    trace = Trace(
        images,
        make().draw(images, context),
        retain_steps=settings.retain_steps,
        rounds_per_step=settings.rounds_per_step,
        noise=0.0,
        generator=np.random.default_rng(0),
    )
    for split in SPLITS:
        assert trace.holding(np.arange(30), split, 0).all(), f"a client has no {split} sample at step 0"
    arrivals = trace.columns()
    assert arrivals.arrival.max() <= context.last_step, "samples arrive after the last data step"
    assert (labels[arrivals.image] == arrivals.label).all(), "a label is not its image's"
    assert (arrivals.image % 2 == arrivals.split).all(), "a sample has an image of the other split"
    again, onsets = make().draw_with_onsets(images, context)
    assert same(again.arrivals().image, arrivals.image), "equal streams must give equal samples"
    if onsets is not None and len(onsets):
        assert onsets.step.max() <= context.last_step_of_run, "an onset is after the last data step"
        assert onsets.client.max() < context.num_clients, "an onset is of a client that there is not"


def _check_shares(make: Callable[[], Drift]) -> None:
    def shares() -> Floats:
        windows = make().shares(
            num_clients=30,
            num_windows=12,
            num_labels=10,
            first_step=-3,
            rounds_per_step=5,
            generator=np.random.default_rng(2),
        )
        return np.stack(list(windows), axis=1)  # the list notices an array that changes after it was yielded

    first = shares()
    assert first.shape == (30, 12, 10), (
        f"12 windows of 30 clients and 10 labels are of shape {first.shape}, not (30, 12, 10)"
    )
    assert (first >= 0).all(), "a label share is below 0, or NaN"
    sums = first.sum(axis=2)
    assert np.allclose(sums, 1.0, rtol=0, atol=1e-9), (
        f"the label shares of a client sum to 1, not to {sums.ravel()[np.abs(sums - 1).argmax()]:g}"
    )
    assert same(first, shares()), "equal generators must give equal shares"


@and_no_global_generator
def check_partition(
    make: Callable[[], Partition], samples: Samples | None = None, num_clients: int = 20
) -> None:
    """Check a partition on 600 samples of 10 labels and 20 clients, or on others.

    * Each sample goes to one client, an int64 from 0 to the number of clients - 1, and each client has some.
    * It does not write to the samples.
    * Equal generators give equal partitions, also from a partition that has divided before.

    Args:
        make: Makes a fresh partition.
        samples: The samples to divide; None: 600, without columns.
        num_clients: The number of clients.

    Raises:
        AssertionError: The partition breaks a rule.
        ConfigurationError: The samples do not fit the partition, or a client has no samples.
    """
    if samples is None:
        samples = Samples(np.random.default_rng(1).permutation(np.repeat(np.arange(10), 60)))
    first, used = make(), make()
    with left_alone(samples):
        clients = first.assign(samples, num_clients, np.random.default_rng(2))
        used.assign(samples, num_clients, np.random.default_rng(3))
    assert clients.shape == (len(samples),), f"clients have shape {clients.shape}, not ({len(samples)},)"
    assert clients.dtype == np.int64, f"clients are {clients.dtype}, not int64"
    assert clients.min() >= 0, f"client {clients.min()}: must be at least 0"
    assert clients.max() < num_clients, f"client {clients.max()}: must be below {num_clients}"
    again = used.divide(samples, num_clients, np.random.default_rng(2))  # which refuses clients without any
    assert same(again, clients), "equal generators must give equal partitions"


@and_no_global_generator
def check_device_profile(profile: DeviceProfile) -> None:
    """Check a device profile: its name and source, and the fleets that it draws.

    It draws a device for each client; equal generators draw equal fleets. `reference_flops` is None or above
    0.

    Args:
        profile: The device profile.

    Raises:
        AssertionError: The profile breaks a rule.
    """
    assert profile.name, "the profile has no name"
    assert profile.source, f"the profile {profile.name!r} states no source of its numbers"
    flops = profile.reference_flops
    assert flops is None or flops > 0, f"reference_flops = {flops}: must be above 0, or None"
    for num_clients in (1, 57):
        fleet = profile.draw(num_clients, np.random.default_rng(3))
        assert len(fleet) == num_clients, f"a fleet of {num_clients} clients has {len(fleet)}"
        again = profile.draw(num_clients, np.random.default_rng(3))
        assert same(fleet, again), "equal generators must draw equal fleets"
