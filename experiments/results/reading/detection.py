"""The table `[detection]` of a recorded configuration: how the decisions of detectors are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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

    def positive_as_json(self) -> object:
        """`positive` as a configuration has it."""
        if isinstance(self.positive, Mapping):
            return {kind: list(span) for kind, span in self.positive.items()}
        return self.positive if isinstance(self.positive, str) else list(self.positive)


def detection_settings(experiment: Mapping[str, Any]) -> DetectionSettings | None:
    """The table `[detection]` of a configuration; None without one, ValueError if it breaks a rule.

    >>> found = detection_settings({"detection": {"positive": [3, 5], "first_round": 2, "tolerance": 4}})
    >>> found.positive, found.last_round
    ((3, 5), None)
    """
    table = experiment.get("detection")
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise ValueError("detection must be a table")
    last = table.get("last_round")
    found = DetectionSettings(
        _positive(table.get("positive", CHANGED)),
        _count(table, "first_round"),
        None if last is None else _count(table, "last_round"),
        _count(table, "tolerance"),
    )
    if found.last_round is not None and found.last_round < found.first_round:
        raise ValueError("detection.last_round must be detection.first_round or a later one")
    return found


def _positive(value: Any) -> Literal["changed"] | Span | Mapping[str, Span]:
    if value == CHANGED:
        return CHANGED
    if isinstance(value, Mapping):
        return {str(kind): _span(span) for kind, span in value.items()}
    return _span(value)


def _span(value: Any) -> Span:
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(map(_is_count, value)):
        raise ValueError(
            f'detection.positive must be "{CHANGED}", the first and the last of some rounds, or a table of '
            "these for kinds of drifts"
        )
    return value[0], value[1]


def _count(table: Mapping[str, Any], key: str) -> int:
    value = table.get(key)
    if not _is_count(value):
        raise ValueError(f"detection.{key} must be a whole number, at least 0")
    return int(value)  # type: ignore[arg-type]  # it is a whole number


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53
