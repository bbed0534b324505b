"""Dask's scheduler, nanny and worker without their web servers.

Each of dask's servers opens a second port for HTTP, without TLS, and no setting turns it off. Nothing here
shows a dashboard, so the port has no use.
"""

from __future__ import annotations

from typing import Any

import distributed
from distributed.core import Status

from experiments.cluster import child_signals
from experiments.cluster.settings import quieten

quieten()  # in a worker's process, which imports this before it runs anything

STARTS = 3
"""Worker processes that may be killed, or end by themselves, before one is up for the first time."""


class QuietScheduler(distributed.Scheduler):
    """Listens on the one port that it is told."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuietWorker(distributed.Worker):
    """Listens on one port; signals are the command's affair."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        child_signals.ignore()
        # What runs need takes seconds to import, in which a worker that is up would be silent.
        import experiments.cluster.members  # noqa: F401

        super().__init__(*args, **kwargs)

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuickNanny(distributed.Nanny):
    """Has one `QuietWorker` of one thread without limits of memory, and kills it when closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= {"nthreads": 1, "memory_limit": None, "worker_class": QuietWorker}
        super().__init__(*args, **kwargs)

    async def instantiate(self) -> Status:
        """Start the worker process, and another one where it is killed before it is up, as later ones are."""
        for _ in range(STARTS - 1):
            status = await super().instantiate()
            if status != Status.stopped or self.status not in (Status.init, Status.starting):
                return status
        return await super().instantiate()

    async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
        """Kill the worker process, whatever it is at, even if it is not up yet or does not answer.

        NOTE: dask asks it to close first, and waits; a run that is to be stored was stopped before.
        """
        if self.process is not None and self.process.process is not None:
            await self.process.process.kill()
        await super().kill(timeout, reason)
