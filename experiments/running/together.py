"""The runs of one training that serves several arms: their attempts, their logs, and what each stores.

One of them trains; the others are `Use`s of its models. Each has a run of its own in the run directory, with
the log and the checkpoints that it would have alone: any of them may go on with or without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Protocol

from coordinator.federation.evaluation.uses import Use
from emulator.emulation import Emulation, Log, Observer
from emulator.messages import VisitRows
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree
from experiments.build import build_adaptation
from experiments.config import Arm
from experiments.running.attempt import Attempt, Build, P, Played
from experiments.stopwatch import Stopwatch


class OtherUse:
    """A use of what an emulation trains, as an attempt at its own run stores and restores it."""

    def __init__(self, emulation: Emulation, use: Use) -> None:
        self._emulation, self.use = emulation, use

    def state(self) -> Tree:
        """The state of an emulation that trains for this use."""
        state = self._emulation.state()
        federation = state["coordinator"]["federation"]
        federation = {**federation, "_stored": self.use.state()}
        return {**state, "coordinator": {**state["coordinator"], "federation": federation}}

    def restore(self, state: Tree) -> None:
        """Resume from such a state; the emulation that trains has resumed from its own."""
        self.use.restore(state["coordinator"]["federation"]["_stored"])


class MakeAttempt(Protocol):
    """Makes an attempt at the run of an arm."""

    def __call__(self, arm: Arm, build: Build[P], observer: Observer) -> Attempt[P]: ...


class Together:
    """The attempts at the runs of `arms` that one training serves: a context that resumes or begins all.

    Args:
        arms: The arms; the first one trains.
        make_attempt: Makes an attempt at the run of one.
        build: Builds the emulation of the first, with these other uses.
        observer: Called after every round, with the record of the first.

    Attributes:
        lead: The attempt at the run that trains.
        left: The arms whose runs resume from another round, and so are left as they are.
        ended: At the end, the error of each other use that has ended alone, by arm.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        make_attempt: MakeAttempt,
        build: Callable[[Log, tuple[Observer, ...], Stopwatch, Sequence[Use]], Emulation],
        observer: Observer,
    ) -> None:
        self._build = build
        first, *others = arms
        self._uses = {arm.name: Use(build_adaptation(arm), partial(self._tell, arm.name)) for arm in others}
        self.lead: Attempt[Emulation] = make_attempt(first, self._emulation, observer)
        self._others: dict[str, Attempt[OtherUse]] = {
            arm.name: make_attempt(arm, partial(self._other_use, arm.name), lambda record: None)
            for arm in others
        }
        self.left: list[str] = []
        self.ended: dict[str, str] = {}
        self._entered = ExitStack()

    def _emulation(self, log: Log, observers: tuple[Observer, ...], stopwatch: Stopwatch) -> Emulation:
        return self._build(_VisitsOfAll(log, self), observers, stopwatch, list(self._uses.values()))

    def _other_use(self, arm: str, log: Log, observers: tuple[Observer, ...], _: Stopwatch) -> OtherUse:
        self._others[arm].stopwatch = self.lead.stopwatch
        return OtherUse(self.lead.emulation, self._uses[arm])

    def _tell(self, arm: str, record: RoundRecord) -> None:
        self._others[arm].append(record)

    def __enter__(self) -> Together:
        with ExitStack() as entered:
            entered.enter_context(self.lead)
            for arm, attempt in self._others.items():
                entered.enter_context(attempt)
                if attempt.stored != self.lead.stored:
                    self._uses[arm].goes_on = False
                    self.left.append(arm)
            self._entered = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, error, trace)
        self.ended = {arm: str(use.error) for arm, use in self._uses.items() if use.error is not None}
        # As an attempt does: break the cycles, so that the emulation and the world are freed at once.
        self._uses.clear()
        self._others.clear()

    @property
    def in_use(self) -> dict[str, tuple[Use, Attempt[OtherUse]]]:
        """The other uses that go on, and the attempts at their runs, by arm."""
        return {arm: (use, self._others[arm]) for arm, use in self._uses.items() if use.goes_on}

    @property
    def attempts(self) -> list[Attempt[Emulation] | Attempt[OtherUse]]:
        """The attempts at work: that which trains, and those of the uses that go on."""
        return [self.lead, *(attempt for _, attempt in self.in_use.values())]

    @property
    def played(self) -> list[Played]:
        """What is played of each attempt at work."""
        return [attempt.emulation for attempt in self.attempts]

    def states(self) -> Tree:
        """What other ranks begin with: the state of the run that trains, and by arm those of the other uses.

        A state is None before the first round.
        """
        return {
            arm: None if attempt.stored is None else attempt.emulation.state()
            for arm, attempt in zip(["", *self.in_use], self.attempts, strict=True)
        }

    def store(self) -> None:
        """Write a checkpoint of each run; see `Attempt.store`."""
        for attempt in self.attempts:
            attempt.store()


class _VisitsOfAll:
    """The log of the run that trains, which passes on its visits: those of the other uses are the same."""

    def __init__(self, log: Log, together: Together) -> None:
        self.append = log.append
        self._log, self._together = log, together

    def append_visits(self, rows: VisitRows) -> None:
        self._log.append_visits(rows)
        for _, attempt in self._together.in_use.values():
            attempt.append_visits(rows)
