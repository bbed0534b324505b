"""The assignment of a model's outputs to labels that fits a client's own samples best."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.messages import Work
from emulator.plugins import NoSettings

MOST_LABELS = 1_000
"""Labels beyond which a matrix of labels by labels for each client is refused."""

MOST_PERMUTED = 5
"""Labels up to which all permutations are tried, at once for all clients."""

PREFERS_IDENTITY = 1e-6
"""What leaving a label where it is counts, in nats: outputs about which no sample tells anything stay."""


class Relabelled(Adaptation):
    """Each client permutes the outputs of a model so that they fit the labels of its own samples best.

    Undoes a swap of labels without any training. The fit of output j as label i is the sum, over the client's
    training samples of label i, of the logarithm of the probability that the model gives to j; the
    assignment with the largest sum over all labels is one of maximum likelihood. Costs a forward pass.

    Source: ours.

    >>> fit = np.log(np.array([[[0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]]))
    >>> best_assignments(fit).tolist()  # label 0 is read from output 1, and label 1 from output 0
    [[1, 0, 2]]
    """

    Settings = NoSettings
    late_modules = ("scipy.optimize",)

    def check(self, num_labels: int) -> None:
        if num_labels > MOST_LABELS:
            raise ConfigurationError(
                f"adaptation = 'relabelled': the trace has {num_labels} labels; at most {MOST_LABELS} can be "
                f"assigned"
            )

    def adapt(self, view: ClientView) -> Served:
        fit = view.log_probabilities()
        order = best_assignments(fit.reshape(-1, *fit.shape[2:])).reshape(fit.shape[:3])
        return Served(view.models, replace(view.plan, outputs=order))

    def work(self, view: ClientView) -> Work | None:
        if not view.new_data:
            return None
        served = ((view.plan.models >= 0) & (view.plan.weights > 0)).sum(axis=1)
        work = Work.of(len(view.clients))
        return replace(work, forward_samples=(view.num_samples * served).astype(np.float64))


def best_assignments(fit: Floats) -> Ints:
    """(n, L) the output that is read as each label, for n matrices `fit` (n, L, L) of labels by outputs.

    No two labels have the same output. A matrix that is not finite keeps the identity.
    """
    num_labels = fit.shape[-1]
    finite = np.isfinite(fit).all(axis=(1, 2), keepdims=True)
    fit = np.where(finite, fit, 0.0) + PREFERS_IDENTITY * np.eye(num_labels)
    if num_labels <= MOST_PERMUTED:
        best = np.tile(np.arange(num_labels), (len(fit), 1))
        largest = np.full(len(fit), -np.inf)
        for order in permutations(range(num_labels)):
            likelihood = fit[:, np.arange(num_labels), order].sum(axis=1)
            better = likelihood > largest
            best[better], largest[better] = order, likelihood[better]
        return best
    from scipy.optimize import linear_sum_assignment

    rows = [linear_sum_assignment(matrix, maximize=True)[1] for matrix in fit]
    return np.array(rows, dtype=np.int64).reshape(len(fit), num_labels)
