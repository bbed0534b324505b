"""Every error a user can meet, and the exit code it ends with.

    EmulatorError
    ├── InputError            2   something handed in is wrong; nothing was run
    │   ├── ConfigurationError     a key or value of a configuration
    │   ├── UnknownNameError       a part, profile or source that does not exist
    │   ├── DataFileError          a table, trace, profile or image file
    │   ├── CheckpointError        a checkpoint that is whole, and cannot be gone on with
    │   └── ForeignFileError       a link, pipe or folder in the place of a file of a run directory
    ├── RunError              3   a run that was well described cannot go on
    │   └── ResumableError         for want of room, memory or a file: the same command goes on with it
    ├── InterruptionError   130   a signal asked the command to stop; the same command goes on
    └── LostOutputError     141   standard output was closed before all was printed; 3 where it is full

A message is one line: the value, the rule, the choices, and where it came from.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path


class EmulatorError(Exception):
    """Base of all errors that end in one clear line instead of a traceback."""

    exit_code = 1


class InputError(EmulatorError):
    """Something handed in is wrong; the message says what, where and what would be right."""

    exit_code = 2


class ConfigurationError(InputError):
    """A configuration key or value breaks a rule."""


class UnknownNameError(InputError):
    """A name that nothing is registered under; the message lists the choices."""

    def __init__(self, what: str, name: str, choices: Iterable[str], where: str = "") -> None:
        known = sorted(choices)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}unknown {what} {name!r}; choices: {', '.join(known) or 'none'}{hint}")


class DataFileError(InputError):
    """A file that cannot be used; `row` counts data rows from 1, as a reader of the table would."""

    def __init__(self, path: Path | str, problem: str, row: int | None = None) -> None:
        location = f"{path}, row {row}" if row is not None else f"{path}"
        super().__init__(f"{location}: {problem}")


class CheckpointError(InputError):
    """A checkpoint that is no state of this version's run, though nothing in it is damaged; it is kept."""


class ForeignFileError(InputError):
    """Something in a run directory that is of another kind than the file or folder that belongs there."""


class RunError(EmulatorError):
    """A run that cannot go on; what was computed before stays on disk."""

    exit_code = 3


class ResumableError(RunError):
    """The machine failed a run, which is neither DONE nor FAILED and goes on from its last checkpoint."""


class InterruptionError(EmulatorError):
    """A signal asked the command to stop; the message says what is kept and how to go on."""

    exit_code = 130


class LostOutputError(EmulatorError):
    """What was printed could not be written to standard output; files are not concerned."""

    exit_code = 141  # what a shell makes of the signal (SIGPIPE) that ends other tools here

    def __init__(self, error: OSError) -> None:
        why = "was closed"
        if error.errno not in (errno.EPIPE, errno.EBADF):
            why = f"cannot be written ({error.strerror})"
            self.exit_code = RunError.exit_code
        super().__init__(f"standard output {why}: not all of the output was printed; files are not affected")
