"""`evaluate_with`: several uses of one training, as the arms that they stand for.

Works on tables as TOML has them, once all that a configuration extends is merged into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.errors import ConfigurationError, shorten

EVALUATE_WITH, ADAPTATION, WITHOUT = "evaluate_with", "adaptation", "none"

MOST_SHOWN = 80
"""Most letters of an invalid value in an error."""

Table = dict[str, Any]


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
    named = given if isinstance(given, Mapping) else {_name(name, use): use for use in given}
    if len(named) < len(given):
        raise ConfigurationError(f"{key}: two uses are named alike; give a table, with a name for each")
    shared = {key: value for key, value in arm.items() if key not in ("name", EVALUATE_WITH)}
    return [
        {"name": of_use, **shared, ADAPTATION: use, EVALUATE_WITH: UseOf(name)}
        for of_use, use in named.items()
    ]


def _is_to_expand(arm: Any) -> bool:
    return isinstance(arm, Mapping) and not isinstance(arm.get(EVALUATE_WITH, UseOf()), UseOf)


def _name(arm: str, use: Any) -> str:
    """The name of a use in a list: that of its arm, with the adaptation unless it is none."""
    kind = use.get("kind", use) if isinstance(use, Mapping) else use
    return arm if kind == WITHOUT else f"{arm}+{kind}"
