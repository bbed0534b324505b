"""Connections to workers: a cluster of this command's own, or one that is there already."""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import distributed
from distributed.comm.core import CommClosedError, connect
from distributed.utils import LoopRunner

from emulator.errors import ConfigurationError, InputError
from experiments.cluster import child_signals
from experiments.cluster.addresses import scheduler_address
from experiments.cluster.keys import make_credentials, read_keys
from experiments.cluster.nodes import QuickNanny, QuietScheduler, WorkerSetUp
from experiments.cluster.settings import CONNECT_S, apply_settings, quieten

LOOPBACK = "127.0.0.1"


@contextmanager
def local_cluster(jobs: int) -> Iterator[distributed.Client]:
    """A client of `jobs` new worker processes on this machine, which end with it.

    They and the scheduler, which is in this process, listen on loopback alone, and talk to holders of
    credentials that are made for it.
    """
    apply_settings()
    security = make_credentials().security()
    with (
        tempfile.TemporaryDirectory(prefix="driftscale-", ignore_cleanup_errors=True) as folder,
        event_loop() as loop,
    ):
        common = {"host": LOOPBACK, "protocol": "tls", "security": security}
        cluster = distributed.SpecCluster(
            scheduler={"cls": QuietScheduler, "options": {**common, "dashboard": False}},
            workers={
                index: {"cls": QuickNanny, "options": {**common, "local_directory": folder}}
                for index in range(jobs)
            },
            security=security,
            loop=loop.loop,
        )
        try:
            with _client(cluster.scheduler_address, security, loop) as client:
                yield client
        finally:
            quieten(logging.CRITICAL)  # connections that break now are meant to
            loop.run_sync(_close_nannies, cluster)
            cluster.close()


@contextmanager
def joined_cluster(
    place: str, keys: Path | None = None, *, is_insecure: bool = False
) -> Iterator[distributed.Client]:
    """A client of the cluster whose scheduler is at `place`: an address, or a scheduler file.

    Raises:
        ConfigurationError: `place` is none, needs keys, or is not safe to talk to.
        InputError: Nobody answers there, or refuses these keys; or the keys cannot be used.
    """
    apply_settings()
    address = scheduler_address(place, "--cluster", is_insecure=is_insecure, patience_s=CONNECT_S)
    security = client_security(address, keys)
    with event_loop() as loop:
        loop.run_sync(_greet, address, security)
        try:
            with _client(address, security, loop) as client:
                yield client
        finally:
            quieten(logging.CRITICAL)


def client_security(address: str, keys: Path | None) -> distributed.Security:
    """The credentials for `address`: those in the folder `keys`, else those of dask's own configuration."""
    if keys is not None:
        if not address.startswith("tls://"):
            raise ConfigurationError(f"--keys {keys}: are for tls://, and {address} does without; omit one")
        return read_keys(keys)
    security = distributed.Security()
    if not address.startswith("tls://"):
        return security
    files = security.get_tls_config_for_role("client")
    if not (files["ca_file"] and files["cert"]):
        raise ConfigurationError(
            f"{address}: tls:// needs keys: name their folder with --keys DIR (driftscale cluster keys DIR "
            f"makes them), or set distributed.comm.tls.ca-file and .client.cert in dask's configuration"
        )
    try:
        security.get_connection_args("client")
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"distributed.comm.tls in dask's configuration: its files cannot be used: {error}"
        ) from error
    return security


@contextmanager
def event_loop() -> Iterator[LoopRunner]:
    """A thread with an event loop. Processes that are started from it have the command's signals blocked."""
    runner = LoopRunner(asynchronous=False)
    with child_signals.blocked():
        runner.start()
    try:
        yield runner
    finally:
        runner.stop()


@contextmanager
def _client(address: str, security: distributed.Security, loop: LoopRunner) -> Iterator[distributed.Client]:
    with distributed.Client(
        address, security=security, loop=loop.loop, timeout=CONNECT_S, set_as_default=False
    ) as client:
        client.register_plugin(WorkerSetUp())
        yield client


async def _greet(address: str, security: distributed.Security) -> None:
    """InputError unless somebody at `address` shakes hands within `CONNECT_S`.

    NOTE: dask's client waits for the handshake without end, and does not say whose certificate was refused.
    """
    arguments = security.get_connection_args("client")
    try:
        comm = await asyncio.wait_for(connect(address, timeout=CONNECT_S, **arguments), CONNECT_S)
    except CommClosedError as error:  # an OSError, as is the next
        raise InputError(
            f"{address}: there is somebody, who does not take us for one of the cluster (or is no dask "
            f"scheduler): {_first_cause(error)}; both need tls:// and the same keys"
        ) from error
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"{address}: no scheduler answers within {CONNECT_S:g} s: {_first_cause(error)}; is it up, and "
            f"reachable from here?"
        ) from error
    await comm.close()


def _first_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


async def _close_nannies(cluster: distributed.SpecCluster) -> None:
    """End all workers at once.

    NOTE: dask first has its scheduler retire them, which waits for what they are at.
    """
    await asyncio.gather(*(nanny.close() for nanny in cluster.workers.values()))
