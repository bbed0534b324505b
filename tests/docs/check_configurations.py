"""Checks configurations, and parts of them, by the models of the configuration: nothing is built or read."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emulator.errors import EmulatorError
from emulator.own_parts import is_own
from emulator.plugins import FIRST_LOOK
from experiments.config import Experiment
from experiments.extending import ARMS, EXTENDS, expanded, extended
from experiments.reading import SWEEP, read_file, read_table, set_key, take_first_look
from experiments.remedies.mistakes import mistakes
from experiments.running.sweep import merged_axes, table_axes
from tests.docs.page_state import PageState
from tests.docs.product import all_registries, shipped_files, shipped_names

TOP = (*Experiment.model_fields, SWEEP)
REQUIRED = ("name", "trace", "round", "arm")
SMALL: Mapping[str, Any] = {
    "name": "page",
    "seeds": [0],
    "trace": {"source": "digits", "clients": 10, "rounds_per_step": 1, "retain_rounds": 1},
    "round": {"rounds": 1, "participants": 1},
    "arm": [{"name": "global"}],
}
"""What a part of a configuration is completed by, if nothing on its page does."""
OTHERS = ("project", "build-system", "tool", "class", "reference_model")
"""Keys at the top of files that are no configurations."""


def problem_of_file(name: str, state: PageState) -> str:
    """What is wrong with a TOML file that a page has saved; empty if nothing is."""
    path = state.folder / name
    table, problem = _parsed(path.read_text(encoding="utf-8"))
    if problem:
        return problem
    if path.name == "pyproject.toml":
        return problem_of_package(table, state)
    if "class" in table:
        return _problem_of_profile(path)
    if EXTENDS in table or all(key in table for key in REQUIRED):
        return problem_of_whole(table, state)
    return problem_of_fragment(table, state)


def problem_of_text(text: str, state: PageState) -> str:
    """What is wrong with a part of a configuration that a page shows; empty if nothing is."""
    table, problem = _parsed(text)
    if problem or (set(table) & set(OTHERS) and not set(table) & set(TOP)):
        return problem or (problem_of_package(table, state) if "project" in table else "")
    return problem_of_fragment(table, state)


def problem_of_package(table: Mapping[str, Any], state: PageState) -> str:
    """What is wrong with the entry points in a pyproject.toml; empty if nothing is."""
    groups = {registry.group for registry in all_registries()}
    for group, entries in table.get("project", {}).get("entry-points", {}).items():
        if group.startswith("driftscale.") and group not in groups:
            return f"no group of entry points is called {group!r}; choices: {', '.join(sorted(groups))}"
        for value in entries.values():
            if problem := state.problem_of_part(value):
                return problem
    return ""


def problem_of_whole(
    table: Mapping[str, Any],
    state: PageState,
    axes: Sequence[str] | Mapping[str, Any] = (),
    where: str = "",
    *,
    is_lenient: bool = False,
) -> str:
    """What is wrong with a configuration, alone and with each swept value; empty if nothing is.

    If lenient, it may name files that no block has saved.
    """
    if problem := problem_of_parts(table, state):
        return problem
    try:
        base = copy.deepcopy(dict(extended(dict(table), state.folder / "page.toml", Path, read_file)))
        swept = merged_axes(table_axes(base.pop(SWEEP, {}), where), axes)
        for key, value in [("", None), *((axis.key, value) for axis in swept for value in axis.values)]:
            cell = copy.deepcopy(base)
            if key:
                set_key(cell, key, value, f"{key} = {value!r}")
            _look(cell, state, where, is_lenient=is_lenient)
    except EmulatorError as error:
        return str(error).removeprefix(": ")
    return ""


def problem_of_fragment(table: Mapping[str, Any], state: PageState) -> str:
    """What is wrong with a part of a configuration; empty if it fits one on the page, or a small one."""
    unknown = [key for key in table if key not in TOP]
    if unknown:
        return f"unknown key {unknown[0]!r}; tables and keys at the top: {', '.join(TOP)}"
    if problem := problem_of_parts(table, state):
        return problem
    if EXTENDS in table or ARMS in table:
        return problem_of_whole(table, state)
    first = ""
    for base in _bases(table, state):
        problem = _problem_of_completed(base, table, state)
        if not problem:
            return ""
        first = first or problem
    return first


def problem_of_parts(table: Any, state: PageState) -> str:
    """What is wrong with the parts of one's own that a table names; empty if nothing is."""
    for name in texts_in(table):
        if is_own(name) and (problem := state.problem_of_part(name)):
            return problem
    return ""


