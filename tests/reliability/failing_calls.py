"""Commands of which one system call fails: the n-th on a file below a folder.

`failing_calls.c` makes it fail: a library that is loaded before Python starts (LD_PRELOAD), so that calls of
other libraries count too. The commands are forked from one process that has loaded it. In a fork, this is
the program: `python -m tests.reliability.failing_calls FOLDER NTH ERRNO CALLS ARGUMENT...` arms the library,
then is `driftscale ARGUMENT...`; `write_trace FOLDER` is the call of a notebook.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes import forked

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".c")
COMPILER = shutil.which("cc")
PATIENCE_S = 120
WRITE_TRACE = "write_trace"
SCRATCH = "scratch"
"""The folder for temporary files, in the folder whose calls are counted."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its standard error, and its calls.

    The calls are in their order, such as `fsync PATH`; the one that failed is `fsync PATH fails`.
    """

    code: int
    stderr: str
    calls: Sequence[str]


class Failing:
    """Runs commands, whose calls below `folder` are counted.

    `build` is a folder for the library and other files.
    """

    def __init__(self, folder: Path, build: Path) -> None:
        self._folder = folder
        self._library, self._calls = build / "failing_calls.so", build / "calls"
        assert COMPILER is not None
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([COMPILER, *flags, "-o", self._library, SOURCE, "-ldl"], check=True)

    def run(self, *arguments: str | Path, nth: int = 0, error: int = 0) -> Ended:
        """Run `driftscale ARGUMENT...`; call `nth`, counted from 1, fails with the errno `error`."""
        scratch = self._folder / SCRATCH
        scratch.mkdir(parents=True, exist_ok=True)
        program = [sys.executable, "-m", "tests.reliability.failing_calls"]
        ended = forked.run(
            [*program, self._folder, str(nth), str(error), self._calls, *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "LD_PRELOAD": str(self._library),
                "PYTHONPATH": str(ROOT),
                "TMPDIR": str(scratch),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return Ended(ended.returncode, ended.stderr, self._calls.read_text().splitlines())


def main() -> None:
    """Arm the library, then be `driftscale`."""
    from experiments.cli import main as command

    folder, nth, error, calls, *arguments = sys.argv[1:]
    listed = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
    arm = ctypes.CDLL(None).arm
    arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    arm(os.fsencode(folder), int(nth), int(error), listed)
    sys.argv[1:] = arguments
    if arguments[0] == WRITE_TRACE:
        write_a_trace(Path(arguments[1]))
    else:
        command()


def write_a_trace(folder: Path) -> None:
    """Write a trace folder by `driftscale.write_trace`; an error ends this process as it does a command."""
    import numpy as np

    import driftscale
    from emulator.errors import EmulatorError, RunError

    features = np.arange(24.0).reshape(8, 3)
    frame = {"who": ["ann", "bob"] * 4, "kind": [0, 0, 1, 1] * 2, "day": [0, 0, 0, 0, 1, 1, 2, 2]}
    try:
        driftscale.write_trace(folder, features, frame, client="who", label="kind", step="day")
    except (EmulatorError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", RunError.exit_code))


if __name__ == "__main__":
    main()
