"""What is imported before the clock of a run starts."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FIRST_USES = """
import sys
import numpy as np
from coordinator.assignment import Assignment
from coordinator.clusterers.cfl import bipartition
from coordinator.clusterers.linkage import linked
from coordinator.distances import DISTANCES
from coordinator.late_imports import import_late_modules

assert "scipy" not in sys.modules
import_late_modules()
before = set(sys.modules)
rows, members = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1])
for distance in DISTANCES.values():
    distance(rows, rows)
linked(1 - np.eye(3), 0.1)
bipartition(np.eye(3))
Assignment.reclustered_from(members, members[::-1], 2, 2)
print([name for name in sys.modules if name.startswith("scipy") and name not in before])
"""


def test_no_clusterer_or_distance_imports_scipy_at_its_first_use_in_a_run():
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST_USES],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
