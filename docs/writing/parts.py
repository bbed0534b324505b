"""The pages of parts: one for each kind, and an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from docs.writing import profiles
from docs.writing.in_common import InCommon, Row
from docs.writing.markdown import code, fence, heading, page, prose, quoted_as_code, table
from experiments.part_facts import PartFacts, part_facts
from experiments.part_kinds import PartKind, part_kinds
from experiments.setting_facts import REQUIRED, UNSET, SettingFacts

HEADINGS = ("setting", "values", "default", "meaning")
"""The columns of a table of settings."""

STATE = "State: "
"""What stands before the end of a paragraph that says what a checkpoint has of a part; no page has it."""

DEFAULTS = """\
A setting without a default is not set, and may be left out. A *share* is a number from 0 to 1. Without other
bounds, a *whole number* is from 1 to 1,000,000,000, and a *number* at most 1e38."""
"""What tables of settings do not say of each."""

UNSAID = re.compile("^1 to 1,000,000,000( each)?$|, at most 1e38")
UNSAID_OF_SHARES = re.compile("^0 to 1$|^at least 0, |, at most 1$")
"""The bounds that `DEFAULTS` says."""


def kind_pages() -> dict[str, str]:
    """The page of each kind of part, by the name of the kind."""
    return {name: _kind_page(kind) for name, kind in part_kinds().items()}


def index_page() -> str:
    """The page of all kinds and the names of their parts."""
    rows = [
        (
            f"[{name}]({name}.md)",
            ", ".join(f"[`{part}`]({name}.md#{part})" for part in kind.registry.ours()),
        )
        for name, kind in part_kinds().items()
    ]
    rows.append((f"[device profile]({profiles.NAME}.md)", profiles.names()))
    return page(
        "Parts",
        "A method is a row of parts, and so are the trace and the availability of clients. A configuration "
        "names a part by its name, or by a table with its name under `kind` and its settings beside it (a "
        "trace has it under `source`). `driftscale parts` lists them, `driftscale parts KIND NAME` shows "
        "one, with an example.",
        table(("kind", "parts"), rows),
        "A [part of your own](../../howto/parts/index.md) is named by its module and its class, as in "
        '`"my_parts:MyPart"`, or registered by a package. "Ours" as a source means that there is no paper. '
        f"{DEFAULTS}",
    )


def _kind_page(kind: PartKind) -> str:
    parts = [part_facts(kind, name) for name in kind.registry.ours()]
    shared = InCommon("In common", HEADINGS, [settings_rows(part.settings) for part in parts])
    return page(
        f"Parts: {kind.name}",
        prose(kind.about),
        f"Named by {', '.join(map(code, kind.keys))}. [One of your own](../../howto/parts/{kind.name}.md); "
        "[types and defaults](index.md).",
        *shared.section(2),
        *(block for part in parts for block in _part(part, shared, parts[0])),
    )


def _part(facts: PartFacts, shared: InCommon, first: PartFacts) -> Iterator[str]:
    """The block of a part; the first has an example, and others if more than their name is needed."""
    yield heading(2, code(facts.name))
    yield prose(facts.about)
    for note in facts.notes:
        yield fence("text", note.text) if note.is_verbatim else prose(note.text.partition(STATE)[0])
    if facts.source is not None:
        yield f"Source: {prose(facts.source)}"
    yield from shared.own(settings_rows(facts.settings))
    yield "" if facts.settings else "It has no settings."
    needs_more = any(setting.default == REQUIRED for setting in facts.settings.values())
    if facts is first or needs_more or facts.example.count("\n") > first.example.count("\n"):
        yield fence("toml", facts.example)


def settings_rows(settings: Mapping[str, SettingFacts], parts: str = "", before: str = "") -> list[Row]:
    """A row for each setting, and for each key of a table that it takes; `parts` leads to pages of parts."""
    rows = []
    for key, facts in settings.items():
        default = {REQUIRED: REQUIRED, UNSET: ""}.get(facts.default, code(facts.default))
        kind = ": ".join(filter(None, [_type(facts, parts), _bounds(facts)]))
        rows.append((code(f"{before}{key}"), kind, default, quoted_as_code(facts.about)))
        rows += settings_rows(facts.keys or {}, parts, f"{before}{key}.")
    return rows


def _type(facts: SettingFacts, parts: str) -> str:
    shown = quoted_as_code(facts.type.removeprefix("one of "))
    if facts.kind is None:
        return shown
    return shown.replace(f"kind {facts.kind}", f"kind [{facts.kind}]({parts}{facts.kind}.md)")


def _bounds(facts: SettingFacts) -> str:
    """The bounds, without those that are said once."""
    unsaid = UNSAID_OF_SHARES if facts.type == "share" else UNSAID
    before, of_the_form, pattern = unsaid.sub("", facts.bounds).partition("of the form ")
    return f"{prose(before)} {of_the_form}{code(pattern)}".strip() if of_the_form else prose(before)
