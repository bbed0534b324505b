"""What changes the identity of a part's code, what does not, and what is said not to be seen."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.own.identity import Code, code_of
from tests.processes import forked

SOURCE = '''\
import functools, math, logging
from enum import Enum
from typing import Annotated
import numpy as np
from pydantic import AfterValidator, Field
from coordinator.selectors import Selector
from emulator.plugins import Settings
LOG = logging.getLogger("mine")
RATE, NAMES, ROWS, UNREAD = 0.5, frozenset({"a", "b", "c"}), [1], 7
FILLED = None
STEP = lambda value: value + 1
class Mode(Enum):
    FAST = 1
def unread():
    """Nothing reads this."""
def even(value):
    return value % 2
def scaled(value, by=RATE * 2):
    return [math.sin(step * RATE) for step in value]
def repeated(times):
    def decorate(method):
        @functools.wraps(method)
        def call(self, *rest):
            return [method(self, *rest) for _ in range(times)]
        return call
    return decorate
@functools.lru_cache
def filled():
    global FILLED
    FILLED = FILLED or Mode.FAST
    return FILLED
class Base(Selector):
    share = 1.0 / 4
    @staticmethod
    def best(values):
        return max(values)
class MineSettings(Settings):
    skip: Annotated[int, Field(ge=0), AfterValidator(even)] = 0
    mode: Mode | None = None
class Mine(Base):
    Settings = MineSettings
    TABLE = np.zeros(3)
    kinds = ("a", 1)
    @property
    def rate(self):
        return STEP(self.share)
    @repeated(2)
    def select(self, candidates, wanted, view):
        """Chooses."""
        LOG.info("%s", filled())
        return scaled(NAMES), ROWS, self.best
'''

Read = Callable[[str], Code]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """The code of `Mine` in a module with this source."""
    monkeypatch.syspath_prepend(str(tmp_path))
    numbers = iter(range(100))

    def code(source: str) -> Code:
        content = f"{source}# {chr(46) * 50 * next(numbers)}\n"  # of another size: another file
        (tmp_path / "mine.py").write_text(content)
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        importlib.invalidate_caches()
        return code_of(importlib.import_module("mine").Mine)

    return code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.best\n", "self.best, 1\n"),
        ("STEP(self.share)", "STEP(self.share) * 2"),
        ("max(values)", "min(values)"),
        ("1.0 / 4", "1.0 / 8"),
        ('("a", 1)', '("a", 1.0)'),
        ('"b", "c"', '"b", "d"'),
        ("value + 1", "value + 2"),
        ("RATE, NAMES, ROWS, UNREAD = 0.5", "RATE, NAMES, ROWS, UNREAD = 0.25"),
        ("RATE * 2", "RATE * 3"),
        ("math.sin", "math.cos"),
        ("repeated(2)", "repeated(3)"),
        ("rest) for _", "rest[:]) for _"),
        ("FAST = 1", "FAST = 2"),
        ("FILLED or Mode", "Mode"),
        ("ge=0", "ge=1"),
        ("value % 2", "value % 3"),
        ("skip: Annotated", "hop: Annotated"),
        ("class Mine(Base)", "class Mine(Selector)"),
    ],
)
def test_it_changes_with_all_that_the_part_reads(read: Read, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert read(SOURCE).text != read(SOURCE.replace(old, new)).text


def test_nothing_else_changes_it_and_what_it_does_not_see_is_named(read: Read) -> None:
    code = read(SOURCE)
    assert code.unseen == {"mine:Mine.TABLE", "mine:ROWS", "mine:FILLED"}
    even = "def even(value):\n    return value % 2\n"
    for old, new in (
        ("UNREAD = 0.5", "OTHER = 0.5"),
        ("7\n", "8\n"),
        ("[1], 7", "[2], 7"),
        ("Nothing reads this", "Still nothing"),
        ("np.zeros", "np.ones"),
        (SOURCE, SOURCE.replace(even, "").replace("class Mode", f"{even}class Mode")),
        (SOURCE, f"\n{SOURCE}"),
    ):
        assert read(SOURCE.replace(old, new)).text == code.text, new
    module = sys.modules["mine"]
    module.filled()
    assert code_of(module.Mine).text == code.text


def test_of_an_installed_part_its_own_package_is_followed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    (site / "afield").mkdir(parents=True)
    (site / "afield/near.py").write_text("def near():\n    return 1\n")
    (site / "far.py").write_text("def far():\n    return 2\n")
    (site / "afield/parts.py").write_text(
        "import afield.near\nfrom far import far\n\nclass Mine:\n    def use(self):\n"
        "        return afield.near.near(), far()\n"
    )
    monkeypatch.syspath_prepend(str(site))
    text = code_of(importlib.import_module("afield.parts").Mine).text
    assert "return 1" in text
    assert "return 2" not in text
    assert "far:far" in text


@pytest.mark.slow
def test_it_is_the_same_in_another_process_with_other_hashes(read: Read, tmp_path: Path) -> None:
    code = read(SOURCE)
    program = "from experiments.own.identity import code_of; import mine; print(code_of(mine.Mine).text)"
    paths = f"{Path(__file__).parents[3]}{os.pathsep}{tmp_path}"
    other = forked.run(
        [sys.executable, "-c", f"print(hash('a')); {program}"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    hashed, _, text = other.stdout.partition("\n")
    assert text == f"{code.text}\n"
    assert hashed != str(hash("a")) or "PYTHONHASHSEED" in os.environ
