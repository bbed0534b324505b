"""Checks a block of Python without running it: names of ours, keyword arguments, and columns of frames."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.docs.our_names import Definition, Names, class_of, has_name, look_up, module_names

FRAME_PROPERTIES = {
    *(
        "T",
        "at",
        "columns",
        "dtypes",
        "empty",
        "iat",
        "iloc",
        "index",
        "loc",
        "plot",
        "shape",
        "size",
        "values",
    ),
    *("array", "cat", "dt", "dtype", "name", "str"),
}
"""What a frame, or a column, has besides columns and methods."""
SAME_COLUMNS = {
    *("copy", "dropna", "drop_duplicates", "fillna", "groupby", "head", "nlargest", "nsmallest", "query"),
    *("reset_index", "round", "sample", "sort_index", "sort_values", "tail"),
}
"""Methods after which a frame has the same columns."""
OF_COLUMNS = {"groupby", "sort_values", "set_index", "drop_duplicates", "pivot", "pivot_table"}
"""Methods whose texts name columns, but for those of the arguments `NO_COLUMNS`."""
NO_COLUMNS = {"aggfunc", "ascending", "how", "keep", "kind", "na_position"}
PLAYING = {"run", "check"}
"""Calls that are given a configuration."""
READERS = {"read_csv", "read_parquet"}


Frames = Mapping[str, Callable[[str], bool]]
"""By name of a frame, whether it has a column."""

OF_CALLS = {"Comparison": "comparison", "Check": "check"}
"""What is shown by a class that has its rows as `frame`."""


@dataclass(frozen=True)
class Module:
    """One of our modules, as a value."""

    names: Names


@dataclass(frozen=True)
class Instance:
    """An object of a class of ours."""

    of: Definition


@dataclass(frozen=True)
class Frame:
    """A frame of results, or rows of it; `added` are columns that a block has given it."""

    name: str
    added: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Method:
    """A method of a frame."""

    frame: Frame
    name: str


Value = Module | Definition | Instance | Frame | Method | None
"""What is known of a value; None: nothing."""


@dataclass
class Namespace:
    """The names of a page's Python: its values, and the modules that are saved in its folder."""

    frames: Frames
    values: dict[str, Value] = field(default_factory=dict)
    modules: dict[str, Names] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """Columns that frames of several experiments have in front: the keys in which these differ."""
    names: Names = field(default_factory=lambda: Names("__main__"))

    def module(self, name: str) -> Names | None:
        """The names of a module of the page or of ours; None if it is neither."""
        return self.modules.get(name) or module_names(name)


