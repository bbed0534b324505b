from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from experiments.cluster.crew import _facts
from experiments.jobs.crew import Facts

ADDRESS = "tls://10.0.0.7:4711"
SAID: dict[str, Any] = {
    "machine": "node7",
    "available_bytes": 8.0,
    "is_busy": False,
    "refusal": None,
    "rounding": {"torch": "2.6"},
}


def answered(answer: dict[str, Any] | BaseException) -> Facts | None:
    """What the command makes of a worker that was met and answered so."""
    done: Future[Any] = Future()
    if isinstance(answer, BaseException):
        done.set_exception(answer)
    else:
        done.set_result(answer)
    return _facts(ADDRESS, done)


def test_a_worker_is_called_by_its_address_and_machine() -> None:
    place = f"worker {ADDRESS} on node7"
    assert answered(SAID) == Facts(place, "node7", 8.0, rounding={"torch": "2.6"})
    refused = answered({**SAID, "refusal": "has another driftscale"})
    assert refused is not None
    assert refused.refusal == f"{place} has another driftscale"


@pytest.mark.parametrize("error", [OSError("closed"), TimeoutError(), KeyError(ADDRESS)])
def test_a_worker_that_is_out_of_reach_has_not_answered(error: Exception) -> None:
    assert answered(error) is None
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
    facts = answered(error)
    assert facts is not None
    assert facts.refusal == f"worker {ADDRESS} has no driftscale, or another one: {error}"
