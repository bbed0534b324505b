"""Held-out samples: those of a client that decide when its training stops, and that it never trains on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams, uniforms
from executor.inference.prediction import Predictor

PADDING = 2
"""By what factor the samples of clients that are scored side by side may differ in number."""


@dataclass(frozen=True)
class HeldOut:
    """Holds out a share of all samples, each by a key of its own.

    Whether a sample is held out follows from the seed and the sample alone, so that it stays so whatever
    else its client holds, and also when it is sent anew. Of several samples of a client the one whose random
    number is the largest is always trained on, so that no client is left without any.
    """

    share: float
    reader: SampleReader
    streams: RandomStreams

    def split(self, samples: SampleRanges, request: int) -> Bools:
        """(k,) which of the k samples of a request are held out, in the order of its ranges."""
        rows = samples.rows(request)
        if len(rows) == 0:
            return np.zeros(0, dtype=np.bool_)
        keys = self.reader.sample_keys(rows)
        number = uniforms(self.streams.keys("held out", keys[:, 0], keys[:, 1]))[:, 0]
        held = number < self.share
        held[number.argmax()] = False
        return held


class HeldOutLosses:
    """The losses of models on the held-out samples of their clients."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    @torch.inference_mode()
    def sums(self, parameters: Tensor, rows: Ints, counts: Ints) -> Tensor:
        """(n,) the sum of the losses of each of n models over the samples of its own, in double precision.

        Args:
            parameters: Tensor of shape (n, P).
            rows: (sum of `counts`,) the table rows of the first model's samples, then of the next one's.
            counts: (n,) the number of samples of each.
        """
        sums = torch.zeros(len(counts), dtype=torch.float64)
        ends = np.cumsum(counts)
        for members in self._parts(counts):
            of_part = [rows[ends[member] - counts[member] : ends[member]] for member in members.tolist()]
            logits, labels = self._logits(parameters[members], np.concatenate(of_part), counts[members])
            losses = functional.cross_entropy(logits, labels, reduction="none").double()
            of_models = torch.split_with_sizes(losses, counts[members].tolist())
            sums[members] = torch.stack([of_model.sum() for of_model in of_models])
        return sums

    def _parts(self, counts: Ints) -> list[Ints]:
        """The models that are scored side by side: those with similar numbers of samples, `counts` (n,)."""
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0]
        if len(order) == 0:
            return []
        if not self._predictor.dense:
            return np.split(order, len(order))
        size = np.log(counts[order[0]] / counts[order]) // np.log(PADDING)
        return np.split(order, np.flatnonzero(np.diff(size)) + 1)

    def _logits(self, parameters: Tensor, rows: Ints, counts: Ints) -> tuple[Tensor, Tensor]:
        """The logits (b, num_labels) of each of m models (m, P) on its samples, and their labels (b,)."""
        if self._predictor.dense:
            return self._predictor.of_each(parameters, rows, counts)
        reader, model = self._predictor.reader, self._predictor.model
        features = torch.from_numpy(reader.features(rows)).to(parameters.dtype)
        return model.logits(model.named(parameters[0]), features), torch.from_numpy(reader.labels(rows))
