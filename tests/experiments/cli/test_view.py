from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.synthetic_runs import a_directory, a_run, store

FOREIGN = "<script>stranger()</script>"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was to open, on a machine with a screen."""
    addresses: list[str] = []

    def browse(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def run_directory(path: str, *finished: str) -> RunDirectory:
    """A run directory of the arms "first" and "other", of which these are finished, with a foreign page."""
    directory = a_directory(Path(path), ["first", "other"], [0], report={"window": 1})
    for arm in finished:
        store(directory, a_run(arm, 0, [0.5, 0.6]))
    directory.report_path.write_text(FOREIGN)
    return directory


def test_the_page_that_is_opened_was_written_by_the_same_command(
    driftscale: Driftscale, opened: list[str]
) -> None:
    report, table = run_directory("runs/a #1", "first").report_path, Path("runs/table.html")
    run_directory("runs/b", "first")
    table.write_text(FOREIGN)
    Path("runs/plotly.min.js").write_text("stranger()")
    for directory, line, page in (
        ("runs/a #1", "report: runs/a #1/report.html\n", report),
        ("runs", "table: runs/table.html\n", table),
    ):
        ended = driftscale("view", directory)
        assert (ended.code, ended.out, ended.err) == (0, line, "")
        assert opened.pop() == page.resolve().as_uri()
        assert "Content-Security-Policy" in page.read_text()
    assert "%231" in report.resolve().as_uri()
    for file in Path("runs").rglob("*.*"):
        assert not file.is_file() or b"stranger()" not in file.read_bytes(), file


def test_the_files_of_a_view_are_those_of_a_report(driftscale: Driftscale, opened: list[str]) -> None:
    for name in ("seen/a", "seen/b", "told/a", "told/b"):
        run_directory(name, "first", "other")
    assert driftscale("view", "seen").code == driftscale("report", "told").code == 0

    def files(folder: str) -> dict[Path, bytes]:
        return {
            file.relative_to(folder): file.read_bytes().replace(b"seen", b"told")
            for file in Path(folder).rglob("*")
            if file.is_file()
        }

    assert files("seen").keys() == files("told").keys()
    assert files("seen")[Path("a/report.html")] == files("told")[Path("a/report.html")]
    assert files("seen")[Path("table.json")] == files("told")[Path("table.json")]


def test_a_table_links_to_no_page_but_those_of_finished_runs(
    driftscale: Driftscale, opened: list[str]
) -> None:
    run_directory("runs/a", "first")
    run_directory("runs/unfinished")
    run_directory("runs/without-reference", "other")
    assert driftscale("view", "runs").code == 0
    page = Path("runs/table.html").read_text()
    assert 'href="a/report.html"' in page
    assert "unfinished/report.html" not in page
    assert "reference/report.html" not in page


def test_without_a_browser_or_a_screen_the_path_is_printed_and_a_line_says_so(
    driftscale: Driftscale, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_directory("a", "first")
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    without_browser = driftscale("view", "a")
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for ended in (without_browser, driftscale("view", "a")):
        assert (ended.code, ended.out) == (0, "report: a/report.html\n")
        assert ended.err == "no browser could be started: open the page by hand\n"
    assert opened == []


def test_without_a_report_to_write_nothing_is_opened_and_the_line_is_that_of_report(
    driftscale: Driftscale, opened: list[str]
) -> None:
    Path("page").mkdir()
    Path("page/report.html").write_text(FOREIGN)
    run_directory("unfinished")
    linked = run_directory("linked", "first")
    linked.report_path.unlink()
    Path("linked/report.html").symlink_to("../elsewhere")
    for directory, problem in (
        ("absent", "absent: no such run directory"),
        ("page", "page: not a run directory, it has no experiment.toml"),
        ("unfinished", "unfinished: no run is finished: 2 not run"),
        ("linked", "linked/report.html: is a link to ../elsewhere; "),
    ):
        for command in ("view", "report"):
            ended = driftscale(command, directory)
            assert (ended.code, opened) == (2, [])
            assert ended.error.startswith(problem)
    other = run_directory("other", "other")
    ended = driftscale("view", "other")
    assert (ended.code, opened) == (2, [])
    assert ended.error == "no report: other has no finished run of the reference arm 'first'"
    assert other.report_path.read_text() == FOREIGN
