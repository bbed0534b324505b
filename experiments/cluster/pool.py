"""The workers of a dask cluster as a `WorkerPool`: jobs are dask tasks, reports are events of a dask topic.

Calls over the network run in the client's event loop. The command's thread waits for none of them but
`check_files`: what happens reaches it through a queue.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future as Waiting
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

import distributed
from distributed.client import FutureCancelledError

from emulator.errors import ResumableError
from experiments.cluster import members
from experiments.cluster.installation import source_digest
from experiments.jobs.pool import Ended, Facts, Met, Told
from experiments.jobs.workplace import Job, described
from experiments.locating import DataFolders
from experiments.results.reading.json_files import Identity
from experiments.running.locking import lock_content
from experiments.running.plan import Plan

LOOK_S = 1.0
"""Wall seconds between two polls of the scheduler for the workers that are present."""

AWAY_S = 5.0
"""Wall seconds between two calls of `silent_s` after which the command counts as having been suspended.

Its workers may have been suspended too, so that silence counts only from then on.
"""

SILENT_S = 30.0
"""Wall seconds without a sign of life after which the check of a worker's files is skipped."""

REPLACED_S = 60.0
"""Maximum wall seconds to wait for the replacement of a killed worker, or for the result of a done task."""


@dataclass
class _Seen:
    """A worker's last sign of life.

    `sign` is the scheduler's time stamp of it, `since_s` the monotonic time at which this process first saw
    that time stamp.
    """

    sign: float
    since_s: float


