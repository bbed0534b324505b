"""A round over one Python object per client, as in emulators with a registry of clients.

Each client is checked for being online; the selected ones are then sorted by the end of their visit.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass

from benchmarks.population import BATCH_SIZE, BYTES_PER_VISIT, LOCAL_STEPS, SEED, Population


@dataclass
class Device:
    """Online intervals of the clients that share it: sorted starts and ends, repeated every `period_s`."""

    starts_s: list[float]
    ends_s: list[float]
    period_s: float


@dataclass
class Client:
    """One client of the registry."""

    id: int
    seconds_per_sample: float
    download_bytes_per_s: float
    upload_bytes_per_s: float
    latency_s: float
    device: Device

    def is_online(self, now_s: float) -> bool:
        device = self.device
        if not device.starts_s:
            return False
        local_s = now_s % device.period_s
        present = bisect_right(device.starts_s, local_s) - 1
        if present < 0:  # the last interval may extend past the end of the period
            return local_s < device.ends_s[-1] - device.period_s
        return local_s < device.ends_s[present]

    def visit_s(self) -> float:
        down_s = self.latency_s + BYTES_PER_VISIT / self.download_bytes_per_s
        up_s = self.latency_s + BYTES_PER_VISIT / self.upload_bytes_per_s
        return down_s + LOCAL_STEPS * BATCH_SIZE * self.seconds_per_sample + up_s


class ScannedRounds:
    """Successive rounds. They have no drop-outs, which makes this reference faster than it would be."""

    def __init__(self, population: Population, participants: int, wanted: int) -> None:
        self.clients = registry(population)
        self.participants = participants
        self.wanted = wanted
        self.now_s = 0.0
        self._random = random.Random(SEED)

    def play_round(self) -> list[int]:
        """Play a round; returns the ids of the clients whose visits complete, in order of return."""
        online = [client for client in self.clients if client.is_online(self.now_s)]
        chosen = self._random.sample(online, self.wanted)
        back = sorted((self.now_s + client.visit_s(), client.id) for client in chosen)
        completed = back[: self.participants]
        self.now_s = completed[-1][0]
        return [client for _, client in completed]


def registry(population: Population) -> list[Client]:
    """The clients of `population`, one object per client."""
    intervals, fleet = population.intervals, population.fleet
    offsets = intervals.offsets.tolist()
    starts_s, ends_s = intervals.start_s.tolist(), intervals.end_s.tolist()
    devices = [
        Device(starts_s[first:last], ends_s[first:last], period_s)
        for first, last, period_s in zip(offsets[:-1], offsets[1:], intervals.period_s.tolist(), strict=True)
    ]
    columns = (
        fleet.seconds_per_sample,
        fleet.download_bytes_per_s,
        fleet.upload_bytes_per_s,
        fleet.latency_s,
        population.availability.device_of,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Client(client, seconds, down, up, latency, devices[device])
        for client, (seconds, down, up, latency, device) in enumerate(rows)
    ]
