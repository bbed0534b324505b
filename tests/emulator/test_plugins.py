from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from datetime import date
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from emulator.errors import ConfigurationError, UnknownNameError
from emulator.plugins import (
    FIRST_LOOK,
    ChoiceOf,
    Chosen,
    NoSettings,
    Registry,
    Settings,
    installed_entry_points,
)

GROUP = "driftscale.test_tool"


class HammerSettings(Settings):
    weight: float = Field(1.0, gt=0)
    since: date | None = None
    kind: str = "claw"


class Hammer:
    Settings = HammerSettings

    def __init__(self, settings: HammerSettings, owner: str = "") -> None:
        self.settings = settings
        self.owner = owner


class Saw:
    Settings = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings


def tools() -> Registry[Any]:
    return Registry("tool", GROUP, {"saw": Saw, "hammer": Hammer})


class Bench(Settings):
    tool: Annotated[Chosen[Any], ChoiceOf(tools(), key="source")] = Field("saw", validate_default=True)


class Shelf(Settings):
    kit: tuple[Annotated[Chosen[Any], ChoiceOf(tools())], ...] = ()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Installs a distribution with one module and the given entry points."""
    installed_entry_points.cache_clear()

    def installed(name: str, *lines: str) -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]) + "\n")
        (tmp_path / f"{name}.py").write_text("class Drill:\n    '''A plug-in.'''\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    yield installed
    installed_entry_points.cache_clear()


def test_a_registry_lists_its_names_in_order() -> None:
    registry = tools()
    assert registry.names() == ["hammer", "saw"]
    assert list(registry) == [("hammer", Hammer), ("saw", Saw)]
    assert "saw" in registry
    assert "drill" not in registry


def test_an_unknown_name_lists_the_choices_and_suggests_one() -> None:
    with pytest.raises(UnknownNameError) as caught:
        tools().find("hamer", where="arm.tool")
    assert str(caught.value) == (
        "arm.tool: unknown tool 'hamer'; choices: hammer, saw; did you mean 'hammer'?"
    )


def test_a_plug_in_is_found_by_its_entry_point(install: Any) -> None:
    install("plugin_drill", "drill = plugin_drill:Drill")
    assert tools().names() == ["drill", "hammer", "saw"]
    assert tools().find("drill").__name__ == "Drill"
    assert "drill" in tools()


def test_a_plug_in_that_takes_a_name_of_ours_is_refused_whichever_name_is_looked_up(install: Any) -> None:
    install("plugin_clash", "saw = plugin_clash:Drill")
    for name in ("saw", "hammer"):
        with pytest.raises(
            ConfigurationError, match=r"'plugin_clash:Drill' .* the tool 'saw', which is taken"
        ):
            tools().find(name)
    with pytest.raises(ConfigurationError, match="rename one of them"):
        tools().names()


def test_two_plug_ins_of_one_name_are_refused(install: Any) -> None:
    install("plugin_one", "drill = plugin_one:Drill")
    install("plugin_two", "drill = plugin_two:Drill")
    with pytest.raises(ConfigurationError, match="the tool 'drill', which is taken"):
        tools().find("drill")


@pytest.mark.parametrize("target", ["plugin_missing_module:Drill", "plugin_broken:Nothing"])
def test_a_plug_in_that_cannot_be_loaded_is_one_clear_line(install: Any, target: str) -> None:
    install("plugin_broken", f"drill = {target}")
    with pytest.raises(ConfigurationError, match=f"'{target}' .* the tool 'drill', cannot be loaded"):
        tools().find("drill")


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What each reading of all entry points has found."""
    found: list[Any] = []

    def look() -> Any:
        found.append(entry_points())
        return found[-1]

    monkeypatch.setattr("importlib.metadata.entry_points", look)
    monkeypatch.syspath_prepend(".")  # which restores the whole path at the end
    monkeypatch.setattr(sys, "path", [])
    installed_entry_points.cache_clear()
    yield found
    installed_entry_points.cache_clear()


def test_entry_points_are_read_once_for_all_kinds(install: Any, lookups: list[Any]) -> None:
    install("plugin_drill", "drill = plugin_drill:Drill")
    assert tools().names() == tools().names() == ["drill", "hammer", "saw"]
    assert len(lookups) == 1


