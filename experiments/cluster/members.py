"""The functions that are called in a worker process: meet the command, do a job, check files, stop, leave.

The command calls all of them but `leave`, which `stopping.py` calls. A worker process works for one command
at a time, but may still be at work on a run of an earlier one; the module's state is that of the process.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.errors import EmulatorError
from experiments.cluster import child_signals
from experiments.cluster.generators import set_dask_apart
from experiments.cluster.installation import rounding, source_digest
from experiments.cluster.settings import OWN_DATA
from experiments.jobs.workplace import Job, JobResult, Workplace
from experiments.results.reading.json_files import Identity
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import why_not_excluded
from experiments.running.machine import available_bytes, host_name

_workplaces: dict[str, Workplace] = {}  # by the token of the command
_is_leaving = False


def meet(
    token: str,
    digest: str,
    plans: Mapping[str, Mapping[str, Any]],
    locks: Mapping[str, bytes],
    dask_worker: Any = None,
) -> dict[str, Any]:
    """Receive the plans of a command; returns facts about this worker.

    Unless the worker is busy or refuses, they replace the plans of any earlier command.

    Args:
        token: Identifies the command.
        digest: The command's `source_digest`.
        plans: The plans as `described` returns them, by experiment.
        locks: Content of the lock file of each plan's run directory, by experiment.
        dask_worker: This worker, passed in by dask. If it has a nanny, this process ignores signals,
            which the nanny's process handles. If not, this is the command's process, which handles them.

    Returns:
        The fields of `experiments.jobs.pool.Facts` except `name`, by name.
    """
    if dask_worker is not None and dask_worker.nanny is not None:
        child_signals.ignore()
    own_data: list[str] = json.loads(os.environ.get(OWN_DATA, "[]"))
    facts: dict[str, Any] = {
        "machine": host_name(),
        "available_bytes": float(available_bytes()),
        "is_busy": _is_leaving or any(workplace.is_busy for workplace in _workplaces.values()),
        "is_leaving": _is_leaving,
        "refusal": None,
        "rounding": rounding(),
    }
    try:
        facts["refusal"] = _refusal(digest, plans, locks)
        if facts["refusal"] is None and not facts["is_busy"]:
            _workplaces.clear()
            _workplaces[token] = Workplace(plans, locks, [Path(folder) for folder in own_data])
    except EmulatorError as error:  # for example, a part that is not installed here
        facts["refusal"] = f"cannot play these runs: {error}"
    return facts


def _refusal(digest: str, plans: Mapping[str, Mapping[str, Any]], locks: Mapping[str, bytes]) -> str | None:
    """Why this worker must not play the runs of these plans; None if it may."""
    if source_digest() != digest:
        return (
            f"has another driftscale (sources {source_digest()[:12]}, the command's {digest[:12]}); install "
            f"the same on all machines"
        )
    for name, content in locks.items():
        why = why_not_excluded(RunDirectory(Path(plans[name]["directory"])), content)
        if why is not None:
            return why
    return None


def do(token: str, job: Job) -> JobResult:
    """Do a job; returns its result, and logs reports on it as dask events under the topic `token`.

    The result is `stopped` if this worker has no plans of the command, as when another command has met it
    meanwhile: then it has to be met again.
    """
    from distributed import get_worker

    worker, workplace = get_worker(), _workplaces.get(token)
    if workplace is None:
        return {"end": "stopped", "notes": []}
    set_dask_apart()  # whatever it has imported by now
    return workplace.do(job, lambda body: worker.log_event(token, {"at": worker.address, **body}))


async def check_files(token: str, files: Mapping[str, Mapping[str, Identity]]) -> str | None:
    """How a data file here differs from `files` (by experiment, path); None if none does.

    They are checked in a thread, since they may be large.
    """
    try:
        await asyncio.to_thread(_workplaces[token].check_files, files)
    except EmulatorError as error:
        return str(error)
    return None


def stop(token: str) -> None:
    """Store and stop the run at work for the command `token`, and play no other for it until met again."""
    if token in _workplaces:
        _workplaces[token].stop()


def runs_beside(token: str, number: int) -> None:
    """Take note that `number` other runs are at work on this machine."""
    if token in _workplaces:
        _workplaces[token].runs_beside(number)


def leave() -> None:
    """Store and stop the run at work, of any command, and take no other job."""
    global _is_leaving
    _is_leaving = True
    for workplace in _workplaces.values():
        workplace.stop()
