"""Every bad input ends in one line with the value, the rule and the place."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import (
    DEVICES,
    NEVER_AGAIN,
    WINDOWS,
    write_drifting,
    write_idx_folder,
    write_label_trace,
    write_replay,
    write_small,
)


def assert_names(message: str, *parts: str) -> None:
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"


# -- names and numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("round.roundz=4", ("small.toml", "round", "'roundz'", "choices: ", "did you mean 'rounds'?")),
        (
            "rouns.rounds=4",
            ("small.toml", "'rouns'", "choices: arm, arms, atlas, checkpoint", "did you mean 'round'?"),
        ),
        (
            "arm.global.clusterer=ifca2",
            ("small.toml", "arm.global.clusterer = 'ifca2'", "fielding, flexcfl, hypcluster, ifca"),
        ),
        (
            "arm.global.selector=oorrt",
            (
                "small.toml",
                "arm.global.selector = 'oorrt'",
                "choices: distance, fewest_updates, oort, power_of_choice, random",
            ),
        ),
        (
            "parts.aggregator=mean",
            (
                "small.toml",
                "parts.aggregator = 'mean'",
                "choices: async_mix, fedadagrad, fedadam, fedavg, fedbuff, feddc",
            ),
        ),
        ("devices.profile=smartphone", ("devices.profile", "'smartphone'", "datacenter, iot, smartphones")),
        ("trace.source=mnist2", ("small.toml", "trace", "'mnist2'", "choices: concepts, digits, file, idx")),
        ("devices.availability=allways", ("small.toml", "devices.availability = 'allways'", "'always'?")),
        ("round.participants=13", ("round.participants = 13", "more than the 12 clients")),
        ("round.min_online=13", ("round.min_online = 13", "more than the 12 clients")),
        ("round.rounds=-1", ("small.toml", "round.rounds = -1", "greater than or equal to 1")),
        ("trace.clients=0", ("small.toml", "trace.clients = 0", "greater than or equal to 1")),
        ("trace.drift={kind='none', labels_per_mix=11}", ("labels_per_mix = 11", "10 labels")),
        ("executor.threads=true", ("executor.threads = True", "must be a whole number")),
        ("round.rounds='40'", ("round.rounds = '40'", "must be a whole number")),
        ("training.learning_rate='0.1'", ("training.learning_rate = '0.1'", "must be a number")),
        ("training.learning_rate=true", ("training.learning_rate = True", "must be a number")),
        ("devices.model_factor=true", ("devices.model_factor = True", "must be a number")),
        ("devices.model_factor=1e308", ("devices.model_factor = 1e+308", "less than or equal to 1e+09")),
        ("round.over_commit=1e19", ("round.over_commit = 1e+19", "less than or equal to 1e+06")),
        ("training.batch_size=9223372036854775807", ("training.batch_size = 92", "less than or equal to")),
        ("training.local_steps=9223372036854775807", ("training.local_steps = 92", "less than or equal to")),
        (
            "arm.global.solver=[{kind='fedprox',mu=1e39},'sgd']",
            ("arm.global.solver.0", "less than or equal to"),
        ),
        ("arm.global.solver={kind='adam',weight_decay=1e39}", ("arm.global.solver", "less than or equal to")),
        (
            "training.model={kind='mlp',hidden=[4611686018427387904]}",
            ("hidden", "less than or equal to 65536"),
        ),
        (
            "training.model={kind='masked',inner={kind='mlp',hidden=[1099511627776]}}",
            ("less than or equal to",),
        ),
        (
            "arm.global.adaptation=tunde",
            (
                "arm.global.adaptation = 'tunde'",
                "alone, none, prior, relabelled, transformed, tuned",
                "'tuned'?",
            ),
        ),
        (
            "arm.global.adaptation={kind='tuned',local_steps=0}",
            ("arm.global.adaptation.local_steps", "greater than or equal to 1"),
        ),
        ("arm.global.adaptation=transformed", ("families of changes: none; set one of rotations, shifts,",)),
        (
            "arm.global.adaptation={kind='transformed',shifts=[]}",
            ("arm.global.adaptation.shifts", "must not be empty"),
        ),
        (
            "arm.global.adaptation={kind='transformed',channels=true}",
            ("channels: too many orders to try each; set by = 'class_means'",),
        ),
        ("arm.fielding.adaptation=alone", ("arm 'fielding': adaptation = 'alone'", "clusterer = 'single'")),
        ("no-equals-sign", ("--set no-equals-sign", "KEY=VALUE")),
        ("arm.nobody.clusterer=single", ("'nobody'", "choices: global, fielding")),
    ],
)
def test_a_wrong_key_name_or_number_ends_with_2_and_one_line(
    driftscale: Driftscale, tmp_path: Path, setting: str, parts: tuple[str, ...]
) -> None:
    config = write_small(tmp_path)
    ended = driftscale("run", config, "--set", setting)
    assert ended.code == 2
    assert ended.out == ""
    assert_names(ended.error, *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--arms", "globall"], ("--arms", "'globall'", "choices: fielding, global", "'global'?")),
        (["--arms", ""], ("--arms", "choices: fielding, global")),
        (["--seeds", "two"], ("--seeds two", "0..9", "0,3,7")),
        (["--seeds", "4..1"], ("--seeds 4..1", "0..9")),
        (["--seeds", "1..2..3"], ("--seeds 1..2..3", "0..9")),
        (["--seeds", "1,1"], ("seeds", "every seed may be given only once")),
        (["--seeds", "0..99999"], ("--seeds 0..99999", "at most 32768 runs")),
        (["--seeds", "0..20000"], ("2 arms x 20001 seeds", "at most 32768 runs")),
        (["--seeds=-3"], ("seeds.0 = -3", "greater than or equal to 0")),
        (["--data", "nowhere"], ("nowhere", "no such folder", "--data")),
        (["--until", "0"], ("--until 0", "from 1 to 4 (round.rounds)")),
        (["--until", "5", "--sweep", "round.rounds=9,4"], ("small,rounds=4", "--until 5", "from 1 to 4")),
        (["--until", "1", "--set", "round.evaluate_every=2"], ("--until 1", "round.evaluate_every = 2")),
        (["--out", "small.toml"], ("small.toml", "is a file; a run directory is a folder")),
    ],
)
def test_a_wrong_option_ends_with_2_and_one_line(
    driftscale: Driftscale, tmp_path: Path, arguments: list[str], parts: tuple[str, ...]
) -> None:
    config = write_small(tmp_path)
    ended = driftscale("run", config.name, *arguments)
    assert ended.code == 2
    assert_names(ended.error, *parts)
    assert config.exists()


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_configuration_that_cannot_be_read_ends_with_2_and_one_line(
    driftscale: Driftscale, tmp_path: Path, command: str
) -> None:
    (tmp_path / "not.toml").write_text("name = [")
    (tmp_path / "binary.toml").write_bytes(b"\x00\xff\x80")
    (tmp_path / "empty.toml").touch()
    for name, rule in (
        ("gone.toml", "no such configuration"),
        ("not.toml", "cannot be read as TOML"),
        ("binary.toml", "cannot be read as TOML"),
        ("empty.toml", "name: field required"),
    ):
        ended = driftscale(command, name)
        assert ended.code == 2
        assert_names(ended.error, name, rule)


def test_a_folder_without_configurations_has_nothing_to_check(driftscale: Driftscale, tmp_path: Path) -> None:
    ended = driftscale("check", tmp_path)
    assert ended.code == 2
    assert_names(ended.error, str(tmp_path), "a folder without a configuration")


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("settings", "rest"),
    [
        (["trace.pattern=R", "trace.concepts=sea", "seeds=[10]"], 'trace.pattern = "R": stands for R'),
        (["trace.concepts={kind='label_swaps', folder='mnist'}"], "mnist: not found; looked for"),
        (["round.rounds=5"], "round.rounds = 5: trace.pattern has 2 steps of data"),
        (["round.participants=4"], "round.participants = 4: more than the 3 clients"),
        (["parts.schedules=['adaptive_lr','adaptive_lr']"], "arm 'oblivious': schedules 'adaptive_lr'"),
        (["arm.oblivious.clusterer=kue"], "arm 'oblivious': clusterer 'kue' gives each model"),
        (["trace.concepts=sine", "trace.pattern=['000','111']", "round.rounds=9"], "round.rounds = 9: "),
    ],
)
def test_an_error_found_while_building_names_the_file_too(
    driftscale: Driftscale, tmp_path: Path, command: str, settings: list[str], rest: str
) -> None:
    config = write_drifting(tmp_path)
    options = [option for setting in settings for option in ("--set", setting)]
    ended = driftscale(command, config.name, *options)
    assert ended.code == 2
    assert ended.error.startswith(f"drifting.toml: {rest}")


@pytest.mark.parametrize("command", ["run", "check"])
def test_published_values_of_a_trace_without_concepts_are_refused(
    driftscale: Driftscale, tmp_path: Path, command: str
) -> None:
    config = write_small(tmp_path, report={"published": {"accuracy_omitting_drift": {"global": 50}}})
    ended = driftscale(command, config.name)
    assert ended.code == 2
    assert_names(ended.error, "small.toml: report.published: ", "a trace that knows its concepts")


def test_unknown_names_of_the_other_commands_list_the_choices(driftscale: Driftscale) -> None:
    ended = driftscale("parts", "clustererr")
    assert ended.code == 2
    assert_names(ended.error, "'clustererr'", "choices: adaptation, aggregator", "did you mean 'clusterer'?")
    ended = driftscale("profiles", "show", "toasters")
    assert ended.code == 2
    assert_names(ended.error, "'toasters'", "choices: datacenter, iot")


# -- device tables ------------------------------------------------------------------------------------------

HEADER, *ROWS = DEVICES.splitlines()


def with_row(index: int, row: str) -> str:
    return "\n".join([HEADER, *ROWS[:index], row, *ROWS[index + 1 :]]) + "\n"


BAD_DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "a missing column": (
        DEVICES.replace("upload_bytes_per_s", "latency_ms"),
        ("phones.csv", "'latency_ms'"),
    ),
    "a column less": (
        "device_id,seconds_per_sample,download_bytes_per_s\na,1,1\n",
        ("phones.csv", "column 'upload_bytes_per_s' is missing"),
    ),
    "no ids": ("seconds_per_sample\n1\n", ("phones.csv", "missing")),
    "a negative value": (
        with_row(1, "b,-0.02,200000,80000,0.01"),
        ("phones.csv, row 2", "seconds_per_sample = -0.02", "must be greater than 0"),
    ),
    "a negative latency": (
        with_row(2, "c,0.05,90000,40000,-1"),
        ("phones.csv, row 3", "latency_s = -1", "must be at least 0"),
    ),
    "a zero speed": (
        with_row(0, "a,0.01,0,50000,0"),
        ("phones.csv, row 1", "download_bytes_per_s = 0", "greater"),
    ),
    "NaN": (with_row(3, "d,nan,300000,30000,0.05"), ("phones.csv, row 4", "seconds_per_sample", "NaN")),
    "a missing value": (
        with_row(3, "d,,300000,30000,0.05"),
        ("phones.csv, row 4", "seconds_per_sample", "missing"),
    ),
    "infinity": (
        with_row(3, "d,inf,300000,30000,0.05"),
        ("phones.csv, row 4", "seconds_per_sample = inf", "finite"),
    ),
    "words": (
        with_row(3, "d,fast,300000,30000,0.05"),
        ("phones.csv", "seconds_per_sample", "must hold numbers"),
    ),
    "a duplicated id": (with_row(4, "b,0.1,1,1,0"), ("phones.csv, row 5", "device_id 'b' is also in row 2")),
    "an empty file": ("", ("phones.csv", "is empty")),
    "no rows": (HEADER + "\n", ("phones.csv", "has no rows")),
    "ragged rows": (
        DEVICES + "x,1\n",
        ("phones.csv", "row 6", "cannot be read as CSV", "Expected 5 columns"),
    ),
}


@pytest.mark.parametrize("case", BAD_DEVICES)
def test_a_bad_device_table_ends_with_2_and_names_file_row_and_rule(
    driftscale: Driftscale, tmp_path: Path, case: str
) -> None:
    text, parts = BAD_DEVICES[case]
    (tmp_path / "phones.csv").write_text(text)
    config = write_small(tmp_path, devices={"profile": "phones.csv"})
    for command in (("run", config), ("profiles", "check", "phones.csv")):
        ended = driftscale(*command)
        assert ended.code == 2
        assert_names(ended.error, *parts)


def test_a_device_file_of_another_kind_or_damaged_ends_with_2(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "phones.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "phones.toml").write_text("[[class]]\nname = 'x'\n")
    for profile, parts in (
        ("phones.parquet", ("phones.parquet", "cannot be read as parquet")),
        ("phones.toml", ("phones.toml", "reference_model", "required")),
        ("gone.csv", ("gone.csv", "not found")),
        ("phones.xlsx", ("'phones.xlsx'", ".csv, .parquet, .toml")),
    ):
        ended = driftscale("check", write_small(tmp_path, devices={"profile": profile}))
        assert ended.code == 2
        assert_names(ended.error, *parts)


# -- availability -------------------------------------------------------------------------------------------

BAD_WINDOWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "an overlap": (WINDOWS + "b,50,55,60\n", ("online.csv, row 7", "[50, 55)", "overlaps [30, 60)", "row 3")),
    "an end before the start": (WINDOWS + "f,20,10,60\n", ("online.csv, row 7", "20", "10")),
    "a negative start": (WINDOWS + "f,-5,10,60\n", ("online.csv, row 7", "-5")),
    "a missing column": ("device_id,start_s\na,1\n", ("online.csv", "column 'end_s' is missing")),
    "NaN": (WINDOWS + "f,nan,10,60\n", ("online.csv, row 7", "start_s", "NaN")),
    "two periods of one device": (
        WINDOWS + "f,1,2,60\nf,3,4,50\n",
        ("online.csv, row 8", "period_s = 50", "row 7"),
    ),
    "a period of 0": (WINDOWS + "f,1,2,0\n", ("online.csv, row 7", "period_s = 0", "greater than 0")),
    "an unknown column": (
        "device_id,start_s,end_s,perid_s\na,0,1,2\n",
        ("online.csv", "'perid_s'", "period_s"),
    ),
    "an empty file": ("", ("online.csv", "is empty")),
    "nothing but empty intervals": ("device_id,start_s,end_s\na,5,5\n", ("online.csv",)),
}


@pytest.mark.parametrize("case", BAD_WINDOWS)
def test_a_bad_availability_ends_with_2_and_names_file_row_and_rule(
    driftscale: Driftscale, tmp_path: Path, case: str
) -> None:
    text, parts = BAD_WINDOWS[case]
    (tmp_path / "online.csv").write_text(text)
    availability: Any = "online.csv"
    if case.startswith("nothing"):
        availability = {"kind": "intervals", "windows": "online.csv", "drop_never_online": True}
    ended = driftscale("run", write_small(tmp_path, devices={"availability": availability}))
    assert ended.code == 2
    assert_names(ended.error, *parts)


def test_a_fleet_that_is_never_online_again_ends_with_3_and_the_reason_is_stored(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    (tmp_path / "online.csv").write_text(NEVER_AGAIN)
    ended = driftscale("run", write_small(tmp_path, devices={"availability": "online.csv"}))
    assert ended.code == 3
    [error] = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert error == ended.err.splitlines()[-1]
    assert_names(error, "2 of 2 runs failed (global, seed 0; fielding, seed 0)", "runs/small")
    [first] = [line for line in ended.err.splitlines() if "global, seed 0: FAILED" in line]
    assert_names(first, "of 12 clients are online", "round.min_online = 1")
    assert "Traceback" not in ended.err
    directory = RunDirectory(Path("runs/small"))
    assert "of 12 clients are online" in str(directory.failure("global", 0))
    assert "of 12 clients are online" in str(directory.failure("fielding", 0))


def test_a_wait_longer_than_allowed_ends_with_3(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "online.csv").write_text("device_id,start_s,end_s,period_s\na,0,0.1,8640000\n")
    ended = driftscale("run", write_small(tmp_path, devices={"availability": "online.csv"}))
    assert ended.code == 3
    [first] = [line for line in ended.err.splitlines() if "global, seed 0: FAILED" in line]
    assert_names(first, "round 1", "30 virtual days")


# -- traces -------------------------------------------------------------------------------------------------


def test_a_label_trace_with_more_labels_than_classes_ends_with_2(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write_idx_folder(tmp_path / "images", labels=3)
    write_label_trace(tmp_path / "labels.csv", kinds="wxyz")
    config = write_replay(tmp_path)
    ended = driftscale("run", config)
    assert ended.code == 2
    assert_names(ended.error, "labels.csv", "4 labels", "'kind'", "3 classes", "most_common")
    assert driftscale("run", config, "--set", "trace.most_common=3").code == 0


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (lambda text: text.replace("place,", "nation,", 1), ("labels.csv", "'place'", "missing")),
        (lambda text: text.replace(",9", ",-9", 1), ("labels.csv, row ", "seen = -9", "at least 0")),
        (lambda text: text.replace(",9", ",", 1), ("labels.csv, row ", "seen", "missing")),
        (lambda text: text.replace("2021-01-01", "soon"), ("labels.csv", "'day'")),
        (lambda text: "", ("labels.csv", "is empty")),
        (lambda text: text.splitlines()[0] + "\n", ("labels.csv", "has no rows")),
    ],
    ids=["missing column", "negative", "missing value", "no date", "empty", "no rows"],
)
def test_a_bad_label_trace_ends_with_2_and_names_file_and_column(
    driftscale: Driftscale, tmp_path: Path, spoil: Callable[[str], str], parts: tuple[str, ...]
) -> None:
    write_idx_folder(tmp_path / "images")
    table = write_label_trace(tmp_path / "labels.csv")
    table.write_text(spoil(table.read_text()))
    ended = driftscale("run", write_replay(tmp_path))
    assert ended.code == 2
    assert_names(ended.error, *parts)


def test_clients_without_data_end_with_2(driftscale: Driftscale, tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "images")
    write_label_trace(tmp_path / "labels.csv")
    config = write_replay(tmp_path)
    ended = driftscale("run", config, "--set", "trace.min_windows=5")
    assert ended.code == 2
    assert_names(ended.error, "labels.csv", "min_windows = 5", "4", "without data")
    ended = driftscale("run", config, "--set", "round.rounds=400")
    assert ended.code == 2
    assert_names(ended.error, "labels.csv", "round.rounds = 400", "without data")


def test_a_label_trace_as_damaged_parquet_ends_with_2(driftscale: Driftscale, tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "images")
    pq.write_table(pa.table({"place": ["a"] * 50}), tmp_path / "labels.parquet")
    whole = (tmp_path / "labels.parquet").read_bytes()
    (tmp_path / "labels.parquet").write_bytes(whole[: len(whole) // 2])
    ended = driftscale("check", write_replay(tmp_path, trace={"table": "labels.parquet"}))
    assert ended.code == 2
    assert_names(ended.error, "labels.parquet", "cannot be read as parquet")


@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_idx_file_ends_with_2_and_names_it(
    driftscale: Driftscale, tmp_path: Path, packed: bool
) -> None:
    write_idx_folder(tmp_path / "letters")
    path = tmp_path / "letters" / "train-images-idx3-ubyte"
    content = path.read_bytes()
    if packed:
        path.unlink()
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(content)[:-20])
    else:
        path.write_bytes(content[:-20])
    ended = driftscale("run", write_small(tmp_path, trace={"source": "letters"}))
    assert ended.code == 2
    assert_names(ended.error, path.name, "truncated")


def test_an_idx_folder_that_lacks_a_file_ends_with_2(driftscale: Driftscale, tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "letters")
    (tmp_path / "letters" / "t10k-labels-idx1-ubyte").unlink()
    ended = driftscale("run", write_small(tmp_path, trace={"source": "letters"}))
    assert ended.code == 2
    assert_names(ended.error, "letters", "t10k-labels-idx1-ubyte")


def test_missing_data_is_named_with_the_places_searched(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    ended = driftscale("run", write_replay(tmp_path), "--data", "data")
    assert ended.code == 2
    assert_names(ended.error, "labels.csv: not found; looked for labels.csv, data/labels.csv")


# -- run directories ----------------------------------------------------------------------------------------


def test_a_run_directory_that_cannot_be_read_ends_with_2(driftscale: Driftscale, tmp_path: Path) -> None:
    assert_names(driftscale("report", "gone").error, "gone", "no such run directory")
    assert_names(driftscale("report", ".").error, "not a run directory", "experiment.toml")

    config = write_small(tmp_path)
    assert driftscale("run", config).code == 0
    run = tmp_path / "runs" / "small"
    log, timing = run / "global/seed-0/log.jsonl", run / "global/seed-0/timing.json"
    experiment = run / "experiment.toml"
    for path, content, rule in (
        (log, "", "log.jsonl"),
        (log, "{}\n", "log.jsonl: a run log starts with"),
        (log, log.read_text()[:-30], "log.jsonl, row 5: damaged"),
        (log, log.read_text().splitlines()[0] + "\n", "arm 'global', seed 0"),
        (timing, "{", "timing.json: cannot be read as JSON"),
        (experiment, "name = ", "experiment.toml: cannot be read as TOML"),
        (experiment, "name = 'x'", "experiment.toml: key 'seeds' is missing"),
        (
            experiment,
            "name = 'x'\nseeds = ['a']\narm = []\n[report]\n",
            "seeds must be a list of whole numbers",
        ),
        (experiment, "name = 'x'\nseeds = [0]\narm = [3]\n[report]\n", "arm must be a list of tables"),
        (
            experiment,
            "name = 'x'\nseeds = [0]\narm = [{name = 'a'}]\n[report]\n",
            "report must be a table that",
        ),
    ):
        whole = path.read_text()
        path.write_text(content)
        ended = driftscale("report", run)
        assert ended.code == 2
        assert rule in ended.error
        path.write_text(whole)
    assert driftscale("report", run).code == 0


def test_finished_runs_stay_when_the_next_command_is_wrong(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(tmp_path)
    assert driftscale("run", config).code == 0
    run = tmp_path / "runs" / "small"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for arguments in (
        ["--set", "round.rounds=5"],
        ["--set", "round.participants=99"],
        ["--set", "round.participants=99", "--fresh"],
        ["--arms", "nobody", "--fresh"],
        ["--seeds", "x", "--fresh"],
    ):
        assert driftscale("run", config, *arguments).code == 2
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_failing_arm_ends_with_3_and_the_others_are_summarised(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    config = write_small(tmp_path, arm=[{"name": "global"}, bad])
    ended = driftscale("run", config)
    assert ended.code == 3
    assert [line for line in ended.err.splitlines() if line.startswith("error: ")] == ended.err.splitlines()[
        -1:
    ]
    assert "error: 1 of 2 runs failed (bad, seed 0); finished runs are kept in runs/small" in ended.err
    assert ended.err.count("training diverged") == 1
    assert "bad, seed 0: FAILED: training diverged: no update was absorbed in any of 4 rounds" in ended.err
    assert "small: up to 3.96 s of virtual time\n" in ended.out
    assert "global ends at " in ended.out
    assert "small: 1 finished, 1 failed" in ended.out
    assert "small: 1 finished, 1 failed" in driftscale("report", "runs/small").out
    run = tmp_path / "runs" / "small"
    assert (run / "summary.json").exists()
    assert (run / "report.html").exists()
    assert (run / "bad/seed-0/FAILED").read_text().startswith("training diverged")


def test_without_its_reference_arm_a_run_succeeds_and_states_why_there_is_no_report(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    config = write_small(tmp_path)
    ended = driftscale("run", config, "--arms", "fielding")
    assert ended.code == 0
    assert ended.err.splitlines()[-1] == (
        "no report: runs/small has no finished run of the reference arm 'global'"
    )
    warning = "no report before the reference arm 'global' has a finished run: add it to the arms"
    assert ended.err.splitlines()[0] == warning  # before anything is trained
    assert warning not in driftscale("run", config).err
    assert (tmp_path / "runs/small/summary.json").exists()
    assert warning not in driftscale("run", config, "--arms", "fielding").err
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    ended = driftscale("run", write_small(tmp_path, name="other", arm=[bad, {"name": "good"}]))
    assert ended.code == 3
    assert "error: 1 of 2 runs failed (bad, seed 0)" in ended.err.splitlines()[-1]


def test_a_run_directory_in_which_all_failed_says_so(driftscale: Driftscale, tmp_path: Path) -> None:
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    assert driftscale("run", write_small(tmp_path, arm=[bad])).code == 3
    ended = driftscale("report", "runs/small")
    assert ended.code == 2
    assert ended.error == "runs/small: no run is finished: 1 failed"


def test_a_folder_that_cannot_be_written_is_one_line(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = driftscale("run", write_small(tmp_path), "--out", "file/run")
    assert ended.code == 2
    assert "file/run" in ended.error


def test_a_file_that_changed_half_way_ends_with_2_and_the_summary_of_finished_runs(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    (tmp_path / "devices.csv").write_text(DEVICES)
    config = write_small(tmp_path, devices={"profile": "devices.csv"})
    assert driftscale("run", config).code == 0
    (tmp_path / "devices.csv").write_text(DEVICES.replace("a,0.01,", "a,0.03,"))
    ended = driftscale("run", config, "--seeds", "0..1")
    assert ended.code == 2
    *_, last = ended.err.splitlines()
    assert last.startswith("error: ")
    assert "devices.csv: has changed since the runs in this directory were begun with it" in last
    assert "small: up to " in ended.out
    assert "fielding has a mean accuracy of " in ended.out


# -- invalid paths -----------------------------------------------------------------------------------------

PATH_ARGUMENTS = [
    (["run", "PATH"], "CONFIG"),
    (["run", "small.toml", "--out", "PATH"], "--out"),
    (["run", "small.toml", "--data", "PATH"], "--data"),
    (["check", "PATH"], "CONFIG"),
    (["report", "PATH"], "DIR"),
    (["profiles", "check", "PATH"], "PATH"),
    (["profiles", "measure", "PATH"], "CONFIG"),
    (["profiles", "script", "PATH"], "CONFIG"),
    (["profiles", "add", "PATH", "row.csv", "--id", "x"], "FLEET"),
    (["profiles", "add", "fleet.csv", "PATH", "--id", "x"], "ROW"),
    (["traces", "inspect", "PATH"], "DIR|CONFIG"),
    (["traces", "inspect", "x.toml", "--html", "PATH"], "--html"),
    (["traces", "check", "PATH"], "DIR"),
    (["profiles", "import-fedscale", "PATH", "--out", "x.parquet"], "FILE"),
    (["profiles", "import-fedscale", "x", "--out", "PATH"], "--out"),
]


@pytest.mark.parametrize(("arguments", "what"), PATH_ARGUMENTS)
def test_an_empty_path_is_not_taken_for_the_current_folder(
    arguments: list[str], what: str, driftscale: Driftscale, tmp_path: Path
) -> None:
    write_small(tmp_path)
    ended = driftscale(*["" if item == "PATH" else item for item in arguments])
    assert ended.code == 2
    assert ended.error == f"{what}: is empty; a path is needed (. is the current folder)"
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize("letters", [256, 5000])
@pytest.mark.parametrize(("arguments", "what"), PATH_ARGUMENTS)
def test_a_name_that_no_file_can_have_is_bad_input(
    arguments: list[str], what: str, letters: int, driftscale: Driftscale, tmp_path: Path
) -> None:
    write_small(tmp_path)
    name = "a" * letters if letters < 1000 else "a/" * (letters // 2)
    ended = driftscale(*[name if item == "PATH" else item for item in arguments])
    assert ended.code == 2
    assert ended.error.startswith(f"{what} {name[:200]}")
    assert "File name too long" in ended.error or letters == 5000
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_profile_whose_name_no_file_can_have_is_bad_input(driftscale: Driftscale, tmp_path: Path) -> None:
    path = "a" * 256 + ".csv"
    shown = driftscale("profiles", "show", path)
    assert (shown.code, shown.error) == (2, f"{path}: no such file")
    config = write_small(tmp_path, devices={"profile": path})
    assert driftscale("check", config).code == 2
