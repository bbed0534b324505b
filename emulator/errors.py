"""The kinds of errors that a user can meet, and the exit code of each.

    EmulatorError
    ├── InputError            2   invalid input; nothing was run
    │   ├── ConfigurationError     a key or value of a configuration
    │   ├── UnknownNameError       a part, profile or source that does not exist
    │   ├── DataFileError          a table, trace, profile or image file
    │   │   └── MissingFileError   one that is nowhere to be found
    │   ├── CheckpointError        an intact checkpoint that the run cannot be resumed from
    │   └── ForeignFileError       a link, pipe or folder where a run directory should have a file
    ├── RunError              3   a run with a valid configuration cannot continue
    │   └── ResumableError         for lack of disk space, memory or a file: the same command resumes it
    ├── InterruptionError   130   a signal asked the command to stop; the same command resumes it
    └── LostOutputError     141   standard output was closed too early; 3 if it cannot be written to

Subclasses in other packages have the exit code of their kind. A message is one line: the value, the rule, the
choices, and where the value came from; `more` has a line for each further mistake that was found with it.
`naming` puts a place before it, `abbreviated` and `shorten` shorten its parts, `unknown` words all that is
about a name, and `did_you_mean` ends it with a suggestion.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unicodedata import category

MOST_NAMED = 3
"""Items that `abbreviated` names."""


class EmulatorError(Exception):
    """Base of all errors that end in one clear line instead of a traceback."""

    exit_code = 1

    more: Sequence[str] = ()
    """Further mistakes of the same pass, a line each, which the command prints under the message."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython, so a notebook, shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class InputError(EmulatorError):
    """Invalid input; the message states what is wrong, where, and what would be valid."""

    exit_code = 2


class ConfigurationError(InputError):
    """A configuration key or value breaks a rule."""


class UnknownNameError(InputError):
    """A name under which nothing is registered; the message lists the choices."""

    def __init__(
        self, what: str, name: str, choices: Iterable[str], where: str = "", remedy: str = ""
    ) -> None:
        """Compose the message, with the most similar choice as a suggestion, unless there is a remedy.

        Args:
            what: the kind of thing that was named, such as "clusterer".
            name: the unknown name.
            choices: the registered names.
            where: the key that holds the name, if known.
            remedy: what was meant, if the name is a known misreading.
        """
        self.what, self.name = what, name
        super().__init__(f"{where}{': ' if where else ''}{unknown(what, name, choices, remedy)}")


class DataFileError(InputError):
    """A data file that cannot be used."""

    def __init__(self, path: Path | str, problem: str, row: int | None = None) -> None:
        """Compose the message.

        Args:
            path: the file.
            problem: what is wrong with it.
            row: the row with the problem, if it is in one; data rows are counted from 1.
        """
        location = f"{path}, row {row}" if row is not None else f"{path}"
        super().__init__(f"{location}: {problem}")
        self.path, self.problem, self.row = path, problem, row


class MissingFileError(DataFileError):
    """A file or folder that a configuration names is nowhere to be found."""


class CheckpointError(InputError):
    """An intact checkpoint that does not fit this run or this version; the file is kept."""


class ForeignFileError(InputError):
    """An entry of a run directory that is not the regular file or folder that belongs there."""


class RunError(EmulatorError):
    """A run that cannot continue; what it has computed so far stays on disk."""

    exit_code = 3


class ResumableError(RunError):
    """The machine failed the run: it is neither DONE nor FAILED, and is resumed from its last checkpoint."""


class InterruptionError(EmulatorError):
    """A signal asked the command to stop; the message states what is kept and how to resume."""

    exit_code = 130


class LostOutputError(EmulatorError):
    """Output that could not be written to standard output; files are not affected."""

    exit_code = 141  # what a shell reports for a tool that SIGPIPE ended

    def __init__(self, error: OSError) -> None:
        """Compose the message; the exit code is 3 unless `error` means that standard output was closed."""
        why = "was closed"
        if error.errno not in (errno.EPIPE, errno.EBADF):
            why = f"cannot be written ({error.strerror})"
            self.exit_code = RunError.exit_code
        super().__init__(f"standard output {why}: not all of the output was printed; files are not affected")


def unknown(what: str, name: str, choices: Iterable[str], remedy: str = "") -> str:
    """The message about an unknown name: the choices, then the `remedy`, or else the most similar choice.

    >>> unknown("key", "lr", ["learning_rate"], "did you mean learning_rate?")
    "unknown key 'lr'; choices: learning_rate; did you mean learning_rate?"
    """
    known = sorted(choices)
    hint = f"; {remedy}" if remedy else did_you_mean(name, known)
    return f"unknown {what} {name!r}; choices: {', '.join(known) or 'none'}{hint}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the most similar of the `known` ones; empty if none is.

    Capitals and blanks around do not count.

    >>> did_you_mean("stacke", ["stacked", "loop"]), did_you_mean("MLP", ["mlp"])
    ("; did you mean 'stacked'?", "; did you mean 'mlp'?")
    """
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near is not None else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of the `known` names, but for capitals and blanks around; None if no one is similar.

    >>> nearest("latncy_s", ["device_id", "latency_s"]), nearest(" Device_ID", ["device_id", "latency_s"])
    ('latency_s', 'device_id')
    """
    by_letters = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.strip().casefold(), list(by_letters), n=1)
    return by_letters[close[0]] if close else None


def abbreviated(items: Sequence[str], separator: str = "; ") -> str:
    """The first `MOST_NAMED` of `items`, and how many more there are, as one line.

    >>> abbreviated(["a", "b"]), abbreviated(["a", "b", "c", "d"], ", ")
    ('a; b', 'a, b, c and 1 more')
    """
    named = separator.join(items[:MOST_NAMED])
    return named if len(items) <= MOST_NAMED else f"{named} and {len(items) - MOST_NAMED} more"


def shorten(text: str, most: int) -> str:
    """The text, of which at most `most` letters are shown: the first ones, then an ellipsis.

    >>> shorten("smartphones", 11), shorten("smartphones", 6)
    ('smartphones', 'smart…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str) -> str:
    r"""The text for a terminal: a character that it would act on, or not show, is there as its escape.

    Lines stay lines, and spaces of every width spaces.

    >>> printable("a\x1b[2Jé\u202e"), printable("15\u00a0%") == "15\u00a0%"
    ('a\\x1b[2Jé\\u202e', True)
    """
    if text.isprintable():
        return text
    shown = (letter.isprintable() or letter == "\n" or category(letter) == "Zs" for letter in text)
    return "".join(
        letter if is_shown else repr(letter)[1:-1] for letter, is_shown in zip(text, shown, strict=True)
    )


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Context that begins the message of an InputError with "`where`: ".

    An error that already begins so, or an empty `where`, changes nothing. Otherwise a ConfigurationError
    stays one, and any other InputError becomes a plain InputError.
    """
    try:
        yield
    except InputError as error:
        if not where or str(error).startswith(f"{where}: "):
            raise
        kind = ConfigurationError if isinstance(error, ConfigurationError) else InputError
        named = kind(f"{where}: {error}")
        named.more = error.more
        raise named from error
