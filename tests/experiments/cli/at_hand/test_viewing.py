from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from tests.experiments.cli.conftest import Driftscale


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


def page(path: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).touch()
    return Path(path)


def test_the_report_or_the_table_is_opened_and_its_path_printed(
    driftscale: Driftscale, opened: list[str]
) -> None:
    report, table = page("runs/a #1/report.html"), page("runs/table.html")
    assert driftscale("view", "runs/a #1").out == "report: runs/a #1/report.html\n"
    assert driftscale("view", "runs").out == "table: runs/table.html\n"
    assert opened == [report.resolve().as_uri(), table.resolve().as_uri()]
    assert "%231" in opened[0]


def test_without_a_browser_or_a_screen_the_path_is_printed_and_a_line_says_so(
    driftscale: Driftscale, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page("a/report.html")
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


@pytest.mark.parametrize(
    ("directory", "problem"),
    [
        ("absent", "absent: no such folder; must be a run directory, or a folder of them"),
        ("empty", "empty: is neither a run directory nor a folder of them"),
        ("runs", "runs: has no report yet; driftscale report runs makes it, once runs are finished"),
        ("runs/a b", "runs/a b: has no report yet; driftscale report 'runs/a b' makes it, once"),
        ("linked", "linked/report.html: is a link to ../elsewhere; "),
    ],
)
def test_a_folder_without_a_report_is_answered_with_the_remedy(
    directory: str, problem: str, driftscale: Driftscale, opened: list[str]
) -> None:
    Path("empty").mkdir()
    page("runs/a b/experiment.toml")
    Path("linked").mkdir()
    Path("linked/report.html").symlink_to("../elsewhere")
    ended = driftscale("view", directory)
    assert (ended.code, opened) == (2, [])
    assert ended.error.startswith(problem)
