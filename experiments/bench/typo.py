"""CPU time until a mistake in a configuration is reported: whole commands, each in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from emulator.errors import InputError, RunError
from experiments.bench.figures import Figure, Reference, Target, figure
from experiments.bench.jobs import frozen_digits
from experiments.bench.measure import Measured, Say, interleaved

KEY = "round.roundz=4"
SETTING = "training.model={kind='mlp',hiden=[4]}"


def measure_typo(repeats: int, say: Say) -> list[Figure]:
    """CPU seconds until a misspelt key is reported, against a misspelt setting of a model."""
    samples = interleaved({"key": reported(KEY), "setting": reported(SETTING)}, repeats, say=say)
    return [
        figure(
            "typo-cpu",
            "CPU time of `driftscale run` until it reports a misspelt key",
            samples["key"],
            "s",
            better="lower",
            against=Reference(
                samples["setting"], "a misspelt setting of a model, for which torch is imported"
            ),
            target=Target("value", 0.5, 0.35),
        )
    ]


def reported(setting: str) -> Measured:
    """A function that runs a command with a wrong `setting` and returns its CPU seconds.

    It raises RunError if the command accepts the setting, or ends with another error.
    """

    def measured() -> float:
        root = Path(__file__).resolve().parents[2]
        before_s = _cpu_of_children_s()
        with frozen_digits() as config:
            ended = subprocess.run(
                [sys.executable, "-P", "-m", "experiments.cli", "run", str(config), "--set", setting],
                env={**os.environ, "PYTHONPATH": str(root)},
                capture_output=True,
                check=False,
            )
        if ended.returncode != InputError.exit_code:
            raise RunError(f"bench: the command with {setting} ended with exit code {ended.returncode}")
        return _cpu_of_children_s() - before_s

    return measured


def _cpu_of_children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
