"""Watches the global random generators while a run with own code is played."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from emulator.emulation import Log
from emulator.own.code import OwnCodeError, naming_own_code
from emulator.own.generators import Generators
from emulator.own.guards import drawn_from, inspecting, without_chance
from emulator.storage.runlog import RoundRecord
from experiments.own.parts import OwnPart, named


class Watch(ExitStack):
    """A context for a run, in which an error of own code is named, and none may move a global generator.

    Without own code it does nothing. What others do between rounds, such as a notebook or a tracker, is their
    own business.
    """

    def __init__(self, own: Sequence[OwnPart], *, by_call: bool) -> None:
        """Watch a run with these `own` parts, round by round, or `by_call` of theirs.

        The latter is for processes whose own threads may draw meanwhile, as when they connect anew.
        """
        super().__init__()
        self._own = own
        self._by_call = by_call
        self._generators = Generators()
        self._imported: int | None = None  # modules, when the round began; None between rounds

    def __enter__(self) -> Watch:
        self.enter_context(naming_own_code())
        if self._by_call:
            self.enter_context(inspecting(without_chance))
        return super().__enter__()

    def over(self, log: Log) -> Log:
        """The log of the run, to which a round comes only if no global generator has moved in it."""
        return _WatchedLog(log, self) if self._own and not self._by_call else log

    def steps(self, steps: Iterator[None]) -> Iterator[None]:
        """The steps of the run; the first begins a round, and so does the first after a round has ended."""
        return self._watched(steps) if self._own and not self._by_call else steps

    def _watched(self, steps: Iterator[None]) -> Iterator[None]:
        self._begin()
        for _ in steps:
            yield
            self._begin()

    def _begin(self) -> None:
        if self._imported is None:
            self._imported = len(sys.modules)
            self._generators.begin()

    def round_ends(self) -> None:
        """Take note that a round ends; OwnCodeError if a global generator has moved in it."""
        imported, self._imported = self._imported, None
        moved = self._generators.moved()
        if moved and len(sys.modules) == imported:  # a library may draw as it is imported
            instead = "; ".join(sorted({getattr(part.code, "chance", "") for part in self._own} - {""}))
            raise OwnCodeError(f"own code ({named(self._own)}) {drawn_from(moved)}; {instead}")


class _WatchedLog:
    """A log that ends a round of `watch` before it gets its record."""

    def __init__(self, log: Log, watch: Watch) -> None:
        self._log, self._watch = log, watch
        self.append_visits = log.append_visits

    def append(self, record: RoundRecord) -> None:
        self._watch.round_ends()
        self._log.append(record)
