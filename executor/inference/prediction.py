"""The logits of models on samples, batch after batch.

Batch borders decide the last bits of a result, so they depend on the rows, the model and the number of models
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats32, Ints
from emulator.ports import SampleReader
from executor.flat import FlatModel, inputs
from executor.objectives.labels import is_labels
from executor.training.layers import Layers

EVALUATION_BATCH = 512  # samples: a block
MOST_BLOCKS = 4  # in a batch of one dense model
FEW = 8
"""MKL with AVX-512 computes logits of so many rows or more with the same last bits, however many they are.

Fewer left over whole blocks stay a batch of their own; all else is joined, and no bit of a result changes.
"""

MOST_OUTPUTS = 2**25  # of all samples and models in a batch, where models tell tokens or numbers
ACTIVATIONS = 4_000_000  # outputs of the widest layer, over all models, in a batch of several models


Use = Callable[[slice, Tensor, Tensor], None]
"""Consumes a batch of b rows: their slice of all rows, their outputs or embeddings, their targets."""


@dataclass(frozen=True)
class Predictor:
    """Computes logits of one kind of model on the samples of one reader; `dense`: see `ModelSpec`."""

    reader: SampleReader
    model: FlatModel
    dense: bool

    def of_one(self, parameters: Floats32, rows: Ints, use: Use) -> None:
        """Call `use` for each batch of `rows`, with outputs of a model that serves clients."""
        with self.model.bound(self.model.named(torch.tensor(parameters)), "serving") as module:
            size, blocks = self.batch_of_many(1), borders_of_one(len(rows), self._blocks)
            self._batches(rows, blocks if self._tells_labels else borders(len(rows), size), module, use)

    def embed(self, parameters: Floats32, rows: Ints, use: Use) -> None:
        """Call `use` for each batch of `rows`, with embeddings (b, D) instead of logits."""
        named = self.model.named(torch.tensor(parameters))
        self._batches(rows, borders(len(rows), EVALUATION_BATCH), lambda x: self.model.embed(named, x), use)

    def of_many(self, models: Floats32, rows: Ints, use: Use) -> None:
        """Call `use` for each batch of `rows`, with outputs of `models` (m, P).

        Those of labels are (m, num_outputs, b), others (m, b, *output_shape).
        """
        flat = torch.tensor(models)
        if self.dense:
            layers = Layers.of(self.model, flat)
            size = self.batch_of_many(len(models))
            of_all = borders(len(rows), size)
            self._batches(rows, of_all, lambda x: layers.activations(x.flatten(1)[None])[-1], use)
        else:
            models_named = [self.model.named(row) for row in flat]

            def stacked_logits(features: Tensor) -> Tensor:
                logits = [self.model.logits(named, features, "scoring") for named in models_named]
                stacked = torch.stack(logits)
                return stacked.mT if self._tells_labels else stacked

            self._batches(rows, borders(len(rows), self.batch_of_many(len(models))), stacked_logits, use)

    @torch.inference_mode()
    def of_each(self, models: Tensor, rows: Ints, counts: Ints) -> tuple[Tensor, Tensor]:
        """The logits (b, num_outputs) of m dense `models` (m, P), each on its own samples, and their labels.

        The `rows` (b,) are those of the first model, then those of the next; `counts` (m,) has their numbers.
        """
        most = int(counts.max())
        first = np.arange(len(counts)) * most  # of each model's samples, which are padded to the most
        place = torch.from_numpy(
            np.arange(len(rows)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        )
        features = inputs(self.reader, rows, models.dtype).flatten(1)
        padded = features.new_zeros(len(counts) * most, features.shape[1]).index_copy_(0, place, features)
        # NOTE: whole rows are copied; an index for each of two axes takes each number by itself, far slower.
        logits = Layers.of(self.model, models).activations(padded.view(len(counts), most, -1))[-1]
        logits = logits.mT.flatten(0, 1).index_select(0, place)
        return logits, self.model.objective.targets(self.reader, rows)

    def batch_of_many(self, num_models: int) -> int:
        """The number of samples in a batch of `of_many` for `num_models` models."""
        if not self._tells_labels:
            outputs = self.model.objective.output_shape(self.model.sample_shape, self.model.num_outputs)
            return min(EVALUATION_BATCH, max(1, MOST_OUTPUTS // (num_models * prod(outputs))))
        if not self.dense:
            return EVALUATION_BATCH
        return max(EVALUATION_BATCH, ACTIVATIONS // (num_models * self._widest))

    @property
    def _tells_labels(self) -> bool:
        return is_labels(self.model.objective)

    @cached_property
    def _blocks(self) -> int:
        """The blocks of `EVALUATION_BATCH` samples in a batch of `of_one`."""
        if not self.dense:
            return 1
        return min(max(1, ACTIVATIONS // (EVALUATION_BATCH * self._widest)), MOST_BLOCKS)

    @cached_property
    def _widest(self) -> int:
        """The number of outputs of the widest layer."""
        layers = Layers.of(self.model, torch.empty(1, self.model.num_parameters))
        return max(weight.shape[1] for weight in layers.weights)

    @torch.inference_mode()
    def _batches(
        self, rows: Ints, batch_borders: Sequence[int], logits: Callable[[Tensor], Tensor], use: Use
    ) -> None:
        for first, last in pairwise(batch_borders):
            features = inputs(self.reader, rows[first:last])
            targets = self.model.objective.targets(self.reader, rows[first:last])
            use(slice(first, last), logits(features), targets)


def borders(num_rows: int, size: int) -> list[int]:
    """The borders of batches of `size` rows, of which the last may have fewer."""
    return [*range(0, num_rows, size), num_rows]


def borders_of_one(num_rows: int, blocks: int) -> list[int]:
    """The borders of batches of `blocks` blocks; fewer than `FEW` rows over them are a batch of their own.

    >>> borders_of_one(2000, blocks=2), borders_of_one(1538, blocks=4)
    ([0, 1024, 2000], [0, 1536, 1538])
    """
    left = num_rows % EVALUATION_BATCH
    few = {num_rows - left} if left < FEW else set()
    return sorted({*borders(num_rows, blocks * EVALUATION_BATCH), *few})
