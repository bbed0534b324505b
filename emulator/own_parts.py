"""Parts of one's own, named by "my_module:MyPart": where their modules are looked for, and what is refused.

A module is looked for in the folder of the configuration and in the present folder, which `look_in` sets, and
nowhere else. Both are searched after all that is installed, so that a file beside a configuration never
replaces a module that driftscale or a library imports. A process has one table of modules, and so has this
module: a name that stands for another file than the imported one is refused, never answered with that one.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from sysconfig import get_path
from types import ModuleType
from typing import Any

from emulator.errors import ConfigurationError, did_you_mean

FORM = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""The form of such a name: a module, perhaps of a package, a colon, and a class in it."""

OUR_PACKAGES = frozenset(
    {"emulator", "device_profiles", "traces", "coordinator", "executor", "experiments", "driftscale"}
)

GUARDS = "_driftscale_guards"
"""The attribute by which a class that guards another one has that one."""

MAIN = "__main__"
"""The module of a notebook's cells or of the script that is run: found in the same process only."""

MOST_MODULES = 1000
"""Most modules of one's own whose files are looked at."""


class OwnPartError(ConfigurationError):
    """A name "my_module:MyPart" under which no part of the kind can be had; one line that says why."""


@dataclass(frozen=True)
class ModuleFile:
    """The file of a module, as it was when it was imported, or before."""

    path: Path
    num_bytes: int
    sha256: str


_folders: tuple[Path, ...] = ()
_imported: dict[str, ModuleFile] = {}


def is_ours(code: Any) -> bool:
    """Whether a class, a function or an object, by its `__module__`, is defined in our packages.

    >>> from pathlib import Path
    >>> is_ours(is_ours), is_ours(Path)
    (True, False)
    """
    return top_of(getattr(code, "__module__", None)) in OUR_PACKAGES


def top_of(module: object) -> str:
    return str(module).partition(".")[0]


def defining(kind: type, name: str) -> type:
    """The class among the bases of `kind`, guards aside, from which it has the attribute `name`."""
    return next(base for base in kind.__mro__ if name in vars(base) and GUARDS not in vars(base))


def is_own(name: str) -> bool:
    """Whether `name` has the form "my_module:MyPart".

    >>> is_own("my_parts:Steady"), is_own("field.parts:Steady"), is_own("oort"), is_own("my_parts:")
    (True, True, False, False)
    """
    return FORM.fullmatch(name) is not None


def look_in(*folders: Path) -> None:
    """Look for modules in these folders, in this order, from now on; absent ones are passed over.

    Args:
        folders: the folder of the configuration, and the present one.
    """
    global _folders
    _folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))


def searched() -> tuple[Path, ...]:
    """The folders in which modules are looked for: those of `look_in`, or else the present one."""
    return _folders or (Path.cwd(),)


def refuse_missing(name: str, what: str) -> None:
    """Raise OwnPartError unless there is a file of the module in `name`; nothing is imported.

    Args:
        name: of the form "my_module:MyPart".
        what: the kind of part, such as "selector".
    """
    module = name.partition(":")[0]
    if module != MAIN:
        _place(module, f"{what} {name!r}")


def load(name: str, what: str, base: type | None, taken: Callable[[Any, str, str], Any] | None = None) -> Any:
    """The part of that name; its module is imported if it was not.

    Args:
        name: of the form "my_module:MyPart".
        what: the kind of part, such as "selector", perhaps with its key in front.
        base: the class that a part of this kind extends; None accepts any object.
        taken: makes a part of an object of another kind, given with its name and `what`.

    Raises:
        OwnPartError: there is no such module, it fails at import, or it has no such part of the kind.
    """
    module_name, _, attribute = name.partition(":")
    where = f"{what} {name!r}"
    module = sys.modules[MAIN] if module_name == MAIN else _module(module_name, where)
    if not hasattr(module, attribute):
        own = [key for key in vars(module) if not key.startswith("_")]
        raise OwnPartError(f"{where}: {_of(module)} has no {attribute!r}{did_you_mean(attribute, own)}")
    part = getattr(module, attribute)
    if taken is not None:
        part = taken(part, name, what)
    if base is not None:
        _refuse_other_kind(part, where, what, base)
    return part


def refuse_not_defined(part: Any, name: str, what: str) -> None:
    """Raise OwnPartError unless `part`, which is to be called, is defined in a module of one's own.

    A module of one's own may import any function; a configuration must not have it called. A function of
    another module beside the configuration is as much one's own; `functools.partial` and methods of objects
    of a library are the library's.

    Args:
        part: the object of that name.
        name: of the form "my_module:MyPart".
        what: the kind of part, such as "device profile", perhaps with its key in front.
    """
    module, _, attribute = name.partition(":")
    defined_in = getattr(part, "__module__", None)
    if defined_in == module or (isinstance(defined_in, str) and _is_searched(defined_in)):
        return
    origin = f"of {defined_in!r}" if defined_in else "built in"
    raise OwnPartError(
        f"{what} {name!r}: {attribute} is {origin}, not defined in {module!r}, and is not called; define "
        f"a function in {module!r} that returns the {what.rpartition(': ')[2]}"
    )


