from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.errors import ConfigurationError, InputError, UnknownNameError
from experiments.reading import load_experiment
from experiments.results.reading.json_files import SweepCell
from experiments.running.members import Member, load_folder, load_members, read_configuration
from tests.experiments.small import write_drifting, write_small


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two experiments that have one arm in common."""
    write_drifting(tmp_path, name="beta")
    write_drifting(tmp_path, name="alpha", arm=[{"name": "oblivious"}, {"name": "window", "memory": "held"}])
    return tmp_path


def test_members_are_in_the_order_of_their_files_with_all_arms(folder: Path) -> None:
    members = load_folder(folder)
    assert [(member.experiment.name, member.arms) for member in members] == [("alpha", None), ("beta", None)]


def test_members_without_any_of_the_arms_are_left_out(folder: Path) -> None:
    members = load_folder(folder, arms=["oracle", "window"])
    assert [(member.experiment.name, member.arms) for member in members] == [
        ("alpha", ["window"]),
        ("beta", ["oracle"]),
    ]
    [member] = load_folder(folder, arms=["window"])
    assert member.path == folder / "alpha.toml"


def test_an_arm_that_no_configuration_has_is_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown arm 'oracel'.*oblivious.*did you mean 'oracle'"):
        load_folder(folder, arms=["oblivious", "oracel"])


def test_two_configurations_of_one_name_are_refused(folder: Path) -> None:
    (folder / "zeta.toml").write_text((folder / "beta.toml").read_text())
    with pytest.raises(ConfigurationError, match=r"zeta\.toml: name = 'beta': is also that of .*beta\.toml"):
        load_folder(folder)


def test_a_folder_without_configurations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder without a configuration"):
        load_folder(tmp_path)


@pytest.mark.usefixtures("own_modules")
def test_a_misspelt_key_of_one_is_reported_before_a_setting_of_another_that_needs_torch(folder: Path) -> None:
    (folder / "own_wide.py").write_text("from executor.models.mlp import Mlp\nclass Wide(Mlp): 'Wide.'\n")
    write_drifting(folder, name="aardvark", training={"model": {"kind": "own_wide:Wide", "hiden": [3]}})
    write_drifting(folder, name="zeta", round={"roundz": 3})
    with pytest.raises(ConfigurationError, match=r"zeta\.toml: round: unknown key 'roundz'"):
        load_folder(folder)
    (folder / "zeta.toml").unlink()
    with pytest.raises(ConfigurationError, match=r"aardvark\.toml: training\.model: unknown key 'hiden'"):
        load_folder(folder)


# -- cells ---------------------------------------------------------------------------------------------------

THRESHOLD = "arm.fielding.clusterer.trigger.threshold"


def load(
    path: Path,
    *sweep: str,
    arms: list[str] | None = None,
    overrides: tuple[str, ...] = (),
    many: bool = False,
) -> list[Member]:
    return load_members([read_configuration(path, overrides, sweep=sweep)], arms, allow_many=many)


def refused(path: Path, *sweep: str, **options: Any) -> str:
    """The error without the name of the file."""
    with pytest.raises(InputError) as error:
        load(path, *sweep, **options)
    return str(error.value).replace(str(path), "FILE")


def test_cells_are_configurations_with_names_and_values_of_their_own(tmp_path: Path) -> None:
    members = load(write_small(tmp_path), f"{THRESHOLD}=0.1,never", "round.participants=2,3")
    assert [member.experiment.name for member in members] == [
        "small,threshold=0.1,participants=2",
        "small,threshold=0.1,participants=3",
        "small,threshold=never,participants=2",
        "small,threshold=never,participants=3",
    ]
    assert [member.experiment.round.participants for member in members] == [2, 3, 2, 3]
    assert [member.cell for member in members][2] == SweepCell(
        of="small",
        keys={THRESHOLD: "never", "round.participants": 2},
        order={THRESHOLD: [0.1, "never"], "round.participants": [2, 3]},
    )
    assert "sweep" not in members[0].experiment.resolved()


def test_a_table_of_the_file_is_swept_and_options_replace_its_keys(tmp_path: Path) -> None:
    table = {"round.participants": [2, 3], "arm": {"fielding": {"memory": ["held"]}}}
    path = write_small(tmp_path, sweep=table)
    assert [member.experiment.round.participants for member in load(path)] == [2, 3]
    [member] = load(path, "round.participants=4")
    assert member.cell == SweepCell(
        of="small",
        keys={"round.participants": 4, "arm.fielding.memory": "held"},
        order={"round.participants": [4], "arm.fielding.memory": ["held"]},
    )
    [alone] = load(path, overrides=("sweep={}",))
    assert (alone.cell, alone.experiment.name) == (None, "small")
    with pytest.raises(ConfigurationError, match=r"has a \[sweep\], so it describes several experiments"):
        load_experiment(path)


def test_entries_of_a_list_are_swept_under_short_names(tmp_path: Path) -> None:
    drift = {"kind": "label_mix", "events": [{"round": 2, "share": 0.9}]}
    path = write_small(tmp_path, trace={"drift": drift})
    members = load(path, "trace.drift.events.0.share=0.1,0.5", "trace.drift.events.0.mixes=2")
    assert [member.experiment.name for member in members] == [
        "small,mixes=2,share=0.1",
        "small,mixes=2,share=0.5",
    ]
    events = [member.experiment.resolved()["trace"]["drift"]["events"] for member in members]
    assert [event["share"] for [event] in events] == [0.1, 0.5]
    assert refused(path, "trace.drift.events.1.share=0.1,0.5") == (
        "--sweep trace.drift.events.1.share=0.1,0.5: trace.drift.events is a list of 1, so '1' must be the "
        "number of an entry, from 0 to 0"
    )


def test_a_swept_entry_of_a_swept_list_is_refused(tmp_path: Path) -> None:
    drift = {"kind": "label_mix", "events": [{"round": 2, "share": 0.9}]}
    events = "trace.drift.events=[{round=2, share=0.1}],[{round=2, share=0.2}]"
    assert refused(
        write_small(tmp_path, trace={"drift": drift}), events, "trace.drift.events.0.share=0.3"
    ).startswith(f"--sweep {events}: trace.drift.events and another swept key set the same values")


def test_a_swept_kind_comes_before_the_settings_of_its_part(tmp_path: Path) -> None:
    members = load(
        write_small(tmp_path),
        "arm.fielding.clusterer.max_clusters=2,3",
        "arm.fielding.clusterer.kind=fielding,static",
    )
    clusterers = [member.experiment.find_arm("fielding").clusterer for member in members]
    assert [(chosen.kind, chosen.settings.max_clusters) for chosen in clusterers] == [
        ("fielding", 2),
        ("static", 2),
        ("fielding", 3),
        ("static", 3),
    ]


def test_a_swept_key_inside_of_a_swept_table_is_refused(tmp_path: Path) -> None:
    assert refused(
        write_small(tmp_path), "arm.fielding.clusterer=single,static", "arm.fielding.clusterer.kind=fielding"
    ).startswith("--sweep arm.fielding.clusterer=single,static: arm.fielding.clusterer and another swept key")


def test_a_long_value_is_cut_in_an_error(tmp_path: Path) -> None:
    assert len(refused(write_small(tmp_path), f"devices.time_model={'x' * 5000}")) < 6000


def test_cells_share_the_identity_of_an_arm_that_no_swept_key_touches(tmp_path: Path) -> None:
    low, high = (member.identities for member in load(write_small(tmp_path), f"{THRESHOLD}=0.1,0.25"))
    assert low["global"] == high["global"]
    assert low["fielding"] != high["fielding"]


def test_a_key_that_does_not_exist_is_named_with_where_it_is_swept(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert refused(path, "round.partcipants=2,3").startswith(
        "FILE with --sweep round.partcipants = 2: round: unknown key 'partcipants'; choices: "
    )
    assert refused(path, "arm.fielding.clusterer.treshold=0.1,0.2").startswith(
        "FILE with --sweep arm.fielding.clusterer.treshold = 0.1: arm.fielding.clusterer: unknown key "
        "'treshold'"
    )
    assert refused(path, "arm.fieldin.memory=held,claimed") == (
        "--sweep arm.fieldin.memory=held,claimed: no arm is named 'fieldin'; choices: global, fielding"
    )
    path = write_small(tmp_path, sweep={"rund": {"rounds": [3, 4]}})
    assert refused(path).startswith("FILE with [sweep] rund.rounds = 3: unknown key 'rund'; choices: ")


def test_a_value_that_breaks_a_rule_is_named_with_the_others_of_its_cell(tmp_path: Path) -> None:
    path = write_small(tmp_path, sweep={"round.participants": [2, 3]})
    assert refused(path, "round.rounds=4,0") == (
        "FILE with [sweep] round.participants = 2, --sweep round.rounds = 0: round.rounds = 0: input should "
        "be greater than or equal to 1"
    )
    assert refused(path, "devices.profile=uniform,nope").startswith(
        "FILE with [sweep] round.participants = 2, --sweep devices.profile = 'nope': devices.profile: unknown"
    )


@pytest.mark.parametrize(
    ("sweep", "key"),
    [
        (["report.window=3,5"], "report.window"),
        (["round.participants=2,3", "executor.threads=1,2"], "executor.threads"),
        (["checkpoint.every_rounds=7"], "checkpoint.every_rounds"),
        (["parts.clusterer=single,static"], "parts.clusterer"),
    ],
)
def test_a_key_that_no_arm_reads_is_refused_by_name(sweep: list[str], key: str, tmp_path: Path) -> None:
    arms = [{"name": "global", "clusterer": "single"}, {"name": "fielding", "clusterer": "fielding"}]
    assert refused(write_small(tmp_path, arm=arms), *sweep) == (
        f"--sweep {sweep[-1]}: no arm reads {key}, so it makes no difference to any run; leave it out, or "
        f"set it with --set"
    )


def test_a_key_that_only_other_arms_read_is_refused(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert refused(path, f"{THRESHOLD}=0.1,0.25", arms=["global"]).startswith(
        f"--sweep {THRESHOLD}=0.1,0.25: none of the arms global reads {THRESHOLD}, so it makes no difference"
    )
    assert len(load(path, f"{THRESHOLD}=0.1,0.25", arms=["fielding"])) == 2


def test_a_single_value_is_swept_if_a_run_depends_on_it_or_it_is_there_already(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert len(load(path, "round.participants=2")) == 1
    assert len(load(path, "round.participants=3")) == 1  # as the file has it


def test_a_required_key_may_be_given_by_the_sweep_alone(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    path.write_text(path.read_text().replace("\nrounds = 4\n", "\n"))
    assert [member.experiment.round.rounds for member in load(path, "round.rounds=5")] == [5]


def test_an_invalid_name_is_reported_as_it_stands(tmp_path: Path) -> None:
    assert "name = 'a b': string should match" in refused(
        write_small(tmp_path, name="a b"), "round.rounds=3,4"
    )


def test_more_than_ten_thousand_cells_are_refused_before_any_is_made(tmp_path: Path) -> None:
    numbers = ",".join(map(str, range(1, 1001)))
    sweep = [f"round.rounds={numbers}", f"round.max_wait_days={numbers}", f"round.nope={numbers}"]
    assert refused(write_small(tmp_path), *sweep).startswith(
        "1,000,000,000 cells (1000 x 1000 x 1000), and a"
    )
    assert refused(write_small(tmp_path), sweep[2], many=True).endswith(
        "seconds_per_round"
    )  # a key that does not exist


def test_the_configurations_of_a_folder_may_be_swept(tmp_path: Path) -> None:
    write_drifting(tmp_path, name="beta", sweep={"round.participants": [2, 3]})
    write_drifting(tmp_path, name="alpha")
    assert [member.experiment.name for member in load_folder(tmp_path)] == [
        "alpha",
        "beta,participants=2",
        "beta,participants=3",
    ]
    assert [member.experiment.name for member in load_folder(tmp_path, sweep=["round.participants=1,2"])] == [
        *("alpha,participants=1", "alpha,participants=2"),
        *("beta,participants=1", "beta,participants=2"),
    ]
