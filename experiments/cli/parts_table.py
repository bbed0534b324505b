"""`driftscale parts`: the parts that a configuration can name; with a kind or as JSON, their settings too."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.part_facts import PartFacts, part_facts, summary_line
from experiments.part_kinds import PartKind, part_kind, part_kinds
from experiments.setting_facts import SettingFacts

OWN = "A part of your own needs no package: name it by its module and class, as in 'my_module:MyPart'."

LETTERS = 100
"""The length of a line of prose."""


def print_parts(kind: str | None, name: str | None, output: OutputFormat) -> None:
    """Print one part, the parts of one kind with their settings, or the names and summaries of all parts.

    JSON always includes the settings.

    Args:
        kind: The kind; None for all parts.
        name: The name of a part of that kind, or "my_module:MyPart"; None for all of the kind.
        output: A table, or JSON.

    Raises:
        UnknownNameError: There is no such kind, or no such part; the message lists the choices.
        OwnPartError: A module of that name cannot be imported, or has no such part.
    """
    if kind is not None and name is not None:
        _print_part(part_kind(kind), name, output)
    elif kind is not None:
        _print_kind(part_kind(kind), output)
    elif output is OutputFormat.JSON:
        print_json([_as_json(found, facts) for found in part_kinds().values() for facts in _parts_of(found)])
    else:
        rows = [
            {"kind": found.name, "name": part_name, "what it is": summary_line(part)}
            for found in part_kinds().values()
            for part_name, part in found.registry
        ]
        print_table(rows)
        say("driftscale parts KIND shows the settings, driftscale parts KIND NAME one part and an example.")


def setting_rows(settings: Mapping[str, SettingFacts], heading: str = "setting") -> list[dict[str, str]]:
    """A row for each setting, and for each key of the tables that it takes, by its dotted key."""
    rows = []
    for key, facts in settings.items():
        rows.append(
            {
                heading: key,
                "type": facts.type,
                "bounds": facts.bounds,
                "default": facts.default,
                "about": facts.about,
            }
        )
        inner = setting_rows(facts.keys or {}, heading)
        rows += [{**row, heading: f"{key}.{row[heading]}"} for row in inner]
    return rows


def _print_kind(kind: PartKind, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json([_as_json(kind, facts) for facts in _parts_of(kind)])
        return
    for facts in _parts_of(kind):
        say(f"{facts.name}: {facts.about}")
        _print_settings(facts)
        say()
    say(OWN)


def _print_part(kind: PartKind, name: str, output: OutputFormat) -> None:
    facts = part_facts(kind, name)
    if output is OutputFormat.JSON:
        print_json(_as_json(kind, facts))
        return
    say(_wrapped(f"{kind.name} {facts.name}: {facts.about}"))
    for note in facts.notes:
        say(f"\n{textwrap.indent(note.text, '    ') if note.is_verbatim else _wrapped(note.text)}")
    if facts.source is not None:
        say(f"\n{_wrapped(f'Source: {facts.source}')}")
    say()
    _print_settings(facts)
    say(f"In a configuration:\n\n{textwrap.indent(facts.example, '    ')}".rstrip())


def _print_settings(facts: PartFacts) -> None:
    if facts.settings:
        print_table(setting_rows(facts.settings))


def _parts_of(kind: PartKind) -> list[PartFacts]:
    return [part_facts(kind, name) for name in kind.registry.names()]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, LETTERS, break_long_words=False, break_on_hyphens=False)


def _as_json(kind: PartKind, facts: PartFacts) -> dict[str, Any]:
    return {
        "kind": kind.name,
        "name": facts.name,
        "about": facts.about,
        "notes": [note.text for note in facts.notes],
        "source": facts.source,
        "parameters": _settings_as_json(facts.settings),
        "example": facts.example,
    }


def _settings_as_json(settings: Mapping[str, SettingFacts]) -> dict[str, Any]:
    return {
        key: {
            "type": facts.type,
            "bounds": facts.bounds,
            "default": facts.default,
            "about": facts.about,
            **({"keys": _settings_as_json(facts.keys)} if facts.keys else {}),
        }
        for key, facts in settings.items()
    }
