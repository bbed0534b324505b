from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.median import Median
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors.fewest_updates import FewestUpdates
from coordinator.selectors.random import Random
from emulator.errors import ConfigurationError
from emulator.own.code import OwnCodeError
from emulator.own.guards import Call, build, guarded, inspecting
from emulator.own_parts import GUARDS, is_own
from emulator.plugins import NoSettings
from experiments.sameness import left_alone
from traces.drift.base import Drift


def own(base: type, **methods: Any) -> Any:
    """A class of one's own."""
    return type("Mine", (base,), {"__module__": __name__, **methods})


def test_a_guarded_part_is_what_it_was_and_only_its_own_methods_are_wrapped() -> None:
    kind = own(FewestUpdates, select=lambda self, candidates, wanted, view: wanted)
    part = guarded("selector", kind(NoSettings()))
    assert isinstance(part, kind)
    assert (part.name, vars(part).keys()) == ("Mine", vars(kind(NoSettings())).keys())
    assert type(part).select is not kind.select
    assert type(part).feedback is FewestUpdates.feedback
    shipped = guarded("selector", FewestUpdates(NoSettings()))
    assert type(shipped) is FewestUpdates


def test_a_method_that_does_not_take_its_protocols_arguments_is_refused_with_their_names() -> None:
    part = own(FewestUpdates, select=lambda self, candidates: candidates)(NoSettings())
    with pytest.raises(ConfigurationError, match=r"must take \(self, candidates, wanted, view\)"):
        guarded("selector", part)


@pytest.mark.parametrize("made", [list, np.stack, iter])
def test_what_comes_item_by_item_is_checked_so_and_need_not_be_a_generator(made: Any) -> None:
    right = np.full((2, 4), 0.25)
    came = guarded("drift", own(Drift, shares=lambda *_: made([right, 2 * right]))(NoSettings()))
    shares = came.shares(2, 2, 4, 0, 1, None)
    assert (next(shares) == right).all()
    with pytest.raises(OwnCodeError, match=r"shares returned .*: rows must sum to 1"):
        next(shares)


def test_that_there_is_no_memory_is_no_mistake_of_own_code() -> None:
    def select(self: Any, candidates: Any, wanted: Any, view: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.")

    with pytest.raises(RuntimeError, match=r"^DefaultCPUAllocator"):
        guarded("selector", own(FewestUpdates, select=select)(NoSettings())).select(None, None, None)


def test_what_the_rules_of_a_pacing_look_at_is_the_same_behind_a_guard() -> None:
    pacing = own(Sync, full=lambda self, quota, out, back, elapsed_s: out == 0)(SyncSettings(), CohortSize(3))
    before = pacing.sees("full"), pacing.sees("absorbs")
    assert before == ("lanes", "sums")
    pacing = guarded("pacing", pacing)
    assert (pacing.sees("full"), pacing.sees("absorbs")) == before


class Falsely(Random):
    @property
    def needs_reports(self) -> bool:
        return np.bool_(False)  # type: ignore[return-value]


def test_numbers_of_numpy_are_as_good_as_those_of_python() -> None:
    assert not build("selector", Falsely, NoSettings()).needs_reports


class Unweighted(FedAvg):
    def weights(self, *_: Any) -> None:  # type: ignore[override]
        return None


def test_what_a_protocol_allows_is_right_though_the_shipped_part_that_is_extended_never_does_it() -> None:
    assert build("aggregator", Unweighted, FedAvgSettings()).weights(1, 2, 3) is None  # type: ignore[func-returns-value]


class ByName(Drift):
    Settings = NoSettings

    def shares(self, num_clients: int, num_windows: int, num_labels: int, **_: Any) -> Iterator[Any]:  # type: ignore[override]
        return [np.eye(num_labels)[:num_clients]] * num_windows  # type: ignore[return-value]


def test_arguments_may_be_taken_by_name() -> None:
    drawn = build("drift", ByName, NoSettings()).shares(2, 3, 4, first_step=0)
    assert [each.shape for each in drawn] == [(2, 4)] * 3


class MyMedian(Median):
    def centre(self, values: Any) -> Any:
        return super().centre(values)


def test_what_may_be_reordered_in_place_may_be() -> None:
    def inspector(call: Call) -> Any:
        return left_alone(*call.arguments)

    with inspecting(inspector):
        centre = build("aggregator", MyMedian, NoSettings()).centre(
            np.array([[3], [1], [2]], dtype=np.float32)
        )
    assert centre.tolist() == [2]


class Model(BaseModel):
    size: int = 1

    def draw(self) -> int:
        return self.size


def test_the_class_of_a_guarded_pydantic_model_is_known() -> None:
    part = guarded("device profile", Model(), _Drawing)
    assert getattr(type(part), GUARDS) is Model
    assert part.draw() == 1


class _Drawing:
    def draw(self) -> int:
        raise NotImplementedError


_Drawing.__module__ = is_own.__module__  # as if it were a protocol of ours


def test_an_object_that_has_its_methods_itself_needs_no_guard() -> None:
    part = SimpleNamespace(draw=lambda: 1)
    assert type(guarded("device profile", part, _Drawing)) is SimpleNamespace


class Coin(Enum):
    HEADS = 1

    def draw(self) -> int:
        return self.value


def test_a_class_that_cannot_be_extended_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"Coin': its class must be one that can be extended \("):
        guarded("device profile", Coin.HEADS, _Drawing)
