from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.training import Network, Samples
from emulator.arrays import Bools, Ints
from emulator.counts import LastBatch
from emulator.messages import SampleRanges
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.inference.prediction import Predictor
from executor.settings import Batches
from executor.training import held_out as of_samples
from executor.training.batches import task_batches
from executor.training.held_out import HeldOut, HeldOutLosses
from tests.executor.fakes import FakeReader, model, of_probabilities, requests, wave
from tests.traces.tiny import some_images, trace_of
from traces.changes.changed import with_changes
from traces.changes.settings import Change

STREAMS = RandomStreams(6)
NETWORK = Network("mlp", {"hidden": (4,)}, (6,), num_labels=3)
BENCHED = Samples(NETWORK, 400)


class Keyed(FakeReader):
    """Rows whose samples have these `keys`, so that their order and their clients can be others."""

    def __init__(self, keys: Sequence[int]) -> None:
        super().__init__(rows=len(keys))
        self.keys = np.array(keys)

    def sample_keys(self, rows: Ints) -> Ints:
        return super().sample_keys(self.keys[rows])


def split(keys: Sequence[int], share: float = 0.3, seed: int = 6, spans: SampleRanges | None = None) -> Bools:
    """(k,) whether each of k samples that one client holds is held out."""
    held_out = HeldOut(share, Keyed(keys), RandomStreams(seed))
    return held_out.split(spans or requests((0, len(keys))))[0]


def test_whether_a_sample_is_held_out_follows_from_the_seed_and_the_sample() -> None:
    roles = split(range(200))
    assert np.array_equal(split(range(200)), roles)
    backwards = range(199, -1, -1)
    assert np.array_equal(split(backwards), roles[backwards])
    some = np.flatnonzero(np.arange(200) % 3 == 0)
    assert np.array_equal(split(some.tolist()), roles[some])
    ranges = SampleRanges(np.array([0, 2]), np.array([120, 0]), np.array([200, 120]), np.ones(2))
    assert np.array_equal(split(range(200), spans=ranges), np.append(roles[120:], roles[:120]))
    assert not np.array_equal(split(range(200), seed=7), roles)


def test_of_many_samples_the_share_is_held_out() -> None:
    for share in (0.05, 0.3, 0.9):
        held = split(range(20_000), share)
        assert abs(held.mean() - share) < 4 * np.sqrt(share * (1 - share) / 20_000)


def test_samples_that_are_held_out_at_a_share_are_held_out_at_a_larger_one() -> None:
    few, many = split(range(500), 0.2), split(range(500), 0.6)
    assert (few <= many).all()


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_client_of_one_sample_trains_on_it(share: float) -> None:
    assert [split([key], share).tolist() for key in range(20)] == [[False]] * 20


def test_a_client_whose_samples_would_all_be_held_out_keeps_the_one_with_the_largest_number() -> None:
    """At a share of almost 1 all but one of each client are held out: in every pair the same sample wins."""
    almost = 1 - 1e-9
    kept = np.flatnonzero(~split(range(6), almost))
    assert len(kept) == 1
    pairs = [sorted({int(kept[0]), other}) for other in range(6) if other != kept[0]]
    assert [pair[int(np.flatnonzero(~split(pair, almost))[0])] for pair in pairs] == [int(kept[0])] * 5


def test_copies_of_a_sample_are_all_trained_on_or_all_held_out() -> None:
    almost = 1 - 1e-9
    assert split([4, 4, 4], almost).tolist() == [False] * 3
    assert split([0, 1, 0, 1, 2], almost).tolist() in (
        [False, True, False, True, True],
        [True, False, True, False, True],
        [True, True, True, True, False],
    )


def test_a_client_without_samples_holds_none_out() -> None:
    assert split([]).shape == (0,)


@pytest.mark.parametrize("what", ["xor", {"noise": 0.5}], ids=["labels", "features"])
def test_a_sample_that_is_sent_anew_is_held_out_if_it_was(what: object) -> None:
    """Both clients get their twelve samples again, changed, in other rows of the table."""
    rows = [(client, split, 0, label) for client in (0, 1) for split in (0, 1) for label in [0, 1, 2, 3] * 3]
    plain = trace_of(rows, images=some_images(4), retain_steps=4, test_then_train=False)
    change = Change.model_validate({"what": what, "on": "held", "at_step": 1})
    trace = with_changes(plain, [change], 3, STREAMS)
    held_out = HeldOut(0.4, trace, STREAMS)
    before, after = (trace.held(np.arange(2), "train", step) for step in (0, 2))
    for client in range(2):
        was, now = before.rows(client), after.rows(client)
        assert not np.isin(was, now).any()
        unchanged = np.array_equal(trace.labels(was), trace.labels(now))
        assert unchanged == (what != "xor")
        assert np.array_equal(held_out.split(after)[client], held_out.split(before)[client])
        assert 0 < held_out.split(before)[client].sum() < 12


