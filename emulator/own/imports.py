"""What a module of one's own imports by its source, and whether a loaded module is that of a source."""

from __future__ import annotations

import ast
from functools import cache
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType, ModuleType


@cache
def imported_by(content: bytes, package: str) -> list[str]:
    """The names of modules in the import statements of a source, also in functions, sorted.

    What is imported from a module may be a module, so that not every name need be one's. Empty for a source
    that Python cannot parse.

    Args:
        content: the source, in the encoding that it declares.
        package: the package of its module, to which relative imports refer; empty without one.

    >>> imported_by(b"def f():\\n    from . import near\\n    import far.off", "field")
    ['far.off', 'field', 'field.near']
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the import itself says why
        return []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return sorted(names)


def is_loaded_from(module: ModuleType, content: bytes) -> bool:
    """Whether each function that `module` defines is, in its place, in this source.

    So a module whose file was edited after its import is found out, as long as a function moved or changed.
    True where this cannot be told: something else than Python's own loader has compiled it.
    """
    file = str(getattr(module, "__file__", None))
    if type(getattr(module.__spec__, "loader", None)) is not SourceFileLoader:
        return True
    try:
        codes = [compile(content, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    for code in codes:  # which grow
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    scopes = [vars(module), *(vars(value) for value in vars(module).values() if isinstance(value, type))]
    functions = [value for scope in scopes for value in scope.values() if isinstance(value, FunctionType)]
    return {item.__code__ for item in functions if item.__code__.co_filename == file} <= {*codes}