class DaskPool:
    """The `experiments.jobs.pool.WorkerPool` of the workers that `client` reaches. Use it within `at_work`.

    Args:
        client: A connected client.
        plans: The plans, whose run directories this process has locked.
        data: The folders that --data names.
        same_data: Whether workers read the same data files as the command, so that they need no check.
    """

    def __init__(
        self, client: distributed.Client, plans: Sequence[Plan], data: DataFolders, *, same_data: bool
    ) -> None:
        assert client.loop is not None, "it is connected"
        assert client.scheduler is not None, "it is connected"
        self._client = client
        self._loop: asyncio.AbstractEventLoop = cast(Any, client.loop).asyncio_loop
        self._scheduler = client.scheduler
        self._token = f"driftscale-{uuid4().hex}"
        self._plans = {plan.experiment.name: described(plan, data) for plan in plans}
        self._locks = {plan.experiment.name: lock_content(plan.directory) for plan in plans}
        self._same_data = same_data
        self._events: queue.SimpleQueue[Told | Ended | Met] = queue.SimpleQueue()
        self._seen: dict[str, _Seen] = {}
        self._tasks: dict[str, tuple[Job, distributed.Future[Any]]] = {}
        self._gone: str | None = None
        self._silence_checked_s = 0.0  # last call of `silent_s`
        self._awake_s = 0.0  # the first call of `silent_s` after a suspension
        self._number = 0

    @contextmanager
    def at_work(self) -> Iterator[DaskPool]:
        """Context in which reports are received, and the scheduler is polled for the present workers."""
        self._client.subscribe_topic(self._token, self._hear)
        watching = self._in_loop(self._watch())
        try:
            yield self
        finally:
            watching.cancel()
            with suppress(Exception):  # the cluster may be gone
                self._client.unsubscribe_topic(self._token)

    def addresses(self) -> Sequence[str]:
        if self._gone is not None:
            raise ResumableError(
                f"the cluster is gone ({self._gone}); its workers finish the runs that they play, and the "
                f"same command plays the others once there is a cluster again"
            )
        return list(self._seen)

    def meet(self, address: str) -> None:
        arguments = (self._token, source_digest(), self._plans, self._locks)
        self._call(members.meet, address, *arguments).add_done_callback(
            lambda done: self._events.put(Met(address, _facts(address, done)))
        )

    def check_files(
        self, addresses: Sequence[str], files: Mapping[str, Mapping[str, Identity]]
    ) -> str | None:
        if self._same_data:
            return None
        calls = {
            address: self._call(members.check_files, address, self._token, files) for address in addresses
        }
        for address, call in calls.items():
            while not call.done() and address in self._seen and self.silent_s(address) < SILENT_S:
                wait([call], LOOK_S)
            with suppress(Exception):  # gone or silent: each job has the identities of its files too
                refusal = call.result(0)
                if refusal is not None:
                    return f"worker {address}: {refusal}"
        return None

    def begin(self, address: str, job: Job) -> None:
        self._number += 1
        task = self._client.submit(
            members.do,
            self._token,
            job,
            key=f"{self._token}-{self._number}",
            workers=[address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        self._tasks[address] = job, task
        task.add_done_callback(lambda done: self._events.put(self._ended(address, job, done)))

    def next_event(self, patience_s: float) -> Told | Ended | Met | None:
        try:
            event = self._events.get(timeout=patience_s) if patience_s else self._events.get_nowait()
        except queue.Empty:
            return None
        if isinstance(event, Ended):
            job, _ = self._tasks.get(event.address, (None, None))
            if job is event.job:
                del self._tasks[event.address]
        return event

    def silent_s(self, address: str) -> float:
        now_s, seen = time.monotonic(), self._seen.get(address)
        if now_s - self._silence_checked_s > AWAY_S:
            self._awake_s = now_s
        self._silence_checked_s = now_s
        return 0.0 if seen is None else now_s - max(seen.since_s, self._awake_s)

    def replace(self, address: str) -> None:
        self._tasks.pop(address, None)
        self._in_loop(self._client._restart_workers([address], timeout=REPLACED_S, raise_for_error=False))

    def stop(self, addresses: Sequence[str]) -> None:
        for address in addresses:
            self._call(members.stop, address, self._token)

    def runs_beside(self, addresses: Sequence[str], number: int) -> None:
        for address in addresses:
            self._call(members.runs_beside, address, self._token, number)

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, body = event
        self._events.put(Told(body["at"], body))

    def _call(self, function: Callable[..., Any], address: str, *arguments: Any) -> Waiting[Any]:
        """Start a call of `function` in the worker at `address`; returns a future of its result."""

        async def call() -> Any:
            results = await self._client._run(function, *arguments, workers=[address])
            return results[address]

        return self._in_loop(call())

    def _in_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Waiting[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _ended(self, address: str, job: Job, task: distributed.Future[Any]) -> Ended:
        """The event for a task that is done: has its result, or the reason why its worker was lost."""
        try:
            return Ended(address, job, task.result(timeout=REPLACED_S))
        except FutureCancelledError:  # we never cancel jobs: the client has lost its scheduler
            self._gone = self._gone or "its scheduler no longer responds"
            return Ended(address, job, None, self._gone)
        except Exception as error:
            return Ended(address, job, None, _why_lost(error))

    async def _watch(self) -> None:
        """Poll the scheduler for the present workers, until it is gone.

        Puts an `Ended` into the queue for the job of each worker that is no longer present.
        """
        while True:
            try:
                workers = (await self._scheduler.identity(n_workers=-1))["workers"]
            except Exception as error:  # of any kind: the workers can no longer be reached
                self._gone = str(error) or type(error).__name__
                for address, (job, _) in list(self._tasks.items()):
                    self._events.put(Ended(address, job, None, "the cluster is gone"))
                return
            now_s = time.monotonic()
            for address, worker in workers.items():
                seen = self._seen.get(address)
                if seen is None or seen.sign != worker["last_seen"]:
                    self._seen[address] = _Seen(worker["last_seen"], now_s)
            for address in [known for known in self._seen if known not in workers]:
                del self._seen[address]
            # Including a worker that was given its job after it had left.
            for address, (job, task) in list(self._tasks.items()):
                if address not in workers and not task.done():
                    self._events.put(Ended(address, job, None, "its process ended"))
            await asyncio.sleep(LOOK_S)


def _facts(address: str, done: Waiting[Any]) -> Facts | None:
    """A worker's facts from its response to `members.meet`; None if it did not respond.

    A worker that cannot import that function gets facts with a refusal.
    """
    try:
        facts = done.result()
    except Exception as error:
        # The worker cannot import the function; dask may raise a plain Exception that quotes the ImportError.
        if not isinstance(error, ImportError | AttributeError) and type(error) is not Exception:
            return None
        name = f"worker {address}"
        return Facts(name, "", 0.0, refusal=f"{name} has no driftscale, or another one: {error}")
    name = f"worker {address} on {facts['machine']}"
    refusal = None if facts["refusal"] is None else f"{name} {facts['refusal']}"
    return Facts(name=name, **{**facts, "refusal": refusal})


def _why_lost(error: Exception) -> str:
    if isinstance(error, distributed.scheduler.KilledWorker):
        return "its process ended"
    return f"{type(error).__name__}: {error}".splitlines()[0]
