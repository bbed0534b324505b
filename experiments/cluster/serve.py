"""The servers of `driftscale cluster scheduler` and `driftscale cluster worker`."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import distributed

from emulator.errors import ConfigurationError, InputError
from emulator.storage.own_files import create_file
from experiments.cluster.addresses import is_loopback, scheduler_address
from experiments.cluster.connection import (
    LOOPBACK,
    event_loop,
    first_cause,
    greet,
    has_credentials,
    security_for,
    wait,
)
from experiments.cluster.nodes import QuickNanny, QuietScheduler
from experiments.cluster.scratch import scratch_folder
from experiments.cluster.settings import OWN_DATA, configure_dask
from experiments.cluster.stopping import store_and_close

JOIN_S = 60.0
"""Wall seconds that workers wait for their scheduler, which may start after them."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class SchedulerCommand:
    """The arguments of `driftscale cluster scheduler`."""

    keys: Path | None
    host: str | None
    port: int
    file: Path | None
    is_insecure: bool


@dataclass(frozen=True)
class WorkerCommand:
    """The arguments of `driftscale cluster worker`; `scheduler` is the scheduler's address or file."""

    scheduler: str
    keys: Path | None
    data: Sequence[Path]
    is_insecure: bool
    jobs: int
    local_directory: Path | None
    host: str | None


def serve_scheduler(command: SchedulerCommand, say: Say) -> None:
    """Serve a scheduler until a signal, or until a client shuts the cluster down.

    Raises ConfigurationError if it would listen beyond loopback without keys (unless `is_insecure`),
    InputError if the keys or the scheduler file cannot be used, or it cannot listen at that host and port.
    """
    configure_dask()
    security, protocol, host = _scheduler_security(command)
    with scratch_folder(), event_loop() as loop:

        async def start() -> QuietScheduler:
            scheduler = QuietScheduler(
                host=host, port=command.port, protocol=protocol, security=security, dashboard=False
            )
            await scheduler
            return scheduler

        try:
            scheduler = loop.run_sync(start)
        except RuntimeError as error:
            cause = first_cause(error)
            if not isinstance(cause, OSError):
                raise
            raise InputError(
                f"--host {host or 'of all interfaces'} --port {command.port}: cannot listen there: {cause}"
            ) from error
        try:
            with _scheduler_file(command.file, scheduler.address):
                say(f"scheduler at {scheduler.address}")
                wait(loop, _all_finished([scheduler]))
        finally:
            loop.run_sync(scheduler.close)


def serve_workers(command: WorkerCommand, say: Say) -> None:
    """Serve workers until a signal, or until their scheduler ends. On a signal, store runs first.

    Raises ConfigurationError if the address is malformed or unsafe, or a worker would listen beyond loopback
    without keys (unless `is_insecure`); InputError if no scheduler there accepts the keys, or workers cannot
    be started.
    """
    configure_dask()
    address = scheduler_address(
        command.scheduler, "ADDRESS", is_insecure=command.is_insecure, patience_s=JOIN_S
    )
    url = urlsplit(address)
    protocol, host = url.scheme, command.host
    security = security_for(address, command.keys, "worker")
    if host is None:  # without one, a worker would listen on all interfaces
        host = (
            LOOPBACK
            if is_loopback(url.hostname or "")
            else _host_that_reaches(url.hostname or "", url.port or 0)
        )
    _refuse_open(protocol, host, command.is_insecure)
    if command.local_directory is not None and not command.local_directory.is_dir():
        raise InputError(f"--local-directory {command.local_directory}: there is no such folder")
    with scratch_folder(command.local_directory), event_loop() as loop:
        loop.run_sync(greet, address, security, JOIN_S, "worker")
        nannies: list[QuickNanny] = []
        own_data = json.dumps([str(folder.absolute()) for folder in command.data])

        async def start() -> None:
            nannies.extend(
                QuickNanny(
                    address,
                    host=host,
                    protocol=protocol,
                    security=security,
                    env={OWN_DATA: own_data} if command.data else None,
                )
                for _ in range(command.jobs)
            )
            await asyncio.gather(*nannies)

        try:
            try:
                loop.run_sync(start)
            except RuntimeError as error:
                cause = first_cause(error)
                if not isinstance(cause, OSError):
                    raise
                raise InputError(
                    f"no worker can be started for {address}"
                    f"{f' on --host {command.host}' if command.host else ''}: {cause}"
                ) from error
            say(f"{command.jobs} worker{'s' if command.jobs > 1 else ''} for the scheduler at {address}")
            wait(loop, _all_finished(nannies))
            say(f"the scheduler at {address} has ended")
        except KeyboardInterrupt:
            say("stopping: runs at work are stored first; once more stops at once")
            raise
        finally:
            loop.run_sync(_store_and_close_all, nannies)


def _scheduler_security(command: SchedulerCommand) -> tuple[distributed.Security, str, str | None]:
    """Credentials, protocol ("tls" or "tcp") and host to listen on; without a host, on all interfaces.

    TLS if there are credentials. Without any, the default host is loopback, unless the command is insecure;
    ConfigurationError for another host then.
    """
    is_tls = command.keys is not None or has_credentials(distributed.Security(), "scheduler")
    protocol = "tls" if is_tls else "tcp"
    security = security_for(f"{protocol}://", command.keys, "scheduler")
    host = command.host
    if host is None and not (is_tls or command.is_insecure):
        host = LOOPBACK
    if host is not None:
        _refuse_open(protocol, host, command.is_insecure)
    return security, protocol, host


def _host_that_reaches(scheduler: str, port: int) -> str:
    """This machine's address on the route to the scheduler's host. Sends no packet."""
    family, _, _, _, target = socket.getaddrinfo(scheduler, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def _refuse_open(protocol: str, host: str, is_insecure: bool) -> None:
    if protocol == "tcp" and not (is_insecure or is_loopback(host)):
        raise ConfigurationError(
            f"--host {host}: without keys everybody who reaches a dask port can make it run code; give "
            f"--keys DIR (driftscale cluster keys DIR), a loopback host such as {LOOPBACK}, or "
            f"--insecure-cluster in a network you trust"
        )


@contextmanager
def _scheduler_file(file: Path | None, address: str) -> Iterator[None]:
    """Context in which `file` has the scheduler's address; readers see the whole file or none.

    Raises InputError if it cannot be written.
    """
    if file is None:
        yield
        return
    content = json.dumps({"type": "Scheduler", "address": address}).encode()
    aside = file.with_name(f".{file.name}.new")
    try:
        aside.unlink(missing_ok=True)
        with create_file(aside) as out:
            out.write(content)
        aside.replace(file)
    except OSError as error:
        raise InputError(f"--scheduler-file {file}: cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_bytes() == content:  # unless another scheduler has replaced it
                file.unlink()


async def _all_finished(nodes: Sequence[Any]) -> None:
    await asyncio.gather(*(node.finished() for node in nodes))


async def _store_and_close_all(nannies: list[QuickNanny]) -> None:
    await asyncio.gather(*map(store_and_close, nannies))
