"""The interface of a tracker, and what it is told of a run: facts, then a point for each round.

Points are virtual quantities only, so that a run that is resumed or exported again gives the same points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from emulator.messages import AnyTrigger, NamedNumbers
from emulator.storage.runlog import SCHEMA, RoundRecord
from experiments.results.reading.run_directory import RunDirectory

Setting = bool | int | float | str

MEASURED = tuple(
    item.name for item in SCHEMA.fields if item.logged.tracked and item.column in ("int", "bool", "float")
)
"""Fields of `RoundRecord` that are points under their own name, unless they are None."""

COUNTED = tuple(item.name for item in SCHEMA.columns("list[int]") if item.logged.tracked)
"""Lists of `RoundRecord` whose lengths are points, named `num_<list>`."""


@dataclass(frozen=True)
class RunFacts:
    """One run, as a tracker names and describes it.

    Attributes:
        experiment: The name in the configuration.
        arm: The name of the arm.
        seed: The seed.
        directory: The run directory, absolute.
        version: The version of driftscale that began the run directory; empty if it is not recorded.
        settings: The configuration of the run by dotted key, see `settings_of`.
    """

    experiment: str
    arm: str
    seed: int
    directory: Path
    version: str
    settings: Mapping[str, Setting]

    @classmethod
    def read(cls, directory: RunDirectory, arm: str, seed: int) -> RunFacts:
        """The facts that a run directory records of a run; InputError if a file is missing or damaged."""
        experiment, manifest = directory.experiment(), directory.manifest()
        return cls(
            experiment=str(experiment["name"]),
            arm=arm,
            seed=seed,
            directory=directory.path.absolute(),
            version="" if manifest is None else manifest.versions.get("driftscale", ""),
            settings=settings_of(experiment, arm, seed),
        )


@dataclass(frozen=True)
class Point:
    """One round: its number, the virtual time at which it closed, in seconds, and figures by name."""

    round: int
    closed_s: float
    figures: Mapping[str, float]

    @classmethod
    def of(cls, record: RoundRecord) -> Point:
        """The point of a record: scalars only, so that no array of a value per client is kept."""
        figures: dict[str, float] = {"data_step": record.step, "round_s": record.closed_s - record.opened_s}
        for name in MEASURED:
            if (value := getattr(record, name)) is not None:
                figures[name] = float(value)
        for name in COUNTED:
            figures[f"num_{name}"] = float(len(getattr(record, name)))
        figures["num_abandoned"] = float(record.abandoned)
        if record.trigger is not None:
            figures |= _compared(record.trigger)
        for k, value in (record.silhouettes or {}).items():
            if value is not None:
                figures[f"silhouette_{k}"] = value
        figures |= {f"noted.{name}": float(value) for name, value in (record.noted or {}).items()}
        return cls(record.round, record.closed_s, figures)


class Tracker(Protocol):
    """Receives one run: `begun`, a `round_done` for each round from the first one on, then `ended`.

    `begun` discards what the tracker has of an earlier attempt at the run, whose rounds are told again. Any
    method may raise any exception, and may take long: `GuardedTracker` keeps that from a run.
    """

    def begun(self, facts: RunFacts) -> None:
        """Begin the run, in place of all that there is of it."""

    def round_done(self, point: Point) -> None:
        """Record one round."""

    def ended(self, status: str, summary: Mapping[str, float]) -> None:
        """End the run; everything is written when this returns.

        Args:
            status: "finished", "stopped" (it will be resumed) or "failed".
            summary: Figures of the whole run by name; none while a run is tracked live, since they compare
                it with other runs.
        """


def _compared(trigger: AnyTrigger) -> dict[str, float]:
    """What a trigger compared: its fields, and of named numbers each one, of a list by cluster.

    >>> _compared(NamedNumbers({"spread": 0.5, "sizes": [3, 4]}, clusters=2, fired=True))
    {'trigger_fired': 1.0, 'trigger.spread': 0.5, 'trigger.sizes.0': 3.0, 'trigger.sizes.1': 4.0}
    """
    figures = {
        f"trigger_{name}": float(value)
        for name, value in vars(trigger).items()
        if name not in ("clusters", "numbers") and value is not None
    }
    if isinstance(trigger, NamedNumbers):
        for name, value in trigger.numbers.items():
            if isinstance(value, list):
                figures |= {f"trigger.{name}.{place}": float(item) for place, item in enumerate(value)}
            else:
                figures[f"trigger.{name}"] = float(value)
    return figures


def settings_of(experiment: Mapping[str, Any], arm: str, seed: int) -> dict[str, Setting]:
    """The configuration of one run by dotted key: that of its arm alone, its seed alone.

    A list is given as JSON.

    >>> table = {"name": "x", "seeds": [0, 1], "round": {"rounds": 3}, "arm": [{"name": "a"}, {"name": "b"}]}
    >>> settings_of(table, "b", 1)
    {'name': 'x', 'round.rounds': 3, 'arm.name': 'b', 'seed': 1}
    """
    chosen = next(table for table in experiment["arm"] if table["name"] == arm)
    table = {key: value for key, value in experiment.items() if key != "seeds"}
    return dict(_flat({**table, "arm": chosen, "seed": seed}, ""))


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, Setting]]:
    """The values of nested tables, each with its dotted key."""
    pairs: list[tuple[str, Setting]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool | int | float | str):
            pairs.append((prefix + key, value))
        else:
            pairs.append((prefix + key, json.dumps(value, default=str)))
    return pairs
