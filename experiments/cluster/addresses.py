"""The address of a cluster's scheduler: parsed from `--cluster` or a scheduler file, refused if unsafe.

A dask port executes whatever it is sent. Without TLS, everybody who can reach the port can command the
workers, and an impostor that listens there receives the runs. So `tcp://` is accepted on loopback only,
unless the user allows it.
"""

from __future__ import annotations

import ipaddress
import re
import time
from pathlib import Path

from emulator.errors import ConfigurationError, InputError
from emulator.storage import bounded

SCHEMES = ("tls", "tcp")
MOST_FILE_BYTES = 2**20
"""Maximum size of a scheduler file; dask's own also lists the workers."""

WAIT_S = 0.1
"""Wall seconds between two checks whether a scheduler file exists."""

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_HOST_AND_PORT = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})/?"
)


def scheduler_address(scheduler: str, option: str, *, is_insecure: bool, patience_s: float) -> str:
    """The address of a scheduler, given directly or by a scheduler file.

    Args:
        scheduler: `tls://host:port`, `tcp://host:port`, or the path of a scheduler file.
        option: The option or argument that named it, for errors.
        is_insecure: Whether the user allows `tcp://` beyond this machine.
        patience_s: Wall seconds to wait for a scheduler file that does not exist yet.

    Returns:
        The address as `checked_address` returns it.

    Raises:
        ConfigurationError: The address is malformed, or is `tcp://` on another machine without `is_insecure`.
        InputError: The scheduler file does not exist, cannot be read as JSON, or has no address.
    """
    if "://" in scheduler:
        return checked_address(scheduler, option, is_insecure=is_insecure)
    if not scheduler or _HOST_AND_PORT.fullmatch(scheduler):
        raise ConfigurationError(f"{option} {scheduler!r}: must be {_choices()}")
    return checked_address(
        _named_by(Path(scheduler), option, patience_s), f"{scheduler}:", is_insecure=is_insecure
    )


def checked_address(address: str, option: str, *, is_insecure: bool) -> str:
    """The address, normalised to `scheme://host:port`; ConfigurationError if it is malformed or unsafe.

    Unsafe is `tcp://` beyond loopback, unless `is_insecure` allows it.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or match["scheme"] not in SCHEMES:
        raise ConfigurationError(f"{option} {address!r}: must be {_choices()}")
    host_and_port = _HOST_AND_PORT.fullmatch(match["rest"])
    if host_and_port is None or not 0 < int(host_and_port["port"]) < 2**16:
        raise ConfigurationError(
            f"{option} {address!r}: must be {_choices()}; a port is 1 to 65535, an IPv6 host is in brackets"
        )
    host = host_and_port["host"] or host_and_port["ipv6"]
    if match["scheme"] == "tcp" and not (is_insecure or is_loopback(host)):
        raise ConfigurationError(
            f"{option} {address}: tcp:// has neither encryption nor authentication, and a dask port runs "
            f"whatever it is sent, by anybody who reaches it; use tls:// with keys (driftscale cluster keys "
            f"DIR), tcp:// on this machine's loopback, or --insecure-cluster in a network you trust"
        )
    return (
        f"{match['scheme']}://{f'[{host}]' if host_and_port['ipv6'] else host}:{int(host_and_port['port'])}"
    )


def is_loopback(host: str) -> bool:
    """Whether `host` is a loopback address: 127.0.0.0/8, ::1 or localhost. Names are not looked up."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _named_by(file: Path, option: str, patience_s: float) -> str:
    """The address in a scheduler file, read as soon as the file exists.

    Raises InputError if it does not exist after `patience_s`, cannot be read as JSON, or has no address.
    """
    deadline_s = time.monotonic() + patience_s
    while not file.exists():
        if time.monotonic() >= deadline_s:
            raise InputError(
                f"{option} {file}: there is no such scheduler file (waited {patience_s:g} s); it must be "
                f"{_choices()}"
            )
        time.sleep(WAIT_S)
    try:
        document = bounded.json_document(bounded.read_text(file, MOST_FILE_BYTES))
    except (OSError, ValueError) as error:
        raise InputError(f"{option} {file}: cannot be read as a scheduler file: {error}") from error
    address = document.get("address") if isinstance(document, dict) else None
    if not isinstance(address, str):
        raise InputError(
            f"{option} {file}: is not a scheduler file, which is a JSON object with an 'address'; "
            f"`driftscale cluster scheduler --scheduler-file` writes one"
        )
    return address


def _choices() -> str:
    return "tls://HOST:PORT, tcp://HOST:PORT or the path of a scheduler file"
