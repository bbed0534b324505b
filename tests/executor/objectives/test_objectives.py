"""Losses and hits of each objective, against numpy and by hand, and what their runs must not depend on."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan, Updates
from emulator.plugins import NoSettings
from executor.inference import prediction
from executor.objectives import OBJECTIVES
from executor.objectives.base import Objective
from executor.objectives.next_token import NONE
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from experiments.contracts import check_objective
from tests.executor.fakes import FakeReader, executor, model, module, objective, requests, rule, wave
from tests.executor.training.by_strategy import trained

CASES, VOCABULARY, LENGTH, TARGETS = 200, 7, 6, 3

KINDS: dict[str, Objective] = {
    "labels": objective("labels"),
    "next_token": objective("next_token"),
    "multi_label": objective("multi_label"),
    "squared_error": objective("squared_error", tolerance=0.7, unit="MW"),
    "absolute_error": objective("absolute_error", tolerance=0.7),
}


def reader(kind: str) -> FakeReader:
    if kind == "next_token":
        return FakeReader(sample_shape=(LENGTH,), vocabulary=VOCABULARY)
    return FakeReader(num_targets=0 if kind == "labels" else TARGETS)


class Bigram(nn.Module):
    """Logits of the token that follows, for each token by itself."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.embedded = nn.Embedding(num_outputs, 5)
        self.head = nn.Linear(5, num_outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        made: Tensor = self.head(self.embedded(tokens))
        return made


def spec(kind: str):  # type: ignore[no-untyped-def]
    return module(Bigram) if kind == "next_token" else model("mlp", hidden=[5])


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    made: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return made


def by_numpy(kind: str, outputs: Floats, targets: Floats) -> tuple[float, float]:
    """The loss and the hits of one sample, written out."""
    if kind == "labels":
        return -log(softmax(outputs)[targets]), float(outputs.argmax() == targets)
    if kind == "next_token":
        known = [(row, int(token)) for row, token in zip(outputs, targets, strict=True) if token != NONE]
        losses = [-log(softmax(row)[token]) for row, token in known]
        return float(np.mean(losses)), float(np.mean([row.argmax() == token for row, token in known]))
    if kind == "multi_label":
        shares = 1 / (1 + np.exp(-outputs))
        right = np.where(targets == 1, shares, 1 - shares)
        return float(-np.log(right).mean()), float(((outputs > 0) == (targets == 1)).mean())
    off = np.abs(outputs - targets)
    return float((off**2 if kind == "squared_error" else off).mean()), float((off <= 0.7).mean())


def cases(kind: str, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Outputs and targets of `CASES` samples."""
    data, rows = reader(kind), np.arange(CASES)
    of = KINDS[kind]
    shape = of.output_shape(data.sample_shape, of.num_outputs(data))
    outputs = np.random.default_rng(0).normal(0, 2, (CASES, *shape))
    return torch.from_numpy(outputs).to(dtype), of.targets(data, rows)


def test_every_objective_is_checked() -> None:
    assert KINDS.keys() == set(OBJECTIVES.names())


@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_hits_are_those_of_numpy(kind: str) -> None:
    outputs, targets = cases(kind)
    made = zip(*(of(outputs, targets).tolist() for of in (KINDS[kind].losses, KINDS[kind].hits)), strict=True)
    for sample, (loss, hits) in enumerate(made):
        expected = by_numpy(kind, outputs[sample].numpy(), targets[sample].numpy())
        assert (loss, hits) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_counts_by_itself_however_batches_are_cut(kind: str) -> None:
    outputs, targets = cases(kind)
    for of in (KINDS[kind].losses, KINDS[kind].hits, KINDS[kind].errors):
        whole = of(outputs, targets)
        for size in (1, 7, 64):
            parts = [of(outputs[i : i + size], targets[i : i + size]) for i in range(0, CASES, size)]
            assert torch.allclose(torch.cat(parts), whole, rtol=1e-12, atol=1e-12)
        assert torch.equal(of(outputs, targets), whole)
        assert ((whole >= 0) & ((whole <= 1) | (of == KINDS[kind].losses))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_of_a_batch_is_that_of_its_samples(kind: str) -> None:
    outputs, targets = cases(kind)
    mean = KINDS[kind].losses(outputs, targets).mean().item()
    assert KINDS[kind].loss(outputs, targets).item() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_what_is_predicted_predict_the_same(kind: str) -> None:
    outputs, targets = cases(kind)
    again = KINDS[kind].outputs_of(KINDS[kind].predicted(outputs))
    assert torch.allclose(KINDS[kind].losses(again, targets), KINDS[kind].losses(outputs, targets), rtol=1e-9)


def test_padding_is_not_predicted_and_weighs_nothing() -> None:
    data = FakeReader(rows=2, sample_shape=(4,), vocabulary=3)
    data.x = np.array([[1, 2, 0, 0], [1, 2, 1, 2]], dtype=np.float32)
    targets = KINDS["next_token"].targets(data, np.arange(2))
    assert targets.tolist() == [[2, NONE, NONE, NONE], [2, 1, 2, NONE]]
    logits = torch.zeros(2, 4, 3)
    logits[:, 0, 2] = log(2)  # the token that follows the first has half of the probability
    losses = KINDS["next_token"].losses(logits, targets)
    assert losses.tolist() == pytest.approx([log(2), (log(2) + 2 * log(3)) / 3])
    assert KINDS["next_token"].hits(logits, targets).tolist() == pytest.approx([1, 1 / 3])


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy])
def test_padding_moves_no_model(kind: type[ReferenceLoop | StackedStrategy]) -> None:
    longer, shorter = (FakeReader(sample_shape=(size,), vocabulary=VOCABULARY) for size in (9, 4))
    longer.x[:, :4], longer.x[:, 4:] = shorter.x, 0
    made = [
        trained(kind, module(Bigram), data, [rule("sgd")], 3, objective=KINDS["next_token"])
        for data in (longer, shorter)
    ]
    assert np.allclose(made[0], made[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "stacked"])
def test_losses_hits_and_gradients_of_a_text_filled_up_are_those_of_the_text_cut_short(strategy: str) -> None:
    longer, shorter = (FakeReader(sample_shape=(size,), vocabulary=VOCABULARY) for size in (9, 4))
    longer.x[:, :4], longer.x[:, 4:] = shorter.x, 0
    known, asked = spec("next_token"), requests((0, 30), (30, 41))
    made = []
    for data in (longer, shorter):
        trainer = executor(data, known, scored_by=KINDS["next_token"], strategy=strategy)
        models = np.stack([trainer.initial(0), trainer.initial(1)])
        scores = trainer.score(models, asked, frozenset({"loss", "correct"}))
        served = trainer.evaluate(models, InferencePlan.own(2), asked)
        updates = trainer.train(wave(counts=[30, 20], steps=[5, 5]), models, np.arange(2))
        several = (
            scores.loss,
            scores.correct,
            served.loss,
            served.accuracy,
            updates.take(np.arange(2)).delta,
        )
        made.append([*several, trainer.gradients(models[0], asked)])
    for of_longer, of_shorter in zip(*made, strict=True):
        np.testing.assert_allclose(of_longer, of_shorter, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_strategies_agree_in_double_precision(kind: str) -> None:
    rules = [rule("fedprox", mu=0.1), rule("sgd", momentum=0.5)]
    loop, stacked = (
        trained(strategy, spec(kind), reader(kind), rules, chunk, objective=KINDS[kind])
        for strategy, chunk in ((ReferenceLoop, 1), (StackedStrategy, 3))
    )
    assert np.abs(loop).max() > 0.01
    assert np.allclose(loop, stacked, rtol=1e-9, atol=1e-12)


TASKS = wave(counts=[30, 20, 10], steps=[40, 40, 40])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "labels"])
def test_training_lessens_the_loss_and_evaluation_scores_and_gradients_agree(kind: str) -> None:
    trainer = executor(reader(kind), spec(kind), scored_by=KINDS[kind])
    assert trainer.strategy == "stacked"
    start = trainer.initial(0)[None]
    updates: Updates = trainer.train(TASKS, start, np.zeros(3, dtype=np.int64))
    models = start + updates.take(np.arange(3)).delta
    asked = requests((0, 30), (30, 50), (50, 60))
    scores = trainer.score(models, asked, frozenset({"loss", "correct"}))
    before = trainer.score(start, asked, frozenset({"loss"}))
    assert scores.loss is not None
    assert scores.correct is not None
    assert before.loss is not None
    own = np.diag(scores.loss)
    assert (own < before.loss[:, 0]).all()
    served = trainer.evaluate(models, InferencePlan.own(3), asked)
    assert served.loss == pytest.approx(own / scores.counts, rel=1e-5)
    assert served.accuracy == pytest.approx(np.diag(scores.correct) / scores.counts, rel=1e-5)
    twice = InferencePlan(np.repeat(np.arange(3)[:, None], 2, axis=1), np.full((3, 2), 0.5))
    assert trainer.evaluate(models, twice, asked).loss == pytest.approx(served.loss, rel=1e-4)
    along = trainer.gradients(start[0], asked)
    stepped = start - 1e-3 * along[:1]
    after = trainer.score(stepped.astype(np.float32), asked, frozenset({"loss"}))
    assert after.loss is not None
    assert after.loss[0, 0] < before.loss[0, 0]


def test_a_model_for_several_labels_learns_from_samples_that_have_none() -> None:
    data = reader("multi_label")
    data.beside[:] = 0
    for kind in (ReferenceLoop, StackedStrategy):
        made = trained(kind, spec("multi_label"), data, [rule("sgd")], 1, objective=KINDS["multi_label"])
        assert np.isfinite(made).all()


class Bias(nn.Module):
    """Tells the same of each token: three parameters, its logits."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(3))

    def forward(self, texts: Tensor) -> Tensor:
        return self.logits.expand(*texts.shape, 3)


def test_numbers_of_two_models_are_averaged() -> None:
    trainer = executor(reader("squared_error"), model("linear"), scored_by=KINDS["squared_error"])
    models = np.zeros((2, trainer.num_parameters), dtype=np.float32)
    models[0, -TARGETS:], models[1, -TARGETS:] = 1.0, 3.0
    plan = InferencePlan(np.array([[0, 1]]), np.array([[0.75, 0.25]]))  # 0.75 + 0.75 = 1.5
    targets = trainer.reader.targets(np.arange(8))  # type: ignore[attr-defined]
    made = trainer.evaluate(models, plan, requests((0, 8)))
    assert made.loss[0] == pytest.approx(((1.5 - targets) ** 2).mean())
    assert made.accuracy[0] == pytest.approx((np.abs(1.5 - targets) <= 0.7).mean())


def test_of_two_models_of_texts_the_mean_of_their_shares_tells_each_token() -> None:
    """Token 1 has 0.75 x 0.8 + 0.25 x 0.2 = 0.65, and 2 has 0.75 x 0.1 + 0.25 x 0.7 = 0.25; 0 fills up."""
    texts = FakeReader(sample_shape=(3,), vocabulary=3)
    trainer = executor(texts, module(Bias), scored_by=KINDS["next_token"])
    models = np.log([[0.1, 0.8, 0.1], [0.1, 0.2, 0.7]]).astype(np.float32)
    plan = InferencePlan(np.array([[0, 1]]), np.array([[0.75, 0.25]]))
    made = trainer.evaluate(models, plan, requests((0, 8)))
    told = [text[text > 0] for text in texts.features(np.arange(8)).astype(int)[:, 1:]]
    losses = [-np.log(np.array([1, 0.65, 0.25])[each]).mean() if len(each) else 0 for each in told]
    hits = [(each == 1).mean() if len(each) else 0 for each in told]
    assert made.loss[0] == pytest.approx(np.mean(losses), rel=1e-6)
    assert made.accuracy[0] == pytest.approx(np.mean(hits))


def test_an_own_objective_about_tokens_has_outputs_at_each_place() -> None:
    class Last(Objective):
        reads, word = "tokens", "last token right"

        def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return torch.nn.functional.cross_entropy(outputs[:, -2], targets[:, -1], reduction="none")

        def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return (outputs[:, -2].argmax(1) == targets[:, -1]).to(outputs.dtype)

    own = Last(NoSettings())
    assert own.output_shape((3,), own.num_outputs(FakeReader(sample_shape=(3,), vocabulary=2))) == (3, 2)
    check_objective(lambda: Last(NoSettings()))


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("next_token", FakeReader(), r"samples here are no tokens; choices: a trace of tokens"),
        ("multi_label", FakeReader(), "samples here have no targets beside their label; choices: a trace"),
    ],
)
def test_samples_without_what_an_objective_reads_are_refused(
    kind: str, data: FakeReader, problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"training.objective = '{kind}': .*{problem}"):
        KINDS[kind].check(data, kind)


