"""The parts of one's own in a configuration: those whose class is defined outside of our packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from device_profiles import PROFILES
from emulator.errors import abbreviated
from emulator.own.code import name_of
from emulator.own_parts import is_ours, is_own
from emulator.plugins import Chosen, Settings
from experiments.config import Experiment


@dataclass(frozen=True)
class OwnPart:
    """A part of one's own: `what` it is, such as "selector", its class (of a device profile, what was named).

    `chosen` has its settings; None for a device profile.
    """

    what: str
    code: Any
    chosen: Chosen[Any] | None = None

    @property
    def name(self) -> str:
        """Its module and its name in it, as in "my_parts:Steady"."""
        return name_of(self.code)


def named(parts: Sequence[OwnPart]) -> str:
    """The parts in an error, each once."""
    return abbreviated(list(dict.fromkeys(f"{part.what} {part.name!r}" for part in parts)), ", ")


def own_parts(experiment: Experiment, arms: Sequence[str] = ()) -> list[OwnPart]:
    """The own parts that runs of `arms` use, and those of the world that all arms share.

    The world's are the trace, the availability, the device profile, and `round.client_distance`. A part that
    is named several times is there once for each.
    """
    profile = experiment.devices.profile.path
    shared = [experiment.trace, experiment.devices, experiment.round]
    parts = [
        OwnPart(chosen.what, getattr(chosen.part, "made_of", chosen.part), chosen)
        for chosen in _chosen([*shared, *map(experiment.find_arm, arms)])
        if not is_ours(chosen.part)
    ]
    if profile in PROFILES and (is_own(profile) or profile not in PROFILES.ours()):
        parts.append(OwnPart(PROFILES.kind, PROFILES.find(profile)))
    return parts


def _values(settings: Settings) -> list[Any]:
    return [getattr(settings, name) for name in type(settings).model_fields]


def _chosen(value: Any) -> Iterator[Chosen[Any]]:
    """All parts that are chosen in `value`: settings, parts, and tables and lists of these."""
    if isinstance(value, Chosen):
        yield value
        value = value.settings
    within = _values(value) if isinstance(value, Settings) else value
    for item in within.values() if isinstance(within, Mapping) else within:
        if isinstance(item, Chosen | Settings | Mapping | list | tuple):
            yield from _chosen(item)
