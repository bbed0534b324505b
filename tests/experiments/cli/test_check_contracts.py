"""`check --contracts`: the contract of each part of one's own, in a line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import tomli_w

import driftscale as api
from device_profiles import PROFILES
from experiments.part_kinds import part_kinds
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import SMALL, write_small

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_modules")]

SHIPPED = (
    "adaptation=tuned aggregator=fedavg availability=diurnal clusterer=static concepts=sine detector=changed "
    "drift=label_mix memory=held model=linear objective=labels pacing=sync partition=iid "
    "representation=label schedule=slowness selector=random solver=sgd source=synthetic trigger=pairwise"
)
"""A shipped part of each kind, whose subclass is a part of one's own that keeps the contract."""

RANDOM = """\
import numpy as np
from pydantic import Field
from coordinator.selectors.random import Random
from emulator.plugins import Settings
class MineSettings(Settings):
    skip: bool = Field(False, description="whether the first is left alone")
class Mine(Random):
    "Random."
    Settings = MineSettings
    def select(self, candidates, wanted, view):
        chosen = super().select(candidates, wanted, view)
        return chosen[int(self.settings.skip):]
"""


@pytest.mark.parametrize("kind", [*part_kinds(), PROFILES.kind])
def test_parts_of_all_kinds_are_checked_and_named(driftscale: Driftscale, tmp_path: Path, kind: str) -> None:
    what, name, example = kind, "mine", '[devices]\nprofile = "my_parts:mine"\n'
    module = "from device_profiles import load_profile\ndef mine():\n    return load_profile('iot')\n"
    if kind != PROFILES.kind:
        of_kind, names = part_kinds()[kind], dict(pair.split("=") for pair in SHIPPED.split())
        shipped = of_kind.registry.find(names[kind])
        what, name, example = of_kind.registry.kind, "Mine", of_kind.example_of("my_parts:Mine", {})
        module = (
            f"from {shipped.__module__} import {shipped.__name__} as Its\nclass Mine(Its):\n    'Mine.'\n"
        )
    (tmp_path / "my_parts.py").write_text(module)
    table = {**SMALL, "round": {"rounds": 4, "participants": 2}, **tomllib.loads(example)}
    table["devices"] = {**SMALL["devices"], **table["devices"]}
    table["trace"].setdefault("rounds_per_step", 2)
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(table))
    ended = driftscale("check", "mine.toml", "--contracts", "--format", "json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["contracts"].partition(" (")[0] == f"{what} my_parts:{name}"


@pytest.mark.parametrize(
    ("returned", "line"),
    [
        (
            "chosen[np.random.random() > 2:]",
            "breaks check_selector: the global generator of numpy was drawn ",
        ),
        ("1 / 0", "breaks check_selector: ZeroDivisionError: division by zero ("),
        ("chosen\n\nMine.__doc__ = ''", "breaks check_part: Mine has no docstring"),
    ],
)
def test_a_breach_is_one_line(driftscale: Driftscale, tmp_path: Path, returned: str, line: str) -> None:
    (tmp_path / "my_parts.py").write_text(RANDOM.replace("chosen[int(self.settings.skip):]", returned))
    config = write_small(tmp_path, arm=[{"name": "mine", "selector": "my_parts:Mine"}])
    ended = driftscale("check", config, "--contracts", "--no-trial")
    assert ended.code == 2
    assert ended.error.startswith(f"{config}: selector my_parts:Mine {line}")


def test_a_part_is_named_with_its_settings(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "my_parts.py").write_text(RANDOM)
    parts = ["my_parts:Mine", "my_parts:Mine", {"kind": "my_parts:Mine", "skip": True}]
    arms = [{"name": f"arm-{number}", "selector": part} for number, part in enumerate(parts)]
    ended = driftscale("check", write_small(tmp_path, arm=arms), "--contracts")
    assert ended.code == 2
    assert (
        "small.toml: selector my_parts:Mine (skip = True) breaks check_selector: it chose none" in ended.error
    )


def test_shipped_parts_alone_are_said_to_be_so(capfd: pytest.CaptureFixture[str]) -> None:
    [facts] = api.check(SMALL, contracts=True).facts
    assert "contracts" not in facts
    said = "contracts: all parts are shipped ones, so there is no part of one's own to check\n"
    assert capfd.readouterr().err == said
