"""Code of one's own: what is defined outside of our packages, by a user or a third party."""

from __future__ import annotations

from typing import Any

OUR_PACKAGES = frozenset(
    {"emulator", "device_profiles", "traces", "coordinator", "executor", "experiments", "driftscale"}
)


def is_ours(code: Any) -> bool:
    """Whether a class, a function or an object, by its `__module__`, is defined in our packages.

    >>> from pathlib import Path
    >>> is_ours(is_ours), is_ours(Path)
    (True, False)
    """
    return str(getattr(code, "__module__", None)).partition(".")[0] in OUR_PACKAGES
