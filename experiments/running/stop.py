"""Stop requests from outside: a run at work stops at the end of its present step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """A stop request; `stop_requested` is True once there has been one."""

    def __init__(self) -> None:
        self.stop_requested = False
        self._at_work = False

    def request(self) -> None:
        """Request a stop. May be called from a signal handler.

        A run at work stops by itself, after its present step. If none is at work, and for a second request,
        KeyboardInterrupt is raised at once.
        """
        is_first, self.stop_requested = not self.stop_requested, True
        if not (is_first and self._at_work):
            raise KeyboardInterrupt

    def leave_word(self) -> None:
        """Request a stop without ever raising; for threads other than the one that plays the run."""
        self.stop_requested = True

    @property
    def waits(self) -> bool:
        """Whether the next `request` only records the request, without raising."""
        return self._at_work and not self.stop_requested

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Context for a run at work, which has to check `stop_requested` between steps.

        Raises KeyboardInterrupt at its beginning or normal end if a stop has been requested.
        """
        if self.stop_requested:
            raise KeyboardInterrupt
        self._at_work = True
        try:
            yield
        finally:
            self._at_work = False
        if self.stop_requested:
            raise KeyboardInterrupt
