"""Twelve forms in which programs write a table as text, and what a reader has to be given for each.

The same for data, profiles and hours: a frame comes in, a file goes out.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd


class Form(NamedTuple):
    """A form: its file's suffix, what writes it, what we are given, and what pandas is given."""

    suffix: str
    write: Callable[[pd.DataFrame, Path], object]
    keys: Mapping[str, Any]
    pandas: Mapping[str, Any]
    has_header: bool = True

    def written(self, frame: pd.DataFrame, folder: Path) -> Path:
        path = folder / f"table{self.suffix}"
        self.write(frame, path)
        return path

    def given(self, frame: pd.DataFrame) -> dict[str, Any]:
        """The keys that a table of these columns needs."""
        return {**self.keys} if self.has_header else {**self.keys, "columns": [*frame.columns]}

    def options(self, frame: pd.DataFrame) -> list[str]:
        """The same as options of a command."""
        flags: list[str] = []
        for key, value in self.given(frame).items():
            text = ",".join(value) if isinstance(value, list) else str(value)
            flags += [f"--{key.replace('_', '-')}", text]
        return flags

    def back(self, frame: pd.DataFrame, path: Path) -> pd.DataFrame:
        """The file as pandas reads it."""
        names: dict[str, Any] = {} if self.has_header else {"header": None, "names": [*frame.columns]}
        return pd.read_csv(path, dtype={"device_id": str}, **self.pandas, **names)


def as_text(frame: pd.DataFrame, sep: str = ",", decimal: str = ".", **more: Any) -> str:
    return frame.to_csv(None, sep=sep, decimal=decimal, index=False, **more)


def by_r(sep: str, decimal: str) -> Callable[[pd.DataFrame, Path], object]:
    """As write.csv and write.csv2: texts in quotes, and a column of row names, from 1 on, without a name."""

    def write(frame: pd.DataFrame, path: Path) -> None:
        named = frame.set_axis(pd.Index(range(1, len(frame) + 1), name="").map(str))
        named.to_csv(path, sep=sep, decimal=decimal, quoting=csv.QUOTE_NONNUMERIC, index_label="")

    return write


def by_excel(text: Callable[[pd.DataFrame], str], encoding: str) -> Callable[[pd.DataFrame, Path], object]:
    """As Excel ends its lines, in an encoding of its choice."""
    return lambda frame, path: path.write_bytes(text(frame).replace("\n", "\r\n").encode(encoding))


def by_wisdm(frame: pd.DataFrame, path: Path) -> None:
    """As WISDM_ar_v1.1_raw.txt: no header, and a ';' at the end of each line."""
    path.write_text(as_text(frame, header=False).replace("\n", ";\n"), encoding="utf-8")


def by_har(frame: pd.DataFrame, path: Path) -> None:
    """As X_train.txt of UCI HAR: no header, numbers aligned by runs of blanks, also before the first."""
    lines = [
        "".join(f"{value if isinstance(value, str) else repr(value):>26}" for value in row)
        for row in frame.itertuples(index=False)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def zipped(frame: pd.DataFrame, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", as_text(frame, "|"))


def commented(frame: pd.DataFrame, path: Path) -> None:
    path.write_bytes(("# Geräte\n# Stand: März\n" + as_text(frame, ";", ",")).encode("latin-1"))


FORMS: Mapping[str, Form] = {
    "to_csv with its index": Form(".csv", lambda frame, path: frame.to_csv(path), {}, {"index_col": 0}),
    "semicolons and decimal commas": Form(
        ".csv",
        lambda frame, path: path.write_text(as_text(frame, ";", ","), encoding="utf-8"),
        {},
        {"sep": ";", "decimal": ","},
    ),
    "R's write.csv": Form(".csv", by_r(",", "."), {}, {"index_col": 0}),
    "R's write.csv2": Form(".csv", by_r(";", ","), {}, {"index_col": 0, "sep": ";", "decimal": ","}),
    "Excel's Unicode text": Form(
        ".txt",
        by_excel(lambda frame: as_text(frame, "\t", ","), "utf-16"),
        {},
        {"sep": "\t", "decimal": ",", "encoding": "utf-16"},
    ),
    "Excel's CSV UTF-8": Form(
        ".csv",
        by_excel(lambda frame: as_text(frame, ";", ","), "utf-8-sig"),
        {},
        {"sep": ";", "decimal": ",", "encoding": "utf-8-sig"},
    ),
    "Excel's line sep=;": Form(
        ".csv",
        by_excel(lambda frame: "sep=;\n" + as_text(frame, ";"), "utf-8"),
        {},
        {"sep": ";", "skiprows": 1},
    ),
    "Windows-1252": Form(
        ".csv",
        lambda frame, path: path.write_bytes(as_text(frame).encode("windows-1252")),
        {"encoding": "windows-1252"},
        {"encoding": "windows-1252"},
    ),
    "comments in Latin-1": Form(
        ".csv",
        commented,
        {"encoding": "latin-1", "skip_lines": 2},
        {"encoding": "latin-1", "skiprows": 2, "sep": ";", "decimal": ","},
    ),
    "WISDM": Form(".txt", by_wisdm, {}, {"comment": ";"}, has_header=False),
    "HAR": Form(".txt", by_har, {"separator": "space"}, {"sep": r"\s+"}, has_header=False),
    "a zip of pipes": Form(".csv.zip", zipped, {}, {"sep": "|"}),
}


def plain(frame: pd.DataFrame, folder: Path) -> Path:
    """The frame as a CSV of UTF-8 with commas, points and a header."""
    path = folder / "plain.csv"
    path.write_text(as_text(frame), encoding="utf-8")
    return path
