"""What a worker process does when the command calls: it is met, does jobs, and is told to stop.

These functions run within a worker. What they keep is one process's: it works for one command at a time, but
may still be at a run of an earlier one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.errors import EmulatorError
from experiments.cluster import child_signals
from experiments.cluster.installation import rounding, source_digest
from experiments.cluster.settings import OWN_DATA
from experiments.jobs.workplace import Job, JobResult, Workplace
from experiments.results.json_files import Identity
from experiments.results.run_directory import RunDirectory
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
    """Take in the plans of the command `token`; what it must know of this worker.

    Args:
        token: Of the command.
        digest: Of the command's own sources.
        plans: As `described` has them, by their names.
        locks: What the lock file of each plan's run directory holds.
        dask_worker: This one, as dask hands it in. Signals are the affair of its nanny, if it has one; else
            it is the process of its command, which has to heed them.
    """
    if dask_worker is not None and dask_worker.nanny is not None:
        child_signals.ignore()
    own_data = os.environ.get(OWN_DATA)
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
            _workplaces[token] = Workplace(plans, locks, Path(own_data) if own_data else None)
    except EmulatorError as error:  # such as a part that is not installed here
        facts["refusal"] = f"cannot play these runs: {error}"
    return facts


def _refusal(digest: str, plans: Mapping[str, Mapping[str, Any]], locks: Mapping[str, bytes]) -> str | None:
    """Why this worker must not play the runs of these plans."""
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
    """The answer to a job; events about it are logged under the topic `token`.

    Stopped, if another command has met this worker meanwhile: it is to be met again.
    """
    from distributed import get_worker

    worker, workplace = get_worker(), _workplaces.get(token)
    if workplace is None:
        return {"end": "stopped", "notes": []}
    return workplace.do(job, lambda body: worker.log_event(token, {"at": worker.address, **body}))


async def check_files(token: str, files: Mapping[str, Mapping[str, Identity]]) -> str | None:
    """Why the data files here are not these; in a thread, since they may be large."""
    try:
        await asyncio.to_thread(_workplaces[token].check_files, files)
    except EmulatorError as error:
        return str(error)
    return None


def stop(token: str) -> None:
    """Have the run that is at work for that command stored and stopped."""
    if token in _workplaces:
        _workplaces[token].stop()


def runs_beside(token: str, number: int) -> None:
    """`number` other runs are at work on this machine."""
    if token in _workplaces:
        _workplaces[token].runs_beside(number)


def leave() -> None:
    """Have the run at work stored and stopped, of whatever command it is, and take no other."""
    global _is_leaving
    _is_leaving = True
    for workplace in _workplaces.values():
        workplace.stop()
