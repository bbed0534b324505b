"""README's selector in ten lines: the clients whose visit is expected to be shortest."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from coordinator.selectors import Selector
from emulator.plugins import NoSettings
from experiments.contracts import check_part, check_selector
from tests.fakes import FakeAvailability, FakeExecutor, Population, a_fleet

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def fastest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Selector]:
    """The class of README's block, in a module that begins with the block before it."""
    blocks = [block.split("```")[0] for block in README.split("```python\n")[1:]]
    (number,) = [number for number, block in enumerate(blocks) if "class FastestFirst" in block]
    (tmp_path / "fastest_first_parts.py").write_text("\n".join(blocks[number - 1 : number + 1]))
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
