"""What each setting of a part says of itself: its description, or the docstring below the field."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise

from pydantic import BaseModel


def descriptions(settings: type[BaseModel]) -> Mapping[str, str]:
    """The description of each setting by its name, on one line; empty where there is none.

    A field without a `description` is described by the docstring below it, in this class or in one that it
    extends, if their source is at hand. Sources are parsed here, and not by pydantic at every start.
    """
    fields = settings.model_fields
    below: dict[str, str] = {}
    if not all(field.description for field in fields.values()):
        below = dict(docstring for base in reversed(settings.__mro__) for docstring in _docstrings(base))
    return {
        name: " ".join((field.description or below.get(name, "")).split()) for name, field in fields.items()
    }


def _docstrings(of: type) -> Iterator[tuple[str, str]]:
    """(name, docstring below it) of each field that the class itself declares."""
    if of is BaseModel or not issubclass(of, BaseModel):
        return
    try:
        source = textwrap.dedent(inspect.getsource(of))
        body = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)).body
    except (OSError, TypeError, SyntaxError, StopIteration):  # made without a file, as by a shell
        return
    for pair in pairwise(body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, text
