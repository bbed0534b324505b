"""Held-out samples: those of a client that decide when its training stops, and that it never trains on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams, uniforms
from executor.flat import inputs
from executor.inference.prediction import EVALUATION_BATCH, Predictor
from executor.ranges import rows_of, slabs

AT_ONCE = 1_000_000
"""Samples whose keys are drawn in one call, which takes about a hundred bytes for each."""

NUMBERS = 2**25
"""Features of samples that are predicted at once, at most: with the padding, but at least one sample's."""

PADDING = 2
"""By what factor the samples of clients that are scored side by side may differ in number."""


@dataclass(frozen=True)
class HeldOut:
    """Holds out a share of all samples, each by a key of its own.

    Whether a sample is held out follows from the seed and the sample alone, so that it stays so whatever
    else its client holds, and also when it is sent anew. Of several samples of a client the one whose random
    number is the largest is always trained on, with all copies of it, so that no client is left without any.
    """

    share: float
    reader: SampleReader
    streams: RandomStreams

    def split(self, samples: SampleRanges) -> list[Bools]:
        """For each of n requests, (k,) which of its k samples are held out, in the order of its ranges."""
        flags: list[Bools] = []
        for slab in slabs(samples.counts(), AT_ONCE):
            rows, counts = rows_of(samples, slab)
            keys = self.reader.sample_keys(rows)
            number = uniforms(self.streams.keys("held out", keys[:, 0], keys[:, 1]))[:, 0]
            held = number < self.share
            ends = np.cumsum(counts)
            for begin, end in zip((ends - counts).tolist(), ends.tolist(), strict=True):
                if end > begin:
                    held[begin:end] &= number[begin:end] < number[begin:end].max()
                flags.append(held[begin:end])
        return flags


class HeldOutLosses:
    """The losses of models on the held-out samples of their clients."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    @torch.inference_mode()
    def sums(self, parameters: Tensor, models: Ints, rows: Sequence[Ints]) -> Tensor:
        """(n,) the sum of the losses of each of n models over the samples of its own, in double precision.

        Args:
            parameters: Tensor of shape (m, P).
            models: (n,) the rows of `parameters` that the models are.
            rows: For each of the n models, (k,) the table rows of its samples.
        """
        counts = np.array([len(of_model) for of_model in rows], dtype=np.int64)
        sums = torch.zeros(len(models), dtype=torch.float64)
        for part, first, last in self._parts(counts):
            some = [rows[model][first:last] for model in part.tolist()]
            sizes = np.minimum(counts[part], last) - first
            of_models = parameters.index_select(0, torch.from_numpy(models[part]))
            logits, targets = self._logits(of_models, np.concatenate(some), sizes)
            losses = self._predictor.model.objective.losses(logits, targets).double()
            sums.index_add_(0, torch.from_numpy(np.repeat(part, sizes)), losses)
        return sums

    def _parts(self, counts: Ints) -> Iterator[tuple[Ints, int, int]]:
        """The models that are scored side by side, each with its samples from a first to before a last one.

        They are those with similar numbers of samples, `counts` (n,), as many as the samples let.
        """
        at_once = max(1, NUMBERS // prod(self._predictor.reader.sample_shape))
        if not self._predictor.dense:
            at_once = min(at_once, EVALUATION_BATCH)
        for alike in self._alike(counts):
            size = max(1, at_once // int(counts[alike].max()))
            for begin in range(0, len(alike), size):
                part = alike[begin : begin + size]
                most = int(counts[part].max())  # more than are predicted at once: then of a single model
                for first in range(0, most, at_once):
                    yield part, first, min(first + at_once, most)

    def _alike(self, counts: Ints) -> list[Ints]:
        """The models with similar numbers of samples, of `counts` (n,)."""
        if self._predictor.dense and len(counts) > 0 and counts.max() < PADDING * counts.min():
            return [np.arange(len(counts))]  # all alike, as in most groups
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0]
        if len(order) == 0:
            return []
        if not self._predictor.dense:
            return np.split(order, len(order))
        size = np.log(counts[order[0]] / counts[order]) // np.log(PADDING)
        return np.split(order, np.flatnonzero(np.diff(size)) + 1)

    def _logits(self, parameters: Tensor, rows: Ints, counts: Ints) -> tuple[Tensor, Tensor]:
        """The outputs of each of m models (m, P) on its samples, and their targets, a row for each sample."""
        if self._predictor.dense:
            return self._predictor.of_each(parameters, rows, counts)
        reader, model = self._predictor.reader, self._predictor.model
        named, features = model.named(parameters[0]), inputs(reader, rows, parameters.dtype)
        return model.logits(named, features, "scoring"), model.objective.targets(reader, rows)
