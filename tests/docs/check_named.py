"""Checks configurations that a page names: saved by one of its blocks, shipped, or standing for another."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.errors import UnknownNameError
from experiments.reading import SWEEP, override_table, read_table
from experiments.running.sweep import merged_axes, table_axes
from experiments.shipped import nearest
from tests.docs.check_configurations import SMALL, arm_like, problem_of_whole
from tests.docs.page_state import PageState
from tests.docs.product import shipped_files

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*(\.\w+)?|<.*>|.*(…|\.\.\.).*|\$.*|.*/[A-Z][A-Z0-9_]*")
"""A word that stands for another, in a command that is not run."""


class WrongError(Exception):
    """A command that the program would refuse; the text says why."""


def check_named(
    name: str,
    overrides: Sequence[str] | Mapping[str, Any],
    axes: Sequence[str] | Mapping[str, Any],
    arms: Sequence[str],
    state: PageState,
    *,
    is_run: bool,
) -> None:
    """Check a configuration, or those of a folder, as a command or a call names them.

    Args:
        name: The configuration, or the folder.
        overrides: Texts such as "round.rounds=100", or values by key.
        axes: Texts such as "round.participants=5,10", or lists of values by key.
        arms: Names of arms.
        state: The page; keys that tell the results of several experiments apart are added.
        is_run: Whether `make docs-test` runs it. If not, the name may stand for another.

    Raises WrongError or EmulatorError.
    """
    tables = list(_tables(name, state, is_run=is_run))
    if not tables:
        near = nearest(Path(name))
        hint = f"; {near}" if near else ""
        raise WrongError(f"no configuration {name!r}: neither saved by a block above nor shipped{hint}")
    known: set[str] = set()
    for where, table, is_shipped in tables:
        if not is_shipped and where == name and PLACEHOLDER.fullmatch(name):
            _add_arms(table, [*arms, *_arms_in([*overrides, *axes])])
        swept = [axis.key for axis in merged_axes(table_axes(table.get(SWEEP, {}), where), axes)]
        state.namespace.keys |= columns_of(swept)
        override_table(table, overrides, None)
        known |= {arm["name"] for arm in table.get("arm", ())}
        if is_shipped and not (overrides or axes):
            continue  # other tests check it
        if problem := problem_of_whole(table, state, axes, where, is_lenient=not is_run):
            raise WrongError(problem)
    for arm in arms:
        if arm not in known and (is_run or not PLACEHOLDER.fullmatch(arm)):
            raise UnknownNameError("arm", arm, sorted(known), "--arms")


def is_configuration(name: str, state: PageState) -> bool:
    """Whether a command that takes a trace folder too would take it for a configuration."""
    return name.endswith(".toml") or bool(shipped_files(name))


def columns_of(swept: Iterable[str]) -> set[str]:
    """The columns that frames of the cells of a sweep may have in front.

    >>> sorted(columns_of(["round.participants"]))
    ['experiment', 'participants', 'round.participants']
    """
    ends = {".".join(key.split(".")[first:]) for key in swept for first in range(key.count(".") + 1)}
    return {"experiment", *ends} if ends else set()


def _tables(name: str, state: PageState, *, is_run: bool) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The configurations of that name, each with what errors call it, and whether it is shipped."""
    file = state.folder / name
    if file.is_file():
        yield name, _read(file), False
    elif file.is_dir() and name not in ("", "."):
        for path in sorted(file.glob("*.toml")):
            yield f"{name}/{path.name}", _read(path), False
    elif shipped := shipped_files(name):
        for path in shipped:
            yield path.name, _read(path), True
    elif not is_run and PLACEHOLDER.fullmatch(name):
        yield name, copy.deepcopy(dict(SMALL)), False


def _read(path: Path) -> dict[str, Any]:
    return read_table(path, locate=Path)


def _arms_in(settings: Iterable[str]) -> list[str]:
    """The arms in keys such as arm.fielding.training.learning_rate=0.1."""
    return [setting.split(".")[1] for setting in settings if setting.startswith("arm.")]


def _add_arms(table: dict[str, Any], names: Sequence[str]) -> None:
    """Add arms of these names, as shipped configurations have them, to a table that stands for another."""
    for name in dict.fromkeys(names):
        if name not in (arm["name"] for arm in table["arm"]):
            table["arm"].append(copy.deepcopy(dict(arm_like(name) or {"name": name})))
