"""Our mean and standard deviation over seeds, compared with published values.

Ours is the sample standard deviation (n - 1), and None for a single seed; papers seldom state which standard
deviation they report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

COMPARED = ("accuracy_omitting_drift", "accuracy_including_drift")
"""Figures of the summary for which a configuration can give published values, in percent."""

MOST_DEVIATIONS = 2.0
"""Published standard deviations that our mean may be away from the published one, and not be `outside`."""

FEWEST_RANKED = 3
"""Methods below which a rank correlation means nothing: of two it is always 1 or -1."""


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
    per_seed: Sequence[float | None],
    figure: str,
    arm: str,
    report: Mapping[str, Any],
    marked: Collection[int] = (),
    seed_ids: Sequence[int] = (),
) -> dict[str, Any] | None:
    """`spread` in percent, beside the published value and beside `spread` without the marked seeds.

    The further entries are None where nothing is known: `published` {mean, std}, whose `std` is None if only
    a mean is given; `difference`, our mean minus the published one; `outside`, whether that is more than
    `MOST_DEVIATIONS` published standard deviations, None for a standard deviation of 0; and `unmarked`, the
    spread without the marked seeds, None if no seed is marked.

    Args:
        per_seed: The figure of each seed, a share.
        figure: Its name, one of `COMPARED`.
        arm: Name of the arm.
        report: The table `[report]` of a configuration.
        marked: The seeds that are marked (marked_seeds.py).
        seed_ids: The seeds of `per_seed`; without them, `unmarked` is None.

    Returns:
        The entries, or None if `spread` is None.
    """
    ours = spread(per_seed, scale=100.0)
    if ours is None:
        return None
    values = report.get("published", {}).get(figure, {}).get(arm)
    kept = [value for seed, value in zip(seed_ids, per_seed, strict=bool(seed_ids)) if seed not in marked]
    apart = {"unmarked": spread(kept, scale=100.0) if marked and seed_ids else None}
    if values is None:
        return {**ours, "published": None, "difference": None, "outside": None, **apart}
    published = {"mean": float(values[0]), "std": float(values[1]) if len(values) > 1 else None}
    difference, std = ours["mean"] - published["mean"], published["std"]
    outside = abs(difference) > MOST_DEVIATIONS * std if std else None
    return {**ours, "published": published, "difference": difference, "outside": outside, **apart}


def agreement(cells: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """How well the means of several arms agree with the published ones.

    Args:
        cells: A cell of `beside_published` for each arm.

    Returns:
        `methods`, the number of arms with a published value; `inside`, of those with a published standard
        deviation, the number within `MOST_DEVIATIONS` of them; `outside`, the names of the others;
        `rank_correlation`, Spearman's of our means and the published ones, ties by average ranks, None with
        under `FEWEST_RANKED` methods or with equal means only. None if no arm has a published value.
    """
    known = {arm: cell for arm, cell in cells.items() if cell["published"] is not None}
    if not known:
        return None
    ours = [cell["mean"] for cell in known.values()]
    published = [cell["published"]["mean"] for cell in known.values()]
    is_ranked = len(known) >= FEWEST_RANKED and len(set(ours)) > 1 and len(set(published)) > 1
    correlation = _spearman(ours, published) if is_ranked else None
    return {
        "methods": len(known),
        "inside": sum(cell["outside"] is False for cell in known.values()),
        "outside": [arm for arm, cell in known.items() if cell["outside"]],
        "rank_correlation": correlation,
    }


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    from scipy.stats import spearmanr  # takes half a second, so only where values are published

    return float(spearmanr(one, other).statistic)
