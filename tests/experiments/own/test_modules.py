"""Modules of one's own, named in a configuration: those that users have run, the broken are one line."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from emulator import own_parts
from tests.executor.modules import broken, foreign, patterns
from tests.executor.modules.zoo import LABELS, ZOO, Kept
from tests.experiments.cli.conftest import Driftscale, driftscale

__all__ = ["driftscale"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_modules")]


def write(folder: Path, model: dict[str, Any], kept: Kept | None = None, **training: Any) -> None:
    for module in (broken, foreign, patterns):
        shutil.copy(str(module.__file__), folder)
    trace: dict[str, Any] = {"source": "patterns:Patterns", "rounds_per_step": 4, "retain_rounds": 8}
    trace |= {"samples_per_step": 40} | ({"shape": kept.shape, "vocabulary": kept.vocabulary} if kept else {})
    table = {
        "name": "mine",
        "seeds": [0],
        "trace": trace,
        "devices": {"profile": "smartphones", "availability": "always"},
        "training": {"model": model, "local_steps": 10, "batch_size": 10, "learning_rate": 0.1, **training},
        "round": {"rounds": 10, "participants": 6},
        "arm": [{"name": "mine"}],
    }
    (folder / "mine.toml").write_text(tomli_w.dumps(table))


def log_of(out: Path) -> bytes:
    return (out / "mine" / "seed-0" / "log.jsonl").read_bytes()


@pytest.mark.parametrize("kept", ZOO, ids=lambda kept: kept.name)
def test_a_module_that_a_user_has_is_checked_and_learns_and_its_log_is_the_same_by_two_threads(
    driftscale: Driftscale, tmp_path: Path, kept: Kept
) -> None:
    slow = {"learning_rate": 0.5, "local_steps": 20} if "LSTM" in kept.name else {}
    write(tmp_path, {"kind": f"foreign:{kept.name}", **kept.arguments}, kept, **slow)
    checked = driftscale("check", "mine.toml", "--format", "json")
    assert checked.code == 0, checked.err
    assert json.loads(checked.out)["training strategy"].startswith(("loop: ", "stacked: "))
    for threads in (1, 2):
        how = ("--set", f"executor.threads={threads}")
        ended = driftscale("run", "mine.toml", "--out", f"out-{threads}", *how)
        assert ended.code == 0, ended.err
    assert log_of(tmp_path / "out-1") == log_of(tmp_path / "out-2")
    last = json.loads(log_of(tmp_path / "out-1").splitlines()[-1])
    assert last["accuracy"] > 2 / LABELS


@pytest.mark.parametrize(
    "name", [name for name in vars(broken) if name[0].isupper() and name not in ("F", "Base")]
)
def test_a_module_that_cannot_be_trained_is_one_line_of_check(
    driftscale: Driftscale, tmp_path: Path, name: str
) -> None:
    write(tmp_path, {"kind": f"broken:{name}"})
    assert driftscale("check", "mine.toml").error.startswith(
        f"mine.toml: arm 'mine': model 'broken:{name}': "
    )


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ({"kind": "foreign:BNMLP"}, "lacks the argument 'd_in'; its arguments: d_in, n_classes, hidden;"),
        ({"kind": "foreign:BNMLP", "n_class": 4}, "unknown argument 'n_class'; its arguments: d_in,"),
        ({"kind": "broken:not_a_module"}, "model 'broken:not_a_module': build returned [4]: must be Module"),
        ({"kind": "foreign:math"}, "is a module; must be the class of a torch module, or a function"),
        ({"kind": "foreign:Net"}, "has no 'Net'"),
    ],
)
def test_what_is_no_module_or_gets_other_arguments_is_one_line(
    driftscale: Driftscale, tmp_path: Path, model: dict[str, Any], line: str
) -> None:
    write(tmp_path, model)
    assert line in driftscale("check", "mine.toml").error


def test_results_of_a_module_that_has_changed_are_not_taken_for_those_of_the_present_one(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"kind": "foreign:BNMLP", "d_in": 64, "n_classes": LABELS})
    assert driftscale("run", "mine.toml", "--out", "out").code == 0
    source = (tmp_path / "foreign.py").read_text()
    before, layer = source.split("class BNMLP", 1)
    (tmp_path / "foreign.py").write_text(f"{before}class BNMLP{layer.replace('F.relu', 'F.gelu', 1)}")
    monkeypatch.delitem(sys.modules, "foreign")
    own_parts._imported.clear()
    refused = driftscale("run", "mine.toml", "--out", "out").error
    assert "foreign.py: has changed since the runs in" in refused
