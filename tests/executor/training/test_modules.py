"""Modules of one's own, as they stand: every strategy that takes one makes the same updates of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from emulator.errors import ConfigurationError, RunError
from executor.executor import LocalExecutor
from executor.flat import FlatModel
from executor.rules.base import LocalRule
from executor.settings import ExecutorSettings
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from tests.executor.fakes import FakeReader, executor, module, rule, wave
from tests.executor.modules.foreign import BNMLP, CharLSTM, MLPDropout, TiedAuto
from tests.executor.modules.zoo import LABELS, ZOO, Kept
from tests.executor.training.by_strategy import STREAMS, UNEQUAL, trained

UNSTACKED = ("ViTTiny", "CharLSTM", "Sent140LSTM", "SensorGRU")  # vmap cannot batch what they are made of


@pytest.mark.parametrize("rules", [[rule("sgd")], [rule("ditto", pull=0.3), rule("sgd", momentum=0.5)]])
@pytest.mark.parametrize(
    "kept", [kept for kept in ZOO if kept.name not in UNSTACKED], ids=lambda kept: kept.name
)
def test_stacked_tasks_are_trained_as_one_by_one(kept: Kept, rules: list[LocalRule]) -> None:
    spec, reader = kept.spec(), kept.reader()
    alone = trained(ReferenceLoop, spec, reader, rules, 1)
    agree = 1e-12 if kept.name in ("BNMLP", "MobileBlockNet") else 1e-9  # of batch norm
    for chunk in (3, 25):
        together = trained(StackedStrategy, spec, reader, rules, chunk)
        assert np.abs(together - alone).max() <= agree * max(1.0, np.abs(alone).max())


@pytest.mark.parametrize("name", ["BNMLP", "MLPDropout"])
def test_own_models_that_mix_outputs_are_those_of_the_loop_with_batch_norm_and_dropout(name: str) -> None:
    """In single precision; statistics, which are in no slot, do not move by the second model."""
    kept = next(kept for kept in ZOO if kept.name == name)
    made = []
    for strategy in ("loop", "stacked"):
        rules = [rule("apfl", mix="outputs", adaptive=True), rule("sgd")]
        local = executor(kept.reader(), kept.spec(), rules, strategy=strategy)
        updates = local.train(UNEQUAL, local.initial(0)[None], np.zeros(len(UNEQUAL), dtype=np.int64))
        made.append((updates.state["apfl.own"], updates.state["apfl.change"], updates.statistics))
    plain = executor(kept.reader(), kept.spec(), strategy="loop")
    alone = plain.train(UNEQUAL, plain.initial(0)[None], np.zeros(len(UNEQUAL), dtype=np.int64))
    assert made[0][2] == pytest.approx(alone.statistics, abs=1e-6)
    for by_loop, stacked in zip(*made, strict=True):
        assert stacked == pytest.approx(by_loop, abs=1e-5)


@pytest.mark.parametrize("kept", ZOO, ids=lambda kept: kept.name)
def test_threads_and_a_second_call_change_no_bit(kept: Kept) -> None:
    made = []
    for threads in (1, 2, 2):
        local = executor(kept.reader(), kept.spec(), threads=threads, chunk=2)
        updates = local.train(UNEQUAL, local.initial(0)[None], np.zeros(len(UNEQUAL), dtype=np.int64))
        assert updates.finite.all()
        made.append((updates.delta.tobytes(), updates.statistics.tobytes()))
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("kept", ZOO, ids=lambda kept: kept.name)
def test_what_vmap_cannot_batch_goes_to_the_loop_and_says_so(kept: Kept) -> None:
    local = executor(kept.reader(), kept.spec())
    if kept.name in UNSTACKED:
        assert (local.strategy, local.reason[:17]) == ("loop", "vmap cannot batch")
        with pytest.raises(
            ConfigurationError, match=r'executor.strategy = "stacked": vmap cannot batch .*"loop"'
        ):
            executor(kept.reader(), kept.spec(), strategy="stacked")
    else:
        assert local.strategy == ("loop" if "convolutions" in local.reason[:14] else "stacked")


def test_a_large_model_of_affine_maps_goes_to_the_loop() -> None:
    """64 x 6,000 + 6,000 + 6,000 x 4 + 4 parameters."""
    local = executor(FakeReader(sample_shape=(64,)), module(MLPDropout, d_in=64, n_classes=4, hidden=6000))
    assert local.reason == "414,004 parameters, more than 250,000"


def plain_loop(spec: nn.Module, reader: FakeReader, batches: Sequence[np.ndarray], rate: float) -> nn.Module:
    """The module after plain descent on these batches, by torch alone."""
    for rows in batches:
        features, labels = (torch.from_numpy(of(rows)) for of in (reader.features, reader.labels))
        spec.zero_grad()
        functional.cross_entropy(spec(features), labels).backward()
        for part in spec.parameters():
            assert part.grad is not None
            part.data -= rate * part.grad
    return spec


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy])
def test_batch_norm_moves_as_in_a_plain_loop_of_torch(kind: type[ReferenceLoop | StackedStrategy]) -> None:
    spec, reader = module(BNMLP, d_in=64, n_classes=LABELS), FakeReader(60, (8, 8))
    tasks = wave(counts=[8, 8], steps=[5, 5], batch_size=8)
    model = FlatModel(spec, (8, 8), LABELS, STREAMS)
    made = trained(kind, spec, reader, [rule("sgd")], 2, tasks, torch.float32)
    for task in range(2):
        ours = model.named(torch.from_numpy(made[task]))
        start = model.named(torch.from_numpy(model.initial(STREAMS, task)))
        plain = BNMLP(64, LABELS)
        plain.load_state_dict({**start, "bn.num_batches_tracked": torch.tensor(0)})
        whole = np.arange(8 * task, 8 * task + 8)  # a batch is all that the client has, in some order
        theirs = plain_loop(plain, reader, [whole] * 5, 0.1).state_dict()
        for name, tensor in ours.items():
            assert torch.allclose(tensor.float(), theirs[name], rtol=1e-4, atol=1e-5), name
        assert (ours["bn.running_var"] - 1).abs().min() > 0  # all have moved


@pytest.mark.parametrize("contiguous", [True, False])
def test_vmap_writes_running_statistics_of_whole_arrays_alone(contiguous: bool) -> None:
    """Why they are copied: what is written to a view of (n, P) is lost without a word."""
    layer, whole = nn.BatchNorm1d(3), torch.zeros(2, 7)
    mean = torch.zeros(2, 3) if contiguous else whole[:, 2:5]
    named = {"weight": torch.ones(2, 3), "bias": torch.zeros(2, 3), "running_var": torch.ones(2, 3)}
    features = torch.arange(30.0).view(2, 5, 3)
    torch.func.vmap(lambda of, x: torch.func.functional_call(layer, of, (x,)))(
        {**named, "running_mean": mean}, features
    )
    assert bool(mean.any()) is contiguous


def test_statistics_that_come_back_before_the_backward_pass_break_it() -> None:
    """Why they come back behind it: parameters and statistics are of one array, with one counter."""
    whole = torch.ones(2, 7)
    weight, mean = whole[:, :3].detach().requires_grad_(), whole[:, 3:6]
    loss = (weight * weight).sum()
    mean.copy_(2 * mean)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy])
def test_the_row_of_padding_is_never_trained(kind: type[ReferenceLoop | StackedStrategy]) -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb, self.fc = nn.Embedding(9, 3, padding_idx=0), nn.Linear(3, LABELS)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.fc(self.emb(ids).sum(1))
            return scores

    reader = FakeReader(60, (6,), LABELS, vocabulary=3)
    made = trained(kind, module(Bag), reader, [rule("sgd")], 3)
    model = FlatModel(module(Bag), (6,), LABELS, STREAMS, integers=True)
    moved = [
        model.named(torch.from_numpy(row - model.initial(STREAMS, task))) for task, row in enumerate(made)
    ]
    assert not any(of["emb.weight"][0].any() for of in moved)
    assert moved[0]["emb.weight"][1:3].all()
    assert not any(of["emb.weight"][3:].any() for of in moved)  # which no sample has


@pytest.mark.parametrize("name", ["MobileBlockNet", "MLPDropout"])
def test_short_batches_go_to_the_loop_if_what_fills_them_up_would_count(name: str) -> None:
    [kept] = [kept for kept in ZOO if kept.name == name]
    local = LocalExecutor(kept.reader(), kept.spec(), [rule("sgd")], STREAMS, last="short")
    assert (local.strategy, "fills up short batches" in local.reason) == ("loop", True)
    stacked = ExecutorSettings(strategy="stacked")
    with pytest.raises(ConfigurationError, match="fills up short batches"):
        LocalExecutor(kept.reader(), kept.spec(), [rule("sgd")], STREAMS, stacked, last="short")


def test_a_batch_of_one_sample_is_refused_where_it_has_no_variance() -> None:
    spec, reader = module(BNMLP, d_in=64, n_classes=LABELS), FakeReader(60, (8, 8))
    local = LocalExecutor(reader, spec, [rule("sgd")], STREAMS)
    one = wave(counts=[9], steps=[1], batch_size=1)
    with pytest.raises(RunError, match="batch norm needs batches of two samples"):
        local.train(one, local.initial(0)[None], np.zeros(1, dtype=np.int64))
    with pytest.raises(
        ConfigurationError, match=r"last = 'short': a last batch of one sample has no variance"
    ):
        LocalExecutor(reader, spec, [rule("sgd")], STREAMS, last="short")


def test_statistics_and_frozen_training_modes_are_those_that_the_module_is_built_with() -> None:
    """As of a pretrained network whose batch norm stays as it was."""

    class Pretrained(BNMLP):
        def __init__(self) -> None:
            super().__init__(64, LABELS, 4)
            self.bn.running_mean.fill_(5)
            self.bn.running_var.fill_(9)

        def train(self, mode: bool = True) -> None:  # type: ignore[override]
            super().train(mode)
            self.bn.eval()

    reader = FakeReader(60, (8, 8))
    model = FlatModel(module(Pretrained), (8, 8), LABELS, STREAMS)
    made = trained(ReferenceLoop, module(Pretrained), reader, [rule("sgd")], 1)
    for row in (model.initial(STREAMS, 0), made[0]):
        assert row[-8:].tolist() == [5] * 4 + [9] * 4


def test_a_parameter_that_is_a_buffer_too_is_trained() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(64, LABELS)
            self.register_buffer("w0", self.fc.weight)

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.fc(features.flatten(1))
            return scores

    model = FlatModel(module(Both), (8, 8), LABELS, STREAMS)
    assert (list(model.layout), model.constants) == (["fc.weight", "fc.bias"], {})
    made = trained(StackedStrategy, module(Both), FakeReader(60, (8, 8)), [rule("sgd")], 3)
    assert (made[0] != model.initial(STREAMS, 0)).mean() > 0.9


def test_sparse_gradients_of_an_embedding_are_added_up_as_others() -> None:
    class Sparse(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb, self.fc = nn.Embedding(9, 3, sparse=True), nn.Linear(3, LABELS)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.fc(self.emb(ids).sum(1))
            return scores

    reader, momentum = FakeReader(60, (6,), LABELS, vocabulary=9), [rule("sgd", momentum=0.5)]
    alone, together = (
        trained(kind, module(Sparse), reader, momentum, 3) for kind in (ReferenceLoop, StackedStrategy)
    )
    assert np.abs(alone - together).max() < 1e-12


def test_an_embedding_is_what_the_layer_that_computes_last_gets() -> None:
    """Not the one that was registered last, and none if its input has no row for each sample."""

    class HeadFirst(nn.Module):
        def __init__(self, turned: bool = False) -> None:
            super().__init__()
            self.head, self.body, self.turned = nn.Linear(8, LABELS), nn.Linear(6, 8), turned

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            inner = self.body(features)
            scores: torch.Tensor = (
                self.head(inner.expand(2, *inner.shape))[0] if self.turned else self.head(inner)
            )
            return scores

    assert executor(FakeReader(), module(HeadFirst)).embedding_size == 8
    with pytest.raises(ConfigurationError, match="no linear layer"):
        _ = executor(FakeReader(), module(HeadFirst, turned=True)).embedding_size


def test_tied_weights_are_one_tensor_of_the_vector() -> None:
    model = FlatModel(module(TiedAuto, d=8, n=LABELS), (8,), LABELS)
    assert list(model.layout) == ["a.weight", "a.bias", "b.bias", "fc.weight", "fc.bias"]


def test_the_initial_values_are_those_that_the_module_is_built_with() -> None:
    """As `nn.Embedding` has it, the row of padding is zeros."""
    model = FlatModel(module(CharLSTM), (6,), 80, STREAMS, integers=True)
    named = model.named(torch.from_numpy(model.initial(STREAMS, 0)))
    assert not named["embeddings.weight"][0].any()
    assert named["embeddings.weight"][1:].std().item() == pytest.approx(1, rel=0.1)
    assert named["lstm.weight_hh_l1"].abs().max() <= 1 / 256**0.5
