"""Validation of the lines of a run's log: afterwards no reader has to check them again.

A log is untrusted input. Problems are ValueErrors, to which the reader of the log adds file and row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

MOST_LINE_BYTES = 2**25
"""Longest line: enough for six million clients, each with its own accuracy."""

MOST_LOG_BYTES = 2**32
"""Largest log file."""

MOST_UNPACKED_BYTES = 2**33
"""Most bytes of a log's arrays, unpacked: a few for each of a million clients in a thousand rounds."""

MOST_CLIENTS = 2**26
"""Most clients of a run that can be read back: sixty times as many as in our largest run."""

MOST_PARAMETERS = 2**48
"""Most parameters of a model: a number that no model of ours comes near, and that a float holds exactly."""

MOST_CONCEPTS = 2**16
"""Most cells of the table of concepts in a header; we write ten thousand at most."""

MOST_NAME = 255
"""Most letters of a name in a header."""

MOST_DIGITS = 9
"""Most digits of a number that is a key of an object."""

OF_SCORED = ("client_accuracy", "client_label")
"""The arrays of a record that have an entry for each scored client; others have one for each client."""

ROUNDING = 1e-9
"""How far a mean of ones may exceed one."""


@dataclass(frozen=True)
class Kind:
    """Which JSON values a field accepts; `name` is the field's type, as errors name it."""

    name: str
    fits: Callable[[object], bool]


def or_none(kind: Kind) -> Kind:
    """Values of this kind, and null."""
    return Kind(f"{kind.name} | None", lambda value: value is None or kind.fits(value))


def object_of(name: str, kinds: Mapping[str, Kind]) -> Kind:
    """Objects with exactly these keys, each with a value of its kind."""
    return Kind(
        name,
        lambda value: (
            isinstance(value, dict)
            and value.keys() == kinds.keys()
            and all(kind.fits(value[key]) for key, kind in kinds.items())
        ),
    )


def either(first: Kind, second: Kind) -> Kind:
    """Values of one of two kinds."""
    return Kind(f"{first.name} | {second.name}", lambda value: first.fits(value) or second.fits(value))


def by_number(kind: Kind) -> Kind:
    """Objects whose keys are positive whole numbers, with values of this `kind`."""
    return Kind(
        f"dict[int, {kind.name}]",
        lambda value: (
            isinstance(value, dict)
            and all(_is_whole_number(key) for key in value)
            and all(map(kind.fits, value.values()))
        ),
    )


def _is_number(value: object) -> bool:
    """Whether `value` is a finite number; an int must be in the range in which floats hold all integers."""
    if type(value) is int:
        return -(2**53) <= value <= 2**53
    return type(value) is float and math.isfinite(value)


FLAG = Kind("bool", lambda value: type(value) is bool)
WHOLE = Kind("int", lambda value: type(value) is int)
NUMBER = Kind("float", _is_number)
WHOLES = Kind("list[int]", lambda value: isinstance(value, list) and set(map(type, value)) <= {int})


def refuse_wrong_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless the fields of a header that are read later are of their kind, or missing."""
    clients, concepts = header.get("num_clients"), header.get("concepts")
    if clients is not None and not (type(clients) is int and 0 < clients <= MOST_CLIENTS):
        raise ValueError(f"num_clients must be a whole number from 1 to {MOST_CLIENTS}")
    parameters = header.get("num_parameters")
    if parameters is not None and not (type(parameters) is int and 0 < parameters <= MOST_PARAMETERS):
        raise ValueError(f"num_parameters must be a whole number from 1 to {MOST_PARAMETERS}")
    if not isinstance(header.get("byzantine", {}), dict):
        raise ValueError("byzantine must be an object: the byzantine clients, by kind")
    measure = header.get("client_distance")
    if measure is not None and not (
        isinstance(measure, dict) and all(_is_name(measure.get(key)) for key in ("kind", "distance"))
    ):
        raise ValueError("client_distance must be an object with a kind and a distance")
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
    """Raise ValueError unless all values of a record are of their kind, in their range, and fit the header.

    Args:
        line: the record, with the names of a log line.
        kinds: the kind of each field that is not an array.
        header: the log's header, already checked.
        arrays: the record's arrays by name, already unpacked, or None; each must have an entry for each
            client.
    """
    for name, value in line.items():
        if name not in arrays and not kinds[name].fits(value):
            raise ValueError(f"{name} must be of kind {kinds[name].name}, and finite")
    _refuse_out_of_range(line)
    _refuse_other_size(line, header, arrays)


def _refuse_out_of_range(line: Mapping[str, Any]) -> None:
    """Raise ValueError unless the numbers of a record are in their ranges and its times in order."""
    for name in ("round", "step"):
        if line[name] < 0:
            raise ValueError(f"{name} = {line[name]} must be at least 0")
    if not 0 <= line["opened_s"] <= line["dispatched_s"] <= line["closed_s"]:
        raise ValueError("opened_s, dispatched_s and closed_s must be at least 0, and in this order")
    for name in ("accuracy", "accuracy_omitting_drift"):
        if line[name] is not None and not 0 <= line[name] <= 1 + ROUNDING:
            raise ValueError(f"{name} = {line[name]} must be from 0 to 1")


def _refuse_other_size(line: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Raise ValueError unless a record's data step and the lengths of its arrays fit the header."""
    steps = len(header["concepts"]) - 1 if "concepts" in header else None
    if steps is not None and line["step"] >= steps:
        raise ValueError(f"step = {line['step']}: there are {steps} data steps")
    clients = header.get("num_clients")
    if clients is None and steps is not None:
        clients = len(header["concepts"][0])
    holding = line.get("holding")
    if holding is not None and (holding < 1 or (clients is not None and holding >= clients)):
        raise ValueError(
            f"holding = {holding} must be at least 1, and below the number of clients, {clients}"
        )
    for name, values in arrays.items():
        expected = scored_clients(header, clients) if name in OF_SCORED else clients
        if values is not None and expected is not None and len(values) != expected:
            raise ValueError(f"{name} has {len(values)} entries, for {expected} clients")


def scored_clients(header: Mapping[str, Any], clients: int | None) -> int | None:
    """The number of clients in a header's `scored_clients`; without that field `clients`, all of them."""
    scored: Sized | None = header.get("scored_clients")
    return clients if scored is None else len(scored)


def _is_whole_number(key: str) -> bool:
    """Whether `key` is a positive whole number in the form in which we write it."""
    return key.isascii() and key.isdecimal() and key[0] != "0" and len(key) <= MOST_DIGITS


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_NAME


def _is_list_of_counts(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is int and item >= 0 for item in value)
