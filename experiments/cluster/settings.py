"""The dask settings of all our schedulers, nannies, workers and clients."""

from __future__ import annotations

import logging

CONNECT_S = 10.0
"""Wall seconds within which a scheduler has to respond."""

OWN_DATA = "DRIFTSCALE_WORKER_DATA"
"""Environment variable with a worker's own data folders as a JSON list; unset if it uses the command's."""

SETTINGS: dict[str, object] = {
    # A run is one task. If its worker process dies, dask must not retry: the command decides, since only it
    # knows how often the run has lost its worker.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": None,  # the command watches for silence itself
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.preload": [],
    "distributed.worker.preload": [],
    "distributed.nanny.preload": [],
    "distributed.client.preload": [],
    # Sampling every thread's stack each 10 ms would cost 12 % of a run.
    "distributed.worker.profile.enabled": False,
    # Memory limits would kill or pause workers; the command begins no more runs than fit into memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # A worker gets the environment of its command. Dask's MALLOC_TRIM_THRESHOLD_ would make the C library
    # return freed memory at once (15x the page faults); with dask's OMP_NUM_THREADS a worker would not
    # compute as the command's own process does.
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.nanny.environ": {},
    "distributed.diagnostics.nvml": False,
    # Dask's default, 50 health checks of the event loop per second, would wake an idle process.
    "distributed.admin.tick.interval": "500 ms",
    "distributed.admin.system-monitor.interval": "2 s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    # Do not give up a worker that is being replaced on a slow machine.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.comm.timeouts.connect": f"{CONNECT_S} s",
    "distributed.comm.timeouts.tcp": "30 s",
}

LOGGERS = ("distributed", "distributed.client", "tornado", "asyncio")
"""Loggers of libraries that print on standard error, which is for the command's lines only."""


def configure_dask() -> None:
    """Set dask's configuration in this process; nannies pass it on to their workers."""
    import dask

    # NOTE: distributed adds its defaults when it is imported. If that came after `set`, they would count as
    # the user's settings.
    import distributed  # noqa: F401

    dask.config.set(SETTINGS)
    quieten()


def quieten() -> None:
    """Let dask, and the libraries that it uses, print critical errors only.

    Its other errors are broken connections, with a traceback each, as when a worker dies or a cluster is
    closed; the command notices these anyway, and reports each in a line.
    """
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