def imported_modules() -> list[str]:
    """The names of the modules from which parts were loaded."""
    return list(_imported)


def is_loaded(module: str) -> bool:
    """Whether a part was loaded from a module of this name, or it is that of this process itself."""
    return module in _imported.keys() & sys.modules.keys() or module == MAIN


def module_file(module: str) -> ModuleFile | None:
    """The file of a module from which a part was loaded; None if it has none, as in a notebook."""
    if module == MAIN:
        path = getattr(sys.modules[MAIN], "__file__", None)
        return _read(Path(path)) if path and Path(path).is_file() else None
    return _imported[module]


def files_of(modules: Iterable[str], where: str = "") -> dict[str, ModuleFile]:
    """The files of modules of one's own and of those that they import, directly or not, by module.

    Of all names in `modules` and in import statements, those count that `import` finds in the searched
    folders, and the script that is run: the same ones in every process, imported yet or not. They are the
    nearest `MOST_MODULES`.

    Args:
        modules: names of modules, of one's own or not.
        where: what uses them, which begins an error.

    Raises:
        OwnPartError: a file cannot be read, or has changed since this process imported it.
    """
    from emulator.own.imports import imported_by

    files: dict[str, ModuleFile] = {}
    waiting, looked_at = sorted(modules), set()
    for module in waiting:  # which grow
        if module in looked_at or len(files) == MOST_MODULES:
            continue
        looked_at.add(module)
        parent = module.rpartition(".")[0]
        waiting.append(parent)  # since it is imported first
        path = _own_file(module)
        if path is not None:
            files[module] = _as_imported(module, path, where)
            waiting += imported_by(path.read_bytes(), module if path.name == "__init__.py" else parent)
    return files


