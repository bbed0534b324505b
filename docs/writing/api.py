"""The page of `driftscale` in Python: functions, classes, and the tree of errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import driftscale
from docs.writing.markdown import code, fence, heading, page, paragraphs, prose, table
from emulator.errors import EmulatorError
from experiments.results.frames.columns import frame_columns
from traces.building import BUILDERS

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields")

INTRODUCTION = """\
`import driftscale` has the functions and classes below, and nothing else is kept stable for callers.
Importing it is cheap: torch, pandas and plotly are imported once something needs them. Errors are one line,
also in a notebook. The columns of frames are [on a page of their own](frames.md)."""

ERRORS = """\
Every error that a user can cause is an `EmulatorError`, whose message is one line.
`driftscale.EmulatorError` catches all of them; the others are in `emulator.errors`. A command ends with the
exit code of the error."""

OPTIONS = BUILDERS.find("table").Settings.model_fields.keys() - {"features", "label"}
ELSEWHERE = """\
The other arguments are the options of that name of [`driftscale traces build
table`](commands.md#driftscale-traces-build-table), about the rows of `frame`."""


def api_page() -> str:
    """The page of the Python API."""
    names = [name for name in driftscale.__all__ if name != "EmulatorError"]
    functions = [getattr(driftscale, name) for name in names if inspect.isfunction(getattr(driftscale, name))]
    classes = [getattr(driftscale, name) for name in names if inspect.isclass(getattr(driftscale, name))]
    return page(
        "Python",
        INTRODUCTION,
        *(
            block
            for function in functions
            for block in _function(function, f"driftscale.{function.__name__}", 2)
        ),
        *(block for of in classes for block in _class(of)),
        heading(2, "Errors"),
        ERRORS,
        table(("error", "exit code", "meaning"), list(_errors(EmulatorError, 0))),
    )


@dataclass(frozen=True)
class _Docstring:
    """A docstring in Google's form: its prose, and its sections."""

    text: str

    @cached_property
    def _split(self) -> list[str]:
        pattern = rf"^({'|'.join(SECTIONS)}):\n"
        return re.split(pattern, inspect.cleandoc(self.text), flags=re.MULTILINE)

    @property
    def prose(self) -> list[str]:
        return paragraphs(self._split[0])

    def items(self, section: str) -> list[tuple[str, str]]:
        """(name, text) of each entry of a section; none without that section."""
        entries: list[tuple[str, str]] = []
        for line in inspect.cleandoc(f"\n{self.section(section)}").splitlines():
            name, colon, text = line.partition(": ")
            if line and not line.startswith(" ") and colon:
                entries.append((name, text))
            elif entries:
                entries[-1] = entries[-1][0], f"{entries[-1][1]} {line.strip()}"
        return entries

    def section(self, name: str) -> str:
        names, texts = self._split[1::2], self._split[2::2]
        return next((text for known, text in zip(names, texts, strict=True) if known == name), "")


def _function(function: Any, name: str, level: int) -> Iterator[str]:
    docstring = _Docstring(function.__doc__ or "")
    yield heading(level, code(name if name.endswith("]") else f"{name}()"))
    signature = _signature(function, name)
    yield fence("text", signature) if "()" not in signature and not name.endswith("]") else ""
    yield from docstring.prose
    elsewhere = OPTIONS if function is driftscale.write_trace else {}
    rows = [(code(item), prose(text)) for item, text in docstring.items("Args") if item not in elsewhere]
    yield table(("argument", "meaning"), rows)
    yield ELSEWHERE if elsewhere else ""
    if returned := docstring.section("Returns"):
        yield f"Returns: {prose(returned)}"
    for error, text in docstring.items("Raises"):
        yield f"Raises {code(error)}: {prose(text)}"


def _signature(function: Any, name: str) -> str:
    """The call with its types, an argument on each line if there are several."""
    signature = inspect.signature(function)
    items = [item for item in signature.parameters.values() if item.name != "self"]
    shown = [re.sub(r"mappingproxy\((.*)\)", r"\1", str(item)) for item in items]
    for index, item in enumerate(items):
        before = items[index - 1].kind if index else None
        if item.kind is item.KEYWORD_ONLY and before not in (item.KEYWORD_ONLY, item.VAR_POSITIONAL):
            shown[index] = f"*,\n    {shown[index]}"
    returned = (
        f" -> {signature.return_annotation}" if signature.return_annotation is not signature.empty else ""
    )
    call = f"{name}({', '.join(shown)}){returned}".replace("'", "").replace("*,\n    ", "*, ")
    if len(call) <= 100:
        return call
    lines = [f"    {text}," for text in shown]
    return "\n".join([f"{name}(", *lines, f"){returned}"]).replace("'", "")


def _class(of: type) -> Iterator[str]:
    docstring = _Docstring(of.__doc__ or "")
    yield heading(2, code(f"driftscale.{of.__name__}"))
    yield from docstring.prose
    properties = [
        *((name, text) for name, text in docstring.items("Attributes")),
        *((name, property_text(item)) for name, item in _own(of) if isinstance(item, property)),
    ]
    if of is driftscale.Results:
        properties = [(name, text) for name, text in properties if name not in frame_columns()]
    yield table(("attribute", "what it is"), [(code(name), prose(text)) for name, text in properties])
    for name, item in _own(of):
        if inspect.isfunction(item) and (not name.startswith("_") or name == "__getitem__"):
            shown = "results[experiment]" if name == "__getitem__" else f"{of.__name__.lower()}.{name}"
            yield from _function(item, shown, 3)


def _own(of: type) -> Iterator[tuple[str, Any]]:
    return (
        (name, item) for name, item in vars(of).items() if not name.startswith("_") or name == "__getitem__"
    )


def property_text(of: property) -> str:
    """The docstring of a property on one line, with what it raises."""
    docstring = _Docstring(of.__doc__ or "")
    raised = [f"Raises `{error}`: {why}" for error, why in docstring.items("Raises")]
    return " ".join([*docstring._split[0].split(), *raised])


def _errors(error: type[EmulatorError], depth: int) -> Iterator[tuple[str, str, str]]:
    """An error and those below it, with a dot for each level."""
    about = (error.__doc__ or "").split("\n\n")[0]
    yield f"{'· ' * depth}{code(error.__name__)}", str(error.exit_code), prose(about)
    for below in error.__subclasses__():
        if below.__module__ == "emulator.errors":
            yield from _errors(below, depth + 1)
