from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from benchmarks import registry
from benchmarks.registry import WORKLOADS, chosen
from emulator.errors import InputError, UnknownNameError


def test_without_names_all_but_long_workloads_are_chosen() -> None:
    long = {"runs-8-of-30s", "table-5m"}
    assert set(WORKLOADS) - set(chosen([])) == long
    assert list(chosen([])) == [name for name in WORKLOADS if name not in long]


def test_a_long_workload_is_chosen_by_its_name() -> None:
    assert list(chosen(["runs-8-of-30s", "w1"])) == ["w1", "runs-8-of-30s"]


def test_the_chosen_come_in_the_order_in_which_they_run() -> None:
    assert list(chosen(["k1", "w1", "k1"])) == ["w1", "k1"]


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(
        UnknownNameError, match="choices: aggregators, buffered, changes, cohort-size, decoding"
    ):
        chosen(["w1", "w3"])


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_name_stands_for_a_function(name: str) -> None:
    assert WORKLOADS[name].load().__name__.startswith("measure_")


@pytest.fixture
def without_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def missing(name: str) -> ModuleSpec | None:
        return None if name == "simpy" else find(name)

    monkeypatch.setattr(registry, "find_spec", missing)


@pytest.mark.usefixtures("without_simpy")
def test_a_missing_package_is_one_line_that_names_the_extra_before_anything_is_measured() -> None:
    with pytest.raises(InputError) as raised:
        chosen(["w1", "e1"])
    assert str(raised.value) == ("the workload 'e1' needs simpy, which the extra `dev` installs: make setup")
    assert list(chosen(["w1", "e1-size"])) == ["w1", "e1-size"]
