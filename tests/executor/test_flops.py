from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from emulator.plugins import NoSettings
from executor.flops import forward_flops
from executor.models.base import ModelSpec
from tests.executor.fakes import model, module


def test_a_linear_model_costs_two_operations_per_weight() -> None:
    assert forward_flops(model("linear"), (28, 28), 10) == 2 * 784 * 10
    assert forward_flops(model("mlp", hidden=[128]), (64,), 10) == 2 * (64 * 128 + 128 * 10)


def test_a_convolution_costs_two_operations_per_weight_and_output_pixel() -> None:
    by_hand = 2 * (9 * 16 * 26**2 + 144 * 32 * 11**2 + 800 * 10)
    assert forward_flops(model("cnn"), (28, 28), 10) == by_hand


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 256, 2, batch_first=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        last: torch.Tensor = self.lstm(features)[0][:, -1]
        return last


def test_a_recurrent_layer_costs_two_operations_per_weight_and_position() -> None:
    """Four gates of 256 units: over 80 positions 2 x 4 x 256 x (8 + 256) and 2 x 4 x 256 x (256 + 256)."""
    by_hand = 80 * 2 * 4 * 256 * (8 + 256 + 256 + 256)
    assert forward_flops(module(Recurrent), (80, 8), 256) == by_hand == 127_139_840


class Attention(ModelSpec):
    """Attention, whose products are in no layer, and one affine map."""

    stacks = False

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        return Attending(sample_shape[-1], num_labels)


class Attending(nn.Module):
    def __init__(self, width: int, num_labels: int) -> None:
        super().__init__()
        self.last = nn.Linear(width, num_labels)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        mixed = nn.functional.scaled_dot_product_attention(samples, samples, samples)
        return self.last(mixed.mean(dim=-2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (model("linear"), (3, 8, 8)),
        (model("mlp", hidden=[30, 20]), (8, 8)),
        (model("masked", inner="mlp"), (8, 8)),
        (model("cnn"), (3, 32, 32)),
        (Attention(NoSettings()), (10, 64)),
    ],
    ids=["linear", "mlp", "masked", "cnn", "attention"],
)
def test_the_count_equals_torchs_on_the_meta_device(spec: ModelSpec, shape: tuple[int, ...]) -> None:
    with torch.device("meta"), torch.no_grad():
        module = spec.build(shape, 10)
        with FlopCounterMode(display=False) as counter:
            module(torch.empty(1, *shape))
    assert forward_flops(spec, shape, 10) == counter.get_total_flops() > 0


class First(nn.Linear):
    """Computes until another thread computes, too, or for a fifth of a second."""

    begun, joined, counted = Event(), Event(), Event()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.begun.set()
        self.joined.wait(0.2)
        return super().forward(features)


class Second(nn.Linear):
    """Computes until `First` is counted."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        First.joined.set()
        assert First.counted.wait(10)
        return super().forward(features)


def switches() -> tuple[bool, ...]:
    return (
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
        torch._C._get_mkldnn_enabled(),
    )


def test_two_threads_that_count_at_once_leave_torch_as_it_was() -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(forward_flops, module(First, in_features=6, out_features=2), (6,), 2)
        first.add_done_callback(lambda _: First.counted.set())
        assert First.begun.wait(10)
        assert forward_flops(module(Second, in_features=6, out_features=2), (6,), 2) == 24 == first.result()
    assert switches() == (True, True, True)


@pytest.mark.slow
def test_counting_does_not_import_torchs_compiler() -> None:
    code = (
        "import sys\n"
        "from executor.flops import forward_flops\n"
        "from executor.models import MODELS\n"
        "cnn = MODELS.find('cnn')\n"
        "forward_flops(cnn(cnn.Settings()), (28, 28), 10)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
