"""Which columns of a table are features, and what they make: a vector, or an image."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from emulator.errors import DataFileError
from emulator.storage.reading.shards import Shards
from traces.building.table.encoders.vectors import Shape, vector_shapes
from traces.building.table.settings import TableSettings, shape_problem


@dataclass(frozen=True)
class FeatureColumns:
    """The feature columns, in the order of the features; `vectors` has the shapes of those with vectors.

    `shape` is the one that features make an image of; None: they are one vector, or encoded images.
    """

    names: tuple[str, ...]
    vectors: Mapping[str, Shape]
    shape: Shape | None


def expanded(names: Sequence[str], columns: Sequence[str], keys: Set[str], where: str) -> tuple[str, ...]:
    """The names of `--features`, with all columns in place of a name that ends in * and is no column.

    Columns are in the order of the numbers behind the beginning, if all have one, else in that of the file.

    >>> expanded(["b", "a_*"], ["a_10", "a_9", "b", "a_label"], frozenset({"a_label"}), "t.csv")
    ('b', 'a_9', 'a_10')

    Args:
        names: the names.
        columns: the columns of the table.
        keys: columns that are something else.
        where: the table, for messages.

    Raises:
        DataFileError: no column has that beginning, or one is named twice.
    """
    found = [column for name in names for column in _meant_by(name, columns, keys, where)]
    [(twice, number)] = Counter(found).most_common(1) or [("", 0)]
    if number > 1:
        raise DataFileError(where, f"features: column {twice!r} is named twice, by {', '.join(names)}")
    return tuple(found)


def _meant_by(name: str, columns: Sequence[str], keys: Set[str], where: str) -> list[str]:
    if name in columns or not name.endswith("*"):
        return [name]
    start = name.removesuffix("*")
    found = [column for column in columns if column.startswith(start) and column not in keys]
    if not found:
        raise DataFileError(
            where, f"features: no column begins with {start!r}, as {name!r} says; it has {', '.join(columns)}"
        )
    numbers = [column.removeprefix(start) for column in found]
    if all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
        found.sort(key=lambda column: int(column.removeprefix(start)))
    return found


def feature_columns(shards: Shards, settings: TableSettings, names: tuple[str, ...]) -> FeatureColumns:
    """The features in the columns `names`, with the shapes of vectors and of the image that they make.

    Raises DataFileError if a vector has no length, or the number of features is not that of the shape.
    """
    vectors = vector_shapes(shards, [name for name in names if name not in settings.one_hot])
    path, shape = shards.files[0], settings.shape
    if shape is not None:
        number = sum(math.prod(vectors.get(name, ())) for name in names)
        if math.prod(shape) != number:
            raise DataFileError(
                path,
                f"shape {','.join(map(str, shape))}: comes to {math.prod(shape)} values, and a row has "
                f"{number} features; name their columns with --features",
            )
    elif len(names) == 1 and len(vectors.get(names[0], ())) > 1:
        shape = vectors[names[0]]
        problem = shape_problem(shape)
        if problem is not None:
            raise DataFileError(path, f"column {names[0]!r}: {problem}; or give --shape")
    return FeatureColumns(names, vectors, shape)
