"""The trace folder of rows and of what makes their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from emulator.arrays import Bools
from traces.building.base import Built, Request
from traces.building.remarks import on_clients, same_but_for_spaces
from traces.building.rows import TEST, Rows, arrivals_of
from traces.building.workspace import Workspace
from traces.building.writing import Values, write_features
from traces.files.arrivals import write_arrival_pieces
from traces.files.facts import ARRIVALS, FEATURES, TraceFacts


class TraceValues(Values, Protocol):
    """Values that a trace may be made of."""

    def good(self) -> Bools:
        """(n,) whether each row is in the trace; InputError if none is."""
        ...

    def finish(self, path: Path, sums: Any) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the deviation of each feature or channel, of whose values gaps are filled now."""
        ...


@dataclass(frozen=True)
class Told:
    """What is told about a trace, in `trace.toml` and to the user.

    Attributes:
        left_out: The samples that could not be read.
        remedy: What gives clients without test samples some; None: they are not wanted.
        origin, licence, scale, version: See `TraceFacts`.
        unread: What could not be read, told before what is remarked on clients.
        notes: What is told after that.
        num_bytes: The bytes that are told; None: those of the folder.
        play: The settings of the source `file` that fit.
    """

    left_out: int
    remedy: str | None
    origin: str
    licence: str = ""
    scale: float | None = None
    version: Literal[1, 2] = 1
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    num_bytes: int | None = None
    play: Mapping[str, object] = field(default_factory=dict)


def write_folder(
    space: Workspace,
    rows: Rows,
    values: TraceValues,
    request: Request,
    tell: Callable[[Bools, Any], Told],
    workers: int = 1,
) -> Built:
    """Write a trace folder in `space`, from where an earlier attempt came to.

    Args:
        space: the workspace, which is completed.
        rows: the rows, with a split.
        values: makes their values.
        request: where to report.
        tell: what is told, of the rows that are good (n,) and the sums of all values.
        workers: threads that make values.

    Raises:
        DataFileError: what values are made of breaks a rule, and may not be left out.
    """
    assert rows.split is not None
    sums = write_features(values, len(rows), space, workers, request.watch)
    mean, deviation = values.finish(space.path / FEATURES, sums)
    good = values.good()
    write_arrival_pieces(space.path / ARRIVALS, arrivals_of(rows, good))
    told = tell(good, sums)
    num_bytes = space.finish(
        TraceFacts(
            version=told.version,
            shape=values.shape,
            scale=told.scale,
            mean=tuple(mean.tolist()),
            deviation=tuple(deviation.tolist()),
            classes=rows.classes,
            origin=told.origin,
            licence=told.licence,
        )
    )
    tested = rows.tested_clients(good)
    has_rows = rows.trained_clients(good) | tested
    num_clients, num_test = int(has_rows.sum()), int((good & (rows.split == TEST)).sum())
    remarks = on_clients(num_clients, int((has_rows & ~tested).sum()), told.remedy)
    at = rows.at if good.all() else rows.at[good]
    return Built(
        clients=num_clients,
        train=int(good.sum()) - num_test,
        test=num_test,
        classes=len(rows.classes),
        shape=values.shape,
        when=rows.when,
        first=int(at.min()),
        last=int(at.max()),
        left_out=told.left_out,
        num_bytes=num_bytes if told.num_bytes is None else told.num_bytes,
        notes=(*rows.notes, *same_but_for_spaces(rows.classes), *told.unread, *remarks, *told.notes),
        play=told.play,
    )
