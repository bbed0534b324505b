"""`driftscale tune`: reads and checks the folder before the modules that play it are imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from emulator.storage.checkpoints import write_durably
from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.playing.command import RunCommand
from experiments.results.reading.run_directory import RunDirectory
from experiments.tuning.columns import folder_name, read_columns


def run_tune(command: RunCommand, given: Path, output: OutputFormat) -> None:
    """Tune the configurations of the command's folder, which was `given` so; keep and print the table.

    Raises RunError at the end if every setting of a row diverged.
    """
    if command.note:
        say(command.note, aside=True)
    columns, left_out = read_columns(command, given)
    for line in left_out:
        say(line, aside=True)
    from experiments.cli.playing import Printed
    from experiments.playing.play import play_several
    from experiments.tuning import table
    from experiments.tuning.command import refuse_undecided, tune

    class Show(Printed):
        """Progress alone: the table of the tune is in the place of reports."""

        def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None: ...

        def report_finished(self, directory: RunDirectory) -> None: ...

    show = Show(output)
    tuned = tune(command, columns, lambda several: play_several(command, several, show))
    seeds, folder = command.seeds or (), command.folder_of(folder_name(command))
    facts = [table.as_json(column, seeds) for column in tuned]
    shown = [(table.table_rows(column, seeds), column, table.notes(column, seeds)) for column in tuned]
    texts = [
        table.as_markdown(rows, column.column.member.experiment.name, below) for rows, column, below in shown
    ]
    write_durably(folder / "tune.json", json.dumps(facts, indent=2, allow_nan=False) + "\n")
    write_durably(folder / "tune.md", "\n".join(texts))
    if output is OutputFormat.JSON:
        print_json(facts)
    else:
        for rows, column, below in shown:
            print_table(rows, column.column.member.experiment.name)
            say("\n".join([*below, ""]))
        say(f"table: {folder / 'tune.md'}")
    refuse_undecided(tuned)
