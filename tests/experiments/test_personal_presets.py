"""The presets of personal/: who changes, and when."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from emulator.arrays import Ints
from experiments import build
from experiments.config import parse_experiment
from experiments.locating import locator
from experiments.reading import read_table
from traces.onsets import is_mass_event
from traces.trace import Trace

DATA = Path(os.environ.get("DRIFTSCALE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

PAIRS = [(1, 2), (3, 4), (5, 6)]


def trace_of(preset: str) -> Trace:
    path = Path(build.__file__).with_name("configs") / "personal" / f"{preset}.toml"
    folders = (DATA,) if DATA.is_dir() else ()
    return build.build_world(parse_experiment(read_table(path), preset), 0, locator(folders, path)).trace


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "groups"), [("fashion", [7, 7, 6]), ("fashion-phones", [34, 33, 33])])
def test_three_groups_of_clients_each_swap_a_pair_of_labels_in_round_100(
    preset: str, groups: list[int]
) -> None:
    if not (DATA / "fashion_mnist").is_dir():
        pytest.skip(f"no Fashion-MNIST at {DATA}; set DRIFTSCALE_DATA to its folder")
    trace = trace_of(preset)
    assert trace.concepts is not None
    onset = 100 // trace.rounds_per_step
    assert not trace.concepts[:onset].any()
    assert (trace.concepts[onset:] == trace.concepts[onset]).all()
    assert sorted(np.bincount(trace.concepts[onset])[1:].tolist(), reverse=True) == groups
    clients = np.arange(trace.num_clients)
    before, after = (_counts(trace, step) for step in (onset - 1, onset))
    pairs = []
    for concept in (1, 2, 3):
        members = clients[trace.concepts[onset] == concept]
        # What they held, with a pair swapped, is part of what they hold now: a further part has arrived.
        fitting = [pair for pair in PAIRS if (after[members] >= _swapped(before[members], pair)).all()]
        pairs += fitting
    assert sorted(pairs) == PAIRS
    assert (after.sum(axis=1) > before.sum(axis=1)).all()


def test_the_drift_of_digits_is_half_way() -> None:
    trace = trace_of("digits")
    assert trace.onsets is not None
    steps, counts = trace.onsets.by_step()
    mass = steps[is_mass_event(counts, trace.num_clients)]
    assert mass.tolist() == [100 // trace.rounds_per_step]
    assert counts[steps == mass[0]][0] >= 90


def _counts(trace: Trace, step: int) -> Ints:
    """(clients, labels) the training samples of each label that clients hold at a data step."""
    held = trace.held(np.arange(trace.num_clients), "train", step)
    labels = [trace.labels(held.rows(client)) for client in range(trace.num_clients)]
    return np.array([np.bincount(of_one, minlength=trace.num_labels) for of_one in labels])


def _swapped(counts: Ints, pair: tuple[int, int]) -> Ints:
    swapped = counts.copy()
    swapped[:, list(pair)] = counts[:, list(pair[::-1])]
    return swapped
