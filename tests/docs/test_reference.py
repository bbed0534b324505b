"""The reference and the gallery are as the classes say: `make reference` writes what this test compares."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import driftscale
from docs.writing import pages
from docs.writing.in_common import InCommon
from docs.writing.markdown import CODE, anchor, page, paragraphs, prose, sentence, table
from docs.writing.pages import DOCS, write_pages, written_pages
from emulator.storage.runlog import SCHEMA
from experiments.config import Experiment
from experiments.part_facts import part_facts
from experiments.part_kinds import part_kinds
from experiments.results.frames.columns import columns_of, figures, frame_columns
from experiments.results.statistics.time_to_accuracy import ACCURACIES
from experiments.results.tables.concept_drift import OF_WHOLE_RUNS
from experiments.results.tables.drift import drift_quantities
from experiments.results.tables.targets import OF_TARGETS
from experiments.shipped_facts import shipped_configurations
from tests.ratchets.pinned import pinned

REFERENCE = DOCS / "reference"


@cache
def written() -> dict[str, str]:
    return written_pages()


@pinned("typer", "pydantic")
def test_the_reference_is_as_the_classes_say() -> None:
    stale = [name for name, text in written().items() if not _is(DOCS / name, text)]
    assert stale == [], f"not as the classes say: docs/{', docs/'.join(stale)}; run `make reference`"


def test_every_page_of_the_reference_is_written_but_for_its_front_page() -> None:
    found = {path.relative_to(DOCS).as_posix() for path in REFERENCE.rglob("*.md")}
    assert found - {"reference/index.md"} == {name for name in written() if name != "gallery.md"}


def test_every_part_and_each_of_its_settings_has_its_place() -> None:
    texts = written()
    for name, kind in part_kinds().items():
        for part in kind.registry.ours():
            before, heading, after = texts[f"reference/parts/{name}.md"].partition(f"## `{part}`\n")
            assert heading
            assert f"[`{part}`]({name}.md#{part})" in texts["reference/parts/index.md"]
            its_own, shared = after.split("\n## ")[0], before.partition("## In common\n")[2].split("\n## ")[0]
            for key in part_facts(kind, part).settings:
                is_shared = f"| `{key}` |" in shared and re.search(
                    rf"^\[In common\].* `{key}`", its_own, re.M
                )
                assert f"| `{key}` |" in its_own or is_shared, f"{name} {part} has no {key}"


def test_every_key_figure_column_field_and_configuration_has_its_place() -> None:
    texts = written()
    configuration = texts["reference/configuration.md"].replace("[[", "[").replace("]]", "]")
    for key in Experiment.model_fields:
        assert f"| `{key}` |" in configuration or f"## `[{key}]`\n" in configuration
    of_drift = {
        of.key: f"<accuracy>{of.key.removeprefix(name)}"
        for name in ACCURACIES
        for of in drift_quantities(name)
    }
    for key in (*figures(), *columns_of(OF_TARGETS), *columns_of(OF_WHOLE_RUNS, "finished.")):
        assert f"| `{of_drift.get(key, key)}` |" in texts["reference/frames.md"]
    for frame, columns in frame_columns().items():
        assert f"## `{frame}`\n" in texts["reference/frames.md"]
        for column in columns:
            assert f"| `{column}` |" in texts["reference/frames.md"]
    for field in SCHEMA.fields:
        assert re.search(rf"^\| (`\w+`, )*`{field.line_name}`[ ,]", texts["reference/log.md"], re.MULTILINE)
    for name in driftscale.__all__:
        assert f"driftscale.{name}" in texts["reference/api.md"]
    for item in shipped_configurations():
        assert f"| [`{item.name}`](../experiments/configs/{item.name}.toml) |" in texts["gallery.md"]


def test_what_is_described_once_is_named_where_it_belongs_with_a_default_that_differs() -> None:
    tables = [
        [("`a`", "text", "`1`", "first"), ("`a.b`", "text", "", "key"), ("`c`", "text", "", "own")],
        [("`a`", "text", "`2`", "first"), ("`a.b`", "text", "", "key"), ("`c`", "text", "", "another")],
        [("`a`", "text", "`2`", "first"), ("`a.b`", "text", "", "key")],
    ]
    shared = InCommon("In common", ("name", "type", "default", "meaning"), tables)
    assert list(shared.section(2)) == [
        "## In common",
        "| name | type | default | meaning |\n|---|---|---|---|\n"
        "| `a` | text | `2` | first |\n| `a.b` | text |  | key |",
    ]
    assert list(shared.own([("`a`", "text", "", "first")]))[1] == "[In common](#in-common): `a` (not set)."
    assert list(shared.own(tables[0]))[1] == "[In common](#in-common): `a` (`1`)."
    assert list(shared.own(tables[1])) == [
        "| name | type | meaning |\n|---|---|---|\n| `c` | text | another |",
        "[In common](#in-common): `a`.",
    ]
    assert list(InCommon("In common", ("name",), tables[:1]).section(2)) == []


def test_a_page_renders_as_it_reads() -> None:
    for name, page_text in written().items():
        text = re.sub(r"^```.*?^```", "", page_text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"^<picture>\n.*?^</picture>$", "", text, flags=re.DOTALL | re.MULTILINE)
        for line in CODE.sub("", text).removeprefix("<!--").splitlines():
            assert "`" not in line, f"{name}: code that does not end: {line}"
            assert not re.search(r"(?<!\\)<[A-Za-z/]", line), f"{name}: HTML: {line}"
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
            bars = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
            assert len(bars) == 1, f"{name}: a row has another number of cells: {block}"


def test_pages_are_written_only_if_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "written_pages", written)
    assert len(write_pages(tmp_path)) == len(written())
    (tmp_path / "gallery.md").write_text("old")
    assert write_pages(tmp_path) == [tmp_path / "gallery.md"]


def test_text_is_escaped_where_markdown_would_read_it_as_something_else() -> None:
    assert prose("*a* <b> _c_ d_e `<f> *g*`") == r"\*a\* \<b> \_c\_ d_e `<f> *g*`"
    assert prose("further --seeds, and non--option") == "further `--seeds`, and non--option"
    assert sentence("`code` it is") == "`code` it is."
    assert paragraphs("One.\n\n* two\n  lines\n* three\n\n    x = 1") == [
        "One.",
        "* two lines\n* three",
        "```text\nx = 1\n```",
    ]
    assert anchor("`[[arm]]`") == "arm"


def test_a_table_has_no_empty_columns() -> None:
    assert table(("a", "b"), [("1", ""), ("2", "")]) == "| a |\n|---|\n| 1 |\n| 2 |"
    assert table(("a",), []) == ""
    assert page("Title", "", "text").endswith("# Title\n\ntext\n")


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text
