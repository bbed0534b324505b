from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from emulator.seeding import RandomStreams
from executor.training.chance import KNOWN, Chances, KeyedChance, UnknownDrawError

KEYS = RandomStreams(5).keys("chance", np.arange(4))
N = 200_000


def uniforms(task: int = 0, epoch: int = 0, step: int = 0, calls: int = 1) -> Tensor:
    """(N,) those of the last of some calls."""
    chance = KeyedChance(KEYS[task], epoch, step)
    for _ in range(calls):
        drawn = chance.uniforms((N,))
    return drawn


def test_numbers_follow_from_the_key_the_epoch_the_step_and_the_call() -> None:
    moments = [{}, {"task": 1}, {"epoch": 1}, {"step": 1}, {"calls": 2}, {"epoch": 1, "step": 1}]
    drawn = [uniforms(**moment) for moment in moments]
    assert all(
        torch.equal(uniforms(**moment), numbers) for moment, numbers in zip(moments, drawn, strict=True)
    )
    together = np.corrcoef(torch.stack(drawn).numpy())
    # Of independent numbers a correlation has the deviation 1 / sqrt(N); five of them are never exceeded.
    assert np.abs(together - np.eye(len(drawn))).max() < 5 / N**0.5


def test_numbers_are_uniform_and_do_not_follow_one_another() -> None:
    drawn = uniforms().numpy().astype(np.float64)
    assert 0 <= drawn.min() < drawn.max() < 1
    counts = np.bincount((drawn * 100).astype(int), minlength=100)
    chi2 = ((counts - N / 100) ** 2 / (N / 100)).sum()
    assert abs(chi2 - 99) < 5 * (2 * 99) ** 0.5
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5 / N**0.5
    assert len(np.unique(drawn)) > 0.99 * N * (1 - N / 2**25)  # of 2^24 values a few come twice


def test_no_stretch_of_one_call_comes_again_in_another() -> None:
    """Counters of all calls are of 2^32 values, so that most overlap; the numbers must not."""
    calls = [KeyedChance(KEYS[0], 0, step).bits((2000,)) for step in range(300)]
    pairs = {tuple(of_call[at : at + 2]) for of_call in calls for at in range(1999)}
    assert len(pairs) == 300 * 1999


def test_a_stack_of_tasks_draws_what_each_draws_alone() -> None:
    stacked = KeyedChance(KEYS, 1, 2)
    for shape in ((5,), (2, 3, 7)):
        alone = [KeyedChance(key, 1, 2) for key in KEYS]
        for chance in alone:
            chance._calls = stacked._calls
        together = stacked.bits((len(KEYS), *shape))
        assert np.array_equal(together, [chance.bits(shape) for chance in alone])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_dropout_drops_its_share_and_scales_the_rest(share: float) -> None:
    with KeyedChance(KEYS[0]):
        kept = functional.dropout(torch.ones(N), share)
    scaled = torch.tensor(1 / (1 - share) if share < 1 else 0.0)
    assert bool(((kept == 0) | torch.isclose(kept, scaled)).all())
    deviation = (share * (1 - share) / N) ** 0.5
    assert (kept == 0).double().mean().item() == pytest.approx(share, abs=5 * deviation)


DRAWS = {
    "bernoulli": lambda: torch.bernoulli(torch.full((N,), 0.25)),
    "bernoulli_": lambda: torch.empty(N).bernoulli_(0.25),
    "exponential_": lambda: torch.empty(N).exponential_(0.5),
    "native_dropout": lambda: torch.native_dropout(torch.ones(N), 0.75, True)[0] / 4,
    "normal_": lambda: torch.empty(N).normal_(2.0, 3.0),
    "rand": lambda: torch.rand(N),
    "rand_like": lambda: torch.rand_like(torch.empty(N)),
    "randn": lambda: torch.randn(N),
    "randn_like": lambda: torch.randn_like(torch.empty(N, dtype=torch.float64)),
    "uniform_": lambda: torch.empty(N).uniform_(-1.0, 3.0),
}
MOMENTS = {
    "bernoulli": (0.25, 0.1875**0.5),
    "exponential_": (2, 2),
    "normal_": (2, 3),
    "randn": (0, 1),
    "uniform_": (1, 4 / 12**0.5),
}
"""The mean and the deviation of what each draws; of the others they are those of uniform numbers."""


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_is_drawn_from_the_key_with_the_right_moments(name: str) -> None:
    before = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with KeyedChance(KEYS[0]) as chance:
            drawn.append(DRAWS[name]().double())
        assert chance.drawn == [name]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*drawn)
    alike = {"bernoulli_": "bernoulli", "native_dropout": "bernoulli", "randn_like": "randn"}
    mean, deviation = MOMENTS.get(alike.get(name, name), (0.5, 1 / 12**0.5))
    assert drawn[0].mean().item() == pytest.approx(mean, abs=5 * deviation / N**0.5)
    assert drawn[0].std().item() == pytest.approx(deviation, rel=0.02)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownDrawError, match=r"^randperm$"), KeyedChance(KEYS[0]):
        torch.randperm(3)


def test_attention_without_dropout_draws_nothing() -> None:
    layer = nn.MultiheadAttention(4, 2, dropout=0.0)
    with KeyedChance(KEYS[0]) as chance:
        layer(*3 * [torch.ones(3, 1, 4)])
    assert chance.drawn == []


def test_without_keys_nothing_is_replaced() -> None:
    with Chances(None).step(0, 0) as nothing:
        assert nothing is None
