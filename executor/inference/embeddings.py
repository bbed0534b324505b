"""The mean embedding of each request's samples: the input of one model's last layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from emulator.arrays import Floats32, Ints
from emulator.messages import SampleRanges
from executor.inference.prediction import EVALUATION_BATCH, Predictor
from executor.parallel import Threads
from executor.ranges import rows_of, slabs

SLAB = 4 * EVALUATION_BATCH  # samples


def embeddings(
    predictor: Predictor,
    threads: Threads,
    parameters: Floats32,
    samples: SampleRanges,
    wanted: Sequence[Ints],
) -> Floats32:
    """(n, D) the mean embedding, at the model with `parameters` (P,), of each of n requests for `samples`.

    `wanted`: some of the slabs that `cut` returns; only their requests are computed, and the others' rows are
    zero, as are those of requests without samples.
    """
    means = np.zeros((len(samples), predictor.model.embedding_size), dtype=np.float32)

    def embed_slab(requests: Ints) -> None:
        rows, counts = rows_of(samples, requests)
        owner = torch.from_numpy(np.repeat(np.arange(len(requests)), counts))
        sums = torch.zeros(len(requests), means.shape[1], dtype=torch.float64)

        def add(part: slice, embedded: torch.Tensor, labels: torch.Tensor) -> None:
            sums.index_add_(0, owner[part], embedded.double())

        predictor.embed(parameters, rows, add)
        means[requests] = sums.numpy() / np.maximum(counts, 1)[:, None]

    threads.run(embed_slab, wanted)
    return means


def cut(counts: Ints) -> list[Ints]:
    """The requests of each slab, for embeddings and gradients; `counts` (n,) has each one's samples."""
    return list(slabs(counts, SLAB))
