"""How the components of a round's time are drawn: colours and patterns."""

from __future__ import annotations

from typing import Any

STYLES = {
    "before dispatch": ("#9aa5b1", ""),
    "requests": ("#CC79A7", "x"),
    "download": ("#56B4E9", "/"),
    "compute": ("#E69F00", ""),
    "upload": ("#009E73", "\\"),
    "drop-out": ("#D55E00", "."),
    "deadline": ("#332288", "-"),
    "visits": ("#0072B2", ""),
    "between rounds": ("#DDCC77", "|"),
}
"""The colour and the pattern of each component."""

PATTERN = {"fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.55)", "size": 5, "solidity": 0.25}
"""How patterns lie over their colours."""


def bar_style(component: str, **properties: Any) -> dict[str, Any]:
    """The properties of the marker of a bar of that component."""
    colour, pattern = STYLES[component]
    return {"color": colour, **properties, "pattern": {"shape": pattern, **PATTERN}}
