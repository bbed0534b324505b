"""Validation of the lines of a run's log: afterwards no reader has to check them again.

A log is untrusted input. Problems are ValueErrors, to which the reader of the log adds file and row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from emulator.numbers import LARGEST_LOGGED

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

MOST_OF_A_TASK = 1_000
"""Most models that a task sends up, and most gradients that one of its steps takes."""

MOST_CONCEPTS = 2**16
"""Most cells of the table of concepts in a header; we write ten thousand at most."""

MOST_ONSET_STEPS = 2**20
"""Most data steps with an onset in a header."""

MOST_DRIFTS = 2**22
"""Most drifts, each a client and a data step, in a header: at 3 to 7 bytes each, they fit into a line."""

MOST_KINDS = 1_000
"""Most kinds of drift, and most detectors, in a header."""

MOST_NAME = 255
"""Most letters of a name in a header."""

WATCHED = ("representation", "arrivals", "training")
"""What a detector in a header can watch."""

MOST_DIGITS = 9
"""Most digits of a number that is a key of an object."""


@dataclass(frozen=True)
class Kind:
    """Which JSON values a field accepts: those of `types`, and of others those of which `otherwise` is true.

    `name` is the field's type, as errors name it.
    """

    name: str
    types: frozenset[type]
    otherwise: Callable[[object], bool] = lambda value: False

    def fits(self, value: object) -> bool:
        return type(value) in self.types or self.otherwise(value)

    @property
    def bare(self) -> str:
        """The name without that of null."""
        return self.name.removesuffix(_OR_NONE)

    @property
    def may_miss(self) -> bool:
        """Whether null fits."""
        return self.name.endswith(_OR_NONE)


_OR_NONE = " | None"


def or_none(kind: Kind) -> Kind:
    """Values of this kind, and null."""
    return Kind(f"{kind.name}{_OR_NONE}", kind.types | {type(None)}, kind.otherwise)


def object_of(name: str, kinds: Mapping[str, Kind]) -> Kind:
    """Objects with exactly these keys, each with a value of its kind."""
    return Kind(
        name,
        frozenset(),
        lambda value: (
            isinstance(value, dict)
            and value.keys() == kinds.keys()
            and all(kind.fits(value[key]) for key, kind in kinds.items())
        ),
    )


def either(*kinds: Kind) -> Kind:
    """Values of one of these kinds."""
    return Kind(
        " | ".join(kind.name for kind in kinds),
        frozenset().union(*(kind.types for kind in kinds)),
        lambda value: any(kind.otherwise(value) for kind in kinds),
    )


def by_number(kind: Kind) -> Kind:
    """Objects whose keys are whole numbers from 0 on, with values of this `kind`."""
    return Kind(
        f"dict[int, {kind.name}]",
        frozenset(),
        lambda value: (
            isinstance(value, dict)
            and all(_is_whole_number(key) for key in value)
            and all(map(kind.fits, value.values()))
        ),
    )


def by_name(kind: Kind) -> Kind:
    """Objects whose keys are names, with values of this `kind`."""
    return Kind(
        f"dict[str, {kind.name}]",
        frozenset(),
        lambda value: (
            isinstance(value, dict) and all(map(_is_name, value)) and all(map(kind.fits, value.values()))
        ),
    )


def _is_number(value: object) -> bool:
    """Whether `value` is a number in bounds; of an int, those in which floats hold all integers."""
    if type(value) is int:
        return -(2**53) <= value <= 2**53
    return type(value) is float and abs(value) <= LARGEST_LOGGED


FLAG = Kind("bool", frozenset({bool}))
WHOLE = Kind("int", frozenset({int}))
NUMBER = Kind("float", frozenset(), _is_number)
WHOLES = Kind(
    "list[int]", frozenset(), lambda value: isinstance(value, list) and set(map(type, value)) <= {int}
)
NUMBERS = Kind(
    "list[float]",
    frozenset(),
    lambda value: isinstance(value, list) and all(map(_is_number, value)),
)
_LISTS = Kind(
    "list[list[int]]", frozenset(), lambda value: isinstance(value, list) and all(map(WHOLES.fits, value))
)


def refuse_wrong_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless the fields of a header that are read later are of their kind, or missing."""
    clients = header.get("num_clients")
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
    solver = header.get("solver")
    if solver is not None and not (
        object_of("solver", {"uploads": NUMBER, "gradients": WHOLE}).fits(solver)
        and 1 / MOST_PARAMETERS <= solver["uploads"] <= MOST_OF_A_TASK
        and 0 < solver["gradients"] <= MOST_OF_A_TASK
    ):
        raise ValueError(
            f"solver must be an object with uploads and gradients, from 1 to {MOST_OF_A_TASK} or a part"
        )
    _refuse_wrong_concepts(header)
    _refuse_wrong_onsets(header)
    _refuse_wrong_detection(header)


