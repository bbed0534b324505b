"""The presets of drift/: who changes when, and how many samples, worked out by hand from the papers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from emulator.arrays import Ints
from experiments import build
from experiments.config import parse_experiment
from experiments.locating import locator
from experiments.reading import read_table
from traces.trace import Trace


def trace_of(preset: str) -> Trace:
    path = Path(build.__file__).with_name("configs") / "drift" / f"{preset}.toml"
    return build.build_world(parse_experiment(read_table(path), preset), 0, locator(None, path)).trace


def concepts_of(trace: Trace) -> Ints:
    assert trace.concepts is not None
    return trace.concepts


def changed(concepts: Ints) -> list[int]:
    """The number of clients with a change, at each data step and in the row of the last tests."""
    return [int((row > 0).sum()) for row in concepts]


@pytest.mark.parametrize(
    ("preset", "by_step"),
    [
        # 200 rounds are 20 data steps; 30 clients. Onset at half of the run, as in the paper (500 of 1,000).
        ("flash-sudden", [0] * 10 + [30] * 11),
        # Five nested fifths, every tenth of the run from then on (100 of 1,000).
        ("flash-incremental", [0] * 10 + [6, 6, 12, 12, 18, 18, 24, 24, 30, 30, 30]),
        # Back at four fifths of the run (800 of 1,000).
        ("flash-recurrent", [0] * 10 + [30] * 6 + [0] * 5),
        # 40 epochs of 60 clients: ten change at epoch 10.
        ("dao-sudden", [0] * 10 + [10] * 31),
        ("dao-incremental", [0] * 10 + [6] * 31),
        ("dao-incremental-cumulative", [0] * 10 + [6] * 31),
        # Six and five, of whom none has both.
        ("dao-mixed", [0] * 10 + [11] * 31),
        # 160 rounds are 40 data steps, 20 clients: two, at a tenth, two fifths, seven tenths of the stream.
        ("fedcond-early", [0] * 4 + [2] * 37),
        ("fedcond-middle", [0] * 16 + [2] * 25),
        ("fedcond-late", [0] * 28 + [2] * 13),
    ],
)
def test_presets_change_as_many_clients_at_the_data_steps_of_the_papers(
    preset: str, by_step: list[int]
) -> None:
    concepts = concepts_of(trace_of(preset))
    assert changed(concepts) == by_step
    nested = np.cumsum(concepts > 0, axis=0)
    if "recurrent" not in preset:
        assert ((concepts > 0) == (nested > 0)).all()  # who has changed stays so


def test_half_of_the_clients_swap_every_forty_rounds() -> None:
    concepts = concepts_of(trace_of("own-swaps"))
    moved = [int((now != then).sum()) for then, now in pairwise(concepts)]
    assert moved == [0, 0, 0, 50, 0, 0, 0, 50, 0, 0, 0, 0]  # at steps 4 and 8, of 12


def test_xor_maps_all_labels_of_training_and_test_samples() -> None:
    trace = trace_of("flash-sudden")
    for split in ("train", "test"):
        before, after = (trace.held(np.arange(30), split, step) for step in (9, 10))  # type: ignore[arg-type]
        for client in range(30):
            labels = trace.labels(before.rows(client)), trace.labels(after.rows(client))
            assert np.array_equal(labels[0] ^ 1, labels[1])


@pytest.mark.parametrize("preset", ["dao-incremental", "dao-incremental-cumulative"])
def test_of_n_images_int_of_f_times_n_are_turned_from_epoch_10_to_30(preset: str) -> None:
    trace = trace_of(preset)
    drifting = np.flatnonzero(concepts_of(trace)[-1])
    once: set[int] = set()
    for epoch in range(8, 34):
        held = trace.held(drifting, "train", epoch)
        changes = trace.table.feature_changes(held.rows(0))
        assert changes is not None
        turned = changes[0] > 0  # at epoch 10 the angle is 0, and nothing turns
        expected = 0 if epoch <= 10 else min(int((epoch - 9) / 21 * 100 + 1e-9), 100)
        if preset == "dao-incremental":
            assert int(turned.sum()) == expected
        else:
            # Drawn anew each time: those that were ever turned.
            once |= set(np.flatnonzero(turned).tolist())
            assert expected <= int(turned.sum()) == len(once)
    assert trace.features(trace.held(drifting, "train", 33).rows(0)).shape == (100, 8, 8)


def test_half_of_what_arrives_is_noisy_from_the_onset_on() -> None:
    trace = trace_of("fedcond-middle")
    first, last = trace.table.held(np.flatnonzero(concepts_of(trace)[-1])[:1], 0, 39, 99)
    rows = np.arange(first[0], last[0])
    changes = trace.table.feature_changes(rows)
    assert changes is not None
    noisy, arrival = changes[0] > 0, trace.table.arrival(rows)
    assert not noisy[arrival < 16].any()
    later = arrival >= 16
    assert abs(int(noisy[later].sum()) - later.sum() / 2) <= 1
