"""The commands of `driftscale`, except those of `profiles`, `traces` and `cluster`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli import cluster as cluster_commands
from experiments.cli import completing, profiles
from experiments.cli.output import OutputFormat, say
from experiments.cli.paths import Data, path_for
from experiments.cli.traces import commands as trace_commands
from experiments.shipped import take

UsageError: Any = typer.BadParameter.__base__
"""What typer raises for a command line that it refuses; it gives no public name to it."""

app = typer.Typer(
    name="driftscale",
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Trace-driven emulation of federated learning at fleet scale, under data drift.",
    epilog="Exit codes: 0 done, 2 bad input, 3 a run failed or was stopped, 130 interrupted and resumable, "
    "141 standard output was closed before all output was printed.",
)
app.add_typer(profiles.app, name="profiles")
app.add_typer(trace_commands.app, name="traces")
app.add_typer(cluster_commands.app, name="cluster")


@cache
def command() -> Callable[..., Any]:
    """All commands as typer runs them, read from the signatures of their functions."""
    return typer.main.get_command(app)


def _print_version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version

        say(version("driftscale"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


ConfigOrFolder = Annotated[
    Path,
    typer.Argument(
        help="A configuration (.toml), a folder of them, or the name of a shipped one, as driftscale configs "
        "lists them.",
        metavar="CONFIG",
        parser=path_for("CONFIG"),
        autocompletion=completing.configurations,
    ),
]
RunDirectoryOrFolder = Annotated[
    Path,
    typer.Argument(
        help="A run directory, or a folder of them.",
        metavar="DIR",
        parser=path_for("DIR"),
        autocompletion=completing.run_directories,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Override a key: round.rounds=100 (repeatable).",
        autocompletion=completing.keys,
    ),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        help="Give a key several values: round.participants=5,10 (repeatable). Each combination is a cell, "
        "an experiment of its own.",
        metavar="KEY=VALUE,VALUE",
        autocompletion=completing.swept_keys,
    ),
]
AllowMany = Annotated[bool, typer.Option("--yes", help="Allow a sweep of more than 10,000 cells.")]
Trial = Annotated[
    bool,
    typer.Option(
        "--trial/--no-trial",
        help="Own code: play the first round of each arm that has some, twice, before any run begins.",
    ),
]
Arms = Annotated[
    str | None,
    typer.Option("--arms", help="Run only these arms: global,fielding.", autocompletion=completing.arms),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Run directory, or the folder of those of several experiments (default: runs/<name>).",
        metavar="PATH",
        parser=path_for("--out"),
    ),
]
Jobs = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        help="Number of runs played at once, each in its own process; auto: as many as cores and memory "
        "allow (default: one after another in this process).",
        metavar="N|auto",
    ),
]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Seeds: 0..9, or 0,3,7.")]
Explain = Annotated[bool, typer.Option("--explain", help="Print all tables, with notes on how to read them.")]
Format = Annotated[OutputFormat, typer.Option("--format", help="A table, or JSON on stdout.")]


@app.command()
def run(
    config: ConfigOrFolder,
    overrides: Overrides = None,
    sweep: Sweep = None,
    allow_many: AllowMany = False,
    seeds: Seeds = None,
    arms: Arms = None,
    data: Data = None,
    out: Out = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the contents of the run directory first.")
    ] = False,
    until: Annotated[
        int | None,
        typer.Option("--until", help="Stop and store each run at the close of round N.", metavar="N"),
    ] = None,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Play the runs on the workers of a cluster: tls://HOST:PORT, or a scheduler file.",
            metavar="ADDRESS|FILE",
        ),
    ] = None,
    keys: Annotated[Path | None, cluster_commands.KEYS] = None,
    is_insecure: Annotated[bool, cluster_commands.INSECURE] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(
            "--track",
            help="Plot the runs while they are played: tensorboard or mlflow (repeatable), into export/ of "
            "the run directory; mlflow to MLFLOW_TRACKING_URI, if that is set.",
            metavar="TRACKER",
        ),
    ] = None,
    trial: Trial = True,
    explain: Explain = False,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Play the unfinished runs, then summarise and report.

    A finished (arm, seed) in the run directory is kept; an unfinished one resumes from its last checkpoint.
    Further --seeds and arms are added to the run directory. Ctrl-C stores the run, then stops; a second
    Ctrl-C stops at once. With --until, what there is by then is reported; the same command with a larger N,
    or without it, plays on, with the same bytes.

    If CONFIG is a folder, each of its configurations is run into its own run directory under --out (default:
    runs/<folder>), and one table is made of all of them. So are the cells of a sweep, all combinations of the
    values in --sweep options and in the table [sweep] of CONFIG (default: runs/<name>-sweep). Runs that
    several experiments share, such as those of an arm that no swept key touches, are played once.

    One table is printed, then what was found in three lines, and the path of the report, which has all tables
    and figures.

    A tracker (--track) that fails is noted and dropped for that run; it stops no run, and changes no result.
    """
    from experiments.cli.runs import run_all_of, run_one
    from experiments.playing.command import RunCommand
    from experiments.playing.scale import parse_scale
    from experiments.tracking.registry import require_trackers

    require_trackers(track or [], "--track")
    taken = take(config)
    run_it = run_all_of if taken.path.is_dir() else run_one
    scale = parse_scale(jobs, cluster, keys, is_insecure)
    run_it(
        RunCommand(
            config=taken.path,
            note=taken.note,
            overrides=overrides or [],
            sweep=sweep or [],
            allow_many=allow_many,
            seeds=_parse_seeds(seeds),
            arms=_names(arms),
            data=data or [],
            out=out,
            fresh=fresh,
            scale=scale,
            track=track or [],
            trial=trial,
            until=until,
        ),
        output,
        explain=explain,
    )


