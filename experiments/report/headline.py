"""What the numbers say, in sentences that claim no more than the intervals allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report.figures import Arm
from experiments.report.formats import factor_scale, percent_scale, points_scale, show_estimate


def sentences(arms: Sequence[Arm], target: float | None) -> list[str]:
    """A sentence for each arm but the first, the reference; the highest final accuracy comes first.

    `target` is the configured target accuracy, None when it is the reference's own final accuracy.
    """
    reference, *others = arms
    if not others:
        final = _percent(reference.summary["final_accuracy"])
        return [f"{reference.name} ends at {final}; no other arm has finished a seed to compare with it."]
    others.sort(key=lambda arm: -arm.summary["final_accuracy"]["mean"])
    return [
        f"{arm.name} {_speed_clause(arm, reference, target)} and {_gain_clause(arm, reference)}."
        for arm in others
    ]


def _speed_clause(arm: Arm, reference: Arm, target: float | None) -> str:
    summary = arm.summary
    seeds, reached, speedup = summary["seeds"], summary["reached"], summary["speedup"]
    accuracy = _percent(summary["target_accuracy"])
    goal = (
        f"{reference.name}'s final accuracy ({accuracy})" if target is None else f"the target of {accuracy}"
    )
    if reached == 0:
        return f"never reaches {goal}" + (f" in any of {seeds} seeds" if seeds > 1 else "")
    if speedup["mean"] is None:
        return f"reaches {goal} in {reached} of {seeds} seeds"
    if reached < seeds:
        return f"reaches {goal} in {reached} of {seeds} seeds (speed-up {_factor(speedup)}, censored)"
    if arm.is_bounded_by(reference):
        at_least = f"speed-up at least {_factor(speedup)}"
        return f"reaches {goal}, which {reference.name} does not in every seed ({at_least})"
    if speedup["ci95"] is not None and speedup["ci95"][0] <= 1 <= speedup["ci95"][1]:
        return f"reaches {goal} neither measurably sooner nor later (speed-up {_factor(speedup)})"
    if speedup["mean"] >= 1:
        return f"reaches {goal} {_factor(speedup)} sooner"
    return f"takes {_factor(_inverse(speedup))} as long to reach {goal}"


def _gain_clause(arm: Arm, reference: Arm) -> str:
    gain = arm.summary["gain_pp"]
    direction = "higher" if gain["mean"] >= 0 else "lower"
    ends = f"ends {abs(gain['mean']):.1f} pp {direction} than {reference.name}"
    if gain["ci95"] is None:
        return f"{ends} (one seed: no interval)"
    low, high = gain["ci95"]
    if low <= 0 <= high:
        points = " ".join(show_estimate(gain, points_scale(gain["mean"])))
        return f"ends neither measurably higher nor lower than {reference.name} ({points})"
    near, far = sorted((abs(low), abs(high)))
    return f"{ends} [{near:.1f}, {far:.1f}]"


def _percent(estimate: Mapping[str, Any]) -> str:
    return show_estimate(estimate, percent_scale(estimate["mean"]))[0]


def _factor(estimate: Mapping[str, Any]) -> str:
    mean, interval = show_estimate(estimate, factor_scale(estimate["mean"]))
    return f"{mean} {interval}".strip()


def _inverse(estimate: Mapping[str, Any]) -> dict[str, Any]:
    ci95 = estimate["ci95"]
    return {
        "mean": 1 / estimate["mean"],
        "ci95": None if ci95 is None else [1 / ci95[1], 1 / ci95[0]],
    }
