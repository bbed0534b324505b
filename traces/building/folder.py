"""The trace folder of rows and of what makes their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from emulator.arrays import Bools
from emulator.storage.checkpoints import replacing
from traces.building.base import Built, Request
from traces.building.remarks import on_clients, same_but_for_spaces
from traces.building.rows import TEST, TRAIN, Rows, arrivals_of
from traces.building.workspace import Workspace
from traces.building.writing import Values, write_features
from traces.files.arrivals import write_arrival_pieces
from traces.files.facts import ARRIVALS, FEATURES, TraceFacts, file_facts
from traces.files.features import TARGETS


class Told(NamedTuple):
    """What is told about a trace: `facts` in its `trace.toml`, and in `Built`, besides what the rows say.

    `remedy` gives clients without test samples some; None: they are not wanted. `unread` says what could not
    be read; `notes` are told behind what is remarked on clients.
    """

    facts: Mapping[str, Any]
    built: Mapping[str, Any]
    remedy: str | None
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def write_folder(
    space: Workspace,
    rows: Rows,
    values: Values,
    request: Request,
    tell: Callable[[Bools, Any], Told],
    workers: int = 0,
) -> Built:
    """Write a trace folder in `space`, from where an earlier attempt came to.

    Args:
        space: the workspace, which is completed.
        rows: the rows, with a split.
        values: makes their values.
        request: where to report.
        tell: says what is told, of the rows that are good (n,) and the sums of all values.
        workers: threads that make values; 0: the calling one.

    Raises:
        DataFileError: what values are made of breaks a rule, and may not be left out.
    """
    assert rows.split is not None
    sums = write_features(values, len(rows), space, workers, request.watch)
    mean, deviation = values.finish(space.path / FEATURES, sums)
    good = values.good()
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(file_facts, space.path / FEATURES)  # while arrivals are sorted and written
        write_arrival_pieces(space.path / ARRIVALS, arrivals_of(rows, good))
    targets = {}
    if rows.target is not None:
        with replacing(space.path / TARGETS) as file:
            np.save(file, rows.target)
        targets[TARGETS] = file_facts(space.path / TARGETS)
    told = tell(good, sums)
    are_ids = told.facts.get("tokens") is not None
    num_bytes = space.finish(
        TraceFacts(
            shape=values.shape,
            mean=None if are_ids else tuple(mean.tolist()),
            deviation=None if are_ids else tuple(deviation.tolist()),
            classes=rows.classes,
            **told.facts,
        ),
        {FEATURES: digest.result(), **targets},
    )
    tested = rows.have(TEST, good)
    has_rows = rows.have(TRAIN, good) | tested
    num_clients, num_test = int(has_rows.sum()), int((good & (rows.split == TEST)).sum())
    remarks = on_clients(num_clients, int((has_rows & ~tested).sum()), told.remedy)
    at = rows.at if good.all() else rows.at[good]
    facts = {
        "clients": num_clients,
        "train": int(good.sum()) - num_test,
        "test": num_test,
        "classes": len(rows.classes),
        "shape": values.shape,
        "when": rows.when,
        "first": int(at.min()),
        "last": int(at.max()),
        "num_bytes": num_bytes,
        "notes": (*rows.notes, *same_but_for_spaces(rows.classes), *told.unread, *remarks, *told.notes),
    }
    return Built(**{**facts, **told.built})
