"""CPU time until a mistake in a configuration is reported: whole commands, each in a fresh process.

With Python's cache of bytecode and without it, when every imported module of ours is compiled. Beside them,
in turns, the three libraries without which no configuration is read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.jobs import FROZEN_DIGITS
from benchmarks.measure import ROOT, Measured, Say, interleaved
from emulator.errors import InputError, RunError
from experiments.own_packages import OUR_PACKAGES

KEY = "round.roundz=4"
LIBRARIES = "import numpy, pydantic, typer; pydantic.BaseModel"
MOST_TIMES = 2.4
"""The goal: at most so many times the CPU time of the libraries alone."""

STRETCH_TIMES = 2.0


def measure_typo(repeats: int, say: Say) -> list[Figure]:
    """CPU seconds until a misspelt key is reported, with cached bytecode and without, against libraries."""
    with TemporaryDirectory() as cache, TemporaryDirectory() as copy:
        for package in OUR_PACKAGES:
            shutil.copytree(
                ROOT / package, Path(copy) / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        samples = interleaved(
            {
                "cached": reported(KEY, {"PYTHONPYCACHEPREFIX": cache}),
                "compiled": reported(KEY, {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": copy}),
                "libraries": libraries_imported(),
            },
            repeats,
            say=say,
        )
    against = Reference(samples["libraries"], "numpy, pydantic and typer imported alone")
    about = "CPU time of `driftscale run` until it reports a misspelt key, bytecode"
    return [
        figure(
            "typo-cpu",
            f"{about} cached",
            samples["cached"],
            "s",
            better="lower",
            against=against,
            target=Target("value", 0.5, 0.35),
        ),
        figure(
            "typo-cpu-compiled",
            f"{about} of ours compiled at every start",
            samples["compiled"],
            "s",
            better="lower",
            against=against,
            target=Target("ratio", 1 / MOST_TIMES, 1 / STRETCH_TIMES),
        ),
    ]


def reported(setting: str, environment: Mapping[str, str]) -> Measured:
    """A function that runs a command with a wrong `setting` and returns its CPU seconds.

    It raises RunError if the command accepts the setting, or ends with another error.
    """

    def measured() -> float:
        command = ["-m", "experiments.cli", "run", str(FROZEN_DIGITS), "--set", setting]
        code, cpu_s = _started(command, environment)
        if code != InputError.exit_code:
            raise RunError(f"bench: the command with {setting} ended with exit code {code}")
        return cpu_s

    return measured


def libraries_imported() -> Measured:
    """A function that imports the libraries in a fresh process, and returns its CPU seconds.

    Their bytecode is cached since their installation.
    """

    def measured() -> float:
        code, cpu_s = _started(["-c", LIBRARIES], {})
        if code != 0:
            raise RunError(f"bench: {LIBRARIES!r} ended with exit code {code}")
        return cpu_s

    return measured


def _started(arguments: list[str], environment: Mapping[str, str]) -> tuple[int, float]:
    """Exit code and CPU seconds of Python with these arguments and further variables."""
    unset = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    before_s = _cpu_of_children_s()
    ended = subprocess.run(
        [sys.executable, "-P", *arguments],
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        check=False,
    )
    return ended.returncode, _cpu_of_children_s() - before_s


def _cpu_of_children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
