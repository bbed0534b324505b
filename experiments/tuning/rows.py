"""The rows of a configuration, and the arms that are tried of each: its settings, each in all uses.

A row is an arm as a file has it, before `evaluate_with` expands it into its uses. Works on tables as TOML has
them, after they were validated; reads no file.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.errors import ConfigurationError, UnknownNameError
from experiments.extending import ADAPTATION, EVALUATE_WITH, UseOf, beside, uses_of
from experiments.reading import set_key
from experiments.results.reading.recorded import is_finite

RATE = "training.learning_rate"

NOT_PLAYED = ("atlas", "chosen", "tune", "arm")
"""Keys of a configuration that the one which is played lacks, or has its own of."""

NOT_OF_A_TRY = ("tune", "baseline", EVALUATE_WITH)
"""Keys of an arm that those which are played for it lack."""

Table = dict[str, Any]


@dataclass(frozen=True)
class Try:
    """An arm that is tried: a setting of a row in one use, with one combination of settings of that use.

    Attributes:
        name: Its name in the runs.
        use: The name of the arm that it would be in the configuration.
        adaptation: Its adaptation, as TOML has it; None if the arm does not name one.
        values: The settings of the adaptation that were tried, by name.
        arm: The arm.
    """

    name: str
    use: str
    adaptation: Any
    values: Mapping[str, Any]
    arm: Table


@dataclass(frozen=True)
class Setting:
    """The values of a row by dotted key below it: its learning rate and its named number; and its tries."""

    values: Mapping[str, Any]
    tries: Sequence[Try]


@dataclass(frozen=True)
class Row:
    """An arm that is tuned.

    Attributes:
        arm: Its table.
        grid: The values of its keys; numbers are ascending.
        use_grids: Those of its adaptations, by kind and setting.
        settings: All combinations of `grid`, the smaller values first.
    """

    arm: Table
    grid: Mapping[str, Sequence[Any]]
    use_grids: Mapping[str, Mapping[str, Sequence[Any]]]
    settings: Sequence[Setting]

    @property
    def name(self) -> str:
        return str(self.arm["name"])

    @property
    def is_baseline(self) -> bool:
        """Whether it is one of the arms without clusters, whose best is the rival."""
        return bool(self.arm.get("baseline"))


def names_of(settings: Sequence[Setting]) -> list[str]:
    """The names of the arms that play these settings."""
    return [tried.name for setting in settings for tried in setting.tries]


def rows_of(table: Table, where: str, names: Sequence[str] | None = None) -> list[Row]:
    """The rows of a configuration that have these names; None for all.

    Args:
        table: Its content, validated but not expanded.
        where: Names it in errors.
        names: Names of arms, also of others.

    Raises:
        ConfigurationError: It has no `[tune]`, or one of the arms has no named number.
        UnknownNameError: No arm is evaluated with an adaptation whose settings are tried.
    """
    if "tune" not in table:
        raise ConfigurationError(f"{where}: has no [tune]; add it, with learning_rate = [0.05, 0.2, 0.8]")
    uses = [use for arm in table["arm"] if has_uses(arm) for use in uses_of(arm, where)]
    kinds = [kind_of(use[ADAPTATION]) for use in uses]
    for kind in table["tune"].get("uses", {}):
        if kind not in kinds:
            raise UnknownNameError(f"kind in {EVALUATE_WITH}", kind, {*kinds}, f"{where}: tune.uses")
    asked = [arm for arm in table["arm"] if names is None or arm["name"] in names]
    return [_row(arm, table, where) for arm in asked]


def played_table(table: Table, rows: Sequence[Row], seeds: Sequence[int]) -> Table:
    """The configuration that is played on these seeds: each try of the `rows` is an arm of it.

    Arms that differ in their adaptation alone come one after the other. No models are kept.
    """
    kept = {key: copy.deepcopy(value) for key, value in table.items() if key not in NOT_PLAYED}
    report = {key: value for key, value in kept.get("report", {}).items() if key == "horizon_s"}
    arms = [tried.arm for row in rows for setting in row.settings for tried in setting.tries]
    return {**kept, "output": {"models": False}, "report": report, "seeds": [*seeds], "arm": arms}


def has_uses(arm: Table) -> bool:
    """Whether the arm has `evaluate_with`, and was not made of it."""
    return not isinstance(arm.get(EVALUATE_WITH, UseOf()), UseOf)


def kind_of(adaptation: Any) -> Any:
    """The kind of an adaptation as TOML has it: a text, or a table."""
    return adaptation["kind"] if isinstance(adaptation, Mapping) else adaptation


def _row(arm: Table, table: Table, where: str) -> Row:
    if not arm.get("tune"):
        raise ConfigurationError(
            f"{where}: arm.{arm['name']}: names no number to tune; add its key below the arm and its values, "
            f'as in tune = {{ "clusterer.num_models" = [4, 8, 16] }}, or leave the arm out with --arms'
        )
    tune, uses = table["tune"], [_complete(use, table) for use in uses_of(arm, where)]
    use_grids = tune.get("uses", {}) if has_uses(arm) else {}
    grid = {key: _in_order(values) for key, values in {RATE: tune["learning_rate"], **arm["tune"]}.items()}
    settings = [
        Setting(values, [tried for use in uses for tried in _tries(use, values, grid, use_grids)])
        for values in _combinations(grid)
    ]
    return Row(arm, grid, use_grids, settings)


def _complete(arm: Table, table: Table) -> Table:
    """The arm with the `[parts]` and the settings of `[training]` that it does not name."""
    training, own = table.get("training", {}), arm.get("training", {})
    return {**table.get("parts", {}), **arm, "training": {**beside("training", training, own), **own}}


def _in_order(values: Sequence[Any]) -> Sequence[Any]:
    """Numbers ascending; other values as they are given."""
    return sorted(values) if all(map(is_finite, values)) else values


def _tries(
    use: Table,
    setting: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    use_grids: Mapping[str, Mapping[str, Sequence[Any]]],
) -> Iterator[Try]:
    """The arms that play a setting in one use, of which its table is given."""
    name, adaptation = use["name"], use.get(ADAPTATION)
    use_grid = use_grids.get(kind_of(adaptation), {})
    for values in _combinations(use_grid):
        arm = {key: copy.deepcopy(value) for key, value in use.items() if key not in NOT_OF_A_TRY}
        every = {**setting, **{f"{ADAPTATION}.{key}": value for key, value in values.items()}}
        for key, value in every.items():
            set_key(arm, key, copy.deepcopy(value), f"arm.{name}.tune")
        grids = [*grid.values(), *use_grid.values()]
        texts = [_in_a_name(value, of) for value, of in zip(every.values(), grids, strict=True)]
        arm["name"] = "-".join([name, *texts])
        yield Try(arm["name"], name, arm.get(ADAPTATION), values, arm)


def _in_a_name(value: Any, grid: Sequence[Any]) -> str:
    """A number as it is; of another value its place in the grid."""
    return str(value) if is_finite(value) else f"v{grid.index(value)}"


def _combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