@app.command()
def tune(
    config: ConfigOrFolder,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds to choose on, other than reported: 100..102.")],
    arms: Arms = None,
    data: Data = None,
    out: Out = None,
    jobs: Jobs = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Choose the settings of a folder's arms.

    Each learning rate of [tune] with each value of the one number that an arm names in `tune` is played on
    the first seed; the best three on the others, always with all rounds. The highest mean accuracy over all
    seeds is chosen, with the best use; the rival is the best baseline. What diverges is worse than the rest.

    chosen/NAME.toml in the folder gets what is chosen for its NAME.toml, which must name it in `extends`;
    tune.json, beside the runs (default: runs/tune/<folder>), all scores. The same command resumes.
    """
    from experiments.cli.configurations.tuning import run_tune
    from experiments.playing.command import RunCommand
    from experiments.playing.scale import parse_scale

    taken = take(config)
    command = RunCommand(
        config=taken.path,
        note=taken.note,
        seeds=_parse_seeds(seeds),
        arms=_names(arms),
        data=data or [],
        out=out,
        scale=parse_scale(jobs, None, None, False),
    )
    run_tune(command, config, output)


@app.command()
def report(
    directory: RunDirectoryOrFolder,
    explain: Explain = False,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Summarise a run directory, or a folder of them, again.

    Prints what `driftscale run` prints at its end.
    """
    from experiments.cli.reports import report_all_of, report_one
    from experiments.results.many_runs.directories import run_directories

    directories = run_directories(directory)
    if directories:
        report_all_of(directory, directories, output, explain=explain)
    else:
        report_one(directory, output, explain=explain)


@app.command()
def export(
    directory: RunDirectoryOrFolder,
    to: Annotated[str, typer.Option("--to", help="csv, parquet, tensorboard or mlflow.", metavar="FORMAT")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder to write into (default: export/ in DIR, for trackers a folder in it).",
            metavar="PATH",
            parser=path_for("--out"),
        ),
    ] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            "--frames",
            help="Write only these: summary,rounds,clients,visits,triggers,detection,drifts,model_accuracy "
            "(csv and parquet; default: all that were recorded).",
        ),
    ] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Write the results of finished runs for other programs.

    As csv or parquet, each frame becomes a file: summary, rounds, clients, visits, triggers, detection,
    drifts and model_accuracy. For tensorboard and mlflow, each run is tracked as --track of `driftscale run`
    does: a point for each round, at its virtual time. Exporting again replaces what was exported.
    """
    from experiments.cli.exporting.command import ExportCommand, run_export

    run_export(ExportCommand(directory, to, out, _names(frames), output))


@app.command()
def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories, or a folder of them; differences are from the first.",
            metavar="DIR",
            parser=path_for("DIR"),
            autocompletion=completing.run_directories,
        ),
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Print notes on how to read the table below it.")
    ] = False,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Compare several run directories in one table.

    A row is an arm of a directory; the columns are the keys in which the configurations differ, mean
    accuracy, gain over the reference arm, difference from the first directory, times to each target, and
    bytes. Runs are paired by seed where trace, devices and availability are the same. Writes nothing.
    """
    from experiments.cli.reports import compare_directories

    compare_directories(directories, output, explain=explain)


