"""Worker processes without the main module of the command that starts them.

A process that is started by spawning imports the main module of its parent. Workers need nothing of it, and a
script that calls `driftscale.run` outside of `if __name__ == "__main__"` would call it again in each worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from typing import Any

WORKER = "Dask Worker process (from Nanny)"
"""How distributed's nanny names the process of a worker."""

OF_THE_MAIN_MODULE = ("init_main_from_name", "init_main_from_path")


@contextmanager
def left_out() -> Iterator[None]:
    """Context in which workers of dask are started without the main module; other processes keep theirs.

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
