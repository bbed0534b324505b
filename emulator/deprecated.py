"""Old names of the plug-in surface, which keep working until version 0.2.0 with a DeprecationWarning.

All of them are renames: the old name gives the same object as the new one. This module and every use of it
are removed in 0.2.0.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from emulator.arrays import Floats

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

REMOVED_IN = "0.2.0"

NAMES: Mapping[str, Mapping[str, str]] = {
    "coordinator.aggregators.fedavg": {"FedAvgParameters": "FedAvgSettings"},
    "coordinator.aggregators.krum": {"KrumParameters": "KrumSettings"},
    "coordinator.aggregators.norm_clip": {"NormClipParameters": "NormClipSettings"},
    "coordinator.aggregators.trimmed_mean": {"TrimmedMeanParameters": "TrimmedMeanSettings"},
    "coordinator.candidates": {"Pool": "Candidates"},
    "coordinator.clusterers.accuracy_drift": {"AccuracyDriftParameters": "AccuracyDriftSettings"},
    "coordinator.clusterers.aue": {"AueParameters": "AueSettings"},
    "coordinator.clusterers.cfl": {"CflParameters": "CflSettings"},
    "coordinator.clusterers.driftsurf": {"DriftSurfParameters": "DriftSurfSettings"},
    "coordinator.clusterers.feddrift": {"FedDriftParameters": "FedDriftSettings"},
    "coordinator.clusterers.fielding": {"FieldingParameters": "FieldingSettings"},
    "coordinator.clusterers.ifca": {"IfcaParameters": "IfcaSettings"},
    "coordinator.clusterers.kue": {"KueParameters": "KueSettings"},
    "coordinator.clusterers.partition": {"PartitionParameters": "PartitionSettings"},
    "coordinator.memories.claimed": {"ClaimedParameters": "ClaimedSettings"},
    "coordinator.memories.held": {"HeldParameters": "HeldSettings"},
    "coordinator.pacing.fixed": {"FixedParameters": "FixedSettings"},
    "coordinator.pacing.sync": {"SyncParameters": "SyncSettings"},
    "coordinator.schedules.adaptive_lr": {"AdaptiveLearningRateParameters": "AdaptiveLearningRateSettings"},
    "coordinator.selectors": {"Pool": "Candidates"},
    "coordinator.view": {"Answers": "ScoreResponse", "Ask": "ScoreRequest"},
    "emulator.plugins": {"Parameters": "Settings", "NoParameters": "NoSettings"},
    "traces.availability.diurnal": {"DiurnalParameters": "DiurnalSettings"},
    "traces.availability.intervals": {"IntervalsParameters": "IntervalsSettings"},
    "traces.concepts.images": {
        "FolderParameters": "FolderSettings",
        "LabelSwapsParameters": "LabelSwapsSettings",
        "LabelSubsetsParameters": "LabelSubsetsSettings",
    },
    "traces.concepts.points": {"SeaParameters": "SeaSettings"},
    "traces.concepts.tables": {"TablesParameters": "TablesSettings"},
    "traces.draw": {"StreamParameters": "StreamSettings"},
    "traces.drift.label_mix": {"LabelMixParameters": "LabelMixSettings"},
    "traces.sources.concepts": {"ConceptsParameters": "ConceptsSettings"},
    "traces.sources.label_replay": {"LabelReplayParameters": "LabelReplaySettings"},
    "traces.sources.mixed_images": {
        "MixedImagesParameters": "MixedImagesSettings",
        "IdxParameters": "IdxSettings",
    },
}
"""For each module, its old names and the present name of each."""

MEMBERS: Mapping[str, Mapping[str, str]] = {
    "Clusterer": {"representation": "needs_reports"},
    "Configured": {"Parameters": "Settings"},
    "Memory": {"remix": "models_changed"},
    "Schedule": {"settings": "task_settings"},
}
"""For each base class of parts, the old names of its members and the present name of each."""

FIELDS: Mapping[str, Mapping[str, str]] = {
    "Assignment": {"remix": "mixing", "heir": "successor", "lane": "lane_of_client"},
    "Chosen": {"parameters": "settings"},
    "RoundRecord": {"kept": "completed"},
}
"""For each class, the old names of its fields and the present name of each."""

OURS = ("emulator", "device_profiles", "traces", "coordinator", "executor")
"""Packages whose classes have members that were renamed."""

BETWEEN = ("emulator.deprecated", "emulator.plugins", "abc", "importlib._bootstrap")
"""Modules whose frames lie between a use of an old name and its warning."""


def warn_renamed(old: str, new: str) -> None:
    """Emit a DeprecationWarning that `old` is now `new`, attributed to the line that uses the old name."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        f"{old} is now {new}; the old name goes with {REMOVED_IN}",
        DeprecationWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def keep_old_names(module: str) -> None:
    """Make the old names of `module` available as its attributes, each use with a warning.

    To be called by the module itself, at its end.
    """
    new_of_old = NAMES[module]

    def look_up(name: str) -> Any:
        if name not in new_of_old:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", new_of_old[name])
        return vars(sys.modules[module])[new_of_old[name]]

    vars(sys.modules[module])["__getattr__"] = look_up  # type checkers do not see it