def check_python(
    code: str,
    namespace: Namespace,
    add_problem: Callable[[int, str], None],
    problem_of_call: Callable[[Mapping[str, Any]], str],
) -> None:
    """Check a block; its names are added to the namespace.

    Args:
        code: The block.
        namespace: The names of the page before it.
        add_problem: Is told the line in the block, from 1, and what is wrong there.
        problem_of_call: Says what is wrong with a call of `driftscale.run` or `driftscale.check`, given those
            of its arguments that are plain values, by name. It may add to the namespace's keys.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        add_problem(error.lineno or 1, f"no Python: {error.msg}")
        return
    namespace.names.add(tree.body)
    checker = _Checker(namespace, namespace.values, add_problem, [], [])
    checker.check_all(tree.body)
    for line, arguments in checker.calls:
        if problem := problem_of_call(arguments):
            add_problem(line, problem)
    for line, frame, name in checker.columns:
        if not (namespace.frames[frame.name](name) or name in frame.added or name in namespace.keys):
            add_problem(line, f"the frame {frame.name} has no column {name!r}")


def constants(code: str) -> Iterator[tuple[int, str]]:
    """The texts in a block, each with its line; none if it is no Python."""
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value


@dataclass
class _Checker:
    namespace: Namespace
    values: dict[str, Value]
    add_problem: Callable[[int, str], None]
    calls: list[tuple[int, Mapping[str, Any]]]
    """The lines of calls that are given a configuration, with their arguments that are plain values."""
    columns: list[tuple[int, Frame, str]]
    """The lines of columns that are used: a call below may be of a sweep, whose keys are columns."""

    def check_all(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.check(statement)

    def check(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom():
                self._imports(statement)
            case ast.FunctionDef():
                self._function(statement, None)
            case ast.ClassDef():
                self._class(statement)
            case ast.Assign() | ast.AnnAssign() if statement.value is not None:
                self._assign(statement)
            case ast.For():
                self._loop(statement)
            case _:
                self._parts_of(statement)

    def infer(self, node: ast.AST) -> Value:
        """What is known of an expression, all parts of which are checked."""
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(node, self.infer(inner), name)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=inner, slice=index):
                return self._item(node, self.infer(inner), index)
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._inner(node)
            case _:
                self._parts_of(node)
        return None

    def _parts_of(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.check(child)
            else:
                self.infer(child)

    # -- statements --------------------------------------------------------------------------------------

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            self._import_from(node, node.module or "", node.names)
        else:
            for alias in node.names:
                self._import(node, alias)

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        assert node.value is not None
        found = self.infer(node.value)
        if isinstance(node, ast.AnnAssign):
            self._bind(node.target, found or self._annotated(node.annotation))
        else:
            for target in node.targets:
                self._bind(target, found)

    def _loop(self, node: ast.For) -> None:
        """Check a loop; one over the groups of a frame has a name, and rows of the frame."""
        found = self.infer(node.iter)
        if isinstance(found, Frame) and isinstance(node.target, ast.Tuple):
            self._bind(node.target.elts[-1], found)
        else:
            self._bind(node.target, None)
        self.check_all([*node.body, *node.orelse])

    def _import(self, node: ast.Import, alias: ast.alias) -> None:
        names = self.namespace.module(alias.name)
        if names is None and self._is_ours(alias.name):
            self._add(node, f"there is no module {alias.name}")
        shown = alias.name if alias.asname else alias.name.partition(".")[0]
        found = self.namespace.module(shown)
        self.values[alias.asname or shown] = Module(found) if found is not None else None

    def _import_from(self, node: ast.ImportFrom, module: str, aliases: Sequence[ast.alias]) -> None:
        names = self.namespace.module(module)
        if names is None:
            if self._is_ours(module):
                self._add(node, f"there is no module {module}")
            self.values |= {alias.asname or alias.name: None for alias in aliases}
            return
        for alias in aliases:
            if not has_name(names, alias.name):
                self._add(node, f"{module} has no {alias.name}")
            self.values[alias.asname or alias.name] = self._member_of_module(names, alias.name)

    def _function(self, node: ast.FunctionDef, owner: Definition | None) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        inner = replace(self, values=dict(self.values))
        for argument in arguments:
            annotation = argument.annotation
            inner.values[argument.arg] = self._annotated(annotation) if annotation is not None else None
        if owner is not None and arguments and not owner.is_open:
            inner.values[arguments[0].arg] = Instance(owner)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.infer(default)
        inner.check_all(node.body)
        self.values[node.name] = Definition(self.namespace.names, node)

    def _class(self, node: ast.ClassDef) -> None:
        definition = Definition(self.namespace.names, node)
        self.values[node.name] = definition
        for base in node.bases:
            self.infer(base)
        if not any(_is_abstract(statement) for statement in node.body):
            for name in sorted(definition.abstract):
                self._add(node, f"{node.name} lacks {name}, which its base class leaves open")
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                is_plain = not any(
                    getattr(item, "id", "") in ("staticmethod", "classmethod")
                    for item in statement.decorator_list
                )
                self._function(statement, definition if is_plain else None)
                self.values.pop(statement.name, None)
            elif not isinstance(statement, ast.AnnAssign | ast.Assign):
                self.check(statement)
            elif statement.value is not None:
                self.infer(statement.value)

    def _bind(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.values[name] = value
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self._bind(item, None)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(column))):
                known = self.values.get(name)
                if isinstance(known, Frame):
                    self.values[name] = replace(known, added=known.added | {column})
            case _:
                for child in ast.iter_child_nodes(target):
                    self.infer(child)

    # -- expressions -------------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute, value: Value, name: str, *, is_called: bool = False) -> Value:
        match value:
            case Module(names=names):
                if not has_name(names, name) and not name.startswith("__"):
                    self._add(node, f"{names.where} has no {name}")
                return self._member_of_module(names, name)
            case Instance(of=definition):
                return self._member(node, definition, name)
            case Definition() if value.is_class:
                return self._member(node, value, name, of_class=True)
            case Frame():
                if name in FRAME_PROPERTIES:
                    return value if name in ("loc", "iloc") else None
                if is_called:
                    return Method(value, name)
                self._refuse_columns(node, value, [name])
        return None

    def _member(self, node: ast.AST, definition: Definition, name: str, *, of_class: bool = False) -> Value:
        member, is_results = definition.members.get(name), definition.name == "Results"
        if member is None:
            is_figure = module_names(f"experiments.results.figures.{name.removeprefix('plot_')}") is not None
            is_known = is_figure if is_results else definition.is_open or name.startswith(("__", "model_"))
            if not is_known:
                self._add(node, f"{definition.name} has no {name}")
            return None
        shown = name if is_results else OF_CALLS.get(definition.name, "") if name == "frame" else ""
        if shown in self.namespace.frames:
            return Frame(shown)
        is_function = isinstance(member.node, ast.FunctionDef)
        if of_class or (is_function and not member.is_property):
            return member if is_function else None
        return _instance(member.of_result)

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            owner = self.infer(node.func.value)
            called = self._attribute(node.func, owner, node.func.attr, is_called=True)
        else:
            called = self.infer(node.func)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.infer(argument)
        if isinstance(called, Method):
            return self._frame_method(node, called)
        if isinstance(called, Definition):
            self._refuse_keywords(node, called)
            if called.names.where.startswith("driftscale.") and called.name in PLAYING:
                self.calls.append((node.lineno, _plain_arguments(node, called)))
            if called.is_class:
                return Instance(called)
            return _frame_of(called, self.namespace) or _instance(called.of_result)
        if isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
            texts = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant)]
            names = [str(text).rpartition("/")[2].partition(".")[0] for text in texts]
            return next((Frame(name) for name in reversed(names) if name in self.namespace.frames), None)
        return None

    def _frame_method(self, node: ast.Call, method: Method) -> Value:
        frame = method.frame
        if method.name in OF_COLUMNS:
            texts = [
                text
                for argument in (
                    *node.args,
                    *(keyword.value for keyword in node.keywords if keyword.arg not in NO_COLUMNS),
                )
                for text in _texts(argument)
            ]
            self._refuse_columns(node, frame, texts)
        if method.name == "query" and node.args and isinstance(node.args[0], ast.Constant):
            self._refuse_columns(node, frame, list(_queried(str(node.args[0].value))))
        if method.name == "assign":
            return replace(
                frame, added=frame.added | {keyword.arg for keyword in node.keywords if keyword.arg}
            )
        return frame if method.name in SAME_COLUMNS else None

    def _item(self, node: ast.Subscript, value: Value, index: ast.expr) -> Value:
        self.infer(index)
        if isinstance(value, Instance):
            getter = value.of.members.get("__getitem__")
            return _instance(getter.of_result) if getter is not None else None
        if not isinstance(value, Frame):
            return None
        texts = list(_texts(index))
        self._refuse_columns(node, value, texts)
        return None if isinstance(index, ast.Constant) else value

    def _inner(self, node: ast.AST) -> None:
        """Check an expression with names of its own, of which nothing is known."""
        inner = replace(self, values=dict(self.values))
        for child in ast.walk(node):
            if isinstance(child, ast.comprehension):
                inner._bind(child.target, None)
        if isinstance(node, ast.Lambda):
            inner.values |= {argument.arg: None for argument in node.args.args}
        for child in ast.iter_child_nodes(node):
            inner.infer(child)

    # -- rules -------------------------------------------------------------------------------------------

    def _refuse_columns(self, node: ast.expr, frame: Frame, names: Sequence[str]) -> None:
        """Have columns checked once all calls of the block are known."""
        self.columns += [(node.lineno, frame, name) for name in names]

    def _refuse_keywords(self, node: ast.Call, called: Definition) -> None:
        function = called.members.get("__init__") if called.is_class else called
        known = function.keywords if function is not None else None
        for keyword in node.keywords:
            if known is not None and keyword.arg is not None and keyword.arg not in known:
                self._add(node, f"{called.name} has no argument {keyword.arg!r}")

    # -- names -------------------------------------------------------------------------------------------

    def _add(self, node: ast.AST, problem: str) -> None:
        self.add_problem(node.lineno, problem)  # type: ignore[attr-defined]

    def _is_ours(self, module: str) -> bool:
        return module_names(module.partition(".")[0]) is not None

    def _member_of_module(self, names: Names, name: str) -> Value:
        inner = self.namespace.module(f"{names.where}.{name}")
        if name not in names.defined and name not in names.imported and inner is not None:
            return Module(inner)
        return look_up(names, name) or _looked_up(names, name)

    def _annotated(self, annotation: ast.expr) -> Value:
        return _instance(class_of(annotation, self.namespace.names))


def _looked_up(names: Names, name: str) -> Definition | None:
    """The definition of a name that a module's `__getattr__` imports."""
    getter = names.defined.get("__getattr__")
    for node in ast.walk(getter) if getter is not None else ():
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            other = module_names(node.module or "")
            return look_up(other, name) if other is not None else None
    return None


