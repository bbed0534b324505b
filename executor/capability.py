"""The CPU instruction set that torch uses."""

from __future__ import annotations

import torch


def cpu_capability() -> str:
    """The instruction set of torch's kernels here, e.g. AVX2; with another one results differ by rounding."""
    return str(torch.backends.cpu.get_cpu_capability())
