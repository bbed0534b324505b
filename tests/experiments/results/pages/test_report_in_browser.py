"""The report as a browser draws it; skipped without a browser."""

import json
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from experiments.results.many_runs.directories import run_directories
from experiments.results.pages import plotly_path, write_plotly, write_report
from experiments.results.pages.folder_page import write_table
from experiments.results.pages.scripted_page import template
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured
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
        self.lacks_plotly = False
        self.title = self.text = ""
        self._element = ""
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        classes = attributes.get("class", "").split()
        self._element = tag
        self.lacks_plotly |= tag == "html" and "without-plotly" in classes
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


def opened(report, profile, *flags):
    """(page, lines of the console) of a report, a file or an address, opened in a fresh browser profile."""
    address = report if isinstance(report, str) else report.as_uri()
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={profile}", address]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(process.stdout), re.findall(r".*CONSOLE.*", process.stderr)


UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true;"


def scripted(report, script=UNFOLD):
    """A copy of a report, beside it, which runs a script of the tests at its end."""
    text = report.read_text(encoding="utf-8")
    [nonce] = re.findall(r"script-src 'nonce-([0-9a-f]+)'", text)
    copy = report.with_name("scripted.html")
    copy.write_text(text.replace("</body>", f'<script nonce="{nonce}">{script}</script></body>'), "utf-8")
    return copy


