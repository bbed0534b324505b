"""Workload solvers: W1 by rules that remember; their memory is read before each wave and committed after it.

CPU time of one process on one thread. SCAFFOLD's reference is FedProx, which also corrects each step by a
vector, but remembers none; that of APFL and Ditto, which take two gradients a step, is plain SGD.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved
from benchmarks.training import DENSE, Contest, Schedule, wave
from coordinator.aggregators.scaffold import CONTROL, OWN
from coordinator.federation.solver_state import SolverState

SOLVERS = {
    "sgd": ["sgd"],
    "fedprox": ["fedprox", "sgd"],
    "scaffold": ["scaffold", "sgd"],
    "ditto": ["ditto", "sgd"],
    "apfl": ["apfl", "sgd"],
}
AGAINST = {"scaffold": ("fedprox", 1.15), "ditto": ("sgd", 3.0), "apfl": ("sgd", 3.0)}
"""The reference of each, and the most times its CPU time."""

REFERENCES = {"fedprox": "the same by FedProx, which remembers nothing", "sgd": "the same by plain SGD"}


def measure_solvers(repeats: int, say: Say) -> list[Figure]:
    return solver_figures(repeats, say, waves=8)


def solver_figures(
    repeats: int, say: Say, clients: int = 50, schedule: Schedule | None = None, waves: int = 1
) -> list[Figure]:
    """Milliseconds of CPU time of a wave by each rule that remembers, against one that does not."""
    contest = Contest(DENSE, clients, schedule or Schedule())
    contenders = {name: _remembering(contest, clients, chain, waves) for name, chain in SOLVERS.items()}
    samples = interleaved(contenders, repeats, say=say)
    return [
        figure(
            f"w1-{name}",
            f"one wave of {clients} clients by {name}, memory read and committed",
            1000 * samples[name],
            "ms",
            better="lower",
            against=Reference(1000 * samples[other], REFERENCES[other]),
            target=Target("ratio", 1 / most),
        )
        for name, (other, most) in AGAINST.items()
    ]


def _remembering(contest: Contest, clients: int, chain: Sequence[str], waves: int) -> Measured:
    """A function that trains waves by a chain of rules and returns the mean CPU seconds of one."""
    executor = contest.executor(1, chain)
    solver, size = executor.solver, executor.num_parameters
    memory = SolverState(solver.state, size, {OWN} & solver.state.keys())
    models, row = contest.start[None, :], np.zeros(clients, dtype=np.int64)
    rounds = count()

    def measured() -> float:
        ready = [wave(clients, contest.schedule, next(rounds)) for _ in range(waves)]
        begun = time.process_time()
        for tasks in ready:
            state = memory.read(tasks.client, tasks.model, lambda new: models[row[new]])
            sent = {}
            if solver.receives:
                sent = {CONTROL: memory.means(row[:1], row[:, None])[OWN].astype(np.float32)}
            remembering = replace(tasks, state=state, broadcast=sent)
            memory.commit(executor.train(remembering, models, row))
        return (time.process_time() - begun) / waves

    return measured
