"""Workloads E1 and oort: emulated rounds of the real `Emulation` and coordinator, with faked training.

The clients are smartphones with diurnal availability; 130 online clients are selected, and the first 100 that
return complete. A round is everything between two lines of the log: selection, visits, drop-outs, ledger,
record. The first round, in which all clients register, and the last, in which all are evaluated, do not
count. E1 selects uniformly; oort measures the selection of Oort, which scores all clients online.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, collector_frozen, interleaved, often
from benchmarks.population import (
    BATCH_SIZE,
    LOCAL_STEPS,
    SAMPLES,
    SEED,
    InstantExecutor,
    Population,
    StillStream,
)
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.candidates import Candidates
from coordinator.clusterers.single import Single
from coordinator.coordinator import Coordinator
from coordinator.federation import Federation
from coordinator.federation.method import Parts, RoundSettings
from coordinator.memories.held import Held, HeldSettings
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors import Selector
from coordinator.selectors.oort import Oort
from coordinator.selectors.random import Random
from coordinator.selectors.utility import OortSettings
from coordinator.view import View
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.messages import EndedVisits, TaskMetric, Updates, VisitRows
from emulator.plugins import NoSettings
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord, RunLog
from experiments.stopwatch import Stopwatch

SIMPY = "SimPy's bare processes and events on the same arrays"
OBJECTS = "one Python object per client, all scanned each round"


@dataclass(frozen=True)
class RoundSizes:
    """The visits that complete in a round, the over-commitment, and the number of rounds in one repeat."""

    participants: int = 100
    over_commit: float = 1.3
    rounds: int = 100

    @property
    def wanted(self) -> int:
        return CohortSize(self.participants, self.over_commit).over_committed(self.participants)


class RecordLog(RunLog):
    """A log without visits, which these emulations do not record."""

    def append_visits(self, rows: VisitRows) -> None:
        raise AssertionError("round.log_visits is off")


@dataclass
class RoundTimes:
    """An observer that records when each round was logged, and keeps the records."""

    stopwatch: Stopwatch
    records: list[RoundRecord] = field(default_factory=list)
    logged: list[float] = field(default_factory=list)
    selected: list[float] = field(default_factory=list)  # seconds of selection, cumulative

    def __call__(self, record: RoundRecord) -> None:
        self.logged.append(time.perf_counter())
        self.selected.append(self.stopwatch.seconds.get("select_s", 0.0))
        self.records.append(record)

    @property
    def round_s(self) -> float:
        """Mean seconds of a round, without the first and the last one."""
        return (self.logged[-2] - self.logged[0]) / (len(self.logged) - 2)

    @property
    def selection_s(self) -> float:
        """Mean seconds of a round spent in the selector, over the same rounds."""
        return (self.selected[-2] - self.selected[0]) / (len(self.selected) - 2)


class TimedSelector(Selector):
    """A selector, with the seconds of its selections and feedback measured by `stopwatch`."""

    def __init__(self, selector: Selector, stopwatch: Stopwatch) -> None:
        super().__init__(selector.settings)
        self.selector = selector
        self.stopwatch = stopwatch

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return self.selector.needs

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        with self.stopwatch.measure("select_s"):
            return self.selector.select(candidates, wanted, view)

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        with self.stopwatch.measure("select_s"):
            self.selector.feedback(visits, updates)


def play(population: Population, sizes: RoundSizes, selector: Selector | None = None) -> RoundTimes:
    """Play `sizes.rounds` rounds plus two, with a log on disk, as in a real run; returns their times.

    Without a `selector`, participants are drawn uniformly.
    """
    stopwatch = Stopwatch()
    pacing = Sync(SyncSettings(), CohortSize(sizes.participants, sizes.over_commit))
    timed = TimedSelector(selector or Random(NoSettings()), stopwatch)
    coordinator = coordinated(population, sizes, pacing, population.availability, timed)
    times = RoundTimes(stopwatch)
    with tempfile.TemporaryDirectory() as folder, RecordLog(Path(folder) / "log.jsonl", {}) as log:
        Emulation(coordinator, log, (times,)).run()
    return times


def coordinated(
    population: Population,
    sizes: RoundSizes,
    pacing: Pacing,
    availability: Availability,
    selector: Selector | None = None,
) -> Coordinator:
    """A coordinator of `sizes.rounds` rounds plus two at that pace, of which the last is evaluated.

    Without a `selector`, participants are drawn uniformly.
    """
    federation = Federation(
        Parts(
            clusterer=Single(NoSettings()),
            detectors={},
            selector=selector or Random(NoSettings()),
            memory=Held(HeldSettings()),
            aggregator=FedAvg(FedAvgSettings()),
            pacing=pacing,
        ),
        RoundSettings(
            rounds=sizes.rounds + 2,
            local_steps=LOCAL_STEPS,
            batch_size=BATCH_SIZE,
            learning_rate=0.1,
            evaluate_every=sizes.rounds + 2,
        ),
        stream=StillStream(len(population)),
        availability=availability,
        latency=population.latency,
        executor=InstantExecutor(),
        streams=RandomStreams(SEED),
    )
    return Coordinator(federation, pacing)


def half_tried(population: Population) -> Oort:
    """An Oort that has tried every other client."""
    clients = len(population)
    oort, rng = Oort(OortSettings()), RandomStreams(SEED).generator("utilities")
    last_round = np.arange(clients) % 2
    known = {
        "_round": 1,
        "_visit_samples": LOCAL_STEPS * BATCH_SIZE,
        "_utility": np.where(last_round > 0, rng.lognormal(np.log(SAMPLES), 1.0, clients), SAMPLES),
        "_duration_s": population.visit_s(np.arange(clients)),
        "_last_round": last_round,
    }
    oort.restore({**oort.state(), **known})
    return oort


def measure_rounds(repeats: int, say: Say) -> list[Figure]:
    return round_figures(1_000_000, repeats, say)


def measure_fleet_sizes(repeats: int, say: Say) -> list[Figure]:
    return fleet_size_figures((10_000, 100_000, 1_000_000), repeats, say)


def measure_oort(repeats: int, say: Say) -> list[Figure]:
    return oort_figures(1_000_000, repeats, say)


def oort_figures(clients: int, repeats: int, say: Say, sizes: RoundSizes | None = None) -> list[Figure]:
    """Milliseconds of a round in selection and feedback of Oort, if half of the clients are tried."""
    sizes = sizes or RoundSizes(over_commit=1.0, rounds=10)
    say(f"drawing {clients:,} devices")
    population = Population.of(clients)

    def measured() -> float:
        return play(population, sizes, half_tried(population)).selection_s

    samples = interleaved({"ours": measured}, repeats, say=say)
    return [
        figure(
            "oort-selection",
            f"selection of {sizes.wanted} of {clients:,} devices by Oort, half of them tried",
            1000 * samples["ours"],
            "ms",
            better="lower",
            target=Target("value", 100.0),
        )
    ]


def round_figures(clients: int, repeats: int, say: Say, sizes: RoundSizes | None = None) -> list[Figure]:
    """Milliseconds of a round, against SimPy and against a scan of client objects."""
    # NOTE: imported here, since the fleet sizes are measured without SimPy, which the extra `bench` installs.
    from benchmarks.rivals.rounds_by_scan import ScannedRounds
    from benchmarks.rivals.rounds_by_simpy import SimpyRounds

    sizes = sizes or RoundSizes()
    say(f"drawing {clients:,} devices, and building one object for each")
    population = Population.of(clients)
    simpy = SimpyRounds(population, sizes.participants, sizes.wanted)
    scanned = ScannedRounds(population, sizes.participants, sizes.wanted)
    with collector_frozen():
        samples = interleaved(
            {
                "ours": lambda: play(population, sizes).round_s,
                "simpy": often(simpy.play_round, sizes.rounds),
                "scan": often(scanned.play_round, 1),
            },
            repeats,
            say=say,
        )
    about = f"one emulated round over {clients:,} devices"
    return [
        figure(
            "e1-round",
            about,
            1000 * samples["ours"],
            "ms",
            better="lower",
            against=Reference(1000 * samples["simpy"], SIMPY),
            target=Target("value", 2.0, 0.5),
        ),
        figure(
            "e1-round-against-objects",
            about,
            1000 * samples["ours"],
            "ms",
            better="lower",
            against=Reference(1000 * samples["scan"], OBJECTS),
        ),
    ]


def fleet_size_figures(
    fleets: Sequence[int], repeats: int, say: Say, sizes: RoundSizes | None = None
) -> list[Figure]:
    """Milliseconds of a round and of its selection, for each fleet size, against the smallest fleet.

    The `ratio` of a figure is the time for the smallest fleet, which must be the first of `fleets`, over the
    time for the figure's own fleet: 1 if the time does not depend on the size, less if it grows.
    """
    sizes = sizes or RoundSizes()
    say("drawing the devices")
    selection_s: dict[str, list[float]] = {str(clients): [] for clients in fleets}

    def contender(clients: int) -> Measured:
        population = Population.of(clients)

        def measured() -> float:
            times = play(population, sizes)
            selection_s[str(clients)].append(times.selection_s)
            return times.round_s

        return measured

    rounds = interleaved({str(clients): contender(clients) for clients in fleets}, repeats, say=say)
    # Without the sample of the warm-up.
    selections = {name: np.array(seconds[-repeats:]) for name, seconds in selection_s.items()}
    smallest = str(fleets[0])
    return [
        figure(
            f"e1-{curve}-{short(clients)}",
            f"{what} over {clients:,} devices",
            1000 * seconds[str(clients)],
            "ms",
            better="lower",
            against=Reference(1000 * seconds[smallest], f"the same over {fleets[0]:,} devices"),
            curve=curve,
            size=clients,
        )
        for curve, what, seconds in (
            ("round", "one emulated round", rounds),
            ("selection", "selection alone", selections),
        )
        for clients in fleets
    ]


def short(number: int) -> str:
    """`number` with its thousands or millions as a letter.

    >>> short(10_000), short(1_000_000), short(50)
    ('10k', '1m', '50')
    """
    for size, letter in ((1_000_000, "m"), (1_000, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{letter}"
    return str(number)
