"""The values of swept keys: which of them are equal, and the order in which they were given.

Pure: it knows values as the manifests of cells have them, and no configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

MOST_ORDER_LETTERS = 2**12
"""Most letters of the values of a key, as JSON, whose order is recorded in every cell."""


def canonical(value: Any) -> str:
    """JSON that is the same for equal values, as of 1 and 1.0; TypeError or ValueError if JSON lacks it."""
    return json.dumps(numbers_alike(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def numbers_alike(value: Any) -> Any:
    """The value with floats that are whole numbers as integers, also in lists and tables."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [numbers_alike(item) for item in value]
    if isinstance(value, Mapping):
        return {key: numbers_alike(item) for key, item in value.items()}
    return value


def may_be_recorded(values: Sequence[Any]) -> bool:
    """Whether the order of these values is short enough to be recorded in every cell."""
    return sum(len(canonical(value)) for value in values) <= MOST_ORDER_LETTERS


def given_ranks(orders: Sequence[Sequence[Any]]) -> dict[str, int]:
    """The ranks of a key's values, by canonical JSON, that follow from the orders which cells have recorded.

    The longest order comes first; values that only other orders have follow, those of longer ones first.
    Empty if no order says more than sorting does, since each is of ascending numbers: so a number that is
    swept later has its place among them.

    >>> given_ranks([["none", "one"], ["none", "two", "one"], ["rare"]])
    {'"none"': 0, '"two"': 1, '"one"': 2, '"rare"': 3}
    >>> given_ranks([[0.1, 0.5], [0.2]])
    {}
    """
    if all(_are_ascending_numbers(order) for order in orders):
        return {}
    distinct = {json.dumps(order): order for order in orders}  # most cells have the same
    texts = [[canonical(value) for value in order] for order in distinct.values()]
    in_turn = sorted(texts, key=lambda order: (-len(order), order))
    return {text: rank for rank, text in enumerate(dict.fromkeys(chain.from_iterable(in_turn)))}


def _are_ascending_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) in (int, float) for value in values) and list(values) == sorted(values)
