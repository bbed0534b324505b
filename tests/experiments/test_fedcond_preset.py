"""The trace of `fedcond`, on images drawn by the test: who has what, when it arrives, and what is noisy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.arrays import Ints
from experiments import build
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.reading import read_table
from tests.experiments.small import write_idx_folder
from traces.trace import Split, Trace

CONFIG = Path(build.__file__).with_name("configs") / "fedcond.toml"
EVERYONE = np.arange(20)
SHARES = np.array([2000, 2750, 3250, 4000]) / 12000
IMAGES = 1000  # of each class, of both published sets together


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    data = tmp_path_factory.mktemp("data")
    write_idx_folder(data / "fashion_mnist", labels=10, train=8_500, test=1_500)
    return build.build_world(experiment(), 0, locator(data, CONFIG)).trace


def experiment() -> Experiment:
    return parse_experiment(read_table(CONFIG), "")


def rows(trace: Trace, split: Split, step: int) -> list[Ints]:
    held = trace.held(EVERYONE, split, step)
    return [held.rows(client) for client in range(20)]


@pytest.mark.parametrize(("split", "share"), [("train", 0.6), ("test", 0.2)])
def test_each_client_has_parts_of_two_classes_a_sixth_to_a_third_of_each(
    trace: Trace, split: Split, share: float
) -> None:
    parts = set(np.rint(SHARES * share * IMAGES).astype(int).tolist())
    for of_client in rows(trace, split, trace.last_step):
        classes, counts = np.unique(trace.labels(of_client), return_counts=True)
        assert len(classes) == 2
        assert all(min(abs(count - part) for part in parts) <= 1 for count in counts.tolist())


def test_data_grow_from_a_tenth_to_a_third_up_to_all(trace: Trace) -> None:
    assert trace.last_step == 99
    sizes = np.array([[len(of_client) for of_client in rows(trace, "train", step)] for step in (0, 50, 99)])
    starts = sizes[0] / sizes[2]
    assert starts.min() > 0.09
    assert starts.max() < 0.34
    assert np.ptp(starts) > 0.1
    half = (1 + starts) / 2  # of a client's images, about half-way
    assert np.abs(sizes[1] / sizes[2] - half).max() < 0.02


@pytest.mark.parametrize("split", ["train", "test"])
def test_half_of_what_two_clients_receive_from_two_fifths_on_is_noisy_in_tests_too(
    trace: Trace, split: Split
) -> None:
    noisy_clients = []
    for client, of_client in enumerate(rows(trace, split, 99)):
        changes = trace.table.feature_changes(of_client)
        assert changes is not None
        noisy, late = changes[0] > 0, trace.table.arrival(of_client) >= 40
        if noisy.any():
            noisy_clients.append(client)
            assert not noisy[~late].any()
            assert abs(int(noisy.sum()) - late.sum() / 2) <= 1
    assert len(noisy_clients) == 2
    assert trace.drifts is not None
    assert sorted(set(trace.drifts.client.tolist())) == noisy_clients
    assert set(trace.drifts.step.tolist()) == {40}


def test_arms_that_lack_a_part_of_fedcond_are_as_it_otherwise() -> None:
    arms = {arm.name: arm.model_dump(exclude={"name", "baseline"}) for arm in experiment().arm}

    def differing(one: str, other: str) -> set[str]:
        return {key for key, value in arms[one].items() if value != arms[other][key]}

    assert differing("fedcond", "fedcond-fixed") == {"detectors", "schedules"}
    assert differing("fedcond-fixed", "fedcond-sgd") == {"solver"}
    assert differing("fedcond", "fedcond-random") == {"selector"}
    assert differing("fedcond", "fedcond-prior") == {"adaptation"}
    assert differing("fedbuff", "fedbuff-fewest") == {"selector"}
    assert differing("fedavg", "fedavg-fewest") == {"selector"}
    assert differing("fedbuff-fewest", "fedcond-sgd") == {"aggregator"}
    assert differing("aso", "aso-4") == {"pacing"}
