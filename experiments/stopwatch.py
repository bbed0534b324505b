"""Where the wall time of a run goes: seconds of training, evaluation, scores and clustering.

They go into `timing.json` and nowhere else; no decision of a run depends on them. How long a run took in all,
and when its next checkpoint is due, is measured by `experiments.running.attempt`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Wall seconds by what they were spent on. Each counts once: within a measured block, one that is
    measured as something else stops the outer one's seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._what: str | None = None
        self._since_s = 0.0

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Count the seconds within as `what`."""
        outer = self._go_on_as(what)
        try:
            yield
        finally:
            self._go_on_as(outer)

    def _go_on_as(self, what: str | None) -> str | None:
        """Count from now on as `what` (None: not at all); what was counted until now."""
        before, now_s = self._what, time.perf_counter()
        if before is not None:
            self.seconds[before] = self.seconds.get(before, 0.0) + now_s - self._since_s
        self._what, self._since_s = what, now_s
        return before
