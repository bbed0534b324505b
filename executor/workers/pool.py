"""Who does which job: workers take jobs as they get done, so that fast ones do more of them.

Nothing here knows what a job is. A worker that is lost is replaced and its job done again; one that takes far
longer than the others is a straggler, whose job an idle worker does again, and the first answer counts. So
whoever hands out jobs must not care who does them, or how often.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from emulator.errors import ResumableError
from emulator.state_tree import Tree
from executor.workers import failures
from executor.workers.channel import Channel, LostError

MOST_LOST = 3
"""Workers in a row that one job may cost."""

MOST_STARTS = 5
"""Attempts at starting one."""

STRAGGLES_AFTER = 2.0  # times as long as the slowest of the latest jobs took, by their sizes
STRAGGLES_AFTER_S = 0.25  # at least, as a job done again takes a processor from the others
LOOK_S = 1.0  # at most between two looks for stragglers
LATEST = 16
PREPARING_S = 30.0  # what a worker may take longer for a job that it has to be set up for
FAREWELL_S = 0.5  # for a worker whose connection is closed to end by itself


class Worker(Protocol):
    """A process that does jobs. `restarts`: another one can take its place. `pid`: None for one that is not
    known here, as on another machine."""

    channel: Channel
    restarts: bool

    @property
    def pid(self) -> int | None: ...

    def hand_over(self, number: int, descriptors: Sequence[int]) -> None: ...

    def end(self, patience_s: float = 0.0) -> str: ...


Hire = Callable[[], Worker]
"""Starts a worker; LostError where it does not come up."""


@dataclass(frozen=True)
class Context:
    """What a worker must know before it does a job: sent once to each, and kept until the next one of its
    `slot`. `number` tells those of a slot apart. `descriptors` are open files that go with it; `prepares`:
    that takes the worker a while."""

    slot: str
    number: int
    body: Tree
    descriptors: Sequence[int] = ()
    prepares: bool = False


@dataclass(frozen=True)
class Job:
    """One thing to do. `body` says so to a worker, and may depend on what that one holds already.

    `size` is how much work it is, in a unit of its `kind`'s own. `prefers` is the worker that has least to do
    for it: others do it only when that one is lost, or straggles.
    """

    kind: str
    size: float
    body: Callable[[Worker], Tree]
    contexts: Sequence[Context] = ()
    prefers: Worker | None = None


@dataclass(frozen=True)
class Answer:
    """What came back of the job at `index`, and from whom."""

    index: int
    body: Tree
    worker: Worker


@dataclass
class _Wave:
    """Jobs that are being done; all but the jobs changes under the pool's lock."""

    jobs: Sequence[Job]
    waiting: deque[int] = field(default_factory=deque)
    answers: deque[Answer] = field(default_factory=deque)
    answered: set[int] = field(default_factory=set)
    lost: dict[int, int] = field(default_factory=dict)
    error: BaseException | None = None


@dataclass
class _Doing:
    """What a place has at hand."""

    wave: _Wave
    index: int
    since: float
    patience_s: float
    prepares: bool

    @property
    def job(self) -> Job:
        return self.wave.jobs[self.index]

    @property
    def is_open(self) -> bool:
        return self.index not in self.wave.answered


