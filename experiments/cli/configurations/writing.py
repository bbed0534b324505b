"""`driftscale new`: writes a configuration of one's own, like a shipped one, with its comments."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote

from emulator.errors import InputError
from emulator.plugins import FIRST_LOOK
from emulator.storage.bounded import toml_document
from experiments.cli.configurations.listing import text_of
from experiments.cli.output import say
from experiments.config import parse_experiment
from experiments.extending import extended
from experiments.locating import locator
from experiments.reading import SWEEP, read_file
from experiments.shipped import SUFFIX
from experiments.shipped_facts import find_shipped

NAME = re.compile(r'^name = "[^"\n]*"', re.MULTILINE)


def write_new(file: Path, like: str) -> None:
    """Write `file` like the shipped configuration `like`, under the name of the file; print what to do next.

    Raises:
        InputError: The file is there already, cannot be written, or has no name that an experiment may have;
            or no shipped configuration is called `like`.
    """
    if file.suffix != SUFFIX:
        raise InputError(f"FILE {file}: must end in {SUFFIX}, as in mine{SUFFIX}")
    shipped, *others = find_shipped(like)
    if others:
        raise InputError(
            f"--like {like}: is a folder of configurations; driftscale configs {like} lists them"
        )
    line = f'name = "{file.stem}"'
    text = NAME.sub(lambda _: line, text_of(shipped), count=1)  # as it is: a backslash is no group
    _refuse_name(file, text)
    _write(file, text)
    needs = shipped.data
    data = " --data DIR" if needs else ""
    say(f"{file}: like {shipped.name}; next:")
    say(f"  driftscale check {quote(str(file))}{data}")
    say(f"  driftscale run {quote(str(file))}{data}")
    if needs:
        say(f"DIR has {', '.join(needs)}")


def _refuse_name(file: Path, text: str) -> None:
    """Raise ConfigurationError if the experiment may not have the name of the file."""
    try:
        table = toml_document(text)
    except ValueError as error:  # a quotation mark, or a backslash
        raise InputError(f"FILE {file}: {file.stem!r} cannot be the name of an experiment") from error
    table = extended(table, file, locator(None, file), read_file)
    table.pop(SWEEP, None)
    parse_experiment(table, f"FILE {file}: gives the experiment its name", FIRST_LOOK)


def _write(file: Path, text: str) -> None:
    """Write a new file; an existing one, or a link, is not touched."""
    try:
        stream = file.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise InputError(f"{file}: exists already, and is not overwritten; take another name") from error
    except OSError as error:
        raise InputError(f"FILE {file}: cannot be written ({error.strerror})") from error
    try:
        with stream:
            stream.write(text)
    except OSError as error:  # such as a full disk
        file.unlink(missing_ok=True)
        raise InputError(f"FILE {file}: cannot be written ({error.strerror})") from error
