"""The modules of scipy that parts import when they first need them.

They take up to half a second, which a command that clusters nothing should not pay. A run that clusters
imports them before its clock starts: otherwise they would be counted as seconds of the clusterer, in the
first run of each process only.
"""

from __future__ import annotations

from importlib import import_module

from coordinator.view import Part


def import_late_modules(*parts: type[Part]) -> None:
    """Import what `parts` of a run name (`Part.late_modules`); at once if it is imported already."""
    for part in parts:
        for name in part.late_modules:
            import_module(name)
