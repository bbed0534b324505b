"""The identity of code: a text that changes with the source of a part and of all that it reads.

It has the source of the part's class and, recursively, of the functions and classes of one's own that it
reads: as globals, attributes of modules, closures, defaults and attributes of classes. Code of libraries and
of ours is there by name, what cannot change by value. Addresses, the order of definitions, and Python's
hashes and version do not enter. All else that is read is named, and not compared.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field
from enum import Enum
from functools import cached_property, partial
from numbers import Number
from operator import itemgetter
from tokenize import TokenError
from types import CodeType, EllipsisType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, get_args

from pydantic import BaseModel

from emulator.own_parts import GUARDS, MAIN, OUR_PACKAGES, is_installed, top_of
from experiments.own.parts import OwnPart

PLAIN = (NoneType, bool, int, float, complex, str, bytes, range, EllipsisType, type(MISSING))
MADE_OF = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    MethodType: ("__func__", "__self__"),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    partial: ("func", "args", "keywords"),
    Field: ("default", "default_factory"),
    Enum: ("value",),
    re.Pattern: ("pattern", "flags"),
    logging.Logger: ("name",),
}
"""What cannot change either, as far as results go, and the attributes that it is made of."""

LOADS_NAME = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
LOADS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")

GENERATED = ("_abc_impl", "_field_defaults", "model_config", "model_fields", "model_computed_fields")
"""Attributes that a class has of its metaclass."""


def unseen_by(parts: Iterable[OwnPart]) -> list[str]:
    """Lines for the user on what these parts read of which changes are not seen; empty without any."""
    names = ", ".join(sorted({name for part in parts for name in code_of(part.code).unseen}))
    unless = "unless the file of a module changes too"
    return [f"changes of {names} are not seen, {unless}: results that are there are kept"] if names else []


def code_of(part: Any, stored: frozenset[str] = frozenset()) -> Code:
    """The code of a part: of a class or a function, or else of its class.

    `stored` are the names under which that code stores globals and attributes of classes while it runs, so
    that what they hold is not compared.
    """
    code = Code(part if isinstance(part, type | FunctionType) else _kind(part), stored)
    return code if code.stored <= stored else code_of(part, stored | code.stored)


class Code:
    """The code of a part.

    `text` is its identity. `unseen` are the names of what it reads of which changes are not seen, as in
    "my_parts:X.TABLE", `modules` those of the modules of its functions and classes, and that these read.
    """

    def __init__(self, part: type | FunctionType, stored: frozenset[str]) -> None:
        self.unseen: set[str] = set()
        self.modules: set[str] = set()
        self.stored: set[str] = set()
        self._known_stored = stored
        self._top = top_of(part.__module__)
        self._numbers: dict[Any, int] = {}  # of definitions, in the order in which they are read
        self._definitions: list[Any] = []
        self._lines: list[str] = [self._form("", part)]
        for number, definition in enumerate(self._definitions):  # which grow
            self._lines.append(f"#{number}")
            self._class(definition) if isinstance(definition, type) else self._function(definition)
        self.text = "\n".join(self._lines)

    def _class(self, part: type) -> None:
        where = f"{part.__module__}:{part.__qualname__}"
        self.modules.add(part.__module__)
        reads = {name: value for name, value in vars(part).items() if self._is_defined(name, value)}
        reads |= {**vars(part).get("__dataclass_fields__", {}), " bases": (type(part), *part.__bases__)}
        for name, field in part.model_fields.items() if issubclass(part, BaseModel) else ():
            self._lines.append(f"field {name} {field.alias} {_stripped(field.metadata)}")
            inner = [*_leaves(field.annotation), *(getattr(item, "func", None) for item in field.metadata)]
            is_set = isinstance(field.default, set | frozenset)
            default = frozenset(field.default) if is_set else _stripped(field.default)
            reads[name] = (default, field.default_factory, *inner)
        self._read({f"{where}.{name}": value for name, value in reads.items()})

    def _is_defined(self, name: str, value: Any) -> bool:
        """Whether an attribute of a class is not of those that decorators and metaclasses make."""
        function = getattr(value, "__func__", value)
        if name[0] == name[-1] == "_" and isinstance(function, FunctionType):
            function = inspect.unwrap(function)
            return self._is_own(function.__globals__.get("__name__", "")) and _source(function) is not None
        return name not in GENERATED and (name[0] != "_" or name[-1] != "_")

    def _function(self, function: FunctionType) -> None:
        code, scope = function.__code__, function.__globals__
        where = f"{scope['__name__']}:{code.co_qualname}"
        self.modules.add(scope["__name__"])
        self._lines.append(_source(function) or f"{where} {self._unseen(where)}")
        values = function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
        defaults = {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}
        inner = {**_closure(function), **defaults}
        self._read({f"{where}.{name}": value for name, value in inner.items()})
        self._note(code, scope["__name__"])
        self._read(dict(globals_of(code, scope, self._is_own)))

    def _note(self, code: CodeType, module: str) -> None:
        """Note what code stores, and what a script imports as it runs."""
        receiver = ""
        for step in dis.get_instructions(code):
            kind, name = step.opname, step.argval
            if kind == "STORE_GLOBAL" or (kind == "STORE_ATTR" and "self" not in receiver):
                self.stored.add(name)
            elif kind == "IMPORT_NAME" and module == MAIN:
                self.modules.add(name)
            receiver = str(name)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._note(constant, module)

    def _read(self, values: dict[str, Any]) -> None:
        for name, value in sorted(values.items(), key=itemgetter(0)):
            is_stored = re.split("[.:]", name)[-1] in self._known_stored
            self._lines.append(f"{name} = {self._unseen(name) if is_stored else self._form(name, value)}")

    def _unseen(self, name: str) -> str:
        self.unseen.add(name)
        return "unseen"

    def _form(self, name: str, value: Any) -> str:
        """The text of a value that is read as `name`; definitions of one's own in it are followed."""
        kind = _kind(value)
        if kind in PLAIN or isinstance(value, Number):
            return f"{kind.__name__} {format(value, '#x') if kind is int else _stripped(value)}"
        if kind is tuple:
            return f"({', '.join(self._form(name, item) for item in value)})"
        if kind is frozenset and all(type(item) in PLAIN for item in value):
            return f"{{{', '.join(sorted(map(repr, value)))}}}"
        if isinstance(value, ModuleType):
            self.modules.add(value.__name__)
            return f"module {value.__name__}"
        is_definition = isinstance(value, type | FunctionType)
        return self._definition(name, value) if is_definition else self._made_of(name, value)

    def _definition(self, name: str, value: Any) -> str:
        is_function = isinstance(value, FunctionType)
        module = value.__globals__.get("__name__", "") if is_function else value.__module__
        if self._is_own(module):
            if value not in self._numbers:
                self._numbers[value] = len(self._numbers)
                self._definitions.append(value)
            return f"#{self._numbers[value]}"
        inner = _closure(value).values() if is_function else ()  # a decorator keeps what it decorates
        kept = [self._form(name, item) for item in inner if isinstance(item, type | FunctionType)]
        return " ".join([f"{top_of(module)}:{value.__qualname__}", *kept])

    def _made_of(self, name: str, value: Any) -> str:
        kind = _kind(value)
        wrapped = ("__wrapped__",) if "__wrapped__" in getattr(value, "__dict__", ()) else ()
        if parts := next((MADE_OF[base] for base in kind.__mro__ if base in MADE_OF), wrapped):
            items = [getattr(value, part) for part in parts]
            items = [tuple(item.items()) if type(item) is dict else item for item in items]
            return f"{kind.__name__} {self._form(name, tuple(items))}"
        if self._is_own(kind.__module__):
            return f"{self._unseen(name)} {self._form(name, kind)}"
        known_as = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if known_as is None or not isinstance(getattr(value, "__self__", None), NoneType | ModuleType):
            return self._unseen(name)
        return f"{top_of(getattr(value, '__module__', ''))}:{known_as}"

    def _is_own(self, module: str) -> bool:
        """Whether code of this module is followed: it is of the part's package, or not installed."""
        if top_of(module) in OUR_PACKAGES:
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        return top_of(module) in (MAIN, self._top) or (file is not None and not is_installed(file))


