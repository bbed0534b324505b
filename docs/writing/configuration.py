"""The page of a configuration: every key of every table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from docs.writing.markdown import heading, page, sentence, table
from docs.writing.parts import DEFAULTS, HEADINGS, settings_rows
from experiments.config import Experiment, PartsRow
from experiments.results.figures import all_figures
from experiments.results.figures.first import tables_on_page
from experiments.setting_facts import SettingFacts, setting_facts

PARTS = "parts/"
"""The folder of the pages of parts."""

INTRODUCTION = f"""\
A configuration is a TOML file. This page has every key of every table, with its type, its bounds and its
default; [parts](parts/index.md) have pages of their own. Unknown keys and values out of bounds are refused
before anything is run, one line a mistake: the file, the key, the rule and, where it is known, the remedy.

{DEFAULTS} A number is never a
text or a truth value. A *part of kind selector* is the name of a part of that kind, or a table with the name
under `kind` and settings beside it. A dotted key, as in `driftscale run --set round.rounds=100`, names a key
of a table; a number in it is an entry of a list, from 0 on, and an arm goes by its name:
`arm.fielding.clusterer.max_clusters`. [Build on another configuration](../howto/extends.md) has the rules of
`extends`, and the schema for editors."""

TRACE = """\
`source` names the [source](parts/source.md), which says what reaches which client, and when; all other keys
are its settings. A folder of images in place of a name is the source `idx` of that folder."""

ARMS = """\
A list of tables, one for each method. An arm has the keys below, and every key of [`[parts]`](#parts) that
it does not take from there. The first arm is the reference."""

PROFILES = """\
The catalogue and the columns of a profile are on [a page of their own](parts/device-profile.md)."""

SWEEP = """\
Lists of values by dotted key. Every combination of them is a cell, an experiment of its own; `--sweep` does
the same from a command. At most 10,000 cells are played without `--yes`."""

SWEEP_EXAMPLE = """```toml
[sweep]
"round.participants" = [5, 10]
"arm.fielding.clusterer.max_clusters" = [4, 8]
```"""

EARLIER = """\
Earlier names are read as well: `target` of `[report]`, a single value, is `targets` with that value alone."""


def configuration_page() -> str:
    """The page of a configuration."""
    facts = setting_facts(Experiment)
    tables = {key: known for key, known in facts.items() if known.keys or key == "trace"}
    return page(
        "Configuration",
        INTRODUCTION,
        heading(2, "Top level"),
        _keys({key: known for key, known in facts.items() if key not in tables}),
        *(block for key in tables for block in _table(key, tables)),
        heading(2, "`[sweep]`"),
        SWEEP,
        SWEEP_EXAMPLE,
        heading(2, "Earlier names"),
        EARLIER,
    )


def _title(key: str, tables: Mapping[str, SettingFacts]) -> str:
    return f"`[[{key}]]`" if tables[key].type.startswith("list") else f"`[{key}]`"


def _table(key: str, tables: Mapping[str, SettingFacts]) -> Iterator[str]:
    """The heading and the keys of one table."""
    yield heading(2, _title(key, tables))
    if key == "trace":
        yield TRACE
        return
    keys = dict(tables[key].keys or {})
    if key == "arm":
        yield ARMS
        keys = {name: known for name, known in keys.items() if name not in PartsRow.model_fields}
        keys["training"] = replace(keys["training"], keys=None)
    else:
        yield sentence(tables[key].about)
    yield _keys(keys)
    if key == "devices":
        yield PROFILES
    if key == "report":
        figures = all_figures()
        tables_alone = [name for name in tables_on_page() if name not in figures]
        yield f"`first` names a figure, {_names(figures)}, or a table, {_names(tables_alone)}."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _keys(settings: Mapping[str, SettingFacts]) -> str:
    return table(("key", *HEADINGS[1:]), settings_rows(settings, PARTS))
