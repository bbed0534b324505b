"""Holding out test samples where a data set does not say which they are."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from traces.ordering import pieces, rows_in_order

TEST_SHARE = 0.2
"""Share of the samples that are for tests, unless a setting says otherwise."""


def held_out(
    client: np.ndarray, label: np.ndarray, at: np.ndarray, share: float, generator: np.random.Generator
) -> Bools:
    """Choose test samples: a share of each client's samples of each label, spread evenly over time.

    Systematic sampling (`is_test`): the samples of a client and a label are put in the order of their times,
    and every (1 / share)-th is held out, from a random start on. So every stretch of time has about its
    share, and a label with few samples is held out for some clients and not for others. A client keeps at
    least one sample for training: its earliest one, if all would be held out.

    Args:
        client: (n,) clients, >= 0.
        label: (n,) labels, >= 0.
        at: (n,) when each sample arrives.
        share: the share to hold out, in [0, 1].
        generator: the source of the random starts.

    Returns:
        (n,) whether each sample is for tests.

    Of ten samples of one client and label, every fifth one is held out:

    >>> one = np.zeros(10, dtype=int)
    >>> np.flatnonzero(held_out(one, one, np.arange(10), 0.2, np.random.default_rng(0)))
    array([1, 6])
    """
    if len(client) == 0:
        return np.zeros(0, dtype=np.bool_)
    order = rows_in_order(client, label, at)
    test = np.zeros(len(client), dtype=np.bool_)
    trains = np.zeros(int(client.max()) + 1, dtype=np.bool_)
    earliest: list[np.ndarray] = []  # the first sample of each group, which is one client's of one label
    last, place, start = None, 0, 0.0  # the last group of the piece before, its next place, its start
    for piece in pieces(len(order)):  # a client may have all samples: no other array of their number
        rows = order[piece]
        group = client[rows].astype(np.int64) * (int(label.max()) + 1) + label[rows]
        begins = np.diff(group, prepend=group[0] + 1 if last is None else last) != 0
        first = np.concatenate(([-place], np.flatnonzero(begins)))
        starts = np.concatenate(([start], generator.random(len(first) - 1)))
        number = np.cumsum(begins)
        places = np.arange(len(rows)) - first[number]
        test[rows] = is_test(places, starts[number], share)
        trains[client[rows][~test[rows]]] = True
        earliest.append(rows[begins])
        last, place, start = group[-1], int(places[-1]) + 1, float(starts[-1])
    without = np.concatenate(earliest)
    without = without[~trains[client[without]]]
    if len(without):
        by_time = without[np.lexsort((without, at[without], client[without]))]
        _, first = np.unique(client[by_time], return_index=True)
        test[by_time[first]] = False
    return test


def is_test(number: Ints, start: Floats, share: float) -> Bools:
    """(n,) whether observations are test samples: systematic sampling of `share` of them.

    The observation of that `number` (n,), counted from 0 in order of time, is one if the interval from
    number * share + start to (number + 1) * share + start, without its lower end, has a whole number. So of
    any n observations in a row n * share are test samples, rounded up or down. If `start` (n,) is uniform in
    [0, 1), each is one with probability `share`.

    >>> is_test(np.arange(8), np.full(8, 0.5), 0.25).tolist()
    [False, True, False, False, False, True, False, False]
    """
    tested: Bools = np.floor((number + 1) * share + start) > np.floor(number * share + start)
    return tested