def _instance(definition: Definition | None) -> Instance | None:
    return None if definition is None else Instance(definition)


def _frame_of(called: Definition, namespace: Namespace) -> Frame | None:
    """The frame that a method such as `clients_of` of the results returns."""
    name = called.name.removesuffix("_of")
    return Frame(name) if name in namespace.frames and called.names.where == "driftscale.results" else None


def _plain_arguments(node: ast.Call, function: Definition) -> dict[str, Any]:
    """The arguments of a call that are plain values, by name."""
    assert isinstance(function.node, ast.FunctionDef)
    names = [argument.arg for argument in function.node.args.args]
    given = dict(zip(names, node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    found = {}
    for name, value in given.items():
        with contextlib.suppress(ValueError):
            found[name] = ast.literal_eval(value)
    return found


def _is_abstract(statement: ast.stmt) -> bool:
    return any("abstract" in ast.unparse(item) for item in getattr(statement, "decorator_list", ()))


def _texts(node: ast.expr) -> Iterator[str]:
    """The text, or those of a list, that an argument gives."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _texts(item)


def _queried(query: str) -> Iterator[str]:
    """The columns in the text of a query."""
    try:
        tree = ast.parse(query.replace("@", "_variable_"), mode="eval")
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not node.id.startswith("_variable_"):
            yield node.id
