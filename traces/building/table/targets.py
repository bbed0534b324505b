"""Targets: numbers that a model tells beside the class of a row, or instead of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from emulator.arrays import Bools
from emulator.errors import InputError
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.rules import PRESENT, TARGETS_FIT, VECTORS, Cells, keep, refuse
from traces.building.table.encoders.vectors import vector_shapes, vectors_in
from traces.building.table.key_columns import NumberColumn, numbers_in
from traces.building.table.settings import TableSettings


class TargetColumn(NumberColumn):
    """A column of finite numbers of 32 bits, or of vectors of them: one value of a row after the other."""

    def __init__(self, name: str, shards: Shards, bad: BadRows) -> None:
        super().__init__(name, bad)
        self.rules = (*PRESENT, *TARGETS_FIT)
        self.shape = vector_shapes(shards, [name]).get(name, ())

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        if not self.shape:
            return super().values(batch, start, present)
        given, cells = vectors_in(self.name, batch.columns[self.name], self.shape)
        numbers, is_missing = numbers_in(given)
        values = np.zeros((batch.num_rows, math.prod(self.shape)))
        values[cells.fits] = np.where(is_missing, np.nan, numbers).reshape(-1, values.shape[1])
        keep(VECTORS, cells, self.bad, batch, start)
        return np.where(self.keep(TARGETS_FIT, batch, start, None, value=values)[:, None], values, 0).ravel()

    def finish(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """(rows, values of a row) the targets."""
        return self.all().reshape(-1, math.prod(self.shape)).astype(np.float32), ()


def refuse_unlabelled(settings: TableSettings, *, has_targets: bool = False) -> None:
    """Raise InputError if rows have neither a class nor anything else that models could tell."""
    if settings.label is None and settings.tokens is None and not (settings.target or has_targets):
        raise InputError("label is missing, the column of the class; only with targets or tokens may it be")


def as_targets(targets: Any, num_samples: int) -> np.ndarray:
    """(num_samples, K) the targets in an array of numpy, a tensor, or lists: uint8 of bytes, else float32.

    Raises:
        InputError: they are no numbers, not as many as samples, or one is not finite.
    """
    values = np.asarray(targets.detach().cpu() if hasattr(targets, "detach") else targets)
    if values.dtype.kind not in "buif" or values.ndim not in (1, 2) or len(values) != num_samples:
        raise InputError(
            f"targets: are {values.dtype} of shape {values.shape}; must be numbers of shape ({num_samples},) "
            f"or ({num_samples}, targets), or names of columns"
        )
    values = values.reshape(num_samples, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        stored = values.astype(np.uint8 if values.dtype in (np.uint8, np.bool_) else np.float32)
    refuse(TARGETS_FIT, Cells(name="target", value=values), Path("targets"), num_samples, -1)
    return stored
