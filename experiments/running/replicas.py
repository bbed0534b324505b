"""Runs played by the ranks of one job: rank 0 leads, and the other ranks play each run that it announces.

Only rank 0 has the run directory: its lock, log, checkpoints and reports. The other ranks draw the world from
their own files, check that it is the same as rank 0's, and store nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from coordinator.federation.evaluation.uses import Use
from coordinator.federation.hearing.client_data import Reference
from emulator.errors import (
    CheckpointError,
    ConfigurationError,
    EmulatorError,
    ForeignFileError,
    ResumableError,
)
from emulator.messages import VisitRows
from emulator.own.code import naming_own_code
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree
from executor.executor import LocalExecutor
from executor.gloo import Job, ended_by_signals, join
from executor.ranks import Ranks
from executor.replicas import ReplicatedExecutor
from experiments.build import World, build_adaptation, build_emulation, build_executor, build_world
from experiments.config import Experiment, parse_experiment
from experiments.locating import Locate
from experiments.reference import build_measuring, build_reference
from experiments.running.stop import Stop
from experiments.running.together import OtherUse
from experiments.stopwatch import Stopwatch, own_spent


@contextmanager
def joined(job: Job, stop: Stop) -> Iterator[Ranks]:
    """Context with the ranks of `job`, entered when all have joined.

    Until then a signal ends the process. From then on `stop` only records a first request, and all ranks stop
    at the end of the same step.
    """
    with stop.between_steps():
        with ended_by_signals():
            ranks = join(job, job.store(), lambda: stop.stop_requested, own_spent)
        yield ranks


@contextmanager
def leading(ranks: Ranks) -> Iterator[None]:
    """Context in which rank 0 leads. At its end the other ranks end too, with its error if there is one."""
    with ranks.telling(ends=True):
        yield
        ranks.exchange({"end": True})


def replicated(reference: Reference | None, ranks: Ranks) -> Reference | None:
    """`reference`, with reports measured by all `ranks` together; None if there is none."""
    if reference is None:
        return None
    assert isinstance(reference.executor, LocalExecutor)
    return replace(reference, executor=ReplicatedExecutor(reference.executor, ranks))


def lead_to_draw(ranks: Ranks, experiment: Experiment, seed: int) -> None:
    """Tell the other ranks to draw the world of `seed`, as this one is about to do.

    Raises KeyboardInterrupt if a rank was asked to stop.
    """
    ranks.timeout_s = experiment.executor.worker_timeout_s
    ranks.exchange({"draw": experiment.resolved(), "seed": seed})
    _stop_if_asked(ranks)


def agree_on(ranks: Ranks, world: World) -> None:
    """Check that all ranks have drawn the same `world`.

    If not, all ranks raise a ConfigurationError that names one with another world.
    """
    fingerprints = ranks.exchange(world.fingerprint())
    for rank, fingerprint in enumerate(fingerprints):
        for what, sha256 in fingerprints[0].items():
            if fingerprint.get(what) != sha256:
                raise ranks.agreed(
                    ConfigurationError(
                        f"rank {rank}: the {what} of seed {world.streams.seed} is not that of rank 0: its "
                        f"data files or its driftscale differ"
                    )
                )


def lead_to_play(ranks: Ranks, arm: str, states: Tree, until: int | None) -> None:
    """Tell the other ranks to play `arm`, and other uses of what it trains, up to the end.

    `states` has, under "" for `arm` and under the arm of each other use, the state to go on from; None: the
    first round. They play up to the step that closes round number `until`; to the end for None.
    """
    ranks.exchange({"play": arm, "states": states, "until": until})


def follow(ranks: Ranks, locate: Locate, scratch: Path) -> None:
    """Follow rank 0: play each run that it announces, until there are no more.

    Args:
        ranks: The ranks of the job; this one is not rank 0.
        locate: Maps a path in the configuration to a file.
        scratch: Folder for the file of a large trace.

    Raises:
        EmulatorError: The error that ends the job, as rank 0 raises it.
        KeyboardInterrupt: A rank was asked to stop.
    """
    following = _Following(ranks, locate, scratch)
    while following.takes_part:
        try:
            following.take_part()
        except (ResumableError, CheckpointError, ForeignFileError):
            raise
        except EmulatorError:  # rank 0 marks the run FAILED, and announces the next one
            if ranks.ends:
                raise


class _Following:
    """A rank that follows; `takes_part` is False once rank 0 has no more runs."""

    def __init__(self, ranks: Ranks, locate: Locate, scratch: Path) -> None:
        self.takes_part = True
        self._ranks = ranks
        self._locate = locate
        self._scratch = scratch
        self._experiment: Experiment | None = None
        self._world: World | None = None

    def take_part(self) -> None:
        """Receive the next command of rank 0 and carry it out."""
        command = self._ranks.exchange(None)[0]
        match command:
            case {"draw": table, "seed": int(seed)}:
                with self._ranks.telling(ends=True):
                    self._draw(table, seed)
            case {"play": str(arm), "states": states, "until": None | int() as until}:
                with self._ranks.telling(ends=False), naming_own_code():
                    self._play(arm, states, until)
            case _:
                self.takes_part = False

    def _draw(self, table: Tree, seed: int) -> None:
        _stop_if_asked(self._ranks)
        self._experiment = parse_experiment(table, "the configuration of rank 0")
        self._ranks.timeout_s = self._experiment.executor.worker_timeout_s
        self._world = None  # free the memory before the next is drawn
        self._world = build_world(self._experiment, seed, self._locate, self._scratch)
        agree_on(self._ranks, self._world)

    def _play(self, name: str, states: Tree, until: int | None) -> None:
        assert self._experiment is not None
        assert self._world is not None
        arm = self._experiment.find_arm(name)
        executor = ReplicatedExecutor(build_executor(self._experiment, arm, self._world), self._ranks)
        reference = build_reference(self._experiment, arm, self._world)
        measuring = build_measuring(self._experiment, arm, self._world)
        log = _NullLog()
        others = [use for use in states if use]
        uses = [Use(build_adaptation(self._experiment.find_arm(use)), lambda record: None) for use in others]
        emulation = build_emulation(
            self._experiment,
            arm,
            self._world,
            executor,
            log,
            (),
            Stopwatch(),
            replicated(reference, self._ranks),
            replicated(measuring, self._ranks),
            uses,
        )
        if states[""] is not None:
            emulation.restore(states[""])
            for use, arm_of_use in zip(uses, others, strict=True):
                OtherUse(emulation, use).restore(states[arm_of_use])
        for _ in emulation.steps():
            _stop_if_asked(self._ranks)
            if until is not None and log.rounds >= until:
                break


class _NullLog:
    """Counts the closed rounds, and discards the records: rank 0 writes the log."""

    rounds = 0

    def append(self, record: RoundRecord) -> None:
        self.rounds = record.round + 1

    def append_visits(self, rows: VisitRows) -> None: ...


def _stop_if_asked(ranks: Ranks) -> None:
    """Raise KeyboardInterrupt if the ranks have agreed to stop."""
    if ranks.stop_requested:
        raise KeyboardInterrupt
