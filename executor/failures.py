"""Packs errors, to send them from one process to another; an error of a known type keeps that type."""

from __future__ import annotations

import traceback

from emulator import errors
from emulator.storage.state_tree import Tree

KNOWN: dict[str, type[BaseException]] = {
    kind.__name__: kind
    for kind in (
        errors.InputError,
        errors.ConfigurationError,
        errors.CheckpointError,
        errors.ForeignFileError,
        errors.RunError,
        errors.ResumableError,
        MemoryError,
        KeyboardInterrupt,
    )
}
"""Error types that are built from their text alone; a subclass arrives as its closest base among them."""


class PeerFaultError(Exception):
    """An unexpected error in another process; its traceback is attached as a note."""


def packed_error(error: BaseException) -> Tree:
    """`error` as a tree of plain values; the inverse is `unpacked_error`."""
    if isinstance(error, OSError) and error.errno is not None:
        name = None if error.filename is None else str(error.filename)
        return {"system error": [error.errno, error.strerror or "", name]}
    for kind in type(error).__mro__:
        if KNOWN.get(kind.__name__) is kind:
            return {"error": kind.__name__, "text": str(error)}
    return {
        "fault": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error)),
    }


def unpacked_error(tree: Tree, where: str) -> BaseException:
    """Inverse of `packed_error`; an unexpected error becomes a PeerFaultError that names `where` it occurred.

    A tree that is not a packed error becomes a PeerFaultError too, which quotes it.
    """
    match tree:
        case {"system error": [int(number), str(text), name]}:
            return OSError(number, text, name) if name else OSError(number, text)
        case {"error": str(name), "text": str(text)} if name in KNOWN:
            return KNOWN[name](text)
        case {"fault": str(text), "traceback": str(lines)}:
            fault = PeerFaultError(f"{where}: {text}")
            fault.add_note(lines)
            return fault
    return PeerFaultError(f"{where}: not a packed error: {str(tree)[:200]}")
