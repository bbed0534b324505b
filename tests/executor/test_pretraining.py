from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from emulator.arrays import Floats32, Ints
from emulator.errors import RunError
from tests.executor.fakes import FakeReader, executor, model, module, requests
from tests.executor.modules.foreign import BNMLP, MLPDropout

ROWS = np.arange(0, 40, 2)


def pretrained(reader: FakeReader, seed: int = 3, rows: Ints = ROWS, **settings: float) -> Floats32:
    wanted = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, **settings}
    return executor(reader, model("mlp", hidden=[5]), seed=seed).pretrained(rows, **wanted)


def test_a_full_batch_for_two_passes_is_two_steps_with_momentum_by_hand() -> None:
    """w1 = w0 - r g0, w2 = w1 - r (0.9 g0 + g1), with the gradients of the mean loss over all rows."""
    reader = FakeReader(rows=20)
    trainer = executor(reader, model("mlp", hidden=[5]))
    everything = requests((0, 20))
    before = trainer.initial(0)
    first = trainer.gradients(before, everything)[0]
    after_one = before - np.float32(0.1) * first
    second = trainer.gradients(after_one, everything)[0]
    by_hand = after_one - np.float32(0.1) * (np.float32(0.9) * first + second)
    trained = trainer.pretrained(np.arange(20), epochs=2, batch_size=20, learning_rate=0.1)
    assert trained == pytest.approx(by_hand, abs=1e-6)


def test_it_follows_from_the_seed_and_sees_only_its_rows() -> None:
    reader = FakeReader(rows=40)
    once = pretrained(reader)
    assert np.array_equal(once, pretrained(reader))
    assert not np.array_equal(once, pretrained(reader, seed=4))
    reader.y[1::2] = 0
    reader.x[1::2] = np.nan
    assert np.array_equal(once, pretrained(reader))


def test_the_mask_of_a_masked_model_does_not_move() -> None:
    trainer = executor(FakeReader(rows=40), model("masked"))
    mask = trainer.layout["mask"]
    trained = trainer.pretrained(ROWS, epochs=1, batch_size=8, learning_rate=0.1)
    assert (trained[mask.first : mask.last] == 1).all()


def test_a_reference_model_that_diverges_is_an_error_that_says_what_may_help() -> None:
    reader = FakeReader(rows=40)
    reader.x *= 1e20
    with pytest.raises(RunError, match=r"diverged on its 20 samples; a lower representation\.learning_rate"):
        pretrained(reader, epochs=3, learning_rate=1e6)


@pytest.mark.parametrize("kind", [MLPDropout, BNMLP])
def test_dropout_has_a_stream_of_its_own_and_a_last_sample_joins_the_batch_before(
    kind: type[nn.Module],
) -> None:
    """Of 17 rows the third batch of 8 would be a single one, which batch norm cannot take."""
    spec, state = module(kind, d_in=6, n_classes=4, hidden=5), torch.get_rng_state()
    once, again, other = (
        executor(FakeReader(), spec, seed=seed).pretrained(
            np.arange(17), epochs=2, batch_size=8, learning_rate=0.1
        )
        for seed in (3, 3, 4)
    )
    assert once.tobytes() == again.tobytes() != other.tobytes()
    assert torch.equal(torch.get_rng_state(), state)
