"""Virtual time. Nothing here, or anywhere else in the kernel, reads the wall clock."""

from __future__ import annotations

import math


class VirtualClock:
    """Seconds since the emulation began; only `Emulation` moves it, and only forward."""

    def __init__(self) -> None:
        self._now_s = 0.0

    @property
    def now_s(self) -> float:
        return self._now_s

    def advance_to(self, time_s: float) -> None:
        """Set the clock to `time_s`; ValueError unless it is finite and not before now."""
        if not math.isfinite(time_s) or time_s < self._now_s:
            raise ValueError(f"time_s ({time_s}) must be finite and not before now ({self._now_s})")
        self._now_s = time_s