def globals_of(
    code: CodeType, scope: Mapping[str, Any], is_own: Callable[[str], bool]
) -> Iterator[tuple[str, Any]]:
    """The globals that code reads, and the attributes of modules of one's own.

    Args:
        code: What reads them.
        scope: All globals of its module.
        is_own: Whether a module is of one's own, by its name.

    Yields:
        What is read as "module:name", and its value.
    """
    holder: Mapping[str, Any] = {}  # whose attribute is read next
    for step in dis.get_instructions(code):
        kind, name = step.opname, step.argval
        holder = scope if kind in LOADS_NAME else holder if kind in LOADS_ATTRIBUTE else {}
        if name in holder and not name.startswith("__"):
            yield f"{holder['__name__']}:{name}", holder[name]
        value = holder.get(name)
        holder = vars(value) if isinstance(value, ModuleType) and is_own(value.__name__) else {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_of(constant, scope, is_own)


def _kind(value: Any) -> type:
    """The class of a value, which may be guarded."""
    return getattr(type(value), GUARDS, type(value))


def _closure(function: FunctionType) -> dict[str, Any]:
    """What a function has kept of the function that it was defined in, by name."""
    kept = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is empty yet
            kept[name] = cell.cell_contents
    return kept


def _source(function: FunctionType) -> str | None:
    """The lines of a function, in a file or in a notebook's cell; None if they are not known."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    try:
        return "".join(inspect.getblock(lines)) if lines else None
    except (SyntaxError, TokenError):
        return None


def _leaves(annotation: Any) -> list[Any]:
    """The types in an annotation; what else is in it as text."""
    if get_args(annotation):
        return sorted((leaf for inner in get_args(annotation) for leaf in _leaves(inner)), key=str)
    return [annotation if isinstance(annotation, type) else _stripped(annotation)]


def _stripped(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
