"""The packages at the root: those of the wheel, and the bench, which only a checkout has."""

from __future__ import annotations

from experiments.own_packages import OUR_PACKAGES

AT_ROOT = (*OUR_PACKAGES, "benchmarks")
