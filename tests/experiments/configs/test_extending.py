"""Shipped configurations that extend another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from emulator.storage.bounded import read_toml
from experiments.extending import CHOSEN
from experiments.reading import read_table
from experiments.shipped import shipped_files

WHOLE = {
    "digits-operating-points": "a1fed3d1",
    "swap-samples": "c126752f",
    "dao/incremental-16": "7ec2e668",
    "dao/incremental-30": "51f4dfd3",
    "dao/mixed-simultaneous": "0240bac1",
    "drift/dao-incremental-cumulative": "06977e47",
    "drift/dao-mixed": "40cec46e",
    "drift/dao-sudden": "82937afe",
    "drift/fedcond-late": "8fda1833",
    "drift/fedcond-middle": "fd1b0b45",
    "drift/flash-incremental": "37e01ffd",
    "drift/flash-recurrent": "335fc952",
    "feddrift/mnist-2-short": "a8254a60",
    "feddrift/mnist-4-short": "922b3e23",
    "feddrift/mnist-r-short": "5d00b323",
    "feddrift/sea-2": "55c3db59",
    "feddrift/sine-2": "9e5d4eb7",
    "fielding/cityscapes-resnet18": "c2993dda",
    "fielding/figure-01-few": "add92211",
    "fielding/figure-01-new-label": "f32a43d0",
    "fielding/figure-05-distance": "26d8cde9",
    "fielding/figure-05-oort": "49e9ee8f",
    "fielding/figure-13-ten": "bba01fc8",
    "fielding/fmow-resnet18": "1bf07cb9",
    "fielding/openimages-shufflenet": "73ac40ad",
    "fielding/waymo-vit": "54cbb778",
    "flash/synthetic-incremental": "922d86ca",
    "flash/synthetic-pair": "1a6b0d01",
    "flash/synthetic-recurrent": "397195a2",
    "personal/budgets": "42598acc",
    "personal/budgets-fifth": "b62cd194",
    "personal/budgets-phones": "a8458fc8",
}
"""By name, the digest of what each amounts to: it changes with the one that it extends."""


def test_each_amounts_to_what_it_was() -> None:
    """But for the atlas, which every tune changes."""
    files = {
        name: path for name, path in shipped_files().items() if not name.startswith(("atlas/", "phones/"))
    }
    extending = {name: path for name, path in files.items() if "extends" in read_toml(path)}
    assert {name: _digest(read_table(path)) for name, path in extending.items()} == WHOLE


@pytest.mark.parametrize("name", WHOLE)
def test_none_repeats_what_it_inherits(name: str) -> None:
    own = read_toml(shipped_files()[name])
    own.pop(CHOSEN, None)  # which is not inherited
    inherited = read_table(shipped_files()[own.pop("extends")])
    assert [key for key, value in _values(own) if value == _at(inherited, key)] == []


def _digest(table: Mapping[str, Any]) -> str:
    deciding = {key: value for key, value in table.items() if key != CHOSEN}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _values(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of a configuration by their keys; a part is one value, and an arm goes by its name."""
    for key, value in table.items():
        if (*path, key) == ("arm",):
            for arm in value:
                settings = {name: item for name, item in arm.items() if name != "name"}
                yield from _values(settings, ("arm", arm["name"]))
        elif isinstance(value, Mapping) and "kind" not in value:
            yield from _values(value, (*path, key))
        else:
            yield (*path, key), value


def _at(table: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(table, list):
            table = {arm["name"]: arm for arm in table}
        table = table.get(step) if isinstance(table, Mapping) else None
    return table
