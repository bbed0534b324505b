"""Where a table is, and what is given of how its text is written.

For settings, which are validated before anything is read: it knows no reader, and imports no pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from emulator.errors import DataFileError
from emulator.numbers import Number
from emulator.plugins import Settings

Format = Literal["CSV", "Parquet", "Arrow"]

FORMATS: Mapping[str, Format] = {
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".csv.zip": "CSV",
    ".tsv": "CSV",
    ".tsv.gz": "CSV",
    ".txt": "CSV",
    ".data": "CSV",
    ".dat": "CSV",
    ".parquet": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
}
TABLE_SUFFIXES = tuple(FORMATS)

RECIPES: Mapping[str, str] = {
    ".json": "pandas.read_json",
    ".jsonl": "pandas.read_json with lines=True",
    ".xlsx": "pandas.read_excel",
    ".xls": "pandas.read_excel",
    ".arff": "scipy.io.arff.loadarff",
    ".npz": "numpy.load",
    ".npy": "numpy.load",
    ".mat": "scipy.io.loadmat",
    ".h5": "pandas.read_hdf",
    ".pkl": "pandas.read_pickle",
}
"""What reads other files that people have tables in, for the remedy of a refusal."""

Separator = Literal[",", ";", "|", "tab", "space"]
Encoding = Literal[
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "latin-1",
    "iso-8859-2",
    "iso-8859-15",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "mac-roman",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-kr",
]
ENCODINGS: tuple[str, ...] = get_args(Encoding)

_CALLED = {"\t": "tab", " ": "space"}


@dataclass(frozen=True)
class Given:
    """What is given of how a CSV is written; None, 0 and () are found.

    `separator` is a blank for runs of blanks. `in_configuration`: remedies name keys of a table beside the
    path, instead of options.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    skip_lines: int = 0
    columns: tuple[str, ...] = ()
    in_configuration: bool = False

    def options(self) -> dict[str, Any]:
        """What is given, by key."""
        keys = ("separator", "decimal", "encoding", "skip_lines", "columns")
        return {key: value for key in keys if (value := getattr(self, key))}

    def option(self, path: Path, key: str, value: object = None) -> str:
        """How a value is given for a file, the one that is given by default; for messages.

        >>> Given().option(Path("t.csv"), "separator", ";"), Given(skip_lines=3).option(Path(), "skip_lines")
        ("--separator ';'", '--skip-lines 3')
        >>> print(Given(in_configuration=True).option(Path("t.csv"), "columns", ("a", "b")))
        { path = "t.csv", columns = ["a", "b"] }
        """
        value = getattr(self, key) if value is None else value
        value = _CALLED.get(value, value) if isinstance(value, str) else value
        if self.in_configuration:
            shown = json.dumps(value, ensure_ascii=False)
            return f"{{ path = {json.dumps(path.name, ensure_ascii=False)}, {key} = {shown} }}"
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        return f"--{key.replace('_', '-')} " + (f"'{text}'" if text in (",", ";", "|") else text)


class Written(Settings):
    """How the text of a CSV is written, as far as that is not found."""

    separator: Separator | None = Field(
        None,
        description="what is between the cells of a CSV, space: runs of blanks; without it, found from the "
        "first 1000 rows",
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="the decimal point of a CSV; without it, found from the first 1000 rows"
    )
    encoding: Encoding | None = Field(
        None, description="encoding of a CSV; without it UTF-8, or UTF-16 if it begins with that one's mark"
    )
    skip_lines: Annotated[int, Number(ge=0, le=10**6)] = Field(
        0, description="lines of a CSV that are left out at its beginning, such as comments"
    )
    columns: tuple[str, ...] | None = Field(
        None, min_length=1, description="names of all columns of a CSV that has no header"
    )

    @model_validator(mode="after")
    def _columns_are_names(self) -> Written:
        columns = self.columns or ()
        wrong = next((name for name in columns if not name.strip() or columns.count(name) > 1), None)
        if wrong is not None:
            raise ValueError(f"columns: {wrong!r} is blank or there twice; each column has a name of its own")
        return self

    def given(self, *, in_configuration: bool = False) -> Given:
        """The same for the reader."""
        mark = {called: mark for mark, called in _CALLED.items()}.get(self.separator or "", self.separator)
        return Given(mark, self.decimal, self.encoding, self.skip_lines, self.columns or (), in_configuration)


class TableKeys(Written):
    """A table in a configuration, where its path could stand alone."""

    path: str = Field(description="path of the table")


class TablePath(str):
    """The path of a table as a configuration has it, with what is given of how it is written.

    In a configuration it is a text, or a table of `TableKeys`, and it is recorded as it was given.

    >>> from pydantic import TypeAdapter
    >>> path = TypeAdapter(TablePath).validate_python({"path": "t.csv", "separator": "space"})
    >>> path, path.given.separator, TypeAdapter(TablePath).dump_python(path)
    ('t.csv', ' ', {'path': 't.csv', 'separator': 'space'})
    """

    settings: TableKeys | None

    def __new__(cls, path: str, settings: TableKeys | None = None) -> TablePath:
        made = super().__new__(cls, path)
        made.settings = settings
        return made

    @property
    def given(self) -> Given:
        """What is given of how the table is written."""
        return (
            Given(in_configuration=True)
            if self.settings is None
            else self.settings.given(in_configuration=True)
        )

    def __eq__(self, other: object) -> bool:
        """Whether the other one is the same path, written in the same way."""
        return str.__eq__(self, other) is True and self.settings == getattr(other, "settings", None)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: validate with `parse`, dump as it was given."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(cls._recorded)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Pydantic's hook: a text or a table."""
        return {"anyOf": [{"type": "string"}, TableKeys.model_json_schema()]}

    @classmethod
    def parse(cls, value: object) -> TablePath:
        """The path that a text or a table gives; ValueError for anything else."""
        if isinstance(value, TablePath):
            return value
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, Mapping):
            raise ValueError('must be a text, or a table as { path = "table.csv", separator = ";" }')
        settings = TableKeys.model_validate(value)
        return cls(settings.path, settings)

    def _recorded(self) -> str | dict[str, Any]:
        settings = getattr(self, "settings", None)
        if settings is None:
            return str(self)
        return {"path": str(self), **settings.model_dump(mode="json", exclude_defaults=True)}


def format_of(path: Path, or_else: str = "") -> Format:
    """The format of a table, by its name; DataFileError for another file, with what reads it.

    `or_else` is what may stand there besides a table.
    """
    suffix = next((suffix for suffix in TABLE_SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is not None:
        return FORMATS[suffix]
    known = f"a table is one of {', '.join(TABLE_SUFFIXES)}{or_else}"
    reader = RECIPES.get(path.suffix.lower())
    if reader is None:
        raise DataFileError(path, known)
    raise DataFileError(
        path,
        f"{known}; read it in Python ({reader}), and save it with to_parquet or to_csv, or hand its samples "
        f"and rows to driftscale.write_trace (docs/howto/trace-folder.md)",
    )


def refuse_given(path: Path, form: str, given: Given) -> None:
    """Raise DataFileError if something of a CSV is given of a table of another format."""
    for key in given.options():
        raise DataFileError(path, f"{given.option(path, key)}: only of a CSV; it is {form}, which has none")
