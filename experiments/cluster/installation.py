"""The parts of an installation that results depend on: our sources, libraries and the processor."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from executor.capability import cpu_capability
from experiments.own_packages import OUR_PACKAGES
from experiments.running.attempt import rounding_versions

ROOT = Path(__file__).resolve().parents[2]


@cache
def source_digest() -> str:
    """The sha256 over the names and contents of all source files of driftscale, as hexadecimal digits."""
    state = hashlib.sha256()
    for package in OUR_PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            state.update(f"{file.relative_to(ROOT)}\0".encode())
            state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


@cache
def rounding() -> dict[str, str]:
    """Library versions and the processor's capability: if these differ, results may differ by rounding."""
    return {**rounding_versions(), "CPU": cpu_capability()}
