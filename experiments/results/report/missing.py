"""Which configured runs do not count in a report, and why."""

from __future__ import annotations

from collections.abc import Container

from experiments.results.run_directory import RunDirectory


def missing_runs(directory: RunDirectory, counted: Container[tuple[str, int]]) -> list[str]:
    """A line for each arm and reason, with the seeds: "driftsurf: seeds 0, 1 not finished"."""
    seeds: dict[tuple[str, str], list[int]] = {}
    configured = directory.seeds()
    for arm in directory.arms():
        for seed in configured:
            if (arm, seed) not in counted:
                seeds.setdefault((arm, _reason(directory, arm, seed)), []).append(seed)
    return [
        f"{arm}: seed{'s' if len(those) > 1 else ''} {', '.join(map(str, those))} {reason}"
        for (arm, reason), those in seeds.items()
    ]


def _reason(directory: RunDirectory, arm: str, seed: int) -> str:
    if directory.is_done(arm, seed):
        return "finished, but the reference arm did not finish this seed"
    failure = directory.failure(arm, seed)
    return "not finished" if failure is None else f"failed: {failure}"
