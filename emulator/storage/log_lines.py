"""Validation of the lines of a run's log: afterwards no reader has to check them again.

A log is untrusted input. Problems are ValueErrors, to which the reader of the log adds file and row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict

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

MOST_KEYS = 2**12
"""Most keys of an object whose keys are names of fields or of parts."""

MOST_NAME = 255
"""Most letters of a name in a header."""

WHOLE = Annotated[int, Field(ge=-(2**63), lt=2**63)]
NUMBER = Annotated[float, Field(ge=-LARGEST_LOGGED, le=LARGEST_LOGGED)]
NAME = Annotated[str, Field(min_length=1, max_length=MOST_NAME)]
COUNT = Annotated[int, Field(ge=0, lt=2**63)]


def at_least(name: str, types: Mapping[str, Any]) -> Any:
    """The type of an object with these fields, and perhaps others."""
    typed: Any = TypedDict(name, dict(types))  # type: ignore[misc]
    return with_config(ConfigDict(strict=True, extra="allow"))(typed)


def exactly(name: str, types: Mapping[str, Any]) -> Any:
    """The type of an object with these fields and no others."""

    def refuse_others(value: dict[str, Any]) -> dict[str, Any]:
        if not value.keys() <= types.keys():
            raise ValueError(f"must have {', '.join(types)}, and nothing else")
        return value

    # NOTE: not by pydantic's extra="forbid", which makes an error of each of perhaps millions of others.
    return Annotated[at_least(name, types), AfterValidator(refuse_others)]


def of_few(kind: Any) -> Any:
    """The `kind` of an object, of at most `MOST_KEYS` keys: each that is wrong is an error."""
    return Annotated[kind, BeforeValidator(_refuse_many)]


def _refuse_many(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MOST_KEYS:
        raise ValueError(f"must have at most {MOST_KEYS:,} keys")
    return value


def by_key(key: Any, kind: Any) -> Any:
    """The type of an object by numbers or names; of wrong entries, perhaps millions, one is an error."""
    strict = ConfigDict(strict=True)
    keys, values = TypeAdapter(listed(key), config=strict), TypeAdapter(listed(kind), config=strict)

    def checked(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("must be an object")
        contents = values.validate_python(list(value.values()))
        return dict(zip(keys.validate_python(list(value)), contents, strict=True))

    return Annotated[Any, AfterValidator(checked)]


def listed(kind: Any, least: int = 0, most: int | None = None) -> Any:
    """The type of a list of `least` to `most` entries; of wrong ones, perhaps millions, one is an error."""
    return Annotated[list[kind], Field(min_length=least, max_length=most, fail_fast=True)]


Watched = Literal["representation", "arrivals", "training"]
WATCHED = get_args(Watched)
"""What a detector in a header can watch."""

_TABLE = listed(listed(COUNT, least=1), most=MOST_CONCEPTS)

_HEADER: Mapping[str, tuple[Any, str]] = {
    "num_clients": (
        Annotated[int, Field(gt=0, le=MOST_CLIENTS)] | None,
        f"must be a whole number from 1 to {MOST_CLIENTS}",
    ),
    "num_parameters": (
        Annotated[int, Field(gt=0, le=MOST_PARAMETERS)] | None,
        f"must be a whole number from 1 to {MOST_PARAMETERS}",
    ),
    "byzantine": (dict[str, Any], "must be an object: the byzantine clients, by kind"),
    "client_distance": (
        at_least("client_distance", {"kind": NAME, "distance": NAME}) | None,
        "must be an object with a kind and a distance",
    ),
    "objective": (at_least("objective", {"kind": NAME, "word": NAME}), "must be an object: kind and word"),
    "solver": (
        exactly(
            "solver",
            {
                "uploads": Annotated[float, Field(ge=1 / MOST_PARAMETERS, le=MOST_OF_A_TASK)],
                "gradients": Annotated[int, Field(gt=0, le=MOST_OF_A_TASK)],
            },
        )
        | None,
        f"must be an object with uploads and gradients, from 1 to {MOST_OF_A_TASK} or a part",
    ),
    "concepts": (_TABLE, "must be a table of whole numbers: a row for each data step and one more"),
    "test_concepts": (_TABLE, "must be a table of whole numbers: a row less than concepts has"),
    "onsets": (
        exactly(
            "onsets",
            {
                "steps": listed(WHOLE),
                "counts": listed(WHOLE),
                "clients": NotRequired[listed(listed(WHOLE))],
            },
        ),
        "must be an object of lists of whole numbers: steps, counts, clients (which may be "
        "missing where there are no concepts)",
    ),
    "detectors": (
        of_few(Annotated[dict[NAME, Watched], Field(max_length=MOST_KINDS)]),
        f"must be an object: what each watches, by its name; choices: {', '.join(WATCHED)}",
    ),
    "drifts": (
        exactly(
            "drifts",
            {
                "kinds": listed(NAME, most=MOST_KINDS),
                **dict.fromkeys(("step", "client", "kind", "before", "after"), Any),
            },
        ),
        f"must be an object of after, before, client, kind, step, and as kinds at most {MOST_KINDS} names",
    ),
}
"""The type of each field of a header that is read later, and the rule that an error names."""

_CHECKED: TypeAdapter[Any] = TypeAdapter(
    at_least("Header", {name: NotRequired[kind] for name, (kind, _) in _HEADER.items()})
)


def refuse_wrong_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless the fields of a header that are read later are of their kind, or missing."""
    try:
        _CHECKED.validate_python(header)
    except ValidationError as error:
        name = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"][0]
        raise ValueError(f"{name} {_HEADER[str(name)][1]}") from error
    _refuse_wrong_concepts(header)
    _refuse_wrong_onsets(header)