@cache
def is_installed(file: str) -> bool:
    """Whether a file is of Python itself or of an installed package, but for an editable one."""
    path = Path(file).resolve()
    of_python = [Path(get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    is_of_library = {"site-packages", "dist-packages"} & {*path.parts}
    return bool(is_of_library) or any(path.is_relative_to(folder) for folder in of_python)


def _own_file(module: str) -> Path | None:
    """The file of a module in a searched folder, or of the script that is run; None for any other module."""
    if module == MAIN:
        path = Path(getattr(sys.modules[MAIN], "__file__", None) or "")
        return path.resolve() if path.is_file() else None
    top = module.partition(".")[0]
    known = None if top in ("", *OUR_PACKAGES) else _known_place(top)
    folders = [str(folder) for folder in searched() if known and _place_in(top, folder) == known]
    for name in module.split("."):  # by itself: of a package without a file the whole name needs the package
        spec = PathFinder.find_spec(name, folders) if folders else None
        if spec is None:
            return None
        folders = [*(spec.submodule_search_locations or [])]
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None


def _as_imported(module: str, path: Path, where: str) -> ModuleFile:
    """The file of a module, as it was first looked at; OwnPartError if the loaded module is another one."""
    from emulator.own.imports import is_as_in_its_file

    now, loaded = _read(path), sys.modules.get(module)
    if loaded is not None:
        is_known = module in _imported
        if not (_imported[module] == now if is_known else is_as_in_its_file(loaded)):
            raise OwnPartError(
                f"{where}{': ' if where else ''}{path} has changed since this process imported it; start a "
                f"new process (in a notebook: restart the kernel)"
            )
    _imported[module] = now
    return now


def named_modules(value: Any) -> set[str]:
    """The modules of all names of the form "my_module:MyPart" among the texts of nested tables and lists.

    >>> named_modules({"arm": [{"selector": {"kind": "my_parts:Steady"}, "memory": "held"}]})
    {'my_parts'}
    """
    if isinstance(value, str):
        return {value.partition(":")[0]} if is_own(value) else set()
    if isinstance(value, dict):
        return _united(value.values())
    return _united(value) if isinstance(value, list | tuple) else set()


def _united(values: Iterable[Any]) -> set[str]:
    return {module for value in values for module in named_modules(value)}


def _place(module: str, where: str) -> Path:
    """The file, or the folder of a package without `__init__.py`, that the first part of `module` stands for.

    Raises OwnPartError if there is none in the searched folders, or if two of them or an installed package
    have one.
    """
    top = module.partition(".")[0]
    importlib.invalidate_caches()
    places = [place for folder in searched() if (place := _place_in(top, folder)) is not None]
    folders = ", ".join(map(str, searched()))
    if not places:
        raise OwnPartError(
            f"{where}: no module {top!r} in {folders}: a part of one's own is in a file {top}.py beside the "
            f"configuration or in the present folder"
        )
    if len(set(places)) > 1:
        raise OwnPartError(f"{where}: both {places[0]} and {places[1]} are there; rename one of them")
    known = _known_place(top)
    if known is not None and known != places[0]:
        raise OwnPartError(
            f"{where}: {places[0]} cannot be imported, since another module is called {top!r} ({known}); "
            f"rename the file, or use a process of its own"
        )
    if module != top and places[0].is_file() and places[0].name != "__init__.py":
        raise OwnPartError(
            f"{where}: {places[0]} is no package, and has no module {module!r} in it; name the module alone, "
            f"{top!r}, and the part in it after a colon"
        )
    return places[0]


def _place_in(top: str, folder: Path) -> Path | None:
    spec = PathFinder.find_spec(top, [str(folder)])
    if spec is None:
        return None
    places = [*(spec.submodule_search_locations or []), str(folder)]
    return Path(spec.origin or places[0]).resolve()


def _is_searched(module: str) -> bool:
    """Whether `module`, which was imported, is in one of the searched folders."""
    top = module.partition(".")[0]
    known = _known_place(top)
    return known is not None and any(_place_in(top, folder) == known for folder in searched())


def _known_place(top: str) -> Path | str | None:
    """The place of the module that `import` would give for this name now; None if there is none.

    A built-in module is at "built-in".
    """
    loaded = sys.modules.get(top)
    if loaded is not None:
        folders = [*getattr(loaded, "__path__", [])]
        file = getattr(loaded, "__file__", None) or (folders[0] if folders else None)
        return Path(file).resolve() if file else "built-in"
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    if spec.origin in ("built-in", "frozen"):
        return spec.origin
    folders = [*(spec.submodule_search_locations or [])]
    return Path(spec.origin or folders[0]).resolve()


def _module(module: str, where: str) -> ModuleType:
    """The module, imported after its file was read; OwnPartError if it cannot be, or has changed since."""
    _place(module, where)
    for folder in searched():
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    is_known = is_loaded(module)
    files_of([module], where)
    if is_known:
        return sys.modules[module]
    try:
        spec = importlib.util.find_spec(module)
    except Exception as error:  # a package is imported to look into it
        raise OwnPartError(f"{where}: cannot be imported ({_why(error, None)})") from error
    file = Path(spec.origin).resolve() if spec is not None and spec.origin else None
    if file is None or not file.is_file():
        raise OwnPartError(f"{where}: no file of a module {module!r} in {', '.join(map(str, searched()))}")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # importing a module can raise anything
        raise OwnPartError(f"{where}: {file} cannot be imported ({_why(error, file)})") from error
    return imported


def _read(file: Path) -> ModuleFile:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise OwnPartError(f"{file}: cannot be read ({error.strerror})") from error
    return ModuleFile(file, len(content), hashlib.sha256(content).hexdigest())


def _why(error: BaseException, file: Path | None) -> str:
    """The error on one line, with the last line of `file` that it came through."""
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {text}"  # its text has the file and the line
    lines, step = [], error.__traceback__
    while step is not None:
        if file is not None and Path(step.tb_frame.f_code.co_filename) == file:
            lines.append(step.tb_lineno)
        step = step.tb_next
    place = f", line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}: {text}{place}"


def _of(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or f"the module {module.__name__!r}")


def _refuse_other_kind(part: Any, where: str, what: str, base: type) -> None:
    """Raise OwnPartError unless `part` is a class of the kind that can be built; it is not called."""
    if not isinstance(part, type):
        raise OwnPartError(f"{where}: is no class, but {type(part).__name__}; a {what} is a class")
    if not issubclass(part, base):
        raise OwnPartError(
            f"{where}: is no {what}: the class must extend {base.__module__}.{base.__qualname__}"
        )
    missing = sorted({*getattr(part, "__abstractmethods__", ()), *undefined(part)})
    if missing:
        raise OwnPartError(f"{where}: lacks what every {what} defines: {', '.join(missing)}")


def undefined(part: type) -> list[str]:
    """The attributes that a base of a class declares for the class, `ClassVar`, and none defines.

    What the class itself declares may be its own affair, such as a cache that is set later.

    >>> from typing import ClassVar
    >>> Shape = type("Shape", (), {"__annotations__": {"sides": ClassVar[int], "name": str}})
    >>> Blob, Square = type("Blob", (Shape,), {}), type("Square", (Shape,), {"sides": 4})
    >>> undefined(Shape), undefined(Blob), undefined(Square)
    ([], ['sides'], [])
    """
    return [
        name
        for base in part.__mro__[1:]
        for name, annotation in inspect.get_annotations(base).items()
        if "ClassVar[" in str(annotation) and not hasattr(part, name)
    ]
