"""`driftscale.load`, without importing pandas before it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftscale.arguments import AnyPath, path_of
from driftscale.one_line import one_line

if TYPE_CHECKING:
    from driftscale.results import Results


@one_line
def load(path: AnyPath) -> Results:
    """The results of a run directory, or of a folder of run directories such as a sweep.

    Args:
        path: The run directory or the folder.

    Returns:
        The results of all finished runs. Logs are read when a frame or a figure is first asked for.

    Raises:
        EmulatorError: Of one line: there is no such directory, or none of its runs is finished.
    """
    from driftscale import results

    return results.load(path_of(path, "load"))
