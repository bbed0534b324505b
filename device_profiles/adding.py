"""Adding the measured row of a device to the table of a fleet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

from device_profiles.fleet import SOURCES
from device_profiles.table import ID, TableProfile, read_device_table
from emulator.errors import DataFileError
from emulator.storage.checkpoints import write_durably
from emulator.storage.tables import read_table

FLAGS = {"download_bytes_per_s": "--download-mbps", "upload_bytes_per_s": "--upload-mbps"}
INFERENCE = "compute_ms_per_sample"
FORM = "must be a .csv in UTF-8, with commas between its cells; save it as one"


def add_device(fleet: Path, measured: Path, name: str) -> TableProfile:
    """Append a measured row to a fleet; all or nothing.

    Args:
        fleet: A CSV, or a link to one; it is begun if it is missing.
        measured: A CSV of a header and one row, as `driftscale profiles measure` prints it.
        name: The id that the device gets.

    Returns:
        The fleet, as it then is.

    Raises:
        DataFileError: The row has no rates, or more rows are there; the fleet is no CSV, or has other columns
            or units, or the id; or it is not valid with the row.
    """
    if not fleet.parent.is_dir():
        raise DataFileError(fleet.parent, "no such folder")
    if fleet.suffix != ".csv":
        raise DataFileError(fleet, FORM)
    [header, *rows] = _cells(measured)
    if len(rows) != 1:
        raise DataFileError(measured, f"has {len(rows)} rows; must have one below its header")
    given = {column for title in header if title in SOURCES for column in SOURCES[title].gives}
    if missing := [flag for column, flag in FLAGS.items() if column not in given]:
        raise DataFileError(measured, f"has no rates; measure again with {' and '.join(missing)}")
    lines = _cells(fleet) if fleet.exists() else [header]
    _refuse_other_columns(fleet, lines[0], header)
    row = dict(zip(header, rows[0], strict=True)) | {ID: name.strip()}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*lines, [row[title] for title in lines[0]]])
    with TemporaryDirectory() as folder:
        whole = Path(folder, fleet.name)
        whole.write_text(text.getvalue(), encoding="utf-8")
        try:
            profile = read_device_table(whole)
        except DataFileError as error:
            raise DataFileError(fleet, f"with this row: {error.problem}", error.row) from error
    write_durably(fleet.resolve(), text.getvalue())
    return profile


def _cells(path: Path) -> list[list[str]]:
    """The lines of a CSV with commas, without blanks around cells, the header first.

    DataFileError for another file.
    """
    table = read_table(path)
    if table.csv is None or table.csv.dialect.separator != ",":
        raise DataFileError(path, FORM)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(path, FORM) from error
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    return [[cell.strip() for cell in line] for line in lines if line]


def _refuse_other_columns(fleet: Path, has: list[str], measured: list[str]) -> None:
    if INFERENCE in has:
        raise DataFileError(
            fleet,
            f"{INFERENCE} is the time of an inference, which is tripled, and a measured row has that of "
            f"training; replace the column by seconds_per_sample = {INFERENCE} x 3 / 1000, or begin another "
            f"fleet",
        )
    if differing := sorted({*has} ^ {*measured}):
        raise DataFileError(
            fleet,
            f"its columns are not those of the row: only one has {', '.join(differing)}; measure with "
            "the options of its other rows, convert its columns, or begin another fleet",
        )
