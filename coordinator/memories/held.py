"""A client trains its models on the samples it holds: all, or those of the newest data steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.memories.base import Memory
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import SampleRanges
from emulator.numbers import Count
from emulator.plugins import Settings


class HeldSettings(Settings):
    """The age up to which samples are used, their weights by age, and the bootstrap."""

    window: Count | None = Field(
        None,
        description="number of newest data steps whose samples are trained on; without it, all held samples",
    )
    weighting: Literal["none", "linear", "exponential"] = Field(
        "none",
        description="none: samples of all steps are mixed; else each batch is of one step t', whose samples "
        "have the weight t' + 1 (linear) or 2^t' (exponential)",
        examples=["linear"],
    )
    bootstrap: bool = Field(
        False,
        description="train on as many samples, drawn with replacement once per model and data step",
    )


class Held(Memory):
    """A client trains its models on the samples it holds (FedDrift's Oblivious, Window and Weighted).

    Source: McMahan et al. 2017 without a window; FedDrift (AISTATS 2023) for windows and weightings.

    Client c holds the table rows 10 c, ..., 11 c - 1, so that client 0 holds none and has nothing to train:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     members=np.array([[0], [0], [1]]), held=lambda ids: SampleRanges.one_each(10 * ids, 11 * ids)
    ... )
    >>> client, model, samples = Held(HeldSettings()).rows(np.arange(3), view)
    >>> client, model, samples.rows(0), samples.rows(1)
    (array([1, 2]), array([0, 1]), array([10]), array([20, 21]))
    """

    Settings = HeldSettings
    settings: HeldSettings

    def samples(self, clients: Ints, model: int, view: View) -> SampleRanges:
        belongs = (view.members[clients] == model).any(axis=1)
        return _spread(self._of(clients[belongs], view), np.flatnonzero(belongs), len(clients))

    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        members = np.sort(view.members[clients], axis=1)
        which, column = np.nonzero(members >= 0)
        samples = self._of(clients[which], view)
        model = members[which, column]
        has_samples = samples.counts() > 0
        if has_samples.all():
            return clients[which], model, samples
        # A client may have received no samples within the window.
        filled = np.flatnonzero(has_samples)
        return clients[which[filled]], model[filled], samples.take(filled)

    def trains(self, clients: Ints, view: View) -> Bools:
        # NOTE: `rows` of a million clients would take several times as long.
        has_model = (view.members[clients] >= 0).any(axis=1)
        has_samples: Bools = self._of(clients, view).counts() > 0
        return has_model & has_samples

    def _of(self, clients: Ints, view: View) -> SampleRanges:
        """The samples that each of `clients` trains on, the same for all its models."""
        window, weighting = self.settings.window, self.settings.weighting
        first = 0 if window is None else max(view.step - window + 1, 0)
        if weighting != "none":
            steps = np.arange(first, view.step + 1)
            parts = [view.arrived(clients, step, step) for step in steps.tolist()]
            ranges = SampleRanges.joined(parts, _weights_by_age(steps, view.step, weighting))
        elif window is None:
            ranges = view.held(clients)
        else:
            ranges = view.arrived(clients, first, view.step)
        bootstrap = self.settings.bootstrap
        return ranges if ranges.bootstrap == bootstrap else replace(ranges, bootstrap=bootstrap)


def _weights_by_age(steps: Ints, now: int, weighting: Literal["linear", "exponential"]) -> Floats:
    """(steps,) the weight of samples of each data step t': t' + 1, or 2^t' up to a common factor.

    The factor is 2^-now. No weight is below 2^-1000, so that all are positive.
    """
    if weighting == "linear":
        return (steps + 1).astype(np.float64)
    weights: Floats = 2.0 ** np.maximum(steps - now, -1000).astype(np.float64)
    return weights


def _spread(ranges: SampleRanges, rows: Ints, num_rows: int) -> SampleRanges:
    """The rows of `ranges` as the rows `rows` (ascending) of `num_rows`; the other rows are empty."""
    sizes = np.zeros(num_rows, dtype=np.int64)
    sizes[rows] = np.diff(ranges.offsets)
    return replace(ranges, offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))
