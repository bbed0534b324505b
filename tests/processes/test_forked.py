"""A fork is what a start of Python is: its arguments, path, streams, descriptors, and no state of another."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.processes import forked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="a fork is a start elsewhere"),
]

SEEN = """
import json, os, sys
import torch
seen = [sys.argv, sys.orig_argv[1:], sys.path[0], os.getcwd(), __file__, __name__, __spec__]
print(json.dumps([*seen, sorted(os.environ), hasattr(torch, "left_behind")]))
torch.left_behind = True
print("to stderr", file=sys.stderr)
sys.exit(3)
"""


def test_a_script_is_run_as_python_runs_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "seen.py"
    script.write_text(SEEN)
    command, variables = ["scripts/seen.py", "--jobs", "2"], {"HOME": str(tmp_path)}
    for _ in range(2):
        ended = forked.run([sys.executable, *command], cwd=tmp_path, env=variables, capture_output=True)
        assert (ended.returncode, ended.stderr) == (3, b"to stderr\n")
        assert json.loads(ended.stdout) == [
            *(command, command, str(script.parent), str(tmp_path), str(script), "__main__", None),
            *(["HOME"], False),
        ]


def test_descriptors_are_passed_under_their_numbers_and_no_others(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    code = "import os, sys; os.write(int(sys.argv[1]), os.fsencode(' '.join(os.listdir('/proc/self/fd'))))"
    try:
        with forked.Forked([sys.executable, "-c", code, str(writing)], pass_fds=[writing]) as process:
            assert process.wait() == 0
        numbers = {int(number) for number in os.read(reading, 2**16).split()}
    finally:
        os.close(reading)
        os.close(writing)
    listing = numbers - {0, 1, 2, writing}
    assert len(listing) == 1, "that of the listed folder itself"


@pytest.mark.parametrize("command", [["ls"], [sys.executable], [sys.executable, "-V"], ["bash", "-c", "ls"]])
def test_what_is_no_program_of_python_takes_a_real_start(command: list[str]) -> None:
    with pytest.raises(ValueError, match="can be forked"):
        forked.Forked(command)
