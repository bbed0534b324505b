"""The report as a browser draws it; skipped without a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from experiments.results.report import write_report
from tests.experiments.synthetic_runs import a_directory, a_run, realistic_directory, store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--virtual-time-budget=10000", "--enable-logging=stderr", "--dump-dom"),
)
HOSTILE = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")


class Page(HTMLParser):
    """The parts of a dumped page that the tests check; scripts are plain text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.announced = self.plots = self.drawings = 0
        self.images = 0
        self.title = self.text = ""
        self._element = ""
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        classes = attributes.get("class", "").split()
        self._element = tag
        if tag == "body":
            self.announced = int(attributes["data-plots"])
        self.plots += "js-plotly-plot" in classes
        self.drawings += "cartesianlayer" in classes
        self.images += tag == "img"
        self.references += [attributes[name] for name in ("src", "href", "xlink:href") if name in attributes]

    def handle_data(self, data: str) -> None:
        if self._element == "title" and not self.title:
            self.title = data
        if self._element == "text":  # of a drawing
            self.text += data


def opened(report, profile):
    """(page, lines of the console) of a report opened in a fresh browser profile."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", report.as_uri()]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(process.stdout), re.findall(r".*CONSOLE.*", process.stderr)


def test_every_plot_is_drawn_without_an_error_and_without_a_host(tmp_path):
    report = write_report(realistic_directory(tmp_path / "run", seeds=2, rounds=30, clients=40))
    page, console = opened(report, tmp_path / "profile")
    assert console == []
    assert page.announced == page.plots == page.drawings == 8
    assert [reference for reference in page.references if not reference.startswith(("data:", "#"))] == []
    assert "@import" not in report.read_text(encoding="utf-8").split("<script>")[0]


def test_hostile_names_and_bare_runs_are_drawn_too(tmp_path):
    # Degenerate plots: one round, one seed, equal durations, nothing measured but accuracy.
    directory = a_directory(tmp_path / "run", ["global", HOSTILE], [0], name=HOSTILE)
    for arm in directory.arms():
        store(directory, a_run(arm, 0, [0.5], mean_client_distance=None, unclustered_distance=None))
    page, console = opened(write_report(directory), tmp_path / "profile")
    assert console == []
    assert page.announced == page.plots == page.drawings == 6
    assert page.images == 0


def test_names_that_would_end_a_script_or_fill_a_template_run_nothing(tmp_path):
    name = "</script><script>document.title='run'</script>\u2028{{7*7}}"
    arm = "\"'><img src=x onerror=alert(1)>%{x}&lt;<script>"
    directory = a_directory(tmp_path / "run", ["global", arm], [0], name=name)
    for name_of_arm in directory.arms():
        store(directory, a_run(name_of_arm, 0, [0.25, 0.5], clusters=[0, 1]))
    page, console = opened(write_report(directory), tmp_path / "profile")
    assert console == []
    assert page.announced == page.plots == page.drawings == 8
    assert page.images == 0
    assert page.title.startswith(name)
    assert arm in page.text  # in a legend, verbatim
