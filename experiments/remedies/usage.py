"""What to write instead of a command line that typer refuses; typer's own words stay.

Imported only for such an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from shlex import quote

from emulator.errors import InputError
from experiments.remedies.misreadings import option_remedy, remedy

LISTS = ("--seeds", "--arms", "--frames")
"""Options whose values are separated by commas."""


def refusal(message: str, command: str, words: Sequence[str], options: Collection[str]) -> InputError:
    """The error of a command line in one line.

    Args:
        message: What typer says.
        command: The command that refuses it, such as "driftscale run".
        words: The arguments of the command line.
        options: Those of the command; another one is no remedy.
    """
    message = message.replace("Value error, ", "").rstrip(".")
    instead = _instead(message, list(words))
    if (meant := re.match(r"did you mean (--[\w-]+)", instead)) is not None and meant[1] not in options:
        instead = ""
    if instead:  # better than the options that are spelt alike
        message = re.split(r" \(Possible options| Did you mean --", message)[0]
    return InputError(f"{message}{'; ' if instead else ''}{instead} ({command} --help)")


def _instead(message: str, words: list[str]) -> str:
    what, _, given = message.partition(": ")
    if what == "No such option":
        option = given.split()[0]
        place = next((place for place, word in enumerate(words) if word.startswith(option)), len(words))
        given = words[place].partition("=")[2] if place < len(words) else ""
        after = [word for word in words[place + 1 : place + 2] if not word.startswith("-")]
        return option_remedy(option, given or "".join(after) or "...")
    if (found := re.match("(No such command|Missing argument) '(.+?)'", message)) is not None:
        return remedy("command" if "command" in found[1] else "argument", found[2])
    if (found := re.search(r"extra arguments?(?:\(s\))? \((.*)\)$", message)) is not None:
        return _of_extra(found[1].split(" "), words)
    return ""


def _of_extra(extra: list[str], words: list[str]) -> str:
    """What arguments that are too many were meant to be: values of the option before, or of keys."""
    first = words.index(extra[0]) if extra[0] in words else 0
    option, value = [*words[max(first - 2, 0) : first], "", ""][:2]
    if option in ("--set", "--sweep"):
        joined = f"{value}={extra[0]}" if "=" not in value else quote(" ".join((value, *extra)))
        return f"did you mean {option} {joined}?"
    if option in LISTS:
        return f"did you mean {option} {','.join((value, *extra))}?"
    if "=" in extra[0]:
        keys = [f"--set {word.lstrip('+~')}" for word in extra]  # Hydra has signs before keys
        return f"did you mean {' '.join(keys)}?"
    return ""