def test_a_sample_has_the_same_role_whoever_holds_it() -> None:
    """The second client holds what the first one holds, in another order, and three samples besides."""
    keys = [*range(30), *range(32, -1, -1)]
    spans = requests((0, 30), (30, 63))
    held_out = HeldOut(0.5, Keyed(keys), STREAMS)
    first, second = held_out.split(spans)
    assert np.array_equal(first, second[:2:-1])
    assert 5 < first.sum() < 25


SEVERAL = SampleRanges(np.array([0, 3]), np.array([0, 40, 100]), np.array([30, 70, 102]), np.ones(3))
ONE = requests((10, 80))


@pytest.mark.parametrize(
    ("samples", "batches", "last"),
    [
        (ONE, "reshuffled", "filled"),
        (ONE, "reshuffled", "short"),
        (ONE, "fixed", "filled"),
        (SEVERAL, "reshuffled", "filled"),
        (SEVERAL, "fixed", "filled"),
        (replace(ONE, bootstrap=True), "reshuffled", "filled"),
        (replace(SEVERAL, bootstrap=True), "reshuffled", "filled"),
    ],
)
def test_no_batch_has_a_sample_that_is_held_out(
    samples: SampleRanges, batches: Batches, last: LastBatch
) -> None:
    held = HeldOut(0.5, FakeReader(), STREAMS).split(samples)[0]
    rows = samples.rows(0)
    tasks = replace(wave(counts=[1], steps=[60]), samples=samples)
    drawn = task_batches(tasks, np.array([0]), np.array([60]), STREAMS, batches, last, {0: held})
    assert held.sum() > 10
    assert not np.isin(drawn, rows[held]).any()
    if not samples.bootstrap:
        assert np.isin(rows[~held], drawn).all()


def test_losses_are_summed_over_the_samples_of_each_model() -> None:
    """Models that predict constants, on 1, 3 and 0 samples of labels 0 and 1."""
    reader = FakeReader(rows=4, sample_shape=(1,), num_labels=2)
    reader.y = np.array([0, 1, 1, 0])
    losses = HeldOutLosses(Predictor(reader, FlatModel(model("linear"), (1,), 2), dense=True))
    models = torch.from_numpy(of_probabilities([0.25, 0.75], [0.5, 0.5], [0.1, 0.9]))
    sums = losses.sums(models, np.arange(3), np.split(np.arange(4), [1, 4]))
    assert sums.dtype == torch.float64
    assert sums.tolist() == pytest.approx([np.log(4), 3 * np.log(2), 0.0], rel=1e-6)


@pytest.mark.parametrize("at_once", [1, 50, 1_000_000])
def test_the_held_out_samples_of_a_request_do_not_depend_on_the_others(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(of_samples, "AT_ONCE", at_once)
    samples = SampleRanges(
        np.array([0, 1, 3, 3, 4]), np.array([0, 10, 90, 7]), np.array([30, 50, 101, 8]), np.ones(4)
    )
    rule = HeldOut(0.3, BENCHED, STREAMS)
    together = rule.split(samples)
    for request, flags in enumerate(together):
        keys = BENCHED.sample_keys(samples.rows(request))
        drawn = [STREAMS.keys("held out", *map(int, key))[0, 0] for key in keys]
        expected = np.array([int(number) / 2**64 < 0.3 for number in drawn], dtype=np.bool_)
        if len(drawn) > 0:
            expected[int(np.argmax(np.array(drawn)))] = False
        np.testing.assert_array_equal(flags, expected)
    assert [len(flags) for flags in together] == [30, 51, 0, 1]
    assert not together[3].any()


@pytest.mark.parametrize("numbers", [2**25, 6 * 14, 6 * 4, 1], ids=["all", "two", "a-part", "one-by-one"])
@pytest.mark.parametrize("counts", [[5, 5, 6], [40, 3, 0, 9, 1]])
@pytest.mark.parametrize("dense", [True, False])
def test_losses_are_those_of_each_model_on_its_own_samples(
    monkeypatch: pytest.MonkeyPatch, counts: list[int], dense: bool, numbers: int
) -> None:
    """However many of the samples, of six features each, are predicted at once."""
    monkeypatch.setattr(of_samples, "NUMBERS", numbers)
    flat = FlatModel(NETWORK.spec(), BENCHED.sample_shape, BENCHED.num_labels)
    parameters = torch.stack([torch.from_numpy(flat.initial(STREAMS, number)) for number in range(7)])
    models = np.array([6, 1, 3, 0, 2])[: len(counts)]
    rows = [np.arange(count) + 50 * model for model, count in enumerate(counts)]
    sums = HeldOutLosses(Predictor(BENCHED, flat, dense)).sums(parameters, models, rows)
    for number, of_model in zip(models.tolist(), rows, strict=True):
        features = torch.from_numpy(BENCHED.features(of_model))
        logits = flat.logits(flat.named(parameters[number]), features)
        expected = functional.cross_entropy(
            logits, torch.from_numpy(BENCHED.labels(of_model)), reduction="sum"
        )
        assert float(sums[models.tolist().index(number)]) == pytest.approx(float(expected), rel=1e-5)
