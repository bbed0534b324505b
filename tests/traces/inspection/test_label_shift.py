"""Closed forms worked out by hand, a plain reference over a dense array, and the published tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats
from tests.traces.tiny import context
from traces.inspection import label_shift as module
from traces.inspection.label_shift import LabelShift, label_shift, observed_windows
from traces.inspection.observations import Observations, counted
from traces.sources.label_replay import LabelReplay, LabelReplaySettings


def observations_of(counts: Any) -> Observations:
    """The observations of a dense array (clients, windows, labels)."""
    dense = np.array(counts)
    client, window, label = np.nonzero(dense)
    return counted(client, window, label, dense[client, window, label].astype(np.float64), shape=dense.shape)


# Four windows. Client 0 is not observed in window 1, and has too few samples in window 3; client 1 in 0 only.
COUNTS = [
    [[10, 0, 0], [0, 0, 0], [5, 5, 0], [0, 0, 3]],
    [[0, 10, 10], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
    [[5, 5, 0], [0, 0, 0], [0, 0, 20], [0, 0, 10]],
]


def test_a_pair_of_windows_may_have_unobserved_ones_in_between() -> None:
    shift = label_shift(observations_of(COUNTS), min_samples=10)
    # Client 0: (1, 0, 0) to (1/2, 1/2, 0) is 1. Client 2: (1/2, 1/2, 0) to (0, 0, 1) is 2, then 0.
    assert shift.pairs == 3
    assert shift.consecutive_mean == pytest.approx((1 + 2 + 0) / 3)
    # Of 0, 1 and 2, the 90 % quantile lies at position 1.8.
    assert shift.consecutive_p90 == pytest.approx(1.8)


def test_every_client_counts_alike_in_a_window_and_every_window_alike() -> None:
    shift = label_shift(observations_of(COUNTS), min_samples=10)
    # Window 0: shares (1, 0, 0), (0, 1/2, 1/2), (1/2, 1/2, 0); their mean (1/2, 1/3, 1/6).
    # Distances: 1/2 + 1/3 + 1/6 = 1; 1/2 + 1/6 + 1/3 = 1; 0 + 1/6 + 1/6 = 1/3. Their mean: 7/9.
    # Window 2: (1/2, 1/2, 0) and (0, 0, 1), the mean (1/4, 1/4, 1/2): 1 and 1. Window 3: one client, 0.
    assert shift.between_clients == pytest.approx((7 / 9 + 1 + 0) / 3)
    # From (1/2, 1/3, 1/6) to (0, 0, 1).
    assert shift.first_to_last == pytest.approx(1 / 2 + 1 / 3 + 5 / 6)
    assert (shift.cells, shift.windows) == (6, 3)


def test_a_cell_counts_from_the_least_number_of_samples_on() -> None:
    rows = observations_of(COUNTS)
    assert observed_windows(rows, 10).tolist() == [2, 1, 3]
    assert observed_windows(rows, 11).tolist() == [0, 1, 1]
    assert observed_windows(rows, 3).tolist() == [3, 1, 3]
    assert label_shift(rows, 21) == LabelShift(21, 0, 0, 0, None, None, None, None)
    one = label_shift(rows, 20)  # of client 1 in window 0, and of client 2 in window 2
    assert (one.cells, one.pairs, one.consecutive_mean, one.between_clients) == (2, 0, None, 0.0)
    assert one.first_to_last == pytest.approx(1.0)  # (0, 1/2, 1/2) to (0, 0, 1)


def test_a_single_window_has_no_first_and_last() -> None:
    shift = label_shift(observations_of([[[3, 0]], [[0, 3]]]), 1)
    assert (shift.windows, shift.between_clients, shift.first_to_last) == (1, 1.0, None)


def plainly(counts: Floats, min_samples: int) -> LabelShift:
    """The reference: client by client and window by window."""
    total = counts.sum(axis=2)
    pairs: list[float] = []
    for client in range(len(counts)):
        seen = [window for window in range(counts.shape[1]) if total[client, window] >= min_samples]
        shares = [counts[client, window] / total[client, window] for window in seen]
        pairs += [float(np.abs(a - b).sum()) for a, b in pairwise(shares)]
    means, distances = [], []
    for window in range(counts.shape[1]):
        of = total[:, window] >= min_samples
        if of.any():
            shares_ = counts[of, window] / total[of, window, None]
            means.append(shares_.mean(axis=0))
            distances.append(np.abs(shares_ - means[-1]).sum(axis=1).mean())
    return LabelShift(
        min_samples,
        int((total >= min_samples).sum()),
        len(means),
        len(pairs),
        float(np.mean(pairs)),
        float(np.quantile(pairs, 0.9)),
        float(np.mean(distances)),
        float(np.abs(means[-1] - means[0]).sum()),
    )


@pytest.mark.parametrize("chunk_rows", [1, 40, 2**18])
@pytest.mark.parametrize("seed", range(5))
def test_sparse_rows_give_what_a_dense_array_gives(
    seed: int, chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", chunk_rows)
    generator = np.random.default_rng(seed)
    counts = generator.poisson(generator.gamma(0.3, 2.0, size=(7, 9, 5))).astype(np.float64)
    expected, computed = plainly(counts, 3), label_shift(observations_of(counts), 3)
    for name, value in vars(expected).items():
        assert getattr(computed, name) == pytest.approx(value), name


PUBLISHED: list[tuple[dict[str, Any], int, tuple[float, ...]]] = [
    (
        {
            "table": "label_traces/covid_variants_by_country.parquet",
            "group": "location",
            "time": "date",
            "label": "variant",
            "count": "num_sequences",
        },
        20,
        (0.239, 0.636, 0.560, 1.990),
    ),
    (
        {
            "table": "label_traces/portal_rodents_1977_2016.parquet",
            "group": "plot",
            "time": "date",
            "label": "species",
            "window": "year",
            "most_common": 15,
        },
        10,
        (0.609, 1.021, 0.814, 1.095),
    ),
    (
        {
            "table": "label_traces/houston_crime_2010.parquet",
            "group": "beat",
            "time": "time",
            "label": "offense",
            "window": "month",
        },
        10,
        (0.255, 0.442, 0.319, 0.049),
    ),
]


@pytest.mark.parametrize(
    ("settings", "min_samples", "figures"), PUBLISHED, ids=["covid", "portal", "houston"]
)
def test_the_published_tables_shift_as_their_documentation_says(
    published: Path, settings: dict[str, Any], min_samples: int, figures: tuple[float, ...]
) -> None:
    source = LabelReplay(LabelReplaySettings.model_validate({"images": "no such folder", **settings}))
    rows = source.observations(context(locate=lambda path: published / path))
    shift = label_shift(rows, min_samples)
    assert (
        round(shift.consecutive_mean or 0, 3),
        round(shift.consecutive_p90 or 0, 3),
        round(shift.between_clients or 0, 3),
        round(shift.first_to_last or 0, 3),
    ) == figures
    if min_samples == 20:
        assert (observed_windows(rows, 20) >= 20).sum() == 58
