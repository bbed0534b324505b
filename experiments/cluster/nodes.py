"""Dask's scheduler, nanny and worker without their web servers.

Each of dask's servers opens a second port, for HTTP without TLS, and no setting turns it off. We show no
dashboard, so the port has no use.
"""

from __future__ import annotations

from typing import Any

import distributed
from distributed.core import Status

from experiments.cluster import child_signals
from experiments.cluster.settings import quieten

quieten()  # for a worker's process, which imports this module before it runs anything

STARTS = 3
"""Attempts of a nanny to start its first worker process: each may be killed or end before it is up."""


class QuietScheduler(distributed.Scheduler):
    """A scheduler that listens on one port only."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuietWorker(distributed.Worker):
    """A worker that listens on one port only and ignores signals, which the command handles."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        child_signals.ignore()
        # Importing what runs need takes seconds, in which a worker that is up would be silent.
        import experiments.cluster.members  # noqa: F401

        super().__init__(*args, **kwargs)

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuickNanny(distributed.Nanny):
    """A nanny of one `QuietWorker`, with one thread and without memory limits; kills it when closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= {"nthreads": 1, "memory_limit": None, "worker_class": QuietWorker}
        super().__init__(*args, **kwargs)

    async def instantiate(self) -> Status:
        """Start the worker process; the first one in up to `STARTS` attempts, if it ends before it is up.

        Dask itself restarts a worker process only after it has been up.
        """
        for _ in range(STARTS - 1):
            status = await super().instantiate()
            if status != Status.stopped or self.status not in (Status.init, Status.starting):
                return status
        return await super().instantiate()

    async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
        """Kill the worker process at once, even if it is at work, not up yet or not responding.

        NOTE: dask would first tell it to close, and wait. A run that has to be stored was stopped before.
        """
        if self.process is not None and self.process.process is not None:
            await self.process.process.kill()
        await super().kill(timeout, reason)
