"""Sweeps: the product of the values that a configuration gives to some of its keys.

Each combination is a cell: an ordinary configuration with a name of its own, to be run into a run directory
of that name. This module parses what is swept and names the cells; it reads no file. `members.py` makes the
configurations, `folder.py` plays them like those of a folder.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.errors import ConfigurationError
from emulator.storage.bounded import toml_document
from experiments.reading import SWEEP, parse_value
from experiments.results.reading.differing_keys import short_names
from experiments.results.reading.recorded import MOST_NAME_BYTES
from experiments.results.reading.swept_values import canonical, may_be_recorded, numbers_alike

MOST_CELLS = 10_000
"""Most cells of a command without --yes."""

MOST_SHOWN = 40
"""Most letters of a value in the name of a cell."""

OPTION = "--sweep"
EXAMPLE = "round.participants=5,10"

OWN_NAMES = "cells get names of their own"
UNSWEPT = {
    "name": OWN_NAMES,
    "seeds": "every cell is run with all seeds, which --seeds gives",
    SWEEP: "a cell is one configuration",
}
"""Keys at the top that cannot be swept, and why."""

Values = Mapping[str, Any]
"""The values of a cell by swept key, as TOML has them."""


@dataclass(frozen=True)
class Axis:
    """A swept key and its values, at least one.

    `source` is --sweep or [sweep], `where` names the axis in errors: the option, or the file and the key.
    """

    key: str
    values: tuple[Any, ...]
    source: str
    where: str


def parse_axis(option: str) -> Axis:
    """The axis of an option `--sweep KEY=VALUE,VALUE,...`.

    Values are separated by commas outside of quotes and brackets. Each is read as TOML or, if that fails, as
    text.
    """
    where = f"{OPTION} {option}"
    key, equals, text = option.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"{where}: must be KEY=VALUE,VALUE,..., as in {EXAMPLE}")
    return _axis(key.strip(), _parse_values(text, where), OPTION, where)


def table_axes(table: object, file: str) -> list[Axis]:
    """The axes of a `[sweep]` table, whose dotted keys may be nested tables."""
    if not isinstance(table, Mapping):
        raise ConfigurationError(f'{file}: {SWEEP} must be a table, as in "round.participants" = [5, 10]')
    axes: list[Axis] = []
    for key, values in _flattened(table):
        where = f"{file}: [{SWEEP}] {key}"
        if not isinstance(values, list):
            raise ConfigurationError(f"{where} = {values!r}: must be a list of values, as in [5, 10]")
        if key in (axis.key for axis in axes):
            raise ConfigurationError(f"{where}: is given twice")
        axes.append(_axis(key, values, f"[{SWEEP}]", where))
    return axes


def merged_axes(of_table: Sequence[Axis], options: Sequence[str] | Mapping[str, Any]) -> list[Axis]:
    """The axes of a `[sweep]` with those of --sweep `options`, which replace axes of the same key.

    Lists of values by key, as Python gives them, are read like a `[sweep]`.
    """
    given: dict[str, Axis] = {}
    axes = table_axes(options, "sweep") if isinstance(options, Mapping) else map(parse_axis, options)
    for axis in axes:
        if axis.key in given:
            raise ConfigurationError(f"{axis.where}: {axis.key} is given twice; list all values once")
        given[axis.key] = axis
    return list(({axis.key: axis for axis in of_table} | given).values())


def num_cells(axes: Sequence[Axis]) -> int:
    """The number of combinations; 1 without axes."""
    return math.prod(len(axis.values) for axis in axes)


def refuse_too_many_cells(sweeps: Sequence[Sequence[Axis]]) -> None:
    """ConfigurationError if the cells of all `sweeps` of a command are more than `MOST_CELLS`."""
    number = sum(map(num_cells, sweeps))
    if number > MOST_CELLS:
        products = " + ".join(" x ".join(str(len(axis.values)) for axis in axes) or "1" for axes in sweeps)
        raise ConfigurationError(
            f"{number:,} cells ({products}), and a sweep has at most {MOST_CELLS:,}; sweep fewer values, or "
            f"give --yes to run them all"
        )


def cells(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """The values of each cell; the values of the first key change slowest."""
    keys = [axis.key for axis in axes]
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip(keys, values, strict=True))


def given_order(axes: Sequence[Axis]) -> dict[str, list[Any]]:
    """By key, its values in the order given; keys whose values are too long to be recorded are left out."""
    return {axis.key: list(axis.values) for axis in axes if may_be_recorded(axis.values)}


def cell_name(base: str, values: Values) -> str:
    """The name of a cell of the configuration `base`, as `digits,threshold=0.1,participants=5`.

    It depends on nothing but the keys and their values, in no order, so that a sweep that is resumed, or
    extended by further values, finds its cells. Of a key it has the shortest end that no other key has. A
    value that is too long, or has characters that a name may not have, is shortened, with a digest.
    """
    short = short_keys(values)
    name = ",".join([base, *(f"{short[key]}={_shown(values[key])}" for key in sorted(values))])
    if len(name) <= MOST_NAME_BYTES:  # it is ASCII
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MOST_NAME_BYTES - len(digest) - 1]}-{digest}"


def short_keys(keys: Collection[str]) -> dict[str, str]:
    """By key, the shortest end of it, in whole parts, that no other of the `keys` has."""
    names = short_names([tuple(key.split(".")) for key in keys])
    return {key: _slug(name) for key, name in zip(keys, names, strict=True)}


def without_effect(
    axes: Sequence[Axis], identities: Mapping[tuple[Any, ...], Collection[str]]
) -> Axis | None:
    """The first axis of which no value makes a difference to any run; None if all have an effect.

    Args:
        axes: The axes; those with a single value are left out, since nothing can be seen from it.
        identities: By cell, as the positions of its values in `axes`: the identities of its runs.
    """
    for position, axis in enumerate(axes):
        seen: dict[tuple[Any, ...], Collection[str]] = {}
        if len(axis.values) > 1 and all(
            seen.setdefault((*cell[:position], *cell[position + 1 :]), runs) == runs
            for cell, runs in identities.items()
        ):
            return axis
    return None


def _axis(key: str, values: Sequence[Any], source: str, where: str) -> Axis:
    parts = key.split(".")
    why = UNSWEPT.get(parts[0])
    if parts[0] == "arm" and parts[-1] in ("arm", "name"):
        why = "arms are compared within each cell"
    if why is not None:
        raise ConfigurationError(f"{where}: {key} cannot be swept, since {why}")
    if not values:
        raise ConfigurationError(f"{where}: has no value; must be KEY=VALUE,VALUE,..., as in {EXAMPLE}")
    seen = set()
    for value in values:
        try:
            same = canonical(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{where}: {value} cannot be swept; a value is a text, a finite number, true or false, or a "
                f"list or table of these"
            ) from error
        if same in seen:
            raise ConfigurationError(f"{where}: the value {value!r} is given twice")
        seen.add(same)
    return Axis(key, tuple(values), source, where)


def _parse_values(text: str, where: str) -> list[Any]:
    pieces = [piece.strip() for piece in _split(text)]
    if "" in pieces and len(pieces) > 1:
        raise ConfigurationError(f"{where}: has an empty value; must be KEY=VALUE,VALUE,..., as in {EXAMPLE}")
    try:
        document = toml_document(f"values = [{text}]")
    except ValueError:
        document = {}
    if document.keys() == {"values"}:
        values: list[Any] = document["values"]
        return values
    if re.fullmatch(r"\d+\.\.\d+", text.strip()):
        from emulator.storage.slips import meant

        written = (meant(text.strip()) or "[1, 2, ...]")[1:-1].replace(" ", "")
        raise ConfigurationError(f"{where}: values are written out, as in {written}")
    return [parse_value(piece) for piece in pieces]


def _split(text: str) -> list[str]:
    """The pieces of `text` between commas that are outside of quotes and brackets."""
    pieces, start, depth, quote, escaped = [], 0, 0, "", False
    for position, letter in enumerate(text):
        if quote:
            if letter == quote and not escaped:
                quote = ""
            escaped = letter == "\\" and quote == '"' and not escaped
        elif letter in "\"'" and (depth > 0 or not text[start:position].strip()):
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            pieces.append(text[start:position])
            start = position + 1
    return [*pieces, text[start:]]


def _flattened(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        full = f"{path}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{full}.")
        else:
            yield full, value


def _shown(value: Any) -> str:
    """A value as TOML has it, if that is short and fit for a name; otherwise shortened, with a digest."""
    if isinstance(value, str):
        text, is_plain = value, parse_value(value) == value  # and not the text of another value, as "0.5"
    elif isinstance(value, bool):
        text, is_plain = str(value).lower(), True
    elif isinstance(value, int | float):
        text, is_plain = str(numbers_alike(value)), True
    else:
        text, is_plain = canonical(value), False
    if is_plain and text and _slug(text) == text and len(text) <= MOST_SHOWN:
        return text
    digest = hashlib.sha256(canonical(value).encode()).hexdigest()[:8]
    return f"{_slug(text).strip('-')[:MOST_SHOWN]}-{digest}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text)
