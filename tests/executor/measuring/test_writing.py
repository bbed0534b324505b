"""Modules as source: what constructors are given, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from emulator.errors import ConfigurationError
from emulator.plugins import NoSettings
from executor.measuring.timing import assembled
from executor.measuring.writing import written
from executor.models.base import ModelSpec

LAYERS = [
    nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False, divisor_override=5),
    nn.MaxPool2d(3, ceil_mode=True, dilation=2),
    nn.Conv2d(
        4, 6, (3, 1), stride=2, padding="valid", dilation=2, groups=2, bias=False, padding_mode="circular"
    ),
    nn.Conv2d(4, 6, 3),
    nn.Linear(3, 2, bias=False),
    nn.GroupNorm(2, 4, eps=0.1, affine=False),
    nn.LayerNorm((4, 3), 1e-6, bias=False),
    nn.BatchNorm2d(3, momentum=0.5, track_running_stats=False),
    nn.GELU("tanh"),
    nn.Unflatten(1, (1, 8)),
    nn.Flatten(0),
    nn.ReLU(inplace=True),
    nn.Identity(),
    nn.Sequential(),
]


class Spec(ModelSpec):
    """A recipe of a module that is there, which counts as shipped."""

    Settings = NoSettings
    module: nn.Module = nn.Identity()

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        return self.module


def spec_of(module: nn.Module, of: str = "executor.models.some") -> ModelSpec:
    kind = type("Some", (Spec,), {"module": module, "__module__": of})
    return kind(NoSettings())


def plain(layer: nn.Module) -> dict[str, object]:
    return {key: value for key, value in vars(layer).items() if not isinstance(value, dict | set)}


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_a_layer_of_torch_is_made_again_with_all_that_it_computes_with(layer: nn.Module) -> None:
    text, called = written("some", spec_of(nn.Sequential(layer)), (1,), 2)
    [made] = eval(text, {"nn": nn, "torch": torch, "assembled": assembled})
    assert type(made) is type(layer)
    assert plain(made) == plain(layer)
    shapes = [{key: part.shape for key, part in one.state_dict().items()} for one in (made, layer)]
    assert shapes[0] == shapes[1]
    assert called == []


def test_what_is_the_default_is_not_written() -> None:
    assert (
        "nn.GroupNorm(num_groups=2, num_channels=4),"
        in written("some", spec_of(nn.Sequential(nn.GroupNorm(2, 4))), (1,), 2)[0]
    )


@pytest.mark.parametrize(
    ("module", "of", "kind"),
    [
        (nn.Linear(1, 2), "my_specs", "Linear"),
        (
            nn.Sequential(type("Mine", (nn.ReLU,), {"__module__": "my_nets"})()),
            "executor.models.some",
            "Mine",
        ),
    ],
)
def test_what_is_neither_shipped_nor_the_model_itself_is_refused_with_the_remedy(
    module: nn.Module, of: str, kind: str
) -> None:
    with pytest.raises(ConfigurationError, match=f'a {kind} in a model .*as "my_module:MyModel"'):
        written("some", spec_of(module, of), (1,), 2)
