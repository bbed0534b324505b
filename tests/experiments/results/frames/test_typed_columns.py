"""Frames below each other, whose columns and categories may differ."""

from __future__ import annotations

import pandas as pd

from experiments.results.frames.typed_columns import below_each_other


def test_a_column_of_categories_that_a_frame_lacks_is_missing_in_its_rows() -> None:
    with_best = [pd.DataFrame({"gain": [1.0], "over": pd.Categorical([name])}) for name in ("b", "a")]
    rows = below_each_other([*with_best, pd.DataFrame({"gain": [2.0]})])
    assert list(rows["over"].cat.categories) == ["b", "a"]
    assert list(rows["over"][:2]) == ["b", "a"]
    assert rows["over"].isna().to_list() == [False, False, True]
    assert list(rows["gain"]) == [1.0, 1.0, 2.0]
