"""What the numbers say, in sentences that claim no more than the intervals allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.comparison import compare
from experiments.formats import (
    UNDETERMINED,
    factor_scale,
    is_undetermined,
    percent_scale,
    points_scale,
    show_estimate,
)
from experiments.report.cells import mean_and_std, scored_steps
from experiments.report.figures import Arm

OMITTING = "accuracy_omitting_drift"


def drift_sentence(finished: Mapping[str, Any], reference_arm: str, report: Mapping[str, Any]) -> str | None:
    """The arm with the highest accuracy omitting drift, beside the reference arm and published values.

    `finished` is that of the summary, `report` the table of the configuration; None without such an accuracy.
    """
    arms = finished["arms"]
    cells = {name: compare(arm, OMITTING, name, report) for name, arm in arms.items()}
    written = {name: _beside_published(cell) for name, cell in cells.items() if cell is not None}
    if not written:
        return None
    best = max(written, key=lambda name: arms[name][OMITTING]["mean"])
    first = ", the first arm," if best == reference_arm else ""
    others = ""
    if reference_arm != best and reference_arm in written:
        others = f"; {reference_arm}, the first arm, has {written[reference_arm]}"
    steps = scored_steps(finished)
    return (
        f"{best}{first} has the highest accuracy omitting drift, {written[best]}{others}."
        f"{f' Scored are {steps}.' if steps else ''}"
    )


def _beside_published(cell: Mapping[str, Any]) -> str:
    published = f" (published: {mean_and_std(cell['published'])} %)" if cell["published"] else ""
    return f"{mean_and_std(cell)} %{published}"


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
    if is_undetermined(speedup):
        takes = "reaches {} sooner" if speedup["mean"] >= 1 else "takes longer to reach {}"
        return f"{takes.format(goal)}, by an undetermined factor"
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
    if is_undetermined(estimate):
        return f"{mean} [{UNDETERMINED}]"
    return f"{mean} {interval}".strip()


def _inverse(estimate: Mapping[str, Any]) -> dict[str, Any]:
    ci95 = estimate["ci95"]
    return {
        "mean": 1 / estimate["mean"],
        "ci95": None if ci95 is None else [1 / ci95[1], 1 / ci95[0]],
    }
