"""What is wrong with a module is said in one line, before anything is trained."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from emulator.errors import ConfigurationError
from tests.executor.fakes import FakeReader, Ready, executor, module
from tests.executor.modules import broken

LINES = {
    "TooFewOutputs": r"makes \(3, 3\); an argument named num_outputs gets that number$",
    "OtherShape": r"does not take 3 samples of shape \(8, 8\), in layer 'fc' \(Linear\): RuntimeError: mat1",
    "SecondArgument": r"forward must take the samples and nothing else .*positional argument: 'mask'",
    "MovingBuffer": r"training changes its 'seen', which no update carries",
    "Counting": r"training changes its 'temperature', which no update carries",
    "Listing": r"training answers otherwise when repeated",
    "Closure": r"computes with layers that are not its own: a function that was made",
    "Complex": r"its parameter 'w' is torch\.complex64; must be torch\.float32",
    "UnknownDraw": r"draws by randperm: it has no repeatable numbers here",
    "Gumbel": r"draws by rrelu_with_noise, in layer 'act' \(RReLU\): it has no repeatable numbers",
    "BatchDependent": r"depends on the others in its batch \(batch norm without running statistics: norm\)",
    "NanAtTheStart": r"its parameter 'fc\.bias' is not finite at the start",
    "FloatTokens": r"samples are floats, and it looks them up as token ids, in layer 'emb' \(Embedding\)",
    "AlwaysDrops": r"draws in evaluation mode, by bernoulli_; draw only while self\.training",
    "PlainAttribute": r"the tensor 'scale' is a plain attribute; register it",
    "Momentumless": r"momentum = None in layer 'norm' \(BatchNorm1d\)",
    "Checkpointed": r"computes layer 'body' again as it goes back, as torch\.utils\.checkpoint does",
    "Squeezed": r"makes \(4,\) of a single sample, and must make \(1, 4\): a squeeze\(\) drops the axis",
    "Infinite": r"must make logits that are finite floats of its first samples",
    "Nothing": r"nothing of it trains",
    "Pair": r"must make outputs of shape \(3, 4\).* makes tuple",
    "Raises": r"ValueError: no such thing",
}


@pytest.mark.parametrize("name", LINES)
def test_a_module_that_cannot_be_trained_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigurationError, match=LINES[name]) as refused:
        executor(FakeReader(sample_shape=(8, 8)), module(getattr(broken, name)))
    assert str(refused.value).startswith(f"model 'tests.executor.modules.broken:{name}': ")
    assert "\n" not in str(refused.value)


def test_a_model_is_shown_samples_of_the_trace() -> None:
    """As its user knows them: of a trace in [0, 1] a root has values."""

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.fill = nn.Linear(6, 4), float("nan")

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.fc(features.sqrt())
            return scores

    class Known(FakeReader):
        def __len__(self) -> int:
            return self.rows

    reader = Known()
    with pytest.raises(ConfigurationError, match="finite"):
        executor(reader, module(Root))
    reader.x = np.abs(reader.x)
    assert executor(reader, module(Root)).probed.head == "fc"


def test_a_recipe_may_have_constants_beside_batch_norm() -> None:
    spec = Ready(nn.Flatten, partial(nn.BatchNorm1d, 6), partial(Shifted, 6), partial(nn.Linear, 6, 4))
    assert list(executor(FakeReader(), spec).layout)[-2:] == ["1.running_mean", "1.running_var"]


def test_a_layer_may_get_its_input_by_name() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.fc(input=features)
            return scores

    assert executor(FakeReader(), module(Named)).strategy == "stacked"


class Shifted(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.arange(float(size)))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        moved: torch.Tensor = features + self.shift
        return moved


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            {"num_label": 4},
            r"unknown argument 'num_label'; its arguments: d, num_labels; did you mean 'num_labels'",
        ),
        ({"d": 64, "wide": 1}, r"unknown argument 'wide'"),
    ],
)
def test_an_argument_that_the_module_has_not_is_refused(arguments: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        module(broken.Base, **arguments)
