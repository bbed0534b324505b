"""Runs an experiment into a run directory: every unfinished (arm, seed), one after another.

`experiments.jobs` plays several at once, each by `run_one`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Protocol

from coordinator.adaptations import ADAPTATIONS
from coordinator.clusterers import CLUSTERERS
from coordinator.coordinator import Coordinator
from coordinator.federation import Federation
from coordinator.federation.evaluation.uses import Use, UseError
from coordinator.late_imports import import_late_modules
from emulator.emulation import Emulation, Log, Observer
from emulator.errors import (
    CheckpointError,
    ConfigurationError,
    EmulatorError,
    ForeignFileError,
    ResumableError,
    RunError,
    abbreviated,
    naming,
)
from emulator.own.code import OwnCodeError, before_any_run
from emulator.storage.checkpoints import write_durably
from emulator.storage.runlog import RoundRecord
from executor.executor import LocalExecutor
from executor.ranks import Ranks, Spent
from executor.replicas import ReplicatedExecutor
from experiments.build import (
    World,
    build_emulation,
    build_executor,
    build_world,
    device_factors,
    objective_of,
    run_header,
)
from experiments.checks.arms import check_arms, late_reporting
from experiments.checks.seeds import check_seeds
from experiments.config import MOST_KEPT_BYTES, Arm, Experiment, Round
from experiments.own.parts import own_parts
from experiments.own.trial import try_arms, try_world
from experiments.own.watch import Watch
from experiments.reference import build_measuring, build_reference
from experiments.results.reading.json_files import Until
from experiments.running.attempt import Attempt, Build, P, Tally
from experiments.running.leftovers import delete_leftovers
from experiments.running.locking import RunAtWorkError, seed_locked
from experiments.running.manifest import Drawn, recorded_files, write_manifest
from experiments.running.plan import Plan, PlannedRun, Reached
from experiments.running.replicas import agree_on, lead_to_draw, lead_to_play, leading, replicated
from experiments.running.source_files import SourceFiles
from experiments.running.stop import Stop
from experiments.running.together import Together
from experiments.stopwatch import Stopwatch
from experiments.tracking.live import LiveTracking

Outcomes = dict[str, EmulatorError | None]
"""How each experiment of a command ended, by name: None for success, or its error."""


class FailedRunsError(RunError):
    """Some runs are marked FAILED; each was reported by `Progress.failed`, with its reason."""


class Progress(Protocol):
    """Receives reports on the progress of runs.

    Several runs may be at work at once; all calls are made in one thread. The calls for a run are, in this
    order: `drawing` (only if its world is not drawn yet), `begun`, `resumed` (only if it has a checkpoint),
    any number of `round_done`, then `done` or `left`. A run that was left may begin again, with fewer rounds
    than it had reached, or be reported as `failed`. A run that is already finished is reported as `skipped`.
    """

    def drawing(self, run: PlannedRun) -> None:
        """Take note that the world of the run's seed is being drawn; it takes a while with many clients."""

    def begun(self, run: PlannedRun) -> None:
        """Take note that the run is at work: from its first round, unless `resumed` is called next."""

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Take note that the run resumes from a checkpoint with `rounds` done."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """Take note of how far the run has come, one or more rounds after the last report."""

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        """Take note that the run has finished all its rounds, or those `until` it was to stop.

        They include any that were not reported.
        """

    def left(self, run: PlannedRun) -> None:
        """Take note that the run is no longer at work, and not done.

        It was stopped or lost (maybe before it had begun), or will be reported as `failed` next.
        """

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None:
        """Take note that the run was already finished, or stopped as in `done`, and is kept."""

    def failed(self, run: PlannedRun, reason: str) -> None:
        """Take note that the run has failed for `reason`, and is not tried again by this command."""

    def note(self, text: str) -> None:
        """Show a line to the user, about something that went wrong."""


def run_plan(plan: Plan, progress: Progress, stop: Stop | None = None, ranks: Ranks | None = None) -> None:
    """Run the unfinished runs of `plan`, each from its last checkpoint, one after another.

    A run that fails is marked FAILED, and a run that another process is at work on is left alone; the others
    are still run.

    Args:
        plan: The runs, and the run directory.
        progress: Receives reports on each run.
        stop: Stop request; the run at work is stored before the command ends. None if nobody requests one.
        ranks: The ranks that play each run together, of which this is rank 0. None: this process plays alone.

    Raises:
        FailedRunsError: Runs have failed; raised at the end, names them.
        RunError: Other processes are at work on runs; raised at the end, if none has failed, names them.
        ResumableError: The machine failed a run; none is begun after it.
        CheckpointError: A run has an intact checkpoint that cannot be resumed; none is begun after it.
        ForeignFileError: A file of a run is a link or another kind of file; none is begun after it.
        ConfigurationError: A world or an arm cannot be built, or a world differs from that of earlier runs.
        DataFileError: A data file is damaged or has changed since earlier runs, or the manifest is damaged.
        KeyboardInterrupt: A stop was requested.
    """
    with nullcontext() if ranks is None else leading(ranks):
        failed = _run_all(plan, progress, stop or Stop(), ranks)
    if failed is not None:
        raise failed


def _run_all(plan: Plan, progress: Progress, stop: Stop, ranks: Ranks | None) -> RunError | None:
    """Play all unfinished runs of the plan.

    Returns an error that names the runs that failed or, if none did, those left alone; None without any.
    """
    failures: list[PlannedRun] = []
    at_work: list[PlannedRun] = []
    world: World | None = None
    files = SourceFiles(plan.locate, recorded_files(plan.directory))
    tidy(plan, progress)
    for run in plan.runs():
        if plan.is_kept(run):
            progress.skipped(run, plan.directory.until(run.arm, run.seed))
            continue
        if world is None or world.streams.seed != run.seed:
            is_first, world = world is None, None  # free the last one before drawing the next
            progress.drawing(run)
            with _reporting_left(run, progress):
                if ranks is not None:
                    lead_to_draw(ranks, plan.experiment, run.seed)
                world = draw_world(plan, run.seed, files, progress.note if is_first else None)
                if ranks is not None:
                    agree_on(ranks, world)
                drawn = Drawn.of(world, files.identities)
                write_manifest(plan.directory, drawn, command=plan.command, cell=plan.cell)
        try:
            with stop.between_steps() if ranks is None else nullcontext():
                failed = run_one(plan, run, world, progress, stop, ranks=ranks)
        except RunAtWorkError:
            at_work.append(run)
            continue
        if len(failed) == len(run.arms):
            progress.failed(run, told(failed))
        failures += [run.of([arm]) for arm in failed]
    if at_work and not failures:
        return RunError(
            f"{plan.directory.path}: other processes are at work on {_num_arms(at_work)} of "
            f"{_num_arms(plan.runs())} runs ({_run_names(at_work)}); give the command again when they have "
            f"ended"
        )
    return failed_runs(plan, failures)


def tidy(plan: Plan, progress: Progress) -> None:
    """Delete files that killed processes have left in the run directory. Call before any run begins.

    Args:
        plan: Its run directory is tidied.
        progress: Receives a note on each run that is left alone since a process is at work on it, and one if
            the manifest is missing.

    Raises:
        DataFileError: The manifest is damaged.
    """
    directory = plan.directory
    if directory.resumable_pairs() and directory.manifest() is None:
        progress.note(
            f"{directory.path}: {directory.manifest_path.name} is missing, so it is unknown which files its "
            f"runs were begun with; they are assumed to be the present ones"
        )
    delete_leftovers(directory, progress.note)


def draw_world(plan: Plan, seed: int, files: SourceFiles, note: Callable[[str], None] | None = None) -> World:
    """Draw the world of one seed.

    Args:
        plan: The configuration and the run directory, in which the file of a large trace is laid out.
        seed: The seed.
        files: Locates and records the data files.
        note: Receives warnings of a check of every arm, and of the seeds of all unfinished runs, to find
            errors before anything trains; None: do not check.

    Raises:
        ConfigurationError: The world, or an arm in it, cannot be built; or, if checked, that of a later seed.
        DataFileError: A data file is damaged, or has changed since earlier runs.
    """
    with naming(plan.file), before_any_run():
        world = build_world(plan.experiment, seed, files, plan.directory.path)
        plan.record_code(files)
        if note is not None:
            check_arms(plan.experiment, plan.arms, world)
            seeds = {run.seed for run in plan.runs() if not plan.is_kept(run)}
            late = late_reporting(plan.experiment, plan.arms)
            for warning in check_seeds(plan.experiment, late, seeds, world, files, plan.directory.path):
                note(warning)
            if untried := plan.untried():
                try_world(plan.experiment, world, files, plan.directory.path)
                for warning in try_arms(plan.experiment, untried, world):
                    note(warning)
    return world


def told(reasons: Mapping[str, str]) -> str:
    """The reasons for which all arms of a run have failed, as one: mostly it is the same."""
    return "; ".join(dict.fromkeys(reasons.values()))


def failed_runs(plan: Plan, failures: Sequence[PlannedRun]) -> FailedRunsError | None:
    """The error that names `failures`, the runs marked FAILED; None if there are none."""
    if not failures:
        return None
    return FailedRunsError(
        f"{len(failures)} of {_num_arms(plan.runs())} runs failed ({_run_names(failures)}); finished runs "
        f"are kept in {plan.directory.path}"
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
    has_threads: bool = False,
) -> Mapping[str, str]:
    """Run one (arm, seed), and the other arms that its training serves, under their locks.

    Each goes on from its last checkpoint, or from its first round.

    Args:
        plan: The configuration and the run directory.
        run: The run to play.
        world: The world of its seed.
        progress: Receives reports on the run.
        stop: Stop request; the run is stored after its present step.
        ranks: The ranks that play the run together, of which this is rank 0. None: this process plays alone.
        lost: Number of workers that this command has lost while they played the run.
        beside: Returns the maximum number of other runs at work on this machine at once so far.
        when_locked: Called once the locks are held, before any file is touched; may raise.
        has_threads: Whether this process has threads that may draw from global generators themselves.

    Returns:
        By arm that is marked FAILED, the reason; the others are DONE, or stopped as --until says.

    Raises:
        RunAtWorkError: Another process is at work on one of them.
        ResumableError: The machine failed the run: no memory, no space, or a file that cannot be used.
        CheckpointError: The run has an intact checkpoint that cannot be resumed.
        ForeignFileError: A file of the run is a link or another kind of file.
        KeyboardInterrupt: A stop was requested; the run is stored.
    """
    directory, seed, until = plan.directory, run.seed, plan.until
    failed: dict[str, str] = {}
    with ExitStack() as locks:
        for arm in run.arms:
            locks.enter_context(seed_locked(directory, arm, seed))
        when_locked()
        left = [arm for arm in run.arms if not directory.is_kept(arm, seed, until)]
        if not left:  # another process has played them, while we waited for the locks
            progress.skipped(run, directory.until(run.arm, seed))
            return failed
        while left:
            reasons, left = _play_some(
                plan, run, left, world, progress, stop, ranks, lost, beside, has_threads
            )
            for arm, reason in reasons.items():
                directory.mark_failed(arm, seed, reason)
            failed |= reasons
    if len(failed) < len(run.arms):
        for arm, reason in failed.items():
            progress.note(f"{arm}, seed {seed} failed: {reason}")
        progress.done(run, next(directory.until(arm, seed) for arm in run.arms if arm not in failed))
    return failed


def _play_some(
    plan: Plan,
    run: PlannedRun,
    arms: Sequence[str],
    world: World,
    progress: Progress,
    stop: Stop,
    ranks: Ranks | None,
    *how: Any,
) -> tuple[Mapping[str, str], list[str]]:
    """As `_play_together`; an error is the reason of all arms, or of those whose evaluation has raised it."""
    try:
        with nullcontext() if ranks is None else ranks.telling(ends=False):
            return _play_together(plan, run, arms, world, progress, stop, ranks, *how)
    except (ResumableError, CheckpointError, ForeignFileError):
        raise
    except UseError as error:
        failed = {arms[0]: str(error), **error.others}
        return failed, [arm for arm in arms if arm not in failed]
    except EmulatorError as error:
        return dict.fromkeys(arms, str(error)), []


def _play_together(
    plan: Plan,
    run: PlannedRun,
    arms: Sequence[str],
    world: World,
    progress: Progress,
    stop: Stop,
    ranks: Ranks | None,
    lost: int,
    beside: Callable[[], int],
    has_threads: bool,
) -> tuple[Mapping[str, str], list[str]]:
    """Run these `arms` of a run, as far as one training serves them, to DONE, or to --until; see `run_one`.

    Returns the reasons for which some have failed, by arm, and the arms that are yet to be played.
    """
    experiment, seed, playing = plan.experiment, run.seed, run.of(arms)
    first, *_ = chosen = [experiment.find_arm(name) for name in arms]
    adaptations = [ADAPTATIONS.find(arm.adaptation.kind) for arm in chosen]
    import_late_modules(CLUSTERERS.find(first.clusterer.kind), *adaptations)
    local = build_executor(experiment, first, world)
    executor = local if ranks is None else ReplicatedExecutor(local, ranks)
    reference = build_reference(experiment, first, world)
    measuring = build_measuring(experiment, first, world)
    if ranks is not None:
        reference, measuring = replicated(reference, ranks), replicated(measuring, ranks)
    # Threads of workers draw, and trackers do as they please.
    watch = Watch(own_parts(experiment, arms), by_call=has_threads or bool(plan.track))
    tracking = LiveTracking(plan.track, plan.directory, first.name, seed, progress.note)
    word = objective_of(experiment, world.trace).word

    def attempt_at(arm: Arm, build: Build[P], observer: Observer) -> Attempt[P]:
        return Attempt(
            plan.directory,
            arm.name,
            seed,
            experiment.checkpoint,
            header=run_header(experiment, arm, world, executor, reference, measuring),
            build=build,
            fleet=world.fleet,
            device_factor=device_factors(experiment, arm, world),
            client_names=world.trace.client_names,
            log_visits=experiment.round.log_visits,
            observer=observer,
            halved=lambda: executor.halved_groups,
            lost=lost,
            other_ranks=lambda: Spent() if ranks is None else ranks.others,
            runs_beside=beside,
            arms_beside=len(arms) - 1,
            note=progress.note,
        )

    def emulation(
        log: Log, observers: tuple[Observer, ...], stopwatch: Stopwatch, uses: Sequence[Use]
    ) -> Emulation:
        played = (experiment, first, world, executor, watch.over(log), observers, stopwatch)
        return build_emulation(*played, reference, measuring, uses)

    observer = _observer(run, experiment.round, word, progress, tracking)
    together = Together(chosen, attempt_at, emulation, observer)
    lead, until = together.lead, experiment.round.stops_at(plan.until)
    progress.begun(run)
    try:
        with (
            _machine_errors(plan, playing, lead),
            _reporting_left(run, progress),
            watch,
            together,
            tracking,
        ):
            if lead.stored is not None:
                reached = experiment.round.reached(lead.stored, lead.emulation.clock.now_s)
                progress.resumed(run, reached)
            tracking.begin(is_resumed=lead.stored is not None)
            if not lead.has_closed(until):
                if ranks is not None:
                    lead_to_play(ranks, first.name, together.states(), until)
                steps = watch.steps(lead.emulation.steps())
                _play(together, steps, until, stop if ranks is None else ranks)
            _end(plan, playing, together, local, progress)
    except UseError as error:
        error.others = together.ended
        raise
    if until is not None and (rounds := lead.tally.rounds) < until:
        progress.note(f"{playing.title} ended after {rounds} rounds, before --until {until}")
    _note_faults(lead, playing, progress)
    return together.ended, together.left


@contextmanager
def _machine_errors(plan: Plan, run: PlannedRun, lead: Attempt[Emulation]) -> Iterator[None]:
    """Context in which an error of the machine says how the run goes on, and one of own code where it was."""
    try:
        yield
    except (OSError, MemoryError, ResumableError, OwnCodeError) as error:
        # An OSError is the machine's in own code, too: a full disk must not cost the checkpoints.
        if isinstance(error, OwnCodeError) and not isinstance(error.__cause__, OSError):
            raise RunError(f"round {lead.tally.rounds}: {error}{_traced(plan, run, error)}") from error
        last = lead.stored
        how = "begins again" if last is None else f"resumes from its last checkpoint, round {last},"
        raise ResumableError(
            f"{run.title} stopped in round {lead.tally.rounds}: {machine_problem(error)}. "
            f"It {how} when the command is given again"
        ) from error


def _end(
    plan: Plan, run: PlannedRun, together: Together, executor: LocalExecutor, progress: Progress
) -> None:
    """Mark the runs DONE: to their ends, then with their models kept, or stopped as --until says."""
    lead, stopped = together.lead, None
    coordinator = lead.emulation.coordinator
    assert isinstance(coordinator, Coordinator)
    if not coordinator.finished:
        stopped = Until(rounds=lead.tally.rounds, planned=plan.experiment.round.closed)
    elif coordinator.federation.parts.adaptation.federates:
        _refuse_empty(lead.tally, plan.experiment)
    others = {arm: use for arm, (use, _) in together.in_use.items()}
    for (arm, use), attempt in zip([(run.arm, None), *others.items()], together.attempts, strict=True):
        if stopped is None:
            _keep_models(plan, run.of([arm]), coordinator.federation, use, executor, progress)
        plan.directory.mark_done(arm, run.seed, attempt.finish(), stopped)


def _keep_models(
    plan: Plan,
    run: PlannedRun,
    federation: Federation,
    use: Use | None,
    executor: LocalExecutor,
    progress: Progress,
) -> None:
    """Keep the models of a run that has ended, as `output.models` says."""
    most_bytes = plan.experiment.output.most_bytes
    needed = federation.bank.parameters.nbytes + executor.shared_bytes
    if needed > most_bytes:
        if most_bytes:
            _note_unkept(plan, run, f"its models, of {needed / 1e6:,.0f} MB, are", progress)
        return
    kept = federation.kept_models(most_bytes - executor.shared_bytes, use)
    if kept.own is None:
        _note_unkept(plan, run, "what its clients have of their own is", progress)
    try:
        executor.write_models(plan.directory.run_file(run.arm, run.seed, "models.safetensors"), kept)
    except ConfigurationError as error:  # of the state dict of a module of one's own
        progress.note(f"{run.arm}, seed {run.seed}: its models are not kept: {error}")


def _note_unkept(plan: Plan, run: PlannedRun, what: str, progress: Progress) -> None:
    """Note, once an arm, what of the models of a run is too large to be kept."""
    if run.seed == plan.experiment.seeds[0]:
        progress.note(
            f"{run.arm}: {what} not kept, since models take at most {MOST_KEPT_BYTES / 1e6:.0f} MB a run "
            f"(output.models = 'auto'); with true they are kept"
        )


def _traced(plan: Plan, run: PlannedRun, error: OwnCodeError) -> str:
    """Write the traceback of an error that own code has raised beside its log; says where it is."""
    if error.__cause__ is None:
        return ""
    path = plan.directory.run_file(run.arm, run.seed, "traceback.txt")
    try:
        write_durably(path, "".join(traceback.format_exception(error.__cause__)))
    except OSError as problem:
        return f"; its traceback cannot be written ({problem})"
    return f"; its traceback is in {path}"


def _play(together: Together, steps: Iterator[None], until: int | None, stop: Stop | Ranks) -> None:
    """Play the `steps` of the runs to their end, or until they are stored at the close of so many rounds.

    KeyboardInterrupt if a stop is requested.
    """
    lead = together.lead
    for _ in steps:
        is_over = lead.has_closed(until)
        if stop.stop_requested or lead.is_due or is_over:
            together.store()
        if stop.stop_requested:
            raise KeyboardInterrupt
        if is_over:
            return
    for played in together.played:
        played.state()  # refuses what a part has kept beside its state, however short the run


def _observer(run: PlannedRun, rounds: Round, word: str, progress: Progress, live: LiveTracking) -> Observer:
    """An observer that reports each round of `run` to `progress`, in this word, and to its trackers."""
    accuracy: float | None = None

    def report(record: RoundRecord) -> None:
        nonlocal accuracy
        if record.accuracy is not None:
            accuracy = record.accuracy
        reached = rounds.reached(record.round + 1, record.closed_s)
        progress.round_done(run, Reached(reached, record.closed_s, accuracy, word))
        live.round_done(record)

    return report


@contextmanager
def _reporting_left(run: PlannedRun, progress: Progress) -> Iterator[None]:
    """Context that reports `run` as left if an exception, including a stop, ends it."""
    try:
        yield
    except BaseException:
        progress.left(run)
        raise


def _refuse_empty(tally: Tally, experiment: Experiment) -> None:
    """RunError if the whole run has not absorbed a single update."""
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
        f"{rounds}: every visit was dropped, as its client went offline or crashed, or abandoned, if only as "
        f"the run ended; give clients more time (devices.availability, faults.crash) or less to do, or lower "
        f"what the pacing waits for"
    )


def _note_faults(attempt: Attempt[Emulation], run: PlannedRun, progress: Progress) -> None:
    """Note the faults that did not end the run: rejected updates, forgotten memory, halved task groups."""
    name, tally = run.title, attempt.tally
    if tally.rejected:
        progress.note(
            f"{name}: {tally.rejected} times clients sent updates that were not finite; they were left out "
            f"(see `rejected` in its log)"
        )
    if tally.forgotten:
        progress.note(
            f"{name}: {tally.forgotten} times what a client was to remember was not finite; it forgot it and "
            f"began anew (see `forgotten` in its log); a lower rate of the local rule may help"
        )
    if tally.halved_cohorts:
        progress.note(
            f"{name}: {tally.halved_cohorts} task groups were trained in halves for lack of memory, which "
            f"may have changed results by rounding"
        )


def machine_problem(error: OSError | MemoryError | EmulatorError) -> str:
    """One line on what the machine failed at: the file and its problem, lack of memory, or the error."""
    if isinstance(error, OSError):
        if error.filename is None:
            return str(error) or type(error).__name__
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error})" if str(error) else "out of memory"
    return str(error)


def _num_arms(runs: Sequence[PlannedRun]) -> int:
    """The number of (arm, seed) of these runs."""
    return sum(len(run.arms) for run in runs)


def _run_names(runs: Sequence[PlannedRun]) -> str:
    return abbreviated([run.title for run in runs])
