"""Names and values from outside are shown in the pages as text, and never become part of their HTML."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from experiments.results.pages import write_report
from experiments.results.pages.folder_page import render_table
from experiments.results.tables.summary import write_summary
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_run, store, tables_of

# Without a slash, as they are also names of arms and so of folders; "</script>" has a test of its own.
HOSTILE = {
    "script": "<script>alert(1)",
    "quotes": "\"'><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)',
    "entities": "&lt;b&gt; &amp; a&b &#x3c;i&#x3e;",
    "line separators": "a\u2028<!--\u2029<b>",
    "templates": "{{ 7 * 7 }} {% if %} ${alert(1)} %{x} %{customdata}",
    "comment": "<!-- --> <![CDATA[ ]]>",
}


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, its text, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, ...]] = []
        self.comments = 0
        self.text = ""
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments += 1


def a_report(folder: Path, name: str) -> str:
    """A report in which every text from outside is or contains `name`."""
    arms = [f"first {name}", f"second {name}"]
    published = {"accuracy_omitting_drift": {arms[1]: [60.0, 1.0]}}
    directory = a_directory(
        folder,
        [*arms, f"third {name}"],
        [0, 1],
        name=name,
        trace={"source": name, "clients": name, "drift": {"kind": name, name: name}},
        devices={"profile": f"{name}.toml", "availability": {"kind": name, "windows": name}},
        report={"window": 1, "published": published},
    )
    printable = "".join(filter(str.isprintable, name))
    command = {"arguments": ["driftscale", printable], "started": "2026-01-31T12:00:00Z"}
    directory.manifest_path.write_text(
        json.dumps({"versions": {name: name}, "commands": [command]}), encoding="utf-8"
    )
    for model, arm in enumerate(arms):
        run = a_drifting_run(arm, 0, [0.5, 0.75], [[0, 0], [0, model]])
        # Two clusters, so that their map is drawn, and a re-clustering, which adds a mark with hover text.
        run.records[1] = type(run.records[1])(
            **{**vars(run.records[1]), "clusters": [0, 1], "reclustered": True}
        )
        store(directory, run)
    directory.start(f"third {name}", 0)
    directory.mark_failed(f"third {name}", 0, f"because of {name}")
    return write_report(directory).read_text(encoding="utf-8")


def a_table(folder: Path, name: str) -> str:
    columns = []
    for folder_name in ("one", "two"):
        directory = a_directory(
            folder / f"{folder_name} {name}",
            [f"arm {name}", f"other {name}"],
            [0],
            name=name,
            round={"key": f"{folder_name} {name}", name: folder_name},
        )
        store(directory, a_run(f"arm {name}", 0, [0.5]))
        write_summary(directory, directory.reported_runs())
        directory.report_path.touch()
        columns.append(directory)
    return render_table(*tables_of(name, columns))


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("page", [a_report, a_table])
def test_a_page_has_the_same_elements_with_hostile_names(tmp_path: Path, page: Any, kind: str) -> None:
    name = HOSTILE[kind]
    plain, hostile = Shape(page(tmp_path / "plain", "plain")), Shape(page(tmp_path / "hostile", name))
    assert hostile.elements == plain.elements
    assert hostile.comments == plain.comments
    assert hostile.text.count(name) >= 4
    for script in hostile.scripts[1:]:  # the first is plotly itself
        assert not set("<\u2028\u2029") & set(script)


def test_a_script_that_is_ended_in_a_value_is_shown_as_text(tmp_path: Path) -> None:
    name = "</script></pre></style><script>alert(1)</script>"
    pages = []
    for value in ("plain", name):
        directory = a_directory(tmp_path / str(len(pages)), ["global"], [0], name=value)
        text = directory.experiment_path.read_text(encoding="utf-8").replace("smartphones", value)
        directory.experiment_path.write_text(text, encoding="utf-8")
        store(directory, a_run("global", 0, [0.5]))
        pages.append(Shape(write_report(directory).read_text(encoding="utf-8")))
    assert pages[0].elements == pages[1].elements
    assert name in pages[1].text


def test_what_plotly_is_handed_is_escaped_for_its_own_html_and_its_templates(tmp_path: Path) -> None:
    page = Shape(a_report(tmp_path, "<b>%{x}"))
    drawn = "".join(page.scripts[1:])
    names = [json.loads(f'"{text}"') for text in drawn.split('"') if "second" in text]
    assert names
    # Names of legend groups are never shown.
    shown = [text for text in names if text != "second <b>%{x}"]
    assert any("re-clustered" in text for text in shown)
    for text in shown:
        assert "second &lt;b&gt;%&#123;x}" in text
