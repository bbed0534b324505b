"""The representation of data by their mean embedding at a frozen reference model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordinator.representations.base import LocalData, ReferenceSettings, Representation
from emulator.arrays import Floats, Ints
from emulator.messages import Work


class Embedding(Representation):
    """The mean input of the reference model's last layer over the training samples that a client holds.

    Fielding's embedding. It needs no labels, and follows a shift of the features too. It costs a forward pass
    of all these samples through the reference model.

    Source: Fielding, its representation of unlabelled data.

    Two clients, the second of which holds three samples:

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> data = SimpleNamespace(
    ...     embedding_size=2,
    ...     embeddings=lambda clients: np.array([[0.5, 1.0], [0.0, 2.0]], dtype=np.float32),
    ...     num_samples=lambda clients: np.array([1, 3]),
    ...     cost=lambda at: 2.0,
    ... )
    >>> clients, embedding = np.array([4, 7]), Embedding(ReferenceSettings())
    >>> embedding.measure(clients, data).tolist()
    [[0.5, 1.0], [0.0, 2.0]]
    >>> embedding.work(clients, data).forward_samples.tolist()  # a model that computes twice as long
    [2.0, 6.0]
    """

    Settings = ReferenceSettings
    settings: ReferenceSettings
    distance = "euclidean"

    @property
    def reference(self) -> ReferenceSettings:
        return self.settings

    def size(self, data: LocalData) -> int:
        return data.embedding_size

    def measure(self, clients: Ints, data: LocalData) -> Floats:
        return data.embeddings(clients).astype(float)

    def work(self, clients: Ints, data: LocalData) -> Work:
        passes: Floats = data.num_samples(clients) * np.float64(data.cost("frozen"))
        return replace(Work.of(len(clients)), forward_samples=passes)
