from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.errors import ConfigurationError, DataFileError
from executor.flops import forward_flops
from experiments.build import World, build_executor, build_parts, build_world, run_header
from experiments.config import Experiment, locator
from tests.experiments.small import DEVICES, small, write_idx_folder

HOURS_S = 3600.0 * np.arange(0, 48, 5)


def world(experiment: Experiment, seed: int = 0, data: Path | None = None) -> World:
    return build_world(experiment, seed, locator(data, None))


def drawn(world: World) -> list[np.ndarray]:
    """All that is drawn for a world, as arrays."""
    everyone = np.arange(world.trace.num_clients)
    return [
        world.trace.label,
        world.trace.image,
        world.trace.arrival,
        world.trace.features(np.arange(len(world.trace))),
        *world.fleet.columns().values(),
        *(world.availability.online(everyone, time_s) for time_s in HOURS_S),
    ]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> list[bool]:
    return [np.array_equal(a, b) for a, b in zip(one, other, strict=True)]


DRAWN = {"devices": {"profile": "smartphones", "availability": "diurnal"}, "trace": {"noise": 0.5}}


def test_a_seed_names_one_world_and_another_seed_another() -> None:
    experiment = small(**DRAWN)
    first, again, other = (drawn(world(experiment, seed)) for seed in (3, 3, 4))
    assert all(same(first, again))
    assert not any(same(first[:2], other[:2]))
    assert not np.array_equal(first[4], other[4])
    assert not all(same(first[8:], other[8:]))


def test_what_an_arm_is_does_not_touch_the_world_nor_the_first_model() -> None:
    one = small(**DRAWN)
    two = small(**DRAWN, arm=[{"name": "x", "clusterer": "static", "aggregator": "fedavg"}])
    assert all(same(drawn(world(one)), drawn(world(two))))
    shared = world(one)
    np.testing.assert_array_equal(*(build_executor(one, arm, shared).initial(0) for arm in one.arm))


def test_changing_how_long_a_run_is_does_not_change_the_devices() -> None:
    long, short = small(**DRAWN), small(**DRAWN, round={"rounds": 2})
    assert all(same(drawn(world(long))[4:], drawn(world(short))[4:]))


@pytest.mark.parametrize("key", ["participants", "min_online"])
def test_a_round_cannot_ask_for_more_clients_than_there_are(key: str) -> None:
    world(small(round={key: 12}))
    with pytest.raises(ConfigurationError, match=f"^round.{key} = 13: more than the 12 clients"):
        world(small(round={key: 13}))


# -- model_factor -------------------------------------------------------------------------------------------


def test_a_number_as_model_factor_is_taken_as_it_is() -> None:
    assert world(small(devices={"model_factor": 2.5})).model_factor == 2.5


def test_flops_as_model_factor_is_the_models_over_the_reference_models() -> None:
    experiment = small(devices={"model_factor": "flops"})
    built = world(experiment)
    flops = 2 * 64 * 10  # one affine map from 64 pixels to 10 labels
    assert forward_flops(experiment.training.model.build(), (8, 8), 10) == flops
    assert built.model_factor == pytest.approx(flops / built.profile.reference_flops)
    heavier = world(small(devices={"model_factor": "flops"}, training={"model": "mlp"}))
    assert heavier.model_factor > built.model_factor


def test_flops_needs_a_profile_that_knows_its_reference_model(tmp_path: Path) -> None:
    (tmp_path / "phones.csv").write_text(DEVICES)
    table = {"profile": "phones.csv", "model_factor": "flops"}
    with pytest.raises(ConfigurationError) as refused:
        world(small(devices=table), data=tmp_path)
    assert "devices.model_factor" in str(refused.value)
    assert "'phones.csv'" in str(refused.value)
    assert "give a number" in str(refused.value)
    assert world(small(devices={**table, "model_factor": 3}), data=tmp_path).model_factor == 3


def test_the_time_model_of_fedscale_is_blind_to_the_model() -> None:
    assert world(small(devices={"time_model": "fedscale", "model_factor": "flops"})).model_factor == 1


# -- choices ------------------------------------------------------------------------------------------------


def test_a_profile_is_a_name_or_a_file_that_is_found_under_data(tmp_path: Path) -> None:
    (tmp_path / "phones.csv").write_text(DEVICES)
    built = world(small(devices={"profile": "phones.csv"}), data=tmp_path)
    assert built.profile.name == "phones"
    assert set(built.fleet.seconds_per_sample) == {0.01, 0.02, 0.05, 0.1, 0.15}
    with pytest.raises(DataFileError, match=r"gone\.csv: not found; looked for gone\.csv, "):
        world(small(devices={"profile": "gone.csv"}), data=tmp_path)


def test_fedscale_rounds_the_cohort_down_and_we_round_it_up() -> None:
    sizes = []
    for time_model in ("driftscale", "fedscale"):
        experiment = small(devices={"time_model": time_model}, round={"over_commit": 1.25})
        pacing = build_parts(experiment, experiment.arm[0]).pacing
        sizes.append(int(pacing.wanted(pacing.quota(np.array([12])))[0]))
    assert sizes == [4, 3]  # of 3.75


def test_parts_are_fresh_for_every_run() -> None:
    experiment = small()
    fielding = experiment.find_arm("fielding")
    assert build_parts(experiment, fielding).clusterer is not build_parts(experiment, fielding).clusterer


def test_the_header_of_a_log_says_what_the_rounds_are_of(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "letters", labels=4)
    experiment = small(trace={"source": "idx", "folder": "letters"}, executor={"strategy": "loop"})
    arm, shared = experiment.arm[1], world(experiment, 7, data=tmp_path)
    header = run_header(arm, shared, build_executor(experiment, arm, shared))
    assert header == {
        "arm": "fielding",
        "seed": 7,
        "num_clients": 12,
        "num_labels": 4,
        "num_parameters": 4 * (16 + 1),
        "strategy": "loop",
        "model_factor": 1.0,
    }


def test_the_fedscale_time_model_refuses_a_model_factor_it_would_not_use(tmp_path: Path) -> None:
    experiment = small(devices={"time_model": "fedscale", "model_factor": 50})
    with pytest.raises(ConfigurationError, match=r"model_factor = 50: .*blind to the model"):
        world(experiment, 0, data=tmp_path)