def _refuse_wrong_concepts(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless a header's `concepts` and `test_concepts` are tables that fit, or missing."""
    clients, concepts = header.get("num_clients"), header.get("concepts")
    if "concepts" not in header:
        if "test_concepts" in header:
            raise ValueError("test_concepts must be beside concepts")
        return
    rows = concepts if type(concepts) is list else []
    if len(rows) < 2 or not all(_is_list_of_counts(row) and len(row) == len(rows[0]) for row in rows):
        raise ValueError("concepts must be a table of whole numbers: a row for each data step and one more")
    if clients not in (None, len(rows[0])) or len(rows) * len(rows[0]) > MOST_CONCEPTS:
        raise ValueError(
            f"concepts must have a column for each client, and at most {MOST_CONCEPTS} entries in all"
        )
    tested = header.get("test_concepts", rows[:-1])
    if (
        type(tested) is not list
        or len(tested) != len(rows) - 1
        or not all(_is_list_of_counts(row) and len(row) == len(rows[0]) for row in tested)
    ):
        raise ValueError("test_concepts must be a table of whole numbers: a row less than concepts has")


def _refuse_wrong_onsets(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless a header's `onsets` are as `experiments.build.HEADER` says, or missing.

    `num_clients` and `concepts` are checked already.
    """
    if "onsets" not in header:
        return
    onsets, concepts = header["onsets"], header.get("concepts")
    clients = MOST_CLIENTS if header.get("num_clients") is None else header["num_clients"]
    last_step = MOST_ONSET_STEPS if concepts is None else len(concepts) - 2
    kinds = {"steps": WHOLES, "counts": WHOLES}
    listed = onsets.get("clients") if isinstance(onsets, dict) else None
    if listed is not None or concepts is not None:
        kinds["clients"] = _LISTS
    if not object_of("onsets", kinds).fits(onsets):
        raise ValueError(f"onsets must be an object of lists of whole numbers: {', '.join(kinds)}")
    steps, counts = onsets["steps"], onsets["counts"]
    if not _is_ascending(steps, 1, last_step):
        raise ValueError(f"onsets: steps must be ascending data steps from 1 to {last_step}")
    if len(counts) != len(steps) or not all(0 < count <= clients for count in counts):
        raise ValueError(f"onsets: counts must have 1 to {clients} clients for each of {len(steps)} steps")
    if listed is None:
        return
    if [len(ids) for ids in listed] != counts or sum(counts) > MOST_CONCEPTS:
        raise ValueError(
            f"onsets: clients must have as many ids as counts say, at most {MOST_CONCEPTS} in all"
        )
    if not all(_is_ascending(ids, 0, clients - 1) for ids in listed):
        raise ValueError(f"onsets: clients must be ascending ids of the {clients} clients")


def _refuse_wrong_detection(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless a header's `detectors` and `drifts` are objects that fit, or missing."""
    detectors = header.get("detectors", {})
    if not isinstance(detectors, dict) or len(detectors) > MOST_KINDS or not all(map(_is_name, detectors)):
        raise ValueError("detectors must be an object: what each watches, by its name")
    if not all(watched in WATCHED for watched in detectors.values()):
        raise ValueError(f"detectors must watch one of {', '.join(WATCHED)}")
    if "drifts" not in header:
        return
    drifts, columns = header["drifts"], {"kinds", "step", "client", "kind", "before", "after"}
    if not isinstance(drifts, dict) or drifts.keys() != columns:
        raise ValueError(f"drifts must be an object of {', '.join(sorted(columns))}")
    kinds = drifts["kinds"]
    if not isinstance(kinds, list) or len(kinds) > MOST_KINDS or not all(map(_is_name, kinds)):
        raise ValueError(f"drifts: kinds must be at most {MOST_KINDS} names")


def scored_clients(header: Mapping[str, Any], clients: int | None) -> int | None:
    """The number of clients in a header's `scored_clients`; without that field `clients`, all of them."""
    scored: Sized | None = header.get("scored_clients")
    return clients if scored is None else len(scored)


def _is_whole_number(key: str) -> bool:
    """Whether `key` is a whole number from 0 on in the form in which we write it."""
    return key == "0" or (key.isascii() and key.isdecimal() and key[0] != "0" and len(key) <= MOST_DIGITS)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_NAME


def _is_ascending(values: Sequence[int], least: int, most: int) -> bool:
    """Whether whole numbers are ascending, without a repetition, at least one, and all in [least, most]."""
    return (
        bool(values)
        and values[0] >= least
        and values[-1] <= most
        and all(one < next_ for one, next_ in pairwise(values))
    )


def _is_list_of_counts(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is int and item >= 0 for item in value)
