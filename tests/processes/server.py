"""The process that tests fork from: it has imported what a run imports, and forks once for each request.

`python -m tests.processes.server FD` reads requests from the socket FD until it is closed (see `forked.py`).
Nothing here may start a thread, which would not exist in a fork.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

IMPORTED = (
    "torch",
    *("executor.executor", "executor.models.linear", "executor.models.mlp", "executor.rules.sgd"),
    *(
        "experiments.build",
        "experiments.cli.app",
        "experiments.playing.command",
        "experiments.results.many_runs.folder_table",
    ),
    *("experiments.results.pages.report_page", "plotly.io", "pyarrow.parquet"),
)
"""What a command that plays runs imports; neither dask, which starts threads, nor any test."""

MOST_BYTES = 1 << 17
MOST_DESCRIPTORS = 1024
STREAMS = ((0, "r"), (1, "w"), (2, "w"))


def main(descriptor: int) -> None:
    """Serve requests until the socket is closed; in a fork, run what was asked for instead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests
    for name in IMPORTED:
        importlib.import_module(name)
    importlib.import_module("experiments.cli.app").command()
    gc.freeze()  # or the first collection in a fork copies every page
    request = forked_for(socket.socket(fileno=descriptor))
    if request is not None:
        end_as_python_does(lambda: become(request))


def forked_for(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request; returns the request in a fork, and None in this process at the end.

    A fork is the child of a process that ends at once: the kernel makes it one of the tests' process.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, len(STREAMS))
        if not message:
            return None
        assert threading.active_count() == 1, threading.enumerate()
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid > 0:
                os.write(writing, str(pid).encode())
                os._exit(0)
            for (number, _), descriptor in zip(STREAMS, descriptors, strict=True):
                os.dup2(descriptor, number)
            connection.detach()
            os.closerange(len(STREAMS), MOST_DESCRIPTORS)
            request: dict[str, Any] = json.loads(message)
            return request
        os.waitpid(between, 0)
        connection.send(os.read(reading, 32))
        for descriptor in (reading, writing, *descriptors):
            os.close(descriptor)


def become(request: dict[str, Any]) -> None:
    """Turn this fork into what Python would be, started with these arguments, and run them."""
    if request["new_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path_here = sys.path[1 + len(os.environ.get("PYTHONPATH", "").split(os.pathsep)) :]
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()
    tempfile.tempdir = None
    importlib.import_module("experiments.running.locking").PROCESS = uuid4().hex  # type: ignore[attr-defined]
    for number, mode in STREAMS:
        _open_stream(number, mode)
    kind, program, *arguments = request["arguments"]
    by_variable = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:] = [str(Path.cwd()) if kind == "-m" else "", *by_variable, *path_here]
    importlib.invalidate_caches()
    forget_entry_points()
    sys.argv[:] = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))


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
