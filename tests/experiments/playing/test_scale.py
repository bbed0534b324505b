from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.errors import ConfigurationError
from experiments.playing.scale import MOST_JOBS, Scale, parse_scale, scaled_out
from experiments.running import machine
from experiments.running.plan import Plan
from tests.experiments.jobs.fakes import FakePool, a_plan

KEYS = Path("keys")


def test_one_run_at_a_time_is_the_default() -> None:
    assert parse_scale(None, None, None, False) == Scale(jobs=1)
    assert parse_scale("12", None, None, False) == Scale(jobs=12)
    assert parse_scale(f"{MOST_JOBS}", None, None, False) == Scale(jobs=MOST_JOBS)
    assert parse_scale("auto", None, None, False) == Scale(jobs=None)
    scales = (Scale(jobs=1), Scale(jobs=2), Scale(jobs=None), Scale(cluster="tls://host:1"))
    assert [scale.may_start_workers for scale in scales] == [False, True, True, False]
    assert parse_scale(None, "tls://node1:8786", KEYS, True) == Scale(1, "tls://node1:8786", KEYS, True)


@pytest.mark.parametrize(
    "jobs", ["0", "-1", "x", "", " 2", "1.5", "Auto", "1025", "9" * 5000, "\u0663", "2\n", "two\nlines"]
)
def test_a_number_of_jobs_is_from_1_to_the_most_or_auto(jobs: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_scale(jobs, None, None, False)
    assert str(refused.value) == f"--jobs {jobs!r}: must be a number from 1 to 1024, or auto"
    assert "\n" not in str(refused.value)


def test_jobs_cannot_be_combined_with_a_cluster() -> None:
    message = r"^--jobs '2': cannot be combined with --cluster, which uses every worker that was started$"
    with pytest.raises(ConfigurationError, match=message):
        parse_scale("2", "tls://node1:8786", None, False)


@pytest.mark.parametrize(
    ("keys", "is_insecure", "option"), [(KEYS, False, "--keys"), (None, True, "--insecure-cluster")]
)
def test_options_of_a_cluster_are_refused_without_one(
    keys: Path | None, is_insecure: bool, option: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{option}: needs --cluster, which is not given$"):
        parse_scale("2", None, keys, is_insecure)


# -- number of workers --------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of local workers that were requested, by fakes that start no process.

    The machine has 8 cores and 1000 bytes of memory; a cluster of 3 workers exists.
    """
    from experiments.cluster import connection, pool

    numbers: list[int] = []

    @contextmanager
    def local_cluster(number: int) -> Iterator[object]:
        numbers.append(number)
        yield object()

    @contextmanager
    def joined_cluster(place: str, keys: Path | None, *, is_insecure: bool) -> Iterator[object]:
        yield SimpleNamespace(scheduler_info=lambda n_workers: {"workers": dict.fromkeys("abc")})

    class Connected(FakePool):
        def __init__(self, client: object, plans: Sequence[Plan], data: Path | None, **options: Any) -> None:
            super().__init__([])

        @contextmanager
        def at_work(self) -> Iterator[FakePool]:
            yield self

    monkeypatch.setattr(connection, "local_cluster", local_cluster)
    monkeypatch.setattr(connection, "joined_cluster", joined_cluster)
    monkeypatch.setattr(pool, "DaskPool", Connected)
    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setattr(machine, "available_bytes", lambda: 1000)
    return numbers


def number_of(scale: Scale, *plans: Plan) -> int | None:
    """How many runs are played at once; None if this process plays them."""
    with scaled_out(scale, plans, None) as (pool, number):
        assert pool is not None or number == 1
        return None if pool is None else number


def finish(plan: Plan, arm: str, seed: int, peak_bytes: float = 1.0) -> None:
    plan.directory.start(arm, seed)
    plan.directory.mark_done(arm, seed, {"wall_s": 1.0, "peak_memory_bytes": peak_bytes})


def test_no_more_workers_are_started_than_requested_or_useful(tmp_path: Path, started: list[int]) -> None:
    first, second = a_plan(tmp_path, "ab", name="one"), a_plan(tmp_path, "a", name="two")
    assert [number_of(Scale(jobs), first, second) for jobs in (1, 4, 40)] == [None, 4, 6]
    assert started == [4, 6]


def test_auto_counts_cores_threads_and_memory(tmp_path: Path, started: list[int]) -> None:
    threads: dict[str, Any] = {"executor": {"threads": 3}}
    plan = a_plan(tmp_path, "abcde", name="one")
    assert number_of(Scale(None), plan) == 8
    assert number_of(Scale(None), plan, a_plan(tmp_path, "a", name="two", **threads)) == 2
    finish(plan, "a", 0, 150.0)
    finish(plan, "b", 0, 90.0)
    assert number_of(Scale(None), plan) == 5  # 800 / 150
    finish(plan, "c", 0, 500.0)
    assert number_of(Scale(None), plan) is None
    assert started == [8, 2, 5]


def test_for_at_most_one_run_no_worker_is_started(tmp_path: Path, started: list[int]) -> None:
    plan = a_plan(tmp_path, "ab", [0])
    finish(plan, "a", 0)
    assert number_of(Scale(4), plan) is None
    finish(plan, "b", 0)
    assert number_of(Scale(4), plan) is None
    assert number_of(Scale(cluster="tls://node1:8786"), plan) is None
    assert started == []


def test_a_cluster_plays_at_most_as_many_runs_as_it_has_workers(tmp_path: Path, started: list[int]) -> None:
    assert number_of(Scale(cluster="tls://node1:8786"), a_plan(tmp_path, "ab", name="one")) == 3
    assert number_of(Scale(cluster="tls://node1:8786"), a_plan(tmp_path, "a", [0], name="two")) == 1
    assert started == []
