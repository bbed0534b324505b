"""The schema of a round: what its log line, its columns and its checks are, from one table of fields.

The table is the dataclass of a round, `emulator.storage.runlog.RoundRecord`. A field has a name, a type, by
which its JSON values are checked, and by its default the value of lines that lack it. The rest is `Logged`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.messages import AnyTrigger, NamedNumbers
from emulator.numbers import LARGEST_LOGGED
from emulator.storage.log_lines import (
    FLAG,
    NUMBER,
    NUMBERS,
    WHOLE,
    WHOLES,
    Kind,
    by_name,
    by_number,
    either,
    object_of,
    or_none,
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
        since: The version of the log that has it first. Every line has the fields of version 1, which have no
            default; the others are missing in older logs.
        least: The least number, if there is one.
        most: The largest number, if there is one; a mean may exceed it by rounding.
        in_order: A time of at least 0, and not before the field in order that precedes it.
        scored: An array with an entry for each scored client; others have one for each client.
        by_cluster: Lists with a number for each of the round's clusters.
        in_a_line: The field's name in a line, and in a table, if it is another one: names in files are data.
        omitted: Left out of a line that would have its default.
        in_table: A number, or a list by its length, is a column of `rounds.parquet`.
        after: The column that its column follows; else it is the last of its type.
        tracked: A number, or a list by its length, is a point of trackers.
    """

    about: str = ""
    unit: str = ""
    missing: str = ""
    since: int = 1
    least: float | None = None
    most: float | None = None
    in_order: bool = False
    scored: bool = False
    by_cluster: bool = False
    in_a_line: str | None = None
    omitted: bool = False
    in_table: bool = True
    after: str | None = None
    tracked: bool = True


@dataclass(frozen=True)
class RoundField:
    """A field of a round; `kind` is that of its JSON value, or `array` the dtype of its array."""

    name: str
    line_name: str
    kind: Kind | None
    array: type[np.int64] | type[np.float32] | None
    default: Any
    logged: Logged

    @property
    def column(self) -> str | None:
        """The type of its numbers: "int", "float" or "bool"; "list[int]"; None for anything nested."""
        bare = "" if self.kind is None else self.kind.bare
        return bare if bare in COLUMNS else None


COLUMNS = ("int", "bool", "float", "list[int]")
"""The types of which fields are columns, and of lists their lengths."""


Check = Callable[[Mapping[str, Any]], None]
"""Raises ValueError unless numbers of a line are in their range."""


