"""Our mean and standard deviation over seeds, beside the value that a paper reports.

The standard deviation is the sample's (n - 1), None for one seed; papers seldom say which theirs is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COMPARED = ("accuracy_omitting_drift", "accuracy_including_drift")
"""Figures of the summary that a configuration can give published values for, in percent."""


def spread(per_seed: Sequence[float | None], scale: float = 1.0) -> dict[str, Any] | None:
    """`{mean, std, seeds}` of `scale` x each seed's figure; None where a seed has none."""
    values = [scale * value for value in per_seed if value is not None]
    if len(values) < len(per_seed) or not values:
        return None
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "std": std, "seeds": len(values)}


def compare(
    per_seed: Sequence[float | None], figure: str, arm: str, report: Mapping[str, Any]
) -> dict[str, Any] | None:
    """`spread` in percent, with `published` {mean, std} and `difference` (ours minus theirs), None without.

    `report` is the table of that name of a configuration.
    """
    ours = spread(per_seed, scale=100.0)
    if ours is None:
        return None
    values = report.get("published", {}).get(figure, {}).get(arm)
    if values is None:
        return {**ours, "published": None, "difference": None}
    published = {"mean": float(values[0]), "std": float(values[1]) if len(values) > 1 else None}
    return {**ours, "published": published, "difference": ours["mean"] - published["mean"]}
