"""The modules of scipy that clusterers and distances import when they first need them.

They take up to half a second, which a command that clusters nothing should not pay. A run that clusters
imports them before its clock starts: otherwise they would be counted as seconds of the clusterer, in the
first run of each process only.
"""

from __future__ import annotations

from importlib import import_module

MODULES = ("scipy.cluster.hierarchy", "scipy.optimize", "scipy.spatial.distance")


def import_late_modules() -> None:
    """Import `MODULES`; at once if they are imported already."""
    for name in MODULES:
        import_module(name)
