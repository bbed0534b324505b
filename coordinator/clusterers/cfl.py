"""CFL: a cluster whose model has settled while its clients' updates still disagree is split in two.

Sattler et al. 2020, and the form that FedDrift compares with, whose thresholds follow the norms seen so far.
The published case is full participation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import Count, CountOrZero, PositiveFactor, Share, TwoOrMore
from emulator.plugins import Settings


class CflSettings(Settings):
    """When a cluster is split, and how its children start."""

    gamma: Share = Field(
        0.1, description="split if sqrt((1 - largest cosine across the halves) / 2) exceeds this"
    )
    eps1: PositiveFactor | None = Field(
        None,
        description="the mean update must be shorter; without it, a tenth of the longest mean update so far, "
        "and no test of the cluster that has it (FedDrift)",
    )
    eps2: PositiveFactor | None = Field(
        None, description="some client's update must be longer; without it, 6 eps1 (FedDrift)"
    )
    child_init: Literal["parent", "initial"] = Field(
        "parent",
        description="children start from their parent's new model, as published, or both from the common "
        "initialisation, the round's updates being lost (FedDrift's code)",
    )
    min_size: TwoOrMore = Field(3, description="the smallest cluster that is split", examples=[5])
    max_models: Count | None = Field(None, description="no split beyond this many models")
    warmup_rounds: CountOrZero = Field(0, description="first rounds without a split (20 in CFL's demo)")


class Cfl(Clusterer):
    """Clusters are split where updates disagree, and never merged.

    Only clients that sent an update can be told apart. The other members stay with the larger half, which
    keeps its parent's row. Nothing is known of the updates of a client that joins: it begins in the largest
    cluster. It needs whole rounds: norms and cosines compare updates of one model. State: the norm of the
    longest mean update of any cluster so far.

    Source: Sattler, Müller and Samek 2020, and the form that FedDrift (AISTATS 2023) compares with.

    Three clients with updates 1, 1 and -1: the mean update, 1/3, is short while the single ones are long, so
    the third client is split off:

    >>> from types import SimpleNamespace
    >>> update = np.array([1.0, 1.0, -1.0])
    >>> updates = SimpleNamespace(
    ...     model=np.zeros(3),
    ...     client=np.arange(3),
    ...     num_samples=np.ones(3),
    ...     gram=lambda: np.outer(update, update),
    ... )
    >>> view = SimpleNamespace(
    ...     updates=updates, model_ids=np.array([0]), members=np.zeros((3, 1), dtype=np.int64), round=0
    ... )
    >>> Cfl(CflSettings(eps1=0.5, eps2=0.5)).on_updates(view).members.ravel().tolist()
    [0, 0, 1]
    """

    Settings = CflSettings
    settings: CflSettings
    late_modules = (*Clusterer.late_modules, "scipy.cluster.hierarchy")
    needs_whole_rounds = True
    reads_updates = True
    state_fields = ("_longest",)

    def __init__(self, settings: CflSettings) -> None:
        super().__init__(settings)
        self._longest = 0.0

    @property
    def watches_data(self) -> bool:
        return False

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is not None:
            return None
        return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))

    def on_updates(self, view: View) -> Assignment | None:
        assert view.updates is not None
        updates, num_models = view.updates, len(view.model_ids)
        gram = updates.gram()
        members = view.members[:, 0].copy()
        parents: list[int] = []
        for row, model in enumerate(view.model_ids.tolist()):
            indices = np.flatnonzero((updates.model == model) & (updates.num_samples > 0))
            smaller = self._smaller_half(gram[np.ix_(indices, indices)], view.round)
            child = num_models + len(parents)
            if smaller is not None and child < (self.settings.max_models or np.inf):
                members[updates.client[indices[smaller]]] = child
                parents.append(row)
        return self._split(parents, members, view) if parents else None

    def _smaller_half(self, gram: Floats, round_: int) -> Bools | None:
        """(n,) whether each update of a cluster is split off; None keeps the cluster whole.

        `gram` (n, n) has the inner products of the cluster's updates.
        """
        if len(gram) == 0:
            return None
        norms = np.sqrt(np.diag(gram))
        mean_norm = float(np.sqrt(max(gram.sum(), 0.0))) / len(gram)
        longest_yet = mean_norm > self._longest
        self._longest = max(self._longest, mean_norm)
        eps1 = self._longest / 10 if self.settings.eps1 is None else self.settings.eps1
        eps2 = 6 * eps1 if self.settings.eps2 is None else self.settings.eps2
        if len(gram) < self.settings.min_size or round_ < self.settings.warmup_rounds:
            return None
        if (longest_yet and self.settings.eps1 is None) or mean_norm >= eps1 or norms.max() <= eps2:
            return None
        # An update of zero has no direction: it counts as orthogonal to all others.
        cosines = gram / np.maximum(np.outer(norms, norms), 1e-300)
        smaller = bipartition(cosines)
        across = cosines[np.ix_(smaller, ~smaller)].max()
        return smaller if np.sqrt(max((1 - across) / 2, 0.0)) > self.settings.gamma else None

    def _split(self, parents: list[int], members: Ints, view: View) -> Assignment:
        """The assignment with `members` (N,), in which the smaller half of each of `parents` has a new model.

        The larger half keeps its parent's row; the rows of the smaller halves follow the old models, in the
        order of `parents`.
        """
        old, fresh = len(view.model_ids), self.settings.child_init == "initial"
        mixing = np.eye(old + len(parents), old + fresh)
        for child, parent in enumerate(parents, start=old):
            source = old if fresh else parent
            mixing[[parent, child]] = 0.0
            mixing[[parent, child], source] = 1.0
        return Assignment(
            mixing=mixing,
            extra=view.initial(0)[None, :] if fresh else np.zeros((0, 0), dtype=np.float32),
            successor=np.arange(old),
            members=members[:, None],
        )


def bipartition(cosines: Floats) -> Bools:
    """(n,) whether each row of `cosines` (n, n) is in the smaller of its two clusters.

    These are the last two clusters of complete linkage, in which a larger cosine is a smaller distance. If
    they are equally large, the smaller one is that without the first row.

    >>> bipartition(np.array([[1.0, 0.9, -0.8], [0.9, 1.0, -0.7], [-0.8, -0.7, 1.0]])).tolist()
    [False, False, True]
    """
    from scipy.cluster.hierarchy import cut_tree, linkage

    apart = np.maximum(1 - cosines[np.triu_indices(len(cosines), 1)], 0.0)
    labels = cut_tree(linkage(apart, "complete"), n_clusters=[2])[:, 0]
    with_first: Bools = labels == labels[0]
    return with_first if 2 * with_first.sum() < len(labels) else ~with_first
