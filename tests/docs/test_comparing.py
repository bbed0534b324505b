"""The lines of Python in docs/comparing.md are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.results.many_runs.folder_table import run_directories
from experiments.results.pages.folder_page import write_table
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured

PAGE = Path(__file__).resolve().parents[2] / "docs/comparing.md"


def test_a_line_is_printed_for_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    folder = tmp_path / "runs/digits-sweep"
    for number in (10, 5):
        values = {"round.participants": number}
        directory = folder / f"participants={number}"
        a_measured(
            directory, {"global": ONE, "fielding": OTHER}, swept=values, round={"participants": number}
        )
        (directory / "summary.json").write_text(
            '{"version": 4, "finished": {"steps": null, "scored_steps": null, "arms": {}}}'
        )
    write_table(folder, run_directories(folder), "digits")
    monkeypatch.chdir(tmp_path)

    exec(compile(code, str(PAGE), "exec"), {})

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" [")[0] for line in lines] == ["5 +4.0 pp", "10 +4.0 pp"]
