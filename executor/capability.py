"""What the installed torch was built for: its instruction set, and a GPU that nothing here uses."""

from __future__ import annotations

import torch


def cpu_capability() -> str:
    """The instruction set of torch's kernels here, e.g. AVX2; with another one results differ by rounding."""
    return str(torch.backends.cpu.get_cpu_capability())


def gpu_build() -> str | None:
    """The GPU platform that this torch was built for, such as "CUDA 12.8"; None for a CPU build."""
    for name, platform in (("cuda", "CUDA"), ("hip", "ROCm")):
        if version := getattr(torch.version, name, None):
            return f"{platform} {version}"
    return None
