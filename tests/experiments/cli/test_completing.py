"""What a shell is offered, by the protocol that its script speaks (`driftscale --show-completion`)."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.cli.completing import dotted_keys
from experiments.config import parse_experiment
from experiments.extending import value_at
from experiments.reading import read_table, set_key
from experiments.shipped import shipped_files
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_small

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(driftscale: Driftscale, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """What bash is offered for the last word of a line."""

    def offer(line: str) -> list[str]:
        monkeypatch.setenv("_DRIFTSCALE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        ended = driftscale()
        assert (ended.code, ended.err) == (0, "")
        return ended.out.split()

    return offer


def test_the_script_that_a_shell_needs_is_printed(
    driftscale: Driftscale, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is looked for among the parents of the process, where the tests may have none.
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    ended = driftscale("--show-completion")
    assert "_DRIFTSCALE_COMPLETE=complete_bash" in ended.out


def test_a_configuration_is_a_shipped_name_or_a_file_here(offered: Offered, tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / "fields").mkdir()
    (tmp_path / "fields" / "own.toml").touch()
    (tmp_path / "figures.csv").touch()
    assert offered("driftscale run digits-") == [
        f"digits-{name}" for name in ("async", "detectors", "online", "operating-points")
    ]
    assert offered("driftscale check sm") == ["small.toml"]
    assert offered("driftscale run fie")[-2:] == ["fielding", "fields/"]
    assert offered("driftscale traces inspect fields/") == ["fields/own.toml"]
    assert offered("driftscale run fig") == []
    assert offered("driftscale new own.toml --like first") == ["first-fleet"]
    assert offered("driftscale configs fieldi")[-1] == "fielding"


def test_arms_are_those_of_the_configuration_one_after_another(offered: Offered) -> None:
    write_small(Path())
    assert offered("driftscale run small.toml --arms ") == ["global", "fielding"]
    assert offered("driftscale run small.toml --arms global,") == ["global,fielding"]
    assert offered("driftscale run digits --seeds 0 --arms fi") == ["fielding", "fielding-last-global"]
    assert offered("driftscale run absent.toml --arms ") == []
    Path("mine.toml").write_text('extends = "small.toml"\n[[arm]]\nname = "mine"\n')
    assert offered("driftscale run mine.toml --arms ") == ["global", "fielding", "mine"]


def test_keys_are_those_of_the_configuration_its_arms_and_their_parts(offered: Offered) -> None:
    write_small(Path())
    assert offered("driftscale run small.toml --set trace.samp") == ["trace.samples_per_step"]
    assert "arm.fielding.clusterer.max_clusters" in offered("driftscale check small.toml --set arm.fie")
    assert "arm.global.clusterer.kind" in offered("driftscale run small.toml --set arm.global.clu")
    assert offered("driftscale run small.toml --sweep devices.p") == ["devices.profile"]
    assert offered("driftscale run small.toml --sweep nam") == []
    assert "arm.global.name" not in offered("driftscale run small.toml --sweep arm.global.")
    assert offered("driftscale run small.toml --set ext") == []  # only a file may have it


def test_without_a_valid_configuration_keys_are_those_of_every_one(offered: Offered) -> None:
    Path("broken.toml").write_text("round = 3\n")
    for config in ("broken.toml", "absent.toml", ""):
        keys = offered(f"driftscale run {config}{' ' if config else ''}--set ")
        assert "round.participants" in keys
        assert not any(key.startswith(("arm.", "trace.c")) for key in keys)


@pytest.mark.parametrize("name", ["digits", "fielding/figure-02", "feddrift/sine-2"])
def test_every_key_that_is_offered_can_be_set(name: str) -> None:
    table = read_table(shipped_files()[name])
    resolved = parse_experiment(table, name).resolved()
    changed = copy.deepcopy(table)
    keys = [key for key in dotted_keys(table) if value_at(resolved, key.split(".")) is not None]
    assert len(keys) > 300
    for key in keys:
        set_key(changed, key, value_at(resolved, key.split(".")), key)
    assert parse_experiment(changed, name).resolved() == resolved


def test_no_module_of_a_part_of_ones_own_is_imported(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, own_modules: None
) -> None:
    Path("my_parts.py").write_text("raise SystemExit('imported')")
    arms = [{"name": "a", "selector": "my_parts:Mine", "clusterer": {"kind": "my_parts:Theirs"}}]
    write_small(Path(), arm=arms, trace={"source": "my_parts:Source"})
    assert "arm.a.selector" in offered("driftscale run small.toml --set arm.a.sel")
    assert "my_parts" not in sys.modules


def test_kinds_of_parts_are_offered(offered: Offered) -> None:
    assert offered("driftscale parts cl") == ["clusterer"]


def test_parts_of_the_kind_that_was_given_are_offered(offered: Offered) -> None:
    assert offered("driftscale parts selector po") == ["power_of_choice"]


def test_directories_are_those_with_runs(offered: Offered) -> None:
    for folder in ("runs/a", "runs/sweep/cell", "other/one", "docs/pages"):
        Path(folder).mkdir(parents=True)
        if folder != "docs/pages":
            (Path(folder) / "experiment.toml").touch()
    assert offered("driftscale report ") == ["other/", "runs/", "runs/a/", "runs/sweep/"]
    assert offered("driftscale compare runs/a") == ["runs/a/"]
    assert offered("driftscale view runs/sweep/") == ["runs/sweep/cell/"]


def test_nothing_is_offered_and_nothing_printed_where_something_fails(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("experiments.cli.completing._that_begin", fail)
    for line in ("run ", "run digits --set ", "run digits --arms ", "parts ", "configs "):
        assert offered(f"driftscale {line}") == []
    assert offered("driftscale run ~nobody/") == []
    assert offered("driftscale run '' --arms ") == []
