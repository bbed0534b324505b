"""Trace folders small enough to be worked out by hand, and damaged ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from traces.files import ARRIVALS, FACTS, FEATURES

Columns = Mapping[str, Any]
"""Columns by name: lists, numpy or Arrow arrays."""

ROWS: dict[str, list[Any]] = {
    "client": ["ann", "ann", "ann", "bob", "bob", "bob"],
    "label": [0, 1, 0, 1, 1, 0],
    "sample": [0, 1, 2, 3, 4, 5],
    "step": [0, 0, 1, -1, 1, 2],
    "split": ["train", "test", "train", "train", "train", "test"],
}
"""Two clients, two classes, six samples."""


def write_trace(
    folder: Path,
    rows: Columns = ROWS,
    features: np.ndarray | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a trace folder; by default sample i is the vector (i, 10 i), and `trace.toml` has the version."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(rows)), folder / ARRIVALS)
    if features is None:
        features = np.outer(np.arange(6), [1, 10]).astype(np.float32)
    np.save(folder / FEATURES, features)
    (folder / FACTS).write_text(tomli_w.dumps({"version": 1, **(facts or {})}))
    return folder


def without(*names: str, **columns: Any) -> dict[str, Any]:
    """ROWS without the columns `names`, with others instead or besides."""
    return {name: values for name, values in ROWS.items() if name not in names} | columns


def with_cell(name: str, row: int, value: Any) -> dict[str, Any]:
    """ROWS with another value in one row, counted from 1, of one column."""
    values = list(ROWS[name])
    values[row - 1] = value
    return ROWS | {name: values}
