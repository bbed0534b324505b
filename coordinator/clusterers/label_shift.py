"""Label shift: whether the labels of a client's samples differ from those that it had at an earlier instant.

FlexCFL's test of drift, and the literal one of its public code.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.view import RunFacts, View
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Factor
from emulator.plugins import Settings


class LabelShiftSettings(Settings):
    """When the labels of a client's samples count as shifted."""

    drift: Literal["l1", "sorted_counts"] = Field(
        "l1",
        description="what is compared: the shares of labels, or, as in FlexCFL's code, the numbers of "
        "samples by label in ascending order, where a permutation of labels is no drift",
    )
    threshold: Factor = Field(
        0.2,
        description="drifted if the absolute differences sum to more than this; for sorted_counts, than this "
        "share of the client's samples",
    )


def refuse_other_reports(run: RunFacts, settings: LabelShiftSettings) -> None:
    """ConfigurationError unless clients report shares of labels, for a `check_run`."""
    if not run.has_shares:
        raise ConfigurationError(
            f"clusterer.drift = {settings.drift!r}: compares shares of labels, which the reports of "
            f"representation = {run.representation!r} are not; choices: 'label'"
        )


def labels_of(clients: Ints, view: View, settings: LabelShiftSettings) -> Floats:
    """(n, L) what is to be compared of the labels of `clients` (n,), by their last reports.

    These are the shares of labels, or the sorted numbers of samples by label.
    """
    shares = view.reports[clients]
    if settings.drift == "l1":
        return shares
    return np.sort(np.rint(shares * view.held(clients).counts()[:, None]), axis=1)


def shifted(before: Floats, view: View, settings: LabelShiftSettings) -> Ints:
    """Ids, ascending, of the clients with new data whose labels have shifted since they were `before` (N, L).

    `before` is that of `labels_of`, NaN for clients that are not compared. With sorted counts, upstream
    compares the Wasserstein distance of the counts taken as samples, the mean absolute difference of the
    sorted ones, with threshold x samples / L; both sides times L are compared here.
    """
    clients = view.changed
    apart = np.abs(labels_of(clients, view, settings) - before[clients]).sum(axis=1)
    size = 1 if settings.drift == "l1" else view.held(clients).counts()
    found: Ints = clients[apart > settings.threshold * size]
    return found


def still_known(before: Floats | None, view: View, settings: LabelShiftSettings) -> Floats:
    """`before` (N, L), with NaN for the clients that joined, left, or whose labels have shifted.

    All are NaN if it is None.
    """
    if before is None:
        return np.full(view.reports.shape, np.nan)
    forgotten = np.concatenate([view.joined, view.left, shifted(before, view, settings)])
    if len(forgotten) == 0:
        return before
    known = before.copy()
    known[forgotten] = np.nan
    return known
