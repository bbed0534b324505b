"""`chosen/NAME.toml`: what was chosen for the configuration NAME beside it, which names it in `extends`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.errors import ConfigurationError, InputError
from emulator.storage.bounded import is_file
from emulator.storage.checkpoints import make_folder, write_durably
from experiments.extending import CHOSEN, EVALUATE_WITH, EXTENDS
from experiments.reading import read_file
from experiments.shipped import SUFFIX, is_shipped, name_of, named
from experiments.tuning.halving import Chosen
from experiments.tuning.rows import Row, has_uses, kind_of

MARK = "# driftscale tune"
"""What the first line of such a file begins with. Others are not overwritten, unless they have no key."""

BY = "mean accuracy, of the best three on the first seed"
EDGE = "the values of tune end there"

Table = dict[str, Any]


def chosen_path(path: Path) -> Path:
    """The file of what was chosen for the configuration at `path`."""
    return path.parent / "chosen" / path.name


def without_choices(own: Table, path: Path) -> Table:
    """The content of the file at `path`, not extending what was chosen for it before.

    Raises ConfigurationError unless it extends that, after all others: the choices would have no effect.
    """
    given = own.get(EXTENDS, [])
    texts = [given] if isinstance(given, str) else given
    line = _as_extended(path)
    others = [text for text in texts if text not in (line, f"{line}{SUFFIX}")]
    if [*others, *texts[-1:]] != texts or len(others) == len(texts):
        raise ConfigurationError(
            f"{named(path)}: does not extend what is chosen for it, after all others, so that it would have "
            f"no effect; it needs {EXTENDS} = {json.dumps([*others, line])}"
        )
    left = {key: value for key, value in own.items() if key != EXTENDS}
    return {**left, EXTENDS: others} if others else left


def kept_choices(path: Path) -> Table:
    """The content of the file of what was chosen before for the configuration at `path`; empty without one.

    Raises InputError if it is neither of `driftscale tune` nor a default, so that it may not be overwritten.
    """
    file = chosen_path(path)
    if not is_file(file):
        return {}
    table = read_file(file)
    if table and not file.read_text(encoding="utf-8").startswith(MARK):
        raise InputError(
            f"{file}: is overwritten only if its first line begins with {MARK!r}; move what you have written "
            f"there into {path.name}"
        )
    return table


def write_choices(
    path: Path,
    command: str,
    seeds: Sequence[int],
    chosen: Sequence[tuple[Row, Chosen]],
    rival: str,
    kept: Mapping[str, Any],
) -> Path:
    """Write the file of what was chosen for the configuration at `path`, and return its path.

    Args:
        path: The configuration.
        command: The command that chose.
        seeds: The seeds on which it did.
        chosen: The rows for which it did, and what it chose.
        rival: The best arm without clusters.
        kept: The content of the file before, of which other rows are kept.
    """
    names = {row.name for row, _ in chosen}
    best = kept.get("atlas", {}).get("best", {}) | {row.name: choice.best.use for row, choice in chosen}
    others = [arm for arm in kept.get("arm", []) if arm["name"] not in names]
    arms = [*others, *(_arm(row, choice) for row, choice in chosen)]
    entries = kept.get(CHOSEN, {})
    entries = {key: entry for key, entry in entries.items() if not any(f"arm.{row}." in key for row in names)}
    for row, choice in chosen:
        entries |= {key: _entry(value, grid, seeds) for key, value, grid in _values(row, choice)}
    lines = [
        f"{MARK}: written by {command}",
        *("", "[atlas]", f"seeds = {json.dumps([*seeds])}", f"rival = {json.dumps(rival)}"),
        *(f"best = {_inline(best)}", ""),
        *(line for arm in arms for line in ("[[arm]]", *map(" = ".join, _pairs(arm)), "")),
        f"[{CHOSEN}]",
        *(f"{json.dumps(key)} = {_inline(entry)}" for key, entry in entries.items()),
    ]
    file = chosen_path(path)
    make_folder(file.parent)
    write_durably(file, "\n".join(lines) + "\n")
    return file


def _as_extended(path: Path) -> str:
    """How the configuration at `path` names the file of its choices in `extends`: by its path from there.

    A shipped one names it as all that is shipped, from which its suffix may be left out.
    """
    file = chosen_path(path.resolve())
    if is_shipped(file):
        return name_of(file)
    return f"{file.parent.name}/{file.name}"


def _arm(row: Row, choice: Chosen) -> Table:
    """The table of an arm that has what was chosen, and nothing else."""
    arm: Table = {"name": row.name}
    for key in row.grid:
        _add(arm, choice.setting.tries[0].arm, {"training": {}, **row.arm}, key.split("."))
    if has_uses(row.arm):
        arm[EVALUATE_WITH] = {tried.use: tried.adaptation for tried in choice.uses}
    return arm


def _add(target: Table, source: Mapping[str, Any], own: Any, path: Sequence[str]) -> None:
    """Set the value under `path` as `source` has it; of a list, or of a table that is not its `own`, all."""
    first, *rest = path
    if rest and isinstance(source[first], Mapping) and first in own:
        _add(target.setdefault(first, {}), source[first], own[first], rest)
    else:
        target[first] = source[first]


def _values(row: Row, choice: Chosen) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """(dotted key, value, grid) of each setting that was chosen."""
    for key, value in choice.setting.values.items():
        yield f"arm.{row.name}.{key}", value, row.grid[key]
    for tried in choice.uses:
        for name, value in tried.values.items():
            grid = row.use_grids[kind_of(tried.adaptation)][name]
            yield f"arm.{row.name}.{EVALUATE_WITH}.{tried.use}.{name}", value, grid


def _entry(value: Any, grid: Sequence[Any], seeds: Sequence[int]) -> Table:
    """The entry of `[chosen]` for a value."""
    are_numbers = all(type(tried) in (int, float) for tried in grid)
    is_at_edge = are_numbers and value in (min(grid), max(grid))
    return {"seeds": [*seeds], "grid": [*grid], "by": BY, **({"edge": EDGE} if is_at_edge else {})}


def _pairs(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys of a table and their values as TOML has them."""
    for key, value in table.items():
        yield (key if key.isidentifier() else json.dumps(key)), _inline(value)


def _inline(value: Any) -> str:
    """A value as TOML has it, on one line: JSON and TOML write texts, numbers and flags alike."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(map(' = '.join, _pairs(value)))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
