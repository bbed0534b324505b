"""The append-only log of a run: one JSON line per round, virtual quantities only.

Wall times never come here: the same configuration and seed give the same bytes.

What a record says of each client is an array; `emulator.packed` says how it is written. `members` may be a
difference to the last ones before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.errors import DataFileError
from emulator.packed import packed, unpacked


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """One absorbed round. Times are absolute virtual seconds; byte counts run from the start of the run.

    `members` is the cluster of every client (its label, stable across re-clusterings), given in the first
    record and whenever it changed, else None. `accuracy` and what is measured with it are None where the
    round was not evaluated; `drift_cells`, `accuracy_omitting_drift` and `serving` also where the trace
    does not know its concepts. Arrays that were read may be of any width.
    """

    round: int
    step: int
    opened_s: float
    dispatched_s: float
    closed_s: float
    participants: list[int]
    kept: list[int]
    dropped: list[int]
    changed: int  # clients that were online and looked at new data; 0 where nobody is asked for reports
    reported: int  # of these, how many had drifted and reported it
    moved: int  # clients whose cluster changed, one by one
    reclustered: bool  # a global re-clustering (the first clustering is none)
    clusters: list[int]  # labels of the present clusters
    members: Ints | None  # (N,)
    train_loss: float | None
    accuracy: float | None
    accuracy_std: float | None
    loss: float | None
    mean_client_distance: float | None
    unclustered_distance: float | None
    scored_clients: int | None  # clients that hold test samples, and so count in the accuracy
    drift_cells: int | None  # of these, those whose test samples are of another concept than their newest
    accuracy_omitting_drift: float | None  # over the others; None where there are none
    serving: Ints | None  # (N,) label of the model of largest weight for each client, -1 = none
    download_bytes: float
    upload_bytes: float
    control_bytes: float
    models_sent: float  # whole models, either way, in training and to be scored
    # Of a global clustering: on how many clients' reports its centres, and the number of them, rest.
    kmeans_clients: int | None = None
    silhouette_clients: int | None = None
    # (scored clients of the header,) each one's own, NaN without test samples; only where asked for
    client_accuracy: Floats32 | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoundRecord) and all(
            np.array_equal(ours, theirs, equal_nan=isinstance(ours, np.ndarray) and ours.dtype.kind == "f")
            for ours, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    @property
    def abandoned(self) -> int:
        """Visits that were out when their lane closed or the deadline passed."""
        return len(self.participants) - len(self.kept) - len(self.dropped)


PER_CLIENT: dict[str, type[np.int64] | type[np.float32]] = {
    "members": np.int64,
    "serving": np.int64,
    "client_accuracy": np.float32,
}
"""The fields of a record that are arrays."""


LINES = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=packed)


class RunLog:
    """Appends to one file: a header line first, then a line per record."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._members: Ints | None = None  # the last ones written
        self._write({"kind": "run", **header})

    def append(self, record: RoundRecord) -> None:
        line = {"kind": "round", **vars(record)}
        for name in PER_CLIENT:
            values = line[name]
            if values is not None:
                line[name] = packed(values, self._members if name == "members" else None)
        if record.members is not None:
            self._members = record.members
        self._write(line)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(LINES.encode(line) + "\n")
        self._file.flush()


def read_log(path: Path) -> tuple[dict[str, Any], list[RoundRecord]]:
    """The header and the records of a log; DataFileError names the line that is not one."""
    lines = _lines(path)
    header = next(lines, None)
    if header is None or header[1].pop("kind", None) != "run":
        raise DataFileError(path, "a run log starts with a line of kind 'run'")
    if header[1].get("scored_clients") is not None:
        try:
            header[1]["scored_clients"] = unpacked(header[1]["scored_clients"], np.int64)
        except ValueError as error:
            raise DataFileError(path, f"damaged: scored_clients is no array ({error})", row=1) from error
    known = {item.name: item.default is MISSING for item in fields(RoundRecord)}
    needed = {name for name, is_needed in known.items() if is_needed}  # the others came later
    records: list[RoundRecord] = []
    members: Ints | None = None  # the last ones read
    for number, line in lines:
        if line.pop("kind", None) != "round" or not needed <= set(line) <= set(known):
            raise DataFileError(path, "not a round record of this version", row=number)
        for name, kind in PER_CLIENT.items():
            if line.get(name) is not None:
                try:
                    line[name] = unpacked(line[name], kind, members if name == "members" else None)
                except ValueError as error:
                    problem = f"damaged: {name} is no array ({error})"
                    raise DataFileError(path, problem, row=number) from error
        if line["members"] is not None:
            members = line["members"]
        records.append(RoundRecord(**line))
    return header[1], records


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number, from 1, and the object it holds."""
    number = 0
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise ValueError("not an object")
                yield number, line
    except OSError as error:
        raise DataFileError(path, f"cannot be read as a run log ({error})") from error
    except UnicodeDecodeError as error:
        raise DataFileError(path, f"damaged after line {number}: not text ({error})") from error
    except ValueError as error:
        raise DataFileError(path, f"damaged: not a line of a run log ({error})", row=number) from error
