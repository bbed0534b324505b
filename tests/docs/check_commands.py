"""Checks the commands of a page without running them: options, arguments, keys, and what they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import typer

from benchmarks.command import app as bench
from benchmarks.registry import WORKLOADS
from device_profiles import PROFILES, SUFFIXES
from emulator.errors import EmulatorError, UnknownNameError
from experiments.cli.app import _parse_seeds, app
from experiments.reading import override_table
from experiments.tracking.registry import TRACKERS
from tests.docs.blocks import ROOT
from tests.docs.check_configurations import problem_of_whole
from tests.docs.check_named import PLACEHOLDER, WrongError, check_named, is_configuration
from tests.docs.page_state import PageState
from tests.docs.product import (
    extras,
    is_module,
    kinds_of_parts,
    make_targets,
    shipped_files,
    shipped_names,
)
from tests.docs.shell import SimpleCommand, UnreadableLineError, simple_commands

NAME = "driftscale"
MODULE = "experiments.cli"
BENCH = "benchmarks"
REQUIREMENT = re.compile(r"(?:driftscale|\.)\[([\w,-]+)\]")
FIRST = "first-fleet"
"""What `driftscale new` writes unless it is told otherwise."""
LASTING = ("cd", "export", "source", "alias", "pushd")
ClickError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


@dataclass(frozen=True)
class Call:
    """A command of driftscale: its path, such as ("traces", "list"), and its texts by option or argument."""

    path: tuple[str, ...]
    values: Mapping[str, Any]
    further: Sequence[str] = ()


def problems_of_command(text: str, state: PageState, *, is_run: bool) -> Iterator[str]:
    """What is wrong with a command of a page.

    Args:
        text: The command, as a shell has it.
        state: The page before it; files that it makes are added.
        is_run: Whether `make docs-test` runs it. If not, it may have words that stand for others.
    """
    try:
        commands = simple_commands(text)
    except UnreadableLineError as error:
        yield str(error)
        return
    if is_run and len(commands) == 1 and commands[0].words[0] in LASTING:
        yield f"{commands[0].words[0]}: has no effect on the commands below it"
    for command in commands:
        yield from _problems_of(command, state, is_run=is_run)


def _problems_of(command: SimpleCommand, state: PageState, *, is_run: bool) -> Iterator[str]:
    own = next((words for words in (command.after(NAME), command.after("-m", MODULE)) if words), None)
    if command.words[0] == NAME and own is None:
        own = ()
    try:
        if (of_bench := command.after("-m", BENCH)) is not None:
            check_bench(of_bench, is_run=is_run)
            return
        if own is not None and command.words[0] not in ("pip", "git"):
            check_own(own, state, is_run=is_run)
            return
        checks = {"make": _check_make, "python": _check_python, "python3": _check_python, "pip": _check_pip}
        if (check := checks.get(command.words[0])) is not None:
            check(command.words[1:], state)
    except (WrongError, EmulatorError) as error:
        yield str(error)


def check_own(words: Sequence[str], state: PageState, *, is_run: bool, is_part: bool = False) -> None:
    """Check a command of driftscale.

    Args:
        words: Its words after the program's name.
        state: The page.
        is_run: Whether `make docs-test` runs it.
        is_part: Whether it may be incomplete, as in a sentence.

    Raises WrongError or EmulatorError.
    """
    call = parsed(words, is_run=is_run, is_part=is_part)
    if call is None or call.path not in CHECKS:
        return
    try:
        CHECKS[call.path](call, state, is_run=is_run)
    except EmulatorError as error:
        if not (is_part and "Field required" in str(error)):
            raise


def check_bench(words: Sequence[str], *, is_run: bool, is_part: bool = False) -> None:
    """Check a command of the bench; for the arguments and the errors see `check_own`."""
    if is_run:
        raise WrongError(f"python -m {BENCH}: is not in the wheel, by which `make docs-test` runs blocks")
    call = _parsed_by(bench_command(), f"python -m {BENCH}", (), [*words], is_run=is_run, is_part=is_part)
    for name in (call.values["names"] or ()) if call is not None else ():
        _one_of("workload", name, tuple(WORKLOADS), is_run=is_run)


# -- by the tree of commands -----------------------------------------------------------------------------


@cache
def command_tree() -> Any:
    """The commands of driftscale, as click has them."""
    return typer.main.get_command(app)


@cache
def bench_command() -> Any:
    """The command of the bench, as click has it."""
    return typer.main.get_command(bench)


@cache
def all_options() -> frozenset[str]:
    """The options of all commands, those of the bench and of each kind of `traces build` included."""
    from traces.building import BUILDERS

    commands = (bench_command(), *_leaves(command_tree()))
    own = {option for command in commands for option in _options_of(command)}
    of_kinds = {
        f"--{name.replace('_', '-')}"
        for _, builder in BUILDERS
        for name in builder.Settings.model_fields  # type: ignore[attr-defined]
    }
    return frozenset(own | of_kinds | {"--help"})


def _leaves(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _leaves(inner)


def _options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (option for option in (*parameter.opts, *parameter.secondary_opts) if option[0] == "-")


def parsed(words: Sequence[str], *, is_run: bool, is_part: bool = False) -> Call | None:
    """The values of a command of driftscale by option, and of arguments by name.

    None if it asks for help, if it is incomplete and may be, or if a word in it stands for another command.
    Raises WrongError where the program would refuse it.
    """
    path: tuple[str, ...] = ()
    command, left = command_tree(), list(words)
    while commands := getattr(command, "commands", None):
        where, word = " ".join((NAME, *path)), left.pop(0) if left else ""
        if not word:
            if path and not is_part:
                raise WrongError(f"{where}: a command is missing; choices: {', '.join(commands)}")
            return None
        if word.startswith("-"):
            if word not in (*_options_of(command), "--help"):
                raise WrongError(f"{where}: no such option {word}")
            return None
        if word not in commands:
            if PLACEHOLDER.fullmatch(word) and not is_run:
                return None
            raise WrongError(f"{where}: no such command {word!r}; choices: {', '.join(commands)}")
        command, path = commands[word], (*path, word)
    return _parsed_by(command, " ".join((NAME, *path)), path, left, is_run=is_run, is_part=is_part)


def _parsed_by(
    command: Any, where: str, path: tuple[str, ...], words: list[str], *, is_run: bool, is_part: bool
) -> Call | None:
    """The values in the words of `command`, called `where`; for None and WrongError see `parsed`."""
    if "--help" in words:
        return None
    try:
        context = command.make_context(where, [*words])
        given, *_ = command.make_parser(context).parse_args([*words])
    except ClickError as error:
        kind, texts = type(error).__name__, [word.partition("=")[2] or word for word in words]
        is_incomplete = kind in ("MissingParameter", "BadOptionUsage")
        stands_for_another = kind == "BadParameter" and any(map(PLACEHOLDER.fullmatch, texts))
        if (is_part and is_incomplete) or (stands_for_another and not is_run):
            return None
        raise WrongError(f"{where}: {error.format_message()}") from error  # type: ignore[attr-defined]
    values = {
        name: given.get(parameter.name)
        for parameter in command.params
        for name in (parameter.opts if parameter.opts[0].startswith("-") else [parameter.name])
    }
    return Call(path, values, tuple(context.args))


# -- values ----------------------------------------------------------------------------------------------


def _one_of(what: str, name: str | None, choices: Sequence[str], *, is_run: bool) -> bool:
    """Whether it is one of the choices; UnknownNameError unless it stands for another, or is not given."""
    if name in choices:
        return True
    if name is not None and (is_run or not PLACEHOLDER.fullmatch(name)):
        raise UnknownNameError(what, name, choices)
    return False


def _check_parts(call: Call, state: PageState, *, is_run: bool) -> None:
    kinds, kind = kinds_of_parts(), call.values["kind"]
    if _one_of("kind of part", kind, tuple(kinds), is_run=is_run):
        _one_of(kind, call.values.get("name"), kinds[kind].names(), is_run=is_run)


def _check_profile(call: Call, state: PageState, *, is_run: bool) -> None:
    if not call.values["profile"].endswith(SUFFIXES):
        _one_of("device profile", call.values["profile"], PROFILES.names(), is_run=is_run)


def _check_export(call: Call, state: PageState, *, is_run: bool) -> None:
    formats = ("csv", "parquet", *TRACKERS)
    _one_of("format", call.values["--to"], formats, is_run=is_run)


def _check_new(call: Call, state: PageState, *, is_run: bool) -> None:
    like = call.values["--like"]
    if like is None or _one_of("shipped configuration", like, shipped_names(), is_run=is_run):
        [file] = shipped_files(like or FIRST)
        state.copy(file, str(call.values["file"]))


def _check_build(call: Call, state: PageState, *, is_run: bool) -> None:
    """Check a command that builds a trace: the options of its kind, and the columns of the page's table."""
    from experiments.cli.traces.build import parse_options
    from traces.building import BUILDERS

    kind, root = call.values["kind"], state.folder / str(call.values["--root"])
    if not _one_of("kind of data set", kind, BUILDERS.names(), is_run=is_run):
        return
    if not call.further and not is_run:  # the name of a command, without what it needs
        return
    settings = parse_options(kind, BUILDERS.find(kind), call.further)
    if kind != "table" or root.suffix != ".csv" or not root.is_file():
        return
    header = root.read_text(encoding="utf-8").partition("\n")[0].split(",")
    for option in ("client", "label", "time", "step", "order", "features", "split", "count", "concept"):
        given = getattr(settings, option)
        for column in (given,) if isinstance(given, str) else given or ():
            if column not in header:
                raise WrongError(f"--{option} {column}: {root.name} has the columns {', '.join(header)}")


