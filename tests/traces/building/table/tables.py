"""Small tables, and the trace folders that are built of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import EmulatorError
from traces.building import Built, Request
from traces.building.table.build import Table
from traces.building.table.settings import TableSettings
from traces.files import ARRIVALS, TraceFolder, open_folder

COLUMNS: Mapping[str, Any] = {"client": "who", "label": "kind"}

TINY = """who,kind,day,a,b
ann,up,3,1.0,10
bob,down,1,2.0,20
ann,down,1,3.0,30
bob,up,2,4.0,40
"""


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def write_parquet(folder: Path, columns: Mapping[str, Any], name: str = "table.parquet", **more: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path, **more)
    return path


def build(root: Path, out: Path, **settings: Any) -> Built:
    return Table(TableSettings.model_validate({**COLUMNS, **settings})).build(Request(root, out))


def built(root: Path, **settings: Any) -> TraceFolder:
    """The trace folder of the table, opened: built beside it."""
    out = root.parent / f"{root.name}.trace"
    build(root, out, **settings)
    return open_folder(out)


def refused(root: Path, **settings: Any) -> str:
    """The message of the error that the table or the settings raise; nothing may be left behind."""
    out = root.parent / "refused"
    with pytest.raises(EmulatorError) as error:
        build(root, out, **settings)
    assert error.value.exit_code == 2
    assert not list(root.parent.glob("*refused*")), "something is left behind"
    message = str(error.value)
    assert "\n" not in message
    return message.replace(f"{root.parent}/", "")


def rows(folder: TraceFolder, *columns: str) -> list[tuple[Any, ...]]:
    """The columns of the arrivals as they are in the file, row by row."""
    table = pq.read_table(folder.path / ARRIVALS)
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def a_large_table(num_rows: int, num_features: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Columns who, kind, day and x0, x1, ...: enough rows for several batches."""
    generator = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {
        "who": generator.integers(0, 50, num_rows),
        "kind": generator.integers(0, 5, num_rows).astype(np.int16),
        "day": generator.integers(-2, 20, num_rows),
    }
    for number in range(num_features):
        columns[f"x{number}"] = generator.normal(number, 1 + number, num_rows).astype(np.float32)
    return columns


def as_csv(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> str:
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"
