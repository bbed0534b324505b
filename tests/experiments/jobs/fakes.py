"""Fake workers that follow a test's script, in one process, with a clock that only they advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from executor.failures import packed_error
from experiments.jobs.pool import Ended, Facts, Met, Told
from experiments.jobs.workplace import Job, JobResult
from experiments.locating import locator
from experiments.running.plan import Plan, plan_run
from tests.experiments.small import small

Step = Callable[["FakePool", str, Job], None]
"""What happens next to the job of a worker."""


def a_plan(
    folder: Path, arms: str = "ab", seeds: Sequence[int] = (0, 1), name: str = "small", **changes: Any
) -> Plan:
    """The small experiment with arms of one letter each, to be run into a folder of its name."""
    experiment = small(name=name, seeds=list(seeds), arm=[{"name": arm} for arm in arms], **changes)
    return plan_run(experiment, folder / name, None, locator(None, None), fresh=False)


def ends(end: str, **content: Any) -> Step:
    """The job ends with this result."""

    def step(pool: FakePool, address: str, job: Job) -> None:
        pool.end_job(address, {"end": end, "notes": [], **content})

    return step


def drawn(seed: int) -> JobResult:
    """The result of drawing the world of a seed."""
    empty: dict[str, str] = {}
    world = {"seed": seed, "fingerprint": {"trace": str(seed)}, "profile": empty, "availability": empty}
    return {"end": "drawn", "notes": [], "drawn": {**world, "files": empty}}


def done(wall_s: float = 1.0, peak_memory_bytes: float = 1.0) -> Step:
    return ends("done", wall_s=wall_s, peak_memory_bytes=peak_memory_bytes)


def fails_by(error: BaseException) -> Step:
    return ends("error", error=packed_error(error))


def tells(**body: Any) -> Step:
    def step(pool: FakePool, address: str, job: Job) -> None:
        run = job.run
        pool.events.append(Told(address, {"run": f"{run.experiment}/{run.arm}/{run.seed}", **body}))

    return step


def evaluates(peak_bytes: float) -> Step:
    """The worker reports its first evaluated round."""
    return tells(rounds=1, closed_s=10.0, accuracy=0.5, evaluated=True, peak_bytes=peak_bytes)


def dies(pool: FakePool, address: str, job: Job) -> None:
    """The worker's process ends; no other takes its place."""
    pool.present.remove(address)
    pool.events.append(Ended(address, pool.jobs.pop(address), None, "its process ended"))


def dies_and_returns(pool: FakePool, address: str, job: Job) -> None:
    """The worker's process ends, and another one is there at once, at the same address."""
    pool.events.append(Ended(address, pool.jobs.pop(address), None, "its process ended"))


def falls_silent(pool: FakePool, address: str, job: Job) -> None:
    pool.silent_since_s.setdefault(address, pool.clock_s)


def waits(pool: FakePool, address: str, job: Job) -> None:
    """Nothing happens there."""


class FakePool:
    """A `WorkerPool` whose jobs advance one step each time the command waits: all jobs, or `one_by_one`.

    A job's next step is the next one of its run in `script`; without one a run is done, and a world is drawn.
    `log` has what workers were given. Refuses a second job for a worker that has one.
    """

    def __init__(
        self,
        workers: Mapping[str, Facts] | Sequence[str] = ("w0", "w1"),
        script: Mapping[tuple[str, int], Sequence[Step]] | None = None,
        *,
        one_by_one: Callable[[Sequence[str]], str] | None = None,
    ) -> None:
        if not isinstance(workers, Mapping):
            workers = {address: facts(address) for address in workers}
        self.facts: dict[str, Facts | None] = dict(workers)
        self.present = list(workers)
        self.script = {run: deque(steps) for run, steps in (script or {}).items()}
        self.draws: dict[int, deque[Step]] = {}
        self.one_by_one = one_by_one
        self.clock_s = 0.0
        self.jobs: dict[str, Job] = {}
        self.given: list[Job] = []
        self.log: list[str] = []
        self.events: deque[Told | Ended | Met] = deque()
        self.silent_since_s: dict[str, float] = {}
        self.told_to_stop: list[str] = []
        self.beside: list[tuple[str, int]] = []
        self.refusal: str | None = None  # of the data files
        self.checked: list[str] = []
        self.when_begun: Callable[[Job], None] = lambda job: None
        self.when_waiting: Callable[[], None] = lambda: None

    def clock(self) -> float:
        return self.clock_s

    def end_job(self, address: str, result: JobResult) -> None:
        self.events.append(Ended(address, self.jobs.pop(address), result))

    # -- what the command calls -----------------------------------------------------------------------------

    def addresses(self) -> Sequence[str]:
        return list(self.present)

    def meet(self, address: str) -> None:
        self.log.append(f"meet {address}")
        if self.facts[address] is not None:
            self.told_to_stop = [other for other in self.told_to_stop if other != address]
        self.events.append(Met(address, self.facts[address]))

    def check_files(self, addresses: Sequence[str], files: Mapping[str, Any]) -> str | None:
        self.checked.extend(addresses)
        return self.refusal

    def begin(self, address: str, job: Job) -> None:
        assert address in self.present, f"{address} is gone"
        assert address not in self.jobs, f"{address} has a job"
        self.when_begun(job)
        self.jobs[address] = job
        self.given.append(job)
        what = "draw" if job.is_draw else "play"
        self.log.append(f"{what} {job.run.arm}{job.run.seed} at {address}")

    def next_event(self, patience_s: float) -> Told | Ended | Met | None:
        if not self.events and patience_s > 0:
            self.clock_s += patience_s
            self.when_waiting()
            self._happen()
        return self.events.popleft() if self.events else None

    def silent_s(self, address: str) -> float:
        return self.clock_s - self.silent_since_s.get(address, self.clock_s)

    def replace(self, address: str) -> None:
        self.log.append(f"replace {address}")
        del self.jobs[address], self.silent_since_s[address]
        self.present[self.present.index(address)] = f"{address}'"
        self.facts[f"{address}'"] = self.facts[address]

    def stop(self, addresses: Sequence[str]) -> None:
        self.log += [f"stop {address}" for address in addresses]
        self.told_to_stop += addresses

    def runs_beside(self, addresses: Sequence[str], number: int) -> None:
        self.beside += [(address, number) for address in addresses]

    # -- what happens ---------------------------------------------------------------------------------------

    def _happen(self) -> None:
        at_work = [address for address in self.jobs if address not in self.silent_since_s]
        if self.one_by_one is not None and at_work:
            at_work = [self.one_by_one(at_work)]
        for address in at_work:
            if address in self.jobs:
                self._advance(address, self.jobs[address])

    def _advance(self, address: str, job: Job) -> None:
        run = job.run
        steps = self.draws.get(run.seed) if job.is_draw else self.script.get((run.arm, run.seed))
        if steps and not (address in self.told_to_stop and not job.is_draw):
            steps.popleft()(self, address, job)
        elif job.is_draw:
            self.end_job(address, drawn(run.seed))
        elif address in self.told_to_stop:
            ends("stopped")(self, address, job)
        else:
            done()(self, address, job)


def facts(address: str, **changes: Any) -> Facts:
    """Facts of a worker whose machine has memory for all runs."""
    return replace(Facts(name=f"worker {address}", machine="host", available_bytes=1e12), **changes)
