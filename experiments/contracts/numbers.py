"""Contract of the numbers in a table of a configuration: each has two bounds and takes only numbers.

The numbers are found through the JSON schema of the settings, at any depth: in lists, in nested tables and in
the choices of a union.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

NO_NUMBERS: tuple[object, ...] = (True, False, "40", "1.5", "nan", [], {})


@dataclass(frozen=True)
class ConfiguredNumber:
    """A number in a table of settings: its path, whether it is an integer, its lowest and highest value.

    A bound that is missing is infinite. `table_with(value)` is the whole table with `value` in place of the
    number.
    """

    path: str
    whole: bool
    lowest: float
    highest: float
    table_with: Callable[[Any], Any]


def check_numbers(settings: type[BaseModel], example: Mapping[str, Any]) -> None:
    """Check that every number in `settings` has two bounds, and refuses values beyond them and non-numbers.

    The annotations in `emulator.numbers` comply. Every number must also take at least one of its
    bounds and a few ordinary values.

    Args:
        settings: The class of the settings.
        example: A table that `settings` accepts. If a table in it has free keys and not every key is
            valid, the example must have a valid one.

    Raises:
        AssertionError: A number breaks a rule; the message names the number.
    """
    settings.model_validate(example)
    for number in configured_numbers(settings, example):
        name = f"{settings.__name__}: {number.path}"
        bounded = "annotate it with a kind of number of emulator/numbers.py, such as Count or Share"
        assert math.isfinite(number.lowest), f"{name} has no lower bound; {bounded}"
        assert math.isfinite(number.highest), f"{name} has no upper bound; {bounded}"
        within = [number.lowest, number.highest, 1, 2, 10, 0.5, 0.25]
        assert any(_takes(settings, number, value) for value in within), f"{name} takes none of {within}"
        beyond = [_below(number), _above(number), -(10**400), 10**400]
        for value in (*beyond, math.inf, -math.inf, math.nan, *NO_NUMBERS):
            assert not _takes(settings, number, value), f"{name} takes {value!r}"


def configured_numbers(settings: type[BaseModel], example: Mapping[str, Any]) -> Iterator[ConfiguredNumber]:
    """All numbers of `settings`.

    Args:
        settings: The class of the settings.
        example: A table that `settings` accepts.

    Yields:
        Each number, with its bounds and its place in `example`.
    """
    schema = settings.model_json_schema()
    for steps, node, replacing in _Schema(schema.get("$defs", {})).numbers(schema, example):
        whole = node["type"] == "integer"
        lowest = _bound(node, "minimum", "exclusiveMinimum", whole, -math.inf, math.inf)
        highest = _bound(node, "maximum", "exclusiveMaximum", whole, math.inf, -math.inf)
        yield ConfiguredNumber(".".join(map(str, steps)), whole, lowest, highest, replacing)


Replace = Callable[[Any], Any]

NumberNode = tuple[tuple[str | int, ...], Mapping[str, Any], Replace]
"""The path of a number below a node, the number's node, and a function to replace it in the whole value."""