@cache
def arm_like(name: str) -> Mapping[str, Any] | None:
    """The arm of that name in a shipped configuration; None if none has one."""
    for shipped in shipped_names():
        for arm in _shipped_table(shipped)["arm"]:
            if arm["name"] == name:
                found: Mapping[str, Any] = arm
                return found
    return None


def _shipped_table(name: str) -> dict[str, Any]:
    return read_table(shipped_files(name)[0], locate=Path)


def _parsed(text: str) -> tuple[dict[str, Any], str]:
    try:
        return tomllib.loads(text), ""
    except tomllib.TOMLDecodeError as error:
        return {}, f"no TOML: {error}"


def _problem_of_profile(path: Path) -> str:
    from device_profiles import read_profile

    try:
        read_profile(path)
    except EmulatorError as error:
        return str(error).replace(f"{path.parent}/", "")
    return ""


def _look(table: dict[str, Any], state: PageState, where: str, *, is_lenient: bool) -> None:
    """Validate a configuration; raises EmulatorError."""
    with state.registered():
        take_first_look(table, where, state.locate(is_lenient=is_lenient))


def _bases(table: Mapping[str, Any], state: PageState) -> Iterator[dict[str, Any]]:
    """Configurations that `table` may be a part of, first those of the page."""
    yield from state.configurations()
    yield dict(SMALL)
    trace = table.get("trace", {})
    if "source" not in trace:
        yield from (
            _shipped_table(name) for name in ("fielding/figure-02", "feddrift/sine-2", "covid-mnist", "elec2")
        )


def _problem_of_completed(base: Mapping[str, Any], table: Mapping[str, Any], state: PageState) -> str:
    """What is wrong with `base` after `table` was merged into it, keys that are missing aside."""
    merged = _merged(base, {key: value for key, value in table.items() if key != SWEEP})
    merged.pop(SWEEP, None)
    try:
        for axis in table_axes(table.get(SWEEP, {}), ""):
            for value in axis.values:
                cell = copy.deepcopy(merged)
                _add_arm_of(axis.key, cell)
                set_key(cell, axis.key, value, f"{axis.key} = {value!r}")
                if problem := _invalid(cell, state):
                    return problem
    except EmulatorError as error:
        return str(error)
    return _invalid(merged, state)


def _invalid(table: dict[str, Any], state: PageState) -> str:
    """The first rule of the configuration that a table breaks, other than that keys are missing."""
    trace = table.get("trace", {})
    if state.has(str(trace.get("source"))):
        return ""
    try:
        with state.registered():
            Experiment.model_validate(expanded(table, "page"), context=FIRST_LOOK)
    except ValidationError as error:
        if all(problem["type"] == "missing" for problem in error.errors(include_url=False)):
            return ""
        return mistakes(error, table)[0]
    except EmulatorError as error:
        return str(error)
    return ""


def _add_arm_of(key: str, table: dict[str, Any]) -> None:
    """Add the arm that a key is of, as a shipped configuration has it, if the table lacks it."""
    parts = key.split(".")
    if parts[0] != "arm" or len(parts) < 2 or parts[1] in (arm.get("name") for arm in table["arm"]):
        return
    found = arm_like(parts[1])
    if found is not None:
        table["arm"] = [*table["arm"], copy.deepcopy(dict(found))]


def _merged(base: Any, over: Any) -> Any:
    """`base` with the values of `over`: tables are merged, but not those of parts; arms are added."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return copy.deepcopy(over)
    if "kind" in over or "source" in over:
        return copy.deepcopy(dict(over))
    merged = {**copy.deepcopy(dict(base))}
    for key, value in over.items():
        if key == "arm" and isinstance(value, list):
            names = [arm.get("name") for arm in value if isinstance(arm, Mapping)]
            others = [arm for arm in merged.get("arm", []) if arm.get("name") not in names]
            merged["arm"] = [*others, *copy.deepcopy(value)]
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def texts_in(value: Any) -> Iterator[str]:
    """All texts in nested tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
