"""The settings of dask that every scheduler, nanny, worker and client of ours has."""

from __future__ import annotations

import logging

CONNECT_S = 10.0
"""Seconds within which a scheduler answers, or counts as absent."""

OWN_DATA = "DRIFTSCALE_WORKER_DATA"
"""The environment variable that says where a worker has the data, if not where the command has them."""

SETTINGS: dict[str, object] = {
    # A run is one task. A process that died over it may have been killed for it: what follows is decided by
    # the command, which alone knows how often this run has lost its worker.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": None,  # the command itself watches for silence
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.preload": [],
    "distributed.worker.preload": [],
    "distributed.nanny.preload": [],
    "distributed.client.preload": [],
    # Its samples of every thread's stack, each 10 ms, cost 12 % of a run.
    "distributed.worker.profile.enabled": False,
    # Limits of memory kill and pause; the command itself begins no more runs than memory has room for.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # The environment of a worker is that of its command. Dask's own MALLOC_TRIM_THRESHOLD_ makes the C
    # library hand freed memory back at once (15x the page faults); with its OMP_NUM_THREADS a worker would
    # not compute as the command's own process does.
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.nanny.environ": {},
    "distributed.diagnostics.nvml": False,
    # Health checks of the event loop, of which dask makes 50 a second, wake an idle process.
    "distributed.admin.tick.interval": "500 ms",
    "distributed.admin.system-monitor.interval": "2 s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    # A worker that is being replaced on a slow machine is not given up.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.comm.timeouts.connect": f"{CONNECT_S} s",
    "distributed.comm.timeouts.tcp": "30 s",
}

LOGGERS = ("distributed", "distributed.client", "tornado", "asyncio")
"""Of libraries that print on standard error, where the lines of a command belong."""


def apply_settings() -> None:
    """Set dask's configuration in this process; nannies hand it on to their workers."""
    import dask

    # NOTE: only after its import does distributed add its defaults, which would be taken for the user's.
    import distributed  # noqa: F401

    dask.config.set(SETTINGS)
    quieten()


def quieten() -> None:
    """Let dask, and what it is built on, print nothing but what ends it.

    Its errors are connections that break, with a traceback for each, as they do when a worker dies or a
    cluster is closed; the command learns of these anyway, and says them in a line.
    """
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
