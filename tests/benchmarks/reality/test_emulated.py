from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.reality.comparing import BAR, EMULATOR, MUTANTS, error, predictions
from benchmarks.reality.emulated import Emulated, emulate, work

FLEETS = ("alike", "computing", "links")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Emulated]:
    """A run over each fleet, on a machine that takes 30 microseconds for a sample."""
    return {name: emulate(name, tmp_path_factory.mktemp(name), 3e-5) for name in FLEETS}


def compute_s(run: Emulated) -> np.ndarray:
    return run.visits.compute_s.to_numpy().reshape(len(run.rounds), -1)


@pytest.mark.slow
@pytest.mark.parametrize("fleet", FLEETS)
def test_the_log_has_rounds_as_predicted_of_at_least_four_and_a_half_seconds(
    fleet: str, runs: dict[str, Emulated]
) -> None:
    run = runs[fleet]
    round_s = (run.rounds.closed_s - run.rounds.dispatched_s).to_numpy()
    assert round_s == pytest.approx(predictions(run.fleet, run.visits, compute_s(run))[EMULATOR])
    transfers_s = predictions(run.fleet, run.visits, 0 * compute_s(run))[EMULATOR]
    assert len(round_s) == 21
    assert transfers_s.min() > 4.5  # so that they are, however fast the machine is


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_fleet_tells_each_mutant_from_the_emulator_by_twice_the_bar(
    mutant: str, runs: dict[str, Emulated]
) -> None:
    by_fleet = [predictions(run.fleet, run.visits, compute_s(run)) for run in runs.values()]
    assert max(error(seconds[EMULATOR], seconds[mutant])["median"] for seconds in by_fleet) > 2 * BAR


@pytest.mark.slow
def test_a_prediction_is_written_for_every_visit(tmp_path: Path) -> None:
    run = emulate("links", tmp_path, 3e-5)
    written = pd.read_csv(tmp_path / "prediction.csv")
    assert len(written) == len(run.visits) == 21 * 6
    assert written.compute_s.to_numpy() == pytest.approx(run.visits.compute_s.to_numpy())


@pytest.mark.slow
def test_flower_is_given_the_devices_of_clients_and_their_work(runs: dict[str, Emulated]) -> None:
    run = runs["computing"]
    arrays = work() | run.work(3e-5)
    assert sorted(arrays["times_as_slow"]) == pytest.approx([10, 15, 20, 25, 30, 40, 60, 80])
    assert arrays["participants"].shape == (21, 6)
    assert arrays["features"].shape == arrays["tests"].shape == (8, 200, 64)
    assert arrays["labels"].shape == arrays["test_labels"].shape == (8, 200)
    assert len(arrays["initial"]) == 64 * 512 + 512 + 512 * 10 + 10
    samples = arrays["local_steps"] * arrays["batch_size"]
    assert compute_s(run)[0] == pytest.approx(
        samples * arrays["times_as_slow"][arrays["participants"][0]] * 3e-5
    )
