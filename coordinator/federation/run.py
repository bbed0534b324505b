"""What a run gives to its federation, and the collaborators of that share."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.federation.base import Base
from coordinator.federation.faults import Faults
from coordinator.federation.method import RoundSettings
from emulator.latency import LatencyModel
from emulator.ports import Availability, Executor, Meter, SampleStream, unmeasured
from emulator.seeding import RandomStreams


@dataclass(frozen=True)
class Run:
    """The ports of one run, its time model, random streams, faults, settings and base; none is replaced."""

    stream: SampleStream
    availability: Availability
    latency: LatencyModel
    executor: Executor
    streams: RandomStreams
    faults: Faults
    settings: RoundSettings
    meter: Meter = unmeasured
    base: Base = field(default_factory=Base)