def _check_configured(call: Call, state: PageState, *, is_run: bool) -> None:
    """Check the configuration of a command, with its overrides, swept values, arms and seeds."""
    values = call.values
    name = str(values.get("config") or values.get("path"))
    if call.path == ("traces", "inspect") and not is_configuration(name, state):
        return
    if seeds := values.get("--seeds"):
        _parse_seeds(seeds)
    arms = [arm.strip() for arm in (values.get("--arms") or "").split(",") if arm.strip()]
    check_named(name, values["--set"] or (), values.get("--sweep") or (), arms, state, is_run=is_run)


CHECKS: Mapping[tuple[str, ...], Callable[..., None]] = {
    ("check",): _check_configured,
    ("export",): _check_export,
    ("new",): _check_new,
    ("parts",): _check_parts,
    ("profiles", "show"): _check_profile,
    ("run",): _check_configured,
    ("traces", "build"): _check_build,
    ("traces", "inspect"): _check_configured,
}
"""For each command what is looked at besides its options."""


def problem_of_call(arguments: Mapping[str, Any], state: PageState) -> str:
    """What is wrong with the configuration that `driftscale.run` or `check` is given; empty if nothing is.

    Args:
        arguments: Those of its arguments that are plain values, by name.
        state: The page.
    """
    config, arms = arguments.get("config"), arguments.get("arms", ())
    overrides, axes = arguments.get("set", {}), arguments.get("sweep", {})
    try:
        if isinstance(config, str):
            names = [arms] if isinstance(arms, str) else list(arms or ())
            check_named(config, overrides, axes, names, state, is_run=True)
        elif isinstance(config, dict):
            override_table(config, overrides, None)
            return problem_of_whole(config, state, axes)
    except (WrongError, EmulatorError) as error:
        return str(error)
    return ""