def renamed_arguments(**new_of_old: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that lets a function accept renamed keyword arguments under their old names."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in new_of_old.items():
                if old in kwargs and new in kwargs:
                    raise TypeError(
                        f"{function.__qualname__}: {old} is the old name of {new}: give one of them"
                    )
                if old in kwargs:
                    warn_renamed(f"{function.__qualname__}({old}=...)", f"{new}=...")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorated


def renamed_fields(cls: C) -> C:
    """Class decorator that keeps the old names of renamed fields.

    The constructor accepts the old names as keyword arguments, and instances have read-only attributes of
    these names.
    """
    new_of_old = FIELDS[cls.__name__]
    cls.__init__ = renamed_arguments(**new_of_old)(cls.__init__)  # type: ignore[misc]
    for old, new in new_of_old.items():
        setattr(cls, old, _renamed_attribute(cls.__name__, old, new))
    return cls


def _renamed_attribute(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn_renamed(f"{owner}.{old}", new)
        return getattr(self, new)

    return property(read)


def adopt_old_members(cls: type) -> None:
    """Make renamed members work under their old names in `cls`, a class that was just created.

    A member that `cls`, or a mixin of it, defines under an old name gets the new name; one that it defines
    under a new name is readable under the old name too. The constructors of our own parts take `parameters`.
    """
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in OURS]
    for old, new in (item for base in ours for item in MEMBERS.get(base.__name__, {}).items()):
        for base in cls.__mro__:
            member = vars(base).get(old)
            if new in vars(base) or isinstance(member, _OldMember):
                break
            if member is not None and (old != "settings" or callable(member)):
                warn_renamed(f"{base.__name__}.{old}", new)
                setattr(cls, new, member)
                break
        if new in vars(cls):
            setattr(cls, old, _OldMember(vars(cls)[new], old, new))
    if "__init__" in vars(cls) and cls in ours:
        cls.__init__ = renamed_arguments(parameters="settings")(vars(cls)["__init__"])  # type: ignore[misc]


class _OldMember:
    """Descriptor: a class member under its old name, with a warning at each access."""

    def __init__(self, member: Any, old: str, new: str) -> None:
        self._member = member
        self._old, self._new = old, new

    def __get__(self, instance: object, owner: type) -> Any:
        # The state of a part looks up its attributes, such as `settings`, in the class: that is no use.
        if instance is not None or self._old != "settings":
            warn_renamed(f"{owner.__name__}.{self._old}", self._new)
        bind = getattr(self._member, "__get__", None)
        return self._member if isinstance(self._member, type) or bind is None else bind(instance, owner)


class OldSettings:
    """Descriptor: the settings of a part under their old name, `parameters`, with a warning at each access.

    A part may have an attribute `parameters` of another kind, such as those of a model: it is left alone.
    """

    def __get__(self, part: Any, owner: type) -> Any:
        if part is not None and "parameters" in vars(part):
            return vars(part)["parameters"]
        for base in owner.__mro__:
            other = vars(base).get("parameters", self)
            if other is not self:  # such as the method of torch's Module
                return other.__get__(part, owner) if hasattr(other, "__get__") else other
        if part is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute 'parameters'")
        warn_renamed(f"{owner.__name__}.parameters", "settings")
        return part.settings

    def __set__(self, part: Any, value: Any) -> None:
        if isinstance(value, BaseModel):
            warn_renamed(f"{type(part).__name__}.parameters", "settings")
            part.settings = value
        else:
            vars(part)["parameters"] = value


def settings_class(part: Any) -> Any:
    """`Settings` of a part, or what a part that is not derived from our base has as `Parameters`; or None."""
    if not hasattr(part, "Settings") and hasattr(part, "Parameters"):
        warn_renamed(f"{part.__name__}.Parameters", "Settings")
        return part.Parameters
    return getattr(part, "Settings", None)


class OldUpdates:
    """Base of `ArrayUpdates` with the old names of its members."""

    def mix(self, weights: Floats) -> Floats:
        """Old name of `Updates.weighted_sum`."""
        warn_renamed("Updates.mix", "Updates.weighted_sum")
        summed: Floats = self.weighted_sum(weights)  # type: ignore[attr-defined]
        return summed


class OldSampleRanges:
    """Base of `SampleRanges` with the old names of its members."""

    @classmethod
    def side_by_side(cls, *args: Any, **kwargs: Any) -> Any:
        """Old name of `SampleRanges.joined`."""
        warn_renamed("SampleRanges.side_by_side", "SampleRanges.joined")
        return cls.joined(*args, **kwargs)  # type: ignore[attr-defined]
