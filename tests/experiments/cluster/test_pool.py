from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Client

from experiments.cluster import pool as pool_module
from experiments.cluster.connection import local_cluster
from experiments.cluster.pool import DaskPool, _facts, _Seen
from experiments.jobs.pool import Ended, Facts
from experiments.jobs.workplace import Job
from experiments.running.locking import locked
from tests.experiments.jobs.fakes import a_plan

ADDRESS = "tls://10.0.0.7:4711"
RESPONSE: dict[str, Any] = {
    "machine": "node7",
    "available_bytes": 8.0,
    "is_busy": False,
    "refusal": None,
    "rounding": {"torch": "2.6"},
}


def facts_from(response: dict[str, Any] | BaseException) -> Facts | None:
    """The facts that the command gets from a worker's response to being met."""
    done: Future[Any] = Future()
    if isinstance(response, BaseException):
        done.set_exception(response)
    else:
        done.set_result(response)
    return _facts(ADDRESS, done)


def test_a_worker_is_called_by_its_address_and_machine() -> None:
    name = f"worker {ADDRESS} on node7"
    assert facts_from(RESPONSE) == Facts(name, "node7", 8.0, rounding={"torch": "2.6"})
    refused = facts_from({**RESPONSE, "refusal": "has another driftscale"})
    assert refused is not None
    assert refused.refusal == f"{name} has another driftscale"


@pytest.mark.parametrize("error", [OSError("closed"), TimeoutError(), KeyError(ADDRESS)])
def test_a_worker_that_is_out_of_reach_has_not_answered(error: Exception) -> None:
    assert facts_from(error) is None
    gone: Future[Any] = Future()
    gone.cancel()
    assert _facts(ADDRESS, gone) is None


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'experiments'"),
        AttributeError("module has no attribute 'meet'"),
        Exception("""ModuleNotFoundError("No module named 'experiments'")"""),  # as dask quotes it
    ],
)
def test_a_worker_without_our_code_is_refused(error: Exception) -> None:
    facts = facts_from(error)
    assert facts is not None
    assert facts.refusal == f"worker {ADDRESS} has no driftscale, or another one: {error}"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with local_cluster(1) as client:
        yield client


@pytest.mark.slow
def test_a_job_for_a_worker_that_has_just_left_has_ended(client: Client, tmp_path: Path) -> None:
    plan = a_plan(tmp_path, "ab", [0])
    job = Job(plan.runs()[0], is_draw=True, files={})
    with (
        locked(plan.directory.path),
        DaskPool(client, [plan], None, same_data=True).at_work() as pool,
    ):
        gone = "tls://127.0.0.1:1"
        pool.begin(gone, job)
        assert pool.next_event(240.0) == Ended(gone, job, None, "its process ended")


def test_workers_are_not_silent_for_as_long_as_the_command_was_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(tmp_path, "ab", [0])
    now_s = 1000.0
    monkeypatch.setattr(pool_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    client = SimpleNamespace(loop=SimpleNamespace(asyncio_loop=None), scheduler=object())
    with locked(plan.directory.path):
        pool = DaskPool(cast(Any, client), [plan], None, same_data=True)
    pool._seen[ADDRESS] = _Seen(sign=1.0, since_s=now_s)
    silences_s = []
    for later_s in (0.0, 4.0, 4.0, 3600.0, 4.0):
        now_s += later_s
        silences_s.append(pool.silent_s(ADDRESS))
    assert silences_s == [0.0, 4.0, 8.0, 0.0, 4.0]


@pytest.mark.slow
def test_a_worker_that_is_silent_is_not_waited_for(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "SILENT_S", 2.0)
    plan = a_plan(tmp_path, "ab", [0])
    with (
        locked(plan.directory.path),
        DaskPool(client, [plan], None, same_data=False).at_work() as pool,
    ):
        [process] = client.run(os.getpid).values()
        while not (addresses := pool.addresses()):
            time.sleep(0.05)
        os.kill(process, signal.SIGSTOP)
        assert pool.check_files(addresses, {}) is None
