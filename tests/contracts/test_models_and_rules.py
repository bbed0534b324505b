"""What every registered model and local rule keeps to; these need torch."""

from __future__ import annotations

import pytest
import torch

from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.models import MODELS
from executor.rules import RULES
from executor.rules.base import LocalRule, LocalRun, build_chain
from executor.training.layers import Layers

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


@pytest.mark.parametrize("name", MODELS.names())
def test_the_layout_covers_the_vector_and_what_is_not_trainable_has_no_gradient(name):
    part = MODELS.find(name)
    model = FlatModel(part(part.Parameters()), (8, 8), num_labels=3)
    segments = list(model.layout.values())
    assert [segment.first for segment in segments] == [0, *(segment.last for segment in segments[:-1])]
    assert segments[-1].last == model.num_parameters
    assert all(torch.Size(segment.shape).numel() == segment.last - segment.first for segment in segments)
    assert any(segment.trainable for segment in segments)
    for tensor, part in model.module().named_parameters():
        assert part.requires_grad == model.layout[tensor].trainable


@pytest.mark.parametrize("name", MODELS.names())
def test_a_model_that_says_it_is_dense_computes_as_the_dense_layers_do(name):
    part = MODELS.find(name)
    spec = part(part.Parameters())
    if not spec.dense:
        return
    assert spec.stacks
    model = FlatModel(spec, (2, 3), num_labels=4)
    flat = numbers(2, model.num_parameters, seed=1)
    features = numbers(5, 2, 3, seed=2)
    ours = Layers.of(model, flat).activations(features.flatten(1)[None])[-1]
    for row in range(2):
        torch.testing.assert_close(ours[row].T, model.logits(model.named(flat[row]), features))


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def answers(name: str, rows: list[int], state: dict[str, torch.Tensor] | None = None) -> torch.Tensor:
    """What the rule makes of three gradients in a row, for some of the tasks; `state` is carried on."""
    part = RULES.find(name)
    rule = part(part.Parameters())
    received = numbers(ROWS, WIDTH, seed=0)[rows]
    run = LocalRun(
        received=received.clone(),
        present=received.clone(),
        settings={"learning_rate": torch.tensor([[0.5], [0.25], [0.125]])[rows]},
        state={} if state is None else state,
    )
    rule.begin(run)
    begun = dict(run.state)
    made = []
    for step in range(3):
        made.append(rule.correct(run, numbers(ROWS, WIDTH, seed=10 + step)[rows]).clone())
        run.present.sub_(made[-1])
        run.step += 1
    assert torch.equal(run.received, received), "the received model is not a rule's to change"
    assert all(run.state[key] is rows for key, rows in begun.items()), "state is written in place"
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


@pytest.mark.parametrize("name", RULES.names())
def test_what_a_rule_remembers_is_named_after_it_and_starts_at_zero(name):
    part = RULES.find(name)
    rule = part(part.Parameters())
    assert all(key.startswith(f"{name}.") for key in rule.state)
    zeros = build_chain([*([] if rule.is_optimiser else [rule]), optimiser(rule)]).remembered(
        torch.ones(ROWS, WIDTH), {}
    )
    assert {key: tuple(rows.shape) for key, rows in zeros.items() if key in rule.state} == {
        key: (ROWS, WIDTH if slot.shape == "parameters" else 1) for key, slot in rule.state.items()
    }
    own = {key: zeros[key] for key in rule.state}
    assert torch.equal(answers(name, [0, 1, 2], own), answers(name, [0, 1, 2]))


@pytest.mark.parametrize("name", RULES.names())
def test_what_a_rule_remembers_is_all_that_a_later_task_depends_on(name):
    part = RULES.find(name)
    rule = part(part.Parameters())
    kept = {
        key: torch.zeros(ROWS, WIDTH if slot.shape == "parameters" else 1) for key, slot in rule.state.items()
    }
    first = answers(name, [0, 1, 2], kept)
    copies = {key: rows.clone() for key, rows in kept.items()}
    later = answers(name, [0, 1, 2], copies)
    assert torch.equal(later, first) == (not rule.state)


def optimiser(rule: LocalRule) -> LocalRule:
    sgd = RULES.find("sgd")
    return rule if rule.is_optimiser else sgd(sgd.Parameters())


def test_there_is_an_optimiser_to_end_a_chain_with():
    assert any(part.is_optimiser for _, part in RULES)
