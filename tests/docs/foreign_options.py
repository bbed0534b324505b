"""Options of other programs in blocks that are not run: those that `--help` of the program names exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from tests.docs.blocks import Block, Page
from tests.docs.shell import SimpleCommand, UnreadableLineError, simple_commands

HELP: dict[str, Sequence[str]] = {
    "pip": ("-m", "pip"),
    "torchrun": ("-m", "torch.distributed.run"),
}
"""How Python starts the programs whose options are looked up."""


def unknown_options(page: Page) -> Iterator[str]:
    """A line for each option on a page that its program does not have."""
    for block in page.blocks:
        if block.language in ("console", "bash") and block.not_run:
            yield from _of_block(block)


def _of_block(block: Block) -> Iterator[str]:
    for command in block.commands:
        try:
            found = simple_commands(command.text)
        except UnreadableLineError:
            continue
        for simple in found:
            program, given = _program(simple)
            for option in given:
                if option not in _help(program):
                    yield f"{block.page}:{command.line}: {' '.join(program)} has no option {option}"


def _program(simple: SimpleCommand) -> tuple[tuple[str, ...], list[str]]:
    """The program whose options are known, with its command; and the options that are given to it."""
    words = list(simple.words)
    if words[:3] == ["python", "-m", "pip"]:
        words = words[2:]
    if words[0] == "pip" and len(words) > 1:
        return ("pip", words[1]), [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
    if words[0] == "torchrun":
        options = []
        for word in words[1:]:
            if word in ("-m", "--module") or word.endswith(("driftscale", ".py")):
                break
            options += [word.partition("=")[0]] if word.startswith("--") else []
        return ("torchrun",), options
    return (), []


@cache
def _help(program: Sequence[str]) -> str:
    """What the program prints of its options."""
    name, *command = program
    done = subprocess.run(
        [sys.executable, *HELP[name], *command, "--help"], capture_output=True, text=True, check=False
    )
    return done.stdout
