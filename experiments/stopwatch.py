"""Wall time of a run by activity: seconds of training, evaluation, scores and clustering.

They are written into `timing.json` only; no decision of a run depends on them. The total wall time of a run,
and the time of its next checkpoint, are measured by `experiments.running.attempt`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Wall seconds by activity, in `seconds`; each second counts for one activity only.

    While a nested block is measured as another activity, the clock of the outer activity is stopped.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._activity: str | None = None
        self._since_s = 0.0

    @contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        """Count the seconds of the block for `activity`."""
        outer = self._switch_to(activity)
        try:
            yield
        finally:
            self._switch_to(outer)

    def _switch_to(self, activity: str | None) -> str | None:
        """Count for `activity` from now on (None: for nothing); returns the activity until now."""
        before, now_s = self._activity, time.perf_counter()
        if before is not None:
            self.seconds[before] = self.seconds.get(before, 0.0) + now_s - self._since_s
        self._activity, self._since_s = activity, now_s
        return before
