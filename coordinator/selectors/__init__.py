"""Selectors, by name."""

from coordinator.candidates import Pool
from coordinator.selectors.base import Selector
from coordinator.selectors.random import Random
from emulator.plugins import Registry

SELECTORS: Registry[type[Selector]] = Registry("selector", "driftscale.selector", {"random": Random})

__all__ = ["SELECTORS", "Pool", "Selector"]
