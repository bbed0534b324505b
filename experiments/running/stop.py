"""A stop that is asked for from outside: while a run is at work, it waits for the end of the present step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """`asked` says whether there has been one."""

    def __init__(self) -> None:
        self.asked = False
        self._at_work = False

    def ask(self) -> None:
        """Leave word where a run is at work, which then stops by itself; in any other moment, and when asked
        a second time, KeyboardInterrupt on the spot. May be called from a signal's handler."""
        is_first, self.asked = not self.asked, True
        if not (is_first and self._at_work):
            raise KeyboardInterrupt

    def leave_word(self) -> None:
        """As the first to ask, and never an exception: for another thread than that of the run."""
        self.asked = True

    @property
    def waits(self) -> bool:
        """Whether the next to ask will only leave word."""
        return self._at_work and not self.asked

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Within it, look at `asked` between steps. What was asked for is done at its end, at the latest."""
        if self.asked:
            raise KeyboardInterrupt
        self._at_work = True
        try:
            yield
        finally:
            self._at_work = False
        if self.asked:
            raise KeyboardInterrupt
