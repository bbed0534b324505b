"""Changes of what labels mean, at given rounds, and the true concepts that follow from them.

One kind: `own_swap`, after Fielding's concept-drift test. Clients swap two of the labels that they hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, PositiveShare
from emulator.plugins import Settings
from emulator.seeding import RandomStreams
from traces.arrivals import DTYPES, SPLITS, Arrivals, concatenated
from traces.draw import refuse_oversize_in_memory
from traces.drift.base import PopulationContext
from traces.tables.base import Table
from traces.tables.sorted import SortedTable


class ChangedClients(Settings):
    """Which clients an event changes."""

    share: PositiveShare = Field(description="share of all clients that an event changes")
    redraw: bool = Field(True, description="whether they are drawn anew at each event, or once for all")


class OwnSwap(Settings):
    """Every `every` rounds, some clients each swap two of the labels that they hold."""

    what: Literal["own_swap"] = Field(
        description="the kind of change: each client swaps two of its own labels"
    )
    on: Literal["held"] = Field(description="which samples it changes: all that a client holds")
    clients: ChangedClients = Field(description="which clients an event changes: { share, redraw }")
    every: Count = Field(description="rounds between events; the first one is in that round")


def with_own_swaps(
    table: Table, swap: OwnSwap, num_labels: int, context: PopulationContext
) -> tuple[Table, Ints]:
    """The rows of static data whose clients swap labels, and the true concepts.

    At each event `share` of the clients, rounded, pick two of the labels of their training samples at random
    and swap these in all their samples, training and test: the samples arrive again, with their new labels
    and the same features, to replace those of before (`Trace.replaces`). Swaps add up.

    The concept of a client is its composed permutation of the labels; concepts are numbered as they first
    appear, by event and then by client, and 0 is the identity.

    Args:
        table: what clients hold from the start.
        swap: which clients swap labels, and how often.
        num_labels: the number of labels.
        context: the clients, the data steps, and the random streams.

    Returns:
        The rows, those from the start at step 0, and the concepts of shape (steps + 1, clients), whose last
        row repeats the one before.

    Raises:
        ConfigurationError: the data is not static, `every` does not fit the data steps or the run, a client
            has only one label, an event changes nobody, or there are too many samples.
    """
    _refuse_unfit_steps(swap, context)
    _refuse_oversize(len(table))
    arrivals = table.arrivals()
    num_clients, num_steps = context.num_clients, context.num_steps
    period = swap.every // context.settings.rounds_per_step
    steps = range(period, num_steps, period)
    num_struck = round(swap.clients.share * num_clients)
    held = _trained_labels(arrivals, num_clients, num_labels)
    _refuse_unfit_clients(swap, held, num_struck)
    # At least as many, and the table of concepts has a number for each client at each data step.
    _refuse_oversize(max(2 * len(steps) * num_struck, (num_steps + 1) * num_clients))
    rows_of = np.bincount(arrivals.client, minlength=num_clients)
    size = len(arrivals.client)
    parts = [replace(arrivals, arrival=np.zeros_like(arrivals.arrival))]
    # The present label of each original one: (clients, num_labels), and of all concepts so far.
    meaning = np.tile(np.arange(num_labels, dtype=DTYPES["label"]), (num_clients, 1))
    known = meaning[:1].copy()
    concepts = np.zeros((num_steps + 1, num_clients), dtype=np.int64)
    for event, step in enumerate(steps):
        struck = _draw_clients(num_clients, num_struck, event if swap.clients.redraw else 0, context.streams)
        size += int(rows_of[struck].sum())
        _refuse_oversize(size)
        meaning[struck] = _swapped(meaning[struck], held[struck], context.streams.generator("swaps", event))
        parts.append(_sent_again(arrivals, struck, step, meaning))
        known, concepts[step:, struck] = _numbered(known, meaning[struck])
    changed = SortedTable(concatenated(parts), num_clients, context.scratch, last_step=num_steps - 1)
    return changed, concepts


def _trained_labels(arrivals: Arrivals, num_clients: int, num_labels: int) -> Bools:
    """(clients, num_labels) whether a client has training samples of a label."""
    held = np.zeros((num_clients, num_labels), dtype=np.bool_)
    trained = arrivals.split == SPLITS.index("train")
    held[arrivals.client[trained], arrivals.label[trained]] = True
    return held


def _draw_clients(num_clients: int, count: int, event: int, streams: RandomStreams) -> Ints:
    """(count,) the clients that an event changes, ascending."""
    return np.sort(streams.generator("changes", event).permutation(num_clients)[:count])


def _swapped(meaning: np.ndarray, held: Bools, generator: np.random.Generator) -> np.ndarray:
    """(n, num_labels) `meaning` after each client has swapped two of its `held` labels (n, num_labels).

    Swaps permute the labels that a client holds, so that it always holds the same ones.
    """
    ranks = np.where(held, generator.random(held.shape), -1.0)
    one, other = np.argsort(-ranks, axis=1, kind="stable")[:, :2].T[:, :, None]
    swapped: np.ndarray = np.where(meaning == one, other, np.where(meaning == other, one, meaning))
    return swapped


def _sent_again(arrivals: Arrivals, clients: Ints, step: int, meaning: np.ndarray) -> Arrivals:
    """The samples of `clients` as they arrive at `step`, with their labels of then."""
    rows = np.flatnonzero(np.isin(arrivals.client, clients))
    again = arrivals.take(rows)
    return replace(again, arrival=np.full_like(again.arrival, step), label=meaning[again.client, again.label])


def _numbered(known: np.ndarray, meaning: np.ndarray) -> tuple[np.ndarray, Ints]:
    """All permutations in the order in which they first appear, and the number (n,) of each of `meaning`.

    `known` (concepts, num_labels) are those so far, which keep their numbers; `meaning` is (n, num_labels).
    """
    both = np.concatenate([known, meaning])
    _, first, number = np.unique(both, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return both[np.sort(first)], rank[number.ravel()][len(known) :]


def _refuse_oversize(num_samples: int) -> None:
    refuse_oversize_in_memory(num_samples, "trace.clients, samples_per_step or round.rounds, or raise every")


def _refuse_unfit_steps(swap: OwnSwap, context: PopulationContext) -> None:
    """ConfigurationError if the data is not static, or no data step of the run begins with each event."""
    if not context.static:
        raise ConfigurationError(
            "trace.changes: own_swap changes data that clients hold to the end; set trace.static = true"
        )
    rounds_per_step = context.settings.rounds_per_step
    if swap.every % rounds_per_step:
        raise ConfigurationError(
            f"trace.changes: every = {swap.every}: must be a multiple of trace.rounds_per_step = "
            f"{rounds_per_step}, so that a data step begins with each event"
        )
    if swap.every >= context.num_steps * rounds_per_step:
        raise ConfigurationError(
            f"trace.changes: every = {swap.every}: the first event would be in round {swap.every}, after the "
            f"last data step of the run; lower every, or raise round.rounds above it"
        )


def _refuse_unfit_clients(swap: OwnSwap, held: Bools, num_struck: int) -> None:
    """ConfigurationError if an event changes nobody, or somebody has no two labels to swap."""
    if num_struck == 0:
        raise ConfigurationError(
            f"trace.changes: clients.share = {swap.clients.share}: of {len(held)} clients that is nobody"
        )
    few = np.flatnonzero(held.sum(axis=1) < 2)
    if len(few):
        raise ConfigurationError(
            f"trace.changes: own_swap swaps two labels that a client holds, and client {few[0]} holds one "
            f"({len(few)} of {len(held)} clients do); every client needs at least two"
        )
