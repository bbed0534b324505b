"""A rank that plays rows: `python -m tests.reliability.replaying STORE RANK SIZE DATA OUT ROW...`.

Rank 0 alone writes the logs and, every few steps, a checkpoint: neither may involve communication.
"""

from __future__ import annotations

import sys
from pathlib import Path

from coordinator.federation.hearing.client_data import Reference
from executor.gloo import Job, file_store, join
from executor.ranks import Ranks
from executor.replicas import ReplicatedExecutor
from experiments.build import World, build_emulation, build_executor, build_world
from experiments.config import Experiment
from experiments.locating import locator
from experiments.reference import build_reference
from experiments.running.replicas import replicated
from experiments.stopwatch import Stopwatch
from tests.reliability.rows import row
from tests.reliability.stops import Stopped

SMALL_GROUPS = {"executor": {"chunk": 2}}
"""At most two clients in a task group, so that a round has several groups."""

STORED_EVERY = 5


class NullLog:
    """The log of a rank other than 0, which discards its records."""

    def append_visits(self, rows: object) -> None: ...

    def append(self, record: object) -> None: ...


def play_by_ranks(ranks: Ranks, experiment: Experiment, world: World, out: Path) -> bytes | None:
    """Play the only arm of `experiment`; rank 0 writes its run directory `out`, and returns its models."""
    arm = experiment.arm[0]

    def executor() -> ReplicatedExecutor:
        return ReplicatedExecutor(build_executor(experiment, arm, world), ranks)

    def reference() -> Reference | None:
        return replicated(build_reference(experiment, arm, world), ranks)

    if ranks.rank > 0:
        log, stopwatch = NullLog(), Stopwatch()
        build_emulation(experiment, arm, world, executor(), log, (), stopwatch, reference()).run()
        return None
    run = Stopped(experiment, world, out, executor, reference)
    with run.attempt() as attempt:
        for number, _ in enumerate(attempt.emulation.steps()):
            if number % STORED_EVERY == 0:
                attempt.store()
        run.keep(attempt)
    return run.kept


def main(store: str, rank: str, size: str, data: str, out: str, *names: str) -> None:
    ranks = join(Job(int(rank), int(size), on_loopback=True), file_store(store, int(size)))
    for name in names:
        experiment = row(name, **SMALL_GROUPS)
        world = build_world(experiment, 0, locator(Path(data), None))
        play_by_ranks(ranks, experiment, world, Path(out) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
