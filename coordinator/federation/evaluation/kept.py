"""What clients have of their own, of the models that serve them: kept as a run ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from emulator.arrays import NO_IDS, Floats, Floats32, Ints
from emulator.messages import BYTES_PER_PARAMETER
from emulator.ports import Segment


@dataclass(frozen=True)
class Own:
    """Models that some clients use themselves, of those that serve them.

    Columns are (n,): `clients`, ids, `row`, the model of the bank that serves each, and `models` (n, P).
    Where clients mix their logits with those of the model that serves them, `shares` (n,) are those of their
    own.
    """

    clients: Ints
    row: Ints
    models: Floats32
    shares: Floats | None = None


def own_tensors(
    parts: Iterable[Own], models: Floats32, layout: Mapping[str, Segment], most_bytes: float
) -> tuple[Ints, Mapping[str, Floats32] | None, Floats | None]:
    """The clients (n,) of all `parts`, and by name (n, size) the tensors that any of them has to itself.

    Those are the ones that differ from the `models` (M, P) that serve them. With them come the `shares` (n,)
    of the parts, if they have some. No clients, and None, if they take more than `most_bytes`.

    >>> layout = {"body": Segment(0, 1, (1,)), "head": Segment(1, 2, (1,))}
    >>> part = Own(np.array([4, 7]), np.array([0, 0]), np.float32([[1, 5], [1, 2]]))
    >>> clients, own, shares = own_tensors([part], np.float32([[1, 2]]), layout, 8)
    >>> clients.tolist(), {name: rows.tolist() for name, rows in own.items()}
    ([4, 7], {'head': [[5.0], [2.0]]})
    >>> own_tensors([part], np.float32([[1, 2]]), layout, 7)
    (array([], dtype=int64), None, None)
    """
    places = {name: slice(segment.first, segment.last) for name, segment in layout.items()}
    found: list[tuple[Ints, dict[str, Floats32]]] = []  # rows of the bank, and tensors
    clients, shares = [NO_IDS], list[Floats]()
    differing: set[str] = set()
    count = 0
    for part in parts:
        served = models[part.row]
        differs = {name for name, at in places.items() if (part.models[:, at] != served[:, at]).any()}
        differing |= differs
        clients.append(part.clients)
        shares += [] if part.shares is None else [part.shares]
        count += len(part.clients)
        if (
            BYTES_PER_PARAMETER * count * sum(places[name].stop - places[name].start for name in differing)
            > most_bytes
        ):
            return NO_IDS, None, None
        rows = {name: part.models[:, places[name]].copy() for name in differs}
        found.append((part.row, rows))  # not the models: they are let go
    own = {}
    for name, at in places.items():
        if name in differing:
            own[name] = np.concatenate([rows.get(name, models[row, at]) for row, rows in found])
    return np.concatenate(clients), own, np.concatenate(shares) if shares else None
