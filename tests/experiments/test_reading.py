from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from emulator.errors import ConfigurationError, InputError
from experiments.reading import load_experiment, override_table
from tests.experiments.small import MINIMAL, small_table, write_idx_folder, write_small

pytestmark = pytest.mark.usefixtures("beside_the_files")


@pytest.mark.usefixtures("own_modules")
def test_the_settings_of_models_and_rules_of_ones_own_are_validated_last(config: Path) -> None:
    (config.parent / "own_late.py").write_text(
        "from executor.models.mlp import Mlp\nfrom executor.rules.adam import Adam\n"
        "class Wide(Mlp): 'Wide.'\nclass Slow(Adam): 'Slow.'\n"
    )
    settings = [
        "training.model={kind='own_late:Wide',hiden=[3]}",
        "arm.fielding.solver={kind='own_late:Slow',betas=1}",
    ]
    with pytest.raises(ConfigurationError, match=r"small\.toml: report: unknown key 'windw'"):
        load_experiment(config, [*settings, "report.windw=3"])
    with pytest.raises(ConfigurationError, match=r"small\.toml: training\.model: unknown key 'hiden'"):
        load_experiment(config, settings)
    with pytest.raises(ConfigurationError, match=r"small\.toml: arm\.fielding\.solver: unknown key 'betas'"):
        load_experiment(config, settings[1:])


def test_an_unknown_profile_is_refused_when_a_configuration_is_read(config: Path) -> None:
    with pytest.raises(InputError, match=r"small\.toml: devices\.profile: unknown .*'smartphones'\?$"):
        load_experiment(config, ["devices.profile=smartphone"])
    assert load_experiment(config, ["devices.profile=mine.csv"]).devices.profile.path == "mine.csv"


def test_settings_reach_the_shared_training_and_that_of_an_arm(config: Path) -> None:
    settings = ["training.learning_rate=0.5", "arm.fielding.training.local_steps=7"]
    shared, override = (arm.training for arm in load_experiment(config, settings).arm)
    assert (shared.learning_rate, shared.local_steps) == (0.5, 2)
    assert (override.learning_rate, override.local_steps) == (0.5, 7)


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("round.rounds=50", ("round", "rounds"), 50),
        ("round.over_commit=1.5", ("round", "over_commit"), 1.5),
        ("name=other", ("name",), "other"),
        ('name="other"', ("name",), "other"),
        ("seeds=[3, 1]", ("seeds",), [3, 1]),
        ("trace.clients=30", ("trace", "clients"), 30),
        ("trace.drift.kind=none", ("trace", "drift", "kind"), "none"),
        ("training.model.kind=mlp", ("training", "model", "kind"), "mlp"),
        ('training.model={kind="mlp", hidden=[8]}', ("training", "model", "hidden"), [8]),
        ("devices.model_factor=flops", ("devices", "model_factor"), "flops"),
        ("report.target=0.5", ("report", "targets"), [0.5]),
        ('report.targets=[0.5, "reference"]', ("report", "targets"), [0.5, "reference"]),
        ("report.horizon_s=3600", ("report", "horizon_s"), 3600.0),
        (" round.rounds = 7", ("round", "rounds"), 7),
    ],
)
def test_a_setting_reaches_its_key_and_is_read_as_toml(
    config: Path, setting: str, path: tuple[str, ...], value: object
) -> None:
    resolved: Any = load_experiment(config, [setting]).resolved()
    for key in path:
        resolved = resolved[key]
    assert resolved == value
    assert type(resolved) is type(value)


def test_a_setting_of_what_is_given_by_a_text_alone_keeps_that_text() -> None:
    table: dict[str, Any] = {"training": {"model": "mlp", "start": "m.safetensors"}, "trace": "digits"}
    override_table(table, ["training.model.hidden=[3]", "training.start.head=new", "trace.clients=3"], None)
    assert table == {
        "training": {
            "model": {"kind": "mlp", "hidden": [3]},
            "start": {"file": "m.safetensors", "head": "new"},
        },
        "trace": {"source": "digits", "clients": 3},
    }


def test_a_setting_reaches_an_arm_by_its_name(config: Path) -> None:
    experiment = load_experiment(
        config, ["arm.fielding.clusterer.trigger.threshold=0.9", "arm.global.clusterer=static"]
    )
    assert experiment.find_arm("fielding").clusterer.settings.model_dump()["trigger"]["threshold"] == 0.9
    assert experiment.find_arm("fielding").clusterer.settings.model_dump()["max_clusters"] == 3
    assert experiment.find_arm("global").clusterer.kind == "static"


EVENTS = 'trace.drift={kind="label_mix", events=[{round=2, share=0.2}, {round=3, share=0.9, mixes=2}]}'


def test_a_setting_reaches_an_entry_of_a_list_by_its_number(config: Path) -> None:
    settings = [EVENTS, "trace.drift.events.1.share=0.5", "seeds=[3, 4]", "seeds.0=7"]
    experiment = load_experiment(config, settings)
    assert experiment.resolved()["trace"]["drift"]["events"] == [
        {"round": 2, "share": 0.2, "mixes": 4},
        {"round": 3, "share": 0.5, "mixes": 2},
    ]
    assert experiment.seeds == (7, 4)


