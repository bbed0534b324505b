from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from driftscale import check
from emulator.errors import EmulatorError, InputError
from emulator.storage.bounded import read_toml
from experiments.extending import MOST_DEEP, MOST_EXTENDED, extended
from experiments.locating import locator
from experiments.reading import load_experiment, read_table
from experiments.running.members import load_folder, read_configuration
from tests.experiments.shipping import ship
from tests.experiments.small import SMALL, small_table, write_small

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, /, **table: Any) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def over(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """What `own` amounts to where it extends `inherited`."""
    write("inherited.toml", **inherited)
    return dict(read_table(write("own.toml", extends="inherited.toml", **own)))


def refusal(**table: Any) -> str:
    with pytest.raises(InputError) as refused:
        read_table(write("mine.toml", **table))
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- merging -------------------------------------------------------------------------------------------------


def test_tables_are_merged_key_by_key_and_other_values_replaced() -> None:
    inherited = {"name": "a", "seeds": [0, 1], "round": {"rounds": 4, "participants": 3}}
    assert over(inherited, {"seeds": [7], "round": {"rounds": 9}}) == {
        "name": "a",
        "seeds": [7],
        "round": {"rounds": 9, "participants": 3},
    }


def test_arms_are_merged_by_name_and_new_ones_come_last_in_their_order() -> None:
    inherited = {"arm": [{"name": "a", "memory": "held"}, {"name": "b", "baseline": True}]}
    own = [{"name": "z"}, {"name": "b", "memory": "claimed"}, {"name": "c"}]
    assert over(inherited, {"arm": own})["arm"] == [
        {"name": "a", "memory": "held"},
        {"name": "b", "baseline": True, "memory": "claimed"},
        {"name": "z"},
        {"name": "c"},
    ]


def test_of_several_the_later_wins_and_the_configuration_itself_over_all() -> None:
    write("one.toml", name="one", round={"rounds": 1, "participants": 1, "over_commit": 1})
    write("two.toml", name="two", round={"rounds": 2, "participants": 2})
    table = read_table(write("mine.toml", extends=["one.toml", "two.toml"], round={"rounds": 3}))
    assert table == {"name": "two", "round": {"rounds": 3, "participants": 2, "over_commit": 1}}


@pytest.mark.parametrize(
    ("inherited", "own", "amounts_to"),
    [
        (
            {"kind": "fielding", "max_clusters": 3},
            {"max_clusters": 4},
            {"kind": "fielding", "max_clusters": 4},
        ),
        (
            {"kind": "fielding", "max_clusters": 3},
            {"kind": "fielding"},
            {"kind": "fielding", "max_clusters": 3},
        ),
        ({"kind": "fielding", "max_clusters": 3}, {"kind": "ifca"}, {"kind": "ifca"}),
        ({"kind": "fielding", "max_clusters": 3}, "fielding", "fielding"),
        ("fielding", {"max_clusters": 4}, {"kind": "fielding", "max_clusters": 4}),
        ("fielding", {"kind": "ifca", "models": 4}, {"kind": "ifca", "models": 4}),
    ],
)
def test_a_part_of_another_kind_replaces_the_settings_too(inherited: Any, own: Any, amounts_to: Any) -> None:
    assert over({"parts": {"clusterer": inherited}}, {"parts": {"clusterer": own}}) == {
        "parts": {"clusterer": amounts_to}
    }


def test_another_source_replaces_the_whole_trace_and_another_table_of_devices_its_reading() -> None:
    inherited = {
        "trace": {"source": "digits", "clients": 12},
        "devices": {"profile": {"path": "a.csv", "x": 1}},
    }
    own = {"trace": {"source": "file", "folder": "t"}, "devices": {"profile": {"path": "b.csv"}}}
    assert over(inherited, own) == own
    assert over({"devices": {"profile": "a.csv"}}, {"devices": {"profile": {"x": 1}}}) == {
        "devices": {"profile": {"path": "a.csv", "x": 1}}
    }
    assert over({"trace": {"table": "a.csv"}}, {"trace": {"table": {"x": 1}}}) == {
        "trace": {"table": {"path": "a.csv", "x": 1}}
    }


@pytest.mark.parametrize(
    ("table", "inherited", "own", "amounts_to"),
    [
        (
            "training",
            {"local_steps": 4, "batch_size": 2},
            {"local_epochs": 1},
            {"batch_size": 2, "local_epochs": 1},
        ),
        ("training", {"local_epochs": 4, "last": "short"}, {"local_steps": 1}, {"local_steps": 1}),
        ("round", {"evaluate_every": 2}, {"evaluate_every_s": 60}, {"evaluate_every_s": 60}),
        ("report", {"target": 0.5}, {"targets": [0.6]}, {"targets": [0.6]}),
    ],
)
def test_a_key_replaces_the_one_that_it_excludes(
    table: str, inherited: dict[str, Any], own: dict[str, Any], amounts_to: dict[str, Any]
) -> None:
    assert over({table: inherited}, {table: own}) == {table: amounts_to}


def test_an_empty_sweep_is_no_sweep() -> None:
    inherited = {"sweep": {"round.participants": [1, 2]}, "devices": {"profile": "uniform"}}
    assert over(inherited, {"sweep": {}, "devices": {}}) == {"devices": {"profile": "uniform"}}


def test_arms_are_picked_of_inherited_and_own_ones_in_the_order_given() -> None:
    inherited = {"arm": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    own = {"arms": ["d", "c", "a"], "arm": [{"name": "d"}]}
    assert [arm["name"] for arm in over(inherited, own)["arm"]] == ["d", "c", "a"]
    assert read_table(write("alone.toml", arms="b", **inherited))["arm"] == [{"name": "b"}]


def test_the_published_values_of_an_arm_that_is_not_picked_go_with_it() -> None:
    published = {"accuracy_omitting_drift": {"a": 50.0, "b": 60.0, "x": 1.0}}
    inherited = {"arm": [{"name": "a"}, {"name": "b"}], "report": {"window": 1, "published": published}}
    assert over(inherited, {"arms": ["b"]})["report"] == {
        "window": 1,
        "published": {"accuracy_omitting_drift": {"b": 60.0, "x": 1.0}},
    }


def test_an_inherited_headline_goes_with_its_arm_and_one_of_its_own_stays() -> None:
    inherited = {"arm": [{"name": "a"}, {"name": "b"}], "report": {"window": 1, "headline": "a"}}
    assert over(inherited, {"arms": ["b"]})["report"] == {"window": 1}
    assert over(inherited, {"arms": ["a"]})["report"] == {"window": 1, "headline": "a"}
    own = {"arms": ["b"], "report": {"headline": "a"}}  # which is refused, as a mistake of its own
    assert over(inherited, own)["report"] == {"window": 1, "headline": "a"}


def test_inherited_choices_of_an_atlas_go_with_their_arms_and_all_with_the_rival() -> None:
    best = {"a": "a", "b": "b+prior", "c": "c"}
    arms = [{"name": name} for name in ("a", "b", "b+prior", "c")]
    inherited = {"arm": arms, "atlas": {"seeds": [9], "rival": "a", "best": best}}
    picked = over(inherited, {"arms": ["b+prior", "a"]})
    assert picked["atlas"] == {"seeds": [9], "rival": "a", "best": {"a": "a", "b": "b+prior"}}
    assert "atlas" not in over(inherited, {"arms": ["b+prior", "c"]})
    own = {"arms": ["c"], "atlas": {"rival": "b"}}  # which is refused, as a mistake of its own
    assert over(inherited, own)["atlas"] == {"seeds": [9], "rival": "b", "best": best}
    wrong = {**inherited, "atlas": {"rival": "a", "best": 3}}
    assert over(wrong, {"arms": ["a"]})["atlas"] == wrong["atlas"]


def test_nothing_that_was_read_is_changed() -> None:
    tables = {
        "mine.toml": {"extends": "a.toml", "arms": ["a"], "round": {"rounds": 3}},
        "a.toml": small_table(),
    }
    tables["a.toml"]["arm"][0]["name"] = "a"
    before = copy.deepcopy(tables)
    for name in tables:
        Path(name).touch()
    found = extended(tables["mine.toml"], Path("mine.toml"), Path, lambda path: tables[path.name])
    found["round"]["participants"] = found["training"]["batch_size"] = 1
    assert tables == before


# -- where it works ------------------------------------------------------------------------------------------


def test_a_file_is_looked_for_beside_the_one_that_names_it() -> None:
    write("team/common.toml", name="of-the-team")
    write("common.toml", name="of-here")
    write("team/base.toml", extends="common.toml")
    assert read_table(write("mine.toml", extends="team/base.toml")) == {"name": "of-the-team"}


def test_a_shipped_name_stands_for_the_shipped_configuration_unless_a_file_is_there(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = ship(here / "package", monkeypatch)
    write(str(configs / "few/gamma.toml"), extends="small", name="gamma")
    Path("few").mkdir()
    gamma = read_table(write("mine.toml", extends="few/gamma"))
    assert gamma == {**small_table(), "name": "gamma"}
    assert read_table(write("mine.toml", extends="small.toml")) == small_table(name="small")
    write("small.toml", name="from-here")
    assert read_table(write("mine.toml", extends="small.toml")) == {"name": "from-here"}
    assert read_table(write("mine.toml", extends="few/gamma")) == gamma


def test_the_whole_configuration_is_that_of_the_same_keys_in_one_file() -> None:
    write_small(Path())
    mine = write("mine.toml", extends="small.toml", name="mine", round={"rounds": 6})
    table = small_table(name="mine")
    table["round"]["rounds"] = 6
    text = load_experiment(mine).to_toml()
    assert text == load_experiment(write("whole.toml", **table)).to_toml()
    assert "extends" not in text


def test_options_override_what_is_inherited_and_sweeps_give_it_values() -> None:
    write_small(Path())
    mine = write("mine.toml", extends="small.toml", name="mine")
    overrides = ["arm.fielding.clusterer.max_clusters=2"]
    assert (
        load_experiment(mine, overrides).find_arm("fielding").clusterer.settings.model_dump()["max_clusters"]
        == 2
    )
    assert read_configuration(mine, sweep=["round.participants=2,3"]).axes[0].values == (2, 3)


def test_the_configurations_of_a_folder_may_extend_one_below_it() -> None:
    write("both/below/base.toml", **small_table())
    for name in ("one", "two"):
        write(f"both/{name}.toml", extends="below/base.toml", name=name, arms=["global"])
    members = load_folder(Path("both"))
    assert [(one.experiment.name, len(one.experiment.arm)) for one in members] == [("one", 1), ("two", 1)]


def test_a_mapping_extends_files_of_the_present_folder() -> None:
    write_small(Path())
    [facts] = check({"extends": "small.toml", "name": "mine", "arms": ["global"]}).facts
    assert (facts["name"], facts["arms"]) == ("mine", "global")


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    write("base.toml", name="base")
    missing = "no such file beside mine.toml, and no shipped configuration;"
    assert (
        refusal(extends="bse.toml") == f"mine.toml: extends = 'bse.toml': {missing} did you mean 'base.toml'?"
    )
    assert refusal(extends="base") == f"mine.toml: extends = 'base': {missing} did you mean 'base.toml'?"
    assert refusal(extends="figure-02").endswith(f"{missing} the shipped one is named fielding/figure-02")
    assert refusal(extends="\0x" * 90).endswith("driftscale configs lists the shipped ones")


def test_a_circle_is_shown() -> None:
    write("base.toml", extends="mine.toml")
    assert refusal(extends="base.toml") == (
        "base.toml: extends = 'mine.toml': goes in a circle (mine.toml -> base.toml -> mine.toml); one "
        "must not extend the next"
    )
    assert "goes in a circle (mine.toml -> mine.toml)" in refusal(extends="mine.toml")


def test_the_same_file_twice_on_different_ways_is_no_circle() -> None:
    write("base.toml", name="base")
    for name in ("left.toml", "right.toml"):
        write(name, extends="base.toml")
    assert read_table(write("mine.toml", extends=["left.toml", "right.toml"])) == {"name": "base"}


def test_at_most_four_extend_one_another() -> None:
    write("0.toml", name="first")
    for number in range(MOST_DEEP):
        deepest = write(f"{number + 1}.toml", extends=f"{number}.toml")
    assert read_table(deepest) == {"name": "first"}
    assert refusal(extends=deepest.name) == (
        "1.toml: extends = '0.toml': is more than 4 deep (mine.toml -> 4.toml -> 3.toml -> 2.toml -> "
        "1.toml -> 0.toml); extend one that is nearer to the first"
    )


def test_so_many_in_all_are_not_read() -> None:
    names = [write(f"{number}.toml", name="x").name for number in range(MOST_EXTENDED + 1)]
    assert read_table(write("fits.toml", extends=names[1:])) == {"name": "x"}
    assert refusal(extends=names).endswith(f"is one of more than {MOST_EXTENDED} that are extended in all")


@pytest.mark.parametrize("given", [3, [], ["a", 3], {"a": "b"}, True])
def test_what_is_extended_is_a_text_or_a_list_of_texts(given: Any) -> None:
    rule = "must be a path, the name of a shipped one, or a list of both"
    assert refusal(extends=given) == f"mine.toml: extends = {given!r}: {rule}"


def test_a_name_is_given_once() -> None:
    write("base.toml", arm=[{"name": "a"}])
    assert refusal(extends=["base.toml", "base.toml"]).endswith("'base.toml' is given twice; name it once")
    assert refusal(extends="base.toml", arms=["a", "a"]).endswith("arms: 'a' is given twice; name it once")


def test_an_arm_that_nobody_names_cannot_be_picked() -> None:
    write("base.toml", arm=[{"name": "global"}, {"name": "fielding"}])
    assert refusal(extends="base.toml", arms=["globl"]) == (
        "mine.toml: arms: unknown arm 'globl'; choices: fielding, global; did you mean 'global'?"
    )
    assert refusal(arms=[{"name": "a"}]).endswith("must be names of arms; an arm itself is a table [[arm]]")
    assert refusal(arms=["a"], arm={"name": ["a"]}).endswith("unknown arm 'a'; choices: none")


def test_a_file_outside_the_folders_that_may_be_read_is_refused_with_the_option_that_allows_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("base.toml", name="base")
    mine = write("sub/mine.toml", extends="../base.toml")
    assert read_table(mine) == {"name": "base"}
    monkeypatch.chdir("sub")
    with pytest.raises(InputError, match=rf"^mine\.toml: extends: .*; to allow it, add --data {here} "):
        read_table(Path("mine.toml"))
    assert read_table(Path("mine.toml"), locate=locator(here, Path("mine.toml"))) == {"name": "base"}


@pytest.mark.usefixtures("own_modules")
def test_a_module_beside_a_file_that_is_extended_is_not_imported(here: Path) -> None:
    write_small(Path())
    write("sub/base.toml", extends="../small.toml", parts={"selector": "own_beside:Mine"})
    Path("sub/own_beside.py").write_text("raise SystemExit('imported')\n")
    with pytest.raises(InputError) as refused:
        read_configuration(write("mine.toml", extends="sub/base.toml"))
    assert str(refused.value) == (
        "mine.toml: parts.selector = 'own_beside:Mine' (inherited from sub/base.toml): selector "
        f"'own_beside:Mine': no module 'own_beside' in {here}: a part of one's own is in a file "
        "own_beside.py beside the configuration or in the present folder"
    )


def test_a_file_that_is_no_toml_is_named() -> None:
    Path("base.toml").write_text("name =")
    assert refusal(extends="base.toml").startswith("base.toml: cannot be read as TOML (")


@pytest.mark.parametrize(
    "table",
    [
        {"arm": 3},
        {"arm": [3, {"name": ["a"]}, {}]},
        {"report": {"published": 3}, "arm": [{"name": "a"}], "arms": ["a"]},
        {"sweep": 3, "trace": 4, "round": []},
    ],
)
def test_what_breaks_a_rule_is_refused_as_in_one_file(table: dict[str, Any]) -> None:
    write_small(Path())
    write("base.toml", extends="small.toml", **table)
    for mine in (write("mine.toml", extends=["small.toml", "base.toml"]), Path("base.toml")):
        with pytest.raises(EmulatorError) as refused:
            read_configuration(mine)
        assert str(refused.value).startswith(f"{mine}: ")


def test_an_error_names_the_file_that_a_value_is_inherited_from() -> None:
    write_small(Path())
    write(
        "base.toml", extends="small.toml", round={"participants": 0}, arm=[{"name": "global", "memory": "x"}]
    )
    mine = write("mine.toml", extends="base.toml")
    with pytest.raises(
        InputError, match=r"^mine.toml: round.participants = 0 \(inherited from base.toml\): "
    ):
        load_experiment(mine)
    with pytest.raises(InputError, match=r"arm.global.memory = 'x' \(inherited from base.toml\): unknown"):
        load_experiment(mine, ["round.participants=2"])
    with pytest.raises(InputError, match=r"^mine.toml: training.batch_size = -2: "):
        load_experiment(mine, ["round.participants=2", "training.batch_size=-2"])
    own = write("mine.toml", extends="base.toml", round={"participants": -1})
    with pytest.raises(InputError, match=r"^mine.toml: round.participants = -1: "):
        load_experiment(own)


def test_options_cannot_extend() -> None:
    config = write_small(Path())
    for option in ("extends=digits", "arms=['global']"):
        with pytest.raises(InputError, match="is read with its file, before options are applied"):
            load_experiment(config, [option])
    assert read_toml(config).keys() == SMALL.keys()
