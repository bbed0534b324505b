"""What a line of a run's log must be, so that whoever reads it back need not ask again.

A log may come from somebody else. ValueError says what is wrong with a line; the reader adds file and row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

MOST_LINE_BYTES = 2**25
"""Of one line: what is said of six million clients, each with an accuracy of its own."""

MOST_LOG_BYTES = 2**32
"""Of a log."""

MOST_UNPACKED_BYTES = 2**33
"""Of all arrays of a log together, once they are unpacked: a few bytes for each of a million clients in each
of a thousand rounds."""

MOST_CLIENTS = 2**26
"""Clients of a run that can be read back: sixty times those of the largest that we have run."""

MOST_CONCEPTS = 2**16
"""Cells of the table of concepts in a header, which writes no more than ten thousand."""

MOST_DIGITS = 9
"""Of a number that is a key."""


ROUNDING = 1e-9
"""By which a mean of ones may exceed one."""


@dataclass(frozen=True)
class Kind:
    """Which values JSON may give a field; `name` is the field's type, for errors to name."""

    name: str
    fits: Callable[[object], bool]


def or_none(kind: Kind) -> Kind:
    return Kind(f"{kind.name} | None", lambda value: value is None or kind.fits(value))


def object_of(name: str, kinds: Mapping[str, Kind]) -> Kind:
    """Objects that have these keys and no others."""
    return Kind(
        name,
        lambda value: (
            isinstance(value, dict)
            and value.keys() == kinds.keys()
            and all(kind.fits(value[key]) for key, kind in kinds.items())
        ),
    )


def by_number(kind: Kind) -> Kind:
    """Objects whose keys are whole numbers, with values of this `kind`."""
    return Kind(
        f"dict[int, {kind.name}]",
        lambda value: (
            isinstance(value, dict)
            and all(_is_whole_number(key) for key in value)
            and all(map(kind.fits, value.values()))
        ),
    )


def _is_number(value: object) -> bool:
    """Whether it is finite; whole numbers count only as far as a float has them all."""
    if type(value) is int:
        return -(2**53) <= value <= 2**53
    return type(value) is float and math.isfinite(value)


FLAG = Kind("bool", lambda value: type(value) is bool)
WHOLE = Kind("int", lambda value: type(value) is int)
NUMBER = Kind("float", _is_number)
WHOLES = Kind("list[int]", lambda value: isinstance(value, list) and set(map(type, value)) <= {int})


def refuse_wrong_header(header: Mapping[str, Any]) -> None:
    """ValueError unless what it has of the things that are read of it is of their kind."""
    clients, concepts = header.get("num_clients"), header.get("concepts")
    if clients is not None and not (type(clients) is int and 0 < clients <= MOST_CLIENTS):
        raise ValueError(f"num_clients must be a whole number from 1 to {MOST_CLIENTS}")
    if not isinstance(header.get("byzantine", {}), dict):
        raise ValueError("byzantine must be an object: the byzantine clients, by kind")
    if "concepts" not in header:
        return
    rows = concepts if type(concepts) is list else []
    if len(rows) < 2 or not all(_is_list_of_counts(row) and len(row) == len(rows[0]) for row in rows):
        raise ValueError("concepts must be a table of whole numbers: a row for each data step and one more")
    if clients not in (None, len(rows[0])) or len(rows) * len(rows[0]) > MOST_CONCEPTS:
        raise ValueError(
            f"concepts must have a column for each client, and at most {MOST_CONCEPTS} entries in all"
        )


def refuse_wrong_record(
    line: Mapping[str, Any], kinds: Mapping[str, Kind], header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """ValueError unless each value of a record is of its kind.

    `arrays` are those of its values that are unpacked already: as long as there are clients.
    """
    for name, value in line.items():
        if name not in arrays and not kinds[name].fits(value):
            raise ValueError(f"{name} must be of kind {kinds[name].name}, and finite")
    _refuse_out_of_range(line)
    _refuse_other_size(line, header, arrays)


def _refuse_out_of_range(line: Mapping[str, Any]) -> None:
    """ValueError unless the numbers of a record are in their ranges and its times in order."""
    for name in ("round", "step"):
        if line[name] < 0:
            raise ValueError(f"{name} = {line[name]} must be at least 0")
    if not 0 <= line["opened_s"] <= line["dispatched_s"] <= line["closed_s"]:
        raise ValueError("opened_s, dispatched_s and closed_s must be at least 0, and in this order")
    for name in ("accuracy", "accuracy_omitting_drift"):
        if line[name] is not None and not 0 <= line[name] <= 1 + ROUNDING:
            raise ValueError(f"{name} = {line[name]} must be from 0 to 1")


def _refuse_other_size(line: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """ValueError unless a record has a step of the header's concepts, and an entry for each client."""
    steps = len(header["concepts"]) - 1 if "concepts" in header else None
    if steps is not None and line["step"] >= steps:
        raise ValueError(f"step = {line['step']}: there are {steps} data steps")
    clients = header.get("num_clients")
    if clients is None and steps is not None:
        clients = len(header["concepts"][0])
    for name, values in arrays.items():
        expected = scored_clients(header, clients) if name == "client_accuracy" else clients
        if values is not None and expected is not None and len(values) != expected:
            raise ValueError(f"{name} has {len(values)} entries, of {expected} clients")


def scored_clients(header: Mapping[str, Any], clients: int | None) -> int | None:
    """How many clients have an accuracy; None where the header does not say."""
    scored: Sized | None = header.get("scored_clients")
    return clients if scored is None else len(scored)


def _is_whole_number(key: str) -> bool:
    """Whether it is a whole number as we write one, above zero."""
    return key.isascii() and key.isdecimal() and key[0] != "0" and len(key) <= MOST_DIGITS


def _is_list_of_counts(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is int and item >= 0 for item in value)
