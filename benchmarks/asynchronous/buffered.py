"""Workload buffered: server steps of buffered pacing against rounds of sync, with faked training.

The real `Emulation`, coordinator and log play a million smartphones, always online and by day and night.
With 10,000 visits in flight, a server step absorbs 1, 10 or 1,000 updates, and as many slots are then filled.
It is compared with a synchronous round of as many visits, in the same process; the times are CPU seconds,
without the first steps, in which the first visits end, and the last, in which all clients are evaluated.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved
from benchmarks.population import Population
from benchmarks.rounds import RecordLog, RoundSizes, coordinated, short
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from emulator.emulation import Emulation
from emulator.ports import Availability
from emulator.storage.runlog import RoundRecord
from traces.availability.always import AlwaysOnline

IN_FLIGHT = 10_000
SIZES = {1: (12_000, 400), 10: (2_400, 300), 1_000: (200, 100)}
"""By size of the buffer: the steps that are played, and the last of them, which are measured."""

TARGETS = {1: 1.1, 10: 1.1, 1_000: 1.3}
"""By size of the buffer: the most that a step may take, as a multiple of a synchronous round of its size."""


@dataclass
class StepTimes:
    """An observer that records the CPU seconds at which each round was logged."""

    logged_s: list[float] = field(default_factory=list)

    def __call__(self, record: RoundRecord) -> None:
        self.logged_s.append(time.process_time())

    def step_s(self, measured: int) -> float:
        """Mean CPU seconds of the last `measured` rounds but one."""
        return (self.logged_s[-2] - self.logged_s[-2 - measured]) / measured


def measure_buffered(repeats: int, say: Say) -> list[Figure]:
    return buffered_figures(1_000_000, IN_FLIGHT, repeats, say)


def buffered_figures(
    clients: int,
    in_flight: int,
    repeats: int,
    say: Say,
    sizes: Mapping[int, tuple[int, int]] = SIZES,
) -> list[Figure]:
    """Completions per CPU second for each size of the buffer, against rounds of as many participants.

    By day and night there is no target: rounds of another length select at hours with others online.
    """
    say(f"drawing {clients:,} devices")
    population = Population.of(clients)
    found = []
    for name, availability in (
        ("always", AlwaysOnline()),
        ("diurnal", population.availability),
    ):
        for size, (steps, measured) in sizes.items():
            samples = interleaved(
                {
                    "ours": _contender(population, availability, _buffered(size, in_flight), steps, measured),
                    "sync": _contender(population, availability, _sync(size), measured + 20, measured),
                },
                repeats,
                warm_up=False,
                say=say,
            )
            rate = {contender: size / seconds for contender, seconds in samples.items()}
            found.append(
                figure(
                    f"buffered-{short(size)}-{name}",
                    f"completions with {in_flight:,} visits in flight of {clients:,} devices ({name}), a "
                    f"server step for every {size:,}",
                    rate["ours"],
                    "completions/s",
                    better="higher",
                    against=Reference(rate["sync"], f"synchronous rounds of {size:,} visits"),
                    target=Target("ratio", 1 / TARGETS[size], 2.0) if name == "always" else None,
                )
            )
    return found


def _buffered(size: int, in_flight: int) -> Pacing:
    settings = BufferedSettings(buffer=size, concurrency=in_flight, refill=size)
    return Buffered(settings, CohortSize(participants=size))


def _sync(size: int) -> Pacing:
    return Sync(SyncSettings(), CohortSize(participants=size))


def _contender(
    population: Population, availability: Availability, pacing: Pacing, rounds: int, measured: int
) -> Measured:
    def step_s() -> float:
        times = StepTimes()
        with tempfile.TemporaryDirectory() as folder, RecordLog(Path(folder) / "log.jsonl", {}) as log:
            coordinator = coordinated(population, RoundSizes(rounds=rounds), pacing, availability)
            Emulation(coordinator, log, (times,)).run()
        return times.step_s(measured)

    return step_s
