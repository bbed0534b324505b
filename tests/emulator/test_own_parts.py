from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from emulator import own_parts
from emulator.own_parts import OwnPartError, look_in, module_file, named_modules
from emulator.plugins import FIRST_LOOK, ChoiceOf, Chosen, Configured, Registry, Settings


class Tool(Configured, ABC):
    @abstractmethod
    def use(self) -> str: ...


class Saw(Tool):
    def use(self) -> str:
        return "sawn"


TOOLS: Registry[Any] = Registry("tool", "driftscale.test_own_tool", {"saw": Saw}, base=f"{__name__}:Tool")
LATE: Registry[Any] = Registry("tool", "driftscale.test_own_tool", {"saw": Saw}, loads_late=True)


class Bench(Settings):
    tool: Annotated[Chosen[Any], ChoiceOf(TOOLS)]


class Van(Settings):
    tool: Annotated[Chosen[Any], ChoiceOf(LATE)]


HAMMER = """\
from typing import ClassVar

from emulator.plugins import Configured, Settings
import {here} as given


class HammerSettings(Settings):
    weight: float = 1.0


class Hammer(given.Tool):
    Settings = HammerSettings

    def use(self):
        return f"hit with {{self.settings.weight}}"


class Handle(given.Tool):
    pass


class Weighed(given.Tool):
    weight_g: ClassVar[int]

    def use(self):
        return "used"


class Blunt(Weighed):
    pass


class Box:
    pass


def use():
    raise AssertionError("called")
"""


