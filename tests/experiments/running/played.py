"""Plays experiments into a run directory, and reads the files that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.config import Experiment
from experiments.locating import locator
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story

FINISHED = {"DONE", "clients.parquet", "log.jsonl", "models.safetensors", "timing.json"}
"""The files of a finished run."""


def play(
    experiment: Experiment,
    out: Path,
    data: Path | None = None,
    *,
    arms: Sequence[str] | None = None,
    fresh: bool = False,
) -> Story:
    """Run the experiment into `out`; the story of its progress."""
    story = Story()
    run_plan(plan_run(experiment, out, arms, locator(data, None), fresh=fresh), story)
    return story


def logs(out: Path, name: str = "log.jsonl") -> dict[str, bytes]:
    """The bytes of every log in a run directory, or of every other file of that name."""
    contents = {
        str(path.relative_to(out)): path.read_bytes() for path in sorted(out.glob(f"*/seed-*/{name}"))
    }
    assert contents
    return contents


def models(out: Path) -> dict[str, bytes]:
    """The bytes of every file of models in a run directory."""
    return logs(out, "models.safetensors")


def stamps(out: Path) -> dict[str, int]:
    """Modification time, in ns, of every file of a run."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(out.glob("*/seed-*/*"))}
