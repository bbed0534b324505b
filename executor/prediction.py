"""What models say of samples: logits, batch after batch.

How samples are cut into batches follows from the request and the model alone, since the borders decide the
last bits of a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from emulator.arrays import Floats32, Ints
from emulator.ports import SampleReader
from executor.flat import FlatModel
from executor.layers import Layers

EVALUATION_BATCH = 512  # samples
ACTIVATIONS = 4_000_000  # numbers of the widest layer, over all models, in a batch of models side by side


@dataclass(frozen=True)
class Predictor:
    """One kind of model, on the samples of one reader; `dense`: it is a `dense` one (see `ModelSpec`)."""

    reader: SampleReader
    model: FlatModel
    dense: bool

    def of_one(
        self, parameters: Floats32, rows: Ints, serving: bool
    ) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Of batches of `rows`: which they are, logits (b, num_labels) and labels (b,).

        `serving`: as the model answers once it is trained.
        """
        named = self.model.named(torch.tensor(parameters))
        for part, features, labels in self._batches(rows, EVALUATION_BATCH):
            yield part, self.model.logits(named, features, serving), labels

    def of_many(self, models: Floats32, rows: Ints) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Of batches of `rows`: which they are, logits (m, num_labels, b) of `models` (m, P), labels (b,)."""
        flat = torch.tensor(models)
        if self.dense:
            layers = Layers.of(self.model, flat)
            widest = max(weight.shape[1] for weight in layers.weights)
            size = max(EVALUATION_BATCH, ACTIVATIONS // (len(models) * widest))
            for part, features, labels in self._batches(rows, size):
                yield part, layers.activations(features.flatten(1)[None])[-1], labels
        else:
            named = [self.model.named(row) for row in flat]
            for part, features, labels in self._batches(rows, EVALUATION_BATCH):
                logits = [self.model.logits(each, features) for each in named]
                yield part, torch.stack(logits).mT, labels

    def _batches(self, rows: Ints, size: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        for first in range(0, len(rows), size):
            part = slice(first, min(first + size, len(rows)))
            features = torch.from_numpy(self.reader.features(rows[part]))
            yield part, features, torch.from_numpy(self.reader.labels(rows[part]))