def opened_with_requests(report, profile):
    """(page, lines of the console, addresses that the page requested), files left out."""
    log = profile.with_suffix(".net.json")
    page, console = opened(report, profile, f"--log-net-log={log}")
    net = json.loads(log.read_text())
    start = net["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    begun = [event["params"] for event in net["events"] if event["type"] == start and "params" in event]
    # Requests of the browser itself, among them the one for the page, have no origin.
    return page, console, {job["url"] for job in begun if job.get("initiator") not in (None, "not an origin")}


@contextmanager
def served(folder):
    """Context with the address of a web server for the files in `folder`."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def shared(tmp_path):
    """A run directory in a folder, whose report loads the folder's plotly.js."""
    directory = realistic_directory(tmp_path / "folder" / "run", seeds=2, rounds=30, clients=40)
    write_plotly(tmp_path / "folder")
    write_report(directory, shared_plotly=True)
    return directory


def test_every_plot_is_drawn_without_an_error_and_without_a_host(tmp_path):
    report = write_report(realistic_directory(tmp_path / "run", seeds=2, rounds=30, clients=40))
    page, console, requests = opened_with_requests(scripted(report), tmp_path / "profile")
    assert (console, requests) == ([], set())
    assert page.announced == page.plots == page.drawings == 11
    assert [reference for reference in page.references if not reference.startswith(("data:", "#"))] == []
    assert "@import" not in report.read_text(encoding="utf-8").split("<script")[0]


def test_plots_are_drawn_by_the_folders_file_from_a_disk_and_from_a_web_server(shared, tmp_path):
    copy = scripted(shared.report_path)
    with served(tmp_path / "folder") as server:
        for address, loaded in (
            (copy, set()),  # files are no requests
            (f"{server}/run/{copy.name}", {f"{server}/plotly.min.js"}),
        ):
            page, console, requests = opened_with_requests(address, tmp_path / f"profile-{len(loaded)}")
            assert (console, requests) == ([], loaded)
            assert page.announced == page.plots == page.drawings == 11
            assert not page.lacks_plotly
            references = [text for text in page.references if not text.startswith(("data:", "#"))]
            assert references == ["../plotly.min.js"]


def titled(report, tmp_path, script, *flags):
    """The value that a script gives as the title of a report, from JSON."""
    page, console = opened(scripted(report, script), tmp_path / "profile", *flags)
    assert console == []
    return json.loads(page.title)


def test_a_folded_plot_is_drawn_as_its_fold_first_opens_and_a_link_opens_it(shared, tmp_path):
    page, console = opened(shared.report_path, tmp_path / "profile")
    assert (console, page.announced, page.plots) == ([], 11, 1)
    page, console = opened(f"{shared.report_path.as_uri()}#figure-below", tmp_path / "profile-2")
    assert (console, page.plots) == ([], 4)  # those of its question
    follow = """
        const link = document.querySelector("nav a[href='#why']");
        const fold = document.querySelector("#why details");
        link.click();
        setTimeout(() => {
          const opened = fold.open;
          fold.open = false;
          link.click();  // the address is the same
          const folds = document.querySelectorAll(".question > details[open]");
          document.title = JSON.stringify([opened, fold.open, folds.length]);
        }, 100);"""
    assert titled(shared.report_path, tmp_path, follow) == [True, True, 1]


CLICK = """
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    const traces = () => [...document.querySelectorAll(".js-plotly-plot")].flatMap(({ data }) => data);
    const visible = (arm) => [...new Set(traces()
      .filter((trace) => trace.legendgroup === arm && trace.visible !== false)
      .map((trace) => trace.visible ?? true))];
    const click = async (plot, arm, times) => {
      for (let time = 0; time < times; time++) {
        const entries = [...document.querySelectorAll(`#${plot} .legend .traces`)];
        const entry = entries.find((item) => item.textContent === arm);
        for (const type of ["mousedown", "mouseup"]) {
          entry.querySelector(".legendtoggle").dispatchEvent(new MouseEvent(type, { bubbles: true }));
        }
        await wait(20);
      }
      await wait(900);
    };
    const open = async (question) => {
      document.querySelector(`#${question} details`).open = true;
      await wait(300);
      return document.querySelectorAll(".js-plotly-plot").length;
    };
"""


def test_an_arm_chosen_in_a_legend_is_hidden_in_every_plot_also_in_those_drawn_later(shared, tmp_path):
    script = """
    (async () => {
      const drawn = [await open("pays")];
      await click("accuracy", "static", 1);
      const seen = [visible("static"), visible("fielding")];
      drawn.push(await open("why"));
      seen.push(visible("static"));
      const rows = document.querySelectorAll(".in-a-line tbody tr").length;
      await Plotly.restyle("difference", { visible: true });  // as the list of bases does
      seen.push(visible("static"));
      await click("difference", "static", 1);
      seen.push(visible("static"));
      await click("accuracy", "static", 2);
      seen.push(visible("static"), visible("global"), visible("fielding"));
      await click("below", "static", 2);
      seen.push(visible("global"), visible("fielding"));
      document.title = JSON.stringify([drawn, rows, seen]);
    })();"""
    drawn, rows, seen = titled(shared.report_path, tmp_path, CLICK + script)
    assert drawn[0] < drawn[1]
    assert rows == 3
    hidden, shown = ["legendonly"], [True]
    assert seen == [hidden, shown, hidden, hidden, shown, shown, hidden, hidden, shown, shown]


def test_print_opens_every_fold_and_draws_plots_as_wide_as_paper_and_folds_them_again(shared, tmp_path):
    script = """
    const plots = () => [...document.querySelectorAll(".js-plotly-plot")];
    const state = () => [document.querySelectorAll("details:not([open])").length === 0,
      new Set(plots().map((plot) => plot._fullLayout.width)).size,
      document.getElementById("accuracy")._fullLayout.width, plots().length];
    const states = [state()];
    for (const event of ["beforeprint", "afterprint"]) {
      window.dispatchEvent(new Event(event));
      states.push(state());
    }
    document.title = JSON.stringify(states);"""
    before, printed, after = titled(shared.report_path, tmp_path, script, "--window-size=1280,900")
    assert printed == [True, 1, 670, 11]
    assert before == [False, 1, before[2], 1]
    assert before[2] > 1000
    assert after[::2] == before[::2]


PIXELS = """
    const box = document.querySelector(".js-plotly-plot").getBoundingClientRect();
    const page = () => document.documentElement.scrollHeight;
    const wide = document.documentElement.scrollWidth;
    document.title = JSON.stringify([box.top + scrollY, box.bottom + scrollY, page(), wide]);"""


@pytest.mark.parametrize(("num_arms", "most"), [(1, 2_000), (5, 2_600), (9, 2_600), (22, 3_000)])
def test_a_page_opens_with_its_plot_on_the_first_screen_and_is_short(tmp_path, num_arms, most):
    arms = ["global", *(f"method-{number}" for number in range(1, num_arms))]
    directory = a_directory(tmp_path / "run", arms, range(5), report={"window": 1, "targets": [0.4]})
    for number, arm in enumerate(arms):
        for seed in range(5):
            store(directory, a_run(arm, seed, [0.25, 0.3 + number / 50 + seed / 100, 0.35 + number / 50]))
    for width in (1280, 800, 390):
        top, bottom, height, wide = titled(
            write_report(directory), tmp_path, PIXELS, f"--window-size={width},900"
        )
        assert wide <= max(width, 500)  # of a headless window, which is no narrower
        if width == 1280:
            assert top <= 540
            assert bottom <= 1_020
            assert height <= most


def test_the_figures_of_a_folder_are_drawn_without_an_error_and_without_a_host(tmp_path):
    folder = tmp_path / "folder"
    for number, value in enumerate((5, 10)):
        a_measured(
            folder / str(number),
            {"global": ONE, "fielding": OTHER},
            swept={"round.participants": value},
            name=str(number),
            round={"participants": value},
        )
    a_measured(folder / "alone", {"global": ONE, "fielding": OTHER}, name="alone", trace={"source": "t"})
    write_plotly(folder)
    write_table(folder, run_directories(folder), "folder")
    page, console, requests = opened_with_requests(folder / "table.html", tmp_path / "profile")
    assert (console, requests) == ([], set())
    assert page.announced == page.plots == page.drawings == 4
    assert not page.lacks_plotly


def test_requests_of_a_page_are_seen(tmp_path):
    (tmp_path / "page.html").write_text("<body data-plots=0><img src=x.png>")
    with served(tmp_path) as server:
        _, _, requests = opened_with_requests(f"{server}/page.html", tmp_path / "profile")
    assert f"{server}/x.png" in requests


def test_a_report_away_from_its_folder_says_what_it_needs_and_then_stands_alone(shared, tmp_path):
    shared.path.rename(tmp_path / "elsewhere")
    moved = type(shared)(tmp_path / "elsewhere")
    page, console = opened(moved.report_path, tmp_path / "profile")
    assert [line for line in console if "Failed to load resource" not in line] == []
    assert (page.lacks_plotly, page.plots) == (True, 0)
    page, console = opened(scripted(write_report(moved)), tmp_path / "profile-2")
    assert console == []
    assert page.announced == page.plots == page.drawings == 11


def test_a_report_runs_no_script_but_its_own_and_the_folders_file(shared, tmp_path):
    report, title = shared.report_path, "<script>document.title = 'run'</script>"
    (tmp_path / "folder" / "other.js").write_text("document.title = 'run'")
    text = report.read_text(encoding="utf-8")
    for number, script in enumerate(
        (title, *(f'<script src="../{name}"></script>' for name in ("other.js", "plotly.min.js")))
    ):
        report.write_text(text.replace("</main>", f"{script}</main>"), encoding="utf-8")
        page, console = opened(report, tmp_path / f"profile-{number}")
        assert len(console) == 1
        assert "Content Security Policy" in console[0]
        assert page.title.startswith("synthetic ")
    report.write_text(text, encoding="utf-8")
    plotly_path(tmp_path / "folder").write_text("document.title = 'run'")  # the one that it does run
    page, _ = opened(report, tmp_path / "profile")
    assert page.title == "run"


def test_hostile_names_and_bare_runs_are_drawn_too(tmp_path):
    # Degenerate plots: one round, one seed, equal durations, nothing measured but accuracy.
    directory = a_directory(tmp_path / "run", ["global", HOSTILE], [0], name=HOSTILE)
    for arm in directory.arms():
        store(directory, a_run(arm, 0, [0.5], mean_client_distance=None, unclustered_distance=None))
    page, console = opened(scripted(write_report(directory)), tmp_path / "profile")
    assert console == []
    assert page.announced == page.plots == page.drawings == 7
    assert page.images == 0


def test_names_that_would_end_a_script_or_fill_a_template_run_nothing(tmp_path):
    name = "</script><script>document.title='run'</script>\u2028{{7*7}}"
    arm = "\"'><img src=x onerror=alert(1)>%{x}&lt;<script>"
    directory = a_directory(tmp_path / "run", ["global", arm], [0], name=name)
    for name_of_arm in directory.arms():
        store(directory, a_run(name_of_arm, 0, [0.25, 0.5], clusters=[0, 1]))
    page, console = opened(scripted(write_report(directory)), tmp_path / "profile")
    assert console == []
    assert page.announced == page.plots == page.drawings == 10
    assert page.images == 0
    assert page.title.startswith(name)
    assert arm in page.text  # in a legend, verbatim


SORTED = """
<table class="sortable"><thead><tr><th>arm</th><th>time</th></tr></thead><tbody>
<tr><th>a</th><td>&gt;= 9.00 h</td></tr><tr><th>b</th><td>undetermined</td></tr>
<tr><th>c</th><td>10.0 h</td></tr>
<tr><th>d</th><td>1,000 h</td></tr><tr><th>e</th><td>9.00 h</td></tr><tr><th>f</th><td>&lt;= 9.00 h</td></tr>
<tr><th>g</th><td>-2.5 h</td></tr></tbody></table><script>%s</script><script>
const order = () => [...document.querySelectorAll("tbody th")].map((cell) => cell.textContent).join("");
const state = () => document.querySelectorAll("th")[1].getAttribute("aria-sort");
document.title = [1, 2, 3].map(() => {
  document.querySelectorAll("button")[1].click(); return `${order()} ${state()}`;
}).join(", ");
</script><body data-plots="0">"""


def test_a_heading_sorts_by_value_up_and_down_and_back_to_the_original_order(tmp_path):
    script = template("sort_tables.js").render()
    (tmp_path / "page.html").write_text(f'<body data-plots="0"><title>t</title>{SORTED % script}')
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "page.html").as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "<title>gfeacdb ascending, dcaefgb descending, abcdefg null</title>" in dumped