class _Schema:
    """Walks a JSON schema and finds the numbers in it."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def numbers(self, node: Mapping[str, Any], example: Any) -> Iterator[NumberNode]:
        """The numbers below `node`, each with its path and a function that replaces it in a whole value.

        The rest of that value is taken from `example`, or is minimal where `example` does not fit.
        """
        node = self._resolved(node)
        kind = node.get("type")
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            fitting = [choice for choice in choices if self._fits(choice, example)]
            for choice in fitting or choices:
                yield from self.numbers(choice, example)
        elif kind in ("integer", "number"):
            yield (), node, lambda value: value
        elif kind == "object":
            yield from self._of_object(node, example if isinstance(example, Mapping) else self._minimal(node))
        elif kind == "array":
            yield from self._of_array(node, example if isinstance(example, list) else self._minimal(node))

    def _of_object(self, node: Mapping[str, Any], example: Mapping[str, Any]) -> Iterator[NumberNode]:
        named = node.get("properties", {})
        free = node.get("additionalProperties")
        inner = dict(named)
        if isinstance(free, Mapping):
            inner |= dict.fromkeys([key for key in example if key not in named] or ["x"], free)
        for key, schema in inner.items():
            for steps, number, replacing in self.numbers(schema, example.get(key)):
                yield (key, *steps), number, partial(_replaced_in_table, example, key, replacing)

    def _of_array(self, node: Mapping[str, Any], example: list[Any]) -> Iterator[NumberNode]:
        schemas = node.get("prefixItems") or [node.get("items", {})]
        for index, schema in enumerate(schemas):
            item = example[index] if index < len(example) else None
            for steps, number, replacing in self.numbers(schema, item):
                yield (index, *steps), number, partial(_replaced_in_list, example, index, replacing)

    def _minimal(self, node: Mapping[str, Any]) -> Any:
        """A value that `node` accepts: the default, else the first choice or the lowest number."""
        node = self._resolved(node)
        kind = node.get("type")
        for key in ("default", "const"):
            if key in node:
                return node[key]
        if "enum" in node:
            return node["enum"][0]
        if kind in ("integer", "number"):
            return node.get("minimum", node.get("maximum", 1))
        if kind == "object":
            return {key: self._minimal(node["properties"][key]) for key in node.get("required", ())}
        if kind == "array":
            fixed = [self._minimal(item) for item in node.get("prefixItems", ())]
            return fixed or [self._minimal(node["items"]) for _ in range(node.get("minItems", 0))]
        choices = node.get("anyOf") or node.get("oneOf")
        return self._minimal(choices[0]) if choices else "x"

    def _fits(self, node: Mapping[str, Any], example: Any) -> bool:
        """Whether `example` has the type that `node` describes; an object shares at least one key."""
        node = self._resolved(node)
        if isinstance(example, Mapping):
            known = node.get("properties", {})
            return node.get("type") == "object" and bool(set(example) & set(known))
        if isinstance(example, list):
            return node.get("type") == "array"
        is_number = isinstance(example, int | float) and not isinstance(example, bool)
        return is_number and node.get("type") in ("integer", "number")

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            node = self._definitions[node["$ref"].rpartition("/")[2]]
        return node


def _replaced_in_table(table: Mapping[str, Any], key: str, replacing: Replace, value: Any) -> dict[str, Any]:
    return {**table, key: replacing(value)}


def _replaced_in_list(items: list[Any], index: int, replacing: Replace, value: Any) -> list[Any]:
    return [*items[:index], replacing(value), *items[index + 1 :]]


def _bound(
    node: Mapping[str, Any], inclusive: str, exclusive: str, whole: bool, unbounded: float, towards: float
) -> float:
    """The extreme value that a node allows at one end; `unbounded` if it has no bound there.

    `towards`: the infinity on whose side of the bound the allowed values are.
    """
    if "enum" in node:
        choices: list[int] = node["enum"]
        return min(choices) if towards > 0 else max(choices)
    if inclusive in node:
        return float(node[inclusive]) if not whole else int(node[inclusive])
    if exclusive not in node:
        return unbounded
    bound = node[exclusive]
    step = 1 if towards > 0 else -1
    return int(bound) + step if whole else math.nextafter(bound, towards)


def _below(number: ConfiguredNumber) -> float:
    return number.lowest - 1 if number.whole else math.nextafter(number.lowest, -math.inf)


def _above(number: ConfiguredNumber) -> float:
    return number.highest + 1 if number.whole else math.nextafter(number.highest, math.inf)


def _takes(settings: type[BaseModel], number: ConfiguredNumber, value: Any) -> bool:
    """Whether the settings accept `value` for the number; errors other than ValidationError are raised.

    It may be beside all else in the example, or beside nothing, as settings may exclude one another.
    """
    table, first = number.table_with(value), number.path.partition(".")[0]
    for whole in (table, {first: table[first]}):
        with suppress(ValidationError):
            settings.model_validate(whole)
            return True
    return False
