"""Parts in the cells of a notebook, in a real kernel: an edit is refused, or said not to be seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.experiments.small import SMALL
from tests.processes.forked import Forked

nbclient = pytest.importorskip("nbclient", reason="needs a kernel: nbclient and ipykernel, of the extra dev")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

# jupyter_client and zmq warn of what later versions of them will do.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

Run = Callable[[str], str]

MODULE = "def none(skip):\n    return skip\n"
PART = """
import numpy as np
import far, nearby
from coordinator.selectors import Selector
from emulator.numbers import CountOrZero
from emulator.plugins import Settings

class MineSettings(Settings):
    skip: CountOrZero = 0

class Mine(Selector):
    Settings = MineSettings

    def select(self, candidates, wanted, view):
        first = self.settings.skip + nearby.none(SKIP) + len(ROWS) - 1
        ids = [candidates.ids(lane)[first : first + count] for lane, count in enumerate(wanted)]
        return np.sort(np.concatenate(ids))
"""
CONFIG = {**SMALL, "arm": [{"name": "mine", "selector": "__main__:Mine"}]}
PLAY = f"import driftscale; driftscale.run({CONFIG!r}, out='out', progress=True)"

CHANGED = "the code of __main__:Mine: has changed since the runs in this directory were begun with it"
KEPT = "1 run finished earlier"
STALE = ".py has changed since this process imported it; start a new process (in a notebook: restart the"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a cell in a kernel whose folder is empty but for the module `nearby`; returns its output."""
    monkeypatch.setenv("PYTHONPATH", os.getcwd())  # noqa: PTH109  (the tree that is tested)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for module in ("nearby", "far"):
        (tmp_path / f"{module}.py").write_text(MODULE)
    monkeypatch.setattr("jupyter_client.launcher.Popen", Forked)
    client = nbclient.NotebookClient(
        nbformat.v4.new_notebook(), timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )

    def one(source: str) -> str:
        cell = nbformat.v4.new_code_cell(source)
        client.nb.cells.append(cell)
        client.allow_errors = True
        client.execute_cell(cell, len(client.nb.cells) - 1)
        texts = [
            output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs
        ]
        return "\n".join([*texts, *(line for output in cell.outputs for line in output.get("traceback", ()))])

    client.create_kernel_manager()
    client.km.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with client.setup_kernel():
        one("ROWS, SKIP = [1], 0")
        one(PART)
        yield one


def test_an_edited_cell_is_refused_or_said_and_the_first_one_resumes(run: Run, tmp_path: Path) -> None:
    said = "changes of __main__:ROWS are not seen"
    first = run(PLAY)
    assert "1 run in" in first
    assert first.count(said) == 1
    assert KEPT in run(PLAY)
    for edit, back in (
        (PART.replace("SKIP) +", "SKIP) + 1 +"), PART),
        (PART.replace("skip: CountOrZero", "skip: int"), PART),
        ("SKIP = 1", "SKIP = 0"),
    ):
        run(edit)
        assert CHANGED in run(PLAY)
        run(back)
        assert KEPT in run(PLAY)
    run("ROWS = [1, 2]")
    kept = run(PLAY)
    assert KEPT in kept
    assert said in kept
    (tmp_path / "nearby.py").write_text(MODULE.replace("skip\n", "skip + 1\n"))
    assert f"nearby{STALE}" in run(PLAY)
    (tmp_path / "nearby.py").write_text(MODULE)
    assert KEPT in run(PLAY)
    (tmp_path / "far.py").write_text(MODULE.replace("skip\n", "skip + 1\n"))  # unread since its import
    run(PART.replace("nearby.none", "far.none"))
    assert f"far{STALE}" in run(PLAY)
