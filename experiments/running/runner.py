"""Runs an experiment into a run directory: every (arm, seed) that is not finished there, one after another.

`experiments.jobs` plays several at once, each by `run_one` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol

from emulator.emulation import Observer
from emulator.errors import CheckpointError, EmulatorError, ForeignFileError, ResumableError, RunError
from emulator.storage.runlog import RoundRecord
from executor.ranks import Ranks, Spent
from executor.replicas import ReplicatedExecutor
from experiments.build import (
    World,
    build_emulation,
    build_executor,
    build_world,
    refuse_unfit_arms,
    run_header,
)
from experiments.config import Experiment
from experiments.naming import naming
from experiments.running.attempt import Attempt, Tally
from experiments.running.leftovers import sweep
from experiments.running.locking import RunAtWorkError, seed_locked
from experiments.running.manifest import Drawn, recorded_files, write_manifest
from experiments.running.plan import Plan, PlannedRun, Reached, abbreviated
from experiments.running.replicas import agree_on, lead_to_draw, lead_to_play, leading
from experiments.running.source_files import SourceFiles
from experiments.running.stop import Stop

Outcomes = dict[str, EmulatorError | None]
"""How each experiment of a command ended, by its name."""


class FailedRunsError(RunError):
    """Some runs are marked FAILED; the progress was told of each and of its reason."""


class Progress(Protocol):
    """What is told how far each run has come. Several may be at work at once; the calls come from one thread.

    A run's story is `drawing` (where its clients are not drawn yet), `begun`, `resumed` (where it has a
    checkpoint), `round_done` any number of times, and `done` or `left`. One that was left may begin again,
    with fewer rounds than it had reached, or be `failed`.
    """

    def drawing(self, run: PlannedRun) -> None:
        """The clients of this run's seed are drawn, which takes a while where they are many."""

    def begun(self, run: PlannedRun) -> None:
        """The run is at work, from its first round unless `resumed` follows."""

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """The run goes on from a checkpoint with `rounds` done."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """The run has reached so many rounds: one or more beyond what was last told."""

    def done(self, run: PlannedRun) -> None:
        """The run has finished all its rounds, told or not."""

    def left(self, run: PlannedRun) -> None:
        """The run is no longer at work and not done: it was stopped, lost (maybe before it had begun), or is
        about to be `failed`."""

    def skipped(self, run: PlannedRun) -> None:
        """The run was finished earlier, and is kept."""

    def failed(self, run: PlannedRun, reason: str) -> None:
        """The run cannot go on, and is not tried again."""

    def note(self, text: str) -> None:
        """One line about something that went wrong."""


def run_plan(plan: Plan, progress: Progress, stop: Stop | None = None, ranks: Ranks | None = None) -> None:
    """Run what is not finished, each from its last checkpoint. One that cannot go on is marked FAILED and the
    others still run; FailedRunsError at the end names them. So do they when another process is at work on
    one, which is left alone; RunError at the end names those.

    ResumableError when the machine failed a run, CheckpointError or ForeignFileError when one cannot be
    resumed: no other is tried. KeyboardInterrupt once `stop` was asked for, and the run at hand stored.

    With `ranks`, of which this is rank 0, all of them play each run.
    """
    with nullcontext() if ranks is None else leading(ranks):
        failed = _run_all(plan, progress, stop or Stop(), ranks)
    if failed is not None:
        raise failed


def _run_all(plan: Plan, progress: Progress, stop: Stop, ranks: Ranks | None) -> RunError | None:
    """The error that names the runs that failed, or were left alone."""
    failures: list[PlannedRun] = []
    at_work: list[PlannedRun] = []
    world: World | None = None
    files = SourceFiles(plan.locate, recorded_files(plan.directory))
    tidy(plan, progress)
    for run in plan.runs():
        if plan.is_done(run):
            progress.skipped(run)
            continue
        if world is None or world.streams.seed != run.seed:
            is_first, world = world is None, None  # the last one is let go before the next is drawn
            progress.drawing(run)
            with _told_if_left(run, progress):
                if ranks is not None:
                    lead_to_draw(ranks, plan.experiment, run.seed)
                world = draw_world(plan, run.seed, files, check_arms=is_first)
                if ranks is not None:
                    agree_on(ranks, world)
                write_manifest(plan.directory, Drawn.of(world, files.identities))
        try:
            with stop.between_steps() if ranks is None else nullcontext():
                reason = run_one(plan, run, world, progress, stop, ranks=ranks)
        except RunAtWorkError:
            at_work.append(run)
            continue
        if reason is not None:
            progress.failed(run, reason)
            failures.append(run)
    if at_work and not failures:
        return RunError(
            f"{plan.directory.path}: other processes are at work on {len(at_work)} of {len(plan.runs())} "
            f"runs ({_run_names(at_work)}); give the command again when they have ended"
        )
    return failed_runs(plan, failures)


def tidy(plan: Plan, progress: Progress) -> None:
    """Delete what killed processes have left in the run directory, before anything is played into it."""
    directory = plan.directory
    if directory.begun_pairs() and directory.manifest() is None:
        progress.note(
            f"{directory.path}: without its {directory.manifest_path.name} nobody knows which files the runs "
            f"in it were begun with; they are taken to be those of today"
        )
    sweep(directory, progress.note)


def draw_world(plan: Plan, seed: int, files: SourceFiles, *, check_arms: bool) -> World:
    """The world of one seed. ConfigurationError where it cannot be drawn, or, if `check_arms`, an arm cannot
    be put together in it: that shows before anything trains."""
    with naming(plan.file):
        world = build_world(plan.experiment, seed, files, plan.directory.path)
        if check_arms:
            refuse_unfit_arms(plan.experiment, plan.arms, world)
    return world


def failed_runs(plan: Plan, failures: Sequence[PlannedRun]) -> FailedRunsError | None:
    """The error that names the runs marked FAILED, if there are any."""
    if not failures:
        return None
    return FailedRunsError(
        f"{len(failures)} of {len(plan.runs())} runs failed ({_run_names(failures)}); finished runs are kept "
        f"in {plan.directory.path}"
    )


def run_one(
    plan: Plan,
    run: PlannedRun,
    world: World,
    progress: Progress,
    stop: Stop,
    *,
    ranks: Ranks | None = None,
    lost: int = 0,
    beside: Callable[[], int] = lambda: 0,
    when_locked: Callable[[], None] = lambda: None,
) -> str | None:
    """Run one (arm, seed) under its lock: None when it is DONE, or why it is marked FAILED.

    RunAtWorkError where another process is at work on it, and the errors of `_run_to_end`.

    Args:
        ranks: Those that play it together, of which this is rank 0.
        lost: Workers that were lost over it before.
        beside: How many other runs were at work on this machine at once, at most.
        when_locked: Called once the lock is held, before anything is touched; may raise.
    """
    with seed_locked(plan.directory, run.arm, run.seed):
        when_locked()
        if plan.is_done(run):  # by a process that was at work on it until now
            progress.skipped(run)
            return None
        try:
            with nullcontext() if ranks is None else ranks.telling(ends=False):
                _run_to_end(plan, run, world, progress, stop, ranks, lost, beside)
        except (ResumableError, CheckpointError, ForeignFileError):
            raise
        except EmulatorError as error:
            plan.directory.mark_failed(run.arm, run.seed, str(error))
            return str(error)
    return None


def _run_to_end(
    plan: Plan,
    run: PlannedRun,
    world: World,
    progress: Progress,
    stop: Stop,
    ranks: Ranks | None,
    lost: int,
    beside: Callable[[], int],
) -> None:
    """Run one (arm, seed) to DONE, from its last checkpoint or from its first round.

    ResumableError where the machine has no room or memory for it, CheckpointError where it is not to be gone
    on with, KeyboardInterrupt where `stop` was asked for.
    """
    arm = plan.experiment.find_arm(run.arm)
    local = build_executor(plan.experiment, arm, world)
    executor = local if ranks is None else ReplicatedExecutor(local, ranks)
    agreed = stop if ranks is None else ranks
    attempt = Attempt(
        plan.directory,
        run.arm,
        run.seed,
        plan.experiment.checkpoint,
        header=run_header(plan.experiment, arm, world, executor),
        build=lambda log, observers, stopwatch: build_emulation(
            plan.experiment, arm, world, executor, log, observers, stopwatch
        ),
        observer=_progress_observer(run, progress),
        halved=lambda: executor.halved_groups,
        lost=lost,
        other_ranks=lambda: Spent() if ranks is None else ranks.others,
        runs_beside=beside,
        note=progress.note,
    )
    progress.begun(run)
    try:
        with _told_if_left(run, progress), attempt:
            if attempt.stored is not None:
                progress.resumed(run, attempt.stored)
            if ranks is not None:
                state = None if attempt.stored is None else attempt.emulation.state()
                lead_to_play(ranks, run.arm, state)
            for _ in attempt.emulation.steps():
                if agreed.asked or attempt.is_due:
                    attempt.store()
                if agreed.asked:
                    raise KeyboardInterrupt
            _refuse_empty(attempt.tally, plan.experiment)
            plan.directory.mark_done(run.arm, run.seed, attempt.finish())
    except (OSError, MemoryError, ResumableError) as error:
        last = attempt.stored
        how = "begins again" if last is None else f"goes on from its last checkpoint, round {last},"
        raise ResumableError(
            f"{run.arm}, seed {run.seed} stopped in round {attempt.tally.rounds}: {_machine_problem(error)}. "
            f"It {how} when the command is given again"
        ) from error
    progress.done(run)
    _note_faults(attempt, run, progress)


def _progress_observer(run: PlannedRun, progress: Progress) -> Observer:
    """An observer that tells `progress` how far `run` has come."""
    accuracy: float | None = None

    def report(record: RoundRecord) -> None:
        nonlocal accuracy
        if record.accuracy is not None:
            accuracy = record.accuracy
        progress.round_done(run, Reached(record.round + 1, record.closed_s, accuracy))

    return report


@contextmanager
def _told_if_left(run: PlannedRun, progress: Progress) -> Iterator[None]:
    """Tells `progress` that `run` was left where an exception, a stop included, ends what is within."""
    try:
        yield
    except BaseException:
        progress.left(run)
        raise


def _refuse_empty(tally: Tally, experiment: Experiment) -> None:
    """RunError when nothing was learnt in the whole run."""
    if tally.fruitful > 0:
        return
    rounds = f"no update was absorbed in any of {tally.rounds} rounds"
    if tally.rejected > 0:
        fewer = " or fewer faults.corrupt" if experiment.faults.corrupt > 0 else ""
        raise RunError(
            f"training diverged: {rounds}, {tally.rejected} times clients sent some that were not finite; a "
            f"lower training.learning_rate{fewer} may help"
        )
    raise RunError(
        f"{rounds}: every visit was dropped, as its client went offline or crashed, or abandoned; give "
        f"clients more time (devices.availability, the pacing, faults.crash), or less to do"
    )


def _note_faults(attempt: Attempt, run: PlannedRun, progress: Progress) -> None:
    """What did not end the run and should still be known."""
    name, tally = f"{run.arm}, seed {run.seed}", attempt.tally
    if tally.rejected:
        progress.note(
            f"{name}: {tally.rejected} times clients sent updates that were not finite; they were left out "
            f"(see `rejected` in its log)"
        )
    if tally.halved_cohorts:
        progress.note(
            f"{name}: {tally.halved_cohorts} cohorts were trained in halves, for want of memory; that may "
            f"have changed results by rounding"
        )


def _machine_problem(error: OSError | MemoryError | ResumableError) -> str:
    """One line: the file and what is wrong with it, or what there was no memory for."""
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error or type(error).__name__}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error})" if str(error) else "out of memory"
    return str(error)


def _run_names(runs: Sequence[PlannedRun]) -> str:
    return abbreviated([f"{run.arm}, seed {run.seed}" for run in runs])
