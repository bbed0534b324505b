"""Seconds of rounds by the emulator's time model and by mutants of it, and how far measured ones are off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from device_profiles import Fleet
from emulator.arrays import Floats
from emulator.errors import RunError
from emulator.latency import DriftscaleLatency
from emulator.messages import Work

BAR = 0.05
EMULATOR, BEFORE = "the emulator", "the emulator, before the play"
MUTANTS = RATE, LATENCY, MEAN = "uploads at the download's rate", "no latency", "the mean for the last answer"


def predictions(fleet: Fleet, visits: pd.DataFrame, compute_s: Floats) -> dict[str, Floats]:
    """(rounds,) seconds from sending to the last answer, by the emulator and by each mutant of it.

    Args:
        fleet: the device of each client.
        visits: a row for each visit, by round: which client transfers how many bytes.
        compute_s: array of shape (rounds, participants), seconds of computing in each visit.
    """
    columns = {name: visits[name].to_numpy() for name in ("download_bytes", "upload_bytes")}
    work, clients = Work.of(len(visits), **columns), visits.client.to_numpy()

    def visit_s(fleet: Fleet) -> Floats:
        return DriftscaleLatency(fleet).phases(clients, work).total_s.reshape(compute_s.shape) + compute_s

    equal_rates = replace(fleet, upload_bytes_per_s=fleet.download_bytes_per_s)
    return {
        EMULATOR: visit_s(fleet).max(axis=1),
        RATE: visit_s(equal_rates).max(axis=1),
        LATENCY: visit_s(replace(fleet, latency_s=0 * fleet.latency_s)).max(axis=1),
        MEAN: visit_s(fleet).mean(axis=1),
    }


def error(measured_s: Floats, predicted_s: Floats) -> dict[str, float]:
    """How far measured rounds (n,) are off, as shares of predicted ones: above 0 if they took longer.

    The median size of a round's error; the error of the sum; and that of the round that is farthest off.

    >>> error(np.array([10.0, 11.0, 9.5]), np.array([10.0, 10.0, 10.0]))
    {'median': 0.05, 'sum': 0.0167, 'worst': 0.1}
    """
    shares = measured_s / predicted_s - 1
    shown = np.median(abs(shares)), measured_s.sum() / predicted_s.sum() - 1, shares[abs(shares).argmax()]
    return dict(zip(("median", "sum", "worst"), np.round(shown, 4).tolist(), strict=True))


def refuse(errors: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """RunError if the emulator misses the bar in a fleet, or a mutant in none; `errors` by fleet and name."""
    for name in (EMULATOR, *MUTANTS):
        off = [fleet for fleet, by in errors.items() if max(by[name]["median"], abs(by[name]["sum"])) > BAR]
        if (name == EMULATOR) is bool(off):
            raise RunError(f"reality: {name}: off by more than {BAR:.0%} in {', '.join(off) or 'no fleet'}")
