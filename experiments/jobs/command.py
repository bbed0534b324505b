"""The command's side of parallel runs: dynamic load balancing over workers, until all runs have ended.

A worker takes the next job when it has finished one. Only the command writes manifests, reports progress and
makes results. Knows no cluster: workers are a `WorkerPool`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from emulator.errors import ConfigurationError, EmulatorError, ResumableError
from executor.failures import unpacked_error
from experiments.jobs.admission import Admission
from experiments.jobs.order import RunQueue, World, world_of
from experiments.jobs.pool import MOST_LOST, Ended, Facts, Met, Told, WorkerPool
from experiments.jobs.workers import MEET_AGAIN_S, Worker, Workers
from experiments.jobs.workplace import Job, JobResult
from experiments.results.reading.json_files import Identity
from experiments.running.manifest import Drawn, recorded_files, write_manifest
from experiments.running.plan import Plan, PlannedRun, Reached
from experiments.running.runner import Outcomes, Progress, failed_runs, tidy
from experiments.running.stop import Stop

LOOK_S = 0.2
"""Maximum wall seconds until a stop request is noticed."""

MET_S = 15.0
"""Maximum wall seconds that the first run waits until all workers that are present have responded.

Also the wall seconds without any worker after which the user is told.
"""

COME_S = 30.0
"""Minimum wall seconds to wait for a worker before giving up: processes start slowly on a busy machine."""


def run_in_parallel(
    plans: Sequence[Plan],
    pool: WorkerPool,
    progress: Progress,
    stop: Stop,
    finish: Callable[[Plan], None] = lambda plan: None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcomes:
    """Run the unfinished runs of all plans in parallel, as many at once as workers and memory allow.

    An error that would affect all experiments is raised, once the runs at work are stored. Any other error
    ends its experiment alone.

    Args:
        plans: The plans, of experiments with different names.
        pool: The workers.
        progress: Receives reports on each run.
        stop: Stop request; all runs at work are stored before the command ends.
        finish: Called for each plan when its last run has ended, or when the command ends early.
        clock: Wall time in seconds.

    Returns:
        How each experiment ended, by name: None, or its error (a changed file, a checkpoint that cannot be
        resumed, runs that are FAILED).

    Raises:
        ResumableError: A machine failed a run, a run has cost `MOST_LOST` workers, no worker came, or the
            cluster is gone.
        OSError: A file could not be read or written, outside of a run.
        ConfigurationError: A worker cannot play the runs; only before the first world is recorded.
        KeyboardInterrupt: A stop was requested.
        Exception: A mistake in a part, or in driftscale.
    """
    command = _Command(plans, pool, progress, finish, clock)
    with stop.between_steps():
        command.play(stop)
    return command.outcomes


@dataclass
class _PlanState:
    """The progress of a plan: `left` are its unfinished runs, `failures` those that failed in this command.

    `files` has the identities of the data files of its worlds, by path.
    """

    plan: Plan
    files: dict[str, Identity]
    left: set[PlannedRun]
    failures: list[PlannedRun] = field(default_factory=list)
    is_checked: bool = False  # whether all its arms have been built, with its first world
    has_begun: bool = False  # whether this command has begun a run of it


class _Command:
    def __init__(
        self,
        plans: Sequence[Plan],
        pool: WorkerPool,
        progress: Progress,
        finish: Callable[[Plan], None],
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._progress = progress
        self._finish = finish
        self._clock = clock
        self._plans: dict[str, _PlanState] = {}
        waiting: list[PlannedRun] = []
        self.outcomes: Outcomes = {}
        for plan in plans:
            name, files = plan.experiment.name, {}
            try:
                tidy(plan, progress)
                files = recorded_files(plan.directory)
            except ResumableError:
                raise
            except EmulatorError as error:
                self.outcomes[name] = error
            left = []
            for run in plan.runs() if name not in self.outcomes else ():
                if plan.is_kept(run):
                    progress.skipped(run, plan.directory.until(run.arm, run.seed))
                else:
                    left.append(run)
            waiting += left
            self._plans[name] = _PlanState(plan, files, set(left))
        self._queue = RunQueue(waiting)
        peaks: dict[tuple[str, str], float] = {}
        for plan in plans:
            for run, timing in plan.earlier().items():
                self._queue.took(run, timing.wall_s)
                if timing.peak_memory_bytes is not None:
                    peaks[run.experiment, run.arm] = timing.peak_memory_bytes
        self._admission = Admission({}, peaks)
        self._workers = Workers(pool, clock)
        self._fingerprints: dict[World, Mapping[str, str]] = {}
        self._lost: dict[PlannedRun, int] = {}
        self._held_until: dict[PlannedRun, float] = {}
        self._error: BaseException | None = None
        self._stopping = False
        self._noted: set[str] = set()
        self._has_news = True
        self._start_s = self._handed_out_s = self._clock()
        self._alone_since: float | None = None

    # -- the loop ----------------------------------------------------------------------------------------

    def play(self, stop: Stop) -> None:
        """Main loop: until no job is at work, and no run is left to begin or a stop was requested.

        Raises the first of the errors that would affect all experiments, if there was one.
        """
        for name in self._plans:
            self._conclude(name)
        while self._workers.at_work() or (self._queue and not self._stopping):
            # Step 1: pass a stop request on to the workers.
            self._heed(stop)
            # Step 2: give runs to free workers.
            if not self._stopping:
                self._workers.welcome()
                self._hand_out_if_due()
                self._wait_for_workers()
            # Step 3: handle the events since then.
            event = self._pool.next_event(LOOK_S)
            while event is not None:
                self._has_news = True
                self._heed(stop)
                self._handle(event)
                event = self._pool.next_event(0.0)
            # Step 4: give up silent workers.
            self._replace_silent()
        for name, state in self._plans.items():  # experiments that were stopped half-way have results too
            if name not in self.outcomes and state.has_begun:
                with suppress(OSError, EmulatorError):  # the disk may be what is full
                    self._finish(state.plan)
        if self._error is not None:
            raise self._error

    def _admit(self, address: str, facts: Facts | None) -> None:
        """Handle a worker's response: it is ready for runs if it is free and fit for the runs.

        Raises ConfigurationError if it is not fit, and no world is recorded yet.
        """
        is_free = self._workers.responded(address, facts)
        if facts is not None and self._workers.is_busy(address):
            at_what = (
                "leaves the cluster"
                if facts.is_leaving
                else "is busy with a run of another command until that ends"
            )
            self._note_once(f"{facts.name} {at_what}")
        if not is_free:
            return
        assert facts is not None
        refusal = facts.refusal
        if refusal is None and (known := self._known_files()):
            refusal = self._pool.check_files([address], known)
        if refusal is not None:
            self._refuse(refusal)
            return
        self._tell_of_rounding(facts)
        self._admission.joins(facts.machine, facts.available_bytes)
        self._workers.ready[address] = Worker(facts)

    def _refuse(self, refusal: str) -> None:
        """Note that a worker cannot play these runs and is left out.

        Raises ConfigurationError instead if no world is recorded yet.
        """
        if not self._fingerprints:
            raise ConfigurationError(refusal)
        self._note_once(f"{refusal}; it is left out")

    def _hand_out_if_due(self) -> None:
        """Give runs to free workers after each event, and every `MEET_AGAIN_S` for runs that were held.

        At the start, wait until all present workers have responded (at most `MET_S`), so that a worker
        that cannot play is found before any run is played.
        """
        if self._workers.is_waiting and not self._fingerprints and self._clock() - self._start_s < MET_S:
            return
        if self._has_news or self._clock() - self._handed_out_s >= MEET_AGAIN_S:
            self._has_news, self._handed_out_s = False, self._clock()
            self._hand_out()

    def _hand_out(self) -> None:
        for address, worker in self._workers.free():
            run = self._pick(address, worker)
            if run is not None:
                self._begin(address, worker, run)

    def _pick(self, address: str, worker: Worker) -> PlannedRun | None:
        """The next run for a free worker; None if no waiting run may begin there now."""
        drawn_elsewhere = {
            other.world for at, other in self._workers.ready.items() if at != address and other.world
        }
        now_s, machine = self._clock(), worker.facts.machine
        for run in self._queue.runs_for(worker.world, drawn_elsewhere, self._may_begin):
            if self._held_until.get(run, 0.0) > now_s:
                continue
            if self._admission.admits(run, machine):
                return run
            held_back = self._admission.held_back(run, machine)
            if held_back is not None and machine not in self._noted:
                self._noted.add(machine)
                self._progress.note(held_back)
        return None

    def _may_begin(self, world: World) -> bool:
        """Whether a run in `world` may begin now: no two workers may draw the same world at once.

        Of an experiment that is not checked yet, only one world is drawn at a time.
        """
        jobs = [worker.job for worker in self._workers.ready.values() if worker.job is not None]
        drawing = {world_of(job.run) for job in jobs if job.is_draw}
        if world in drawing:
            return False
        name, _ = world
        return self._plans[name].is_checked or all(name != other for other, _ in drawing)

    def _begin(self, address: str, worker: Worker, run: PlannedRun) -> None:
        self._queue.take(run)
        self._admission.begins(run, worker.facts.machine)
        state = self._plans[run.experiment]
        state.has_begun = True
        if world_of(run) in self._fingerprints:
            self._play(address, worker, run)
            return
        self._progress.drawing(run)
        self._give(
            address, worker, Job(run, is_draw=True, files=state.files, check_arms=not state.is_checked)
        )

    def _play(self, address: str, worker: Worker, run: PlannedRun) -> None:
        worker.world, machine = world_of(run), worker.facts.machine
        playing = [at for at, other in self._workers.ready.items() if at != address and other.is_playing]
        beside = [at for at in playing if self._workers.ready[at].facts.machine == machine]
        job = Job(
            run,
            is_draw=False,
            files=self._plans[run.experiment].files,
            fingerprint=self._fingerprints[worker.world],
            lost=self._lost.get(run, 0),
            beside=len(beside),
        )
        self._progress.begun(run)
        self._give(address, worker, job)
        if beside:
            self._pool.runs_beside(beside, len(beside))

    def _give(self, address: str, worker: Worker, job: Job) -> None:
        worker.job, worker.notes_shown = job, 0
        self._pool.begin(address, job)

    # -- what happened -----------------------------------------------------------------------------------

    def _handle(self, event: Told | Ended | Met) -> None:
        if isinstance(event, Met):
            if not self._stopping:
                self._admit(event.address, event.facts)
            return
        worker = self._workers.ready.get(event.address)
        if worker is None or worker.job is None:
            return  # from a worker that was given up meanwhile
        if isinstance(event, Told):
            self._handle_report(worker, worker.job.run, event.body)
        elif event.job is worker.job:
            self._end(event.address, worker, event.job, event.result, event.why)

    def _handle_report(self, worker: Worker, run: PlannedRun, body: Mapping[str, object]) -> None:
        if body["run"] != f"{run.experiment}/{run.arm}/{run.seed}":
            return  # a late report on the run before
        match body:
            case {"note": str(text), "number": int(number)}:
                self._note(worker, text, number)
            case {"resumed": int(rounds)}:
                self._progress.resumed(run, rounds)
            case {"rounds": int(rounds), "closed_s": float(closed_s), "accuracy": accuracy}:
                assert accuracy is None or isinstance(accuracy, float)
                word = str(body.get("word", "accuracy"))
                self._progress.round_done(run, Reached(rounds, closed_s, accuracy, word))
                peak_bytes = body["peak_bytes"]
                assert isinstance(peak_bytes, float)
                self._admission.saw(run, peak_bytes, evaluated=bool(body["evaluated"]))

    def _note(self, worker: Worker, text: str, number: int) -> None:
        """Show each note once: it comes as an event, and again with the job's result."""
        if number > worker.notes_shown:
            worker.notes_shown = number
            self._progress.note(text)

    def _end(self, address: str, worker: Worker, job: Job, result: JobResult | None, why: str = "") -> None:
        """Handle the end of a job with `result`; if it is None, the worker was lost, for the reason `why`.

        A worker that has drawn a world plays the run next, unless the command or the experiment is ending.
        """
        worker.job, run = None, job.run
        if result is None:
            self._admission.ends(run)
            self._progress.left(run)
            self._lose(address, run, why)
        else:
            for number, note in enumerate(result["notes"], start=1):
                self._note(worker, note, number)
            if result["end"] == "drawn":
                self._record(worker, run, Drawn(**result["drawn"]))
                if not self._stopping and run.experiment not in self.outcomes:
                    self._play(address, worker, run)
                    return
            self._handle_result(address, worker, run, result)
        self._conclude(run.experiment)

    def _handle_result(self, address: str, worker: Worker, run: PlannedRun, result: JobResult) -> None:
        """Handle the result of a job whose run does not begin next on the same worker."""
        state = self._plans[run.experiment]
        if result["end"] == "done":
            self._admission.ends(run, result["peak_memory_bytes"])
            self._queue.took(run, result["wall_s"])
            failed = result.get("failed", [])
            state.failures += [run.of([arm]) for arm in failed]
            done = next(arm for arm in run.arms if arm not in failed)
            self._progress.done(run, state.plan.directory.until(done, run.seed))
            state.left.discard(run)
            return
        self._admission.ends(run)
        self._progress.left(run)
        match result["end"]:
            case "drawn":  # the command or the experiment has ended meanwhile
                self._put_back(run)
            case "failed":
                self._progress.failed(run, result["why"])
                state.failures += [run.of([arm]) for arm in run.arms]
                state.left.discard(run)
            case "held":
                self._note_once(f"{result['why']}; it is tried again until that has ended")
                self._held_until[run] = self._clock() + MEET_AGAIN_S
                self._put_back(run)
            case "stopped":
                if not self._stopping and run.experiment not in self.outcomes:  # its machine shuts down
                    self._progress.note(f"{run.title}: stored by {worker.facts.name}, for another worker")
                self._put_back(run)
                self._workers.forget(address)
            case "error":
                self._fail(run, unpacked_error(result["error"], f"at {worker.facts.name}"))

    def _record(self, worker: Worker, run: PlannedRun, drawn: Drawn) -> None:
        """Record a world in the manifest: only then may a run in it store anything.

        With the first world of an experiment, the data files of all other workers are checked. An error ends
        the experiment, or all experiments if it would affect them too.
        """
        state = self._plans[run.experiment]
        try:
            plan = state.plan
            write_manifest(plan.directory, drawn, command=plan.command, cell=plan.cell)
            state.files |= drawn.files
            if not state.is_checked:
                other_addresses = [at for at, other in self._workers.ready.items() if other is not worker]
                refusal = self._pool.check_files(other_addresses, {run.experiment: state.files})
                if refusal is not None:
                    raise ConfigurationError(refusal)
        except (EmulatorError, OSError) as error:
            self._fail(run, error)
            return
        state.is_checked = True
        self._fingerprints[world_of(run)] = drawn.fingerprint
        worker.world = world_of(run)

    def _put_back(self, run: PlannedRun) -> None:
        """Let the run wait again, unless its experiment has ended."""
        if run.experiment not in self.outcomes:
            self._queue.put_back(run)

    def _lose(self, address: str, run: PlannedRun, why: str) -> None:
        """Remove a lost worker, and let its run wait for another one.

        If the run has cost `MOST_LOST` workers, the command ends.
        """
        self._workers.lose(address)
        self._lost[run] = lost = self._lost.get(run, 0) + 1
        if self._stopping or run.experiment in self.outcomes:
            return
        self._pool.addresses()  # ResumableError if the whole cluster is lost, not only this worker
        name = run.title
        if lost < MOST_LOST:
            self._progress.note(f"{name}: its worker was lost ({why}); resuming from its last checkpoint")
            self._put_back(run)
            return
        self._end_all(
            ResumableError(
                f"{name}: {lost} workers were lost over it, the last one: {why}; where memory is short take "
                f"fewer --jobs, and where a worker is silent for longer than executor.worker_timeout_s raise "
                f"that. It resumes from its last checkpoint when the command is given again"
            )
        )

    def _fail(self, run: PlannedRun, error: BaseException) -> None:
        """End the experiment of a run that met `error`, or all experiments if the error would affect all."""
        if not isinstance(error, EmulatorError) or isinstance(error, ResumableError):
            self._end_all(error)
            return
        self.outcomes.setdefault(run.experiment, error)
        self._queue.drop(run.experiment)
        self._pool.stop(self._workers.at_work(run.experiment))

    def _end_all(self, error: BaseException) -> None:
        """Begin no other run, and stop those at work; `play` raises the first error."""
        self._error = self._error or error
        if not self._stopping:
            self._stop_all()

    def _heed(self, stop: Stop) -> None:
        if stop.stop_requested and not self._stopping:
            self._stop_all()

    def _stop_all(self) -> None:
        self._stopping = True
        self._pool.stop(self._workers.at_work())

    def _conclude(self, name: str) -> None:
        """Finish an experiment if it has no run at work, and none left to begin."""
        state = self._plans[name]
        if self._workers.at_work(name) or (state.left and name not in self.outcomes):
            return
        if name not in self.outcomes:
            order = {pair: place for place, pair in enumerate(state.plan.pairs())}
            failures = sorted(state.failures, key=lambda run: order[run.arm, run.seed])
            self.outcomes[name] = failed_runs(state.plan, failures)
        try:
            self._finish(state.plan)
        except EmulatorError as error:
            self.outcomes[name] = self.outcomes[name] or error
        except OSError as error:
            self._end_all(error)

    # -- workers that are silent, or not there ---------------------------------------------------------------

    def _replace_silent(self) -> None:
        for address in self._workers.at_work():
            worker, silent_s = self._workers.ready[address], self._pool.silent_s(address)
            assert worker.job is not None
            limit_s = self._plans[worker.job.run.experiment].plan.experiment.executor.worker_timeout_s
            if silent_s > limit_s:
                self._pool.replace(address)
                self._end(address, worker, worker.job, None, f"it gave no sign of life for {silent_s:.0f} s")

    def _wait_for_workers(self) -> None:
        """End the command after too long a time without any worker.

        That is the longest `worker_timeout_s` of the experiments, and at least `COME_S`.
        """
        if not (self._workers.is_empty and self._queue):
            self._alone_since = None
            return
        now_s = self._clock()
        self._alone_since = now_s if self._alone_since is None else self._alone_since
        silences_s = [state.plan.experiment.executor.worker_timeout_s for state in self._plans.values()]
        limit_s = max(COME_S, *silences_s)
        limit = f"{limit_s:g} s" + (" (executor.worker_timeout_s)" if limit_s > COME_S else "")
        if now_s - self._alone_since > MET_S:
            self._note_once(f"no worker is present; waiting up to {limit} for one")
        if now_s - self._alone_since > limit_s:
            self._end_all(
                ResumableError(f"no worker came within {limit}; start some, and give the same command again")
            )

    def _known_files(self) -> dict[str, dict[str, Identity]]:
        return {name: state.files for name, state in self._plans.items() if state.is_checked}

    def _tell_of_rounding(self, facts: Facts) -> None:
        """Note once that results may differ by rounding, if a worker differs from the first one."""
        for worker in list(self._workers.ready.values())[:1]:
            if facts.rounding != worker.facts.rounding:
                theirs, ours = _listed(facts.rounding), _listed(worker.facts.rounding)
                text = f"{facts.name} has {theirs}, {worker.facts.name} {ours}"
                self._note_once(f"{text}: results may differ by rounding", key="rounding")

    def _note_once(self, text: str, key: str | None = None) -> None:
        """Note `text`, unless a note with this `key` (by default the text itself) has been made."""
        if (key or text) not in self._noted:
            self._noted.add(key or text)
            self._progress.note(text)


def _listed(rounding: Mapping[str, str] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (rounding or {}).items())