def test_the_strategy_for_labels_is_refused_for_another_objective() -> None:
    with pytest.raises(ConfigurationError, match="Mlp is trained on another objective than labels; use"):
        executor(reader("multi_label"), spec("multi_label"), scored_by=KINDS["multi_label"], strategy="dense")


def test_models_that_are_sure_have_a_finite_loss_together() -> None:
    sure, told = torch.tensor([[40.0, -40.0]], dtype=torch.float64), torch.tensor([[1.0, 1.0]])
    several = KINDS["multi_label"]
    losses = several.losses(several.outputs_of(several.predicted(sure)), told)
    assert losses.item() == pytest.approx(18.0, abs=0.1)  # a probability is kept 2^-52 from 0 and 1: 36 / 2
    texts = KINDS["next_token"]
    never = texts.outputs_of(texts.predicted(torch.tensor([[[0.0, -1e4], [0.0, 0.0]]], dtype=torch.float64)))
    assert texts.losses(never, torch.tensor([[1, NONE]])).isfinite().all()


def test_batches_have_fewer_samples_where_their_outputs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three outputs a sample, of two models: at most 12 outputs are two samples."""
    data = reader("multi_label")
    whole = executor(data, spec("multi_label"), scored_by=KINDS["multi_label"])
    monkeypatch.setattr(prediction, "MOST_OUTPUTS", 4 * TARGETS)
    parts = executor(data, spec("multi_label"), scored_by=KINDS["multi_label"])
    models = np.stack([whole.initial(0), whole.initial(1)])
    assert parts._predictor.batch_of_many(2) == 2
    both = [each.score(models, requests((0, 8)), frozenset({"loss"})).loss for each in (whole, parts)]
    assert both[0] == pytest.approx(both[1])


WORDS: dict[str, Callable[[], str]] = {
    "accuracy": lambda: KINDS["labels"].word,
    "tokens right": lambda: KINDS["next_token"].word,
    "labels right": lambda: KINDS["multi_label"].word,
    "within 0.7 MW": lambda: KINDS["squared_error"].word,
    "within 0.7": lambda: KINDS["absolute_error"].word,
}


@pytest.mark.parametrize("word", WORDS)
def test_hits_are_called_by_their_word(word: str) -> None:
    assert WORDS[word]() == word
