"""The number of modules imported until a misspelt key is answered.

It only falls, or rises in a commit whose message says by how much and why.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.experiments.small import write_small
from tests.ratchets.pinned import pinned

ROOT = Path(__file__).resolve().parents[2]
MOST_MODULES = 501

HOW_TO_FIND_WHAT_GREW = (
    "print the list below with the commit before too, and compare; python -X importtime shows who imports a "
    "module first"
)

COUNT = """
import sys
sys.argv = ["driftscale", "run", {config!r}, "--set", "round.roundz=4"]
from experiments.cli import main
try:
    main()
except SystemExit as ended:
    print(ended.code, *sorted(sys.modules))
"""


@pinned("numpy", "pydantic", "typer")
def test_a_misspelt_key_is_answered_with_at_most_so_many_modules(tmp_path: Path) -> None:
    code = COUNT.format(config=str(write_small(tmp_path)))
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    exit_code, *modules = ended.stdout.split()
    assert exit_code == "2"
    assert len(modules) <= MOST_MODULES, f"{len(modules)}: {HOW_TO_FIND_WHAT_GREW}: {' '.join(modules)}"
