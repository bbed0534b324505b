"""The commands of docs/traces.md that build the traces of shipped configurations are those of these."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.blocks import read_page
from tests.docs.shell import simple_commands

CONFIGS = Path(__file__).resolve().parents[2] / "experiments/configs"


@pytest.mark.parametrize("name", ["elec2", "portal"])
def test_a_trace_is_built_as_its_configuration_says(name: str) -> None:
    commands = [
        simple.words
        for block in read_page("docs/traces.md").blocks
        if block.language == "console"
        for command in block.commands
        for simple in simple_commands(command.text)
    ]
    [documented] = [words for words in commands if {f"traces/{name}", "build"} <= set(words)]
    text = (CONFIGS / f"{name}.toml").read_text(encoding="utf-8")
    [shipped] = re.findall(r'^build = "(.*)"$', text, re.MULTILINE)
    assert tuple(shlex.split(shipped)) == documented
