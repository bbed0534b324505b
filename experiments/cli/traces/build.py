"""`driftscale traces build`: makes a trace folder of a data set.

Its options are its own, and those of the kind of data set: the settings of a builder are options of the
command, with dashes for underscores.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.cli.paths import path_for

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from emulator.plugins import Settings
    from traces.building import Builder, Built

OWN = ("--root", "--out", "--workers", "--fresh", "--format", "--help")


def register(app: typer.Typer) -> None:
    """Add the command `build` to `app`."""
    app.command(
        "build",
        context_settings={
            "allow_extra_args": True,
            "ignore_unknown_options": True,
            "help_option_names": [],
        },
    )(build)


def build(
    context: typer.Context,
    kind: Annotated[str | None, typer.Argument(help="Kind of data set.", metavar="KIND")] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", help="The data set.", metavar="PATH", parser=path_for("--root")),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Trace folder to make.", metavar="DIR", parser=path_for("--out")),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=256,
            help="Threads that decode (default: the cores); any number gives the same bytes.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin again, instead of resuming an interrupted build.")
    ] = False,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="Text, or JSON on stdout.")
    ] = OutputFormat.TABLE,
    wants_help: Annotated[bool, typer.Option("--help", help="Show this message, and exit.")] = False,
) -> None:
    """Make a trace folder of a data set, which the source `file` plays.

    Further options are those of the kind. A build that was interrupted is resumed by the same command; until
    it is complete, there is no folder of that name.
    """
    from emulator.errors import InputError
    from traces.building import BUILDERS, Request

    if wants_help or kind is None:
        _print_help(context, kind)
        return
    if kind.startswith("-"):
        raise InputError(f"{kind}: KIND comes first; it is one of {', '.join(BUILDERS.names())}")
    _refuse_unknown(kind)
    if root is not None:
        BUILDERS.find(kind).refuse_root(root)
    builder = BUILDERS.find(kind)(parse_options(kind, BUILDERS.find(kind), context.args))
    for name, value in (("--root", root), ("--out", out)):
        if value is None:
            raise InputError(f"{name} is missing; {kind} needs {builder.needs}")
    assert root is not None
    assert out is not None
    from experiments.cli.traces.build_progress import BuildProgress
    from experiments.running.machine import cores

    start = time.perf_counter()
    with BuildProgress() as watch:
        built = builder.build(Request(root, out, workers or cores(), fresh, watch.watch()))
    _print_built(built, out, time.perf_counter() - start, output)


def _refuse_unknown(kind: str) -> None:
    """Refuse, with what was meant, a path and an unknown name in the place of KIND."""
    from emulator.errors import InputError, UnknownNameError
    from emulator.own_parts import is_own
    from traces.building import BUILDERS

    if kind in BUILDERS.names() or is_own(kind):
        return
    if Path(kind).exists() or Path(kind).suffix:
        named = "folder" if Path(kind).is_dir() else "table"
        raise InputError(
            f"{kind}: KIND comes first; as in driftscale traces build {named} --root {kind} --out FOLDER"
        )
    from experiments.remedies.misreadings import remedy

    raise UnknownNameError(BUILDERS.kind, kind, BUILDERS.names(), remedy=remedy(BUILDERS.kind, kind))


def parse_options(kind: str, builder: type[Builder], arguments: Sequence[str]) -> Settings:
    """The settings of a builder from the options of its own, `--key value`, `--key=value` or `--flag`.

    Raises InputError for an option that the kind does not have, and for an invalid value.
    """
    from emulator.errors import InputError
    from experiments.cli.options import option_of, parse_settings
    from experiments.reading import parse_value

    declared: type[Settings] = builder.Settings
    values: dict[str, Any] = {}
    left = list(arguments)
    while left:
        option, equals, text = left.pop(0).partition("=")
        key, _, inner = option.removeprefix("--").replace("-", "_").partition(".")
        field = declared.model_fields.get(key)
        if not option.startswith("--") or field is None:
            choices = ", ".join(option_of(name) for name in declared.model_fields)
            raise InputError(f"{option}: is no option of {kind}; it has {', '.join(OWN[:4])}, {choices}")
        if key in values and not (inner and isinstance(values[key], dict) and inner not in values[key]):
            raise InputError(f"{option}: is given twice")
        if field.annotation is bool and not equals:
            values[key] = True
            continue
        if not equals:
            if not left or left[0].startswith("--"):
                raise InputError(f"{option}: needs a value")
            text = left.pop(0)
        if inner:
            values.setdefault(key, {})[inner] = parse_value(text)
        else:
            values[key] = _value(field, text)
    return parse_settings(declared, values, kind)


def _value(field: FieldInfo, text: str) -> Any:
    """The value of a setting that is given as `text`: a list is separated by commas, tables are TOML."""
    from experiments.reading import parse_value

    kinds = _kinds(field.annotation)
    if text[:1] in ("{", "["):
        return parse_value(text)
    if tuple in kinds:
        return [part.strip() if str in kinds else parse_value(part) for part in text.split(",")]
    return text if str in kinds or Path in kinds else parse_value(text)


def _kinds(annotation: Any) -> set[Any]:
    """The types in an annotation, such as tuple and str in `tuple[str, ...] | None`."""
    origin = get_origin(annotation)
    if origin is None:
        return {annotation}
    return {origin}.union(*(_kinds(argument) for argument in get_args(annotation)))


def _print_help(context: typer.Context, kind: str | None) -> None:
    from experiments.cli.options import option_of
    from experiments.cli.parts_table import setting_rows
    from experiments.part_facts import summary_line
    from experiments.setting_facts import setting_facts
    from traces.building import BUILDERS

    typer.echo(context.get_help())
    for name, builder in [(kind, BUILDERS.find(kind))] if kind is not None else list(BUILDERS):
        say(f"\n{name}: {summary_line(builder)}")
        say(f"  needs {builder.needs}")
        options = setting_facts(builder.Settings)
        if kind is not None:
            print_table(setting_rows({option_of(key): facts for key, facts in options.items()}, "option"))
        else:
            say(f"  options: {', '.join(option_of(key) for key in options)}")


def _print_built(built: Built, out: Path, seconds: float, output: OutputFormat) -> None:
    """Print what has been made, and the lines of a configuration that play it."""
    from experiments.results.statistics.scales import BYTE_UNITS

    facts: dict[str, object] = {
        "folder": str(out),
        "clients": built.clients,
        "training samples": built.train,
        "test samples": built.test,
        "classes": built.classes,
        "shape": list(built.shape),
        "when": built.when,
        "first": _instant(built, built.first),
        "last": _instant(built, built.last),
        "left out": built.left_out,
        "bytes": built.num_bytes,
        "seconds": round(seconds, 3),
    }
    if output is OutputFormat.JSON:
        print_json({**facts, "notes": list(built.notes), "play": {**built.play}})
        return
    size, unit = next((size, unit) for size, unit in BYTE_UNITS if built.num_bytes >= size)
    span, written = f"{facts['first']} to {facts['last']}", f"{built.num_bytes / size:.3g} {unit}"
    say(
        f"{out}: {built.clients:,} clients, {built.train:,} training and {built.test:,} test samples of "
        f"{built.classes} classes, shape {tuple(built.shape)}"
    )
    say(f"{built.when}: {span}; {built.left_out} left out; {written} in {seconds:.1f} s")
    for note in built.notes:
        say(note)
    say('\n[trace]\nsource = "file"')
    say(f"folder = {_quoted(str(out))}")
    for key, value in built.play.items():
        say(f"{key} = {_quoted(value) if isinstance(value, str) else value}")


def _instant(built: Built, at: int) -> int | str:
    """A data step or a rank as it is, a time in ISO 8601."""
    if built.when != "time":
        return at
    import numpy as np

    return str(np.datetime64(at, "us").astype("datetime64[s]"))


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
