from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import distributed
import pytest

from experiments.cluster import members
from experiments.cluster.installation import source_digest
from experiments.jobs.workplace import Job, described
from experiments.running.locking import lock_content, locked
from experiments.running.plan import Plan
from tests.experiments.jobs.fakes import a_plan


class Worker:
    """A worker's process, as far as commands see it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.logged: list[tuple[str, Any]] = []
        self.address = "tls://10.0.0.7:4711"

    def log_event(self, topic: str, body: Any) -> None:
        self.logged.append((topic, body))

    def meet(self, token: str, digest: str = "", **plan: Any) -> dict[str, Any]:
        name = self.plan.experiment.name
        plans = {name: {**described(self.plan, None), **plan}}
        return members.meet(
            token, digest or source_digest(), plans, {name: lock_content(self.plan.directory)}
        )

    def do(self, token: str, arm: str = "a") -> dict[str, Any]:
        run = next(run for run in self.plan.runs() if run.arm == arm)
        return members.do(token, Job(run, is_draw=False, files={}))


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    plan = a_plan(tmp_path, "ab", [0])
    worker = Worker(plan)
    monkeypatch.setattr(members, "_workplaces", {})
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    with locked(plan.directory.path):
        yield worker


def test_a_worker_that_was_met_does_jobs_and_logs_events_for_its_command(worker: Worker) -> None:
    facts = worker.meet("one")
    assert (facts["refusal"], facts["is_busy"]) == (None, False)
    assert facts["available_bytes"] > 0
    assert worker.do("one")["end"] == "done"
    assert {topic for topic, _ in worker.logged} == {"one"}
    assert {body["at"] for _, body in worker.logged} == {worker.address}


def test_a_job_of_a_command_whose_worker_another_one_has_met_ends_stopped(worker: Worker) -> None:
    """So that the command meets it again, instead of taking it for lost."""
    worker.meet("one")
    worker.meet("two")
    assert worker.do("one") == {"end": "stopped", "notes": []}
    assert worker.do("two")["end"] == "done"


def test_a_worker_at_a_run_is_busy_for_every_command_and_keeps_it(worker: Worker) -> None:
    worker.meet("one")
    seen = []
    worker.log_event = lambda topic, body: seen.append(worker.meet("two")["is_busy"])  # type: ignore[method-assign]
    assert worker.do("one")["end"] == "done"
    assert seen
    assert all(seen)
    assert worker.do("two")["end"] == "stopped"


def test_other_sources_another_directory_and_a_missing_part_are_refused(worker: Worker) -> None:
    assert worker.meet("one", "0" * 64)["refusal"].startswith("has another driftscale (sources ")
    assert worker.meet("one", directory="/nowhere")["refusal"].startswith(
        "does not see the run directory /no"
    )
    strange = worker.plan.experiment.resolved()
    strange["arm"][0]["clusterer"] = {"kind": "from_a_plug_in"}
    refusal = worker.meet("one", experiment=strange)["refusal"]
    assert refusal.startswith("cannot play these runs: ")
    assert "from_a_plug_in" in refusal
    assert worker.do("one")["end"] == "stopped"  # it has no plans


def test_a_worker_that_is_met_leaves_signals_to_its_nanny_if_it_has_one(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignoring: list[object] = []
    monkeypatch.setattr(members.child_signals, "ignore", lambda: ignoring.append(True))
    for nanny, number in ((None, 0), ("tls://10.0.0.7:4712", 1)):
        members.meet("one", "another", {}, {}, dask_worker=SimpleNamespace(nanny=nanny))
        assert len(ignoring) == number


def test_stop_and_runs_beside_reach_the_command_s_own_runs_only(worker: Worker) -> None:
    worker.meet("one")
    members.stop("two")
    members.runs_beside("two", 5)
    members.runs_beside("one", 0)
    assert worker.do("one")["end"] == "done"
    assert "runs_beside" not in worker.plan.directory.run_file("a", 0, "timing.json").read_text()
    members.stop("one")
    assert worker.do("one", "b")["end"] == "stopped"
