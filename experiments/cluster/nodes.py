"""Dask's scheduler, nanny and worker without their web servers, and what every worker is set up with.

Each of dask's servers opens a second port for HTTP, without TLS, and no setting turns it off. Nothing here
shows a dashboard, so the port has no use.
"""

from __future__ import annotations

from typing import Any, Literal

import distributed

from experiments.cluster import child_signals
from experiments.cluster.settings import quieten

quieten()  # in a worker's process, which imports this before it runs anything

CLOSE_S = 1.25
"""As nannies count: they kill a worker process that has not ended by itself after 0.8 of it."""


class QuietScheduler(distributed.Scheduler):
    """Listens on the one port that it is told."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuietWorker(distributed.Worker):
    """Listens on one port; signals are the command's affair."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        child_signals.ignore()
        super().__init__(*args, **kwargs)

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        pass


class QuickNanny(distributed.Nanny):
    """Has one `QuietWorker` of one thread without limits of memory, and kills it soon when closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= {"nthreads": 1, "memory_limit": None, "worker_class": QuietWorker}
        super().__init__(*args, **kwargs)

    async def close(  # type: ignore[override]  # as is dask's own
        self, timeout: float = CLOSE_S, reason: str = "nanny-close"
    ) -> Literal["OK"]:
        return await super().close(timeout=min(timeout, CLOSE_S), reason=reason)


class WorkerSetUp(distributed.WorkerPlugin):
    """Sets up the workers of a client, among them those that dask's own commands started.

    One without a nanny is the process of its command, which has to heed signals, and is left alone.
    """

    name = "driftscale"

    def setup(self, worker: distributed.Worker) -> None:
        if worker.nanny is not None:
            child_signals.ignore()
