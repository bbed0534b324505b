"""Random features: inner products that approach a Gaussian kernel, the same in all runs, and never sent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.models.random_features import RandomFeatures


def spec(**settings: float) -> RandomFeatures:
    return RandomFeatures(RandomFeatures.Settings.model_validate(settings))


def features(module: nn.Module, samples: Tensor) -> Tensor:
    """What the module makes of samples before its last layer."""
    assert isinstance(module, nn.Sequential)
    made: Tensor = module[:2](samples)
    return made


@pytest.mark.parametrize("width", [0.7, 2.0])
def test_inner_products_approach_a_gaussian_kernel(width: float) -> None:
    """Of D features by about 1 / sqrt(D)."""
    samples = torch.randn(30, 2, 3, generator=torch.Generator().manual_seed(1))
    made = features(spec(features=20_000, width=width).build((2, 3), num_outputs=3), samples)
    squared = torch.cdist(samples.flatten(1), samples.flatten(1)) ** 2
    assert (made @ made.T - torch.exp(-squared / (2 * width**2))).abs().max() < 5 / 20_000**0.5


def test_without_a_width_it_is_a_quarter_of_the_root_of_the_number_of_features() -> None:
    samples = torch.ones(1, 8, 8)
    by_default, given = (spec(**width).build((8, 8), 10) for width in ({}, {"width": 2.0}))
    assert torch.equal(features(by_default, samples), features(given, samples))


def test_features_are_those_of_all_runs_and_only_the_last_layer_is_sent() -> None:
    one, other = (FlatModel(spec(features=5), (2, 3), 3, RandomStreams(seed)) for seed in (0, 1))
    assert one.num_parameters == 3 * 5 + 3
    assert list(one.layout) == ["2.weight", "2.bias"]
    built = [spec(features=5).build((2, 3), 3) for _ in range(2)]
    samples = torch.randn(4, 2, 3)
    assert torch.equal(*(features(module, samples) for module in built))
    assert not np.array_equal(one.initial(RandomStreams(0), 0), other.initial(RandomStreams(1), 0))
