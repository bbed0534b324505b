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

pytestmark = pytest.mark.slow

SHIPPED = {
    "adaptation": "tuned",
    "aggregator": "fedavg",
    "availability": "diurnal",
    "clusterer": "static",
    "concepts": "sine",
    "detector": "changed",
    "drift": "label_mix",
    "memory": "held",
    "model": "linear",
    "pacing": "sync",
    "partition": "iid",
    "representation": "label",
    "schedule": "slowness",
    "selector": "random",
    "solver": "sgd",
    "source": "synthetic",
    "trigger": "pairwise",
}
"""A shipped part of each kind, whose subclass is a part of one's own that keeps the contract."""

RANDOM = """\
from pydantic import Field
import numpy as np
from coordinator.selectors.random import Random
from emulator.numbers import CountOrZero
from emulator.plugins import Settings

class MineSettings(Settings):
    skip: CountOrZero = Field(0, description="how many candidates are left alone")

class Mine(Random):
    "Random."
    Settings = MineSettings

    def select(self, candidates, wanted, view):
        chosen = super().select(candidates, wanted, view)
        return chosen[self.settings.skip:]
"""


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("kind", [*part_kinds(), PROFILES.kind])
def test_parts_of_all_kinds_are_checked_and_named(driftscale: Driftscale, tmp_path: Path, kind: str) -> None:
    if kind == PROFILES.kind:
        example, what, mine = '[devices]\nprofile = "my_parts:mine"\n', kind, "mine"
        module = "from device_profiles import load_profile\ndef mine():\n    return load_profile('iot')\n"
    else:
        shipped, registry = part_kinds()[kind].registry.find(SHIPPED[kind]), part_kinds()[kind].registry
        example, what, mine = part_kinds()[kind].example_of("my_parts:Mine", {}), registry.kind, "Mine"
        module = f"from {shipped.__module__} import {shipped.__name__} as Shipped\n"
        module += "class Mine(Shipped):\n    'Mine.'\n"
    (tmp_path / "my_parts.py").write_text(module)
    table = {**SMALL, "round": {"rounds": 4, "participants": 2}, **tomllib.loads(example)}
    table["devices"] = {**SMALL["devices"], **table["devices"]}
    table["trace"].setdefault("rounds_per_step", 2)
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(table))
    ended = driftscale("check", "mine.toml", "--contracts", "--format", "json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["contracts"].partition(" (")[0] == f"{what} my_parts:{mine}"


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "return chosen[",
            "np.random.random(); return chosen[",
            "breaks check_selector: the global generator of numpy was drawn from or seeded; parts must draw "
            "from the keyed streams that they receive",
        ),
        (
            "return chosen[",
            "return [1 / 0][",
            "breaks check_selector: ZeroDivisionError: division by zero (my_parts.py, line 16)",
        ),
        ("return chosen[", "assert 0, 'no'; return chosen[", "AssertionError: no (my_parts.py, line 16)"),
        ("description", "title", "breaks check_part: MineSettings: skip has no description, which `drift"),
    ],
    ids=["chance", "raises", "asserts", "undescribed"],
)
def test_a_breach_is_one_line(driftscale: Driftscale, tmp_path: Path, old: str, new: str, line: str) -> None:
    (tmp_path / "my_parts.py").write_text(RANDOM.replace(old, new))
    config = write_small(tmp_path, arm=[{"name": "mine", "selector": "my_parts:Mine"}])
    ended = driftscale("check", config, "--contracts")
    assert ended.code == 2
    assert ended.error.startswith(f"{config}: selector my_parts:Mine breaks check_")
    assert line in ended.error


@pytest.mark.usefixtures("own_modules")
def test_a_part_that_is_named_twice_is_named_by_its_settings(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "my_parts.py").write_text(RANDOM.replace("skip:]", "skip % 1:]"))
    parts = ["my_parts:Mine", "my_parts:Mine", {"kind": "my_parts:Mine", "skip": 1}]
    config = write_small(tmp_path, arm=[{"name": f"a{n}", "selector": part} for n, part in enumerate(parts)])
    assert driftscale("check", config, "--contracts").code == 0
    [facts] = api.check(config, contracts=True).facts
    assert facts["contracts"] == "selector my_parts:Mine, selector my_parts:Mine (skip = 1)"


def test_shipped_parts_alone_are_said_to_be_so(driftscale: Driftscale, tmp_path: Path) -> None:
    ended = driftscale("check", write_small(tmp_path), "--contracts")
    assert ended.code == 0
    assert ended.err == "contracts: all parts are shipped ones, so there is no part of one's own to check\n"
    assert "contracts" not in ended.out
