"""The worker's side of parallel runs: draws worlds and plays runs, one at a time, for one command.

Results are plain values, so that a worker's errors do not depend on what the command has imported. Knows no
cluster: `experiments.cluster` transports jobs and results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.errors import ConfigurationError
from emulator.own_parts import MAIN, module_file
from executor.failures import packed_error
from experiments.build import World
from experiments.config import parse_experiment
from experiments.locating import DataFolders, folders_of, locator
from experiments.results.reading.json_files import Identity, Until
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import RunAtWorkError, lock_content
from experiments.running.manifest import Drawn
from experiments.running.plan import Plan, PlannedRun, Reached
from experiments.running.runner import draw_world, run_one, told
from experiments.running.source_files import SourceFiles
from experiments.running.stop import Stop
from experiments.stopwatch import own_peak_bytes

EVENT_EVERY_S = 0.5
"""Minimum wall seconds between two reports on the rounds of a run."""

Send = Callable[[dict[str, Any]], None]
JobResult = dict[str, Any]
"""How a job ended, see `Workplace.do`."""


def described(plan: Plan, data: DataFolders) -> dict[str, Any]:
    """A plan as plain values, which `Workplace` reads on any machine that has its run directory.

    `data` are the folders that --data names.

    Raises ConfigurationError if a part is of a module that only this process has.
    """
    alone = [module for module in plan.own_modules() if module == MAIN or module_file(module) is None]
    if alone:
        raise ConfigurationError(
            f"{plan.file or 'the configuration'}: a part is of {alone[0]!r}, which other processes do not "
            f"have: to play several runs at once, put it into a file of its own"
        )
    return {
        "experiment": plan.experiment.resolved(),
        "directory": str(plan.directory.path.absolute()),
        "arms": list(plan.arms),
        "file": plan.file,
        "data": [str(folder.absolute()) for folder in folders_of(data)],
        "here": str(Path.cwd()),
        "track": list(plan.track),
        "trial": plan.trial,
        "until": plan.until,
    }


def _plan_of(description: Mapping[str, Any], own_data: DataFolders) -> Plan:
    """Inverse of `described`. `own_data`: this machine's data folders, if they are not the command's."""
    file, here = str(description["file"]), Path(description["here"])
    data = folders_of(own_data) or [Path(folder) for folder in description["data"]]
    locate = locator(data, here / file if file else None, here)  # first: it says where modules are looked for
    return Plan(
        experiment=parse_experiment(description["experiment"], file or "the command's configuration"),
        directory=RunDirectory(Path(description["directory"])),
        arms=tuple(description["arms"]),
        locate=locate,
        file=file,
        track=tuple(description["track"]),
        trial=bool(description["trial"]),
        until=description["until"],
    )


@dataclass(frozen=True)
class Job:
    """A job of a worker: to play a run, or (`is_draw`) only to draw its world, for the command to record.

    Attributes:
        run: The run.
        is_draw: Whether to draw the world only.
        files: Identities that the data files must have, by their path in the configuration.
        check_arms: Whether to check every arm and all seeds too, when the world is drawn.
        fingerprint: Fingerprint of the world as it was recorded, which it must have here too; None if it is
            not recorded yet.
        lost: Number of workers that this command has lost while they played the run.
        beside: Number of other runs at work on the worker's machine.
    """

    run: PlannedRun
    is_draw: bool
    files: Mapping[str, Identity]
    check_arms: bool = False
    fingerprint: Mapping[str, str] | None = None
    lost: int = 0
    beside: int = 0


class Workplace:
    """A worker's state for a command: the plans, and the world that it drew last.

    Args:
        plans: The plans as `described` returns them, by experiment.
        locks: By experiment, the content of its run directory's lock file while the command holds it.
        own_data: Folders of the data on this machine, if they are not the command's.
    """

    def __init__(
        self,
        plans: Mapping[str, Mapping[str, Any]],
        locks: Mapping[str, bytes],
        own_data: DataFolders = None,
    ) -> None:
        for description in plans.values():  # refuse at once what this machine lacks, such as a part
            _plan_of(description, own_data)
        self._descriptions = plans
        self._own_data = own_data
        self._last_plan: tuple[str, Plan] | None = None
        self._locks = locks
        self._world: World | None = None
        self._world_of: tuple[str, int] | None = None
        self._stop = Stop()
        self._beside = 0
        self.is_busy = False

    def stop(self) -> None:
        """Store and stop the run at work, and play no other. May be called from another thread."""
        self._stop.leave_word()

    def runs_beside(self, number: int) -> None:
        """Take note that `number` other runs are at work on this machine now."""
        self._beside = max(self._beside, number)

    def check_files(self, files: Mapping[str, Mapping[str, Identity]]) -> None:
        """DataFileError unless the data files here are identical to `files`.

        `files` has identities by experiment and path.
        """
        for experiment, known in files.items():
            source = SourceFiles(self._plan(experiment).locate, known)
            for name in known:
                source.look_at(name)

    def do(self, job: Job, send: Send) -> JobResult:
        """Do the job, and send reports on it.

        Returns:
            A dictionary with the `notes` on the job and its `end`:

            * `done`, to its end or to --until, with `wall_s` and `peak_memory_bytes`; if some of several arms
              that one training serves have failed, with these as `failed`;
            * `failed`, with the reason `why`;
            * `stopped`;
            * `held`: another process is at work on the run, named in `why`;
            * `drawn`, with the facts `drawn` of the world;
            * `error`, with the packed `error` (see `executor.failures`).
        """
        reporter = _Reporter(job.run, send)
        self.is_busy = True
        try:
            result = self._draw(job, reporter) if job.is_draw else self._play(job, reporter)
        except KeyboardInterrupt:
            result = {"end": "stopped"}
        except RunAtWorkError as error:
            result = {"end": "held", "why": str(error)}
        except Exception as error:  # the command raises it again
            result = {"end": "error", "error": packed_error(error)}
        finally:
            self.is_busy = False
        return {**result, "notes": reporter.notes}

    def _plan(self, name: str) -> Plan:
        """The plan of an experiment. Only the last one is kept, since a command may have thousands."""
        last = self._last_plan
        if last is None or last[0] != name:
            last = self._last_plan = name, _plan_of(self._descriptions[name], self._own_data)
        return last[1]

    def _draw(self, job: Job, reporter: _Reporter) -> JobResult:
        world, files = self._draw_world(job, reporter.note if job.check_arms else None)
        return {"end": "drawn", "drawn": Drawn.of(world, files).model_dump()}

    def _play(self, job: Job, reporter: _Reporter) -> JobResult:
        plan, run = self._plan(job.run.experiment), job.run
        if self._stop.stop_requested:
            raise KeyboardInterrupt
        self._beside = job.beside  # now: other runs may begin while the world is drawn
        world = self._world_for(job)
        failed = run_one(
            plan,
            run,
            world,
            reporter,
            self._stop,
            lost=job.lost,
            beside=lambda: self._beside,
            when_locked=lambda: self._refuse_to_intrude(run.experiment),
            has_threads=True,
        )
        if len(failed) == len(run.arms):
            return {"end": "failed", "why": told(failed)}
        arm = next(arm for arm in run.arms if arm not in failed)
        timing = plan.directory.read_timing(arm, run.seed)  # of all attempts at it
        took = {"wall_s": timing.wall_s, "peak_memory_bytes": timing.peak_memory_bytes}
        return {"end": "done", **took, **({"failed": list(failed)} if failed else {})}

    def _refuse_to_intrude(self, name: str) -> None:
        """KeyboardInterrupt if another command has locked the run directory by now.

        The job's command was then killed while the job was on its way to this worker.
        """
        if lock_content(self._plan(name).directory) != self._locks[name]:
            raise KeyboardInterrupt

    def _world_for(self, job: Job) -> World:
        """The world of the run: the last one drawn, or else a new one.

        Raises ConfigurationError if a new one has not the fingerprint in the job.
        """
        if self._world is not None and self._world_of == (job.run.experiment, job.run.seed):
            return self._world
        world, files = self._draw_world(job)
        fingerprint = Drawn.of(world, files).fingerprint
        for what, sha256 in (job.fingerprint or {}).items():
            if fingerprint.get(what) != sha256:
                raise ConfigurationError(
                    f"the {what} of seed {job.run.seed} is not the same on every worker: the data files or "
                    f"the libraries of one machine differ"
                )
        return world

    def _draw_world(
        self, job: Job, note: Callable[[str], None] | None = None
    ) -> tuple[World, Mapping[str, Identity]]:
        plan = self._plan(job.run.experiment)
        self._world = self._world_of = None  # free the memory before drawing another
        files = SourceFiles(plan.locate, job.files)
        world = draw_world(plan, job.run.seed, files, note)
        self._world, self._world_of = world, (job.run.experiment, job.run.seed)
        return world, files.identities


class _Reporter:
    """A `Progress` of one run that sends reports to the command.

    Rounds are reported at most every `EVENT_EVERY_S`, and at once for the first evaluated round, since other
    runs may be waiting for it.
    """

    def __init__(self, run: PlannedRun, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._run = run
        self._sent_s = -EVENT_EVERY_S
        self._evaluated = False
        self.notes: list[str] = []

    def drawing(self, run: PlannedRun) -> None:
        """Send nothing: the command itself reports that it has a world drawn."""

    def begun(self, run: PlannedRun) -> None:
        """Send nothing: the command itself reports that a run begins."""

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        self._report(resumed=rounds)

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        is_first = not self._evaluated and reached.accuracy is not None
        self._evaluated = self._evaluated or is_first
        if is_first or self._clock() - self._sent_s >= EVENT_EVERY_S:
            self._sent_s = self._clock()
            self._report(
                rounds=reached.rounds,
                closed_s=reached.closed_s,
                accuracy=reached.accuracy,
                word=reached.word,
                evaluated=self._evaluated,
                peak_bytes=own_peak_bytes(),
            )

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        """Not sent: it follows from the job's result, as do `left`, `skipped` and `failed`."""

    def left(self, run: PlannedRun) -> None: ...

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None: ...

    def failed(self, run: PlannedRun, reason: str) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._report(note=text, number=len(self.notes))

    def _report(self, **content: Any) -> None:
        run = self._run
        self._send({"run": f"{run.experiment}/{run.arm}/{run.seed}", **content})
