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

from emulator.errors import ConfigurationError
from experiments.reading import set_key
from experiments.uses import ADAPTATION, EVALUATE_WITH, uses_of

RATE = "training.learning_rate"

NUM_FINALISTS = 3
"""Settings of a row that are played on the other seeds, too."""

NOT_TRIED = ("atlas", "chosen", "tune", "output", "parts", "arm")
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

    values: Mapping[str, float]
    tries: Sequence[Try]

    @property
    def names(self) -> list[str]:
        """The names of the arms that play it."""
        return [tried.name for tried in self.tries]


@dataclass(frozen=True)
class Row:
    """An arm that is tuned.

    Attributes:
        name: Its name.
        is_baseline: Whether it is one of the arms without clusters, whose best is the rival.
        has_uses: Whether it has `evaluate_with`.
        grid: The values of its keys, ascending.
        use_grids: Those of its adaptations, by kind and setting.
        settings: All combinations of `grid`, the smaller values first.
    """

    name: str
    is_baseline: bool
    has_uses: bool
    grid: Mapping[str, Sequence[float]]
    use_grids: Mapping[str, Mapping[str, Sequence[Any]]]
    settings: Sequence[Setting]


def rows_of(table: Table, where: str, names: Sequence[str]) -> list[Row]:
    """The rows of a configuration that have these names, in its order.

    Args:
        table: Its content, validated but not expanded.
        where: Names it in errors.
        names: Names of arms, of others too.

    Raises:
        ConfigurationError: It has no `[tune]`, or that names an adaptation that no arm has; or an arm has no
            named number.
    """
    tune = table.get("tune")
    if tune is None:
        raise ConfigurationError(
            f"{where}: has no [tune]; name the values that are tried, as in [tune] learning_rate = "
            f"[0.05, 0.2, 0.8]"
        )
    uses = [uses_of(arm, where) for arm in table["arm"]]
    kinds = dict.fromkeys(
        kind_of(use.get(ADAPTATION))
        for arm, of in zip(table["arm"], uses, strict=True)
        if of != [arm]
        for use in of
    )
    for kind in tune.get("uses", {}):
        if kind not in kinds:
            raise ConfigurationError(
                f"{where}: tune.uses.{kind}: no arm is evaluated with it; kinds in {EVALUATE_WITH}: "
                f"{', '.join(map(str, kinds)) or 'none'}"
            )
    return [_row(arm, tune, where) for arm in table["arm"] if arm["name"] in names]


def played_table(table: Table, rows: Sequence[Row], seeds: Sequence[int]) -> Table:
    """The configuration that is played on these seeds: each try of the `rows` is an arm of it.

    Arms that differ in their adaptation alone come one after the other.
    """
    kept = {key: copy.deepcopy(value) for key, value in table.items() if key not in NOT_TRIED}
    report = {key: value for key, value in kept.pop("report", {}).items() if key == "horizon_s"}
    parts = {"parts": table["parts"]} if "parts" in table else {}
    arms = [tried.arm for row in rows for setting in row.settings for tried in setting.tries]
    own = {"output": {"models": False}, "report": report, "seeds": [*seeds], "arm": arms}
    return {**kept, **parts, **own}


def kind_of(adaptation: Any) -> Any:
    """The kind of an adaptation as TOML has it: a text, or a table."""
    return adaptation["kind"] if isinstance(adaptation, Mapping) else adaptation


def _row(arm: Table, tune: Table, where: str) -> Row:
    name, number, uses = arm["name"], arm.get("tune"), uses_of(arm, where)
    if not number:
        raise ConfigurationError(
            f"{where}: arm.{name}: names no number to tune; add its key below the arm and its values, as in "
            f'tune = {{ "clusterer.num_models" = [4, 8, 16] }}, or leave the arm out with --arms'
        )
    grid = {key: sorted(values) for key, values in {RATE: tune["learning_rate"], **number}.items()}
    has_uses = uses != [arm]
    use_grids = tune.get("uses", {}) if has_uses else {}
    settings = []
    for values in itertools.product(*grid.values()):
        setting = dict(zip(grid, values, strict=True))
        tries = [tried for use in uses for tried in _tries(use, setting, use_grids, where)]
        settings.append(Setting(setting, tries))
    return Row(name, arm.get("baseline", False), has_uses, grid, use_grids, settings)


def _tries(
    use: Table, setting: Mapping[str, float], use_grids: Mapping[str, Any], where: str
) -> Iterator[Try]:
    """The arms that play a setting in one use, of which its table is given."""
    name, adaptation = use["name"], use.get(ADAPTATION)
    grid = use_grids.get(kind_of(adaptation), {})
    for chosen in itertools.product(*grid.values()):
        values = dict(zip(grid, chosen, strict=True))
        table = adaptation if isinstance(adaptation, Mapping) else {"kind": adaptation}
        tuned = {**table, **values} if values else adaptation
        arm = {key: copy.deepcopy(value) for key, value in use.items() if key not in NOT_OF_A_TRY}
        arm["name"] = "-".join(map(str, (name, *setting.values(), *chosen)))
        if tuned is not None:
            arm[ADAPTATION] = tuned
        for key, value in setting.items():
            set_key(arm, key, value, f"{where}: arm.{name}.tune")
        yield Try(arm["name"], name, tuned, values, arm)