def test_a_table_that_is_given_by_its_path_only_can_be_set_where_it_stands_alone_and_in_a_list() -> None:
    table: dict[str, Any] = {"trace": {"table": "a.csv", "concepts": {"files": ["a.csv", "b.csv"]}}}
    override_table(table, ["trace.table.separator=;", "trace.concepts.files.1.separator=tab"], None)
    assert table["trace"]["table"] == {"path": "a.csv", "separator": ";"}
    assert table["trace"]["concepts"]["files"] == ["a.csv", {"path": "b.csv", "separator": "tab"}]


def test_an_entry_that_is_given_by_its_name_only_can_be_set(config: Path) -> None:
    solver = ['arm.global.solver=["fedprox", "sgd"]', "arm.global.solver.0.mu=0.5"]
    rules = load_experiment(config, solver).resolved()["arm"][0]["solver"]
    assert [rule["kind"] for rule in rules] == ["fedprox", "sgd"]
    assert rules[0]["mu"] == 0.5


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("2", "trace.drift.events is a list of 2, so '2' must be the number of an entry, from 0 to 1"),
        ("-1", "trace.drift.events is a list of 2, so '-1' must be the number of an entry, from 0 to 1"),
        ("01", "trace.drift.events is a list of 2, so '01' must be the number of an entry, from 0 to 1"),
        ("last", "trace.drift.events is a list of 2, so 'last' must be the number of an entry, from 0 to 1"),
    ],
)
def test_an_entry_that_a_list_does_not_have_cannot_be_set(config: Path, number: str, rule: str) -> None:
    for key in (f"trace.drift.events.{number}", f"trace.drift.events.{number}.share"):
        with pytest.raises(ConfigurationError) as refused:
            load_experiment(config, [EVENTS, f"{key}=0.5"])
        assert str(refused.value) == f"--set {key}=0.5: {rule}"


def test_a_setting_of_a_part_that_is_given_by_name_only_can_be_set(config: Path) -> None:
    experiment = load_experiment(config, ["training.model=mlp", "training.model.hidden=[5]"])
    assert experiment.resolved()["training"]["model"] == {"kind": "mlp", "hidden": [5]}
    config.write_text(tomli_w.dumps(MINIMAL))
    experiment = load_experiment(config, ["trace.clients=9"])
    assert experiment.resolved()["trace"]["clients"] == 9
    assert experiment.resolved()["trace"]["source"] == "digits"


def test_settings_are_applied_in_order_and_seeds_win(config: Path) -> None:
    experiment = load_experiment(config, ["seeds=[7]", "name=a", "name=b"], seeds=[1, 2])
    assert (experiment.name, experiment.seeds) == ("b", (1, 2))


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("round.rounds", "must be KEY=VALUE"),
        ("=3", "must be KEY=VALUE"),
        ("arm.nobody.clusterer=single", "no arm is named 'nobody'; choices: global, fielding"),
        ("arm.0.clusterer=single", "no arm is named '0'; choices: global, fielding"),
        ("arm.0=single", "arm is not a table"),
        ("round.rounds.deep=1", "round.rounds is not a table"),
        ("round.rounds.very.deep=1", "'very' is a key of a value that is not a table"),
        ("arm=3", "arm = 3: must be a list"),
        (
            "trace.drift.mixes=3",
            "trace.drift: must be a name, or a table with 'kind'; choices: buckets, label_mix, none",
        ),
        ("round.roundz=3", "round: unknown key 'roundz'; choices: "),
        ("round.rounds=many", "round.rounds = 'many': must be a whole number"),
    ],
)
def test_a_bad_setting_is_one_line(config: Path, setting: str, rule: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_experiment(config, [setting])
    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_missing_a_folder_or_not_toml_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: no such configuration"):
        load_experiment(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="is a folder, not a configuration"):
        load_experiment(tmp_path)
    for content in (b"name = ", b"\xff\xfe", b"a = 1\na = 2\n"):
        path = tmp_path / "bad.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"bad\.toml: cannot be read as TOML \(") as refused:
            load_experiment(path)
        assert "\n" not in str(refused.value)


def test_a_folder_as_source_means_the_idx_images_in_it(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "letters")
    config = tmp_path / "c.toml"
    config.write_text(tomli_w.dumps(small_table(trace={"source": "letters"})))
    trace = load_experiment(config).resolved()["trace"]
    assert (trace["source"], trace["folder"], trace["clients"]) == ("idx", "letters", 12)


def test_a_folder_as_source_is_found_under_data_and_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    write_idx_folder(tmp_path / "data" / "letters")
    write_idx_folder(tmp_path / "configs" / "digits2")
    monkeypatch.chdir(tmp_path / "work")
    for source, data in (("letters", tmp_path / "data"), ("digits2", None)):
        config = tmp_path / "configs" / "c.toml"
        config.write_text(tomli_w.dumps(small_table(trace={"source": source})))
        assert load_experiment(config, data=data).trace.kind == "idx"


def test_a_source_that_is_neither_a_name_nor_a_folder_lists_the_choices(config: Path, tmp_path: Path) -> None:
    (tmp_path / "table").touch()
    for source in ("nowhere", "table"):
        with pytest.raises(
            ConfigurationError, match=f"unknown trace source '{source}'; choices: concepts, digits, file, idx"
        ):
            load_experiment(config, [f"trace.source={source}"])


def test_setting_another_kind_drops_the_settings_of_the_former_one(tmp_path: Path) -> None:
    config = write_small(tmp_path)
    [_, fielding] = load_experiment(config, ["arm.fielding.clusterer.kind=static"]).arm
    assert fielding.clusterer.kind == "static"
    assert fielding.clusterer.settings.max_clusters == 10
