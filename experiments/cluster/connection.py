"""Connections to workers: a cluster of this command's own, or one that is there already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import distributed
from distributed.comm.core import CommClosedError, connect
from distributed.utils import LoopRunner

from emulator.errors import ConfigurationError, InputError, ResumableError
from experiments.cluster import child_signals
from experiments.cluster.addresses import scheduler_address
from experiments.cluster.keys import make_credentials, read_keys
from experiments.cluster.nodes import QuickNanny, QuietScheduler
from experiments.cluster.scratch import scratch_folder
from experiments.cluster.settings import CONNECT_S, apply_settings

LOOPBACK = "127.0.0.1"

T = TypeVar("T")


@contextmanager
def local_cluster(jobs: int) -> Iterator[distributed.Client]:
    """A client of `jobs` new worker processes on this machine, which end with it.

    They and the scheduler, which is in this process, listen on loopback alone, and talk to holders of
    credentials that are made for it.
    """
    apply_settings()
    security = make_credentials().security()
    servers: list[QuickNanny | QuietScheduler] = []

    async def start() -> str:
        common: dict[str, Any] = {"host": LOOPBACK, "protocol": "tls", "security": security}
        scheduler = await QuietScheduler(**common, dashboard=False)
        nannies = [QuickNanny(scheduler.address, **common) for _ in range(jobs)]
        servers.extend([*nannies, scheduler])
        try:
            await asyncio.gather(*nannies)
        except RuntimeError as error:
            raise ResumableError(
                f"no worker process comes up on this machine ({first_cause(error)}); where memory is short "
                f"take fewer --jobs"
            ) from error
        return str(scheduler.address)

    async def close() -> None:
        for server in servers:
            await server.close()

    with scratch_folder(), event_loop() as loop:
        try:
            with _client(wait(loop, start()), security, loop) as client:
                yield client
        finally:
            wait(loop, close())


@contextmanager
def joined_cluster(
    scheduler: str, keys: Path | None = None, *, is_insecure: bool = False
) -> Iterator[distributed.Client]:
    """A client of the cluster whose scheduler is at `place`: an address, or a scheduler file.

    Raises:
        ConfigurationError: `place` is none, needs keys, or is not safe to talk to.
        InputError: Nobody answers there, or refuses these keys; or the keys cannot be used.
    """
    apply_settings()
    address = scheduler_address(scheduler, "--cluster", is_insecure=is_insecure, patience_s=CONNECT_S)
    security = security_for(address, keys, "client")
    with event_loop() as loop:
        loop.run_sync(greet, address, security, CONNECT_S)
        with _client(address, security, loop) as client:
            yield client


def security_for(address: str, keys: Path | None, role: str) -> distributed.Security:
    """The credentials for `address`: those in the folder `keys`, else those of dask's own configuration for
    `role`, which is "client", "scheduler" or "worker"."""
    if keys is not None:
        if not address.startswith("tls://"):
            raise ConfigurationError(f"--keys {keys}: are for tls://, and {address} does without; omit one")
        return read_keys(keys)
    security = distributed.Security()
    if not address.startswith("tls://"):
        return security
    if not has_credentials(security, role):
        raise ConfigurationError(
            f"{address}: tls:// needs keys: name their folder with --keys DIR (driftscale cluster keys DIR "
            f"makes them), or set distributed.comm.tls.ca-file and .{role}.cert in dask's configuration"
        )
    try:
        security.get_connection_args(role)
    except OSError as error:  # of which one is ssl.SSLError
        raise InputError(
            f"distributed.comm.tls in dask's configuration: its files cannot be used: {error}"
        ) from error
    return security


def has_credentials(security: distributed.Security, role: str) -> bool:
    """Whether `security` has a certificate for `role`, and one to check others by."""
    files = security.get_tls_config_for_role(role)
    return bool(files["ca_file"] and files["cert"])


@contextmanager
def event_loop() -> Iterator[LoopRunner]:
    """A thread with an event loop. Processes that are started from it have the command's signals blocked."""
    runner = LoopRunner(asynchronous=False)
    child_signals.start_tracker()
    with child_signals.blocked():
        runner.start()
    try:
        yield runner
    finally:
        runner.stop()


def wait(loop: LoopRunner, coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for something in the loop's thread.

    NOTE: unlike dask's own `run_sync`, a signal ends it at once, and then outside of dask.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, loop.loop.asyncio_loop).result()


@contextmanager
def _client(address: str, security: distributed.Security, loop: LoopRunner) -> Iterator[distributed.Client]:
    with distributed.Client(
        address, security=security, loop=loop.loop, timeout=CONNECT_S, set_as_default=False
    ) as client:
        yield client


async def greet(
    address: str, security: distributed.Security, patience_s: float, role: str = "client"
) -> None:
    """InputError unless somebody at `address` shakes hands within `patience_s`.

    NOTE: dask's client waits for the handshake without end, and does not say whose certificate was refused.
    """
    arguments = security.get_connection_args(role)
    try:
        comm = await asyncio.wait_for(connect(address, timeout=patience_s, **arguments), patience_s)
    except CommClosedError as error:  # an OSError, as is the next
        raise InputError(
            f"{address}: what listens there does not take us for one of its cluster, or is no dask scheduler "
            f"({first_cause(error)!r}); all of a cluster need the same keys, and tls:// or tcp:// alike"
        ) from error
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"{address}: no scheduler answers there within {patience_s:g} s ({first_cause(error)!r})"
        ) from error
    await comm.close()


def first_cause(error: BaseException) -> BaseException:
    """What an error of dask's, which wraps one in another, was at first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
