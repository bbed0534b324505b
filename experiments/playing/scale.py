"""Chooses where the runs of a command are played: in this process, by local workers, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import ConfigurationError
from experiments.locating import DataFolders

if TYPE_CHECKING:
    from experiments.jobs.pool import WorkerPool
    from experiments.running.plan import Plan

MOST_JOBS = 1024


@dataclass(frozen=True)
class Scale:
    """The options that decide where runs are played: --jobs, --cluster, --keys, --insecure-cluster.

    `jobs` is None for `auto`, and has no effect if `cluster` is given.
    """

    jobs: int | None = 1
    cluster: str | None = None
    keys: Path | None = None
    is_insecure: bool = False

    @property
    def may_start_workers(self) -> bool:
        """Whether workers of the command's own may play its runs."""
        return self.cluster is None and self.jobs != 1


def parse_scale(jobs: str | None, cluster: str | None, keys: Path | None, is_insecure: bool) -> Scale:
    """The options as a Scale.

    Raises ConfigurationError if a value is invalid, or if options exclude each other.
    """
    if cluster is None:
        for name, is_given in (("--keys", keys is not None), ("--insecure-cluster", is_insecure)):
            if is_given:
                raise ConfigurationError(f"{name}: needs --cluster, which is not given")
        return Scale(_parse_jobs("1" if jobs is None else jobs))
    if not cluster:
        raise ConfigurationError("--cluster: is empty; must be an address or a scheduler file")
    if jobs is not None:
        raise ConfigurationError(
            f"--jobs {jobs!r}: cannot be combined with --cluster, which uses every worker that was started"
        )
    return Scale(cluster=cluster, keys=keys, is_insecure=is_insecure)


def _parse_jobs(text: str) -> int | None:
    if text == "auto":
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST_JOBS):
        raise ConfigurationError(f"--jobs {text!r}: must be a number from 1 to {MOST_JOBS}, or auto")
    return int(text)


@contextmanager
def scaled_out(
    scale: Scale, plans: Sequence[Plan], data: DataFolders
) -> Iterator[tuple[WorkerPool | None, int]]:
    """Context with (workers, number): the workers for the runs of `plans`, and how many they play at once.

    The workers are None if this process plays the runs, one after another.

    Args:
        scale: Where to play them.
        plans: The runs; finished ones are not counted.
        data: The folders of --data.

    Raises:
        InputError: The cluster cannot be joined.
        ConfigurationError: The address or the keys of the cluster break a rule.
        ResumableError: No local worker starts.
    """
    left = {id(plan): sum(not plan.is_kept(run) for run in plan.runs()) for plan in plans}
    unfinished = sum(left.values())
    number = _number(scale, plans, unfinished)
    if unfinished == 0 or (scale.cluster is None and number == 1):
        yield None, 1
        return
    to_play = [plan for plan in plans if left[id(plan)]]  # workers need no others
    from experiments.cluster.connection import joined_cluster, local_cluster
    from experiments.cluster.pool import DaskPool

    if scale.cluster is None:
        with (
            local_cluster(number) as client,
            DaskPool(client, to_play, data, same_data=True).at_work() as pool,
        ):
            yield pool, number
    else:
        with (
            joined_cluster(scale.cluster, scale.keys, is_insecure=scale.is_insecure) as client,
            DaskPool(client, to_play, data, same_data=False).at_work() as pool,
        ):
            yield pool, max(1, min(unfinished, len(client.scheduler_info(n_workers=-1)["workers"])))


def _number(scale: Scale, plans: Sequence[Plan], unfinished: int) -> int:
    """Number of local workers; 1 if none is to be started, as this process or a cluster plays the runs."""
    if scale.jobs == 1:
        return 1
    from experiments.jobs.admission import jobs_at_once
    from experiments.running.machine import available_bytes, cores

    peaks = [
        timing.peak_memory_bytes
        for plan in plans
        for timing in plan.earlier().values()
        if timing.peak_memory_bytes is not None
    ]
    threads = max(plan.experiment.executor.threads for plan in plans)
    return jobs_at_once(scale.jobs, unfinished, cores(), threads, available_bytes(), peaks)
