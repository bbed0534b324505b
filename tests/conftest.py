"""Settings of all tests: no deadlines, since tests take longer on a busy machine, and default signals.

And the fixtures of tests that import modules named by configurations, and of those that draw figures.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from emulator import own_parts
from emulator.own import code
from tests.fast_tier import FastTier
from tests.processes.real_starts import Starts
from tests.slowest_first import Stopwatch, begin_with_the_slowest

settings.register_profile("few", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
settings.register_profile("sweep", settings.get_profile("few"), max_examples=100)

# nohup and background shells ignore these signals, and all processes that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

STARTS = pytest.StashKey[Starts]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only the fast tier (tests/fast_tier.py)")
    parser.addoption("--write-durations", action="store_true", help="write tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("few" if config.option.markexpr == "not sweep" else "sweep")
    if config.getoption("--fast"):
        config.pluginmanager.register(FastTier(Path(__file__).parents[1]))
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with_the_slowest(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    starts = session.config.stash[STARTS] = Starts()
    with starts.counted():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    is_sweep = item.get_closest_marker("sweep") is not None
    code.packages.clear()  # of other tests' own parts
    for module in [name for name in own_parts._imported if name.startswith("tests")]:
        del own_parts._imported[module]
    item.config.stash[STARTS].begin("" if is_sweep else item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that has passed fails if its file has started Python more often than is allowed."""
    result = yield
    if item.get_closest_marker("sweep") is None and (excess := item.config.stash[STARTS].excess()):
        pytest.fail(excess, pytrace=False)
    return result


@pytest.fixture
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that parts are named by ("my_module:MyPart") are imported anew, and forgotten at the end."""
    before = set(sys.path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(own_parts, "_folders", ())
    monkeypatch.setattr(own_parts, "_imported", {})
    yield
    folders = set(sys.path) - before
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and str(Path(file).parent) in folders:
            del sys.modules[name]


@pytest.fixture
def figures_as_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure that is validated must be written into a page as plotly itself would write it."""
    from plotly.io.json import to_json_plotly

    from experiments.results.drawing.plain_figure import PlainFigure

    validated = PlainFigure.validated

    def compared(figure: Any) -> Any:
        checked = validated(figure)
        assert json.loads(to_json_plotly(figure.content())) == json.loads(checked.to_json())
        return checked

    monkeypatch.setattr(PlainFigure, "validated", compared)
