"""Driftscale in Python: run configurations, load what they recorded, compare; write and open traces.

    import driftscale

    results = driftscale.run("digits", seeds=range(3), out="runs/digits")
    results.rounds.groupby("arm").accuracy.last()

It is a layer over the command line's own engine: what is called here is recorded, resumed and reported as
`driftscale run` does it. Heavy libraries (torch, pandas, plotly) are imported once something needs them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any


def _refuse_foreign_packages() -> None:
    """ImportError of one line, which names the folder, if a foreign package shadows one of ours.

    Called before anything of ours is imported by its name.
    """
    root = Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location(
        "driftscale_own_packages", root / "experiments" / "own_packages.py"
    )
    assert spec is not None, "it is a Python file"
    assert spec.loader is not None, "it is a Python file"
    own_packages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own_packages)
    foreign = own_packages.foreign_package(root)
    if foreign is not None:
        raise ImportError(foreign)


_refuse_foreign_packages()

from driftscale.checking import Check, check  # noqa: E402
from driftscale.comparing import Comparison, compare  # noqa: E402
from driftscale.loading import load  # noqa: E402
from driftscale.opening import TraceFolder, open_trace  # noqa: E402
from driftscale.running import run  # noqa: E402
from driftscale.writing import write_trace  # noqa: E402
from emulator.errors import EmulatorError  # noqa: E402

if TYPE_CHECKING:
    from driftscale.results import Results

__all__ = [
    "Check",
    "Comparison",
    "EmulatorError",
    "Results",
    "TraceFolder",
    "check",
    "compare",
    "load",
    "open_trace",
    "run",
    "write_trace",
]


def __getattr__(name: str) -> Any:
    """`Results`, whose module imports pandas and plotly, and `__version__`."""
    if name == "Results":
        from driftscale.results import Results

        return Results
    if name == "__version__":
        from importlib.metadata import version

        return version("driftscale")
    raise AttributeError(f"module 'driftscale' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted([*__all__, "__version__"])
