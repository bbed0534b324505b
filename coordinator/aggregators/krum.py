"""Krum and Multi-Krum: a model moves only by the updates that are closest to their neighbours."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import RunFacts, View
from emulator.arrays import Floats, Floats32, Ints
from emulator.counts import exact
from emulator.errors import ConfigurationError
from emulator.messages import Updates
from emulator.numbers import Count, ShareBelowHalf
from emulator.plugins import Settings


class KrumSettings(Settings):
    """The share of false updates to withstand, and the number of updates to use."""

    byzantine: ShareBelowHalf = Field(
        0.2, description="share of a model's updates that may be false, rounded up"
    )
    keep: Count = Field(
        1, description="updates whose mean is taken: 1 is Krum, more is Multi-Krum", examples=[3]
    )


class Krum(Aggregator):
    """Each model moves by the mean of the `keep` updates that are nearest to their neighbours.

    Of n updates, f of which may be false, each has the score s_c = sum of |update_c - update_d|^2 over the
    n - f - 2 other updates d nearest to it; model += the unweighted mean of the `keep` updates with the
    smallest scores. Of equal scores the lower client id comes first. Updates of clients without samples are
    left out.

    f = ceil(`byzantine` n), but at most floor((n - 3) / 2): the guarantee needs n >= 2 f + 3, so f is 0 below
    five updates. At most n - f updates are used. With one or two updates there are no neighbours, and all
    scores are 0. Where a server step absorbs a buffer of updates, one with fewer than 2 ceil(`byzantine` n) +
    3 is refused.

    Source: Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NIPS
    2017, section 4; there f is a number, and all n workers respond each time.

    Of five updates one may be false, so that two neighbours count. The scores of 6, 3, 100, 0 and 1 are
    34, 13, 18245, 10 and 5: the update 1 is taken.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> delta, ones = np.array([[6], [3], [100], [0], [1]], dtype=np.float32), np.ones(5, dtype=np.int64)
    >>> updates = ArrayUpdates(np.arange(5), model=ones, num_samples=ones, num_steps=ones, delta=delta)
    >>> view = SimpleNamespace(models=np.zeros((1, 1)), model_ids=np.array([1]))
    >>> Krum(KrumSettings(byzantine=0.2)).aggregate(updates, view)
    array([[1.]], dtype=float32)
    """

    Settings = KrumSettings
    settings: KrumSettings

    def check_run(self, run: RunFacts) -> None:
        if run.buffer is None:
            return
        byzantine = self._expected(run.buffer)
        if 2 * byzantine + 3 > run.buffer:
            raise ConfigurationError(
                f"aggregator.byzantine = {self.settings.byzantine}: of the {run.buffer} updates of a server "
                f"step {byzantine} may be false, which takes at least {2 * byzantine + 3} updates; raise "
                f"pacing.buffer, or lower byzantine"
            )

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        weights = np.zeros((len(view.model_ids), len(updates)))
        sampled = updates.num_samples > 0
        for row, model in enumerate(view.model_ids.tolist()):
            of_model = np.flatnonzero((updates.model == model) & sampled)
            if len(of_model) > 0:
                best = self._chosen(updates.take(of_model).gram(), updates.client[of_model])
                chosen = of_model[best]
                weights[row, chosen] = 1 / len(chosen)
        return (view.models + updates.weighted_sum(weights)).astype(np.float32)

    def _chosen(self, inner: Floats, clients: Ints) -> Ints:
        """Indices of the updates to use, best first, of n with inner products `inner` (n, n)."""
        count = len(clients)
        byzantine = max(0, min(self._expected(count), (count - 3) // 2))
        neighbours = max(0, count - byzantine - 2)
        squares = np.diag(inner)
        # Rounding can take the distance of two equal updates below 0.
        distances = np.maximum(squares[:, None] + squares[None, :] - 2 * inner, 0.0)
        np.fill_diagonal(distances, np.inf)  # an update is not its own neighbour
        distances.sort(axis=1)
        scores = distances[:, :neighbours].sum(axis=1)
        order = np.lexsort((clients, scores))
        return order[: min(self.settings.keep, count - byzantine)]

    def _expected(self, count: int) -> int:
        """The updates that may be false of `count`."""
        return math.ceil(exact(self.settings.byzantine) * count)