@pytest.fixture(autouse=True)
def beside(own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a configuration, with a module of one's own; the present folder is another one."""
    monkeypatch.setitem(sys.modules, "given_tools", sys.modules[__name__])
    monkeypatch.setattr(TOOLS, "_base", "given_tools:Tool")
    folders = tmp_path / "beside", tmp_path / "present"
    for folder in folders:
        folder.mkdir()
    (folders[0] / "own_tools.py").write_text(HAMMER.format(here="given_tools"))
    monkeypatch.chdir(folders[1])
    look_in(*folders)
    return folders[0]


def refusal(name: str) -> str:
    with pytest.raises(OwnPartError) as caught:
        TOOLS.find(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_part_named_by_its_module_is_built_with_its_settings_and_dumped_as_it_was_named() -> None:
    chosen = Bench.model_validate({"tool": {"kind": "own_tools:Hammer", "weight": 3}})
    assert chosen.tool.build().use() == "hit with 3.0"
    assert chosen.model_dump() == {"tool": {"kind": "own_tools:Hammer", "weight": 3.0}}
    assert Bench.model_validate(chosen.model_dump()) == chosen
    assert Bench.model_validate({"tool": "own_tools:Hammer"}).tool.build().use() == "hit with 1.0"


def test_a_wrong_setting_of_it_is_refused_under_its_key() -> None:
    with pytest.raises(ValidationError, match="unknown key 'wieght'; choices: weight"):
        Bench.model_validate({"tool": {"kind": "own_tools:Hammer", "wieght": 3}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("own_tools:Hamer", "own_tools.py has no 'Hamer'; did you mean 'Hammer'?"),
        ("own_tools:use", "is no class, but function; a tool is a class"),
        ("own_tools:Box", "is no tool: the class must extend"),
        ("own_tools:Handle", "lacks what every tool defines: use"),
        ("absent_tools:Hammer", "no module 'absent_tools' in "),
        ("os:system", "no module 'os' in "),
        ("own_tools:Blunt", "lacks what every tool defines: weight_g"),
        ("own_tools.py:Hammer", "own_tools.py is no package, and has no module 'own_tools.py' in it; name"),
        ("own_tools.Hammer", "is not of the form 'my_module:MyPart'"),
        ("own_tools:", "is not of the form 'my_module:MyPart'"),
        ("../own_tools:Hammer", "is not of the form 'my_module:MyPart'"),
    ],
)
def test_a_name_that_stands_for_no_part_of_the_kind_is_one_line(name: str, problem: str) -> None:
    assert refusal(name).startswith(f"tool {name!r}: ")
    assert problem in refusal(name)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("class X(:\n", "SyntaxError: invalid syntax (broken_tools.py, line 1)"),
        ("x = 1\ny = 1 / 0\n", "ZeroDivisionError: division by zero, line 2"),
        ("import no_such_module_here\n", "No module named 'no_such_module_here', line 1"),
        ("raise SystemExit(0)\n", "SystemExit: 0, line 1"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line_with_its_error(
    beside: Path, content: str, problem: str
) -> None:
    (beside / "broken_tools.py").write_text(content)
    message = refusal("broken_tools:X")
    assert f"{beside / 'broken_tools.py'} cannot be imported (" in message
    assert problem in message


def test_the_present_folder_is_searched_too_and_two_modules_of_one_name_are_refused(beside: Path) -> None:
    Path("here_tools.py").write_text((beside / "own_tools.py").read_text())
    assert TOOLS.find("here_tools:Hammer").__module__ == "here_tools"
    Path("own_tools.py").write_text((beside / "own_tools.py").read_text())
    both = f"both {beside / 'own_tools.py'} and {Path.cwd() / 'own_tools.py'} are there; rename one of them"
    assert refusal("own_tools:Hammer") == f"tool 'own_tools:Hammer': {both}"


def test_a_file_never_takes_the_place_of_an_installed_module(beside: Path) -> None:
    for name in ("wave", "numpy"):  # one that is not imported yet, and one that is
        (beside / f"{name}.py").write_text("class Hammer: pass\n")
        assert f"another module is called {name!r}" in refusal(f"{name}:Hammer")
    assert str(beside) not in sys.path


def test_the_module_of_another_configuration_is_never_used(beside: Path, tmp_path: Path) -> None:
    TOOLS.find("own_tools:Hammer")
    other = tmp_path / "other"
    other.mkdir()
    look_in(other)
    assert f"no module 'own_tools' in {other}" in refusal("own_tools:Hammer")
    (other / "own_tools.py").write_text((beside / "own_tools.py").read_text())
    assert f"{other / 'own_tools.py'} cannot be imported, since another module" in refusal("own_tools:Hammer")
    look_in(beside)
    assert TOOLS.find("own_tools:Hammer").__module__ == "own_tools"


def test_a_module_is_recorded_as_it_was_imported_and_refused_once_its_file_has_changed(beside: Path) -> None:
    TOOLS.find("own_tools:Hammer")
    path = beside / "own_tools.py"
    file = module_file("own_tools")
    assert file is not None
    assert (file.path, file.num_bytes) == (path, len(path.read_bytes()))
    path.write_text(path.read_text() + "# changed\n")
    assert "has changed since this process imported it" in refusal("own_tools:Hammer")
    assert module_file("own_tools") == file


def test_a_first_look_at_a_kind_that_loads_late_imports_no_module() -> None:
    assert (
        Van.model_validate({"tool": "own_tools:Hammer"}, context=FIRST_LOOK).tool.kind == "own_tools:Hammer"
    )
    assert "own_tools" not in sys.modules
    with pytest.raises(ValidationError, match="no module 'absent_tools'"):
        Van.model_validate({"tool": "absent_tools:Hammer"}, context=FIRST_LOOK)


def test_a_class_of_a_notebooks_cells_is_found_and_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    main = type(sys)("__main__")
    main.Hammer = Saw  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert TOOLS.find("__main__:Hammer") is Saw
    assert module_file("__main__") is None


def test_modules_are_named_by_texts_of_that_form_alone() -> None:
    table = {
        "name": "a",
        "arm": [{"selector": {"kind": "x.y:Z"}}, {"model": "m:N"}],
        "t": "12:30",
        "p": "a:b c",
    }
    assert named_modules(table) == {"x.y", "m"}
    assert not own_parts.is_own("http://x")


def test_at_most_so_many_modules_are_looked_at_the_nearest_first(
    own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, imports in (("one", "import two"), ("two", "import three"), ("three", "")):
        (tmp_path / f"{name}.py").write_text(f"{imports}\n")
    look_in(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(own_parts.files_of(["one"])) == ["one", "two", "three"]
    monkeypatch.setattr(own_parts, "MOST_MODULES", 2)
    assert list(own_parts.files_of(["one"])) == ["one", "two"]
