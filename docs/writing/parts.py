"""The pages of parts: one for each kind, and an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.writing import profiles
from docs.writing.in_common import InCommon, Row
from docs.writing.markdown import code, fence, heading, page, prose, quoted_as_code, table
from experiments.part_facts import PartFacts, part_facts
from experiments.part_kinds import PartKind, part_kinds
from experiments.setting_facts import REQUIRED, UNSET, SettingFacts

HEADINGS = ("setting", "type and bounds", "default", "meaning")
"""The columns of a table of settings."""


def kind_pages() -> dict[str, str]:
    """The page of each kind of part, by the name of the kind."""
    return {name: _kind_page(kind) for name, kind in part_kinds().items()}


def index_page() -> str:
    """The page of all kinds and the names of their parts."""
    rows = [
        (
            f"[{name}]({name}.md)",
            prose(kind.about),
            ", ".join(f"[`{part}`]({name}.md#{part})" for part in kind.registry.ours()),
        )
        for name, kind in part_kinds().items()
    ]
    rows.append((f"[device profile]({profiles.NAME}.md)", profiles.ABOUT, profiles.names()))
    return page(
        "Parts",
        "A method is a row of parts, and so are the trace and the availability of clients. A configuration "
        "names a part by its name, or by a table with its name under `kind` and its settings beside it (a "
        "trace has it under `source`). `driftscale parts` lists them, `driftscale parts KIND NAME` shows "
        "one.",
        table(("kind", "what it decides", "parts"), rows),
        "A [part of your own](../../howto/parts/index.md) is named by its module and its class, as in "
        '`"my_parts:MyPart"`, or registered by a package. "Ours" as a source means that there is no paper.',
    )


def _kind_page(kind: PartKind) -> str:
    parts = [part_facts(kind, name) for name in kind.registry.ours()]
    shared = InCommon("In common", HEADINGS, [settings_rows(part.settings) for part in parts])
    return page(
        f"Parts: {kind.name}",
        prose(kind.about),
        f"Named by {', '.join(map(code, kind.keys))}; entry-point group of [your own]"
        f"(../../howto/parts/{kind.name}.md): `{kind.registry.group}`.",
        *shared.section(2),
        *(block for part in parts for block in _part(part, shared)),
    )


def _part(facts: PartFacts, shared: InCommon) -> Iterator[str]:
    yield heading(2, code(facts.name))
    yield prose(facts.about)
    for note in facts.notes:
        yield fence("text", note.text) if note.is_verbatim else prose(note.text)
    if facts.source is not None:
        yield f"Source: {prose(facts.source)}"
    yield from shared.own(settings_rows(facts.settings))
    yield "" if facts.settings else "It has no settings."
    yield fence("toml", facts.example)


def settings_rows(settings: Mapping[str, SettingFacts], parts: str = "", before: str = "") -> list[Row]:
    """A row for each setting, and for each key of a table that it takes; `parts` leads to pages of parts."""
    rows = []
    for key, facts in settings.items():
        is_word = facts.default in (REQUIRED, UNSET)
        default = facts.default if is_word else code(facts.default)
        kind = ": ".join(filter(None, [_type(facts, parts), _bounds(facts)]))
        rows.append((code(f"{before}{key}"), kind, default, quoted_as_code(facts.about)))
        rows += settings_rows(facts.keys or {}, parts, f"{before}{key}.")
    return rows


def _type(facts: SettingFacts, parts: str) -> str:
    shown = quoted_as_code(facts.type)
    if facts.kind is None:
        return shown
    return shown.replace(f"kind {facts.kind}", f"kind [{facts.kind}]({parts}{facts.kind}.md)")


def _bounds(facts: SettingFacts) -> str:
    before, of_the_form, pattern = facts.bounds.partition("of the form ")
    return f"{prose(before)} {of_the_form}{code(pattern)}".strip() if of_the_form else prose(facts.bounds)
