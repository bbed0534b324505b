"""How heavy a model is, for the latency model's `model_factor`."""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from executor.models.base import ModelSpec


def forward_flops(spec: ModelSpec, sample_shape: tuple[int, ...], num_labels: int) -> float:
    """Floating-point operations of one sample's forward pass, a multiply-add counted as two.

    Matrix products and convolutions only, as torch's counter counts them; nothing is computed.
    """
    with torch.device("meta"), torch.no_grad():
        module = spec.build(sample_shape, num_labels)
        with FlopCounterMode(display=False) as counter:
            module(torch.empty(1, *sample_shape))
    return float(counter.get_total_flops())
