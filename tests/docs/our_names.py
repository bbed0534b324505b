"""The names in our modules, and in those of a page, read from the source: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from tests.docs.blocks import ROOT
from tests.packages import AT_ROOT

PACKAGES = (*AT_ROOT, "tests")
PLAIN_BASES = ("ABC", "BaseModel", "Exception", "Generic", "NamedTuple", "Protocol", "StrEnum", "object")
"""Bases outside of our packages; of their attributes, a page uses none but pydantic's `model_...`."""


@dataclass(eq=False)
class Names:
    """The names of a module: where each is defined, as a node of its source, or where it is imported from.

    Attributes:
        where: The module's name.
        defined: Nodes of definitions by name.
        imported: By name, the module it comes from and its name there (empty: it is that module).
        more: Names without a definition that is seen, such as those that a module looks up when asked.
    """

    where: str
    defined: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)

    def add(self, statements: Sequence[ast.stmt]) -> None:
        """Add the names that statements bind, also those in branches."""
        for statement in statements:
            match statement:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    self.defined[name] = statement
                case ast.Import() | ast.ImportFrom():
                    self._add_imports(statement)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._add_target(target, value)
                case ast.AnnAssign(target=target):
                    self._add_target(target, statement)
                case ast.If() | ast.Try() | ast.With():
                    for name in ("body", "orelse", "finalbody"):
                        self.add(getattr(statement, name, []))

    def _add_imports(self, statement: ast.Import | ast.ImportFrom) -> None:
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom):
                self.imported[alias.asname or alias.name] = (statement.module or "", alias.name)
            else:
                first = alias.name.partition(".")[0]
                self.imported[alias.asname or first] = (alias.name if alias.asname else first, "")

    def _add_target(self, target: ast.expr, value: ast.AST) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self._add_target(item, value)
        if not isinstance(target, ast.Name):
            return
        self.defined[target.id] = value
        if target.id == "__all__" and isinstance(value, ast.List | ast.Tuple):
            self.more |= {item.value for item in value.elts if isinstance(item, ast.Constant)}


@dataclass(frozen=True)
class Definition:
    """A class, a function or another value, with the names of the module that defines it."""

    names: Names
    node: ast.AST

    @property
    def name(self) -> str:
        """The name of a class or a function; empty for another value."""
        return str(getattr(self.node, "name", ""))

    @property
    def is_class(self) -> bool:
        """Whether it is a class."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def members(self) -> Mapping[str, Definition]:
        """The members of a class and of its bases by name, as far as they are known."""
        return _members(self)

    @cached_property
    def is_open(self) -> bool:
        """Whether a class has members that are not known, from a base outside of our packages."""
        assert isinstance(self.node, ast.ClassDef)
        known = [definition for definition in self.bases if not definition.is_open]
        plain = [base for base in self.node.bases if _last_name(base) in PLAIN_BASES]
        return len(known) + len(plain) < len(self.node.bases) or "__getattr__" in self.members

    @property
    def abstract(self) -> set[str]:
        """The names of members of a class that are left to be defined."""
        return {
            name
            for name, member in self.members.items()
            if isinstance(member.node, ast.FunctionDef)
            and any(_last_name(item).startswith("abstract") for item in member.node.decorator_list)
        }

    @property
    def keywords(self) -> set[str] | None:
        """The names by which arguments of a function may be given; None if any may be."""
        if not isinstance(self.node, ast.FunctionDef) or self.node.args.kwarg is not None:
            return None
        arguments = self.node.args
        return {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}

    @property
    def of_result(self) -> Definition | None:
        """The class of what a function returns, or of a value with an annotation; None if it is not ours."""
        node = self.node
        annotation = node.returns if isinstance(node, ast.FunctionDef) else getattr(node, "annotation", None)
        return None if annotation is None else class_of(annotation, self.names)

    @property
    def is_property(self) -> bool:
        """Whether a function of a class is read as an attribute."""
        decorators = getattr(self.node, "decorator_list", [])
        return any(_last_name(item) in ("property", "cached_property") for item in decorators)

    @property
    def bases(self) -> Iterator[Definition]:
        """The bases of a class that are ours."""
        assert isinstance(self.node, ast.ClassDef)
        for base in self.node.bases:
            name = base.value if isinstance(base, ast.Subscript) else base
            definition = class_of(name, self.names)
            if definition is not None:
                yield definition


def class_of(annotation: ast.expr, names: Names) -> Definition | None:
    """The class of ours that an annotation names, also as a text, or with None; None if it names another."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.BinOp):
        sides = [class_of(side, names) for side in (annotation.left, annotation.right)]
        found = [side for side in sides if side is not None]
        return found[0] if len(found) == 1 and _is_none(annotation.right, annotation.left) else None
    if isinstance(annotation, ast.Name):
        definition = look_up(names, annotation.id)
    elif isinstance(annotation, ast.Attribute) and isinstance(annotation.value, ast.Name):
        module = names.imported.get(annotation.value.id)
        of_module = module_names(".".join(filter(None, module))) if module else None
        definition = look_up(of_module, annotation.attr) if of_module else None
    else:
        return None
    return definition if definition is not None and definition.is_class else None


def look_up(names: Names, name: str) -> Definition | None:
    """The definition of a name of ours, which may be imported from another module; None if there is none."""
    if name in names.defined:
        return Definition(names, names.defined[name])
    module, original = names.imported.get(name, ("", ""))
    other = module_names(module) if original else None
    return look_up(other, original) if other is not None else None


def has_name(names: Names, name: str) -> bool:
    """Whether a module has this name: bound in it, or a module in it."""
    return (
        name in names.defined
        or name in names.imported
        or name in names.more
        or module_names(f"{names.where}.{name}") is not None
    )


@cache
def module_names(module: str) -> Names | None:
    """The names of one of our modules; None if there is no such module."""
    if module.partition(".")[0] not in PACKAGES:
        return None
    path = ROOT.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return names_of(module, file.read_text(encoding="utf-8"))
    return Names(module) if any(path.glob("*.py")) else None


def names_of(module: str, source: str) -> Names:
    """The names of a module with this source, which is Python."""
    names = Names(module)
    names.add(ast.parse(source).body)
    return names


@cache
def _members(of: Definition) -> dict[str, Definition]:
    """The members of a class; kept, since the sources of our modules do not change."""
    assert isinstance(of.node, ast.ClassDef)
    own = Names(of.names.where)
    own.add(of.node.body)
    found = {name: member for base in of.bases for name, member in base.members.items()}
    for statement in of.node.body:
        if isinstance(statement, ast.FunctionDef):
            found |= {name: Definition(of.names, node) for name, node in _of_self(statement)}
    return found | {name: Definition(of.names, node) for name, node in own.defined.items()}


def _of_self(method: ast.FunctionDef) -> Iterator[tuple[str, ast.AST]]:
    """The attributes that a method sets, with what they are set to."""
    for node in ast.walk(method):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            ):
                yield target.attr, node


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last_name(inner)
    return ""


def _is_none(*sides: ast.expr) -> bool:
    return any(isinstance(side, ast.Constant) and side.value is None for side in sides)
