"""The schema of a round: what its log line, its columns and its checks are, from one table of fields.

The table is the dataclass of a round, `emulator.storage.runlog.RoundRecord`. A field has a name, a type, by
which pydantic checks its JSON values, and perhaps a default: a line that would have it is written without the
field. The rest is `Logged`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from emulator.arrays import Floats32, Ints
from emulator.messages import AnyTrigger, NamedNumbers
from emulator.numbers import LARGEST_LOGGED
from emulator.storage.log_lines import (
    NAME,
    NUMBER,
    WHOLE,
    at_least,
    by_key,
    exactly,
    listed,
    of_few,
    scored_clients,
)

MOST_NUMBERS = 16
"""Most named numbers of a trigger, and most that are noted: in a round, and as many names in all rounds of a
log, each a column."""

MOST_NUMBER_NAME = 32
"""Most letters of the name of such a number."""

ROUNDING = 1e-9
"""How far a mean of ones may exceed one."""

_NUMBER_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{MOST_NUMBER_NAME - 1}}}")


@dataclass(frozen=True)
class Logged:
    """What a field of a round declares besides its name, its type and its default.

    Attributes:
        about: Its meaning; of a list, what is in it, as its column is the number of these.
        unit: The unit of its numbers, of a list that of its length; empty for what has none.
        missing: When it is null; empty if it never is.
        least: The least number, if there is one.
        most: The largest number, if there is one; a mean may exceed it by rounding.
        in_order: A time of at least 0, and not before the field in order that precedes it.
        scored: An array with an entry for each scored client; others have one for each client.
        by_cluster: Lists with a number for each of the round's clusters.
        in_a_line: The field's name in a line, and in a table, if it is another one: names in files are data.
        in_table: A number, or a list by its length, is a column of `rounds.parquet`.
        after: The column that its column follows; else it is the last of its type.
        tracked: A number, or a list by its length, is a point of trackers.
    """

    about: str = ""
    unit: str = ""
    missing: str = ""
    least: float | None = None
    most: float | None = None
    in_order: bool = False
    scored: bool = False
    by_cluster: bool = False
    in_a_line: str | None = None
    in_table: bool = True
    after: str | None = None
    tracked: bool = True


@dataclass(frozen=True)
class RoundField:
    """A field of a round; `array` is the dtype of one that is an array."""

    name: str
    line_name: str
    hint: Any
    array: type[np.int64] | type[np.float32] | None
    default: Any
    logged: Logged

    @property
    def kind(self) -> str:
        """Its type, without null."""
        return "array" if self.array is not None else kind_of(self.hint)

    @property
    def may_miss(self) -> bool:
        """Whether it may be null."""
        return NoneType in get_args(self.hint)

    @property
    def column(self) -> str | None:
        """The type of its numbers: "int", "float" or "bool"; "list[int]"; None for anything nested."""
        return self.kind if self.kind in COLUMNS else None

    @property
    def is_optional(self) -> bool:
        """Whether a line may lack it: one that would have its default does."""
        return self.default is not MISSING

    @property
    def range(self) -> str:
        """Its bounds, as a rule; empty without any."""
        least, most = self.logged.least, self.logged.most
        if least is None:
            return ""
        return f"at least {least}" if most is None else f"from {least} to {most}"


COLUMNS = ("int", "bool", "float", "list[int]")
"""The types of which fields are columns, and of lists their lengths."""


@dataclass(frozen=True)
class RoundSchema:
    """All that follows from the fields of a round, by their names in a line."""

    fields: tuple[RoundField, ...]
    names: tuple[str, ...]  # of all fields, in the order of a line
    renamed: Mapping[str, str]  # fields with another name in a line
    arrays: Mapping[str, type[np.int64] | type[np.float32]]  # their dtypes
    scored: frozenset[str]  # arrays with an entry for each scored client
    by_cluster: tuple[str, ...]  # lists with a number for each cluster, in an object
    optional: tuple[tuple[str, Any], ...]  # fields left out of a line that would have these values
    in_order: tuple[str, ...]  # times, none before the one that precedes it

    @classmethod
    def of(cls, record: type) -> Self:
        """The schema of a dataclass; TypeError names a field whose declaration is not one of a round."""
        found = tuple(_fields(record))
        return cls(
            fields=found,
            names=tuple(item.line_name for item in found),
            renamed={item.name: item.line_name for item in found if item.name != item.line_name},
            arrays={item.line_name: item.array for item in found if item.array is not None},
            scored=frozenset(item.line_name for item in found if item.logged.scored),
            by_cluster=tuple(item.line_name for item in found if item.logged.by_cluster),
            optional=tuple((item.line_name, item.default) for item in found if item.is_optional),
            in_order=tuple(item.line_name for item in found if item.logged.in_order),
        )

    @cached_property
    def _line(self) -> TypeAdapter[dict[str, Any]]:
        types = {item.line_name: _in_a_line(item) for item in self.fields}
        return TypeAdapter(at_least("Line", {"kind": Literal["round"], **types}))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def parse(self, content: bytes) -> dict[str, Any]:
        """The record in a line, by the names of its fields in one.

        Types, ranges and the order of times are checked; arrays are not unpacked yet. ValueError says what is
        wrong.
        """
        try:
            line = self._line.validate_json(content)
        except ValidationError as error:
            raise ValueError(self._problem(error)) from error
        del line["kind"]
        unknown = next((name for name in line if name not in self._known), None)
        if unknown is not None:
            unknown = unknown[:MOST_NUMBER_NAME]
            raise ValueError(
                f"damaged, or of a later version of driftscale: has the unknown field {unknown!r}"
            )
        times = (0, *(line[name] for name in self.in_order))
        if not all(before <= after for before, after in pairwise(times)):
            *first, last = self.in_order
            raise ValueError(f"{', '.join(first)} and {last} must be at least 0, and in this order")
        if "numbers" in (line.get("trigger") or ()):
            refuse_wrong_numbers(line["trigger"])
        if line.get("noted") is not None:
            refuse_wrong_noted(line["noted"])
        return line

    def _problem(self, error: ValidationError) -> str:
        """One line for the first error."""
        first = error.errors(include_url=False, include_context=False)[0]
        name, *inner = first["loc"] or ("",)
        if name == "":
            return f"not a line of a run log ({first['msg']})"
        if name == "kind":
            return "its kind is not 'round'"
        item = next(item for item in self.fields if item.line_name == name)
        if first["type"] == "missing" and not inner:
            problem = f"damaged, or of an earlier version of driftscale: lacks {name}"
        elif item.array is not None:
            problem = f"{name} is not an array ({first['msg']})"
        elif first["type"] in OUT_OF_RANGE and item.range and abs(first["input"]) <= LARGEST_LOGGED:
            has = f"{name} has {first['input']}, which" if inner else f"{name} = {first['input']}"
            problem = f"{has} must be {item.range}"
        else:
            kind = f"{item.kind} | None" if item.may_miss else item.kind
            bounds = ", of at most 64 bits" if item.column in ("int", "list[int]") else ""
            bounds = f", and finite, up to {LARGEST_LOGGED:g}" if "float" in kind else bounds
            problem = f"{name} must be of kind {kind}{bounds}"
        return problem

    def columns(self, column: str) -> tuple[RoundField, ...]:
        """The fields that are columns of a table of rounds, of this type, in the order of its columns."""
        ordered: list[RoundField] = []
        for item in self.fields:
            if item.column == column and item.logged.in_table:
                place = len(ordered)
                if item.logged.after is not None:
                    place = 1 + [other.line_name for other in ordered].index(item.logged.after)
                ordered.insert(place, item)
        return tuple(ordered)

    def refuse_other_size(self, line: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        """Raise ValueError unless a record's data step and the lengths of its arrays fit the header.

        Args:
            line: The record, parsed, with its arrays unpacked.
            header: The log's header, already checked.
        """
        steps = len(header["concepts"]) - 1 if "concepts" in header else None
        if steps is not None and line["step"] >= steps:
            raise ValueError(f"step = {line['step']}: there are {steps} data steps")
        clients = header.get("num_clients")
        if clients is None and "concepts" in header:
            clients = len(header["concepts"][0])
        holding = line.get("holding")
        if holding is not None and (holding < 1 or (clients is not None and holding >= clients)):
            raise ValueError(
                f"holding = {holding} must be at least 1, and below the number of clients, {clients}"
            )
        for name in self.arrays:
            values = line.get(name)
            expected = scored_clients(header, clients) if name in self.scored else clients
            if values is not None and expected is not None and len(values) != expected:
                raise ValueError(f"{name} has {len(values)} entries, for {expected} clients")
        for name in self.by_cluster:
            for key, values in (line.get(name) or {}).items():
                if len(values) != len(line["clusters"]):
                    raise ValueError(
                        f"{name}: {key} has {len(values)} numbers, for {len(line['clusters'])} clusters"
                    )


def refuse_wrong_numbers(trigger: Mapping[str, Any]) -> None:
    """Raise ValueError unless a trigger's fields are those of `NamedNumbers`, and within its bounds.

    >>> refuse_wrong_numbers({"numbers": {"spread": 0.5, "sizes": [3, 4]}, "clusters": 2, "fired": False})
    """
    if trigger.keys() != {"numbers", "clusters", "fired"}:
        raise ValueError("trigger must have numbers, clusters and fired, and nothing else")
    numbers, clusters = trigger["numbers"], trigger["clusters"]
    if type(clusters) is not int or clusters < 1 or type(trigger["fired"]) is not bool:
        raise ValueError("trigger: clusters must be an int of at least 1, and fired a bool")
    _refuse_wrong_names("trigger", numbers)
    for name, value in numbers.items():
        values = value if isinstance(value, list) else [value]
        if not all(map(_is_number, values)):
            raise ValueError(
                f"trigger: {name} must be a finite number, an int or float of Python, or a list of them"
            )
        if isinstance(value, list) and len(value) != clusters:
            raise ValueError(f"trigger: {name} has {len(value)} numbers, for {clusters} clusters")


def refuse_wrong_noted(noted: Mapping[str, Any]) -> None:
    """Raise ValueError unless what was noted in a round is finite numbers by name, within their bounds.

    >>> refuse_wrong_noted({"disparity": 0.5})
    """
    _refuse_wrong_names("noted", noted)
    for name, value in noted.items():
        if not _is_number(value):
            raise ValueError(f"noted: {name} must be a finite number, an int or float of Python")


def _refuse_wrong_names(field: str, numbers: object) -> None:
    """Raise ValueError unless the numbers of this field are a mapping, not too large, with names."""
    if not isinstance(numbers, Mapping) or len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{field}: its numbers must be a mapping of at most {MOST_NUMBERS} names")
    for name in numbers:
        if not isinstance(name, str) or _NUMBER_NAME.fullmatch(name) is None:
            raise ValueError(
                f"{field}: {str(name)[: 2 * MOST_NUMBER_NAME]!r} cannot name a number: at most "
                f"{MOST_NUMBER_NAME} lower-case letters, digits and underscores, first a letter"
            )


@dataclass(frozen=True)
class NumberNames:
    """The names of all numbers in a log so far: of triggers, and of what was noted."""

    trigger: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()

    def after(self, trigger: Mapping[str, Any] | None, noted: Mapping[str, Any] | None) -> NumberNames:
        """The names with those of one more round; ValueError if they are too many."""
        numbers = None if trigger is None else trigger.get("numbers")
        if numbers is None and noted is None:  # as in most rounds
            return self
        after = NumberNames(self.trigger.union(numbers or ()), self.noted.union(noted or ()))
        for field, names in vars(after).items():
            if len(names) > MOST_NUMBERS:
                raise ValueError(
                    f"{field}: its numbers have had {len(names)} names; at most {MOST_NUMBERS} in a log"
                )
        return after


def _is_number(value: object) -> bool:
    """Whether a named number is in bounds; of an int, those in which floats hold all integers."""
    if type(value) is int:
        return -(2**53) <= value <= 2**53
    return type(value) is float and abs(value) <= LARGEST_LOGGED


def kind_of(hint: Any) -> str:
    """A type as text, without null.

    >>> kind_of(dict[int, float | None] | None)
    'dict[int, float | None]'
    """
    text = str(hint) if get_origin(hint) else getattr(hint, "__name__", str(hint))
    return re.sub(r"\w+\.", "", text).removesuffix(" | None")


def _fields(record: type) -> list[RoundField]:
    hints = get_type_hints(record, include_extras=True)
    found = []
    for item in fields(record):
        hint, logged = hints[item.name], Logged()
        if get_origin(hint) is Annotated:
            hint, logged = get_args(hint)
        default = item.default if item.default_factory is MISSING else item.default_factory()
        found.append(
            RoundField(item.name, logged.in_a_line or item.name, hint, ARRAYS.get(hint), default, logged)
        )
        _in_a_line(found[-1])
    return found


def _in_a_line(item: RoundField) -> Any:
    """The type of a field's JSON value; TypeError if a field cannot have its type."""
    least, most = item.logged.least, item.logged.most
    bounds = Field(ge=least, le=None if most is None else most + ROUNDING)
    try:
        kind = WRITTEN[item.hint] if item.hint in WRITTEN else _checked(item.hint, bounds)
    except KeyError as error:
        raise TypeError(f"{item.name}: a field of a round cannot be {item.hint}") from error
    return NotRequired[kind] if item.is_optional else kind


