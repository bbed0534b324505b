"""Hand-written updates for the tests of aggregators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from emulator.messages import ArrayUpdates
from tests.fakes import a_view


def arrived(
    delta: npt.ArrayLike,
    *,
    model: Sequence[int] | None = None,
    num_samples: Sequence[int] | None = None,
    client: Sequence[int] | None = None,
) -> ArrayUpdates:
    """An update per row of `delta` (n,) or (n, P); by default of model 0, one sample and clients 0, 1, ..."""
    rows = np.array(delta, dtype=np.float32)
    rows = rows[:, None] if rows.ndim == 1 else rows
    count = len(rows)
    return ArrayUpdates(
        client=np.arange(count) if client is None else np.array(client, dtype=np.int64),
        model=np.zeros(count, dtype=np.int64) if model is None else np.array(model, dtype=np.int64),
        num_samples=np.ones(count, dtype=np.int64) if num_samples is None else np.array(num_samples),
        num_steps=np.ones(count, dtype=np.int64),
        delta=rows,
    )


def zero_models(count: int = 1, num_parameters: int = 1):
    """A view of `count` models, all zero, with ids 0, 1, ..."""
    return a_view(models=np.zeros((count, num_parameters)), model_ids=list(range(count)))
