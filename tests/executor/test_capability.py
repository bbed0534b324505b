"""What the installed torch was built for."""

from __future__ import annotations

import pytest
import torch

from executor.capability import gpu_build


@pytest.mark.parametrize(
    ("cuda", "hip", "platform"),
    [(None, None, None), ("12.8", None, "CUDA 12.8"), (None, "6.4", "ROCm 6.4")],
)
def test_a_gpu_build_is_named_and_a_cpu_build_is_none(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, hip: str | None, platform: str | None
) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", hip, raising=False)
    assert gpu_build() == platform