@app.command()
def detection(directory: RunDirectoryOrFolder, output: Format = OutputFormat.TABLE) -> None:
    """Compare detectors at the same rates of false alarms.

    Prints the share of drifts that each finds, and the mean delay, at 0.5, 1 and 2 false alarms per 1,000
    decisions. Detectors must have been played at several thresholds, as with { kind = "ddm", thresholds =
    [1.5, 2, 3] }; a rate that no two of them enclose has a dash. Writes nothing; the report draws the curves.
    """
    from experiments.cli.reports import print_detection

    print_detection(directory, output)


@app.command()
def atlas(
    directory: RunDirectoryOrFolder, explain: Explain = False, output: Format = OutputFormat.TABLE
) -> None:
    """Compare methods over many drifts, in words.

    A row is a method, a column a run directory in the folder DIR. A cell has the mean accuracy of the best
    use, and ahead, level, behind or open beside the rival; [atlas] of the configurations says both. Writes
    atlas.html, atlas.md and atlas.json into DIR.
    """
    from experiments.cli.reports import report_atlas

    report_atlas(directory, output, explain=explain)


@app.command()
def check(
    config: ConfigOrFolder,
    overrides: Overrides = None,
    sweep: Sweep = None,
    allow_many: AllowMany = False,
    seeds: Seeds = None,
    data: Data = None,
    trial: Trial = True,
    contracts: Annotated[
        bool, typer.Option("--contracts", help="Run the contracts of parts of your own, too.")
    ] = False,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Build what a configuration needs; train nothing but a trial.

    Draws the clients of the first seed, reads all files and builds every arm. Of the other seeds, checks that
    clients have data at every step, and names those that are never online. Says how long a visit takes, and
    about how many rounds a run of so many virtual seconds has. If CONFIG is a folder, or has a sweep, all its
    configurations are checked.

    Nothing is trained but a trial of own code, such as "my_parts:MySelector": the first round of its arm is
    played twice, with few local steps. That shows what it returns, whether it draws from a global random
    generator or changes its arguments, and whether the round is the same when it is stored and restored.

    Contracts play a part in worlds of their own, of about 13 clients: a part that is right for your clients
    alone, as by ids in its settings, may break its contract.
    """
    from experiments.cli.configurations.check_table import check_members_of, print_check, print_checks
    from experiments.playing.command import RunCommand, members_of

    taken = take(config)
    command = RunCommand(
        config=taken.path,
        note=taken.note,
        overrides=overrides or [],
        sweep=sweep or [],
        allow_many=allow_many,
        seeds=_parse_seeds(seeds),
        data=data or [],
    )
    if command.note:
        say(command.note, aside=True)
    members, left_out = members_of(command)
    for note in left_out:
        say(note, aside=True)
    checks = check_members_of(members, lambda note: say(note, aside=True), trial=trial, contracts=contracts)
    if taken.path.is_dir() or members[0].cell is not None:
        print_checks(checks, output, [member.cell for member in members])
    else:
        print_check(checks[0], output)


@app.command()
def configs(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Print this one, such as digits; or list those of a folder, such as fielding.",
            autocompletion=completing.shipped_names_and_folders,
        ),
    ] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """List the configurations that driftscale ships, or print one.

    Lists what each shows, the data it needs, its runs, and the minutes that they take. A name works wherever
    a path to a configuration does, unless something of that name is in the present folder.
    """
    from experiments.cli.configurations.listing import print_configurations

    print_configurations(name, output)


@app.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for an editor.

    Written to a file that the first line of a configuration names (#:schema driftscale.json), it lets editors
    that know JSON schemas of TOML complete keys and parts, show what they mean, and mark mistakes.
    """
    from experiments.cli.output import print_json
    from experiments.schema import configuration_schema

    print_json(configuration_schema())


@app.command()
def new(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file to write, such as mine.toml; it gives the experiment its name.",
            metavar="FILE",
            parser=path_for("FILE"),
        ),
    ],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            help="The shipped configuration to begin with; driftscale configs lists them.",
            metavar="NAME",
            autocompletion=completing.shipped_names,
        ),
    ] = "first-fleet",
) -> None:
    """Write a configuration of your own, with comments.

    It is that of --like, to be changed, under the name of the file. The default is small, and is played in a
    minute.
    """
    from experiments.cli.configurations.writing import write_new

    write_new(file, like)


