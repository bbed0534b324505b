"""The page of commands: their arguments, options and defaults, exit codes, and environment variables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import typer

from docs.writing.in_common import InCommon, Row
from docs.writing.markdown import code, heading, page, paragraphs, prose, table
from docs.writing.parts import HEADINGS, settings_rows
from emulator.errors import EmulatorError
from experiments.cli.app import app
from experiments.part_facts import summary_line
from experiments.setting_facts import setting_facts
from traces.building import BUILDERS

INTRODUCTION = """\
Every command prints a table, or JSON with `--format json`, and `--help` prints what this page says.
`driftscale` alone lists the commands. A command that fails says why on standard error, one line a mistake."""

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    2: "bad input; nothing was run",
    3: "a run failed, or the machine or a mistake in a part stopped it; the same command resumes the rest",
    130: "interrupted by a signal; the runs are stored, and the same command resumes them",
    141: "standard output was closed before all was printed, as by `| head -1`; the work itself is done",
}

VARIABLES = (
    ("DRIFTSCALE_DATA", "folders of `--data` where the option is not given, separated as in `PATH`"),
    (
        "MLFLOW_TRACKING_URI",
        "where `--track mlflow` and `export --to mlflow` log to, in place of a folder of the run directory",
    ),
    ("RANK, WORLD_SIZE, MASTER_ADDR", "set by torchrun for one run by several processes; not for you to set"),
    ("GLOO_SOCKET_IFNAME", "network interface between the ranks of torchrun; read by PyTorch"),
)

OPTIONS = ("option", "value", "default", "meaning")
"""The columns of a table of options."""

BUILDER_OPTIONS = """\
Which further options there are depends on the kind of data set, `driftscale traces build KIND --help` has
them too. A list is separated by commas, a table is written as TOML. Types and bounds are as in [a
configuration](configuration.md)."""


def commands_page() -> str:
    """The page of commands."""
    root = typer.main.get_command(app)
    commands = {"driftscale": root, **dict(_commands(root, "driftscale"))}
    shared = InCommon("In common", OPTIONS, list(map(_options, commands.values())))
    return page(
        "Commands",
        INTRODUCTION,
        *shared.section(2),
        *(block for name, command in commands.items() for block in _command(name, command, shared)),
        heading(2, "Exit codes"),
        "Every code but 0 comes with a line on standard error that gives the reason.",
        table(("code", "meaning", "error"), list(_exit_codes())),
        heading(2, "Environment variables"),
        table(("variable", "meaning"), [(code(name), prose(about)) for name, about in VARIABLES]),
    )


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """(name, command) of each command that runs something, in the order of the help."""
    for part, command in getattr(group, "commands", {}).items():
        if command.hidden:
            continue
        if getattr(command, "commands", None):
            yield from _commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


def _command(name: str, command: Any, shared: InCommon) -> Iterator[str]:
    yield heading(2, code(name))
    yield from paragraphs(command.help or "")
    arguments = [item for item in command.params if _is(item, "argument")]
    yield "\n".join(f"* {code(_usage(item))}: {prose(item.help or '')}" for item in arguments)
    yield from shared.own(_options(command))
    if name == "driftscale traces build":
        yield BUILDER_OPTIONS
        yield from _builders(name)


def _builders(name: str) -> Iterator[str]:
    """The options of each kind of data set."""
    builders = {kind: BUILDERS.find(kind) for kind in BUILDERS.ours()}
    options = {kind: _builder_options(builder.Settings) for kind, builder in builders.items()}
    shared = InCommon("Of several kinds", ("option", *HEADINGS[1:]), list(options.values()))
    yield from shared.section(3)
    for kind, builder in builders.items():
        yield heading(3, code(f"{name} {kind}"))
        yield f"{prose(summary_line(builder))} Needs {prose(builder.needs)}."
        yield from shared.own(options[kind])


def _builder_options(settings: Any) -> list[Row]:
    facts = {f"--{key.replace('_', '-')}": fact for key, fact in setting_facts(settings).items()}
    return settings_rows(facts, "parts/")


def _options(command: Any) -> list[Row]:
    return [_option(item) for item in command.params if _is(item, "option")]


def _is(item: Any, kind: str) -> bool:
    return item.param_type_name == kind and not item.hidden


def _usage(item: Any) -> str:
    """An argument as a command has it: in brackets if it may be left out, with dots if it may be several."""
    shown = str(item.metavar or item.name.upper()) + ("..." if item.nargs != 1 or item.multiple else "")
    return shown if item.required else f"[{shown}]"


def _option(item: Any) -> Row:
    value = "" if item.is_flag else item.metavar or _kind(item)
    default = item.default
    has_default = default not in (None, False) and not callable(default)
    shown = str(getattr(default, "value", default)) if has_default else "required" if item.required else ""
    return (
        ", ".join(map(code, item.opts)),
        code(value),
        code(shown) if has_default else shown,
        prose(item.help or ""),
    )


def _kind(item: Any) -> str:
    """What the value of an option is, where it has no name."""
    annotation: Any = item.type_descriptor.annotation
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return "|".join(member.value for member in annotation)
    return {int: "NUMBER"}.get(annotation, "TEXT")


def _exit_codes() -> Iterator[tuple[str, str, str]]:
    errors = {error.exit_code: error.__name__ for error in EmulatorError.__subclasses__()}
    assert {0, *errors} == set(EXIT_CODES), "every exit code is described, and each is that of an error"
    for exit_code, about in EXIT_CODES.items():
        error = f"[{code(errors[exit_code])}](api.md#errors)" if exit_code else ""
        yield str(exit_code), prose(about), error
