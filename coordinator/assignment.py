"""The one product of a clusterer: which models exist, and who belongs to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.deprecated import renamed_fields


@dataclass(frozen=True)
class Fit:
    """On what a global clustering rests: on how many clients' reports, fewer than there are where it
    subsampled, and on the mean silhouette of each number of clusters k that was tried."""

    kmeans_clients: int  # the centres
    silhouette_clients: int  # how many clusters there are
    silhouettes: Mapping[int, float | None]  # None: not defined


@renamed_fields
@dataclass(frozen=True)
class Assignment:
    """N clients, M_old models in the bank before, M_new after, E parameter vectors from outside it.

    Warm start, merge, split, copy and a fresh model are all `mixing`: new = mixing @ concat(old, extra).

    A lane is what a quota of participants is drawn from: lane m are the clients that are selected for model
    m. `lanes` is the lane of each client or visit, wherever it stands; -1 = in none.
    """

    mixing: Floats  # (M_new, M_old + E), rows sum to 1
    extra: Floats32  # (E, P)
    successor: Ints  # (M_old,) row that carries on the old model's identity, -1 = none
    members: Ints  # (N, width) models the client's newest data belong to, -1 pads
    lanes: Ints | None = None  # (N,) lane of each client; None: its first model
    reclustered: bool = False  # everybody was clustered anew: for the log
    fitted: Fit | None = None  # of a global clustering, also the first: for the log

    @property
    def num_models(self) -> int:
        return len(self.mixing)

    @property
    def lane_of_client(self) -> Ints:
        """(N,) the lane of each client, a row of the models; -1: it is in none, and cannot be selected."""
        return self.members[:, 0] if self.lanes is None else self.lanes

    @classmethod
    def fresh(
        cls,
        members: Ints,
        num_models: int,
        start: Floats32,
        lanes: Ints | None = None,
        fitted: Fit | None = None,
    ) -> Assignment:
        """The first assignment, into an empty bank: every model a copy of `start` (P,), or its row of
        `start` (num_models, P). `members` (N,) or (N, width)."""
        alike = start.ndim == 1
        return cls(
            mixing=np.ones((num_models, 1)) if alike else np.eye(num_models),
            extra=start[None, :] if alike else start,
            successor=np.zeros(0, dtype=np.int64),
            members=_in_columns(members),
            lanes=lanes,
            fitted=fitted,
        )

    @classmethod
    def moved(
        cls, members: Ints, num_models: int, extra: Floats32 | None = None, lanes: Ints | None = None
    ) -> Assignment:
        """The same models, other members (N,) or (N, width); `extra` (E, P) are new models behind them."""
        new = np.zeros((0, 0), dtype=np.float32) if extra is None else extra
        return cls(
            mixing=np.eye(num_models + len(new)),
            extra=new,
            successor=np.arange(num_models),
            members=_in_columns(members),
            lanes=lanes,
        )

    @property
    def changes_models(self) -> bool:
        """Whether it does more than move clients between the models there are."""
        models, sources = self.mixing.shape
        same = models == sources == len(self.successor)
        return not (same and np.array_equal(self.mixing, np.eye(models)))

    @classmethod
    def reclustered_from(
        cls, old: Ints, new: Ints, num_old: int, num_new: int, fitted: Fit | None = None
    ) -> Assignment:
        """A global re-clustering from members `old` (N,) to `new` (N,).

        A new model is the unweighted mean, over its members, of the model each member had: the old models
        weighted by the overlap of members (Fielding, algorithm 2). Identity passes to the new cluster of
        largest total overlap, one to one.
        """
        pairs = np.bincount(new * num_old + old, minlength=num_new * num_old)
        overlap = pairs.reshape(num_new, num_old).astype(np.float64)
        return cls(
            mixing=overlap / overlap.sum(axis=1, keepdims=True),
            extra=np.zeros((0, 0), dtype=np.float32),
            successor=_matched(overlap),
            members=new[:, None],
            reclustered=True,
            fitted=fitted,
        )


def _in_columns(members: Ints) -> Ints:
    """`members` as (N, width)."""
    return members[:, None] if members.ndim == 1 else members


def _matched(overlap: Floats) -> Ints:
    """(num_old,) the new cluster matched with each old one by largest total overlap, -1 where none is."""
    from scipy.optimize import linear_sum_assignment

    successor = np.full(overlap.shape[1], -1, dtype=np.int64)
    new, old = linear_sum_assignment(overlap, maximize=True)
    shared = overlap[new, old] > 0
    successor[old[shared]] = new[shared]
    return successor
