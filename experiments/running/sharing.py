"""Runs that several plans of a command have: one plan plays them, and the others adopt copies.

Two runs are the same if their seeds and all settings that decide their results are
(`results/reading/deciding.py`), as those of an arm that no swept key touches. Each run directory is complete
once it has its copies, and nothing in it refers to another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from emulator.errors import EmulatorError, InputError, RunError, abbreviated
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import seed_locked
from experiments.running.manifest import adopt_world
from experiments.running.plan import Plan

Finish = Callable[[Plan], None]


def share_out(plans: Sequence[Plan], identities: Sequence[Mapping[str, str]]) -> list[Plan]:
    """The plans, of which each run that several have is played by one and adopted by the others.

    A run is played by the first plan that has it finished; else by the first that has a checkpoint of it;
    else by the first.

    Args:
        plans: The plans, in the order in which they are played.
        identities: For each plan, by arm, a text that is the same exactly if the runs of the arm are.
    """
    having: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for position, (plan, texts) in enumerate(zip(plans, identities, strict=True)):
        for arm, seed in plan.pairs():
            having.setdefault((texts[arm], seed), []).append((position, arm))
    adopted: list[dict[tuple[str, int], RunDirectory]] = [{} for _ in plans]
    for (_, seed), places in having.items():
        if len(places) == 1:
            continue
        owner, _ = max(places, key=lambda place: _progress(plans[place[0]].directory, place[1], seed))
        for position, arm in places:
            if position != owner:
                adopted[position][arm, seed] = plans[owner].directory
    return [replace(plan, adopted=runs) for plan, runs in zip(plans, adopted, strict=True)]


@contextmanager
def sharing(plans: Sequence[Plan], finish: Finish, note: Callable[[str], None]) -> Iterator[Finish]:
    """Context in which runs are adopted: at its beginning, when a plan's own runs have ended, and at its end.

    Args:
        plans: The plans, as `share_out` returns them.
        finish: Called for each plan once it is complete, or at the end, see below.
        note: Receives a line for each plan that is not complete for an error, if the block raises another.

    Yields:
        To be called for each plan when its own runs have ended. The plans that wait for one of them adopt it,
        and `finish` is called for each plan that is complete: its own runs have ended, and it has adopted the
        others. At the end of the context, `finish` is called also for the other plans that have changed. If
        the block raises an error, as at a stop, nothing more is adopted, and `finish` is called only for
        those of them that have begun: the same command does the rest.

    Raises:
        RunError: Plans could not adopt runs, or not be finished after that; raised at the end, names them.
        OSError: A file cannot be read or written.
    """
    shared = _Sharing(plans, finish)
    try:
        for plan in plans:
            shared.adopt(plan)
        yield shared.ended
    except BaseException:
        with suppress(OSError):  # the disk may be what is full
            shared.finish_begun()
        if shared.problems:
            note(f"not complete: {abbreviated(shared.problems)}")
        raise
    shared.finish_rest()
    if shared.problems:
        raise RunError(
            f"{len(shared.problems)} of {len(plans)} experiments are not complete "
            f"({abbreviated(shared.problems)})"
        )


class _Sharing:
    """The adoptions of a command; see `sharing`."""

    def __init__(self, plans: Sequence[Plan], finish: Finish) -> None:
        self._plans = plans
        self._finish = finish
        self._waiting: dict[Path, list[Plan]] = {}  # by the run directory that they adopt from
        for plan in plans:
            for path in dict.fromkeys(source.path for source in plan.adopted.values()):
                self._waiting.setdefault(path, []).append(plan)
        self._kept = {plan.experiment.name for plan in plans if _was_finished(plan)}
        self._ended: set[str] = set()  # names of other plans, whose own runs have ended
        self._changed: set[str] = set()  # names of plans whose results are out of date
        self._problems: dict[str, str] = {}
        self._intact: set[tuple[Path, str, int]] = set()  # runs that were read before they were copied

    @property
    def problems(self) -> list[str]:
        """For each plan that is not complete for an error, its name and that error, when last tried.

        That is one that could not adopt a run or be finished, or whose run has failed where it was played.
        """
        failed = {
            plan.experiment.name: f"{arm}, seed {seed} failed in {source.path.name}"
            for plan in self._plans
            for (arm, seed), source in plan.adopted.items()
            if not plan.directory.is_kept(arm, seed, plan.until) and source.failure(arm, seed) is not None
        }
        return [f"{name}: {problem}" for name, problem in {**failed, **self._problems}.items()]

    def ended(self, plan: Plan) -> None:
        """Take note that the plan's own runs have ended; adopt them where they are waited for.

        A plan that an earlier command has finished is finished again at the end only, so that nothing has to
        wait for it.
        """
        name = plan.experiment.name
        self._changed.add(name)
        if name not in self._kept:
            self._ended.add(name)
        if not _has_ended(plan):
            return
        for other in self._waiting.get(plan.directory.path, ()):
            self.adopt(other)
            if self._is_due(other):
                self._finish_another(other)
        if self._is_due(plan):
            self._finish_now(plan)

    def adopt(self, plan: Plan) -> None:
        """Copy the runs that the plan lacks, and that other plans have finished or stopped at --until."""
        name, directory, until = plan.experiment.name, plan.directory, plan.until
        self._problems.pop(name, None)
        try:
            for (arm, seed), source in plan.adopted.items():
                if directory.is_kept(arm, seed, until) or not source.is_kept(arm, seed, until):
                    continue
                self._refuse_damaged(source, arm, seed)
                self._changed.add(name)
                adopt_world(directory, source, seed, plan.command, plan.cell)  # before a run in it is stored
                with seed_locked(directory, arm, seed):
                    if not directory.is_kept(arm, seed, until):
                        directory.copy_run(source, arm, seed)
        except EmulatorError as error:
            self._problems[name] = str(error)

    def _refuse_damaged(self, source: RunDirectory, arm: str, seed: int) -> None:
        """InputError if a file of the run, which is finished or stopped, is missing or damaged."""
        run = (source.path, arm, seed)
        if run not in self._intact:
            try:
                source.read_run(arm, seed)
            except OSError as error:
                raise InputError(f"{error.filename or source.path}: {error.strerror}") from error
            self._intact.add(run)

    def finish_rest(self) -> None:
        """Adopt all that can be adopted, then finish the plans that have changed since they were finished."""
        for plan in self._plans:
            self.adopt(plan)
        self._finish_all(self._changed)

    def finish_begun(self) -> None:
        """Finish the plans that have begun, and have changed since they were finished."""
        self._finish_all(self._changed & self._ended)

    def _finish_all(self, names: Set[str]) -> None:
        for plan in [plan for plan in self._plans if plan.experiment.name in names]:
            self._finish_another(plan)

    def _is_due(self, plan: Plan) -> bool:
        """Whether the plan is complete, and has changed since it was finished."""
        name, directory = plan.experiment.name, plan.directory
        return (
            name in self._ended
            and name in self._changed
            and all(directory.is_kept(*pair, plan.until) for pair in plan.adopted)
        )

    def _finish_another(self, plan: Plan) -> None:
        """Finish a plan at another time than the end of its own runs, so that an error is not another's."""
        try:
            self._finish_now(plan)
        except EmulatorError as error:
            self._problems[plan.experiment.name] = str(error)

    def _finish_now(self, plan: Plan) -> None:
        self._changed.discard(plan.experiment.name)
        self._finish(plan)


def _was_finished(plan: Plan) -> bool:
    """Whether all runs of the plan are kept, and it has results."""
    directory = plan.directory
    return directory.summary_path.is_file() and all(
        directory.is_kept(*pair, plan.until) for pair in plan.pairs()
    )


def _has_ended(plan: Plan) -> bool:
    """Whether all runs that the plan plays are kept or failed, as they are not after a stop."""
    directory = plan.directory
    return all(
        directory.is_kept(*pair, plan.until) or directory.failure(*pair) is not None
        for pair in plan.pairs()
        if pair not in plan.adopted
    )


def _progress(directory: RunDirectory, arm: str, seed: int) -> int:
    """How far a run is: 2 if it is finished, 1 if it has a checkpoint."""
    if directory.is_done(arm, seed):
        return 2
    return int(bool(directory.checkpoints(arm, seed).files()))
