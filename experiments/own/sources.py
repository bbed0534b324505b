"""The statements that definitions need, module by module: what a script has of them that runs elsewhere.

`identity.py` compares values; this module collects the statements that make them. A definition needs the
statements of its module that bind the names it reads when it runs, and, as bases and decorators, when it is
made. Not seen: what a decorator or a call enters into a table of another name.
"""

from __future__ import annotations

import ast
import copy
import dis
import importlib
import sys
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, ModuleType

from emulator.own_parts import OUR_PACKAGES, is_installed, top_of
from experiments.own.identity import globals_of

ALL = "*"
ANYWHERE = frozenset({*sys.stdlib_module_names, "torch"})
"""The modules that are wherever a model is trained."""


class Sources:
    """The statements that some classes and functions need.

    `texts` has the statements of each module of ours and of one's own, by module; a package of which only a
    module is needed has an empty text. `libraries` has the name of each further library, with a module that
    reads it.
    """

    def __init__(self, definitions: Iterable[str]) -> None:
        """`definitions`: as "module:name"."""
        self.libraries: dict[str, str] = {}
        self._compiled: dict[str, list[tuple[ast.stmt, CodeType]]] = {}
        self._needed: dict[str, set[int]] = {}
        self._known: set[tuple[str, str]] = set()
        for definition in definitions:
            module, _, name = definition.partition(":")
            self._need(module, name, module)

    @property
    def texts(self) -> dict[str, str]:
        above = {name[:at]: "" for name in self._needed for at, letter in enumerate(name) if letter == "."}
        for module, needed in self._needed.items():
            statements = [ast.unparse(self._statements(module)[number][0]) for number in sorted(needed)]
            above[module] = "\n\n".join(statements)
        return above

    def _statements(self, module: str) -> list[tuple[ast.stmt, CodeType]]:
        if module not in self._compiled:
            self._compiled[module] = _compiled(module)
        return self._compiled[module]

    def _need(self, module: str, name: str, reader: str) -> None:
        """Take the statements that bind `name` in `module`, or all of them, since `reader` reads it."""
        if (module, name) in self._known or top_of(module) in ANYWHERE:
            return
        self._known.add((module, name))
        if _file(module) is None:
            self.libraries.setdefault(top_of(module), reader)
            return
        needed = self._needed.setdefault(module, set())
        for number, (statement, code) in enumerate(self._statements(module)):
            if name == ALL or not _bound(statement, code).isdisjoint({name, ALL, "annotations"}):
                needed.add(number)
                self._follow(module, statement, code, name)
        if isinstance(value := getattr(sys.modules[module], name, None), ModuleType):
            self._need(value.__name__, "", module)

    def _follow(self, module: str, statement: ast.stmt, code: CodeType, name: str) -> None:
        """Take what a statement reads by which `module` has `name`."""
        scope = vars(sys.modules[module])
        for read, _ in globals_of(code, scope, lambda name: _file(name) is not None):
            holder, _, attribute = read.partition(":")
            self._need(holder, attribute, module)
        for step in dis.get_instructions(code):
            if step.opname == "LOAD_NAME":  # also of what is deleted further down
                self._need(module, step.argval, module)
        for node in ast.walk(statement):
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                if isinstance(node, ast.ImportFrom):
                    base = resolve_name("." * node.level + (node.module or ""), scope["__package__"])
                    self._need(base, name if alias.name == ALL else alias.name, module)
                else:  # what is read of a module is known where it is a global
                    self._need(alias.name, "" if node is statement else ALL, module)


def _file(module: str) -> Path | None:
    """The file of a module of ours or of one's own, which is imported; None of any other module."""
    try:
        file = None if top_of(module) in ANYWHERE else importlib.import_module(module).__file__
    except ImportError:
        return None
    is_own = file is not None and (top_of(module) in OUR_PACKAGES or not is_installed(file))
    return Path(file) if file is not None and is_own else None


def _compiled(module: str) -> list[tuple[ast.stmt, CodeType]]:
    """The statements of a module, and the code of each; one for each name that is imported."""
    file, statements = _file(module), list[ast.stmt]()
    assert file is not None, "a module of ours or of one's own has a file"
    for statement in ast.parse(file.read_bytes()).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name in statement.names:
                alone = copy.copy(statement)
                alone.names = [name]
                statements.append(alone)
        else:
            statements.append(statement)
    lazily = getattr(sys.modules[module], "annotations", None) is annotations  # of __future__
    flags = annotations.compiler_flag if lazily else 0
    return [(part, compile(ast.Module([part], []), str(file), "exec", flags, True)) for part in statements]


def _bound(statement: ast.stmt, code: CodeType) -> set[str]:
    """The names that a statement binds, `ALL` for any; or that whose value it changes, as `TABLE[1] = 2`."""
    if isinstance(statement, ast.ImportFrom) and statement.names[0].name == ALL:
        return {ALL}
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    for part in _parts(statement):
        for changed in getattr(part, "targets", [part]):
            while changed is not None and not isinstance(changed, ast.Name):
                inner = (getattr(changed, key, None) for key in ("target", "func", "value"))
                changed = next((node for node in inner if isinstance(node, ast.AST)), None)
            names |= {changed.id} if changed else set()
    return names


def _parts(statement: ast.AST) -> Iterator[ast.AST]:
    """A statement and those in it that run with it: not those of a function or a class."""
    yield statement
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for part in ast.iter_child_nodes(statement):
            if not isinstance(part, ast.expr):
                yield from _parts(part)
