"""What a module of one's own imports by its source, and whether a loaded module is as in its file."""

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


def is_as_in_its_file(module: ModuleType) -> bool:
    """Whether `import` would now give each function that `module` defines as it has it, in the same place.

    So a module whose file was edited after its import is found out, as long as a function moved or changed.
    True where this cannot be told: it was not loaded from a source.
    """
    spec = module.__spec__
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        return True
    try:
        codes = [spec.loader.get_code(spec.name)]
    except (ImportError, OSError, SyntaxError):
        return False
    for code in codes:  # which grow
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)] if code else []
    scopes = [vars(module), *(vars(value) for value in vars(module).values() if isinstance(value, type))]
    functions = [value for scope in scopes for value in scope.values() if isinstance(value, FunctionType)]
    return {item.__code__ for item in functions if item.__code__.co_filename == spec.origin} <= {*codes}