class Pool:
    """Places for workers, each with a thread that hires one and hands it jobs; they start at once.

    A worker that gives no answer for `timeout_s` is given up. To be closed at the end.
    """

    def __init__(self, hires: Sequence[Hire], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        lock = threading.RLock()
        self._changed = threading.Condition(lock)  # for those who look for something to do
        self._arrived = threading.Condition(lock)  # for whoever waits for answers
        self._wave: _Wave | None = None
        self._closing = False
        self._broken: BaseException | None = None
        self._seconds_each: dict[str, deque[float]] = {}  # by kind of job, for one of its size
        self._number = 0
        self.lost = 0  # workers, so far
        self.done_again = 0  # jobs of stragglers, so far
        self._places = [_Place(hire) for hire in hires]
        self._threads = [
            threading.Thread(target=self._work, args=(place,), name=f"worker {number}", daemon=True)
            for number, place in enumerate(self._places)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def workers(self) -> list[Worker]:
        """Those that are there now."""
        with self._changed:
            return [place.worker for place in self._places if place.worker is not None]

    def wait_for_all(self) -> None:
        """Until every place has a worker: for whoever measures."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._broken or all(place.worker for place in self._places))
            if self._broken:
                raise self._broken

    def number(self) -> int:
        """A number that was not given before, for contexts and whatever else has to be told apart."""
        self._number += 1
        return self._number

    def is_there(self, worker: Worker) -> bool:
        """Whether it still is, with all that it holds."""
        return any(place.worker is worker for place in self._places)

    def answers(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        """Do `jobs`, and give out what comes back of each as it comes; one call at a time.

        What goes wrong in a job is raised here. ResumableError where the workers are lost.
        """
        wave = _Wave(jobs, deque(range(len(jobs))))
        with self._changed:
            self._wave = wave
            self._changed.notify_all()
        try:
            for _ in jobs:
                with self._arrived:
                    self._arrived.wait_for(lambda: wave.answers or wave.error or self._broken)
                    problem = wave.error or self._broken
                    if problem is not None:
                        raise problem
                    answer = wave.answers.popleft()
                yield answer
        finally:
            with self._changed:
                self._wave = None  # what still comes back of it is of no use

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self.workers:
            worker.end()
        for thread in self._threads:
            thread.join()

    def _work(self, place: _Place) -> None:
        """The thread of one place."""
        try:
            while self._hire(place):
                while (doing := self._next(place)) is not None:
                    try:
                        answer = self._ask(place, doing.job)
                    except LostError as error:
                        self._lose(place, doing, error)
                        break
                    self._settle(place, doing, answer)
                else:
                    return
        except BaseException as error:  # whoever waits for answers is told, and the place stays empty
            with self._arrived:
                self._broken = self._broken or error
                self._arrived.notify_all()

    def _hire(self, place: _Place) -> bool:
        """Find a worker for `place`; False once the pool is closed."""
        for attempt in range(1, MOST_STARTS + 1):
            try:
                worker = place.hire()
            except LostError as error:
                if attempt == MOST_STARTS or self._closing:
                    raise ResumableError(f"no worker comes up: {error}") from error
                continue
            with self._changed:
                if self._closing:
                    worker.end()
                    return False
                place.worker, place.knows = worker, {}
                self._arrived.notify_all()
                return True
        return False

    def _next(self, place: _Place) -> _Doing | None:
        """What `place` is to do; waits for it, and is None once the pool is closed."""
        with self._changed:
            place.doing = None
            while not self._closing:
                index = self._pick(place)
                if index is not None:
                    assert self._wave is not None
                    job = self._wave.jobs[index]
                    prepares = place.must_prepare(job)
                    patience_s = self._patience_s(job) + PREPARING_S * prepares
                    place.doing = _Doing(self._wave, index, time.monotonic(), patience_s, prepares)
                    return place.doing
                self._changed.wait(self._until_straggling_s())
            return None

    def _pick(self, place: _Place) -> int | None:
        """The first job that waits for this place; else one of a straggler's."""
        wave = self._wave
        if wave is None or wave.error is not None:
            return None
        straggling = [other for other in self._places if other is not place and other.straggles]
        for index in wave.waiting:
            wanted = wave.jobs[index].prefers
            if wanted is None or wanted is place.worker or not self._is_reachable(wanted, straggling):
                wave.waiting.remove(index)
                return index
        at_hand = [other.doing for other in self._places if other.doing is not None]
        for doing in sorted((other.doing for other in straggling if other.doing), key=lambda own: own.since):
            again = [other for other in at_hand if other.wave is wave and other.index == doing.index]
            if doing.wave is wave and doing.is_open and len(again) == 1:
                self.done_again += 1
                return doing.index
        return None

    def _is_reachable(self, worker: Worker, straggling: Sequence[_Place]) -> bool:
        return self.is_there(worker) and not any(other.worker is worker for other in straggling)

    def _until_straggling_s(self) -> float | None:
        """Seconds until a place may straggle: None where nobody has anything to do."""
        if self._wave is None:
            return None
        now = time.monotonic()
        ends = [place.doing.since + place.doing.patience_s for place in self._places if place.doing]
        return min([LOOK_S, *(end - now for end in ends if end > now)])

    def _patience_s(self, job: Job) -> float:
        """How long a worker may take for `job` before it straggles: by how long the latest took."""
        latest = self._seconds_each.get(job.kind)
        if not latest:
            return float("inf")
        return max(STRAGGLES_AFTER_S, STRAGGLES_AFTER * job.size * max(latest))

    def _ask(self, place: _Place, job: Job) -> Tree:
        """What the worker of `place` makes of `job`; LostError when the worker is."""
        worker = place.worker
        assert worker is not None
        news = [one for one in job.contexts if place.knows.get(one.slot) != one.number]
        for context in news:
            if context.descriptors:
                worker.hand_over(context.number, context.descriptors)
        sent = [{"slot": one.slot, "number": one.number, "body": one.body} for one in news]
        worker.channel.send({"kind": job.kind, "contexts": sent, "body": job.body(worker)}, self._timeout_s)
        place.knows |= {one.slot: one.number for one in news}
        return worker.channel.receive(self._timeout_s)

    def _settle(self, place: _Place, doing: _Doing, answer: Tree) -> None:
        """Note what came back, unless somebody else was faster or nobody waits for it any more."""
        took_s = time.monotonic() - doing.since
        with self._changed:
            wave, worker = doing.wave, place.worker
            assert worker is not None
            place.prepared = True
            if not doing.prepares and doing.job.size > 0:
                latest = self._seconds_each.setdefault(doing.job.kind, deque(maxlen=LATEST))
                latest.append(took_s / doing.job.size)
            if not doing.is_open:
                return
            error = failures.of_answer(answer)
            if error is not None:
                wave.error = wave.error or error
            else:
                wave.answered.add(doing.index)
                wave.answers.append(Answer(doing.index, answer["answer"], worker))
            self._arrived.notify_all()

    def _lose(self, place: _Place, doing: _Doing, error: LostError) -> None:
        """Give up the worker of `place`: what it was doing is to be done again."""
        worker, wave, index = place.worker, doing.wave, doing.index
        took_s = time.monotonic() - doing.since
        silent = took_s >= self._timeout_s
        assert worker is not None
        ended = worker.end(0.0 if silent else FAREWELL_S)
        reason = f"gave no answer for {took_s:.0f} s" if silent else f"{ended} ({error})"
        with self._changed:
            place.worker, place.doing, place.prepared = None, None, False
            if self._closing:
                return
            self.lost += 1
            if not worker.restarts:
                raise ResumableError(f"a worker is lost: {reason}; start the job again, and it goes on")
            if doing.is_open:
                wave.lost[index] = wave.lost.get(index, 0) + 1
                at_hand = [other.doing for other in self._places if other.doing is not None]
                if wave.lost[index] >= MOST_LOST:
                    wave.error = wave.error or ResumableError(
                        f"{MOST_LOST} workers in a row were lost over one job ({doing.job.kind}): the last "
                        f"{reason}; where memory is short take fewer executor.workers, and where a job takes "
                        f"longer than executor.worker_timeout_s = {self._timeout_s:g} raise that"
                    )
                elif not any(other.wave is wave and other.index == index for other in at_hand):
                    wave.waiting.appendleft(index)
            self._arrived.notify_all()
            self._changed.notify_all()


@dataclass(eq=False)
class _Place:
    """Room for one worker at a time."""

    hire: Hire
    worker: Worker | None = None
    knows: dict[str, int] = field(default_factory=dict)  # the number of the context in each slot
    doing: _Doing | None = None
    prepared: bool = False

    @property
    def straggles(self) -> bool:
        """Whether what it has at hand takes far longer than it should."""
        return self.doing is not None and time.monotonic() > self.doing.since + self.doing.patience_s

    def must_prepare(self, job: Job) -> bool:
        news = (one for one in job.contexts if self.knows.get(one.slot) != one.number)
        return not self.prepared or any(one.prepares for one in news)
