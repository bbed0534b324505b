"""The command line. Nothing heavy is imported before the command that needs it is known."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

OUR_PACKAGES = ("emulator", "device_profiles", "traces", "coordinator", "executor", "experiments")

INTERRUPTED = 130


def main() -> None:
    """The entry point `driftscale`: runs a command; an error of ours is one line and its exit code."""
    from emulator.errors import EmulatorError
    from experiments.cli.app import app

    try:
        check_one_root()
        app()
    except EmulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept, the same command goes on with the rest", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()


def check_one_root() -> None:
    """InputError unless all our packages come from one folder: their names are common ones."""
    from emulator.errors import InputError

    roots = {name: _root(name) for name in OUR_PACKAGES}
    ours = roots["experiments"]
    for name, root in roots.items():
        if root != ours:
            raise InputError(
                f"the package {name!r} comes from {root or 'nowhere'}, but driftscale is in {ours}; another "
                f"package of that name comes first on the path (started beside a folder called {name}?)"
            )


def _root(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent.parent
