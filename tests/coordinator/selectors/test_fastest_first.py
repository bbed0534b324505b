"""The selector of the documentation, in ten lines: the clients whose visit is expected to be shortest."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from coordinator.selectors import Selector
from emulator.plugins import NoSettings
from experiments.contracts import check_part, check_selector
from tests.docs.blocks import documented_files, read_page
from tests.fakes import FakeAvailability, FakeExecutor, Population, a_fleet


def documented() -> str:
    """The module of the page that defines the selector, up to it."""
    for name in documented_files():
        blocks = [block for block in read_page(name).blocks if block.language == "python"]
        for number, block in enumerate(blocks):
            if "class FastestFirst" in block.content:
                first = number if "import numpy" in block.content else number - 1
                return "\n".join(block.content for block in blocks[first : number + 1])
    raise AssertionError("no page has the selector")


@pytest.fixture
def fastest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Selector]:
    (tmp_path / "fastest_first_parts.py").write_text(documented(), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    selector: type[Selector] = importlib.import_module("fastest_first_parts").FastestFirst
    return selector


def test_it_passes_the_contract_of_selectors(fastest_first: type[Selector]) -> None:
    check_part(fastest_first, NoSettings())
    check_selector(lambda: fastest_first(NoSettings()))


def test_it_selects_the_fastest_clients_that_are_online(fastest_first: type[Selector]) -> None:
    # Client 1 is the fastest, and offline; of 0 and 3, which are equal, 0 comes first.
    fleet = a_fleet(5, seconds_per_sample=[3.0, 1.0, 2.0, 3.0, 9.0])
    population = Population(
        FakeExecutor([0.0] * 5),
        fleet=fleet,
        availability=FakeAvailability({1: []}),
        selector=fastest_first(NoSettings()),
        participants=2,
    )
    assert population.play().records[0].completed == [0, 2]
