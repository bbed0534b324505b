"""Taking a worker off a cluster without losing what its run has done since the last checkpoint."""

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
"""Seconds that a run has for storing: SLURM's --signal=TERM@120 kills 120 s after its SIGTERM."""
FETCH_S = 5.0
"""Seconds that the command has for fetching the run's answer."""
LOOK_S = 0.1


async def store_and_close(nanny: distributed.Nanny) -> None:
    """Have the run on the worker of `nanny` stop and store, wait for its answer, and close both."""
    if nanny.worker_address is not None:  # as it is while there is no worker
        with suppress(OSError, TimeoutError):  # it is dead, or does not answer: nothing more will be stored
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
    """Within a worker: take no further task, and ask the run that is at work to stop and store."""
    dask_worker.status = Status.paused
    members = sys.modules.get("experiments.cluster.members")
    if members is not None:  # imported when the first command meets the worker
        members.leave()


def is_at_work(dask_worker: distributed.Worker) -> bool:
    """Within a worker: whether a task is at work."""
    return bool(dask_worker.state.executing)


def has_results(dask_worker: distributed.Worker) -> bool:
    """Within a worker: whether it holds answers of tasks that the command has not let go of."""
    return bool(dask_worker.data)
