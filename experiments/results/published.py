"""Our mean and standard deviation over seeds, compared with published values.

Ours is the sample standard deviation (n - 1), and None for a single seed; papers seldom state which standard
deviation they report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COMPARED = ("accuracy_omitting_drift", "accuracy_including_drift")
"""Figures of the summary for which a configuration can give published values, in percent."""


def spread(per_seed: Sequence[float | None], scale: float = 1.0) -> dict[str, Any] | None:
    """`{mean, std, seeds}` of the values of all seeds, multiplied by `scale`.

    `seeds` is their number. None if a seed has no value, or if there are no seeds.
    """
    values = [scale * value for value in per_seed if value is not None]
    if len(values) < len(per_seed) or not values:
        return None
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "std": std, "seeds": len(values)}


def beside_published(
    per_seed: Sequence[float | None], figure: str, arm: str, report: Mapping[str, Any]
) -> dict[str, Any] | None:
    """`spread` in percent, with `published` {mean, std} and `difference` (our mean minus the published one).

    Both are None if `report`, the table `[report]` of a configuration, has no published value of this figure
    and arm; the published `std` is None if only a mean is given. The whole result is None if `spread` is.
    """
    ours = spread(per_seed, scale=100.0)
    if ours is None:
        return None
    values = report.get("published", {}).get(figure, {}).get(arm)
    if values is None:
        return {**ours, "published": None, "difference": None}
    published = {"mean": float(values[0]), "std": float(values[1]) if len(values) > 1 else None}
    return {**ours, "published": published, "difference": ours["mean"] - published["mean"]}
