"""`driftscale.check`: builds everything that a configuration needs, and trains nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from driftscale.arguments import (
    NOTHING,
    Config,
    Paths,
    data_of,
    names_of,
    seeds_of,
    source_of,
    sweep_of,
    table_of,
)
from driftscale.one_line import one_line
from experiments.cli.output import note

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Check:
    """What `check` has found out about configurations.

    Attributes:
        facts: For each configuration its facts by name, such as "clients" and "client updates in all"; they
            are those of `driftscale check --format json`.
    """

    facts: tuple[Mapping[str, Any], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The facts as a frame with a row per configuration, a column per fact."""
        import pandas as pd

        return pd.DataFrame([dict(facts) for facts in self.facts])

    def __repr__(self) -> str:
        width = max(len(name) for facts in self.facts for name in facts)
        return "\n\n".join(
            "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()) for facts in self.facts
        )

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        names = list(dict.fromkeys(name for facts in self.facts for name in facts))
        rows = [
            "".join(
                [
                    f"<th>{escape(name)}</th>",
                    *(f"<td>{escape(str(facts.get(name, '')))}</td>" for facts in self.facts),
                ]
            )
            for name in names
        ]
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


@one_line
def check(
    config: Config,
    set: Mapping[str, Any] = NOTHING,  # noqa: A002  (the name of the option)
    seeds: int | Iterable[int] | None = None,
    *,
    arms: str | Iterable[str] | None = None,
    data: Paths = (),
    sweep: Mapping[str, Any] = NOTHING,
    trial: bool = True,
    contracts: bool = False,
) -> Check:
    """Build everything that a configuration needs, and try own code, as `driftscale check` does.

    Args:
        config: A configuration or a folder of them, as `run` takes it.
        set: Values that override keys of the configuration, by dotted key.
        seeds: Seeds that replace those of the configuration; the clients of the first one are drawn, and the
            others checked for data at every step.
        arms: Names of the arms to build; default: all.
        data: Folder, or folders, to look for the configuration's data files in; default: those of the
            environment variable DRIFTSCALE_DATA.
        sweep: Lists of values by dotted key; all combinations are checked.
        trial: Whether to try own code: to play the first round of its arms, twice.
        contracts: Whether to run the contracts of your own parts, too, in worlds of about 13 clients: a part
            that is right for your clients alone, as by ids in its settings, may break its contract.

    Returns:
        The facts about each configuration, which shows itself as a table.

    Raises:
        EmulatorError: Of one line, if a run would be refused.
    """
    from experiments.cli.configurations.check_table import check_members_of
    from experiments.playing.command import RunCommand, members_of

    command = RunCommand(
        **source_of(config),
        overrides=table_of(set, "set"),
        sweep=sweep_of(sweep),
        seeds=seeds_of(seeds),
        arms=names_of(arms, "arms"),
        data=data_of(data),
    )

    if command.note:  # before anything in it is found wrong
        note(command.note)
    members, left_out = members_of(command)
    for line in left_out:
        note(line)
    return Check(tuple(check_members_of(members, note, trial=trial, contracts=contracts)))
