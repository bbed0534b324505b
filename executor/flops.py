"""The compute cost of a model, for the latency model's `model_factor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from executor.flat import FlatModel
from executor.models.base import ModelSpec


def forward_flops(spec: ModelSpec, sample_shape: tuple[int, ...], num_labels: int) -> float:
    """Floating-point operations of one sample's forward pass, a multiply-add counted as two.

    Counts matrix products and convolutions only, by the formulas of torch's own counter.

    NOTE: a module with uninitialised parameters processes one sample. The meta device would need no
    computation, but there torch imports its compiler for the shapes, which takes longer than most checks of
    a configuration.
    """
    module = FlatModel(spec, sample_shape, num_labels).module()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), _FlopCounter() as counter:
        module(torch.zeros(1, *sample_shape))
    return float(counter.flops)


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

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        out = func(*args, **named)
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **named, out_val=out)
        return out
