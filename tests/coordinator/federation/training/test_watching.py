"""What detectors that watch training are given, and whom they decide about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coordinator.detectors import Detector
from coordinator.federation.training.trained import Trained
from coordinator.federation.training.watching import watch_training
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import ArrayUpdates, SampleRanges, TaskMetric
from emulator.plugins import NoSettings


class Remembering(Detector):
    """Flags clients with a loss above 1, and remembers what it was asked."""

    Settings = NoSettings
    watches = "training"

    def __init__(self) -> None:
        super().__init__(NoSettings())
        self.asked: list[tuple[list[int], list[list[float]]]] = []

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"batch_losses"})

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        assert last is None
        self.asked.append((clients.tolist(), [row[~np.isnan(row)].tolist() for row in signal]))
        flags: Bools = np.nanmax(signal, axis=1) > 1
        return flags


NAN = np.nan


def trained(
    client: Sequence[int],
    losses: Sequence[Sequence[float]],
    *,
    bound: Sequence[int] = (),
    left: Sequence[int] = (),
) -> Trained:
    """Updates with these losses; the data of `bound` changed meanwhile, and those that `left` had none."""
    ids, batches = np.array(client), np.array(losses, dtype=np.float64)
    rows = np.arange(len(ids))
    updates = ArrayUpdates(
        ids,
        rows,
        rows + 1,
        (~np.isnan(batches)).sum(axis=1),
        np.zeros((len(ids), 1), dtype=np.float32),
        {"batch_losses": batches},
    )
    samples = SampleRanges.one_each(rows, rows + 1)
    return Trained(updates, rows, rows, ~np.isin(ids, bound), ~np.isin(ids, left), rows >= 0, samples)


def watched(updates: Trained) -> tuple[list[int], list[int], Remembering]:
    """The clients decided about, those flagged, and the detector."""
    detector = Remembering()
    decided, flags = watch_training({"mine": detector}, updates, 10)
    return decided.tolist(), np.flatnonzero(flags["mine"]).tolist(), detector


def test_a_client_goes_through_the_batches_of_its_tasks_one_after_the_other() -> None:
    decided, flagged, detector = watched(
        trained([2, 2, 5, 7], [[0.1, 0.2], [0.3, NAN], [4.0, 0.5], [NAN, NAN]])
    )
    assert detector.asked == [([2, 5], [[0.1, 0.2, 0.3], [4.0, 0.5]])]
    assert (decided, flagged) == ([2, 5], [5])


def test_a_visit_that_was_out_as_its_data_changed_is_watched_and_decides_nothing_about_the_new_ones() -> None:
    decided, flagged, detector = watched(trained([1, 4], [[2.0], [3.0]], bound=[4]))
    assert detector.asked == [([1, 4], [[2.0], [3.0]])]
    assert (decided, flagged) == ([1], [1, 4])


def test_a_client_that_ceased_to_hold_data_is_not_watched() -> None:
    decided, flagged, detector = watched(trained([1, 4], [[2.0], [3.0]], left=[1]))
    assert detector.asked == [([4], [[3.0]])]
    assert (decided, flagged) == ([4], [4])


def test_nobody_is_asked_if_nobody_took_a_step() -> None:
    decided, flagged, detector = watched(trained([3], [[NAN]]))
    assert (decided, flagged, detector.asked) == ([], [], [])
