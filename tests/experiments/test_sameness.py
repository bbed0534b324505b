"""What a part does to its arguments is noticed, wherever in them it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from coordinator.view import View
from experiments.sameness import left_alone
from tests.fakes import a_view

WHOLE = np.arange(6)


def arguments() -> tuple[View, dict[str, Any]]:
    drift = MappingProxyType({"news": np.zeros(3, dtype=bool)})
    table = {"ids": WHOLE[1:4], "rows": [0, 1], "inner": {"share": 0.5}}
    return replace(a_view(models=[[1.0, 2.0]]), drift=drift), table


def turned(view: View, table: dict[str, Any]) -> None:
    table["ids"].shape = (3, 1)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda view, table: view.models.__setitem__((0, 0), 2.0), id="an array"),
        pytest.param(lambda view, table: WHOLE.__setitem__(2, 7), id="the array that one is a view of"),
        pytest.param(lambda view, table: view.models.T.__setitem__((1, 0), 7.0), id="a view of an array"),
        pytest.param(lambda view, table: view.drift["news"].fill(True), id="an array of a mapping"),
        pytest.param(lambda view, table: table["rows"].append(2), id="a list"),
        pytest.param(lambda view, table: table["inner"].update(share=0.25), id="a dict in a dict"),
        pytest.param(lambda view, table: table.update(ids=np.zeros(3)), id="an array that is replaced"),
        pytest.param(lambda view, table: table.pop("rows"), id="a key that is taken away"),
        pytest.param(lambda view, table: object.__setattr__(view, "round", 9), id="a field"),
        pytest.param(turned, id="a shape"),
    ],
)
def test_a_part_that_writes_to_an_argument_is_refused(write: Callable[[View, dict[str, Any]], None]) -> None:
    WHOLE[:] = np.arange(6)
    view, table = arguments()
    with pytest.raises(AssertionError, match="it writes to its arguments"), left_alone(view, table):
        write(view, table)


def test_arguments_that_are_read_or_replaced_by_their_like_are_left_alone() -> None:
    view, table = arguments()
    with left_alone(view, table):
        table["ids"] = table["ids"].copy()
        table["inner"] = {"share": table["inner"]["share"]}
        assert view.models.sum() == 3.0
