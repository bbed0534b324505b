"""The command line. Nothing heavy is imported before the command that needs it is known."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import NoReturn

from experiments.cli.signals import EXIT_CODE, INTERRUPTED, interrupted_by_signals
from experiments.cli.streams import standard_streams

OUR_PACKAGES = ("emulator", "device_profiles", "traces", "coordinator", "executor", "experiments")

MOST_SHOWN = 4000  # letters of an error, which may quote a file

BAD_INPUT = 2  # as emulator.errors has them
RUN_FAILED = 3


def main() -> NoReturn:
    """The entry point `driftscale`: runs a command, and exits with its code.

    Whatever ends it before it is done is said in one line on standard error.
    """
    with interrupted_by_signals(), standard_streams():
        try:
            exit_code = _run()
        except KeyboardInterrupt:  # it came between the others' hands
            exit_code = _end(INTERRUPTED, EXIT_CODE)
    sys.exit(exit_code)


def _run() -> int:
    """Run the command that was given; its exit code.

    An error of ours is one line. Any other is a mistake of somebody's: its traceback, then a line.
    """
    foreign = foreign_package()
    if foreign is not None:  # before anything is imported from it
        return _end(foreign, BAD_INPUT)
    from emulator.errors import EmulatorError, InterruptionError

    try:
        from experiments.cli.app import app

        try:
            app(prog_name="driftscale")
        except SystemExit as ended:
            if ended.code == EXIT_CODE:  # what is left of a KeyboardInterrupt
                raise InterruptionError(INTERRUPTED) from ended
            sys.stdout.flush()  # what cannot be written is known now, or never
            return ended.code if isinstance(ended.code, int) else 0
    except EmulatorError as error:
        return _end(str(error), error.exit_code)
    except OSError as error:  # a full disk, a folder that may not be written: the run cannot go on
        return _end(str(error), RUN_FAILED)
    except MemoryError:
        return _end(
            "out of memory; what is finished is kept, and the same command goes on with the rest", RUN_FAILED
        )
    except Exception as error:
        import traceback

        traceback.print_exc()  # whoever mends it needs to know where
        return _end(
            f"{type(error).__name__}: {error}: a mistake in driftscale or in a plug-in (see the traceback); "
            f"what is finished is kept, and a run goes on from its last checkpoint",
            RUN_FAILED,
        )
    return 0


def foreign_package() -> str | None:
    """What is wrong where one of our packages, whose names are common ones, is somebody else's; else None."""
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
    """The folder that `package` lies in; a folder without `__init__.py` is one too."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    folders = [str(Path(spec.origin).parent)] if spec.origin else [*(spec.submodule_search_locations or ())]
    return Path(folders[0]).resolve().parent if folders else None


def _end(problem: str, exit_code: int) -> int:
    """Say why the command ends, in one line whatever the message holds: a terminal shows it and obeys none of
    it. The exit code."""
    line = "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(problem.splitlines())
    )
    cut = line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} … ({len(line)} letters)"
    print(cut if exit_code == EXIT_CODE else f"error: {cut}", file=sys.stderr)
    return exit_code
