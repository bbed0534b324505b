"""Auxo's affinities of clients to clusters, and how the updates of a round change them.

N clients, M clusters, n participants of one cluster, whose compared updates have c columns. Each cluster has
two sides, the halves of a later split; a side is 1 or -1, and 0 is neither.

FedScale's code differs in some points. It takes mini-batches for 2-means, confuses the ids of known clients
in step (a), and leaves out client 0. All clients decide in each round, though few are moved, so that
`explore` decays faster; it vanishes within hundreds of decisions either way.

From the second round after the last split on, FedScale's code still gives first sides to a cluster that has
none; here nobody takes sides any more. Sides serve the next split, and there is none. Only clients that were
trained in the cluster take first sides: their `times` are higher there, but no affinity and no decision
differs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.partition import first_distinct
from coordinator.distances import squared_euclidean, unit_rows
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.storage.stateful import Stateful

STARTS = 10
"""k-means++ starts of the two sides; the best inertia wins."""

LARGEST = float(np.finfo(np.float16).max)


class Affinities(Stateful):
    """The affinities of N clients to M clusters, 1 at first, and the sides that they take in each.

    A client has a sub-affinity to each side of a cluster. These are affinity / 2 + lean and affinity / 2 -
    lean, because a vote adds 1 to one and takes 1 from the other, and all else changes both by half of what
    the affinity changes. So only `lean` is kept. `times` counts how often a client got a side or a reward.
    """

    state_fields = ("affinity", "lean", "times", "rounds", "has_sides", "explore")

    def __init__(self, num_clients: int, explore: float) -> None:
        self.affinity: Floats = np.ones((num_clients, 1))  # (N, M)
        self.lean: Ints = np.zeros((num_clients, 1), dtype=np.int64)  # (N, M)
        self.times: Ints = np.zeros((num_clients, 1), dtype=np.int64)  # (N, M)
        self.rounds: Ints = np.zeros(1, dtype=np.int64)  # (M,) clustering rounds; a child inherits them
        self.has_sides: Bools = np.zeros(1, dtype=bool)  # (M,)
        self.explore = explore  # probability that the next client goes to a random cluster

    @property
    def num_clusters(self) -> int:
        """The number of clusters, M."""
        return len(self.rounds)

    def forget(self, clients: Ints) -> None:
        """Let `clients` (n,) begin anew, with no affinity above another."""
        self.affinity[clients] = 1.0
        self.lean[clients] = self.times[clients] = 0

    def sides(self, row: int, clients: Ints) -> Ints:
        """(n,) the side of each of `clients` (n,) in the cluster `row`; 0 below an affinity of 0."""
        return np.where(self.affinity[clients, row] >= 0, np.sign(self.lean[clients, row]), 0)

    def known(self, row: int, clients: Ints) -> Bools:
        """(n,) whether each of `clients` (n,) was trained in the cluster `row`, with an affinity above 1."""
        known: Bools = (self.times[clients, row] > 0) & (self.affinity[clients, row] > 1)
        return known

    def take_sides(self, row: int, clients: Ints, points: Floats, generator: np.random.Generator) -> None:
        """Step (a): `clients` (n,) with centred updates `points` (n, c) vote for sides of the cluster `row`.

        At first all do, or of several clusters those known, by 2-means of the directions of `points`.
        """
        points = unit_rows(points)
        if self.has_sides[row]:
            votes = votes_of_labelled(points, self.sides(row, clients))
        else:
            if self.num_clusters > 1:
                known = self.known(row, clients)
                clients, points = clients[known], points[known]
            votes = two_sides(points, generator)
            self.has_sides[row] = votes.any()
        self.lean[clients, row] += votes
        self.times[clients, row] += votes != 0

    def reward(self, row: int, clients: Ints, points: Floats, base: float) -> bool:
        """Step (b): reward `clients` (n,) of the cluster `row` by where their centred updates `points` are.

        After a negative reward a client has no side, and counts as trained once. A single cluster rewards
        nobody. Returns whether the steps after this one follow: not if fewer than 2 of several are known.
        """
        if self.num_clusters == 1:
            return True
        known = self.known(row, clients)
        if np.count_nonzero(known) < 2:
            return False
        reward = rewards(points, known, base)
        self.affinity[clients, row] += reward
        self.lean[clients[reward < 0], row] = self.times[clients[reward < 0], row] = 0
        self.times[clients, row] += 1
        return True

    def divides(self, row: int, inside: Ints, num_clients: int) -> bool:
        """Whether enough of the members `inside` (n,) of the cluster `row` have taken each of two sides.

        These are more than a twentieth of all `num_clients`, x 0.9 for each split before; after the first
        split, also more than half as many as on the other side.
        """
        sides = self.sides(row, inside)
        fewer, more = sorted((int((sides > 0).sum()), int((sides < 0).sum())))
        before = self.num_clusters - 1
        enough = fewer > Fraction(num_clients, 20) * Fraction(9, 10) ** before
        return enough and (before == 0 or more < 2 * fewer)

    def split(self, row: int) -> None:
        """Step (c): split the cluster `row`; its child is the last cluster.

        Who leans to side 1 gains 1 in the cluster, who leans to side -1 gains 1 in the child. There the times
        are kept; in the other they are 0. Neither has sides yet.
        """
        leans_to = np.stack([self.lean[:, row] > 0, self.lean[:, row] < 0], axis=1)  # (N, 2)
        halves, copied = [row, self.num_clusters], [*range(self.num_clusters), row]
        self.affinity, self.lean = self.affinity[:, copied], self.lean[:, copied]
        self.times, self.rounds = self.times[:, copied], self.rounds[copied]
        self.has_sides = self.has_sides[copied]
        self.affinity[:, halves] += leans_to
        self.times[:, halves] *= leans_to
        self.lean[:, halves] = 0
        self.has_sides[halves] = False

    def decide(self, clients: Ints, decay: float, generator: np.random.Generator) -> Ints:
        """Step (d): (n,) for each of `clients` (n,) the cluster of largest affinity, the lowest of equals.

        For a client that was never trained it is a random one, and for others with probability `explore`,
        which falls by the factor `decay` after each client.
        """
        chances = self.explore * np.power(decay, np.arange(len(clients) + 1, dtype=np.float64))
        self.explore = float(chances[-1])
        draws = generator.random((len(clients), 2))
        at_random = ~self.times[clients].any(axis=1) | (draws[:, 0] < chances[:-1])
        anywhere = (draws[:, 1] * self.num_clusters).astype(np.int64)
        return np.where(at_random, anywhere, self.affinity[clients].argmax(axis=1))


def centred(gradients: Floats32) -> Floats:
    """`gradients` (n, c) in half precision, less their mean; what is too large for it is the largest.

    >>> centred(np.array([[1.0], [3.0], [1e9]], dtype=np.float32)).tolist()
    [[-21835.0], [-21833.0], [43668.0]]
    """
    halves = np.clip(gradients, -LARGEST, LARGEST).astype(np.float16).astype(np.float64)
    points: Floats = halves - halves.mean(axis=0)
    return points


def two_sides(points: Floats, generator: np.random.Generator) -> Ints:
    """(n,) the side of each of `points` (n, c) by 2-means, 1 for that of the first; 0 if no two differ.

    >>> two_sides(np.array([[0.0], [1.0], [9.0]]), np.random.default_rng(0)).tolist()
    [1, 1, -1]
    """
    if len(points) == 0 or len(first_distinct(points, 2)) < 2:
        return np.zeros(len(points), dtype=np.int64)
    [members] = kmeans(points, [2], STARTS, generator)
    return np.where(members == members[0], 1, -1)


def votes_of_labelled(points: Floats, sides: Ints) -> Ints:
    """(n,) the side that each participant votes for, 0 for none, where those with a side keep to it.

    A participant without one votes as the nearest one with one does; `sides` (n,) are those of `points` (n,
    c). If only one of the two sides is present, the n // 4 participants nearest to the first one that has it
    vote for it, that one included. Ties go to the first.

    >>> points = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> votes_of_labelled(points, np.array([1, 0, 0, -1])).tolist()
    [0, 1, -1, 0]
    >>> votes_of_labelled(points, np.array([0, 0, -1, 0])).tolist()
    [0, 0, -1, 0]
    """
    votes = np.zeros(len(points), dtype=np.int64)
    labelled, others = np.flatnonzero(sides), np.flatnonzero(sides == 0)
    if len(labelled) == 0:
        return votes
    if (sides[labelled] != sides[labelled[0]]).any():
        apart = squared_euclidean(points[others], points[labelled])
        votes[others] = sides[labelled[apart.argmin(axis=1)]]
    else:
        first = labelled[:1]
        apart = squared_euclidean(points[first], points)[0]
        votes[np.argsort(apart, kind="stable")[: len(points) // 4]] = sides[first]
    return votes


def rewards(points: Floats, known: Bools, base: float) -> Floats:
    """(n,) rewards: `base` at the centre, and linearly down to 0 at the mean + 1 deviation of all distances.

    The centre is the mean of those of `points` (n, c) that are `known` (n,), at least one. All rewards are
    scaled by the share of these. If no point is off the centre, each reward is that at the centre.

    >>> rewards(np.array([[0.0], [2.0], [4.0]]), np.array([True, True, True]), base=5.0).round(3).tolist()
    [0.607, 5.0, 0.607]
    """
    distances = np.linalg.norm(points - points[known].mean(axis=0), axis=1)
    reach = distances.mean() + distances.std()
    rewards_: Floats = base * (1 - distances / (reach if reach > 0 else 1.0)) * known.mean()
    return rewards_
