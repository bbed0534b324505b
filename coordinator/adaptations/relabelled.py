"""The assignment of a model's outputs to labels that fits a client's own samples best."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
from pydantic import Field

from coordinator.adaptations.base import Adaptation, ClientView, Served
from coordinator.adaptations.class_means import ClassMeans, Sums
from coordinator.adaptations.tries import TriesSettings
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.messages import Work

MOST_LABELS = 1_000
"""Labels beyond which a matrix of labels by labels for each client is refused."""

MOST_PERMUTED = 5
"""Labels up to which all permutations are tried, at once for all clients."""

PREFERS_IDENTITY = 1e-6
"""What leaving a label where it is counts, in nats: outputs about which no sample tells anything stay."""


class RelabelledSettings(TriesSettings):
    """How labels are matched, and where that holds."""

    train: bool = Field(
        False,
        description="labels are read as matched in training and scores, too; false: in evaluation alone",
        examples=[True],
    )


class Relabelled(Adaptation):
    """Each client permutes the outputs of a model so that they fit the labels of its own samples best.

    Undoes a swap of labels without any training. By loss the fit of output j as label i is the sum, over the
    client's training samples of label i, of the logarithm of the probability that the model gives to j; the
    assignment with the largest sum over all labels is one of maximum likelihood. Costs a forward pass. By
    class means it is minus the squared distance of the client's mean of label i from that of label j over all
    that clients have reported, and no label moves before the first report. With `train` a client that is sent
    out matches its labels anew, and trains and scores by them.

    Source: ours.

    >>> fit = np.log(np.array([[[0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]]))
    >>> best_assignments(fit).tolist()  # label 0 is read from output 1, and label 1 from output 0
    [[1, 0, 2]]
    """

    Settings = RelabelledSettings
    settings: RelabelledSettings
    needs_labels = True
    state_fields = ("_means",)
    late_modules = ("scipy.optimize",)

    def __init__(self, settings: RelabelledSettings) -> None:
        super().__init__(settings)
        self._means = ClassMeans()

    @property
    def trains(self) -> bool:
        return self.settings.train

    @property
    def hears(self) -> bool:
        return self.trains or self._compares

    @property
    def _compares(self) -> bool:
        return self.settings.by == "class_means"

    def check_features(self, shape: tuple[int, ...], *, integers: bool) -> None:
        if integers and self._compares:
            raise ConfigurationError(
                "by = 'class_means': samples here are whole numbers, such as tokens, which have no mean; set "
                "by = 'loss'"
            )

    def check(self, num_labels: int) -> None:
        if num_labels > MOST_LABELS:
            raise ConfigurationError(
                f"adaptation = 'relabelled': the trace has {num_labels} labels; at most {MOST_LABELS} can be "
                f"assigned"
            )

    def adapt(self, view: ClientView) -> Served:
        width = view.plan.models.shape[1]
        if self._compares:
            order = np.repeat(best_assignments(self._nearness(view))[:, None], width, axis=1)
        else:
            fit = view.log_probabilities()
            order = best_assignments(fit.reshape(-1, *fit.shape[2:])).reshape(fit.shape[:3])
        return Served(view.models, replace(view.plan, outputs=order))

    def _nearness(self, view: ClientView) -> Floats:
        """(n, L, L) minus the squared distances of a client's means of labels from the common.

        A label that the client lacks fits all alike. One that nobody has reported stays where it is: moving
        it, or to it, is worse than all that is known.
        """
        fit = np.zeros((len(view.clients), view.num_labels, view.num_labels))
        if self._means:
            (target,) = self._means.sums.means
            unknown = np.isnan(target).any(axis=1)
            moves = (unknown[:, None] | unknown) & ~np.eye(view.num_labels, dtype=bool)
            for held in view.held():
                own = Sums.of(held, view.num_labels).means
                # The square of a difference, expanded: no array has a number for each pair and feature.
                products = np.einsum("nid,jd->nij", own, target)
                near = -np.nan_to_num(
                    (own**2).sum(axis=2)[:, :, None] + (target**2).sum(axis=1) - 2 * products
                )
                near[:, moves] = near.sum(axis=(1, 2))[:, None] - 1
                fit[held.rows] = near
        return fit

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        outputs = served.plan.outputs
        if not self._compares:
            return None
        assert outputs is not None
        for held in view.held():
            read = outputs[held.rows, 0][held.owner, held.labels]
            self._means.add(Sums.of(replace(held, labels=read), view.num_labels))
        return self._means.reporting(view)

    def choosing_work(self, view: ClientView) -> Work | None:
        return self._means.comparing(view) if self._compares else self._forward(view)

    def work(self, view: ClientView) -> Work | None:
        return self._forward(view) if view.evaluated and not self._compares else None

    def _forward(self, view: ClientView) -> Work:
        """The predictions of all models that serve each client."""
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
