from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w

from emulator.errors import UnknownNameError
from experiments.contracts import check_part
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import small_table, write_small
from tests.processes import forked
from tests.traces.building.layouts import RED, cifar10, draw, fmow_raw, idx, mapping, waymo
from traces.building import BUILDERS

ROOT = Path(__file__).parents[4]
KINDS = ["cifar", "cityscapes", "fedscale", "fmow", "folder", "idx", "openimages", "text", "waymo"]


# -- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_the_contract_of_parts(kind: str) -> None:
    builder = BUILDERS.find(kind)
    check_part(builder, builder.Settings())
    assert builder.needs


def test_help_lists_the_kinds_and_what_each_needs(driftscale: Driftscale) -> None:
    listed = driftscale("traces", "build", "--help")
    assert listed.code == 0
    for kind in KINDS:
        assert f"\n{kind}: " in listed.out
        assert f"needs {BUILDERS.find(kind).needs}" in listed.out
    assert driftscale("traces", "build").out == listed.out
    one = driftscale("traces", "build", "cityscapes", "--help").out
    assert "--frames-per-client" in one
    assert "\nwaymo: " not in one


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["fmov"], "unknown kind of data set 'fmov'"),
        (["--size", "3", "fmow"], "--size: KIND comes first; it is one of cifar, cityscapes"),
        (["fmow", "--out", "o"], "--root is missing; fmow needs fMoW-rgb"),
        (["fmow", "--root", "."], "--out is missing; fmow needs fMoW-rgb"),
        (
            ["idx", "--exact"],
            "--exact: is no option of idx; it has --root, --out, --workers, --fresh, --seed, --most-cells, "
            "--limit",
        ),
        (["idx", "more"], "more: is no option of idx"),
        (["fmow", "--size"], "--size: needs a value"),
        (["fmow", "--size", "--grey"], "--size: needs a value"),
        (["fmow", "--size", "1", "--size=2"], "--size: is given twice"),
        (["fmow", "--size", "0"], "--size: 0: Input should be greater than or equal to 1"),
        (["fmow", "--size", "many"], "--size: many: Input should be a valid integer"),
        (["fmow", "--since", "lately"], "--since: lately: "),
        (["idx", "--partition", "idd"], "--partition: idd: unknown partition 'idd'; choices: column"),
        (["idx", "--partition", '{kind="iid",x=1}'], "unknown key 'x'"),
        (["fmow", "--root", ".", "--out", "o"], "--root .: has neither fmow_v1.1/rgb_metadata.csv nor"),
        (["fmow", "--root", "gone", "--out", "o"], "--root gone: no such folder"),
    ],
)
def test_an_invalid_option_is_one_line(driftscale: Driftscale, options: list[str], problem: str) -> None:
    ended = driftscale("traces", "build", *options)
    assert ended.code == 2
    assert problem in ended.error


def test_options_are_read_by_their_types(driftscale: Driftscale, tmp_path: Path) -> None:
    root = fmow_raw(tmp_path / "f", [("zoo", "1A", "2003-01-01T00:00:00Z", RED)] * 5)
    options = ["--size=4", "--grey", "--since", "2003-01-01", "--test-share", "0.4", "--workers", "2"]
    ended = driftscale("traces", "build", "fmow", "--root", root, "--out", "o", *options, "--format", "json")
    facts = json.loads(ended.out)
    assert (facts["clients"], facts["training samples"], facts["test samples"]) == (1, 3, 2)
    assert (facts["shape"], facts["first"], facts["when"]) == ([4, 4], "2003-01-01T00:00:00", "time")
    assert facts["play"] == {"step_width": 1, "rounds_per_step": 2, "retain_rounds": 100}
    idx(tmp_path / "i")
    dirichlet = ["--partition", '{kind = "dirichlet", alpha = 100}', "--clients", "3"]
    assert driftscale("traces", "build", "idx", "--root", "i", "--out", "p", *dirichlet).code == 0


# -- output -------------------------------------------------------------------------------------------------


def test_a_build_ends_with_the_lines_of_a_configuration_that_plays_it(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    cifar10(tmp_path / "c")
    partition = ["--partition", "iid", "--clients", "2"]
    built = driftscale("traces", "build", "cifar", "--root", "c", "--out", "traces/c10", *partition)
    assert built.code == 0
    assert built.out.startswith(
        "traces/c10: 2 clients, 20 training and 4 test samples of 10 classes, shape (3, 32, 32)\n"
        "step: 0 to 0; 0 left out; "
    )
    rest = """
        [training]
        model = "linear"
        local_steps = 1
        batch_size = 4
        learning_rate = 0.1
        [round]
        rounds = 30
        participants = 2
        [[arm]]
        name = "global"
        """
    lines = built.out[built.out.index("[trace]") :]
    (tmp_path / "c.toml").write_text(f'name = "c"\nseeds = [0]\n{lines}\n{rest}')
    assert driftscale("check", "c.toml").code == 0
    ended = driftscale("run", "c.toml", "--format", "json")
    assert ended.code == 0, ended.err


def test_what_is_left_out_is_said(driftscale: Driftscale, tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("a", "x", 0)] * 10)
    draw(root / "train" / "0004.png", RED).write_bytes(b"no image")
    command = ["traces", "build", "fedscale", "--root", "d", "--out", "o", "--size", "4"]
    refused = driftscale(*command)
    assert refused.code == 2
    assert refused.error.startswith(
        "d/train/0004.png (client_data_mapping/train.csv, row 5): is not an image"
    )
    built = driftscale(*command, "--skip-bad", "1")
    assert "left out: d/train/0004.png" in built.err
    assert "1 left out" in built.out
    again = driftscale(*command)
    assert (again.code, again.error) == (2, "--out o: exists already; delete it, or take another name")


