"""Onsets: who begins to receive data of another distribution, and at which data step.

A client has an onset at a data step from 1 on at which its concept changes, also back to an earlier one, at
which its label shares become others, or at which another bucket of labels arrives. This module knows neither
sources nor logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from emulator.arrays import Bools, Floats, Ints

MASS_SHARE = 0.5
"""Share of all clients that have an onset at one data step in a mass event, at least."""


@dataclass(frozen=True, eq=False)
class Onsets:
    """Pairs of a data step and a client that has an onset there, ascending by step, then by client.

    Attributes:
        step: (n,) data steps, from 1 on.
        client: (n,) client ids.

    Raises:
        ValueError: the pairs are not in order, one is there twice, or a number is too low.
    """

    step: Ints
    client: Ints

    def __post_init__(self) -> None:
        if self.step.shape != self.client.shape or self.step.ndim != 1:
            raise ValueError(f"onsets: {self.step.shape} steps of {self.client.shape} clients: must be pairs")
        later = np.diff(self.step)
        if not ((later > 0) | ((later == 0) & (np.diff(self.client) > 0))).all():
            raise ValueError("onsets: must be ascending by step, then by client, no pair twice")
        if len(self) and (self.step[0] < 1 or self.client.min() < 0):
            raise ValueError("onsets: steps must be 1 or more, and clients 0 or more")

    def __len__(self) -> int:
        return len(self.step)

    @property
    def num_clients(self) -> int:
        """The number of clients that have an onset."""
        return len(np.unique(self.client))

    def up_to(self, last_step: int) -> Onsets:
        """Those at steps up to `last_step`, included."""
        count = int(np.searchsorted(self.step, last_step, side="right"))
        return self if count == len(self) else Onsets(self.step[:count], self.client[:count])

    def by_step(self) -> tuple[Ints, Ints]:
        """The data steps with an onset, ascending, and the number of clients that have one at each."""
        steps, counts = np.unique(self.step, return_counts=True)
        return steps, counts.astype(np.int64)


NO_ONSETS = Onsets(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def of_steps(clients: Iterable[tuple[int, Ints]]) -> Onsets:
    """The onsets given as data steps, ascending, each with the ids of its clients, ascending.

    >>> of_steps([(2, np.array([0, 3])), (5, np.array([1]))]).step.tolist()
    [2, 2, 5]
    """
    steps = list(clients)
    if not steps:
        return NO_ONSETS
    return Onsets(
        np.repeat(np.array([step for step, _ in steps], dtype=np.int64), [len(ids) for _, ids in steps]),
        np.concatenate([ids for _, ids in steps]).astype(np.int64, copy=False),
    )


def of_pairs(step: Ints, client: Ints) -> Onsets:
    """The onsets given as pairs in any order, none of them twice.

    >>> of_pairs(np.array([3, 1, 3]), np.array([0, 5, 2])).client.tolist()
    [5, 0, 2]
    """
    order = np.lexsort((client, step))
    return Onsets(step[order], client[order])


def of_changes(rows: Ints) -> Onsets:
    """The onsets of clients whose number changes between a data step and the next; `rows` (steps, clients).

    >>> onsets = of_changes(np.array([[0, 0], [0, 1], [0, 1], [2, 0]]))
    >>> onsets.step.tolist(), onsets.client.tolist()
    ([1, 3, 3], [1, 0, 1])
    """
    # NOTE: row by row, so that a table of a million clients is not compared in one array.
    changed = (np.flatnonzero(rows[step] != rows[step - 1]) for step in range(1, len(rows)))
    return of_steps((step, clients) for step, clients in enumerate(changed, 1) if len(clients))


def of_concepts(concepts: Ints) -> Onsets:
    """The onsets of true concepts (steps + 1, clients), of which the last row is for tests only.

    >>> of_concepts(np.array([[0, 0], [0, 1], [1, 1]])).client.tolist()
    [1]
    """
    return of_changes(concepts[:-1])


def of_tests(test_concepts: Ints, concepts: Ints, *, ahead: bool) -> Onsets:
    """The onsets of concepts of tests (steps, clients), at the data steps that their samples are of.

    If tests are `ahead`, row t is of the data step t + 1, and at step 0 clients have `concepts` (steps + 1,
    clients); what is of the step after the run is no onset.

    >>> tests, concepts = np.array([[0, 1], [1, 1], [1, 0]]), np.zeros((4, 2), dtype=np.int64)
    >>> [of_tests(tests, concepts, ahead=ahead).step.tolist() for ahead in (False, True)]
    [[1, 2], [1, 2]]
    >>> [of_tests(tests, concepts, ahead=ahead).client.tolist() for ahead in (False, True)]
    [[0, 1], [1, 0]]
    """
    return of_changes(np.vstack([concepts[:1], test_concepts[:-1]]) if ahead else test_concepts)


def merged(a: Onsets, b: Onsets) -> Onsets:
    """The onsets of both; one that both have is there once.

    >>> both = merged(of_steps([(1, np.array([2]))]), of_steps([(1, np.array([0, 2])), (4, np.array([1]))]))
    >>> both.step.tolist(), both.client.tolist()
    ([1, 1, 4], [0, 2, 1])
    """
    if len(a) == 0 or len(b) == 0:
        return b if len(a) == 0 else a
    width = int(max(a.client.max(), b.client.max())) + 1
    # NOTE: a stable sort merges two ascending halves, in a tenth of the time of `np.union1d`.
    keys = np.sort(np.concatenate([o.step * width + o.client for o in (a, b)]), kind="stable")
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return Onsets(keys // width, keys % width)


def is_mass_event(counts: Ints, num_clients: int) -> Bools:
    """(n,) whether onsets of so many clients, `counts` (n,), are mass events.

    >>> is_mass_event(np.array([1, 2]), num_clients=3).tolist()
    [False, True]
    """
    large: Bools = counts >= MASS_SHARE * num_clients
    return large


def newest(onsets: Onsets, num_clients: int, step: int) -> Ints:
    """(num_clients,) the data step of each client's newest onset up to `step`; 0 where there was none.

    >>> onsets = of_steps([(1, np.array([0, 1])), (3, np.array([1])), (4, np.array([0]))])
    >>> newest(onsets, num_clients=3, step=3).tolist()
    [1, 3, 0]
    """
    found = np.zeros(num_clients, dtype=np.int64)
    before = onsets.up_to(step)
    found[before.client] = before.step  # ascending: of several, the newest is assigned last
    return found


@dataclass
class SharesWatch:
    """Finds the onsets of a label drift while its label shares are passed on, window after window.

    Only two windows in a row are compared, and only if they are not the same array: what a drift has yielded
    is not modified.

    Attributes:
        first_step: The data step at which the first window arrives.
        last_step: The last data step of the run; onsets after it are none of the run.

    >>> watch = SharesWatch(first_step=0, last_step=2)
    >>> first, second = np.eye(2), np.eye(2)[[0, 0]]
    >>> len(list(watch.passed_on([first, second, second])))
    3
    >>> watch.onsets().step.tolist(), watch.onsets().client.tolist()
    ([1], [1])
    """

    first_step: int
    last_step: int
    _found: list[tuple[int, Ints]] = field(default_factory=list, repr=False)

    def passed_on(self, shares: Iterable[Floats]) -> Iterator[Floats]:
        """Yield the arrays of `shares` as they are; those that cannot be shares are not compared."""
        before = None
        for step, given in enumerate(shares, self.first_step):
            if before is not None and given is not before and 1 <= step <= self.last_step:
                clients = _differing_rows(np.asarray(before), np.asarray(given))
                if len(clients):
                    self._found.append((step, clients))
            before = given
            yield given

    def onsets(self) -> Onsets:
        """Those of all windows that were passed on."""
        return of_steps(self._found)


def _differing_rows(before: np.ndarray, now: np.ndarray) -> Ints:
    """Ascending numbers of the rows of shares in which two arrays differ; none if they do not fit.

    The one with fewer columns has shares of 0 in the others.
    """
    if before.ndim != 2 or now.ndim != 2 or len(before) != len(now):
        return np.zeros(0, dtype=np.int64)
    width = min(before.shape[1], now.shape[1])
    differs = (before[:, :width] != now[:, :width]).any(axis=1)
    for rest in (before[:, width:], now[:, width:]):
        differs |= (rest != 0).any(axis=1)
    return np.flatnonzero(differs)
