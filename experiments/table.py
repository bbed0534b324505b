"""`table.json`: one table over the experiments of a folder of run directories.

    version, name
    experiments    a list of {name, report, finished, planned}: the run directory's folder; its report.html,
                   relative to the table, null while it has none; how many runs are finished, of how many
    arms           their names, in the order of the first experiment that has them
    figures.<figure>.<arm>.<experiment>
                   {mean, std, seeds} over seeds; no entry where nothing was measured

The figures are `accuracy_omitting_drift` and `accuracy_including_drift`, in percent, with `published`
{mean, std} and `difference` (both null where no value is published); `models_sent`, a count of whole models,
and `relative_models_sent`, against the reference arm. All of it is read from the summaries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.errors import DataFileError, InputError
from experiments.comparison import COMPARED, compare, spread
from experiments.run_directory import RunDirectory, write_atomically
from experiments.summary import SUMMARY_VERSION

TABLE_VERSION = 1
COUNTED = ("models_sent", "relative_models_sent")

Table = dict[str, Any]


def run_directories(folder: Path) -> list[RunDirectory]:
    """The run directories right under `folder`, by name; none where it has none, or is one itself."""
    if not folder.is_dir() or RunDirectory(folder).experiment_path.is_file():
        return []
    found = (RunDirectory(path) for path in sorted(folder.iterdir()))
    return [directory for directory in found if directory.experiment_path.is_file()]


def build_table(name: str, directories: Sequence[RunDirectory]) -> Table:
    """The table over these run directories, by name; an experiment without a summary has no figures in it."""
    experiments = []
    arms: dict[str, None] = {}
    figures: dict[str, dict[str, dict[str, Any]]] = {figure: {} for figure in (*COMPARED, *COUNTED)}
    for directory in sorted(directories, key=lambda item: item.path.name):
        experiment, column = directory.experiment(), directory.path.name
        names = directory.arms()
        arms.update(dict.fromkeys(names))
        summary = _summary(directory)
        experiments.append(
            {
                "name": column,
                "report": f"{column}/{directory.report_path.name}"
                if directory.report_path.is_file()
                else None,
                "finished": len(directory.finished_pairs()),
                "planned": len(names) * len(directory.seeds()),
            }
        )
        for arm in [arm for arm in names if arm in summary]:
            cells = {
                **{figure: compare(summary[arm], figure, arm, experiment["report"]) for figure in COMPARED},
                **{figure: spread(summary[arm][figure]["per_seed"]) for figure in COUNTED},
            }
            for figure, cell in cells.items():
                if cell is not None:
                    figures[figure].setdefault(arm, {})[column] = cell
    return {
        "version": TABLE_VERSION,
        "name": name,
        "experiments": experiments,
        "arms": list(arms),
        "figures": figures,
    }


def write_table(folder: Path, directories: Sequence[RunDirectory]) -> Table:
    """Write `table.json` and `table.html` into `folder`, which the run directories lie in."""
    from experiments.report.table_page import render_table

    if not directories:
        raise InputError(f"{folder}: holds no run directory to make a table of")
    table = build_table(folder.resolve().name, directories)
    write_atomically(folder / "table.json", json.dumps(table, allow_nan=False, indent=2) + "\n")
    write_atomically(folder / "table.html", render_table(table))
    return table


def _summary(directory: RunDirectory) -> dict[str, Any]:
    """The arms of the summary; empty where there is none, since the reference arm has not finished."""
    path = directory.summary_path
    if not path.is_file():
        return {}
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        version, arms = summary["version"], summary["arms"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataFileError(path, f"cannot be read as a summary ({error!r})") from error
    if version != SUMMARY_VERSION:
        raise DataFileError(
            path,
            f"is a summary of version {version}, not {SUMMARY_VERSION}; driftscale report makes it again",
        )
    found: dict[str, Any] = arms
    return found