# -- other programs --------------------------------------------------------------------------------------


def _check_make(words: Sequence[str], state: PageState) -> None:
    for word in words:
        if "=" not in word and not word.startswith("-") and word not in make_targets():
            raise WrongError(f"make {word}: no such target; targets: {', '.join(sorted(make_targets()))}")


def _check_python(words: Sequence[str], state: PageState) -> None:
    """Check the module or the script that Python is to run, and the script's options, if it is ours."""
    if words and words[0] == "-m":
        if words[1] == "pip":
            _check_pip(words[2:], state)
        elif not is_module(words[1]) and not state.has(f"{words[1]}.py"):
            raise WrongError(f"python -m {words[1]}: no such module")
        script = ROOT.joinpath(*words[1].split(".")).with_suffix(".py")
        options = words[2:]
    elif words and words[0].endswith(".py"):
        script, options = ROOT / words[0], words[1:]
        if not script.is_file() and not state.has(words[0]):
            raise WrongError(f"python {words[0]}: no such file, and no block above is saved as it")
    else:
        return
    if not script.is_file() or not script.is_relative_to(ROOT / "tests"):
        return
    source = script.read_text(encoding="utf-8")
    for option in options:
        if option.startswith("--") and f'"{option.partition("=")[0]}"' not in source:
            raise WrongError(f"{script.relative_to(ROOT)} has no option {option}")


def _check_pip(words: Sequence[str], state: PageState) -> None:
    for word in words:
        for named in REQUIREMENT.findall(word):
            for extra in named.split(","):
                if extra not in extras():
                    raise WrongError(f"no extra {extra!r}; extras: {', '.join(sorted(extras()))}")
