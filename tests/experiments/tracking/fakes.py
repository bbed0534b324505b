"""Trackers that keep what they are told, or misbehave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event

from experiments.tracking.base import Point, RunFacts

FACTS = RunFacts("x", "global", 0, Path("/runs/x"), "0.1.0", {"round.rounds": 3, "arm.name": "global"})


class FakeTracker:
    """Keeps its calls; raises `error` in the method `fails_in`, in which it first waits for `release`."""

    def __init__(
        self, fails_in: str = "", error: BaseException | None = None, release: Event | None = None
    ) -> None:
        self.told: list[object] = []
        self._fails_in, self._error, self._release = fails_in, error, release

    def begun(self, facts: RunFacts) -> None:
        self.told = [f"{facts.arm}, seed {facts.seed}"]  # in place of an earlier attempt
        self._fail("begun")

    def round_done(self, point: Point) -> None:
        self._fail("round_done")
        self.told.append((point.round, point.closed_s))

    def ended(self, status: str, summary: Mapping[str, float]) -> None:
        self._fail("ended")
        self.told.append(status)

    def _fail(self, method: str) -> None:
        if method == self._fails_in:
            if self._release is not None:
                self._release.wait(20.0)
            if self._error is not None:
                raise self._error
