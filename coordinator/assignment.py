"""The one product of a clusterer: which models exist, and who belongs to which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Floats32, Ints


@dataclass(frozen=True)
class Assignment:
    """N clients, M_old models in the bank before, M_new after, E parameter vectors from outside it.

    Warm start, merge, split, copy and a fresh model are all `remix`: new = remix @ concat(old, extra).
    """

    remix: Floats  # (M_new, M_old + E), rows sum to 1
    extra: Floats32  # (E, P)
    heir: Ints  # (M_old,) row that carries on the old model's identity, -1 = none
    members: Ints  # (N, width) models the client's newest data belong to, -1 pads
    reclustered: bool = False  # everybody was clustered anew: for the log

    @property
    def num_models(self) -> int:
        return len(self.remix)

    @property
    def lane(self) -> Ints:
        """(N,) the selection lane of each client: its first model; -1 = not selectable."""
        return self.members[:, 0]

    @classmethod
    def fresh(cls, members: Ints, num_models: int, start: Floats32) -> Assignment:
        """The first assignment, into an empty bank: every model a copy of `start` (P,); `members` (N,)."""
        return cls(
            remix=np.ones((num_models, 1)),
            extra=start[None, :],
            heir=np.zeros(0, dtype=np.int64),
            members=members[:, None],
        )

    @classmethod
    def moved(cls, members: Ints, num_models: int) -> Assignment:
        """The same models, other members (N,)."""
        return cls(
            remix=np.eye(num_models),
            extra=np.zeros((0, 0), dtype=np.float32),
            heir=np.arange(num_models),
            members=members[:, None],
        )

    @classmethod
    def reclustered_from(cls, old: Ints, new: Ints, num_old: int, num_new: int) -> Assignment:
        """A global re-clustering from members `old` (N,) to `new` (N,).

        A new model is the unweighted mean, over its members, of the model each member had: the old models
        weighted by the overlap of members (Fielding, algorithm 2). Identity passes to the new cluster of
        largest total overlap, one to one.
        """
        overlap = np.zeros((num_new, num_old))
        np.add.at(overlap, (new, old), 1.0)
        return cls(
            remix=overlap / overlap.sum(axis=1, keepdims=True),
            extra=np.zeros((0, 0), dtype=np.float32),
            heir=_matched(overlap),
            members=new[:, None],
            reclustered=True,
        )


def _matched(overlap: Floats) -> Ints:
    """(num_old,) the new cluster matched with each old one by largest total overlap, -1 where none is."""
    from scipy.optimize import linear_sum_assignment

    heir = np.full(overlap.shape[1], -1, dtype=np.int64)
    new, old = linear_sum_assignment(overlap, maximize=True)
    shared = overlap[new, old] > 0
    heir[old[shared]] = new[shared]
    return heir
