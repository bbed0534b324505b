"""Checks of single columns of `arrivals.parquet`: each value of theirs by itself."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import OUT_OF_RANGE, ParquetColumns, microseconds_of
from traces.arrivals import SPLITS
from traces.files import arrivals as rules
from traces.files.checking.blocks import stretches
from traces.files.checking.findings import Findings, RowFindings


class Column(NamedTuple):
    """A column as far as it can be read: `values` (rows,) have a meaning where `valid` (rows,).

    The values of a column of texts are codes, into `texts`. Integers are of the smallest signed type that
    holds all valid ones.
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
    values, valid = np.zeros(table.num_rows, narrow(least, most)), np.ones(table.num_rows, np.bool_)
    bad, beyond = RowFindings(table.path), RowFindings(table.path)
    for first, piece in table.pieces(name):
        rows = slice(first, first + len(piece))
        missing = np.asarray(piece.is_null())
        numbers = np.asarray(piece.fill_null(0)) if piece.null_count else np.asarray(piece)
        outside = ~missing & ((numbers < least) | (numbers > most))
        out = np.flatnonzero(outside)
        bad.add(
            first + out, lambda number: f"{name} = {number}: must be from {least} to {most}", numbers[out]
        )
        valid[rows] = ~(missing | outside)
        values[rows] = np.where(valid[rows], numbers, 0)
        _missing(table, name, first, missing, findings)
        if name == "sample" and num_samples is not None:
            too_large = first + np.flatnonzero(valid[rows] & (values[rows] >= num_samples))
            beyond.add(
                too_large,
                lambda number: rules.beyond_the_features(number, num_samples),
                values[too_large],
            )
            valid[too_large] = False
    findings.violations += [*bad.lines(), *beyond.lines()]
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
    codes = np.zeros(table.num_rows, np.int32)
    for first, piece in table.pieces(name, as_dictionary=True):
        encoded = cast(Any, piece)
        texts: list[str] = [str(text) for text in encoded.dictionary.to_pylist()]
        here = np.array([known.setdefault(text, len(known)) for text in texts] or [0], dtype=np.int32)
        codes[first : first + len(piece)] = np.where(
            np.asarray(piece.is_null()), -1, here[np.asarray(encoded.indices.fill_null(0))]
        )
    texts = sorted(text for text in known if text.strip())
    allowed = {"label": classes, "split": tuple(SPLITS)}.get(name)
    names = tuple(texts) if allowed is None else allowed
    place = {text: number for number, text in enumerate(names)}
    # Of each code, and of -1: a text that is missing or blank is -1, and an unknown one -2.
    number_of = np.full(len(known) + 1, -1, np.int64)
    number_of[[known[text] for text in texts]] = [place.get(text, -2) for text in texts]
    values, valid = np.zeros(table.num_rows, narrow(0, len(names))), np.ones(table.num_rows, np.bool_)
    missing, unknown = RowFindings(table.path), RowFindings(table.path)
    spelt = list(known)
    for rows in stretches(table.num_rows):
        numbers = number_of[codes[rows]]
        valid[rows] = numbers >= 0
        values[rows] = np.maximum(numbers, 0)
        missing.add(rows.start + np.flatnonzero(numbers == -1), lambda: f"{name} is missing")
        strange = rows.start + np.flatnonzero(numbers == -2)
        unknown.add(strange, lambda code: _unknown(name, spelt[code], names), codes[strange])
    findings.violations += [*missing.lines(), *unknown.lines()]
    return Column(values, valid, names)


def _unknown(name: str, text: str, allowed: tuple[str, ...]) -> str:
    return rules.unknown_split(text) if name == "split" else rules.unknown_class(text, allowed)


def narrow(least: int, most: int) -> np.dtype:
    """The smallest signed type of integers that holds 0 and `least` to `most`.

    >>> narrow(0, 2**15 - 1), narrow(-(2**63), 5)
    (dtype('int16'), dtype('int64'))
    """
    return np.promote_types(np.min_scalar_type(-1 - most), np.min_scalar_type(min(-1, least)))


def _missing(table: ParquetColumns, name: str, first: int, missing: Bools, findings: Findings) -> None:
    findings.add_rows(table.path, first + np.flatnonzero(missing), lambda at: f"{name} is missing")
