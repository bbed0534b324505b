"""Known misreadings, and their remedies: looked up where an error about a name or a value is raised.

Imported, and its table read, only once there is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from emulator.storage.bounded import read_toml

TABLE = Path(__file__).resolve().parent / "misreadings.toml"


def remedy(kind: str, name: str, shown: object = None) -> str:
    """What stands for `name`, of a kind such as "option" or "aggregator"; empty if that is not known.

    Words show the name, or what is to be `shown` in its place.
    """
    known = _remedies().get(kind, {}).get(name.casefold(), "")
    return known.replace("{}", name if shown is None else str(shown))


def key_remedy(name: str, place: str = "") -> str:
    """The key that stands for the key `name` of the table at `place`, or words; empty if neither is known."""
    known = remedy("key", name)
    return "" if known == f"{place}.{name}" else did_you_mean_key(known)


def did_you_mean_key(known: str) -> str:
    """The question about a dotted key, with its table; words, and the empty text, stay as they are.

    >>> did_you_mean_key("round.rounds"), did_you_mean_key("seeds")
    ('did you mean round.rounds, in [round]?', 'did you mean seeds, above all tables?')
    """
    if not known or " " in known:
        return known
    table = known.rpartition(".")[0]
    return f"did you mean {known}, {f'in [{table}]' if table else 'above all tables'}?"


def option_remedy(option: str, value: str = "...") -> str:
    """What stands for an option: another one, the --set of a key, or words; empty if none is known."""
    key = option.lstrip("-").replace("-", "_")
    known = remedy("option", option) or (key if "." in key else remedy("key", key))
    is_key = known and " " not in known
    return f"did you mean --set {known}={value}?" if is_key else known


@cache
def _remedies() -> Mapping[str, Mapping[str, str]]:
    """The table by kind and by name; the file has it by remedy."""
    return {
        kind: {name: known for known, names in by_remedy.items() for name in names.casefold().split()}
        for kind, by_remedy in read_toml(TABLE).items()
    }
