"""Where a table is, and what is given of how its text is written.

For settings, which are validated before anything is read: it knows no reader, and imports no pyarrow.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from emulator.errors import DataFileError
from emulator.numbers import Number
from emulator.plugins import Settings

Format = Literal["CSV", "Parquet", "Arrow"]

_TEXT = (".csv", ".csv.gz", ".csv.zip", ".tsv", ".tsv.gz", ".txt", ".data", ".dat")
FORMATS: Mapping[str, Format] = {
    **dict.fromkeys(_TEXT, "CSV"),
    **dict.fromkeys((".parquet",), "Parquet"),
    **dict.fromkeys((".arrow", ".feather"), "Arrow"),
}
TABLE_SUFFIXES = tuple(FORMATS)

RECIPES = {
    **dict.fromkeys((".json", ".jsonl"), "pandas.read_json"),
    **dict.fromkeys((".xlsx", ".xls"), "pandas.read_excel"),
    **dict.fromkeys((".npz", ".npy"), "numpy.load"),
    ".arff": "scipy.io.arff.loadarff",
    ".mat": "scipy.io.loadmat",
    ".h5": "pandas.read_hdf",
}
"""What reads other files that people have tables in, for the remedy of a refusal."""

_UNICODE = Literal["utf-8", "utf-16", "utf-16-le", "utf-16-be"]
_WESTERN = Literal["latin-1", "iso-8859-15", "windows-1252", "mac-roman"]
_OTHERS = Literal["iso-8859-2", "windows-1250", "windows-1251", "gb18030", "big5", "shift_jis", "euc-kr"]
Encoding = Literal[_UNICODE, _WESTERN, _OTHERS]

_MARKS = {"tab": "\t", "space": " "}


class Given(Settings):
    """What is given of how the text of a CSV is written; the rest is found."""

    separator: Literal[",", ";", "|", "tab", "space"] | None = Field(
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
    columns: tuple[str, ...] = Field((), description="names of all columns of a CSV that has no header")

    in_configuration: ClassVar[bool] = False
    """Whether remedies name keys of a table in the place of a path, instead of options."""

    @model_validator(mode="after")
    def _columns_are_names(self) -> Given:
        wrong = next(
            (name for name, times in Counter(self.columns).items() if times > 1 or not name.strip()), None
        )
        if wrong is not None:
            raise ValueError(f"columns: {wrong!r} is blank or there twice; each column has a name of its own")
        return self

    @property
    def mark(self) -> str | None:
        """The separator that is given, a blank for runs of them."""
        return _MARKS.get(self.separator or "", self.separator)

    def option(self, path: Path, key: str, value: object = None) -> str:
        """How a value is given for a file, by default the one that is given; for messages.

        >>> Given().option(Path("t.csv"), "separator", ";"), Given(skip_lines=3).option(Path(), "skip_lines")
        ("--separator ';'", '--skip-lines 3')
        >>> print(TablePath(path="t.csv").option(Path("t.csv"), "columns", ("a", "b")))
        { path = "t.csv", columns = ["a", "b"] }
        """
        value = getattr(self, key) if value is None else value
        value = next((called for called, mark in _MARKS.items() if mark == value), value)
        if self.in_configuration:
            given = {
                name: getattr(self, name) for name in Given.model_fields if name in self.model_fields_set
            }
            table = {"path": path.name, **given, key: value}
            shown = (f"{name} = {json.dumps(each, ensure_ascii=False)}" for name, each in table.items())
            return f"{{ {', '.join(shown)} }}"
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        return f"--{key.replace('_', '-')} " + (f"'{text}'" if text in (",", ";", "|") else text)

    def refuse_of(self, path: Path, form: str) -> None:
        """Raise DataFileError if something is given of a table of this other format."""
        for key, field in Given.model_fields.items():
            if getattr(self, key) != field.default:
                raise DataFileError(
                    path, f"{self.option(path, key)}: only of a CSV; it is {form}, which has none"
                )


class TablePath(Given):
    """A table in a configuration: the text of its path, or a table with the path and what is given.

    It is recorded as it was given.

    >>> TablePath.model_validate("t.csv").model_dump()
    't.csv'
    >>> TablePath.model_validate({"path": "t.csv", "separator": "space"}).model_dump()
    {'separator': 'space', 'path': 't.csv'}
    """

    path: str = Field(description="path of the table")
    in_configuration: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        if not isinstance(value, str | Mapping | TablePath):
            raise ValueError('must be a text, or a table as { path = "table.csv", separator = ";" }')
        return {"path": value} if isinstance(value, str) else value

    @model_serializer(mode="wrap")
    def _as_given(self, dump: SerializerFunctionWrapHandler) -> Any:
        given = {key: value for key, value in dump(self).items() if key in self.model_fields_set}
        return self.path if self.model_fields_set == {"path"} else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Pydantic's hook: a text or a table."""
        return {"anyOf": [{"type": "string"}, super().__get_pydantic_json_schema__(schema, handler)]}


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
        f"{known}; read it in Python ({reader}), and save it with to_parquet or to_csv; samples may also "
        f"go to driftscale.write_trace (docs/howto/from-python.md)",
    )