@app.command()
def view(
    directory: RunDirectoryOrFolder,
) -> None:
    """Write the report of a run directory, and open it.

    Of a folder of run directories, the table. Writes what `driftscale report` writes, and opens the page in a
    browser: never one that was there, which anybody may have made. Where DIR cannot be written in, the page
    is in a temporary folder. Prints the path of the page. If no browser can be started, a line on standard
    error says so, and the exit code is 0.
    """
    from experiments.cli.view import view as open_page

    open_page(directory)


@app.command()
def parts(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Only this kind of part, such as clusterer.",
            metavar="KIND",
            autocompletion=completing.kinds_of_parts,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Only this part of the kind, or one of your own: my_module:MyPart.",
            metavar="NAME",
            autocompletion=completing.names_of_parts,
        ),
    ] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """List the parts of a configuration, with their settings.

    Without KIND, only their names. Of one part, also its notes, its source (a paper, or "ours"), and an
    example.
    """
    from experiments.cli.parts_table import print_parts

    print_parts(kind, name, output)


@app.command("version", hidden=True)
def _version() -> None:
    """Print the version, as --version does."""
    say("version: taken for --version", aside=True)
    _print_version(True)


def _names(text: str | None) -> list[str] | None:
    """The names in an option, between commas; None if it is not given."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _parse_seeds(text: str | None) -> list[int] | None:
    """The seeds given as `0..9` (both ends included), `0,3,7`, or a mixture such as `0..2,5`.

    None if `text` is None. Raises ConfigurationError if it has another form, or more than `MOST_RUNS` seeds.
    """
    from emulator.errors import ConfigurationError
    from experiments.results.reading.recorded import MOST_RUNS

    if text is None:
        return None
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("..")
            span = range(int(first), int(last or first) + 1)
            if not span:
                raise ValueError("runs backwards")
            if len(seeds) + len(span) > MOST_RUNS:
                raise ConfigurationError(
                    f"--seeds {text}: an experiment has at most {MOST_RUNS} runs, arms x seeds"
                )
            seeds += span
    except ValueError as error:
        raise ConfigurationError(f"--seeds {text}: must be ranges such as 0..9, or a list 0,3,7") from error
    if len(seeds) == 1 and seeds[0] > 1:
        say(f"--seeds {text}: seed {text} alone; 0..{seeds[0] - 1} are {text} seeds", aside=True)
    return seeds
