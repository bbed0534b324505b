"""What torch makes of the CPU."""

from __future__ import annotations

import torch


def cpu_capability() -> str:
    """The instructions that torch's kernels use here, AVX2 say: with others, results differ by rounding."""
    return str(torch.backends.cpu.get_cpu_capability())
