"""README's path for a paper, run as it is written: sweep, compare, notebook cell, figure.

The configuration that README names is small here, so that it takes seconds.
"""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import tomli_w

from tests.experiments.small import small_table
from tests.processes import forked

ROOT = Path(__file__).resolve().parents[2]


def section(title: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index(f"### {title}\n") :].split("\n## ", 1)[0]


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_a_sweep_is_compared_and_drawn_as_readme_says(tmp_path: Path) -> None:
    config = tmp_path / "experiments" / "configs" / "digits.toml"
    config.parent.mkdir(parents=True)
    config.write_text(tomli_w.dumps(small_table(name="digits")), encoding="utf-8")
    path = section("From a sweep to a figure of a paper")
    [commands], [cell] = blocks(path, ""), blocks(path, "python")
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    for line in commands.splitlines():
        name, *arguments = shlex.split(line)
        assert name == "driftscale"
        run = subprocess.run if arguments[0] == "run" else forked.run
        done = run(
            [sys.executable, "-m", "experiments.cli", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert "+" in done.stdout  # a gain
    done = forked.run(
        [sys.executable, "-c", cell],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    with (tmp_path / "accuracy.csv").open() as file:
        rows = [(row["participants"], row["arm"]) for row in csv.DictReader(file)]
    assert rows == [("5", "global"), ("5", "fielding"), ("10", "global"), ("10", "fielding")]
    assert "Plotly.newPlot" in (tmp_path / "accuracy.html").read_text(encoding="utf-8")
