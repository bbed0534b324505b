"""Removes a worker from a cluster without losing the progress of its run since the last checkpoint."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import distributed
from distributed.core import Status
from distributed.protocol.pickle import dumps

STOP_S = 110.0
"""Maximum wall seconds for storing a run: SLURM's --signal=TERM@120 kills 120 s after its SIGTERM."""

FETCH_S = 5.0
"""Maximum wall seconds to wait until the command has fetched the job's result."""

LOOK_S = 0.1
"""Wall seconds between two calls to the worker."""


async def store_and_close(nanny: distributed.Nanny) -> None:
    """Store and stop the run on the nanny's worker, wait until its result is fetched, then close both.

    They are closed after `STOP_S` in any case, and earlier if the worker is dead.
    """
    if nanny.worker_address is not None:  # None while there is no worker
        with suppress(OSError, TimeoutError):  # it is dead or does not respond: nothing more will be stored
            await asyncio.wait_for(_stop_and_wait(nanny, nanny.worker_address), STOP_S)
    await nanny.close()


async def _stop_and_wait(nanny: distributed.Nanny, address: str) -> None:
    async with nanny.rpc(address) as worker:
        await worker.run(function=dumps(stop_runs))
        while await _call(worker, is_at_work):
            await asyncio.sleep(LOOK_S)
        deadline_s = time.monotonic() + FETCH_S
        while time.monotonic() < deadline_s and await _call(worker, has_results):
            await asyncio.sleep(LOOK_S)


async def _call(worker: Any, function: Callable[[distributed.Worker], bool]) -> bool:
    reply = await worker.run(function=dumps(function))
    return bool(reply["result"])


def stop_runs(dask_worker: distributed.Worker) -> None:
    """In a worker: take no further task, and store and stop the run at work."""
    dask_worker.status = Status.paused
    members = sys.modules.get("experiments.cluster.members")
    if members is not None:  # not imported before the first command meets the worker
        members.leave()


def is_at_work(dask_worker: distributed.Worker) -> bool:
    """In a worker: whether it is executing a task."""
    return bool(dask_worker.state.executing)


def has_results(dask_worker: distributed.Worker) -> bool:
    """In a worker: whether it holds results of tasks that the command has not released."""
    return bool(dask_worker.data)
