"""What is imported before the clock of a run starts."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FIRST_USES = """
import sys
import numpy as np
from coordinator.adaptations.relabelled import Relabelled, best_assignments
from coordinator.assignment import Assignment
from coordinator.clusterers.cfl import Cfl, bipartition
from coordinator.clusterers.feddrift import FedDrift
from coordinator.clusterers.feddrift_c import FedDriftC
from coordinator.clusterers.fielding import Fielding
from coordinator.clusterers.linkage import linked
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static
from coordinator.distances import DISTANCES
from coordinator.late_imports import import_late_modules

def scipy():
    return {name for name in sys.modules if name.startswith("scipy")}

def measure():
    for distance in DISTANCES.values():
        distance(rows, rows)

rows, members = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1])
matched = lambda: Assignment.reclustered_from(members, members[::-1], 2, 2)
assert not scipy()
import_late_modules(Single)
assert not scipy()
for parts, first_uses in (
    ([Static], [measure, matched]),
    ([Fielding], [measure, matched]),
    ([Single, Relabelled], [lambda: best_assignments(np.ones((1, 9, 9)))]),
    ([Cfl], [measure, lambda: bipartition(np.eye(3))]),
    ([FedDrift], [lambda: linked(1 - np.eye(3), 0.1)]),
    ([FedDriftC], [lambda: linked(1 - np.eye(3), 0.1)]),
):
    import_late_modules(*parts)
    before = scipy()
    for use in first_uses:
        use()
    print(parts[-1].__name__, scipy() - before or "nothing")
    for name in scipy():
        del sys.modules[name]
"""


def test_no_part_imports_scipy_at_its_first_use_in_a_run_and_one_model_none_at_all():
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST_USES],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    names = ("Static", "Fielding", "Relabelled", "Cfl", "FedDrift", "FedDriftC")
    assert (done.stdout, done.stderr) == ("".join(f"{name} nothing\n" for name in names), "")
