"""The process that tests fork from: it has imported what a run imports, and forks once for each request.

`python tests/processes/server.py FD` reads requests from the socket FD until it is closed (see `forked.py`).
Nothing here may start a thread, which would not exist in a fork, or import a module of the tests: the Python
of an environment of the wheel runs it too.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

LIBRARIES = (
    *("_plotly_utils.basevalidators", "plotly.graph_objs", "plotly.io.json", "plotly.offline"),
    *("numpy.random", "pandas", "psutil", "pyarrow.parquet", "pytest", "rich.progress", "rich.table"),
    *("safetensors.numpy", "torch", "torch.utils._device"),
)
"""What commands and pytest import of others; not dask, which starts threads."""

PACKAGES = ("coordinator", "device_profiles", "driftscale", "emulator", "executor", "experiments", "traces")
NOT_IMPORTED = "experiments.cluster"
"""Our packages, and the one in them that no command needs but those of a cluster."""

MOST_BYTES = 1 << 17
MOST_DESCRIPTORS = 1024
MOST_PASSED = 16
"""Descriptors of a request: the streams, and others that the fork has under the same numbers."""
STREAMS = ((0, "r"), (1, "w"), (2, "w"))


def main(descriptor: int) -> None:
    """Serve requests until the socket is closed; in a fork, run what was asked for instead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests
    del sys.path[0]  # the folder of this script
    import_all()
    importlib.import_module("experiments.cli.app").command()
    gc.freeze()  # or the first collection in a fork copies every page
    request = forked_for(socket.socket(fileno=descriptor))
    if request is not None:
        end_as_python_does(lambda: become(request))


def import_all() -> None:
    """Import the libraries and our modules."""
    for name in (*LIBRARIES, *PACKAGES):
        importlib.import_module(name)
    for package in PACKAGES:
        for module in pkgutil.walk_packages(sys.modules[package].__path__, f"{package}."):
            if not module.name.startswith(NOT_IMPORTED) and not module.name.endswith(".__main__"):
                importlib.import_module(module.name)


def forked_for(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request; returns the request in a fork, and None in this process at the end.

    A fork is the child of a process that ends at once: the kernel makes it one of the tests' process.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, MOST_PASSED)
        if not message:
            return None
        assert threading.active_count() == 1, threading.enumerate()
        request: dict[str, Any] = json.loads(message)
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            if os.fork() > 0:
                os._exit(0)
            if request["new_session"]:
                os.setsid()  # before anybody knows of this process and could kill its group
            os.write(writing, str(os.getpid()).encode())
            connection.detach()
            _take(descriptors, request["descriptors"])
            return request
        os.waitpid(between, 0)
        os.close(writing)
        connection.send(os.read(reading, 32))
        for descriptor in (reading, *descriptors):
            os.close(descriptor)


def _take(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Give the descriptors these numbers, and close all others."""
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, MOST_DESCRIPTORS // 2) for descriptor in descriptors]
    for descriptor, number in zip(aside, numbers, strict=True):
        os.dup2(descriptor, number)
    for last, number in pairwise([*sorted(numbers), MOST_DESCRIPTORS]):
        os.closerange(last + 1, number)


def become(request: dict[str, Any]) -> None:
    """Turn this fork into what Python would be, started with these arguments, and run them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path_here = sys.path[len(_by_variable()) :]
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()
    tempfile.tempdir = None
    importlib.import_module("experiments.running.locking").PROCESS = uuid4().hex  # type: ignore[attr-defined]
    for number, mode in STREAMS:
        _open_stream(number, mode)
    kind, *arguments = request["arguments"]
    here = {"-m": str(Path.cwd()), "-c": ""}.get(kind, str(Path(kind).resolve().parent))
    sys.path[:] = [here, *_by_variable(), *path_here]
    sys.orig_argv[:] = [sys.executable, *request["arguments"]]
    importlib.invalidate_caches()
    forget_entry_points()
    if kind == "-m":
        sys.argv[:] = [kind, *arguments[1:]]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if kind == "-c":
        sys.argv[:] = [kind, *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), vars(main))
        return
    sys.argv[:] = [kind, *arguments]
    file = str(Path.cwd() / kind)
    vars(main).update(__file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file))
    exec(compile(Path(file).read_bytes(), file, "exec"), vars(main))


def _by_variable() -> list[str]:
    """The folders of PYTHONPATH."""
    return [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]


def forget_entry_points() -> None:
    """Have the parts of installed packages looked up anew: PYTHONPATH may have others."""
    plugins = importlib.import_module("emulator.plugins")
    plugins.installed_entry_points.cache_clear()
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if type(value) is plugins.Registry:
                vars(value).pop("_entries", None)


def end_as_python_does(program: Callable[[], None]) -> NoReturn:
    """Run the program and end with the exit code that Python would end with.

    Without Python's own end, which clears all modules: with torch among them that takes 0.2 s.
    """
    code: object = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        traceback.print_exc()
        code = error if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout}\n{error!r}", file=sys.stderr)
        os._exit(120)
    os._exit((code if isinstance(code, int) else int(code is not None)) & 0xFF)


def _open_stream(number: int, mode: str) -> None:
    """Make the standard stream of the descriptor as Python does at its start."""
    name = ("stdin", "stdout", "stderr")[number]
    stream = os.fdopen(
        number,
        mode,
        buffering=1 if number == 2 or os.isatty(number) else -1,
        errors="backslashreplace" if number == 2 else "strict",
        closefd=False,
    )
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    main(int(sys.argv[1]))
