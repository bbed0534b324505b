"""The keys in which configurations differ: the columns that tell the rows of a table of many runs apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from experiments.results.reading.deciding import deciding

KINDS = ("kind", "source")
"""Keys that name the part of a table, whose other keys are the settings of that part."""

Path = tuple[str, ...]
Leaves = dict[Path, Any]


def differing_keys(experiments: Sequence[Mapping[str, Any]]) -> list[Path]:
    """The deciding keys of which the experiments have different values, as paths, in the order of the tables.

    A path of an arm begins with "arm" and leaves out the arm's name: it is in the list if some arm differs
    between two experiments that both have it. Settings of different parts are not compared, only the parts'
    kinds; an absent key differs from a present one. Lists of tables are compared entry by entry if they are
    equally long, as ("trace", "drift", "events", "0", "share"), and as a whole otherwise.
    """
    tables = [deciding(experiment) for experiment in experiments]
    arms = dict.fromkeys(name for table in tables for name in table["arm"])
    owners = [_comparable([_without(table, "arm", "name") for table in tables])]
    for arm in arms:
        have_it = [_without(table["arm"][arm], "name") for table in tables if arm in table["arm"]]
        owners.append(_comparable(have_it, ("arm",)))
    return list(dict.fromkeys(path for tables in owners for path in _differing(tables)))


def key_values(experiment: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, list[Any]]:
    """By arm of an experiment, the value of each of these paths; None where it has none."""
    table = deciding(experiment)
    shared = _without(table, "name")
    return {
        name: [_value({**shared, "arm": _without(arm, "name")}, path) for path in paths]
        for name, arm in table["arm"].items()
    }


def differing_values(one: Mapping[str, Any], other: Mapping[str, Any], path: Path = ()) -> Iterator[str]:
    """`key.key A and B` for each value in which two tables differ, below `path`; None for an absent one."""
    tables = _comparable([one, other], path)
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        values = [table.get(key) for table in tables]
        if values[0] != values[1]:
            yield f"{'.'.join(key)} {values[0]!r} and {values[1]!r}"


def short_names(paths: Sequence[Path]) -> list[str]:
    """The shortest end of each path that no other path ends in, joined by dots.

    A kind has the name of its part, unless another path has that name. No name begins with the number of an
    entry of a list.

    >>> short_names([("arm", "clusterer", "threshold"), ("arm", "clusterer", "kind")])
    ['threshold', 'clusterer']
    >>> short_names([("arm", "training", "batch_size"), ("executor", "batch_size"), ("batch_size",)])
    ['training.batch_size', 'executor.batch_size', 'batch_size']
    >>> short_names([("drift", "events", "0", "share"), ("drift", "events", "1", "share"), ("a", "mixes")])
    ['events.0.share', 'events.1.share', 'mixes']
    """
    parts = [path[:-1] if path[-1] in KINDS and len(path) > 1 else path for path in paths]
    parts = [part if parts.count(part) == 1 else path for part, path in zip(parts, paths, strict=True)]
    names = []
    for path in parts:
        others = [other for other in parts if other != path]
        length = next(
            (size for size in range(1, len(path)) if all(other[-size:] != path[-size:] for other in others)),
            len(path),
        )
        while length < len(path) and path[-length].isdecimal():
            length += 1
        names.append(".".join(path[-length:]))
    return names


def _without(table: Mapping[str, Any], *left_out: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in left_out}


def leaves(table: Mapping[str, Any], path: Path = (), whole: Collection[Path] = ()) -> Leaves:
    """The values of a table that are not tables, by path; entries of lists of tables have their number in it.

    Lists at the paths in `whole` are values of their own.
    """
    found: Leaves = {}
    for key, value in table.items():
        inner = (*path, key)
        if isinstance(value, Mapping) or (_as_table(value) and inner not in whole):
            found |= leaves(_as_table(value), inner, whole)
        else:
            found[inner] = value
    return found


def _as_table(value: object) -> Mapping[str, Any]:
    """A table as it is, a list of tables with their numbers as keys, and an empty one for any other value."""
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return {str(number): entry for number, entry in enumerate(value)}
    return value if isinstance(value, Mapping) else {}


def _lengths(table: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, int]]:
    """The path and length of each list in a table, also of those in the entries of lists."""
    for key, value in table.items():
        inner = (*path, key)
        if isinstance(value, list):
            yield inner, len(value)
        if inside := _as_table(value):
            yield from _lengths(inside, inner)


def _comparable(tables: Sequence[Mapping[str, Any]], path: Path = ()) -> list[Leaves]:
    """The leaves of these tables, below `path`, with lists that are not equally long as values."""
    lengths: dict[Path, int] = {}
    of_lists = (of_list for table in tables for of_list in _lengths(table, path))
    uneven = {inner for inner, length in of_lists if lengths.setdefault(inner, length) != length}
    return [leaves(table, path, uneven) for table in tables]


def _value(table: Mapping[str, Any], path: Path) -> Any:
    """The value at `path`; None if there is none, or a table."""
    value: Any = table
    for name in path:
        value = _as_table(value).get(name)
    return None if isinstance(value, Mapping) else value


def _differing(tables: Sequence[Leaves]) -> Iterator[Path]:
    """The paths at which these tables differ, among those with the same kinds along the path."""
    paths = dict.fromkeys(path for table in tables for path in table)
    # NOTE: most keys are the same everywhere; looking at their kinds took 25 times as long for 1,000 tables.
    for path in (path for path in paths if any(table.get(path) != tables[0].get(path) for table in tables)):
        values: dict[str, list[Any]] = {}
        for table in tables:
            values.setdefault(repr(_kinds(table, path)), []).append(table.get(path))
        if any(value != group[0] for group in values.values() for value in group):
            yield path


def _kinds(table: Leaves, path: Path) -> list[Any]:
    """The kinds of the parts that a path lies in, outermost first, without its own value."""
    around = [(*path[:depth], kind) for depth in range(len(path)) for kind in KINDS]
    return [table.get(kind) for kind in around if kind != path]
