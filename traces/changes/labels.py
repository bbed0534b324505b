"""What labels become: one map for all clients, or a client's own swaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.changes.settings import Change, Relabelling, Swap, operation_name
from traces.changes.spans import Run, Spans, drawn_clients, events_of, onset_and_end, spans_of
from traces.tables.base import NEVER, Table, rows_of_ranges


def label_map(
    operation: Relabelling | Swap, num_labels: int, key: str, streams: RandomStreams, number: int
) -> Ints:
    """(num_labels,) what an operation makes of each label; `number` keys the draw of a permutation.

    Raises:
        ConfigurationError: it does not fit the labels.

    >>> [label_map(word, 5, "", RandomStreams(0), 0).tolist() for word in ("xor", "reverse")]
    [[1, 0, 3, 2, 4], [4, 3, 2, 1, 0]]
    >>> label_map(Swap(swap=((3, 1),)), 5, "", RandomStreams(0), 0).tolist()
    [0, 3, 2, 1, 4]
    """
    labels = np.arange(num_labels)
    if num_labels < 2:
        raise ConfigurationError(
            f"{key}: {operation_name(operation)} needs two labels, and the trace has {num_labels}"
        )
    if isinstance(operation, Swap):
        for pair in operation.swap:
            if max(pair) >= num_labels:
                raise ConfigurationError(
                    f"{key}: swap names label {max(pair)}; the labels of the trace are 0 to {num_labels - 1}"
                )
            labels[list(pair)] = pair[::-1]
        return labels
    if operation == "reverse":
        return labels[::-1].copy()
    if operation == "permute":
        return streams.generator("permuted labels", number).permutation(num_labels)
    # FLASH: y XOR 1; with an odd number of labels the last one stays.
    return np.where(labels ^ 1 < num_labels, labels ^ 1, labels)


class OwnSwaps(NamedTuple):
    """What the swaps of clients have come to: span i maps labels by `maps[spans.value[i]]`.

    `maps` (n, num_labels) has each composed swap once; the first is that of no change.
    """

    spans: Spans
    maps: Ints


def own_swaps(
    change: Change, key: str, run: Run, table: Table, retain_steps: int, num_labels: int, *, static: bool
) -> OwnSwaps:
    """Draw the swaps of Fielding's concept-drift test: at each event clients each swap two of their labels.

    At each event some clients pick two of the labels of the training samples that they hold at random, and
    swap these. Swaps add up. A client that holds fewer than two labels at an event has none to swap: if it is
    so from the start to the end, as all data are (`static`), that is an error; otherwise it is left out.

    Returns:
        The spans from one swap of a client to its next one, and what they map labels to.

    Raises:
        ConfigurationError: the change does not fit the run, or a client with static data has one label only.
    """
    onset, end = onset_and_end(change, key, run)
    # The present label of each original one, (clients, num_labels).
    meaning = np.tile(np.arange(num_labels), (run.num_clients, 1))
    struck_at, starts, meanings = [], [], []
    for event, step in enumerate(events_of(change, key, run, onset, end)):
        struck = drawn_clients(change.clients, key, run, event)
        everyone = np.arange(run.num_clients) if static and event == 0 else struck
        held = _held_labels(table, everyone, step, retain_steps, meaning[everyone])
        if static and event == 0:
            _refuse_single_labels(held, key)
            held = held[struck]
        swapped = _swapped(meaning[struck], held, run.streams.generator("swaps", event))
        able = held.sum(axis=1) >= 2
        struck = struck[able]
        meaning[struck] = swapped[able]
        struck_at.append(struck)
        starts.append(np.full(len(struck), step))
        meanings.append(meaning[struck])
    client, start = np.concatenate(struck_at), np.concatenate(starts)
    maps, value = _numbered(np.arange(num_labels)[None, :], np.concatenate(meanings))
    order = np.lexsort((start, client))
    client, start, value = client[order], start[order], value[order]
    follows = np.append(client[1:] == client[:-1], False)[: len(client)]
    stop = np.where(follows, np.append(start[1:], NEVER), end)
    return OwnSwaps(spans_of(client, start, stop, value), maps)


def _held_labels(table: Table, clients: Ints, step: int, retain_steps: int, meaning: Ints) -> Bools:
    """(n, num_labels) whether each of `clients` (n,) holds training samples that now have a label.

    `meaning` (n, num_labels) is the present label of each original one.
    """
    first, last = table.held(clients, SPLITS.index("train"), step, retain_steps)
    rows = rows_of_ranges(first, last)
    holder = np.repeat(np.arange(len(clients)), last - first)
    held = np.zeros(meaning.shape, dtype=np.bool_)
    held[holder, meaning[holder, table.take("label", rows).astype(np.int64)]] = True
    return held


def _refuse_single_labels(held: Bools, key: str) -> None:
    """ConfigurationError if a client holds one label only."""
    few = np.flatnonzero(held.sum(axis=1) < 2)
    if len(few):
        raise ConfigurationError(
            f"{key}: own_swap swaps two labels that a client holds, and client {few[0]} holds one "
            f"({len(few)} of {len(held)} clients do); every client needs at least two"
        )


def _swapped(meaning: np.ndarray, held: Bools, generator: np.random.Generator) -> np.ndarray:
    """(n, num_labels) `meaning` after each client has swapped two of its `held` labels (n, num_labels).

    Swaps permute the labels that a client holds, so that it always holds the same ones.
    """
    ranks = np.where(held, generator.random(held.shape), -1.0)
    one, other = np.argsort(-ranks, axis=1, kind="stable")[:, :2].T[:, :, None]
    swapped: np.ndarray = np.where(meaning == one, other, np.where(meaning == other, one, meaning))
    return swapped


def _numbered(known: np.ndarray, meaning: np.ndarray) -> tuple[np.ndarray, Ints]:
    """All permutations in the order in which they first appear, and the number (n,) of each of `meaning`.

    `known` (concepts, num_labels) are those so far, which keep their numbers; `meaning` is (n, num_labels).
    """
    both = np.concatenate([known, meaning])
    _, first, number = np.unique(both, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return both[np.sort(first)], rank[number.ravel()][len(known) :]
