"""`.ci/steps.py`: targets in lanes, what a failure ends, and the table."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STEPS = Path(__file__).resolve().parents[1] / ".ci" / "steps.py"
MAKEFILE = """
good:
	@echo good; echo made in $$PPID
bad:
	@echo reason; exit 1
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(
    ("stages", "code", "rows"),
    [
        (["good", "good | good"], 0, ["", "", "made in"]),
        (["good | bad good", "good"], 1, ["", "failed with 2; make: ***", "not run", "not run"]),
        (["bad | good", "good"], 1, ["failed with 2;", "made in", "not run"]),
    ],
)  # fmt: skip
def test_a_failure_ends_its_lane_and_the_stages_after_it(
    stages: list[str],
    code: int,
    rows: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAKELEVEL", raising=False)  # of `make test`, which a nested make names
    monkeypatch.setattr(sys, "argv", [str(STEPS), *stages])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(STEPS), run_name="__main__")
    assert int(ended.value.code or 0) == code
    table = capfd.readouterr().out.rsplit("CPU s\n", 1)[1].splitlines()
    assert [line.split()[0] for line in table] == " ".join(stages).replace("|", "").split()
    assert all(row in line for row, line in zip(rows, table, strict=True))
    assert all(("made in" in line) == ("made in" in row) for row, line in zip(rows, table, strict=True))
