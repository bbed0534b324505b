"""`driftscale tune`: reads and checks a folder before what plays it is imported, and shows the scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from emulator.errors import RunError, abbreviated
from emulator.storage.checkpoints import write_durably
from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.playing.command import RunCommand
from experiments.results.reading.run_directory import RunDirectory
from experiments.tuning.command import Tuned, folder_of, read_columns, tune
from experiments.tuning.halving import DIVERGED, Scores, setting_score
from experiments.tuning.rows import RATE, Setting

Cells = dict[str, object]


def run_tune(command: RunCommand, given: Path, output: OutputFormat) -> None:
    """Tune the configurations of the command's folder, which was `given` so; keep and print the scores.

    Raises RunError at the end if every setting of a row diverged.
    """
    if command.note:
        say(command.note, aside=True)
    columns, left_out = read_columns(command, given)
    for line in left_out:
        say(line, aside=True)
    from experiments.cli.playing import Printed
    from experiments.playing.play import play_several

    class Show(Printed):
        """Progress alone: the scores are shown in the place of reports."""

        def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None: ...

        def report_finished(self, directory: RunDirectory) -> None: ...

    tuned = tune(command, columns, lambda several: play_several(command, several, Show(output)))
    facts = {of.column.member.experiment.name: shown(of, len(command.seeds or ())) for of in tuned}
    file = folder_of(command) / "tune.json"
    write_durably(file, json.dumps(facts, indent=2) + "\n")
    if output is OutputFormat.JSON:
        print_json(facts)
    else:
        for name, (cells, notes) in facts.items():
            print_table(cells, name)
            say("\n".join([*notes, ""]))
        say(f"scores: {file}")
    failed = [
        f"{of.column.member.experiment.name}: {row}"
        for of in tuned
        for row in of.chosen
        if not of.chosen[row]
    ]
    if failed:
        raise RunError(
            f"every setting diverged, so that none is chosen, and what was before stays: "
            f"{abbreviated(failed)}; try smaller rates"
        )


def shown(tuned: Tuned, num_seeds: int) -> tuple[list[Cells], list[str]]:
    """The rows of the table of a column, and the lines below it; trainings are settings x seeds."""
    settings = sum(len(row.settings) for row in tuned.column.rows)
    played = settings + sum(map(len, tuned.finals.values())) * (num_seeds - 1)
    ties = [
        f"{row}: {'; '.join(map(_values, [choice.setting, *choice.ties]))} tie; the first is taken"
        for row, choice in tuned.chosen.items()
        if choice is not None and choice.ties
    ]
    share = f"{100 * played / (settings * num_seeds):.0f} %"
    return list(_cells(tuned, num_seeds)), [
        *ties,
        f"rival: {tuned.rival or 'none, all diverged'}",
        f"trainings: {played} of the {settings * num_seeds} of the whole grid ({share})",
        f"written: {tuned.file or 'nothing'}",
    ]


def _cells(tuned: Tuned, num_seeds: int) -> Iterator[Cells]:
    """A row for each learning rate of each arm, with the values of its number, if any, side by side."""
    for row in tuned.column.rows:
        choice, numbers = tuned.chosen[row.name], [key for key in row.grid if key != RATE]
        for rate in row.grid[RATE]:
            settings = [setting for setting in row.settings if setting.values[RATE] == rate]
            is_here = choice is not None and choice.setting in settings
            yield {
                "arm": row.name,
                "rate": f"{rate:g}",
                "number": ", ".join(f"{key} = {', '.join(map(_text, row.grid[key]))}" for key in numbers),
                "first seed (%)": _scores(settings, tuned.first),
                f"{num_seeds} seeds (%)": _scores(settings, tuned.scores),
                "chosen": f"{_values(choice.setting)}: {choice.best.use}" if choice and is_here else "",
            }


def _scores(settings: Sequence[Setting], scores: Scores) -> str:
    """The scores of settings in percent, with a dash for those that were not played on all seeds."""
    found = [setting_score(scores, of) if of.tries[0].name in scores else None for of in settings]
    return ", ".join(
        "-" if score is None else "diverged" if score == DIVERGED else f"{100 * score:.2f}" for score in found
    )


def _values(setting: Setting) -> str:
    return ", ".join(map(_text, setting.values.values()))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