@dataclass(frozen=True)
class RoundSchema:
    """All that follows from the fields of a round, by their names in a line."""

    fields: tuple[RoundField, ...]
    names: tuple[str, ...]  # of all fields, in the order of a line
    known: frozenset[str]  # the same
    needed: frozenset[str]  # that every line must have; the others were added in later versions of the log
    renamed: Mapping[str, str]  # fields with another name in a line
    kinds: Mapping[str, Kind]  # of the fields that are not arrays
    arrays: Mapping[str, type[np.int64] | type[np.float32]]  # the dtypes of the others
    scored: frozenset[str]  # arrays with an entry for each scored client
    by_cluster: tuple[str, ...]  # lists with a number for each cluster, in an object
    omitted: tuple[tuple[str, Any], ...]  # fields left out of a line, and their value then
    checks: tuple[Check, ...]  # of ranges, in the order of a line

    @classmethod
    def of(cls, record: type) -> Self:
        """The schema of a dataclass; TypeError names a field whose declaration is not one of a round."""
        found = tuple(_fields(record))
        return cls(
            fields=found,
            names=tuple(item.line_name for item in found),
            known=frozenset(item.line_name for item in found),
            needed=frozenset(item.line_name for item in found if item.logged.since == 1),
            renamed={item.name: item.line_name for item in found if item.name != item.line_name},
            kinds={item.line_name: item.kind for item in found if item.kind is not None},
            arrays={item.line_name: item.array for item in found if item.array is not None},
            scored=frozenset(item.line_name for item in found if item.logged.scored),
            by_cluster=tuple(item.line_name for item in found if item.logged.by_cluster),
            omitted=tuple((item.line_name, item.default) for item in found if item.logged.omitted),
            checks=_checks(found),
        )

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

    def refuse_wrong(self, line: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        """Raise ValueError unless a line's values are of their kind, in their range, and fit the header.

        Args:
            line: the record, with the names of a log line; its arrays are already unpacked.
            header: the log's header, already checked.
        """
        kinds = self.kinds
        for name, value in line.items():
            kind = kinds.get(name)  # None of an array
            if kind is not None and type(value) not in kind.types and not kind.otherwise(value):
                raise ValueError(f"{name} must be of kind {kind.name}, and finite, up to {LARGEST_LOGGED:g}")
        for check in self.checks:
            check(line)
        self._refuse_other_size(line, header)

    def _refuse_other_size(self, line: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        """Raise ValueError unless a record's data step and the lengths of its arrays fit the header."""
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
        if not all(map(NUMBER.fits, values)):
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
        if not NUMBER.fits(value):
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


def _fields(record: type) -> list[RoundField]:
    hints = get_type_hints(record, include_extras=True)
    found = []
    for item in fields(record):
        hint, logged = hints[item.name], Logged()
        if get_origin(hint) is Annotated:
            hint, logged = get_args(hint)
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if hint not in KINDS and hint not in ARRAYS:
            raise TypeError(f"{item.name}: a field of a round cannot be {hint}")
        if (default is MISSING) != (logged.since == 1):
            raise TypeError(f"{item.name}: fields since version 1, and no others, have no default")
        found.append(
            RoundField(
                item.name,
                logged.in_a_line or item.name,
                KINDS.get(hint),
                ARRAYS.get(hint),
                default,
                logged,
            )
        )
    return found


def _checks(found: tuple[RoundField, ...]) -> tuple[Check, ...]:
    """The checks of all ranges, each at the place of its first field; times in order have one together."""
    checks: list[Check] = []
    in_order = [item.line_name for item in found if item.logged.in_order]
    for item in found:
        least, most = item.logged.least, item.logged.most
        if in_order and item.line_name == in_order[0]:
            checks.append(_in_order(in_order))
        elif least is not None and most is not None and item.logged.by_cluster:
            checks.append(_all_from_to(item.line_name, least, most))
        elif least is not None and most is not None:
            checks.append(_from_to(item.line_name, least, most))
        elif least is not None:
            checks.append(_at_least(item.line_name, least))
    return tuple(checks)


def _in_order(names: list[str]) -> Check:
    rule = f"{', '.join(names[:-1])} and {names[-1]} must be at least 0, and in this order"

    def check(line: Mapping[str, Any]) -> None:
        last = 0
        for name in names:
            if not last <= line[name]:
                raise ValueError(rule)
            last = line[name]

    return check


def _from_to(name: str, least: float, most: float) -> Check:
    def check(line: Mapping[str, Any]) -> None:
        value = line.get(name)
        if value is not None and not least <= value <= most + ROUNDING:
            raise ValueError(f"{name} = {value} must be from {least} to {most}")

    return check


def _all_from_to(name: str, least: float, most: float) -> Check:
    def check(line: Mapping[str, Any]) -> None:
        for key, values in (line.get(name) or {}).items():
            if not all(least <= value <= most + ROUNDING for value in values):
                raise ValueError(f"{name}: {key} has {values}, which must be from {least} to {most}")

    return check


def _at_least(name: str, least: float) -> Check:
    def check(line: Mapping[str, Any]) -> None:
        value = line.get(name)
        if value is not None and value < least:
            raise ValueError(f"{name} = {value} must be at least {least}")

    return check


def _kinds_of(message: type) -> dict[str, Kind]:
    """The kinds of the fields of a message."""
    hints = get_type_hints(message)
    return {item.name: KINDS[hints[item.name]] for item in fields(message)}


def _fits_noted(value: object) -> bool:
    """Whether an object is what is noted in a round; ValueError says what is wrong with it."""
    if isinstance(value, dict):
        refuse_wrong_noted(value)
    return value is None or isinstance(value, dict)


def _fits_trigger(value: object) -> bool:
    """Whether an object is what a trigger logs; ValueError says what is wrong with named numbers."""
    if isinstance(value, dict) and "numbers" in value:
        refuse_wrong_numbers(value)
        return True
    return _COMPARED.fits(value)


KINDS: dict[Any, Kind] = {
    kind: checked
    for bare, of_bare in (
        (bool, FLAG),
        (int, WHOLE),
        (float, NUMBER),
        (list[int], WHOLES),
        (dict[int, float | None], by_number(or_none(NUMBER))),
        (dict[int, list[float]], by_number(NUMBERS)),
        (dict[str, int], by_name(WHOLE)),
        (dict[str, list[int]], by_name(WHOLES)),
    )
    for kind, checked in ((bare, of_bare), (bare | None, or_none(of_bare)))
}
"""The kind of each type that a field of a round may have, but for arrays."""

ARRAYS: dict[Any, type[np.int64] | type[np.float32]] = {Ints | None: np.int64, Floats32 | None: np.float32}
"""The dtypes of arrays, of which there may be none in a round."""

TRIGGERS: dict[frozenset[str], type[AnyTrigger]] = {
    frozenset(item.name for item in fields(message)): message for message in get_args(AnyTrigger)
}
"""What triggers log, by the names in their objects in a line."""

TRIGGER_KINDS: dict[type[AnyTrigger], dict[str, Kind]] = {
    message: _kinds_of(message) for message in TRIGGERS.values() if message is not NamedNumbers
}
"""The kinds of the fields of each message of a trigger, but for that of named numbers."""

_COMPARED = either(*(object_of(message.__name__, kinds) for message, kinds in TRIGGER_KINDS.items()))

KINDS[dict[str, float] | None] = Kind("dict[str, float] | None", frozenset(), _fits_noted)

KINDS[AnyTrigger | None] = or_none(Kind(_COMPARED.name, frozenset(), _fits_trigger))