def _refuse_wrong_concepts(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless a header's `concepts` and `test_concepts` fit each other, or are missing."""
    concepts, tested = header.get("concepts"), header.get("test_concepts")
    if concepts is None:
        if tested is not None:
            raise ValueError("test_concepts must be beside concepts")
        return
    if len(concepts) < 2 or len(set(map(len, concepts))) > 1:
        raise ValueError(f"concepts {_HEADER['concepts'][1]}")
    clients = len(concepts[0])
    if header.get("num_clients") not in (None, clients) or len(concepts) * clients > MOST_CONCEPTS:
        raise ValueError(
            f"concepts must have a column for each client, and at most {MOST_CONCEPTS} entries in all"
        )
    if tested is not None and list(map(len, tested)) != [clients] * (len(concepts) - 1):
        raise ValueError(f"test_concepts {_HEADER['test_concepts'][1]}")


def _refuse_wrong_onsets(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless a header's `onsets` are as `experiments.build.HEADER` says, or missing.

    `num_clients` and `concepts` are checked already.
    """
    if "onsets" not in header:
        return
    onsets, concepts = header["onsets"], header.get("concepts")
    clients = MOST_CLIENTS if header.get("num_clients") is None else header["num_clients"]
    last_step = MOST_ONSET_STEPS if concepts is None else len(concepts) - 2
    steps, counts, ids_at = onsets["steps"], onsets["counts"], onsets.get("clients")
    if ids_at is None and concepts is not None:
        raise ValueError(f"onsets {_HEADER['onsets'][1]}")
    if not _is_ascending(steps, 1, last_step):
        raise ValueError(f"onsets: steps must be ascending data steps from 1 to {last_step}")
    if len(counts) != len(steps) or not all(0 < count <= clients for count in counts):
        raise ValueError(f"onsets: counts must have 1 to {clients} clients for each of {len(steps)} steps")
    if ids_at is None:
        return
    if [len(ids) for ids in ids_at] != counts or sum(counts) > MOST_CONCEPTS:
        raise ValueError(
            f"onsets: clients must have as many ids as counts say, at most {MOST_CONCEPTS} in all"
        )
    if not all(_is_ascending(ids, 0, clients - 1) for ids in ids_at):
        raise ValueError(f"onsets: clients must be ascending ids of the {clients} clients")


def scored_clients(header: Mapping[str, Any], clients: int | None) -> int | None:
    """The number of clients in a header's `scored_clients`; without that field `clients`, all of them."""
    scored: Sized | None = header.get("scored_clients")
    return clients if scored is None else len(scored)


def _is_ascending(values: Sequence[int], least: int, most: int) -> bool:
    """Whether whole numbers are ascending, without a repetition, at least one, and all in [least, most]."""
    return (
        bool(values)
        and values[0] >= least
        and values[-1] <= most
        and all(one < next_ for one, next_ in pairwise(values))
    )
