"""Remarks on a trace that was built: what a user may not have meant, in one line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from emulator.errors import abbreviated, shorten

MOST_CAUSES = 1000
"""Most causes of bad rows that are told apart; those after them are counted as one."""

OTHER_CAUSES = "other causes"

STANDARDISED = "features are standardised over the training rows; ids of tokens are not, with --tokens"
PIXELS_STANDARDISED = "pixels are standardised over the training samples, each channel by itself"
TAKEN_IDS = "features are ids of tokens, and stay as they are"

_MOST_LETTERS = 150


def taken_features(names: Sequence[str]) -> str:
    """The columns that became features as none was named.

    >>> taken_features(["a", "b", "c", "d", "e"])
    'features: a, b, c and 2 more, as --features names none'
    """
    return f"features: {abbreviated(names, ', ')}, as --features names none"


def renumbered(classes: Sequence[str], remedy: str = "") -> list[str]:
    """That labels which are numbers get others, as some below them do not occur; `remedy` keeps them.

    >>> renumbered(["0", "2", "5"], "; x does not"), renumbered(["0", "1"]), renumbered(["a", "b"])
    (['labels are renumbered by what occurs: 2 is class 1 of 3; x does not'], [], [])
    """
    moved = next((number for number, name in enumerate(classes) if name != str(number)), None)
    if moved is None or not all(name.lstrip("-").isdecimal() for name in classes):
        return []
    what = f"{classes[moved]} is class {moved} of {len(classes)}"
    return [f"labels are renumbered by what occurs: {what}{remedy}"]


def same_but_for_spaces(classes: Iterable[str]) -> list[str]:
    """The classes whose names are the same but for spaces around them.

    >>> same_but_for_spaces(["cat", "cat ", "dog"])
    ["classes 'cat' and 'cat ' are two, and differ by spaces around their names only"]
    """
    spelled: dict[str, list[str]] = defaultdict(list)
    for name in classes:
        spelled[name.strip()].append(name)
    return [
        f"classes {' and '.join(map(repr, names[:2]))} are two, and differ by spaces around their names only"
        for names in spelled.values()
        if len(names) > 1
    ]


def on_clients(num_clients: int, num_without_tests: int, remedy: str | None) -> list[str]:
    """What is to be said of the number of clients, and of those without test samples.

    Args:
        num_clients: the clients of the trace.
        num_without_tests: those of them that have no test samples.
        remedy: what gives them some; None: tests are not wanted.

    >>> on_clients(1, 0, None)
    ['only 1 client: federated learning needs several; check what says whose a row is']
    >>> on_clients(40, 3, "raise --test-share")
    ['3 of 40 clients have no test samples, and are not scored: raise --test-share']
    """
    remarks = []
    if num_clients < 2:
        remarks.append(
            f"only {num_clients} client: federated learning needs several; check what says whose a row is"
        )
    if num_without_tests and remedy is not None:
        have, are = ("has", "is") if num_without_tests == 1 else ("have", "are")
        clients = f"{num_without_tests:,} of {num_clients:,} clients"
        remarks.append(f"{clients} {have} no test samples, and {are} not scored: {remedy}")
    return remarks


def cause_of(problem: str) -> str:
    """The cause of a problem of one row, without its own value and the remedy.

    A problem reads `NAME = VALUE: RULE; REMEDY` or `NAME WHAT: MORE; REMEDY`.

    >>> cause_of("day = 'soon': must be a date; give --time-format"), cause_of("x is missing; give --missing")
    ('day: must be a date', 'x is missing')
    """
    name, has_value, rest = problem.partition(" = ")
    if has_value and ": " in rest:
        rule = rest.rpartition(": ")[2]
        return shorten(f"{name}: {rule.partition('; ')[0]}", _MOST_LETTERS)
    return shorten(problem.partition("; ")[0].partition(": ")[0], _MOST_LETTERS)


def count_cause(causes: dict[str, int], problem: str) -> None:
    """Count the cause of a problem in `causes`, which are bounded."""
    cause = cause_of(problem)
    if cause not in causes and len(causes) >= MOST_CAUSES:
        cause = OTHER_CAUSES
    causes[cause] = causes.get(cause, 0) + 1


def left_out(number: int, what: str, causes: Mapping[str, int], first: str | None) -> str:
    """What was left out: how many, the commonest cause, and the first.

    >>> left_out(3, "bad rows", {"x is missing": 2, "y is missing": 1}, "t.csv, row 7: y is missing")
    '3 bad rows were left out; 2 of them: x is missing; the first: t.csv, row 7: y is missing'
    """
    parts = [f"{number} {what} were left out" if number != 1 else f"1 {what.removesuffix('s')} was left out"]
    if number > 1 and causes:
        cause, times = max(causes.items(), key=lambda item: item[1])
        parts.append(f"{times} of them: {cause}")
    if first is not None:
        parts.append(f"the first: {first}")
    return "; ".join(parts)
