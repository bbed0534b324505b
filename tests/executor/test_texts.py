"""Models of texts: what they are told, what they see, and what they come to on texts whose floor is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.ports import Split
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.flat import FlatModel, inputs
from executor.flops import forward_flops
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.objectives.base import Objective
from executor.pretraining import pretrained
from executor.probing import refuse_misfit
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from tests.executor.fakes import FakeReader, model, module, objective, rule
from tests.executor.modules.foreign import CharLSTM
from tests.executor.training.by_strategy import trained
from tests.traces.tiny import context
from traces.arrivals import SPLITS
from traces.sources.markov_text import MarkovText, MarkovTextSettings, author_tables, entropy_rate
from traces.trace import Trace

TEXTS = FakeReader(sample_shape=(7,), vocabulary=5)
NEXT = objective("next_token")
LSTM = model("char_lstm", embedding=3, hidden=4, layers=2)
TRANSFORMER = model("word_transformer", layers=2, heads=2, width=4)
STREAMS = RandomStreams(4)


def flat(spec: ModelSpec, shape: tuple[int, ...] = (7,), vocabulary: int = 5) -> FlatModel:
    return FlatModel(spec, shape, vocabulary, STREAMS, integers=True, objective=NEXT)


def test_the_lstm_has_the_layers_of_leafs_and_a_lookup_of_80_characters() -> None:
    """8 numbers a character; four gates of 256 units, with two biases; and a logit for each character."""
    gates = 4 * 256 * (8 + 256 + 2) + 4 * 256 * (256 + 256 + 2)
    whole = FlatModel(model("char_lstm"), (80,), 80, integers=True, objective=NEXT)
    assert whole.num_parameters == 80 * 8 + gates + 257 * 80


def test_the_flops_are_those_of_the_products_at_each_token() -> None:
    assert forward_flops(LSTM, (7,), 5, integers=True) == 7 * 2 * (16 * (3 + 4) + 16 * (4 + 4) + 4 * 5)
    attention, perceptron = 4 * 12 + 7 * 4 + 7 * 4 + 4 * 4, 2 * 4 * 16
    by_hand = 7 * 2 * (2 * (attention + perceptron) + 4 * 5)
    assert forward_flops(TRANSFORMER, (7,), 5, integers=True) == by_hand


@pytest.mark.parametrize("spec", [LSTM, TRANSFORMER], ids=["lstm", "transformer"])
def test_no_output_depends_on_later_tokens_and_all_depend_on_the_first(spec: ModelSpec) -> None:
    network = flat(spec)
    named = network.named(torch.from_numpy(network.initial(STREAMS, 0)))
    text = torch.tensor([[1, 4, 0, 2, 3, 3, 1]])
    before = network.logits(named, text)
    for place in range(7):
        changed = text.clone()
        changed[0, place:] = (changed[0, place:] + 1) % 5
        after = network.logits(named, changed)
        assert torch.equal(after[0, :place], before[0, :place])
        assert (after[0, place] != before[0, place]).any()
    first = text.clone()
    first[0, 0] = 2
    assert (network.logits(named, first) != before).any(dim=2).all()


def test_the_transformer_looks_tokens_up_in_the_weights_of_its_logits() -> None:
    network = flat(TRANSFORMER)
    assert [name for name, part in network.layout.items() if 5 in part.shape] == ["head.weight"]
    assert network.layout["positions"].shape == (7, 4)


def test_stacked_training_of_the_transformer_equals_the_loop() -> None:
    chain = [rule("fedprox", mu=0.3), rule("sgd", momentum=0.9)]
    ours, theirs = (
        trained(kind, TRANSFORMER, TEXTS, chain, chunk, objective=NEXT)
        for kind, chunk in ((StackedStrategy, 3), (ReferenceLoop, 1))
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


def held_rows(trace: Trace, split: Split) -> Ints:
    """(n,) the rows of the texts of client 0."""
    held = trace.held(np.array([0]), split, 0)
    return np.arange(held.first[0], held.last[0])


def built(spec: ModelSpec, reader: FakeReader, scored_by: Objective = NEXT) -> LocalExecutor:
    return LocalExecutor(reader, spec, [rule("sgd")], STREAMS, objective=scored_by)


@pytest.mark.parametrize("kind", [kind for kind in MODELS.ours() if not MODELS.find(kind).tells_next_token])
def test_models_of_numbers_refuse_tokens_and_name_those_that_take_them(kind: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        built(model(kind), TEXTS)
    assert str(refusal.value) == (
        f"model {kind} takes numbers, and samples here are tokens; choices: char_lstm, word_transformer, or "
        f"a torch module of your own"
    )


@pytest.mark.parametrize("kind", ["char_lstm", "word_transformer"])
def test_models_of_texts_refuse_numbers_other_shapes_and_other_objectives(kind: str) -> None:
    for reader in (FakeReader(), TEXTS):
        with pytest.raises(ConfigurationError) as refusal:
            built(model(kind), reader, objective("labels"))
        assert str(refusal.value) == (
            f"model {kind} tells the next token of texts, and the objective here is about labels; set "
            f"training.objective = 'next_token' with a trace of tokens, or choose another model"
        )
    with pytest.raises(ConfigurationError, match=rf"model {kind} takes texts, .*, not of shape \(2, 3\)"):
        built(model(kind), FakeReader(sample_shape=(2, 3), vocabulary=5))


def test_a_module_of_ones_own_is_tried_on_tokens() -> None:
    refuse_misfit(module(CharLSTM), TEXTS, objective("labels"))


def test_on_texts_of_a_known_chain_the_lstm_beats_bigrams_and_stays_above_the_entropy_rate() -> None:
    """In nats a token; the bigram's counts are of the same training texts, with one of each added."""
    settings = MarkovTextSettings(clients=1, authors=1, length=32, texts=2500, partition="iid")  # type: ignore
    trace = MarkovText(settings).build(context())
    train, test = (held_rows(trace, split) for split in SPLITS)
    network = flat(model("char_lstm", embedding=16, hidden=64, layers=1), (32,), 28)
    steps = {"epochs": 8, "batch_size": 32, "learning_rate": 1.0}
    parameters = pretrained(network, trace, train, STREAMS, **steps)  # type: ignore[arg-type]
    with torch.no_grad():
        logits = network.logits(network.named(torch.from_numpy(parameters)), inputs(trace, test))
        of_lstm = float(NEXT.loss(logits, NEXT.targets(trace, test)))
    counts, known, told = np.ones((28, 28)), inputs(trace, train).numpy(), inputs(trace, test).numpy()
    np.add.at(counts, (known[:, :-1], known[:, 1:]), 1)
    bigram = np.log(counts.sum(axis=1, keepdims=True) / counts)
    of_bigram = float(bigram[told[:, :-1], told[:, 1:]].mean())
    rate = entropy_rate(author_tables(settings, context())[0])
    print(f"{rate=:.3f} {of_lstm=:.3f} {of_bigram=:.3f}")
    assert rate < of_lstm < of_bigram - 0.3
