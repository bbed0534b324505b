from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from emulator.own.generators import Generators
from emulator.seeding import RandomStreams

DRAWS: list[tuple[str, Callable[[], object]]] = [
    ("random", random.random),
    ("numpy", lambda: np.random.random(312)),  # noqa: NPY002  after which the position is what it was
    ("numpy", lambda: np.random.normal()),  # noqa: NPY002  which is cached
    ("torch", lambda: torch.rand(1)),
    ("", lambda: RandomStreams(0).generator("mine", 1).normal(size=400)),
]


@pytest.mark.parametrize(("name", "draw"), DRAWS)
def test_a_draw_from_a_global_generator_is_seen_and_one_between_rounds_is_not(
    name: str, draw: Callable[[], object]
) -> None:
    generators = Generators()
    np.random.seed(0)  # noqa: NPY002
    np.random.normal()  # noqa: NPY002  makes two, and caches one
    generators.begin()
    draw()
    assert generators.moved() == [name] * bool(name)
    draw()
    generators.begin()
    assert generators.moved() == []
