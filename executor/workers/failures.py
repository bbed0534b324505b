"""Errors that cross from a worker to the coordinator: as what they are, where they are of a known kind."""

from __future__ import annotations

import traceback

from emulator import errors
from emulator.state_tree import Tree

KNOWN: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        errors.InputError,
        errors.ConfigurationError,
        errors.RunError,
        errors.ResumableError,
        MemoryError,
    )
}
"""Those that are made of their one line; others of ours arrive as their closest base."""


class WorkerFaultError(Exception):
    """A defect that showed in a worker: its traceback."""


def as_answer(error: Exception) -> Tree:
    """What a worker answers where a job went wrong."""
    if isinstance(error, OSError) and error.errno is not None:
        name = None if error.filename is None else str(error.filename)
        return {"system error": [error.errno, error.strerror or "", name]}
    for kind in type(error).__mro__:
        if kind.__name__ in KNOWN and KNOWN[kind.__name__] is kind:
            return {"error": kind.__name__, "text": str(error)}
    return {"fault": "".join(traceback.format_exception(error))}


def of_answer(answer: Tree) -> Exception | None:
    """The error that `answer` is, if it is one."""
    match answer:
        case {"answer": _}:
            return None
        case {"system error": [int(number), str(text), name]}:
            return OSError(number, text, name) if name else OSError(number, text)
        case {"error": str(name), "text": str(text)} if name in KNOWN:
            return KNOWN[name](text)
        case {"fault": str(text)}:
            return WorkerFaultError(f"in a worker:\n{text}")
    return WorkerFaultError(f"a worker gave no answer, but {str(answer)[:200]}")
