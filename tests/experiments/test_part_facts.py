from __future__ import annotations

import tomllib
from typing import Any

import pytest

from emulator.errors import ConfigurationError
from emulator.plugins import Configured, NoSettings, Registry
from experiments.config import parse_experiment
from experiments.part_facts import Note, part_facts, summary_line
from experiments.part_kinds import PartKind, part_kinds
from tests.experiments.small import SMALL

PARTS = [(kind, name) for kind in part_kinds().values() for name in kind.registry.ours()]


class Documented(Configured):
    """What it is, in a line.

    A note on
    `it`.

        w <- w - g
        v <- v

    Source: Somebody 2020, section 3.

    It leads to an example:

    >>> 1 + 1
    2

    The end.
    """

    Settings = NoSettings


class Bare:
    Settings = NoSettings


def kind_of(**parts: Any) -> PartKind:
    registry: Registry[Any] = Registry("thing", "driftscale.thing", parts)
    return PartKind("thing", registry, "", ("thing",), "thing = {part}\n")


def test_a_docstring_is_a_summary_notes_and_a_source() -> None:
    facts = part_facts(kind_of(documented=Documented), "documented")
    assert facts.about == summary_line(Documented) == "What it is, in a line."
    assert facts.source == "Somebody 2020, section 3."
    assert facts.notes == (
        Note("A note on `it`."),
        Note("w <- w - g\nv <- v", is_verbatim=True),
        Note("The end."),
    )
    assert facts.example == 'thing = "documented"\n'


def test_a_part_that_says_nothing_of_itself_has_no_source() -> None:
    facts = part_facts(kind_of(bare=Bare), "bare")
    assert (facts.about, facts.notes, facts.source) == ("", (), None)


def test_a_part_without_settings_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the thing 'odd' is .*, which has no class Settings"):
        part_facts(kind_of(odd=object), "odd")


@pytest.mark.parametrize(("kind", "name"), PARTS, ids=[f"{kind.name}-{name}" for kind, name in PARTS])
def test_each_of_our_parts_says_where_it_is_from_and_its_example_is_a_valid_configuration(
    kind: PartKind, name: str
) -> None:
    facts = part_facts(kind, name)
    assert facts.about
    assert facts.source, f"{kind.name} {name}: a paragraph 'Source: ...' with the paper, or 'ours'"
    example = tomllib.loads(facts.example)
    parse_experiment({**SMALL, **example}, f"the example of {kind.name} {name}")
    assert name in facts.example
