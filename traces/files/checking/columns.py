"""Checks of single columns of `arrivals.parquet`: each value of theirs by itself."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import OUT_OF_RANGE, ParquetColumns, microseconds_of
from traces.arrivals import SPLITS
from traces.files import arrivals as rules
from traces.files.checking.findings import Findings


class Column(NamedTuple):
    """A column as far as it can be read: `values` (rows,) have a meaning where `valid` (rows,).

    The values of a column of texts are codes, into `texts`.
    """

    values: np.ndarray
    valid: Bools
    texts: tuple[str, ...] | None = None


def check_column(
    table: ParquetColumns,
    name: str,
    classes: tuple[str, ...] | None,
    num_samples: int | None,
    findings: Findings,
) -> Column | None:
    """A column, as far as its values are valid; None if it cannot be read."""
    try:
        rules.check_type(table, name)
        if table.is_text(name):
            return _check_texts(table, name, classes, findings)
        if name == "time":
            return _check_times(table, findings)
        return _check_numbers(table, name, classes, num_samples, findings)
    except DataFileError as error:
        findings.add(error)
        return None


def _check_numbers(
    table: ParquetColumns,
    name: str,
    classes: tuple[str, ...] | None,
    num_samples: int | None,
    findings: Findings,
) -> Column:
    most_label = (rules.MOST_CLASSES if classes is None else len(classes)) - 1
    least, most = (0, most_label) if name == "label" else rules.BOUNDS[name]
    values, valid = np.zeros(table.num_rows, np.int64), np.ones(table.num_rows, np.bool_)
    bad: list[tuple[int, int]] = []
    for first, piece in table.pieces(name):
        rows = slice(first, first + len(piece))
        missing = np.asarray(piece.is_null())
        numbers = np.asarray(piece.fill_null(0)) if piece.null_count else np.asarray(piece)
        outside = ~missing & ((numbers < least) | (numbers > most))
        bad += [(first + int(row), int(numbers[row])) for row in np.flatnonzero(outside)]
        valid[rows] = ~(missing | outside)
        values[rows] = np.where(valid[rows], numbers, 0)
        _missing(table, name, first, missing, findings)
    text = f"must be from {least} to {most}"
    findings.add_rows(table.path, [row for row, _ in bad], lambda at: f"{name} = {bad[at][1]}: {text}")
    if name == "sample" and num_samples is not None:
        beyond = np.flatnonzero(valid & (values >= num_samples))
        findings.add_rows(
            table.path, beyond, lambda at: rules.beyond_the_features(int(values[beyond[at]]), num_samples)
        )
        valid[beyond] = False
    return Column(values, valid)


def _check_times(table: ParquetColumns, findings: Findings) -> Column:
    values, valid = np.zeros(table.num_rows, np.int64), np.ones(table.num_rows, np.bool_)
    for first, piece in table.pieces("time"):
        rows, missing = slice(first, first + len(piece)), np.asarray(piece.is_null())
        values[rows], outside = microseconds_of(piece, table.kind("time"))
        valid[rows] = ~(missing | outside)
        _missing(table, "time", first, missing, findings)
        findings.add_rows(table.path, first + np.flatnonzero(outside), lambda at: f"time {OUT_OF_RANGE}")
    return Column(values, valid)


def _check_texts(
    table: ParquetColumns, name: str, classes: tuple[str, ...] | None, findings: Findings
) -> Column:
    known: dict[str, int] = {}
    codes = np.zeros(table.num_rows, np.int64)
    for first, piece in table.pieces(name, as_dictionary=True):
        encoded = cast(Any, piece)
        texts: list[str] = [str(text) for text in encoded.dictionary.to_pylist()]
        here = np.array([known.setdefault(text, len(known)) for text in texts] or [0], dtype=np.int64)
        codes[first : first + len(piece)] = np.where(
            np.asarray(piece.is_null()), -1, here[np.asarray(encoded.indices.fill_null(0))]
        )
    is_blank = np.array([not text.strip() for text in known] or [False])
    valid = (codes >= 0) & ~is_blank[np.maximum(codes, 0)]
    _missing(table, name, 0, ~valid, findings)
    texts = sorted(text for text in known if text.strip())
    rank = np.zeros(len(known) or 1, np.int64)
    rank[[known[text] for text in texts]] = np.arange(len(texts))
    codes = np.where(valid, rank[np.maximum(codes, 0)], 0)
    allowed = {"label": classes, "split": tuple(SPLITS)}.get(name)
    if allowed is None:
        return Column(codes, valid, tuple(texts))
    place = {text: number for number, text in enumerate(allowed)}
    numbers = np.array([place.get(text, -1) for text in texts] or [-1], dtype=np.int64)
    unknown = np.flatnonzero(valid & (numbers[codes] < 0))
    findings.add_rows(
        table.path,
        unknown,
        lambda at: (
            rules.unknown_split(texts[codes[unknown[at]]])
            if name == "split"
            else rules.unknown_class(texts[codes[unknown[at]]], allowed)
        ),
    )
    valid[unknown] = False
    return Column(np.where(valid, numbers[codes], 0), valid, allowed)


def _missing(table: ParquetColumns, name: str, first: int, missing: Bools, findings: Findings) -> None:
    findings.add_rows(table.path, first + np.flatnonzero(missing), lambda at: f"{name} is missing")