# -- signals ------------------------------------------------------------------------------------------------


def test_an_interrupted_build_ends_in_one_line_and_the_same_command_resumes_it(
    tmp_path: Path,
) -> None:
    root = mapping(tmp_path / "d", [(f"c{k % 3}", "x", 0) for k in range(3000)])
    command = [sys.executable, "-m", "experiments.cli", "traces", "build", "fedscale"]
    command += ["--root", str(root), "--size", "8", "--workers", "1", "--out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with forked.Forked(
        [*command, str(tmp_path / "out")], env=environment, stderr=subprocess.PIPE, text=True
    ) as build:
        features = tmp_path / "out.building" / "features.npy"
        while not features.exists() and build.poll() is None:
            time.sleep(0.001)
        time.sleep(0.05)
        build.send_signal(signal.SIGINT)
        _, error = build.communicate()
    assert build.returncode == 130, error
    assert error == "interrupted; finished work is kept; give the same command again\n"
    assert not (tmp_path / "out").exists()
    progress = tmp_path / "out.building" / "progress.json"
    if progress.exists():  # not if it came before the first images were done
        assert json.loads(progress.read_text())["done"] < 3000
    for out in ("out", "whole"):
        forked.run([*command, str(tmp_path / out)], env=environment, check=True, capture_output=True)
    for name in ("arrivals.parquet", "features.npy", "trace.toml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


# -- absent traces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fmow", "openimages", "cityscapes", "waymo"])
def test_a_paper_configuration_says_what_to_build_if_its_trace_is_absent(
    driftscale: Driftscale, name: str
) -> None:
    path = ROOT / "experiments" / "configs" / "fielding" / f"{name}.toml"
    for command in ("check", "run"):
        ended = driftscale(command, path)
        assert ended.code == 2
        assert ended.error.startswith(f"fielding/{name} (shipped): traces/{name}: not found")
        more = " --most-cells 1_000_000_000" if name == "waymo" else ""
        assert ended.error.endswith(
            f"build it: driftscale traces build {name} --root DIR --out traces/{name}{more}"
        )


@pytest.mark.parametrize("name", ["openimages", "waymo"])
def test_a_trace_that_is_built_by_default_lasts_for_the_rounds_of_its_configuration(
    driftscale: Driftscale, tmp_path: Path, name: str
) -> None:
    if name == "waymo":
        waymo(tmp_path / "d", frames=20)
    else:
        mapping(tmp_path / "d", [(f"c{k % 3}", f"l{k // 3 % 10}", k // 3 % 10) for k in range(150)])
    built = driftscale("traces", "build", name, "--root", "d", "--out", f"traces/{name}", "--size", "8")
    assert built.code == 0, built.err
    path = ROOT / "experiments" / "configs" / "fielding" / f"{name}.toml"
    few = ["--set", "round.participants=1", "--set", "training.model=linear"]
    assert driftscale("check", path, *few).code == 0


def test_in_a_folder_configurations_without_their_traces_are_left_out_by_name(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    (tmp_path / "both").mkdir()
    write_small(tmp_path / "both", name="a").rename(tmp_path / "both" / "a.toml")
    trace = {"source": "file", "folder": "traces/x", "build": "make x"}
    (tmp_path / "both" / "b.toml").write_text(tomli_w.dumps({**small_table(name="b"), "trace": trace}))
    checked = driftscale("check", "both", "--format", "json")
    assert checked.code == 0
    assert [check["name"] for check in json.loads(checked.out)] == ["a"]
    assert checked.err.startswith("both/b.toml: left out: traces/x: not found; ")
    assert checked.err.endswith("; build it: make x\n")
    (tmp_path / "both" / "a.toml").unlink()
    for command in ("check", "run"):
        assert driftscale(command, "both").error.startswith("both/b.toml: left out: traces/x: not found")


def test_a_trace_that_lies_behind_a_link_is_refused_and_not_left_out_as_absent(
    driftscale: Driftscale, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "x").symlink_to(elsewhere)
    write_small(tmp_path / "both", name="a").rename(tmp_path / "both" / "a.toml")
    trace = {"source": "file", "folder": "x", "build": "make x"}
    (tmp_path / "both" / "b.toml").write_text(tomli_w.dumps({**small_table(name="b"), "trace": trace}))
    for command in ("check", "run"):
        error = driftscale(command, "both").error
        assert f"x: leads to {elsewhere}; " in error
        assert "build it" not in error


def test_kinds_of_third_parties_are_looked_up_like_ours() -> None:
    assert BUILDERS.group == "driftscale.builder"
    with pytest.raises(UnknownNameError, match="choices: cifar, cityscapes"):
        BUILDERS.find("imagenet")


def test_targets_tokens_and_all_classes_are_options_of_a_table(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("who,kind,a,b,price,load\nx,2,1,0,1.5,3\ny,0,3,2,2.5,4\n")
    options = ("--client", "who", "--label", "kind", "--target", "price,load", "--num-classes", "3")
    tokens = ("--tokens.vocabulary", "4", "--tokens.padding=0", "--test-share", "0")
    out = driftscale("traces", "build", "table", "--root", "t.csv", "--out", "t", *options, *tokens).out
    assert "2 training and 0 test samples of 3 classes, shape (2,)" in out
    assert "features are ids of tokens, and stay as they are" in out
    assert "\nok: t: 2 remark(s)" in driftscale("traces", "check", "t").out
    assert "number 2, type float32, from 1.5, to 4.0" in driftscale("traces", "inspect", "t").out
