"""The entry point of the command line.

Heavy libraries are imported only once the command that needs them is known.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import NoReturn

from experiments.cli.signals import EXIT_CODE, INTERRUPTED, interrupted_by_signals
from experiments.cli.streams import standard_streams

OUR_PACKAGES = ("emulator", "device_profiles", "traces", "coordinator", "executor", "experiments")

MOST_SHOWN = 4000  # characters of an error message, which may quote a file

BAD_INPUT = 2  # as emulator.errors has them
RUN_FAILED = 3


def main() -> NoReturn:
    """Run the command of `sys.argv`, and exit with its exit code.

    If the command fails or is interrupted, a line on standard error states why.
    """
    with interrupted_by_signals(), standard_streams():
        try:
            exit_code = _run()
        except KeyboardInterrupt:  # raised outside _run's own handlers
            exit_code = _end(INTERRUPTED, EXIT_CODE)
    sys.exit(exit_code)


def _run() -> int:
    """Run the command of `sys.argv`; returns its exit code.

    Expected errors (EmulatorError, OSError, MemoryError) print one line. Any other error is a mistake in the
    code, and prints its traceback before that line.
    """
    foreign = foreign_package()
    if foreign is not None:  # before anything is imported from it
        return _end(foreign, BAD_INPUT)
    from emulator.errors import EmulatorError

    try:
        return _run_app()
    except EmulatorError as error:
        return _end(str(error), error.exit_code)
    except OSError as error:  # such as a full disk, or a folder that is not writable
        return _end(str(error), RUN_FAILED)
    except MemoryError:
        return _end("out of memory; finished runs are kept; the same command resumes the rest", RUN_FAILED)
    except Exception as error:
        import traceback

        traceback.print_exc()  # it shows where the mistake is
        return _end(
            f"{type(error).__name__}: {error}: a mistake in driftscale or in a plug-in (see the traceback); "
            f"finished runs are kept; the same command resumes the rest from the last checkpoint",
            RUN_FAILED,
        )


def _run_app() -> int:
    """Parse `sys.argv` and run its command; returns the exit code.

    Raises InterruptionError if a signal interrupted the command, as Ctrl-C does.
    """
    from emulator.errors import InterruptionError
    from experiments.cli.app import app

    try:
        app(prog_name="driftscale")
    except SystemExit as ended:
        if ended.code == EXIT_CODE:  # how typer ends at a KeyboardInterrupt
            raise InterruptionError(INTERRUPTED) from ended
        sys.stdout.flush()  # so that an error of writing is raised here, where it is handled
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def foreign_package() -> str | None:
    """The error message if one of our packages would be imported from a foreign folder; None if all are ours.

    Our packages have common names, so a folder or a package of the same name may come first on the path.
    """
    roots = {name: _root(name) for name in OUR_PACKAGES}
    ours = roots["experiments"]
    for name, root in roots.items():
        if root != ours:
            return (
                f"the package {name!r} comes from {root or 'nowhere'}, but driftscale is in {ours}; another "
                f"package of that name comes first on the path (started beside a folder called {name}?)"
            )
    return None


def _root(package: str) -> Path | None:
    """The folder that holds `package`, which may be a namespace package; None if it is not importable."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    folders = [str(Path(spec.origin).parent)] if spec.origin else [*(spec.submodule_search_locations or ())]
    return Path(folders[0]).resolve().parent if folders else None


def _end(problem: str, exit_code: int) -> int:
    """Print why the command ends, on one line of standard error of limited length; returns `exit_code`.

    Control characters of the message are escaped, so that a terminal shows them instead of obeying them.
    """
    line = "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(problem.splitlines())
    )
    cut = line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} … ({len(line)} letters)"
    print(cut if exit_code == EXIT_CODE else f"error: {cut}", file=sys.stderr)
    return exit_code
