"""The entry point of the command line.

Heavy libraries are imported only once the command that needs them is known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from experiments.cli.signals import EXIT_CODE, INTERRUPTED, interrupted_by_signals
from experiments.cli.streams import standard_streams
from experiments.own_packages import foreign_package

MOST_SHOWN = 4000  # characters of an error message, which may quote a file
MOST_ITEMS = 11  # of a list under it

BAD_INPUT = 2  # as emulator.errors has them
RUN_FAILED = 3


def _app() -> None:
    """Parse `sys.argv` and run its command; ends with SystemExit, as typer does.

    Raises InputError for a command line that typer refuses.
    """
    from experiments.cli.app import UsageError, command

    try:
        sys.exit(command()(prog_name="driftscale", standalone_mode=False))
    except UsageError as error:
        message = error.format_message()
        if "\n" in message:  # the help, where no command was given
            error.show()
            sys.exit(error.exit_code)
        from experiments.remedies.usage import refusal

        command_path, options = "driftscale", list[str]()
        if error.ctx is not None:
            command_path = error.ctx.command_path
            options = [option for parameter in error.ctx.command.params for option in parameter.opts]
        raise refusal(message, command_path, sys.argv[1:], options) from error


def main(program: Callable[[], None] = _app) -> NoReturn:
    """Run `program`, which parses `sys.argv`, and exit with its exit code.

    If it fails or is interrupted, a line on standard error states why.
    """
    with interrupted_by_signals(), standard_streams():
        try:
            exit_code = _run(program)
        except KeyboardInterrupt:  # raised outside _run's own handlers
            exit_code = _end(INTERRUPTED, EXIT_CODE)
    sys.exit(exit_code)


def _run(program: Callable[[], None]) -> int:
    """Run `program`; returns its exit code.

    Expected errors (EmulatorError, OSError, MemoryError) print one line a mistake, and so does an error of
    the user's own code. Any other error is a mistake in ours, and prints its traceback before that line.
    """
    foreign = foreign_package()
    if foreign is not None:  # before anything is imported from it
        return _end(foreign, BAD_INPUT)
    from emulator.errors import EmulatorError

    try:
        return _exit_code_of(program)
    except EmulatorError as error:
        return _end("\n  ".join((str(error), *error.more)), error.exit_code)
    except OSError as error:  # such as a full disk, or a folder that is not writable
        if error.filename is None and "--install-completion" in sys.argv:  # of typer
            error.filename = "~"
        return _end(str(error), RUN_FAILED)
    except MemoryError:
        return _end("out of memory; finished runs are kept; the same command resumes the rest", RUN_FAILED)
    except Exception as error:
        return _end_by_mistake(error)


def _end_by_mistake(error: Exception) -> int:
    """End with an error that nobody expected: one of own code on one line, ours with its traceback."""
    from emulator.own.code import error_of

    if (of_own_code := error_of(error)) is not None:
        return _end(str(of_own_code), BAD_INPUT)
    import traceback

    traceback.print_exc()  # it shows where the mistake is
    return _end(
        f"{type(error).__name__}: {error}: a mistake in driftscale (see the traceback); "
        f"finished runs are kept; the same command resumes the rest from the last checkpoint",
        RUN_FAILED,
    )


def _exit_code_of(program: Callable[[], None]) -> int:
    """Run `program`; returns the exit code with which typer ends it.

    Raises InterruptionError if a signal interrupted the command, as Ctrl-C does.
    """
    from emulator.errors import InterruptionError

    try:
        program()
    except SystemExit as ended:
        if ended.code == EXIT_CODE:  # how typer ends at a KeyboardInterrupt
            raise InterruptionError(INTERRUPTED) from ended
        sys.stdout.flush()  # so that an error of writing is raised here, where it is handled
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _end(problem: str, exit_code: int) -> int:
    """Print why the command ends, on one line of standard error of limited length; returns `exit_code`.

    Lines of the message that are indented by two blanks stay lines, as those of a list. Control characters
    are escaped, so that a terminal shows them instead of obeying them: as `emulator.errors.printable` does,
    which may not be imported yet.
    """
    first, *items = map(_shown, problem.split("\n  "))
    print(first if exit_code == EXIT_CODE else f"error: {first}", file=sys.stderr)
    for item in items[:MOST_ITEMS]:
        print(f"  {item}", file=sys.stderr)
    return exit_code


def _shown(text: str) -> str:
    joined = " ".join(text.splitlines())
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in joined)
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} … ({len(line)} letters)"
