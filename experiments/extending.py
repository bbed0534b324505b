"""`extends` and `evaluate_with`: a configuration as the one table, with the arms, that it amounts to.

Those that are extended come first, in their order, then the configuration itself, and the later value wins:
tables are merged key by key, arms by their names, and everything else is replaced. A part of another kind
replaces the whole part, as for --set: the settings were those of the other one. Arms of several uses are
replaced by these at the end. Works on tables as TOML has them, and reads no file itself; what the tables
mean is `config.py`'s.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.errors import ConfigurationError, UnknownNameError, naming, shorten
from emulator.errors import nearest as nearest_name
from emulator.storage.bounded import is_file
from experiments.shipped import SUFFIX, is_shipped, named, nearest, shipped_file

EXTENDS, ARMS = "extends", "arms"
"""The keys that are resolved here: what is extended, and which arms are picked."""

EVALUATE_WITH, ADAPTATION, WITHOUT = "evaluate_with", "adaptation", "none"
"""The keys of an arm that say how its models are used, and the adaptation that uses them as they are."""

CHOSEN = "chosen"
"""The table that says how settings of one file were chosen: neither inherited nor kept beside options."""

MOST_DEEP = 4
"""Most configurations that extend one another, above the one that is played."""

MOST_EXTENDED = 16
"""Most configurations that one may extend in all, those that they extend among them."""

MOST_SHOWN = 80
"""Most letters of an invalid value in an error."""

ALONE = {
    "trace": "source",
    "start": "file",
    **dict.fromkeys(("profile", "windows", "devices", "table", "files"), "path"),
}
"""What a text in place of a table is in that table, by the key that has it; of all other keys, the `kind`."""

INSTEAD: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "training": {"local_steps": ("local_epochs", "last"), "local_epochs": ("local_steps",)},
    "round": {"evaluate_every": ("evaluate_every_s",), "evaluate_every_s": ("evaluate_every",)},
    "report": {"target": ("targets",), "targets": ("target",)},
    "arm": {ADAPTATION: (EVALUATE_WITH,), EVALUATE_WITH: (ADAPTATION,)},
}
"""By table and key, the inherited keys in whose place it is, since a table may not have both."""

Table = dict[str, Any]


class Inheriting(Table):
    """The content of a configuration that extends others, which knows the file that each value is from.

    Attributes:
        files: How errors name each file, with what it says itself; in the order in which they were merged.
    """

    def __init__(self, table: Mapping[str, Any], files: Sequence[tuple[str, Table]]) -> None:
        super().__init__(table)
        self.files = files


def inherited_from(table: Mapping[str, Any], path: Sequence[str]) -> str:
    """The file that the value under `path` is inherited from; empty if the configuration itself has it.

    Also empty for a table that was merged of several files, and for a value that an option has overridden.
    """
    if not isinstance(table, Inheriting) or not path:
        return ""
    value, (*others, (_, own)) = value_at(table, path), table.files
    has_it = (where for where, said in reversed(others) if value_at(said, path) == value)
    return "" if value_at(own, path) == value else next(has_it, "")


def value_at(table: Any, path: Sequence[str]) -> Any:
    """The value under `path`, in which an arm goes by its name, and an entry by its number; None without."""
    for step in path:
        if isinstance(table, list | tuple):
            by_number = {str(number): entry for number, entry in enumerate(table)}
            table = by_number | {_name(entry): entry for entry in table}
        table = table.get(step) if isinstance(table, Mapping) else None
    return table


def beside(key: str, inherited: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """The keys of the `inherited` table `key` that hold beside its `own`: some exclude each other."""
    instead = INSTEAD.get(key, {})
    return _without(inherited, {other for name in own for other in instead.get(name, ())})


def extended(table: Table, path: Path, locate: Callable[[str], Path], read: Callable[[Path], Table]) -> Table:
    """The content of a configuration with all that it extends, and with the arms that it has or picks.

    Args:
        table: Its content; changed in place.
        path: Its file; what it extends is looked for beside it, then among the shipped configurations.
        locate: Maps an absolute path to an existing file that a configuration may read.
        read: The content of another file.

    Raises:
        ConfigurationError: What is extended is not there, extends the configuration itself, or is too deep;
            or what `expanded` raises.
        UnknownNameError: No arm has a name that is picked.
        InputError: What `locate` and `read` raise.
    """
    return expanded(merged(table, path, locate, read), named(path))


def merged(table: Table, path: Path, locate: Callable[[str], Path], read: Callable[[Path], Table]) -> Table:
    """As `extended`, with arms of several uses as they are written, unless uses of them are picked."""
    if EXTENDS not in table and ARMS not in table:
        return table
    reading = _Reading(locate, read)
    whole = reading.whole(table, path, ())
    return Inheriting(copy.deepcopy(whole), reading.files)  # the files stay as they are where keys are set


@dataclass(frozen=True)
class _Reading:
    """Reads configurations that extend one another; `files` are those read until now."""

    locate: Callable[[str], Path]
    read: Callable[[Path], Table]
    files: list[tuple[str, Table]] = field(default_factory=list)

    def whole(self, own: Table, path: Path, above: tuple[Path, ...]) -> Table:
        """The content of the file `path` with all that it extends; `above` are those that extend it."""
        where, chain = named(path), (*above, path)
        said = {key: value for key, value in own.items() if key not in (EXTENDS, ARMS)}
        table: Table = {}
        for text in _texts(own, EXTENDS, where, "a path, the name of a shipped one, or a list of both"):
            parent = self._find(text, path, where)
            self._refuse_endless(parent, chain, f"{where}: {EXTENDS} = {text!r}")
            inherited = self.whole(self.read(parent), parent, chain)
            table = _over(table, _without(inherited, {CHOSEN}))
        table = _over(table, said)
        self.files.append((where, said))
        picked = _texts(own, ARMS, where, "names of arms; an arm itself is a table [[arm]]")
        return _pick(expanded(table, where), picked, f"{where}: {ARMS}", said) if picked else table

    def _find(self, text: str, path: Path, where: str) -> Path:
        """The file that `text` stands for in the configuration `path`."""
        there = path.parent / text
        if not is_shipped(path) and is_file(there):
            with naming(f"{where}: {EXTENDS}"):
                self.locate(str(there.absolute()))
            return there
        if (shipped := shipped_file(text)) is not None:
            return shipped
        beside_it = [file.stem for file in path.parent.glob(f"*{SUFFIX}") if file.name != path.name]
        near = nearest_name(text.removesuffix(SUFFIX), beside_it)
        meant = f"did you mean {f'{near}{SUFFIX}'!r}?" if near is not None else nearest(Path(text))
        raise ConfigurationError(
            f"{where}: {EXTENDS} = {shorten(repr(text), MOST_SHOWN)}: no such file beside {where}, and no "
            f"shipped configuration; {meant or 'driftscale configs lists the shipped ones'}"
        )

    def _refuse_endless(self, parent: Path, chain: Sequence[Path], where: str) -> None:
        shown = " -> ".join(map(named, (*chain, parent)))
        if parent.resolve() in [path.resolve() for path in chain]:
            raise ConfigurationError(f"{where}: goes in a circle ({shown}); one must not extend the next")
        if len(chain) > MOST_DEEP:
            raise ConfigurationError(
                f"{where}: is more than {MOST_DEEP} deep ({shown}); extend one that is nearer to the first"
            )
        if len(self.files) + len(chain) > MOST_EXTENDED:
            raise ConfigurationError(f"{where}: is one of more than {MOST_EXTENDED} that are extended in all")


def _texts(table: Table, key: str, where: str, what: str) -> Sequence[str]:
    """The texts that a key has, one alone or a list of different ones; none if the key is not there."""
    if key not in table:
        return ()
    given = table[key]
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where}: {key} = {shorten(repr(given), MOST_SHOWN)}: must be {what}")
    repeated = next((text for text, times in Counter(texts).items() if times > 1), None)
    if repeated is not None:
        raise ConfigurationError(f"{where}: {key}: {repeated!r} is given twice; name it once")
    return texts


def _over(inherited: Table, own: Table) -> Table:
    """The content of a configuration over what it inherits."""
    if own.get("sweep") == {}:  # as everywhere, no sweep
        inherited = _without(inherited, {"sweep"})
    table: Table = _merged(inherited, own, "")
    before, arms = inherited.get("arm"), own.get("arm")
    if isinstance(before, list | tuple) and isinstance(arms, list | tuple):
        table["arm"] = _merged_arms(_named_apart(before, arms), arms)
    return table


def _merged(inherited: Any, own: Any, key: str) -> Any:
    """The value of a `key` over the one that it inherits."""
    name = ALONE.get(key, "kind")
    if isinstance(inherited, str) and isinstance(own, Mapping):
        inherited = {name: inherited}
    if not (isinstance(inherited, Mapping) and isinstance(own, Mapping)):
        return own
    if name in own and own[name] != inherited.get(name):  # the settings were those of another part
        return own
    kept = beside(key, inherited, own)
    return {**kept, **{key: _merged(kept.get(key), value, key) for key, value in own.items()}}


def _named_apart(inherited: Iterable[Any], own: Sequence[Any]) -> list[Any]:
    """The inherited arms; one of several uses is replaced by these if the own arms name one of them."""
    names, found = {_name(arm) for arm in own}, []
    for arm in inherited:
        uses = uses_of(arm, "")
        is_named = any(_name(use) in names - {_name(arm)} for use in uses)
        found += uses if is_named else [arm]
    return found


def _merged_arms(inherited: Iterable[Any], own: Sequence[Any]) -> list[Any]:
    """The inherited arms, each with what the first own arm of its name says; then the other own ones."""
    places = {_name(arm): place for place, arm in reversed([*enumerate(own)]) if _name(arm)}
    arms, taken = [], set()
    for arm in inherited:
        place = places.pop(_name(arm), None)
        taken.add(place)
        arms.append(arm if place is None else _merged(arm, own[place], "arm"))
    return [*arms, *(arm for place, arm in enumerate(own) if place not in taken)]


def _pick(table: Table, names: Sequence[str], where: str, said: Table) -> Table:
    """The content of a configuration with the arms of these names alone, in this order.

    The published values of the other arms go with them, and a headline on one of them that the configuration
    has not `said` itself. So do their best uses in an atlas, and all of it without its rival.
    """
    arms = table.get("arm")
    arms = arms if isinstance(arms, list | tuple) else ()
    known: dict[str, list[Any]] = {}
    for arm in filter(_name, arms):
        known.setdefault(_name(arm), []).append(arm)
    for name in names:
        if name not in known:
            raise UnknownNameError("arm", name, known, where)
    picked = {**table, "arm": [arm for name in names for arm in known[name]]}
    report = table.get("report")
    is_inherited = value_at(said, ("report", "headline")) is None
    if isinstance(report, Mapping) and is_inherited and report.get("headline") not in names:
        picked["report"] = report = _without(report, {"headline"})
    if isinstance(report, Mapping) and isinstance(report.get("published"), Mapping):
        others, published = known.keys() - {*names}, report["published"]
        published = {figure: _without(values, others) for figure, values in published.items()}
        picked["report"] = {**report, "published": published}
    atlas = table.get("atlas")
    if isinstance(atlas, Mapping) and "atlas" not in said:
        best = atlas.get("best")
        uses = best.items() if isinstance(best, Mapping) else ()
        picked["atlas"] = {**atlas, "best": _without(best, {row for row, arm in uses if arm not in names})}
        return picked if atlas.get("rival") in names else _without(picked, {"atlas"})
    return picked


def _without(values: Any, names: Collection[str]) -> Any:
    """A table without these keys; any other value as it is."""
    if not isinstance(values, Mapping):
        return values
    return {name: value for name, value in values.items() if name not in names}


def _name(arm: Any) -> str:
    """The name of an arm; empty if it has none."""
    name = arm.get("name") if isinstance(arm, Mapping) else None
    return name if isinstance(name, str) else ""


class UseOf(str):
    """What an arm that was made of a use has under `evaluate_with`: the name of the arm that it is of."""


def expanded(table: Table, where: str) -> Table:
    """The content of a configuration in which each arm with `evaluate_with` is replaced by its uses.

    The arms of its uses have all that it has, and differ in their name and their adaptation alone.

    Args:
        table: Its content; returned as it is if no arm has several uses.
        where: How errors name it.

    Raises:
        ConfigurationError: The uses of an arm are no list and no table of adaptations, or it has an
            adaptation of its own besides.
    """
    arms = table.get("arm")
    if not isinstance(arms, list | tuple) or not any(map(_is_to_expand, arms)):
        return table
    table["arm"] = [use for arm in arms for use in uses_of(arm, where)]
    return table


def uses_of(arm: Any, where: str) -> list[Any]:
    """The arms that `arm`, an entry of a configuration, stands for: itself, without `evaluate_with`."""
    if not _is_to_expand(arm):
        return [arm]
    name, given = str(arm.get("name", "")), arm[EVALUATE_WITH]
    key = f"{where}: arm {name!r}: {EVALUATE_WITH}"
    if ADAPTATION in arm:
        raise ConfigurationError(f"{key}: {ADAPTATION} is given, too; name it among the uses")
    if not isinstance(given, Mapping | list | tuple) or len(given) == 0:
        raise ConfigurationError(
            f"{key} = {shorten(repr(given), MOST_SHOWN)}: must be a list of adaptations, as in ['none', "
            f"'tuned'], or a table of them by names of arms"
        )
    named = given if isinstance(given, Mapping) else {_name_of_use(name, use): use for use in given}
    if len(named) < len(given):
        raise ConfigurationError(f"{key}: two uses are named alike; give a table, with a name for each")
    shared = {key: value for key, value in arm.items() if key not in ("name", EVALUATE_WITH)}
    return [
        {"name": of_use, **shared, ADAPTATION: use, EVALUATE_WITH: UseOf(name)}
        for of_use, use in named.items()
    ]


def _is_to_expand(arm: Any) -> bool:
    return isinstance(arm, Mapping) and not isinstance(arm.get(EVALUATE_WITH, UseOf()), UseOf)


def _name_of_use(arm: str, use: Any) -> str:
    """The name of a use in a list: that of its arm, with the adaptation unless it is none."""
    kind = use.get("kind", use) if isinstance(use, Mapping) else use
    return arm if kind == WITHOUT else f"{arm}+{str(kind).rpartition(':')[2]}"  # of one's own: its class
