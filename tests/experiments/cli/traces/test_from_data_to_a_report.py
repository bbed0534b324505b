"""From data as people have them to a report: the commands of these pages, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import read_page
from tests.docs.shell import simple_commands
from tests.experiments.cli.conftest import Driftscale


@pytest.mark.parametrize("name", ["csv", "device-logs"])
def test_the_commands_of_a_page_make_a_trace_and_a_report(
    driftscale: Driftscale, tmp_path: Path, name: str
) -> None:
    played = []
    for block in read_page(f"docs/howto/{name}.md").blocks:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.as_run)
        elif block.language == "python":
            exec(block.as_run, {})
        for command in block.commands_as_run if block.language == "console" else []:
            for simple in simple_commands(command.text):
                words = [word for word in simple.words[1:] if word not in ("--jobs", "2")]
                if words[0] == "view":
                    continue
                ended = driftscale(*words)
                assert ended.code == 0, ended.err
                played.append(words[0])
    assert {"traces", "run"} <= set(played)
    [report] = tmp_path.glob("runs/*/report.html")
    assert report.stat().st_size > 10_000
    [trace] = (tmp_path / "traces").iterdir()
    assert (trace / "trace.toml").is_file()
