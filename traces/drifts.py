"""Drifts: who begins to receive training data of another distribution, when, and what about them changed.

They are the onsets of training samples, each with its kind. Onsets of tests alone are none, since nobody can
notice them by training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emulator.arrays import Ints
from traces.onsets import Onsets, of_concepts

LABELS = "labels"
"""The kind of a drift of label shares, which concepts do not show."""

CONCEPT = "concept"
"""The kind of a change of concept that is none of `trace.changes`."""


class Drifts(NamedTuple):
    """Drifts as columns of shape (n,), ascending by data step, then by client.

    `kind` is a row of `kinds`. A client's concept is `before` up to the data step, and `after` from it on;
    both are -1 for a drift of kind "labels".
    """

    kinds: tuple[str, ...]
    step: Ints
    client: Ints
    kind: Ints
    before: Ints
    after: Ints


class Turns(NamedTuple):
    """When a change of training data begins or ends for which client: columns of shape (n,)."""

    name: str
    client: Ints
    step: Ints


def drifts_of(concepts: Ints | None, moves: Onsets | None, turns: Sequence[Turns]) -> Drifts | None:
    """The drifts of a trace; None if nothing is known of them.

    A drift by changes is of the kind of those that begin or end for the client at its data step, or, if no
    sample arrived at once, of those that last did since its drift before; of several, their names are joined
    by "+".

    >>> concepts = np.array([[0, 0], [1, 0], [1, 0]])
    >>> drifts_of(concepts, None, [Turns("swap", np.array([0]), np.array([1]))])._asdict()["kinds"]
    ('swap',)

    Args:
        concepts: the true concepts, (steps + 1, clients), of which the last row is for tests only.
        moves: the onsets of a drift that concepts do not show.
        turns: when changes begin and end.
    """
    if concepts is None and moves is None:
        return None
    step, client = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    before, after, names = step, step, np.zeros(0, dtype=object)
    if concepts is not None:
        onsets = of_concepts(concepts)
        step, client = onsets.step, onsets.client
        before, after = concepts[step - 1, client], concepts[step, client]
        names = _names(step, client, turns)
    if moves is not None:
        width = int(max(client.max(initial=0), moves.client.max(initial=0))) + 1
        alone = ~np.isin(moves.step * width + moves.client, step * width + client)
        unknown = np.full(int(alone.sum()), -1)
        step, client = np.append(step, moves.step[alone]), np.append(client, moves.client[alone])
        before, after = np.append(before, unknown), np.append(after, unknown)
        names = np.append(names, np.full(len(unknown), LABELS, dtype=object))
    order = np.lexsort((client, step))
    kinds, kind = np.unique(names[order].astype(str), return_inverse=True)
    step, client, before, after = (column[order].astype(np.int64) for column in (step, client, before, after))
    return Drifts(tuple(kinds.tolist()), step, client, kind.astype(np.int64), before, after)


def _names(step: Ints, client: Ints, turns: Sequence[Turns]) -> np.ndarray:
    """(n,) the kind of each drift of a concept, at `step` (n,) of `client` (n,)."""
    names = np.full(len(step), CONCEPT, dtype=object)
    order = np.lexsort((step, client))
    before = np.zeros(len(step), dtype=np.int64)  # data step of the client's drift before, 0 for none
    follows = client[order][1:] == client[order][:-1]
    before[order[1:][follows]] = step[order[:-1][follows]]
    newest = before.copy()  # data step of the newest turn since then, up to the drift
    for turn in sorted(turns, key=lambda turn: turn.name):
        at = _newest(turn, step, client)
        later = at > newest
        both = (at == newest) & (at > before)
        names[later] = turn.name
        names[both] = [
            name if turn.name in name.split("+") else f"{name}+{turn.name}" for name in names[both]
        ]
        newest = np.maximum(newest, at)
    return names


def _newest(turn: Turns, step: Ints, client: Ints) -> Ints:
    """(n,) the data step, from 1 on, of the newest turn of each `client` (n,) up to `step` (n,); 0: none."""
    order = np.lexsort((turn.step, turn.client))
    width = int(max(step.max(initial=0), 1)) + 1
    of_turn, at = turn.client[order], turn.step[order]
    some = (at >= 1) & (at < width)
    of_turn, at = of_turn[some], at[some]
    if len(at) == 0:
        return np.zeros(len(step), dtype=np.int64)
    row = np.searchsorted(of_turn * width + at, client * width + step, side="right") - 1
    same = (row >= 0) & (of_turn[row] == client)
    return np.where(same, at[row], 0)
