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


@dataclass(frozen=True)
class Reached:
    """How far a run has come: `rounds` are done, the last of them closed at `closed_s` of virtual time.

    `accuracy` is that of the last evaluated round; None while this attempt at the run has had none.
    """

    rounds: int
    closed_s: float
    accuracy: float | None
