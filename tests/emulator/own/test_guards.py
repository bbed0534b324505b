from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors.fewest_updates import FewestUpdates
from emulator.errors import ConfigurationError
from emulator.own.code import OwnCodeError
from emulator.own.guards import guarded
from emulator.plugins import NoSettings
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