def _checked(hint: Any, bounds: Any) -> Any:
    """A type with the bounds of every log, and these of its numbers; KeyError if it cannot be in a line."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[*(_checked(arg, bounds) for arg in args)]
    if origin is list:
        return listed(_checked(args[0], bounds))
    if origin is dict:
        return by_key({int: KEY, str: NAME}[args[0]], _checked(args[1], bounds))
    bare = {bool: bool, NoneType: None, int: WHOLE, float: NUMBER}[hint]
    return Annotated[bare, bounds] if hint in (int, float) else bare


ARRAYS: dict[Any, type[np.int64] | type[np.float32]] = {Ints | None: np.int64, Floats32 | None: np.float32}
"""The dtypes of arrays, of which there may be none in a round."""

KEY = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})$"), AfterValidator(int)]
"""A whole number from 0 on that is a key of an object, in the one form in which we write it."""

TRIGGERS: dict[frozenset[str], type[AnyTrigger]] = {
    frozenset(item.name for item in fields(message)): message for message in get_args(AnyTrigger)
}
"""What triggers log, by the names in their objects in a line."""

TRIGGER_HINTS: dict[type[AnyTrigger], dict[str, Any]] = {
    message: get_type_hints(message) for message in TRIGGERS.values() if message is not NamedNumbers
}
"""The types of the fields of each message of a trigger, but for that of named numbers."""

_COMPARED = (
    exactly(message.__name__, {name: _checked(hint, Field()) for name, hint in hints.items()})
    for message, hints in TRIGGER_HINTS.items()
)
_PACKED: Any = exactly("Packed", {"dtype": str, "zlib": str, "difference": NotRequired[bool]})
_IDS: Any = listed(WHOLE) | _PACKED

WRITTEN: dict[Any, Any] = {
    Ints | None: _IDS | None,
    Floats32 | None: listed(NUMBER | None) | _PACKED | None,
    dict[str, list[int]] | None: by_key(NAME, _IDS) | None,
    dict[str, float] | None: dict[str, Any] | None,  # has rules of its own
    AnyTrigger | None: of_few(Union[*_COMPARED, at_least("NamedNumbers", {"numbers": Any})]) | None,
}
"""The types of the JSON values of fields that are written in another form, or have further rules."""

OUT_OF_RANGE = ("greater_than_equal", "less_than_equal")
"""Pydantic's errors of bounds."""
