"""The result of a clusterer: which models exist, and which clients belong to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints


@dataclass(frozen=True)
class Fit:
    """The evidence for a global clustering: how many clients it used, and the silhouettes it compared.

    A number of clients that is smaller than the number of reports is the size of a random subsample.
    """

    kmeans_clients: int  # number of clients whose reports the centres were fitted to
    silhouette_clients: int  # number of clients whose silhouettes decided on the number of clusters
    silhouettes: Mapping[int, float | None]  # mean silhouette by number of clusters tried; None: undefined


@dataclass(frozen=True)
class Assignment:
    """The models that exist from now on, and the clients that belong to each.

    N clients, M_old models in the bank before, M_new after, E parameter vectors from outside the bank, P
    parameters. Warm start, merge, split, copy and a fresh model are all expressed by `mixing`:
    new = mixing @ concat(old, extra).

    A lane is a set of clients that one quota of participants is drawn from. Lanes are numbered like the new
    models, and by default a client is in the lane of its first model; a clusterer may also put all clients
    in one lane, such as an ensemble, whose clients train every model. Throughout the project an array named
    `lanes` holds the lane of each client or visit, -1 = in no lane.

    Only the rows of clients that hold data count (`View.holding`): in force is the assignment `among` these,
    in which the others are members of no model and in no lane.
    """

    mixing: Floats  # (M_new, M_old + E), rows sum to 1
    extra: Floats32  # (E, P)
    # (M_old,) row of the new model that continues each old one, -1 = none: claims and the label in logs and
    # plots pass to it; the id does too only if the content is unchanged.
    successor: Ints
    members: Ints  # (N, width) rows of the new models that each client's newest data belong to, -1 pads
    lanes: Ints | None = None  # (N,) lane of each client; None: its first model
    reclustered: bool = False  # a global re-clustering, for the log
    fitted: Fit | None = None  # the evidence for a global clustering, including the first one, for the log

    @property
    def num_models(self) -> int:
        """The number of models after the assignment, M_new."""
        return len(self.mixing)

    @property
    def lane_of_client(self) -> Ints:
        """(N,) the lane of each client, in [0, M_new); -1: in no lane, and so never selected."""
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
        """The first assignment, for an empty bank.

        Args:
            members: (N,) or (N, width) rows of the models that each client belongs to, -1 pads.
            num_models: M_new.
            start: (P,) the parameters of every model, or (num_models, P) those of each.
            lanes: (N,) lane of each client, -1 = in no lane; None: its first model.
            fitted: the evidence for the clustering, for the log.

        Returns:
            An assignment whose models all come from `extra`.
        """
        same_start = start.ndim == 1
        return cls(
            mixing=np.ones((num_models, 1)) if same_start else np.eye(num_models),
            extra=start[None, :] if same_start else start,
            successor=np.zeros(0, dtype=np.int64),
            members=_in_columns(members),
            lanes=lanes,
            fitted=fitted,
        )

    @classmethod
    def moved(
        cls, members: Ints, num_models: int, extra: Floats32 | None = None, lanes: Ints | None = None
    ) -> Assignment:
        """The same models with other members, and optionally further models after them.

        Args:
            members: (N,) or (N, width) rows of the models that each client belongs to, -1 pads.
            num_models: the number of models in the bank, M_old.
            extra: (E, P) parameters of new models, which become the rows from `num_models` on.
            lanes: (N,) lane of each client, -1 = in no lane; None: its first model.

        Returns:
            An assignment in which every old model is its own successor.
        """
        new = np.zeros((0, 0), dtype=np.float32) if extra is None else extra
        return cls(
            mixing=np.eye(num_models + len(new)),
            extra=new,
            successor=np.arange(num_models),
            members=_in_columns(members),
            lanes=lanes,
        )

    def among(self, holding: Bools) -> Assignment:
        """The assignment in which only some clients are members of models, and in lanes.

        Args:
            holding: (N,) whether each client holds data; the others get -1.

        Returns:
            The same assignment, with other members and lanes.
        """
        if holding.all():
            return self
        lanes = None if self.lanes is None else np.where(holding, self.lanes, -1)
        return replace(self, members=np.where(holding[:, None], self.members, -1), lanes=lanes)

    @property
    def changes_models(self) -> bool:
        """Whether the assignment changes models, instead of only moving clients between them."""
        models, sources = self.mixing.shape
        same = models == sources == len(self.successor)
        return not (same and np.array_equal(self.mixing, np.eye(models)))

    @classmethod
    def reclustered_from(
        cls, old: Ints, new: Ints, num_old: int, num_new: int, fitted: Fit | None = None
    ) -> Assignment:
        """A global re-clustering with warm starts.

        A new model is the unweighted mean, over its members, of the model that each member had: the old
        models weighted by the number of members that come from each (Fielding, algorithm 2). Old clusters are
        matched one to one with new ones, so that the total number of shared members is largest; a matched new
        model inherits the identity of the old one. Clients without an old or a new model have no part in
        this; a new model none of whose members had one is the mean over all clients that had.

        Args:
            old: (N,) row of the model that each client belonged to, in [0, num_old); -1 = none.
            new: (N,) row of the model that it belongs to now, -1 = none; each of [0, num_new) must occur.
            num_old: M_old.
            num_new: M_new.
            fitted: the evidence for the clustering, for the log.

        Returns:
            An assignment with `reclustered` set.
        """
        overlap = _shared(old, new, num_old, num_new)
        successor = _matched(overlap)
        overlap[~overlap.any(axis=1)] = overlap.sum(axis=0) if overlap.any() else 1.0
        return cls(
            mixing=overlap / overlap.sum(axis=1, keepdims=True),
            extra=np.zeros((0, 0), dtype=np.float32),
            successor=successor,
            members=new[:, None],
            reclustered=True,
            fitted=fitted,
        )

    def anew(self, start: Floats32) -> Assignment:
        """The assignment with cold starts: the same members and identities, and nothing of the old models.

        Args:
            start: (P,) the parameters of every model.

        Returns:
            An assignment whose models all come from `extra`.
        """
        num_models = len(self.mixing)
        from_start = np.hstack([np.zeros((num_models, len(self.successor))), np.ones((num_models, 1))])
        return replace(self, mixing=from_start, extra=start[None, :])

    @classmethod
    def averaged(cls, old: Ints, new: Ints, num_models: int) -> Assignment:
        """The same clusters with other members, each model the mean of those that its members had.

        The mean is unweighted over members (Fielding, algorithm 4), without those that had no model. A model
        without such members stays as it is.

        Args:
            old: (N,) row of the model that each client belonged to, in [0, num_models); -1 = none.
            new: (N,) row of the model that it belongs to now; -1 = none.
            num_models: the number of models, before and after.

        Returns:
            An assignment in which every old model is its own successor.
        """
        overlap = _shared(old, new, num_models, num_models)
        empty = ~overlap.any(axis=1)
        overlap[empty, empty] = 1
        return cls(
            mixing=overlap / overlap.sum(axis=1, keepdims=True),
            extra=np.zeros((0, 0), dtype=np.float32),
            successor=np.arange(num_models),
            members=new[:, None],
        )


def _shared(old: Ints, new: Ints, num_old: int, num_new: int) -> Floats:
    """(num_new, num_old) the number of clients that each new and each old cluster share; -1 is no cluster."""
    both = (old >= 0) & (new >= 0)
    if not both.all():
        old, new = old[both], new[both]
    pairs = np.bincount(new * num_old + old, minlength=num_new * num_old)
    return pairs.reshape(num_new, num_old).astype(np.float64)


def _in_columns(members: Ints) -> Ints:
    """`members` (N,) or (N, width) as an array of shape (N, width)."""
    return members[:, None] if members.ndim == 1 else members


def _matched(overlap: Floats) -> Ints:
    """(num_old,) the new cluster matched with each old one, by largest total overlap; -1: none.

    An old cluster that shares no member with its match has none either.
    """
    from scipy.optimize import linear_sum_assignment

    successor = np.full(overlap.shape[1], -1, dtype=np.int64)
    new, old = linear_sum_assignment(overlap, maximize=True)
    shared = overlap[new, old] > 0
    successor[old[shared]] = new[shared]
    return successor
