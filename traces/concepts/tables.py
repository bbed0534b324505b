"""Concepts from table files: `tables`, one file for each concept, as FedDrift's authors publish SEA's.

Jothimurugesan et al. 2023 drew 15,000 rows of each SEA concept once, and every batch takes its samples from
them. Such files already contain the label noise, if any; features are used unchanged.

Rows recur across batches, as in the authors' code, which samples every batch anew from the whole file: 500
rows without replacement. A test sample has been trained on before with probability

    1 - (1 - m / n)^b

where m is the size of a batch, n the number of the concept's rows, and b the number of its earlier batches.
With the authors' files and pattern Y that is 53 % of all test samples if the batches of all clients count,
and 9 % if only the client's own do.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from emulator.arrays import Floats32, Ints
from emulator.errors import DataFileError
from emulator.plugins import Settings
from emulator.seeding import RandomStreams
from emulator.storage.table_paths import TablePath
from emulator.storage.tables import TableFile, find_table
from traces.concepts.base import ConceptSamples, ConceptSet, Locate
from traces.images import ImageSet

MAX_CELLS = 2**29
"""Most features (rows x columns) of all tables together: two gibibytes in single precision."""

MAX_LABELS = 2**15
"""Most classes of a trace, which stores a label in 16 bits."""


class TablesSettings(Settings):
    """The files, and which of their columns are used."""

    files: tuple[TablePath, ...] = Field(
        min_length=1,
        description="the path of a table for each concept, with the same columns",
        examples=[("a.csv", "b.csv")],
    )
    label: str | None = Field(None, description="column of the label; without it, the last one")
    features: tuple[str, ...] | None = Field(
        None, min_length=1, description="columns of the features, numbers; without it, all but the label's"
    )

    def find_files(self, locate: Locate) -> None:
        for file in self.files:
            locate(file.path)

    @field_validator("features")
    @classmethod
    def _each_once(cls, features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name, times in Counter(features or ()).items():
            if times > 1:
                raise ValueError(f"column {name!r} is named twice; every feature is named once")
        return features

    @model_validator(mode="after")
    def _label_is_no_feature(self) -> TablesSettings:
        if self.label is not None and self.label in (self.features or ()):
            raise ValueError(f"column {self.label!r} is the label, and cannot be a feature too")
        return self


class Tables(ConceptSet):
    """One file of rows for each concept; labels may depend on features in any way.

    A batch takes its samples from its concept's rows without replacement; other batches may take them again.
    Labels may be any values: over all files, the k-th smallest is class k.

    Source: FedDrift's authors, who publish SEA in this form.

    By default the last column is the label, and all others are features:

    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> table = TableFile(Path("a.csv"), pa.table({"x1": [0.5], "x2": [1.5], "label": ["yes"]}))
    >>> Tables(TablesSettings(files=("a.csv",)))._columns(table)
    ('label', ['x1', 'x2'])
    """

    Settings = TablesSettings
    settings: TablesSettings

    @property
    def num_concepts(self) -> int:
        return len(self.settings.files)

    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        tables = [find_table(file, locate) for file in self.settings.files]
        for table in tables[1:]:
            _refuse_other_columns(table, tables[0])
        for concept in np.unique(pattern).tolist():
            table = tables[concept]
            if len(table) < samples:
                raise DataFileError(
                    table.path,
                    f"has {len(table)} rows, and a batch of trace.samples_per_step = {samples} takes each "
                    f"row at most once; lower samples_per_step",
                )
        label, features = self._columns(tables[0])
        pool = _pool(tables, label, features)
        sizes = [len(table) for table in tables]
        start = np.concatenate(([0], np.cumsum(sizes)))  # each concept's first row in the pool
        row = np.empty((*pattern.shape, samples), dtype=np.int64)
        for batch, client in np.ndindex(*pattern.shape):
            concept = int(pattern[batch, client])
            generator = streams.generator("concept rows", batch, client)
            row[batch, client] = start[concept] + generator.choice(sizes[concept], samples, replace=False)
        return ConceptSamples(pool, row, pool.labels[row])

    def _columns(self, table: TableFile) -> tuple[str, list[str]]:
        """The names of the label's column and of the features' columns.

        Raises DataFileError if one is missing, the label is a feature too, or there are no features.
        """
        label = table.columns[-1] if self.settings.label is None else self.settings.label
        named = self.settings.features
        features = [name for name in table.columns if name != label] if named is None else list(named)
        table.require(label, *features)
        if label in features:
            raise DataFileError(
                table.path,
                f"its last column, {label!r}, would be the label and is one of trace.concepts.features; name "
                f"another column as trace.concepts.label",
            )
        if not features:
            raise DataFileError(table.path, f"has no column of features, only the label's, {label!r}")
        return label, features


def _refuse_other_columns(table: TableFile, first: TableFile) -> None:
    """DataFileError unless both tables have the same columns, in the same order."""
    if len(table.columns) != len(first.columns):
        raise DataFileError(
            table.path,
            f"has {len(table.columns)} columns, and {first.path} has {len(first.columns)}; the tables of all "
            f"concepts have the same columns",
        )
    for number, (name, expected) in enumerate(zip(table.columns, first.columns, strict=True), start=1):
        if name != expected:
            raise DataFileError(
                table.path,
                f"column {number} is {name!r}, and in {first.path} it is {expected!r}; the tables of all "
                f"concepts have the same columns, in the same order",
            )


def _pool(tables: list[TableFile], label: str, features: list[str]) -> ImageSet:
    """An image set of the rows of all tables, one table after the other; all of them are training samples.

    Raises DataFileError if there are more than MAX_CELLS numbers, or a value cannot be used.
    """
    rows = sum(len(table) for table in tables)
    if rows * len(features) > MAX_CELLS:
        raise DataFileError(
            tables[0].path,
            f"{rows} rows of all {len(tables)} tables of trace.concepts.files x {len(features)} features are "
            f"more than {MAX_CELLS} numbers; name fewer trace.concepts.features, or shorten the tables",
        )
    labels, seen = class_labels(tables, label)
    pixels = np.empty((rows, len(features)), dtype=np.float32)
    start = 0
    for table in tables:
        for column, name in enumerate(features):
            pixels[start : start + len(table), column] = _single(table, name)
        start += len(table)
    everything = np.arange(rows)
    names = tuple(map(str, seen))
    return ImageSet(pixels, 1.0, labels, len(names), everything, everything[:0], names)


def _single(table: TableFile, name: str) -> Floats32:
    """(rows,) the column in single precision; DataFileError for a number too large for it."""
    values = table.numbers(name)
    largest = float(np.finfo(np.float32).max)
    too_large = np.flatnonzero(np.abs(values) > largest)
    if len(too_large):
        row = int(too_large[0])
        raise DataFileError(
            table.path, f"{name} = {values[row]:g} must lie between -{largest:g} and {largest:g}", row=row + 1
        )
    return values.astype(np.float32)


def class_labels(tables: list[TableFile], name: str) -> tuple[Ints, list[Any]]:
    """(rows of all tables,) each label's rank among the distinct labels of all tables, and these in order.

    Numbers rank as numbers, texts as texts. DataFileError for a column of another kind than the first
    table's, or more than MAX_LABELS distinct values.

    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> tables = [TableFile(Path("a.csv"), pa.table({"y": labels})) for labels in (["no", "yes"], ["maybe"])]
    >>> class_labels(tables, "y")
    (array([1, 2, 0]), ['maybe', 'no', 'yes'])
    """
    columns = [table.values(name) for table in tables]
    kind = _kind(columns[0][0])
    for table, values in zip(tables, columns, strict=True):
        if _kind(values[0]) != kind:
            raise DataFileError(
                table.path,
                f"labels in column {name!r} are of kind {_kind(values[0])}, and in {tables[0].path} of kind "
                f"{kind}; the tables of all concepts have labels of one kind",
            )
    distinct = sorted(set().union(*columns))
    if len(distinct) > MAX_LABELS:
        raise DataFileError(
            tables[0].path,
            f"column {name!r} has {len(distinct)} distinct values in all tables together, and there can be "
            f"at most {MAX_LABELS} labels; trace.concepts.label names the column",
        )
    rank = {value: index for index, value in enumerate(distinct)}
    ranks = [rank[value] for values in columns for value in values]
    return np.array(ranks, dtype=np.int64), distinct


def _kind(value: Any) -> str:
    """'number' for whole and other numbers, which compare with each other; otherwise the type's name."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__
