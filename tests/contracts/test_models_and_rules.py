"""What every registered model and local rule keeps to; these need torch."""

from __future__ import annotations

import pytest
import torch

from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.models import MODELS
from executor.rules import RULES
from executor.rules.base import LocalRun

ROWS, WIDTH = 3, 5


@pytest.mark.parametrize("sample_shape", [(8, 8), (28, 28), (3, 32, 32)])
@pytest.mark.parametrize("name", MODELS.names())
def test_a_model_gives_a_logit_for_each_label_and_starts_as_its_seed_says(name, sample_shape):
    part = MODELS.find(name)
    model = FlatModel(part(part.Parameters()), sample_shape, num_labels=7)
    assert model.num_parameters > 0
    first = model.initial(RandomStreams(1), 0)
    assert first.shape == (model.num_parameters,)
    assert first.tobytes() == model.initial(RandomStreams(1), 0).tobytes()
    assert first.tobytes() != model.initial(RandomStreams(1), 1).tobytes()
    assert first.tobytes() != model.initial(RandomStreams(2), 0).tobytes()
    features = torch.linspace(-1, 1, 4 * int(torch.tensor(sample_shape).prod())).reshape(4, *sample_shape)
    logits = model.logits(model.named(torch.tensor(first)), features)
    assert logits.shape == (4, 7)
    # Each sample on its own: nothing leaks from one to another.
    alone = model.logits(model.named(torch.tensor(first)), features[2:3])
    torch.testing.assert_close(logits[2:3], alone)


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def answers(name: str, rows: list[int]) -> torch.Tensor:
    """What the rule makes of three gradients in a row, for some of the tasks."""
    part = RULES.find(name)
    rule = part(part.Parameters())
    received = numbers(ROWS, WIDTH, seed=0)[rows]
    run = LocalRun(
        received=received,
        present=received.clone(),
        settings={"learning_rate": torch.tensor([[0.5], [0.25], [0.125]])[rows]},
    )
    rule.begin(run)
    made = []
    for step in range(3):
        made.append(rule.correct(run, numbers(ROWS, WIDTH, seed=10 + step)[rows]).clone())
        run.present.sub_(made[-1])
        run.step += 1
    assert torch.equal(run.received, received), "the received model is not a rule's to change"
    return torch.stack(made, dim=1)


@pytest.mark.parametrize("name", RULES.names())
def test_a_rule_treats_each_task_as_if_it_were_alone(name):
    together = answers(name, [0, 1, 2])
    assert together.shape == (ROWS, 3, WIDTH)
    assert torch.isfinite(together).all()
    for row in range(ROWS):
        assert torch.equal(answers(name, [row])[0], together[row])


@pytest.mark.parametrize("name", RULES.names())
def test_a_rule_answers_the_same_twice_and_draws_from_no_global_generator(name):
    before = torch.get_rng_state()
    assert torch.equal(answers(name, [0, 1, 2]), answers(name, [0, 1, 2]))
    assert torch.equal(torch.get_rng_state(), before)


def test_there_is_an_optimiser_to_end_a_chain_with():
    assert any(part.is_optimiser for _, part in RULES)
