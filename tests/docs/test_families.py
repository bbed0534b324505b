"""Each family of shipped configurations has a picture, of arms that its configuration has."""

from __future__ import annotations

import pytest

from docs.writing.families import FAMILIES
from docs.writing.pages import DOCS
from experiments.reading import read_table
from experiments.shipped import shipped_files
from experiments.shipped_facts import shipped_configurations


def test_families_are_the_folders_of_shipped_configurations() -> None:
    assert set(FAMILIES) == {item.name.rpartition("/")[0] for item in shipped_configurations()}


@pytest.mark.parametrize("folder", FAMILIES)
def test_a_picture_shows_arms_of_a_configuration_of_its_family(folder: str) -> None:
    family = FAMILIES[folder]
    assert family.configuration.rpartition("/")[0] == folder
    configuration = read_table(shipped_files()[family.configuration])
    names = [arm["name"] for arm in configuration["arm"]]
    assert [arm for arm in names if arm in family.arms] == list(family.arms)
    assert 2 <= len(family.arms) <= 6
    for page in ("light", "dark"):
        text = (DOCS / "pictures" / f"{family.name}-{page}.svg").read_text(encoding="utf-8")
        assert [arm for arm in family.arms if f">{arm}</text>" not in text] == []
