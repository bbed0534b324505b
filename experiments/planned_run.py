"""One (arm, seed) of an experiment that a command is about to run, or finds finished."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedRun:
    """Which run it is, and how many rounds it has."""

    experiment: str
    arm: str
    seed: int
    rounds: int
