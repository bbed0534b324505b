"""The compute cost of a model, for the latency model's `model_factor`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from executor.flat import FlatModel
from executor.models.base import ModelSpec

SWITCHES = RLock()
"""Held by a thread while it turns switches of torch that are the whole process's, until they are back."""


def forward_flops(
    spec: ModelSpec, sample_shape: tuple[int, ...], num_outputs: int, integers: bool = False
) -> float:
    """Floating-point operations of one sample's forward pass, a multiply-add counted as two.

    Counts matrix products and convolutions only, by the formulas of torch's own counter; recurrent layers and
    attention as the products that they are made of.

    NOTE: a module whose parameters are zeros processes one sample. The meta device would need no computation,
    but there torch imports its compiler for the shapes, which takes longer than most checks of a
    configuration.
    """
    model = FlatModel(spec, sample_shape, num_outputs, integers=integers)
    features = torch.zeros(1, *sample_shape, dtype=torch.int64 if integers else torch.float32)
    named = model.named(torch.zeros(model.num_parameters))
    with torch.no_grad(), _in_products(), model.bound(named, "scoring") as module, _FlopCounter() as counter:
        module(features)
    return float(counter.flops)


@contextmanager
def _in_products() -> Iterator[None]:
    """Context in which layers compute by matrix products, and not by functions of their own."""
    with SWITCHES:
        fast, mkldnn = torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        torch._C._set_mkldnn_enabled(False)  # torch.backends.mkldnn.flags sets more, and warns
        try:
            with sdpa_kernel(SDPBackend.MATH):
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            torch._C._set_mkldnn_enabled(mkldnn)


class _FlopCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that counts floating-point operations in `flops`, as torch's `FlopCounterMode` does.

    Unlike that one, it does not import torch's compiler.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # with True, torch imports dynamo in order to skip it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        out = func(*args, **named)
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **named, out_val=out)
        return out
