"""The workload own-code: what a selector of one's own costs beside the same one of ours.

Its calls are guarded, and the global generators are looked at where a round begins and ends. Training is
faked, as in E1, and seconds are those of the CPU.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, Target, figure
from benchmarks.measure import Measured, Say, interleaved
from benchmarks.population import Population
from benchmarks.rounds import RecordLog, RoundSizes, coordinated
from coordinator.candidates import Candidates
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors import Selector
from coordinator.selectors.random import Random
from coordinator.view import View
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.own.guards import guarded
from emulator.plugins import NoSettings
from executor.capability import cpu_capability
from experiments.own.parts import OwnPart
from experiments.own.watch import Watch

MOST_US = 60.0


class Own(Random):
    """The shipped selector as a user's: its one method is guarded."""

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        return super().select(candidates, wanted, view)


def measure_own_code(repeats: int, say: Say) -> list[Figure]:
    return own_code_figures(10_000, repeats, say)


def own_code_figures(clients: int, repeats: int, say: Say, sizes: RoundSizes | None = None) -> list[Figure]:
    """Microseconds of CPU that a round takes more with an own selector."""
    cpu_capability()  # with torch, whose generator is looked at, too
    sizes = sizes or RoundSizes(rounds=300)
    population = Population.of(clients)

    def played(selector: Selector, own: list[OwnPart]) -> float:
        pacing, watch = (
            Sync(SyncSettings(), CohortSize(sizes.participants, sizes.over_commit)),
            Watch(own, by_call=False),
        )
        coordinator = coordinated(population, sizes, pacing, population.availability, selector)
        with tempfile.TemporaryDirectory() as folder, RecordLog(Path(folder) / "log.jsonl", {}) as log, watch:
            emulation, start_s = Emulation(coordinator, watch.over(log)), time.process_time()
            for _ in watch.steps(emulation.steps()):
                pass
            return (time.process_time() - start_s) / (sizes.rounds + 2)

    contenders: dict[str, Measured] = {
        "own": lambda: played(guarded("selector", Own(NoSettings())), [OwnPart("selector", Own)]),
        "shipped": lambda: played(Random(NoSettings()), []),
    }
    samples = interleaved(contenders, repeats, say=say)
    return [
        figure(
            "own-code",
            f"CPU that a round takes more with a selector of one's own, {clients:,} devices",
            1e6 * (samples["own"] - samples["shipped"]),
            "us",
            better="lower",
            target=Target("value", MOST_US),
        )
    ]
