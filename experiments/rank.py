"""What a rank of torchrun but the first does: train and score on its own copy of the data."""

from __future__ import annotations

import tempfile
from pathlib import Path

from emulator.errors import ConfigurationError, ResumableError
from emulator.state_tree import Tree
from executor.executor import LocalExecutor
from executor.workers.channel import LostError
from executor.workers.ranks import Job, wait_for_the_coordinator
from executor.workers.serving import serve
from experiments.build import World, build_executor, build_world
from experiments.config import locator, parse_experiment


def serve_rank(job: Job, config: Path, data: Path | None) -> None:
    """Be an executor until the coordinator, rank 0, says that all is done.

    What is run comes from there; `config` and `data` say where this machine has its files.

    ResumableError when the coordinator is gone before.
    """
    wait_for_the_coordinator()
    worlds = _Worlds(job, config, data)
    try:
        channel = job.channel(job.store(), job.rank)
    except LostError as error:
        raise ResumableError(f"rank {job.rank}: the coordinator does not come up: {error}") from error
    if not serve(channel, worlds.set_up):
        raise ResumableError(f"rank {job.rank}: the coordinator is gone")


class _Worlds:
    """The worlds that this rank draws for itself, one at a time."""

    def __init__(self, job: Job, config: Path, data: Path | None) -> None:
        self._job = job
        self._config = config
        self._data = data
        self._world: World | None = None
        self._drawn: Tree = None

    def set_up(self, body: Tree, number: int) -> LocalExecutor:
        experiment = parse_experiment(body["experiment"], "the coordinator's configuration")
        drawn = (body["experiment"], body["seed"])
        if self._world is None or self._drawn != drawn:
            self._world = None
            scratch = Path(tempfile.gettempdir())
            self._world = build_world(experiment, body["seed"], locator(self._data, self._config), scratch)
            self._drawn = drawn
        digest = self._world.trace.digest()
        if digest != body["trace digest"]:
            raise ConfigurationError(
                f"rank {self._job.rank}: the trace of seed {body['seed']} is not that of rank 0 (sha256 "
                f"{digest[:12]}…, there {body['trace digest'][:12]}…): its files, or driftscale, are others "
                f"on this machine"
            )
        return build_executor(experiment, experiment.find_arm(body["arm"]), self._world)
