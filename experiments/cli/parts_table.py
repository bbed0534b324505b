"""`driftscale parts`: the parts that a configuration can name; with a kind or as JSON, their settings too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from emulator.errors import UnknownNameError
from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.setting_descriptions import descriptions

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from emulator.plugins import Registry


def print_parts(kind: str | None, output: OutputFormat) -> None:
    """Print the parts of one kind with their settings, or the names and summaries of all parts.

    All parts are printed if `kind` is None. JSON always includes the settings. Raises UnknownNameError if
    there is no such kind.
    """
    registries = _registries()
    if kind is not None and kind not in registries:
        raise UnknownNameError("kind of part", kind, registries)
    parts = [
        (name, part_name, part)
        for name, registry in registries.items()
        if kind in (None, name)
        for part_name, part in registry
    ]
    if output is OutputFormat.JSON:
        print_json(
            [
                {
                    "kind": name,
                    "name": part_name,
                    "about": first_line(part),
                    "parameters": settings_table(part),
                }
                for name, part_name, part in parts
            ]
        )
        return
    if kind is None:
        rows = [
            {"kind": name, "name": part_name, "what it is": first_line(part)}
            for name, part_name, part in parts
        ]
        print_table(rows)
        say("driftscale parts KIND shows the settings.")
        return
    for _, part_name, part in parts:
        say(f"{part_name}: {first_line(part)}")
        settings = [{"setting": key, **facts} for key, facts in settings_table(part).items()]
        if settings:
            print_table(settings)
        say()
    say("A part of your own needs no package: name it by its module and class, as in 'my_module:MyPart'.")


def _registries() -> dict[str, Registry[Any]]:
    from coordinator.adaptations import ADAPTATIONS
    from coordinator.aggregators import AGGREGATORS
    from coordinator.clusterers import CLUSTERERS
    from coordinator.detectors import DETECTORS
    from coordinator.memories import MEMORIES
    from coordinator.pacing import PACINGS
    from coordinator.representations import REPRESENTATIONS
    from coordinator.schedules import SCHEDULES
    from coordinator.selectors import SELECTORS
    from coordinator.triggers import TRIGGERS
    from executor.models import MODELS
    from executor.rules import RULES
    from traces.availability import AVAILABILITIES
    from traces.concepts import CONCEPT_SETS
    from traces.drift import DRIFTS
    from traces.partitions import PARTITIONS
    from traces.sources import SOURCES

    return {
        "clusterer": CLUSTERERS,
        "representation": REPRESENTATIONS,
        "trigger": TRIGGERS,
        "detector": DETECTORS,
        "selector": SELECTORS,
        "memory": MEMORIES,
        "solver": RULES,
        "aggregator": AGGREGATORS,
        "pacing": PACINGS,
        "adaptation": ADAPTATIONS,
        "schedule": SCHEDULES,
        "model": MODELS,
        "source": SOURCES,
        "drift": DRIFTS,
        "partition": PARTITIONS,
        "concepts": CONCEPT_SETS,
        "availability": AVAILABILITIES,
    }


def first_line(part: Any) -> str:
    """The first paragraph of a part's docstring, on one line."""
    return " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())


def _choices(field: FieldInfo) -> str:
    """The choices of a setting, to follow its description; empty unless it has a fixed set of them."""
    choices = [str(choice) for choice in get_args(field.annotation) if isinstance(choice, str)]
    return f" (one of {', '.join(choices)})" if len(choices) > 1 else ""


def settings_table(part: Any) -> dict[str, dict[str, str]]:
    """The default and the description of each setting of a part, by the name of the setting."""
    about = descriptions(part.Settings)
    return {
        name: {
            "default": "required"
            if field.is_required()
            else str(field.get_default(call_default_factory=True)),
            "about": about[name] + _choices(field),
        }
        for name, field in part.Settings.model_fields.items()
    }
