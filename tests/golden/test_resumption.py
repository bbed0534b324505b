"""A run stored between any two of its steps and resumed equals the run that was never stopped."""

from pathlib import Path

import pytest

from coordinator.clusterers.feddrift_eager import FedDriftEager
from coordinator.detectors.stepd import Stepd
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.population import FaultSettings
from coordinator.schedules.adaptive_lr import AdaptiveLearningRate
from coordinator.schedules.on_drift import OnDrift
from coordinator.selectors.fewest_updates import FewestUpdates
from emulator.emulation import Emulation
from emulator.errors import DataFileError
from emulator.messages import SolverFacts, StateSpec
from emulator.storage.runlog import RunLog
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.golden.test_repeatability import a_population

HEADER = {"arm": "a", "seed": 5}


def eager():
    """A run with client requests, claims, and a learning rate that follows the models."""
    population = a_population()
    population.clusterer = FedDriftEager(FedDriftEager.Settings())
    population.memory = Claimed(ClaimedSettings())
    population.schedules = (AdaptiveLearningRate(AdaptiveLearningRate.Settings()),)
    return population


def remembering():
    """A run whose solver counts the tasks of each pair."""
    population = a_population()
    population.executor.solver = SolverFacts({"times": StateSpec("scalar")})
    return population


def buffered(**settings):
    """Visits go on as rounds close and clients are clustered anew; solvers remember, and clients crash."""
    population = remembering()
    population.pacing = lambda cohort: Buffered(BufferedSettings(**settings), cohort)
    population.rounds, population.faults = 5, FaultSettings(crash=0.1)
    return population


def buffered_by_seconds():
    """The same, until a certain instant."""
    population = buffered(buffer=3, refill=2, timeout_s=30.0, max_staleness=4, push="online")
    population.selector = FewestUpdates(FewestUpdates.Settings())
    population.detectors |= {"news": Stepd(Stepd.Settings(significance=0.4))}
    population.schedules = (OnDrift(OnDrift.Settings(number="learning_rate")),)
    population.rounds, population.seconds_per_round, population.evaluate_every_s = 4, 30.0, 45.0
    return population


POPULATIONS = {
    "lanes close on their own": a_population,
    "lanes close together": lambda: a_population("pooled"),
    "clients get requests": eager,
    "solvers remember": remembering,
    "visits go on": lambda: buffered(buffer=5),
    "visits go on until a certain instant": buffered_by_seconds,
}


def stored(emulation, log):
    return to_bytes({"emulation": emulation.state(), "log": log.state()})


@pytest.mark.slow
@pytest.mark.parametrize("make", POPULATIONS.values(), ids=POPULATIONS)
def test_a_run_stored_after_any_step_ends_with_the_same_log(make, tmp_path: Path):
    whole = tmp_path / "whole.jsonl"
    checkpoints = []
    with RunLog(whole, HEADER) as log:
        emulation = Emulation(make().coordinator(), log)
        checkpoints.append(stored(emulation, log))
        checkpoints.extend(stored(emulation, log) for _ in emulation.steps())
    assert len(checkpoints) > 40
    for checkpoint in checkpoints:
        # The log has the rounds after the checkpoint too, as after a kill.
        path = tmp_path / "again.jsonl"
        path.write_bytes(whole.read_bytes())
        state = from_bytes(checkpoint)
        with RunLog(path, HEADER, state["log"]) as log:
            assert path.stat().st_size == state["log"]["bytes"]
            emulation = Emulation(make().coordinator(), log)
            emulation.restore(state["emulation"])
            assert stored(emulation, log) == checkpoint
            emulation.run()
        assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("damage", ["shorter", "other", "another header"])
def test_a_log_that_is_not_what_was_written_is_not_resumed(damage, tmp_path: Path):
    path = tmp_path / "log.jsonl"
    with RunLog(path, HEADER) as log:
        emulation = Emulation(a_population().coordinator(), log)
        emulation.run()
        state = log.state()
    content = path.read_bytes()
    path.write_bytes(content[:-1] if damage == "shorter" else content.replace(b"0.1", b"0.2", 1))
    header = {**HEADER, "seed": 6} if damage == "another header" else HEADER
    with pytest.raises(DataFileError, match=f"damaged: its first {len(content)} bytes"):
        RunLog(path, header, state)
