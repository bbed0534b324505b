"""What a page has at hand at one of its lines: the files in its folder, and the parts that it registers."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from unittest.mock import patch

from emulator import own_parts, plugins
from emulator.errors import EmulatorError, MissingFileError
from experiments.locating import Locate
from experiments.reading import read_table
from tests.docs.blocks import Block
from tests.docs.check_python import Namespace
from tests.docs.our_names import Names, names_of
from tests.docs.product import all_registries

EntryPoints = Mapping[str, Sequence[EntryPoint]]


@dataclass
class PageState:
    """The state of a page between two of its blocks.

    Attributes:
        folder: The folder of the files of its blocks; nothing else is in it.
        namespace: The names of its Python.
    """

    folder: Path
    namespace: Namespace

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.folder = self.folder.resolve()

    def save(self, block: Block) -> str:
        """Write the file of a block, or append to it; returns what is in the file now."""
        path = self.folder / (block.file or block.append or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if block.file else "a", encoding="utf-8") as file:
            file.write(block.content)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            self.forget_modules()
            self._read_module(path, text)
        return text

    def copy(self, source: Path, name: str) -> None:
        """Have a file that is a copy of a configuration, as a command makes it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.folder / name).is_file()

    def locate(self, *, is_lenient: bool) -> Locate:
        """How the page's configurations find their files; if lenient, all others are taken for folders."""

        def locate(path: str) -> Path:
            if (self.folder / path).exists():
                return self.folder / path
            if is_lenient:
                return self.folder
            raise MissingFileError(path, "no block above is saved as it")

        return locate

    def configurations(self) -> Iterator[dict[str, Any]]:
        """The tables of the page's configurations, the newest first."""
        for path in sorted(self.folder.rglob("*.toml"), key=lambda path: -path.stat().st_mtime_ns):
            try:
                table = read_table(path, locate=Path)
            except EmulatorError:
                continue  # is noted where it is saved
            if "arm" in table and "trace" in table:
                yield table

    def problem_of_part(self, name: str) -> str:
        """What is wrong with a part of one's own that is named "my_module:MyPart"; empty if nothing is."""
        module, _, attribute = name.partition(":")
        names = self.namespace.names if module == own_parts.MAIN else self.namespace.modules.get(module)
        if names is None:
            return f"{name!r}: no block above is saved as {module.replace('.', '/')}.py"
        has_it = attribute in names.defined or attribute in names.imported
        return "" if has_it else f"{name!r}: {module} has no {attribute}"

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Meanwhile parts of the page can be chosen: by their modules, and those of its pyproject.toml."""
        entries = self._entry_points()
        with (
            patch.object(sys, "path", [*sys.path, *([str(self.folder)] if entries else [])]),
            patch.object(sys, "dont_write_bytecode", True),
            patch.object(own_parts, "_folders", (self.folder,)),
            patch.object(plugins, "installed_entry_points", lambda: entries),
            _without_entries(entries),
        ):
            yield

    def forget_modules(self) -> None:
        """Forget the page's modules that were imported."""
        for name in self.namespace.modules:
            file = getattr(sys.modules.get(name), "__file__", None) or ""
            if file.startswith(f"{self.folder}/"):
                del sys.modules[name]
                own_parts._imported.pop(name, None)

    def _read_module(self, path: Path, text: str) -> None:
        module = ".".join(path.relative_to(self.folder).with_suffix("").parts)
        try:
            self.namespace.modules[module] = names_of(module, text)
        except SyntaxError:  # is noted where the block is checked
            self.namespace.modules[module] = Names(module)

    def _entry_points(self) -> EntryPoints:
        """The entry points in the page's pyproject.toml by group; none if there is no such file."""
        try:
            table = tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))
        except (FileNotFoundError, tomllib.TOMLDecodeError):
            return {}
        return {
            group: tuple(EntryPoint(name, value, group) for name, value in entries.items())
            for group, entries in table.get("project", {}).get("entry-points", {}).items()
        }


@contextmanager
def _without_entries(entries: EntryPoints) -> Iterator[None]:
    """Have the registries look up third parties' parts anew, now and at the end, if a page has some."""
    registries = all_registries() if entries else ()
    try:
        for registry in registries:
            registry.__dict__.pop("_entries", None)
        yield
    finally:
        for registry in registries:
            registry.__dict__.pop("_entries", None)
