"""`Forked` and `run`: Python processes that are forked from one that has imported what a run imports.

To start Python and import torch takes two seconds, most of the time of a test that starts a command. A fork
has streams, signals, environment, working folder and session of its own, and behaves like a start in all that
tests check, except imports. What only a real start shows is listed in `real_starts.py`. Of another
environment's Python, what is imported is what that environment has.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.processes.server import MOST_BYTES

SERVER = Path(__file__).with_name("server.py")
ROOT = Path(__file__).resolve().parents[2]
PR_SET_CHILD_SUBREAPER = 36
READ_AT_START = ("PYTHON", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "TORCH", "GOMP_", "LD_")
"""Variables that Python and libraries read as they start: with other values, a fork is of another process."""

NOT_AT_START = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
_LOCK = threading.Lock()
"""Held by a thread from its request for a fork to the answer."""


class Forked(subprocess.Popen[Any]):
    """`subprocess.Popen` of `[PYTHON, "-m" or "-c" or a script, ...]`, without starting Python.

    Raises ValueError for arguments that only a real start can have.
    """

    def _execute_child(self, *positional: Any, **named: Any) -> None:
        """Popen's hook that starts the process, whose pipes it has made, and sets `pid`."""
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *positional, **named).arguments  # type: ignore[attr-defined]
        command = [os.fspath(argument) for argument in given["args"]]
        sys.audit("tests.forked", command)
        if not is_forkable(command):
            raise ValueError(f"{command}: only [PYTHON, '-m' or '-c' or a script, ...] can be forked")
        if given["preexec_fn"] is not None or given["shell"] or given["executable"]:
            raise ValueError(f"{command}: preexec_fn, shell and executable take a real start")
        environment = {**(os.environ if given["env"] is None else given["env"])}
        pipes = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if pipe == -1 else pipe for number, pipe in enumerate(pipes)]
        request = {
            "arguments": command[1:],
            "environment": environment,
            "folder": str(given["cwd"] or Path.cwd()),
            "new_session": bool(given["start_new_session"]),
            "descriptors": [*range(len(streams)), *given["pass_fds"]],
        }
        with _LOCK:
            server = _server(command[0], _read_at_start(environment))
            self.pid = server.fork(request, [*streams, *given["pass_fds"]])
        self._child_created = True
        self._close_pipe_fds(
            *(given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
        )


def is_forkable(command: Sequence[str]) -> bool:
    """Whether a command is Python with a module, code or a script, and no option of Python's own."""
    return (
        Path(command[0]).name.startswith("python")
        and len(command) > 1
        and (command[1] in ("-m", "-c") or not command[1].startswith("-"))
    )


if sys.platform != "linux":  # where nothing adopts the children of others
    Forked = subprocess.Popen  # type: ignore[misc, assignment]


def run(
    command: Sequence[str | Path],
    *,
    capture_output: bool = False,
    check: bool = False,
    timeout: float | None = None,
    **settings: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of a `Forked` process."""
    if capture_output:
        settings |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(command, **settings) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


class _Server:
    """A process that forks on request; it ends with this one, as its socket is closed."""

    def __init__(self, python: str, read_at_start: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_START)}
        # In its command line, by which `real_starts.py` counts it as a start of the test that wants them.
        wanted = [name for name, value in read_at_start.items() if os.environ.get(name) != value]
        ours = {"PYTHONPATH": str(ROOT)} if python == sys.executable else {}
        self._process = subprocess.Popen(
            [python, str(SERVER), str(theirs.fileno()), *wanted],
            cwd=ROOT,
            env={**others, **read_at_start, **ours},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        atexit.register(self.end)

    def end(self) -> None:
        """Have the process end, which it does when the socket is closed."""
        self._connection.close()
        self._process.wait()

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> int:
        """The id of a new process, which is a child of this one."""
        message = json.dumps(request).encode()
        assert len(message) < MOST_BYTES, f"a request of {len(message)} bytes"
        with _adopting_orphans():
            socket.send_fds(self._connection, [message], streams)
            answer = self._connection.recv(32)
        assert answer, "the process that tests fork from has ended: its error is above"
        return int(answer)


def _read_at_start(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(
            (name, value)
            for name, value in environment.items()
            if name.startswith(READ_AT_START) and name not in NOT_AT_START
        )
    )


@cache
def _server(python: str, read_at_start: tuple[tuple[str, str], ...]) -> _Server:
    return _Server(python, dict(read_at_start))


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Meanwhile a descendant whose parent ends becomes a child of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    for adopts in (1, 0):
        if libc.prctl(PR_SET_CHILD_SUBREAPER, adopts, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
        if adopts:
            yield
