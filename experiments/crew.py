"""Who trains for a run: this process, workers of its own, or the ranks that torchrun started."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.errors import ConfigurationError
from executor.executor import LocalExecutor
from executor.workers import ranks
from experiments.build import World, build_executor
from experiments.config import Arm, Experiment

if TYPE_CHECKING:
    from executor.workers.pool import Hire, Pool
    from executor.workers.remote import RemoteExecutor
    from traces.shared import SharedTrace

WORKER_MODULE = "experiments.worker"


class Crew:
    """The workers of an experiment's runs, hired for the first of them; to be let go at the end.

    `scratch` is a folder with room for what they map. `pool`: workers that are there already.
    """

    def __init__(self, experiment: Experiment, scratch: Path, pool: Pool | None = None) -> None:
        self._experiment = experiment
        self._scratch = scratch
        self._pool = pool
        self._hired = pool is not None
        self._on_other_machines = False
        self._beside: list[int] | None = None
        self._shared: SharedTrace | None = None
        self._shared_of: Callable[[], World | None] = lambda: None

    def __enter__(self) -> Crew:
        if ranks.here() is not None:  # they are there already, and wait to hear even that all is done
            self.hire()
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool, self._shared = None, None

    @property
    def pool(self) -> Pool | None:
        """None where all is done in this process."""
        return self._pool

    def pids(self) -> Sequence[int]:
        """The processes on this machine that are there now and train for this one."""
        if self._pool is None:
            return ()
        if self._on_other_machines:
            if self._beside is None:  # ranks stay the same: a job that loses one is over
                self._beside = ranks.beside()
            return self._beside
        return [worker.pid for worker in self._pool.workers if worker.pid is not None]

    def lost_since_now(self) -> Callable[[], int]:
        """How many workers are lost from now on, whenever it is asked."""
        pool = self._pool
        before = 0 if pool is None else pool.lost
        return lambda: 0 if pool is None else pool.lost - before

    def hire(self) -> None:
        """Start the workers, if any are asked for and none are there; they come up while others go on."""
        if self._hired:
            return
        self._hired = True
        hires = self._hires()
        if hires:
            from executor.workers.pool import Pool

            self._pool = Pool(hires, self._experiment.executor.worker_timeout_s)

    def executor(self, arm: Arm, world: World) -> LocalExecutor | RemoteExecutor:
        """What trains and scores `arm`; the workers are hired by then."""
        local = build_executor(self._experiment, arm, world)
        if self._pool is None:
            return local
        from executor.workers.pool import Context
        from executor.workers.remote import RemoteExecutor

        body: dict[str, Any] = {
            "experiment": self._experiment.resolved(),
            "arm": arm.name,
            "seed": world.streams.seed,
        }
        descriptors: list[int] = []
        if self._on_other_machines:
            body["trace digest"] = world.trace.digest()
        else:
            shared = self._share(world)
            body["trace"], descriptors = shared.description, shared.descriptors
        context = Context("executor", self._pool.number(), body, descriptors, prepares=True)
        return RemoteExecutor(local, self._pool, context, self._experiment.executor.threads)

    def _hires(self) -> list[Hire]:
        workers = self._experiment.executor.workers
        job = ranks.here()
        self._on_other_machines = job is not None
        if job is None:
            from executor.workers.processes import WorkerProcess

            return [lambda: WorkerProcess(WORKER_MODULE)] * workers
        if workers > 0:
            raise ConfigurationError(
                f"executor.workers = {workers}: under torchrun every rank but the first is an executor; "
                f"leave it out, or start without torchrun"
            )
        store = job.store()

        def hire(rank: int) -> Hire:
            return lambda: ranks.RankWorker(job, store, rank)

        return [hire(rank) for rank in range(1, job.size)]

    def _share(self, world: World) -> SharedTrace:
        from traces.shared import SharedTrace

        if self._shared is None or self._shared_of() is not world:
            self._shared = None  # its files are let go of before there are others
            self._shared = SharedTrace(world.trace, self._scratch)
            self._shared_of = weakref.ref(world)
        return self._shared
