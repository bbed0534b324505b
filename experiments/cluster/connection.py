"""Connections to workers: a cluster of the command's own, or an existing one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
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
from experiments.cluster.settings import CONNECT_S, configure_dask

LOOPBACK = "127.0.0.1"

WORKER = "Dask Worker process (from Nanny)"
"""How distributed's nanny names the process of a worker."""

OF_THE_MAIN_MODULE = ("init_main_from_name", "init_main_from_path")

T = TypeVar("T")


@contextmanager
def local_cluster(jobs: int) -> Iterator[distributed.Client]:
    """Context with a client of `jobs` new worker processes on this machine, which end with the context.

    The workers, and the scheduler in this process, listen on loopback only, and accept only holders of
    credentials that are made for this cluster. ResumableError if no worker process starts.
    """
    configure_dask()
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

    with scratch_folder(), without_main_module(), event_loop() as loop:
        try:
            with _client(wait(loop, start()), security, loop) as client:
                yield client
        finally:
            wait(loop, close())


@contextmanager
def without_main_module() -> Iterator[None]:
    """Context in which workers of dask are started without the main module; other processes keep theirs.

    A process that is started by spawning imports the main module of its parent. Workers need nothing of it,
    and a script that calls `driftscale.run` without a main guard would call it again in each worker.

    NOTE: multiprocessing has no setting for this; the test with a script that has no main guard pins it.
    """
    prepare = spawn.get_preparation_data

    def without_main(name: str) -> dict[str, Any]:
        data: dict[str, Any] = prepare(name)
        if name == WORKER:
            for key in OF_THE_MAIN_MODULE:
                data.pop(key, None)
        return data

    spawn.get_preparation_data = without_main
    try:
        yield
    finally:
        spawn.get_preparation_data = prepare


@contextmanager
def joined_cluster(
    scheduler: str, keys: Path | None = None, *, is_insecure: bool = False
) -> Iterator[distributed.Client]:
    """Context with a client of an existing cluster; `scheduler` is an address, or a scheduler file.

    Raises:
        ConfigurationError: The address is malformed or unsafe, or has TLS without keys or keys without TLS.
        InputError: The scheduler file or the keys cannot be used, or no scheduler there accepts them.
    """
    configure_dask()
    address = scheduler_address(scheduler, "--cluster", is_insecure=is_insecure, patience_s=CONNECT_S)
    security = security_for(address, keys, "client")
    with event_loop() as loop:
        loop.run_sync(greet, address, security, CONNECT_S)
        with _client(address, security, loop) as client:
            yield client


def security_for(address: str, keys: Path | None, role: str) -> distributed.Security:
    """The credentials for `address`: from the folder `keys`, or else from dask's own configuration.

    Args:
        address: The address, or `tls://` or `tcp://` alone.
        keys: Folder of the keys; None for dask's configuration.
        role: "client", "scheduler" or "worker".

    Returns:
        The credentials. For `tcp://` they are not used, and not checked.

    Raises:
        ConfigurationError: TLS without keys, or keys without TLS.
        InputError: The keys cannot be used.
    """
    if keys is not None:
        if not address.startswith("tls://"):
            raise ConfigurationError(
                f"--keys {keys}: are for tls://, and {address} does not use them; omit one"
            )
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
    except OSError as error:  # including ssl.SSLError
        raise InputError(
            f"distributed.comm.tls in dask's configuration: its files cannot be used: {error}"
        ) from error
    return security


def has_credentials(security: distributed.Security, role: str) -> bool:
    """Whether `security` has a certificate for `role`, and one to verify the other side."""
    files = security.get_tls_config_for_role(role)
    return bool(files["ca_file"] and files["cert"])


@contextmanager
def event_loop() -> Iterator[LoopRunner]:
    """Context with an event loop in a thread of its own.

    Processes started from that thread have `child_signals.OF_THE_COMMAND` blocked.
    """
    runner = LoopRunner(asynchronous=False)
    child_signals.start_tracker()
    with child_signals.blocked():
        runner.start()
    try:
        yield runner
    finally:
        runner.stop()


def wait(loop: LoopRunner, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` in the loop's thread; returns its result, or raises its error.

    NOTE: unlike in dask's own `run_sync`, an exception from a signal handler ends the wait at once, and is
    not raised inside dask's code.
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
    """InputError unless a handshake with a scheduler at `address` succeeds within `patience_s` wall seconds.

    NOTE: dask's client waits for the handshake forever, and does not report whose certificate was refused.
    """
    arguments = security.get_connection_args(role)
    try:
        comm = await asyncio.wait_for(connect(address, timeout=patience_s, **arguments), patience_s)
    except CommClosedError as error:  # an OSError too
        raise InputError(
            f"{address}: the process that listens there does not accept us, or is not a dask scheduler "
            f"({first_cause(error)!r}); all of a cluster need the same keys, and all tls:// or all tcp://"
        ) from error
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"{address}: no scheduler responds there within {patience_s:g} s ({first_cause(error)!r})"
        ) from error
    await comm.close()


def first_cause(error: BaseException) -> BaseException:
    """The error at the start of the chain of `__cause__`: dask wraps the original error in others.

    An error without a cause is returned itself.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return error
