"""Keeps a tracker from harming the run that it tracks: its failures, and its waits.

The tracker works in a thread of its own, which ends with the process. The run only puts points into a queue:
a server that does not respond delays it by `PATIENCE_S` at its end, and in no round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Thread

from experiments.tracking.base import Point, RunFacts, Tracker

PATIENCE_S = 60.0
"""Wall seconds for which one call of a tracker may take, and for which the end of a run waits for it."""

STOPPING_S = 5.0
"""The same at the end of a run that was stopped or has failed, after which the command ends."""

MOST_WAITING = 10_000
"""Rounds that may wait for a tracker; one that is slower for so long is dropped."""

MOST_LETTERS = 300
"""Of the message of a tracker's error, in a note."""


class GuardedTracker:
    """A tracker whose failures are noted once, and end only the tracking of this run.

    All methods return at once, except `ended`, and raise nothing.

    Args:
        name: Names the run and the tracker in notes.
        tracker: The tracker; its methods are called in another thread.
        note: Receives a line if the tracker is dropped; called in the thread of the caller.
        patience_s: Wall seconds for which a call may take.
        clock: Wall time in seconds.
    """

    def __init__(
        self,
        name: str,
        tracker: Tracker,
        note: Callable[[str], None],
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._tracker, self._note = name, tracker, note
        self._patience_s, self._clock = patience_s, clock
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._error: BaseException | None = None
        self._since_s: float | None = None  # when the present call began
        self._is_dropped = False
        self._thread = Thread(target=self._work, name=f"tracker of {name}", daemon=True)
        self._thread.start()

    def begun(self, facts: RunFacts) -> None:
        self._put(lambda: self._tracker.begun(facts))

    def round_done(self, point: Point) -> None:
        self._put(lambda: self._tracker.round_done(point))

    def rounds_done(self, points: Sequence[Point]) -> None:
        """Record earlier rounds, of which any number may wait."""
        self._put(lambda: self._replay(points))

    def ended(self, status: str, summary: Mapping[str, float]) -> None:
        """Wait until the tracker has ended the run, at most for its patience."""
        self._put(lambda: self._tracker.ended(status, summary))
        self._calls.put(None)
        if not self._is_dropped:
            patience_s = self._patience_s if status == "finished" else min(self._patience_s, STOPPING_S)
            self._thread.join(patience_s)
            if self._thread.is_alive():
                self._drop(f"it did not end within {patience_s:g} s")
            else:
                self._look()

    def _replay(self, points: Sequence[Point]) -> None:
        for point in points:
            self._since_s = self._clock()
            self._tracker.round_done(point)

    def _put(self, call: Callable[[], None]) -> None:
        self._look()
        if not self._is_dropped:
            self._calls.put(call)

    def _look(self) -> None:
        """Drop the tracker if it has failed, or takes too long."""
        if self._is_dropped:
            return
        since_s = self._since_s
        if self._error is not None:
            self._drop(_line(self._error))
        elif since_s is not None and self._clock() - since_s > self._patience_s:
            self._drop(f"it has not responded for {self._patience_s:g} s")
        elif self._calls.qsize() > MOST_WAITING:
            self._drop(f"it is {MOST_WAITING} rounds behind")

    def _drop(self, why: str) -> None:
        self._is_dropped = True
        self._note(f"{self._name} is no longer tracked: {why}")

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            self._since_s = self._clock()
            try:
                if self._is_dropped:
                    return
                call()
            # Whatever a tracker's library raises, SystemExit too, must not end the run; `_look` notes it.
            except BaseException as error:
                self._error = error
                return
            finally:
                self._since_s = None


def _line(error: BaseException) -> str:
    """The error's type and message on one line of limited length."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"