def test_entry_points_are_not_read_where_no_file_names_a_group_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lookups: list[Any]
) -> None:
    (tmp_path / "other-1.dist-info").mkdir()
    (tmp_path / "other-1.dist-info/entry_points.txt").write_text("[console_scripts]\nother = other:main\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "absent"))
    assert tools().names() == ["hammer", "saw"]
    assert lookups == []


@pytest.mark.parametrize("info", ["drill-1.egg-info", "EGG-INFO", "archive", "finder"])
def test_entry_points_are_read_wherever_parts_may_be(
    info: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lookups: list[Any]
) -> None:
    class Finder:
        def find_distributions(self, *_: Any) -> list[Any]:
            return []

        def find_spec(self, *_: Any) -> None:
            return None

    if info == "archive":
        tmp_path = tmp_path / "archive.zip"
        with zipfile.ZipFile(tmp_path, "w") as archive:
            archive.writestr("drill-1.dist-info/METADATA", "Name: drill\nVersion: 1\n")
    elif info == "finder":
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    else:
        (tmp_path / info).mkdir()
        (tmp_path / info / "entry_points.txt").write_text(f"[{GROUP}]\ndrill = drill:Drill\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tools().names()
    assert len(lookups) == 1


# -- parts that load late -----------------------------------------------------------------------------------


LATE: Registry[Any] = Registry(
    "tool",
    GROUP,
    {"plane": "plugin_late:Plane", "wreck": "plugin_late:Wreck", "drill": "plugin_late:Drill"},
    loads_late=True,
    settings={"drill": f"{__name__}:HammerSettings"},
)


class Van(Settings):
    tool: Annotated[
        Chosen[Any],
        ChoiceOf(LATE),
    ]
    weight: float = 0.0


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module with a van's tools, not imported."""
    (tmp_path / "plugin_late.py").write_text(
        "from emulator.plugins import Settings\n"
        "class Plane:\n"
        "    class Settings(Settings):\n"
        "        width: float = 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "plugin_late", raising=False)


@pytest.mark.usefixtures("late")
def test_a_first_look_knows_a_part_that_loads_late_by_its_name_alone() -> None:
    van = {"tool": {"kind": "plane", "width": "wide"}}
    assert Van.model_validate(van, context=FIRST_LOOK).tool.kind == "plane"
    assert "plugin_late" not in sys.modules
    with pytest.raises(ValidationError, match="width"):
        Van.model_validate(van)
    assert "plugin_late" in sys.modules


def test_a_pass_finds_every_unknown_key_and_every_wrong_value_but_no_key_that_may_be_misspelt() -> None:
    with pytest.raises(ValidationError) as caught:
        Van.model_validate({"tol": "plane", "wieght": 1, "weight": "heavy"}, context=FIRST_LOOK)
    first, second, third = caught.value.errors(include_url=False)  # tool is absent, and not named
    assert first["msg"] == "unknown key 'tol'; choices: tool, weight; did you mean 'tool'?"
    assert (second["type"], second["ctx"]["name"], second["loc"]) == ("unknown", "wieght", ())
    assert (third["type"], third["loc"]) == ("float_parsing", ("weight",))


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize(
    ("van", "problem"),
    [
        ({"tool": "plan"}, "unknown tool 'plan'; choices: drill, plane, wreck; did you mean 'plane'?"),
        ({"tool": {"width": 2}}, "must be a name, or a table with 'kind'; choices: drill, plane, wreck"),
        ({"tool": {"kind": "drill", "weight": 0}}, "should be greater than 0"),
        ({"tool": {"kind": "drill", "wieght": 1}}, "unknown key 'wieght'"),
        ({"tool": "plane", "wieght": 1}, "unknown key 'wieght'; choices: tool, weight; did you mean"),
        ({"tool": "plane", "weight": "heavy"}, "should be a valid number"),
    ],
)
def test_a_first_look_finds_all_that_needs_no_part_that_loads_late(van: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Van.model_validate(van, context=FIRST_LOOK)
    assert problem in str(caught.value)
    assert "plugin_late" not in sys.modules


@pytest.mark.usefixtures("late")
def test_a_part_whose_name_alone_was_validated_cannot_be_built() -> None:
    tool = Van.model_validate({"tool": "plane"}, context=FIRST_LOOK).tool
    with pytest.raises(AssertionError, match="this part was not imported"):
        tool.build()


@pytest.mark.usefixtures("late")
def test_a_part_that_loads_late_is_the_class_that_was_named() -> None:
    tool = Van(tool="plane").tool  # type: ignore[arg-type]
    assert tool.part is sys.modules["plugin_late"].Plane
    assert tool.settings.model_dump() == {"width": 1.0}


class Garage:
    Settings = Van


class Street(Settings):
    house: Annotated[Chosen[Any], ChoiceOf(Registry("house", GROUP, {"garage": Garage}))]


@pytest.mark.usefixtures("late")
def test_a_first_look_goes_through_the_settings_of_all_other_parts() -> None:
    house = {"kind": "garage", "tool": {"kind": "plane", "width": "wide"}}
    Street.model_validate({"house": house}, context=FIRST_LOOK)
    assert "plugin_late" not in sys.modules
    with pytest.raises(ValidationError, match="unknown tool 'plan'"):
        Street.model_validate({"house": {**house, "tool": "plan"}}, context=FIRST_LOOK)
    with pytest.raises(ValidationError, match="width"):
        Street.model_validate({"house": house})


def test_an_unknown_key_lists_the_choices_and_suggests_one() -> None:
    with pytest.raises(ValidationError, match=r"unknown key 'wieght'; choices: kind, since, weight; did you"):
        HammerSettings.model_validate({"wieght": 2})
    with pytest.raises(ValidationError, match=r"unknown key 'x'; choices: none"):
        NoSettings.model_validate({"x": 2})


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 0, "heavy"])
def test_a_setting_out_of_its_range_is_refused(weight: object) -> None:
    with pytest.raises(ValidationError, match="weight"):
        HammerSettings.model_validate({"weight": weight})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        HammerSettings().weight = 2.0  # type: ignore[misc]


def test_a_part_is_named_by_its_name_alone() -> None:
    chosen = Bench(tool="hammer").tool  # type: ignore[arg-type]
    assert chosen == Chosen("hammer", Hammer, HammerSettings())


def test_a_part_is_named_by_a_table_with_its_settings_beside_it() -> None:
    chosen = Bench.model_validate({"tool": {"source": "hammer", "weight": 3}}).tool
    assert chosen.settings == HammerSettings(weight=3)


def test_a_default_part_is_validated_like_any_other() -> None:
    assert Bench().tool == Chosen("saw", Saw, NoSettings())


def test_a_chosen_part_is_built_with_its_settings_and_the_arguments_of_its_kind() -> None:
    chosen = Chosen[Hammer]("hammer", Hammer, HammerSettings(weight=3))
    first, second = chosen.build("me"), chosen.build("me")
    assert first is not second
    assert (first.settings.weight, first.owner) == (3, "me")


@pytest.mark.parametrize("value", [3, None, {"weight": 1}, {"source": 3}, ["hammer"]])
def test_a_value_that_names_no_part_is_refused_with_the_choices(value: object) -> None:
    with pytest.raises(ValidationError, match="must be a name, or a table with 'source'; choices: hammer, s"):
        Bench.model_validate({"tool": value})


def test_an_unknown_part_is_refused_under_its_key() -> None:
    with pytest.raises(ValidationError) as caught:
        Shelf.model_validate({"kit": ["saw", "hamer"]})
    (error,) = caught.value.errors()
    assert error["loc"] == ("kit", 1)
    assert "unknown tool 'hamer'; choices: hammer, saw; did you mean 'hammer'?" in error["msg"]


def test_an_error_inside_a_part_is_reported_under_the_whole_path_to_it() -> None:
    with pytest.raises(ValidationError) as caught:
        Shelf.model_validate({"kit": ["saw", {"kind": "hammer", "weight": -1}]})
    (error,) = caught.value.errors()
    assert error["loc"] == ("kit", 1, "weight")
    assert "greater than 0" in error["msg"]


@pytest.mark.parametrize("mode", ["python", "json"])
def test_a_configuration_survives_the_way_through_its_dump(mode: str) -> None:
    # `kind` is the name of a part in most tables, and here also one of its settings.
    table = {"source": "hammer", "weight": 2.0, "since": date(2020, 5, 11), "kind": "sledge"}
    bench = Bench.model_validate({"tool": table})
    dumped = bench.model_dump(mode=mode)
    assert dumped == {"tool": {**table, "since": "2020-05-11"}}
    assert Bench.model_validate(dumped) == bench


def test_a_dump_writes_every_default_out() -> None:
    assert Shelf.model_validate({"kit": ["saw"]}).model_dump() == {"kit": ({"kind": "saw"},)}
    assert Bench(tool="hammer").model_dump() == {  # type: ignore[arg-type]
        "tool": {"source": "hammer", "weight": 1.0, "since": None, "kind": "claw"}
    }
