"""What is known of a part: its docstring, the source that names, its settings, and an example.

A docstring has a summary, notes, and a paragraph "Source: ..." with the paper, or "ours". Doctests are for
tests, and left out.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from emulator.errors import ConfigurationError
from emulator.plugins import Registry
from experiments.part_kinds import PartKind
from experiments.setting_facts import SettingFacts, setting_facts, toml_value

SOURCE = "Source: "
"""How the paragraph of a docstring begins that says where a part is from."""


@dataclass(frozen=True)
class Note:
    """A paragraph of a docstring: on one line, or, if it `is_verbatim`, with the lines of a formula."""

    text: str
    is_verbatim: bool = False


@dataclass(frozen=True)
class PartFacts:
    """What is known of a part.

    Attributes:
        name: Its name.
        about: The summary of its docstring.
        notes: The other paragraphs, without doctests and the source.
        source: The paper, section and equation that it is from, or "ours"; None if its docstring says
            nothing.
        settings: Its settings by name.
        example: Lines of a configuration that name it, with the settings whose `Field` has `examples`, or
            else the first one.
    """

    name: str
    about: str
    notes: tuple[Note, ...]
    source: str | None
    settings: Mapping[str, SettingFacts]
    example: str


def _other_half(part: type[Any]) -> str:
    """The line of the part that this one cannot be without: a rule's aggregator, or an aggregator's rule."""
    from coordinator.aggregators import AGGREGATORS
    from executor.rules import RULES

    def averages(aggregator: type[Any]) -> set[str]:
        """The names of the rules whose slots it averages: a slot's name begins with its rule's."""
        return {slot.partition(".")[0] for slot in getattr(aggregator, "averages", ())}

    for name in AGGREGATORS.ours() if hasattr(part, "receives") else ():
        aggregator = AGGREGATORS.find(name)
        if any(RULES.find(rule) is part for rule in averages(aggregator) & set(RULES.ours())):
            return f'aggregator = "{name}"\n'
    for name in RULES.ours():
        if name in averages(part):
            return f'solver = ["{name}", "sgd"]\n'
    return ""


def part_facts(kind: PartKind, name: str) -> PartFacts:
    """What is known of the part of that name.

    Raises:
        UnknownNameError: There is no such part; the message lists the choices.
        OwnPartError: A module of that name cannot be imported, or has no such part.
        ConfigurationError: A plug-in cannot be loaded, or the part has no class `Settings`.
    """
    part = kind.registry.find(name)
    settings = settings_of(kind.registry, name, part)
    notes = tuple(_paragraphs(part.__doc__ or ""))
    sources = [note.text.removeprefix(SOURCE) for note in notes if note.text.startswith(SOURCE)]
    example = kind.example_of(name, _shown(settings))
    if not getattr(part, "is_optimiser", True):  # a local rule that needs one behind it
        example = example.removesuffix("]\n") + ', "sgd"]\n'
    example += _other_half(part)
    return PartFacts(
        name,
        summary_line(part),
        tuple(note for note in notes[1:] if not note.text.startswith(SOURCE)),
        sources[0] if sources else None,
        setting_facts(settings),
        example,
    )


def settings_of(registry: Registry[Any], name: str, part: Any) -> type[BaseModel]:
    """The class of the settings of a part; ConfigurationError if it has none."""
    declared = getattr(part, "Settings", None)
    if not (isinstance(declared, type) and issubclass(declared, BaseModel)):
        raise ConfigurationError(f"the {registry.kind} {name!r} is {part!r}, which has no class Settings")
    return declared


def summary_line(part: Any) -> str:
    """The first paragraph of a part's docstring, on one line."""
    return next((note.text for note in _paragraphs(part.__doc__ or "")), "")


def _paragraphs(docstring: str) -> Iterator[Note]:
    """The paragraphs of a docstring without its doctests, and without the sentences that lead to them."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    for paragraph, following in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
        leads = following.lstrip().startswith(">>>") and paragraph.rstrip().endswith(":")
        if not paragraph.strip() or paragraph.lstrip().startswith(">>>") or leads:
            continue
        if paragraph.startswith("    "):
            yield Note(textwrap.dedent(paragraph).rstrip(), is_verbatim=True)
        else:
            yield Note(" ".join(paragraph.split()))


def _shown(settings: type[BaseModel]) -> dict[str, str]:
    """The settings that an example has: those required and those that declare one, or else the first."""
    fields = {field.alias or name: field for name, field in settings.model_fields.items()}
    shown = {key: field.examples[0] for key, field in fields.items() if field.examples}
    defaults = {
        key: value
        for key, field in fields.items()
        if not field.is_required() and (value := field.get_default(call_default_factory=True)) is not None
    }
    chosen = shown or dict(list(defaults.items())[:1])
    return {key: toml_value(value) for key, value in chosen.items()}
