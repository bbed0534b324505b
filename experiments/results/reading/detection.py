"""The table `[detection]` of a recorded configuration: how the decisions of detectors are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from experiments.results.reading.recorded import require

CHANGED: Literal["changed"] = "changed"

Span = tuple[int, int]
"""A range of rounds: the first and the last, both included."""


@dataclass(frozen=True)
class DetectionSettings:
    """How decisions of detectors are scored.

    Attributes:
        positive: The rounds in which a decision about a client whose data have changed should be a flag: all
            of them ("changed"), those of one span, or those of a span for each kind of drift.
        first_round: The first round that is scored.
        last_round: The last one; None for the last of the run.
        tolerance: Most rounds from a drift to a flag that finds it.
    """

    positive: Literal["changed"] | Span | Mapping[str, Span]
    first_round: int
    last_round: int | None
    tolerance: int


def detection_settings(experiment: Mapping[str, Any]) -> DetectionSettings | None:
    """The table `[detection]` of a configuration; None without one, ValueError if it breaks a rule.

    >>> found = detection_settings({"detection": {"positive": [3, 5], "first_round": 2, "tolerance": 4}})
    >>> found.positive, found.last_round
    ((3, 5), None)
    """
    table = experiment.get("detection")
    if table is None:
        return None
    require(isinstance(table, Mapping), "detection must be a table")
    positive, last = _positive(table.get("positive", CHANGED)), table.get("last_round")
    for key in ("first_round", *(["last_round"] if last is not None else []), "tolerance"):
        require(_is_count(table.get(key)), f"detection.{key} must be a whole number, at least 0")
    found = DetectionSettings(positive, table["first_round"], last, table["tolerance"])
    is_later = last is None or found.first_round <= last
    require(is_later, "detection.last_round must be detection.first_round or a later one")
    return found


def _positive(value: Any) -> Literal["changed"] | Span | Mapping[str, Span]:
    if value == CHANGED:
        return CHANGED
    if isinstance(value, Mapping):
        return {str(kind): _span(span) for kind, span in value.items()}
    return _span(value)


def _span(value: Any) -> Span:
    require(
        isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_count, value)),
        f'detection.positive must be "{CHANGED}", the first and the last of some rounds, or a table of '
        "these for kinds of drifts",
    )
    return value[0], value[1]


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53
