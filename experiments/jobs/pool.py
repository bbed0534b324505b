"""The `WorkerPool` protocol: workers as the command sees them. `experiments.cluster` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.jobs.workplace import Job, JobResult
from experiments.results.reading.json_files import Identity

MOST_LOST = 3
"""Number of workers lost over one run at which the command ends."""


@dataclass(frozen=True)
class Told:
    """A report of the worker at `address` on the run that it plays."""

    address: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Ended:
    """The job of the worker at `address` has ended.

    `result` is None if the worker was lost, for the reason `why`.
    """

    address: str
    job: Job
    result: JobResult | None
    why: str = ""


@dataclass(frozen=True)
class Facts:
    """A worker's description of itself when it was met.

    Attributes:
        name: How notes and errors name the worker.
        machine: Name of its host.
        available_bytes: Available memory of its host.
        is_busy: Whether it is leaving, or still at work on a run of another command (which may be gone).
        is_leaving: Whether it was told to end, and so begins no job.
        refusal: Why it must not be given runs; None if it may.
        rounding: Versions and processor features on which rounding depends, by name.
    """

    name: str
    machine: str
    available_bytes: float
    is_busy: bool = False
    is_leaving: bool = False
    refusal: str | None = None
    rounding: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Met:
    """The worker at `address` has received the command's plans; `facts` is None if it did not respond."""

    address: str
    facts: Facts | None


class WorkerPool(Protocol):
    """The workers of a command, which may come and go. All calls must be in one thread."""

    def addresses(self) -> Sequence[str]:
        """Addresses of the present workers. ResumableError if the cluster is gone."""
        ...

    def meet(self, address: str) -> None:
        """Send the command's plans to a worker; a `Met` event follows."""
        ...

    def check_files(
        self, addresses: Sequence[str], files: Mapping[str, Mapping[str, Identity]]
    ) -> str | None:
        """Compare the workers' data files with `files`, identities by experiment and path.

        Returns the first difference, as a line that names the worker; None if there is none. Workers that are
        gone or silent are left out.
        """
        ...

    def begin(self, address: str, job: Job) -> None:
        """Give a job to a worker that has none; an `Ended` event follows."""
        ...

    def next_event(self, patience_s: float) -> Told | Ended | Met | None:
        """The next event; None if there is none within `patience_s` wall seconds."""
        ...

    def silent_s(self, address: str) -> float:
        """Wall seconds since the worker's last sign of life; 0 for a worker that is not present."""
        ...

    def replace(self, address: str) -> None:
        """Kill a silent worker; another one may take its place."""
        ...

    def stop(self, addresses: Sequence[str]) -> None:
        """Tell these workers to store and stop their runs."""
        ...

    def runs_beside(self, addresses: Sequence[str], number: int) -> None:
        """Tell these workers how many other runs are at work on their machine."""
        ...
