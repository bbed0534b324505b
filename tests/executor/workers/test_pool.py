"""The pool over fakes: workers in threads, that do as they are told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from emulator.errors import ConfigurationError, ResumableError
from executor.workers import failures, pool
from executor.workers.channel import Channel, LostError
from executor.workers.pool import Context, Job, Pool, Worker

Play = Callable[["FakeWorker", Any], Any]
"""What a worker answers to the body of a job; LostError where it dies over it."""


class FakeWorker:
    """Its own channel: `receive` plays what was sent."""

    restarts = True

    def __init__(self, name: int, play: Play) -> None:
        self.name = name
        self.channel = cast(Channel, self)
        self.messages: list[dict[str, Any]] = []
        self.handed: list[tuple[int, Sequence[int]]] = []
        self.ended = threading.Event()
        self._play = play

    def send(self, message: dict[str, Any], timeout_s: float | None = None) -> None:
        self.messages.append(message)

    def receive(self, timeout_s: float | None = None) -> Any:
        if self.ended.is_set():
            raise LostError("closed")
        try:
            return {"answer": self._play(self, self.messages[-1]["body"])}
        except LostError:
            raise
        except Exception as error:
            return failures.as_answer(error)

    def hand_over(self, number: int, descriptors: Sequence[int]) -> None:
        self.handed.append((number, descriptors))

    def end(self, patience_s: float = 0.0) -> str:
        self.ended.set()
        return "ended"


class Hired:
    """Everybody who was hired, in order."""

    def __init__(self, *plays: Play) -> None:
        self.workers: list[FakeWorker] = []
        self._plays = plays
        self._lock = threading.Lock()

    def hires(self, places: int) -> list[Callable[[], Worker]]:
        return [self._hire] * places

    def _hire(self) -> Worker:
        with self._lock:
            number = len(self.workers)
            self.workers.append(FakeWorker(number, self._plays[min(number, len(self._plays) - 1)]))
            return self.workers[-1]


def jobs(*bodies: Any, **keywords: Any) -> list[Job]:
    return [Job("job", 1.0, lambda worker, body=body: body, **keywords) for body in bodies]  # type: ignore[misc]


def bodies(team: Pool, work: Sequence[Job]) -> list[Any]:
    """What came back, in the order of the jobs."""
    return [answer.body for answer in sorted(team.answers(work), key=lambda answer: answer.index)]


def echo(worker: FakeWorker, body: Any) -> Any:
    return body


def dies(worker: FakeWorker, body: Any) -> Any:
    raise LostError("closed")


def waits_for_the_end(worker: FakeWorker, body: Any) -> Any:
    worker.ended.wait(20)
    raise LostError("closed")


@pytest.mark.parametrize("places", [1, 2, 4])
def test_every_job_is_answered_once(places: int) -> None:
    with Pool(Hired(echo).hires(places), 10) as team:
        for _ in range(3):
            assert bodies(team, jobs(*range(20))) == list(range(20))
        assert bodies(team, []) == []


def test_a_fast_worker_does_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "STRAGGLES_AFTER_S", 60.0)  # nobody is to do the slow one's job again
    slow_is_let_go = threading.Event()

    def slow(worker: FakeWorker, body: Any) -> Any:
        slow_is_let_go.wait(20)
        return body

    def last_lets_go(worker: FakeWorker, body: Any) -> Any:
        if body == 8:
            slow_is_let_go.set()
        return body

    hired = Hired(slow, last_lets_go)
    with Pool(hired.hires(2), 20) as team:
        team.wait_for_all()
        assert bodies(team, jobs(*range(9))) == list(range(9))
        assert sorted(len(worker.messages) for worker in hired.workers) in ([0, 9], [1, 8])


def test_a_worker_that_dies_is_replaced_and_its_job_done_again() -> None:
    hired = Hired(dies, echo)
    with Pool(hired.hires(1), 10) as team:
        assert bodies(team, jobs("a", "b")) == ["a", "b"]
        assert team.lost == 1
        assert [message["body"] for message in hired.workers[1].messages] == ["a", "b"]
        assert hired.workers[0].ended.is_set()


def test_a_job_that_costs_three_workers_in_a_row_is_given_up() -> None:
    hired = Hired(dies)
    with (
        Pool(hired.hires(1), 10) as team,
        pytest.raises(ResumableError, match=r"3 workers in a row were lost over one job \(job\)"),
    ):
        bodies(team, jobs("a"))
    assert len(hired.workers) in (3, 4)  # the next one may be up by then


def test_an_error_in_a_job_is_raised_here_and_not_tried_again() -> None:
    def refuses(worker: FakeWorker, body: Any) -> Any:
        raise ConfigurationError(f"job {body}: must not be")

    hired = Hired(refuses)
    with Pool(hired.hires(1), 10) as team, pytest.raises(ConfigurationError, match="job a: must not be"):
        bodies(team, jobs("a", "b", "c"))
    assert len(hired.workers[0].messages) == 1


def test_after_an_error_the_next_jobs_are_done() -> None:
    def refuses_a(worker: FakeWorker, body: Any) -> Any:
        if body == "a":
            raise ValueError("no a")
        return body

    with Pool(Hired(refuses_a).hires(2), 10) as team:
        with pytest.raises(failures.WorkerFaultError, match="ValueError: no a"):
            bodies(team, jobs("a", "b"))
        assert bodies(team, jobs("c", "d")) == ["c", "d"]


def test_a_straggler_s_job_is_done_again_and_its_late_answer_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "STRAGGLES_AFTER_S", 0.02)
    monkeypatch.setattr(pool, "PREPARING_S", 0.0)
    released = threading.Event()
    stuck: list[FakeWorker] = []

    def sticks_once(worker: FakeWorker, body: Any) -> Any:
        if body == "stick" and not stuck:
            stuck.append(worker)
            released.wait(20)
            return "late"
        return body

    with Pool(Hired(sticks_once).hires(2), 20) as team:
        team.wait_for_all()
        bodies(team, jobs(*range(40)))  # so that it is known how long a job takes
        assert bodies(team, jobs("stick", "b", "c")) == ["stick", "b", "c"]
        assert team.done_again >= 1
        released.set()
        assert bodies(team, jobs(*range(20))) == list(range(20))


def test_a_job_waits_for_the_worker_it_prefers_unless_that_one_is_lost() -> None:
    hired = Hired(echo)
    with Pool(hired.hires(2), 10) as team:
        team.wait_for_all()
        one, other = team.workers
        assert [answer.worker for answer in team.answers(jobs(*range(9), prefers=other))] == [other] * 9
        lost = FakeWorker(99, echo)
        assert bodies(team, jobs("a", prefers=lost)) == ["a"]
        assert one.restarts


def test_a_context_is_sent_once_to_each_worker_and_again_to_one_that_is_new() -> None:
    hired = Hired(echo, echo)
    with Pool(hired.hires(1), 10) as team:
        first = Context("models", team.number(), "first", descriptors=(7,))
        second = Context("models", team.number(), "second")
        for context in (first, first, second):
            bodies(team, jobs("a", contexts=[context]))
        sent = [[one["body"] for one in message["contexts"]] for message in hired.workers[0].messages]
        assert sent == [["first"], [], ["second"]]
        assert hired.workers[0].handed == [(first.number, (7,))]


def test_a_worker_that_never_comes_up_ends_the_run_with_the_reason() -> None:
    def hire() -> Worker:
        raise LostError("it did not start: no such module")

    with (
        Pool([hire], 10) as team,
        pytest.raises(ResumableError, match="no worker comes up: it did not start: no such module"),
    ):
        bodies(team, jobs("a"))


def test_of_a_rank_there_is_no_other() -> None:
    hired = Hired(dies)

    def hire() -> Worker:
        worker = cast(Any, hired._hire())
        worker.restarts = False
        return cast(Worker, worker)

    with Pool([hire], 10) as team, pytest.raises(ResumableError, match="a worker is lost: ended"):
        bodies(team, jobs("a"))
    assert len(hired.workers) == 1


def test_closing_ends_workers_whatever_they_do() -> None:
    hired = Hired(waits_for_the_end)
    team = Pool(hired.hires(2), 20)
    answers = team.answers(jobs("a", "b"))
    threading.Thread(target=lambda: next(answers), daemon=True).start()
    team.wait_for_all()
    team.close()
    assert all(worker.ended.is_set() for worker in hired.workers)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ConfigurationError("a.b = 3: no"), ConfigurationError, "a.b = 3: no"),
        (ResumableError("no memory"), ResumableError, "no memory"),
        (MemoryError("much"), MemoryError, "much"),
        (FileNotFoundError(2, "No such file", "x.csv"), FileNotFoundError, "[Errno 2] No such file: 'x.csv'"),
    ],
)
def test_errors_arrive_as_what_they_are(error: Exception, kind: type[Exception], text: str) -> None:
    found = failures.of_answer(failures.as_answer(error))
    assert type(found) is kind
    assert str(found) == text
