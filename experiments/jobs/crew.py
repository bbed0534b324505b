"""What the command needs of the processes that do its jobs, as a Protocol; `experiments.cluster` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.jobs.workplace import Job, JobResult
from experiments.results.json_files import Identity

MOST_LOST = 3
"""Workers that one run may cost."""


@dataclass(frozen=True)
class Told:
    """The worker at `address` said something about the run it plays."""

    address: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Ended:
    """The job that the worker at `address` was given has ended. `answer`: None if the worker was lost, `why`
    says how."""

    address: str
    job: Job
    result: JobResult | None
    why: str = ""


@dataclass(frozen=True)
class Facts:
    """What a worker said of itself when it was met.

    `machine` names its host, `place` how an error should call it. `is_leaving`: it is told to end, and
    begins nothing any more. `is_busy`: that, or a run of another command, or of
    one that is gone, is still at work there. `refusal` says why it may be given no run.
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
    """The worker at `address` has the command's plans; `facts` are None if it did not answer."""

    address: str
    facts: Facts | None


class Crew(Protocol):
    """Workers that come and go; all calls from one thread."""

    def addresses(self) -> Sequence[str]:
        """Of the workers that are there now. ResumableError if the cluster is gone."""
        ...

    def meet(self, address: str) -> None:
        """Hand the command's plans to a worker; `Met` follows."""
        ...

    def check_files(
        self, addresses: Sequence[str], files: Mapping[str, Mapping[str, Identity]]
    ) -> str | None:
        """Why the data files of one of these workers are not these, by experiment; None if they are."""
        ...

    def begin(self, address: str, job: Job) -> None:
        """Have the worker do the job; it has no other."""
        ...

    def next_event(self, patience_s: float) -> Told | Ended | Met | None:
        """The next thing that happened; None if nothing did in that time."""
        ...

    def silent_s(self, address: str) -> float:
        """Wall seconds since the worker gave a sign of life."""
        ...

    def replace(self, address: str) -> None:
        """Kill the worker, which is silent; another one takes its place if somebody starts one."""
        ...

    def stop(self, addresses: Sequence[str]) -> None:
        """Have the runs at work there stored and stopped."""
        ...

    def runs_beside(self, addresses: Sequence[str], number: int) -> None:
        """Tell these workers how many runs are at work beside theirs."""
        ...
