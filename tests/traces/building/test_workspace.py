from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from emulator.errors import InputError
from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401
from tests.traces.building.table.tables import write
from traces.building.workspace import workspace

TABLE = "who,kind,day,a\nann,up,3,1\nbob,down,1,2\nann,down,1,3\nbob,up,2,4\n"
BUILD = (
    *("traces", "build", "table", "--root", "table.csv", "--out", "out", "--client", "who"),
    *("--label", "kind", "--step", "day", "--test-share", "0"),
)


def test_an_unlock_that_fails_leaves_a_build_that_succeeded(
    driftscale: Driftscale,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    flock = fcntl.flock

    def failing(descriptor: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(descriptor, operation)

    write(tmp_path, TABLE)
    monkeypatch.setattr(fcntl, "flock", failing)
    ended = driftscale(*BUILD)
    assert ended.code == 0, ended.err
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "arrivals.parquet",
        "features.npy",
        "trace.toml",
    ]
    assert not Path(".out.lock").exists()
    monkeypatch.undo()  # so that the lock, which was dropped, ends


def test_a_second_build_is_not_said_to_be_another_process_for_sure(tmp_path: Path) -> None:
    with (
        workspace(tmp_path / "out", {}),
        pytest.raises(InputError, match="another process, or a call in this one, is building it"),
        workspace(tmp_path / "out", {}),
    ):
        pytest.fail("two build one folder")
