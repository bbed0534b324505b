"""Which statements a definition needs, however it reads what they bind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from executor.measuring import timing
from experiments.own.sources import Sources

FILES = {
    "field/__init__.py": "import pandas\nfrom .parts import *\nUNREAD = pandas.NA\n",
    "field/parts.py": "import scipy\nONE = 1\nTWO = ONE + 1\ndef unread():\n    return scipy\n",
    "field/deep/__init__.py": "",
    "field/deep/leaf.py": "from ..parts import TWO as two\nUNREAD = 1\nDOUBLE = two * 2\n",
    "late.py": "def given():\n    return 5\n",
    "field/net.py": """\
from __future__ import annotations

import os.path
import field.deep.leaf
from . import parts
from field import TWO
try:
    import tomllib
except ImportError:
    tomllib = None

TABLE = {}
TABLE["read"] = 7
OTHER = {}
OTHER["unread"] = parts.unread()
steps = parts.unread()


def alone(function):
    return function


def base(x: OTHER) -> steps:
    steps = 1
    return steps + x


@alone
def answer(start=TWO):
    import late

    local: OTHER = base(start) + field.deep.leaf.DOUBLE + parts.ONE + TABLE["read"]
    return local + late.given() + len(os.path.join("a", "b")) + (tomllib is None)


def numeric():
    import numpy.linalg

    return numpy.linalg
""",
}


@pytest.fixture
def folder(own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_function_has_what_it_reads_in_all_modules_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = Sources(["field.net:answer"])
    expected = sys.modules["field.net"].answer()
    texts = sources.texts
    assert sources.libraries == {}
    assert "UNREAD" not in "".join(texts.values())
    assert "unread" not in "".join(texts.values())
    for name in [name for name in sys.modules if name.partition(".")[0] in ("field", "late")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [timing.Sources(texts), *sys.meta_path])
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part != str(folder)])
    from field.net import answer  # type: ignore[import-not-found]

    assert answer() == expected == 3 + 4 + 1 + 7 + 5 + 3 + 0
    assert isinstance(sys.modules["late"].__loader__, timing.Sources)


@pytest.mark.parametrize(
    ("definition", "libraries"),
    [
        ("field.net:numeric", {"numpy": "field.net"}),
        ("field.net:OTHER", {"scipy": "field.parts"}),
        ("field:UNREAD", {"pandas": "field"}),
        ("numpy:sum", {"numpy": "numpy"}),
    ],
)
def test_libraries_are_named_with_the_module_that_reads_them(
    folder: Path, definition: str, libraries: dict[str, str]
) -> None:
    assert Sources([definition]).libraries == libraries


CHANGED = """\
_half = 2
TABLE = {}
for key in range(3):
    TABLE[key] = key * _half
if TABLE:
    TABLE.update(last=7)
del _half, key


def read():
    return sorted(TABLE.values())
"""


def test_what_changes_a_global_is_needed_too_as_a_loop_is_and_what_is_deleted_later(
    own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changed.py").write_text(CHANGED)
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {}
    exec(Sources(["changed:read"]).texts["changed"], scope)
    assert scope["read"]() == [0, 2, 4, 7]
