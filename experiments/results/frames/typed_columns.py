"""The types of the columns of frames: the same whatever the data are, with missing values only where allowed.

Whole numbers are int64, or Int64 in a column that may have missing ones; amounts, times and shares are
float64 with NaN; texts with few values are categories.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from emulator.arrays import Ints


def typed_frame(table: pa.Table, missing: Collection[str] = ()) -> pd.DataFrame:
    """The columns of a table of numbers, booleans, texts, lists and maps.

    Args:
        table: The table.
        missing: The columns of whole numbers and booleans that may have missing values: Int64 and boolean.
            A column that has some is nullable in any case.

    >>> typed_frame(pa.table({"round": [1, 2], "fired": [True, None]}), ["fired"]).dtypes.map(str).to_dict()
    {'round': 'int64', 'fired': 'boolean'}
    """
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        may_miss = name in missing or column.null_count > 0
        columns[name] = column.to_pandas(
            types_mapper=_nullable if may_miss else None, maps_as_pydicts="strict"
        )
    return pd.DataFrame(columns)


def _nullable(kind: pa.DataType) -> Any:
    """The type of whole numbers or booleans that may be missing; None for other kinds."""
    if pa.types.is_integer(kind):
        return pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def known_ints(values: Ints) -> Any:
    """Int64 of `values`, of which negative ones are missing, as of clients in no cluster."""
    return pd.arrays.IntegerArray(np.maximum(values, 0).astype(np.int64), np.asarray(values < 0))


def with_run(frame: pd.DataFrame, arm: str, seed: int, arms: Sequence[str]) -> pd.DataFrame:
    """The frame with `arm`, an ordered category in the order of `arms`, and `seed` as its first columns."""
    frame.insert(0, "arm", pd.Categorical([arm], categories=list(arms), ordered=True).repeat(len(frame)))
    frame.insert(1, "seed", np.full(len(frame), seed, dtype=np.int64))
    return frame


def as_arms(frame: pd.DataFrame, arms: Sequence[str]) -> pd.DataFrame:
    """The frame with its column `arm` as an ordered category in the order of `arms`."""
    frame["arm"] = pd.Categorical(frame["arm"], categories=list(arms), ordered=True)
    return frame


def with_keys(
    frame: pd.DataFrame, experiment: str, keys: Mapping[str, tuple[Sequence[Any], Any]]
) -> pd.DataFrame:
    """The frame of one experiment, with its name and the values of keys before the other columns.

    Args:
        frame: A frame with a column `arm`.
        experiment: Its name.
        keys: For each column, its value for each category of `arm`, and its type.
    """
    codes = frame["arm"].cat.codes.to_numpy()
    before: dict[str, Any] = {"experiment": np.full(len(frame), experiment, dtype=object)}
    for name, (values, kind) in keys.items():
        column = np.empty(len(values), dtype=object)
        column[:] = values
        before[name] = pd.Series(column[codes], dtype=object).astype(kind)
    return pd.concat([pd.DataFrame(before, index=frame.index), frame], axis=1)


def kind_of(values: Sequence[Any]) -> Any:
    """The type of a column of these values of a configuration, of which some may be missing (None).

    Whole numbers never become floats for a missing value.

    >>> [str(kind_of(values)) for values in ([2, None], [2, 3], [2, 0.5], [True, None])]
    ['Int64', 'int64', 'float64', 'boolean']
    """
    kinds = {type(value) for value in values if value is not None}
    if None in values and kinds == {bool}:
        return pd.BooleanDtype()
    if None in values and kinds == {int} and all(abs(value or 0) < 2**63 for value in values):
        return pd.Int64Dtype()
    return pd.Series(values, dtype=object).infer_objects().dtype


def below_each_other(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all frames, at least one; a column of categories keeps those of all frames, in their order.

    >>> frames = [pd.DataFrame({"arm": pd.Categorical([name])}) for name in "ba"]
    >>> list(below_each_other(frames)["arm"].cat.categories)
    ['b', 'a']
    """
    if len(frames) == 1:
        return frames[0]
    kinds = {
        name: [frame[name].dtype for frame in frames if name in frame.columns]
        for frame in frames
        for name in frame.columns
    }
    united = {}
    for name, dtypes in kinds.items():
        if all(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes) and len(set(dtypes)) > 1:
            categories = dict.fromkeys(value for dtype in dtypes for value in dtype.categories)
            united[name] = pd.CategoricalDtype(list(categories), ordered=all(kind.ordered for kind in dtypes))
    alike = [
        frame.astype({name: kind for name, kind in united.items() if name in frame.columns})
        for frame in frames
    ]
    return pd.concat(alike, ignore_index=True)
