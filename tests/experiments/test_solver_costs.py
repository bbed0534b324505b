"""What solvers cost, to the byte: real runs that differ only in their solver."""

from __future__ import annotations

import pytest

from emulator.storage.runlog import RoundRecord
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.tables.summary import summarise
from tests.experiments.running.played import play
from tests.experiments.small import small

HEAD = 4 * 10 + 10
PARAMETERS = 64 * 4 + 4 + HEAD  # digits of 64 pixels, four hidden units
MODEL_BYTES, HEAD_BYTES = 4 * PARAMETERS, 4 * HEAD
VISITS = 3  # in each of two rounds

SOLVERS = {
    "plain": "sgd",
    "fedprox": ["fedprox", "sgd"],
    "scaffold": ["scaffold", "sgd"],
    "feddyn": ["feddyn", "sgd"],
    "feddc": ["feddc", "sgd"],
    "ditto": ["ditto", "sgd"],
    "apfl": ["apfl", "sgd"],
    "fedper": ["personal_layers", "sgd"],
    "fedrep": [{"kind": "personal_layers", "alternate": True}, "sgd"],
    "lg": [{"kind": "personal_layers", "keep": "body"}, "sgd"],
    "mixed": ["ditto", "scaffold", "sgd"],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    arms = [
        {
            "name": name,
            "solver": solver,
            "aggregator": next(
                (name for name in ("scaffold", "feddyn", "feddc") if name in solver), "fedavg"
            ),
        }
        for name, solver in SOLVERS.items()
    ]
    out = tmp_path_factory.mktemp("solvers")
    experiment = small(
        training={"model": {"kind": "mlp", "hidden": [4]}},
        round={"rounds": 2, "participants": VISITS, "over_commit": 1, "log_visits": True},
        arm=arms,
    )
    assert play(experiment, out).ends == [("done", name, 0) for name in SOLVERS]
    return RunDirectory(out)


def records(played: RunDirectory, arm: str) -> list[RoundRecord]:
    found = played.read_run(arm, 0).records
    assert [len(record.completed) for record in found] == [VISITS, VISITS]
    return found


@pytest.mark.parametrize(
    ("arm", "down", "up"),
    [
        ("plain", MODEL_BYTES, MODEL_BYTES),
        ("fedprox", MODEL_BYTES, MODEL_BYTES),
        ("scaffold", 2 * MODEL_BYTES, 2 * MODEL_BYTES),
        ("feddyn", MODEL_BYTES, MODEL_BYTES),
        ("feddc", 2 * MODEL_BYTES, 2 * MODEL_BYTES),
        ("ditto", MODEL_BYTES, MODEL_BYTES),
        ("apfl", MODEL_BYTES, MODEL_BYTES),
        ("fedper", MODEL_BYTES - HEAD_BYTES, MODEL_BYTES - HEAD_BYTES),
        ("fedrep", MODEL_BYTES - HEAD_BYTES, MODEL_BYTES - HEAD_BYTES),
        ("lg", HEAD_BYTES, HEAD_BYTES),
        ("mixed", 2 * MODEL_BYTES, 2 * MODEL_BYTES),
    ],
)
def test_a_visit_moves_the_bytes_of_its_solver(played: RunDirectory, arm: str, down: int, up: int) -> None:
    found = records(played, arm)
    assert [record.download_bytes for record in found] == [VISITS * down, 2 * VISITS * down]
    assert [record.upload_bytes for record in found] == [VISITS * up, 2 * VISITS * up]
    assert found[-1].control_bytes == records(played, "plain")[-1].control_bytes
    visits = played.read_visits(arm, 0)
    assert visits is not None
    assert visits["download_bytes"].to_pylist() == [down] * 2 * VISITS
    assert visits["upload_bytes"].to_pylist() == [up] * 2 * VISITS


@pytest.mark.parametrize(
    ("arm", "gradients"),
    [
        ("fedprox", 1),
        ("scaffold", 1),
        ("feddyn", 1),
        ("feddc", 1),
        ("ditto", 2),
        ("apfl", 2),
        ("fedper", 1),
        ("lg", 1),
        ("mixed", 2),
    ],
)
def test_a_visit_computes_as_long_as_its_gradients_take(
    played: RunDirectory, arm: str, gradients: int
) -> None:
    plain, other = played.read_visits("plain", 0), played.read_visits(arm, 0)
    assert plain is not None
    assert other is not None
    assert other["client"].to_pylist() == plain["client"].to_pylist()
    compute_s = plain["compute_s"].to_numpy()
    assert (compute_s > 0).all()
    assert other["compute_s"].to_pylist() == (gradients * compute_s).tolist()


@pytest.mark.parametrize("arm", list(SOLVERS))
def test_samples_trained_count_each_gradient_and_models_sent_whole_or_not_count_as_one(
    played: RunDirectory, arm: str
) -> None:
    """Six visits of two steps of four samples each, of twelve clients: 4, or 8 with two gradients."""
    configured = configured_arms(played.experiment())
    alone = summarise(
        [played.read_run(arm, 0)], name="alone", window=1, reference_arm=arm, configured=configured
    )  # alone: with others, the horizon is where the first of them ends
    (row,) = alone.rows
    twice = {"ditto", "apfl", "mixed"}
    assert row["trained_samples_per_client"].per_seed == [8.0 if arm in twice else 4.0]
    assert row["models_trained_per_client"].per_seed == [pytest.approx(1.0, rel=1e-12)]


def test_only_a_solver_that_sends_or_computes_otherwise_is_in_the_header(played: RunDirectory) -> None:
    headers = {arm: played.read_run(arm, 0).header.get("solver") for arm in SOLVERS}
    sent = (PARAMETERS - HEAD) / PARAMETERS
    assert headers == {
        "plain": None,
        "fedprox": None,
        "scaffold": {"uploads": 2.0, "gradients": 1},
        "feddyn": None,
        "feddc": {"uploads": 2.0, "gradients": 1},
        "ditto": {"uploads": 1.0, "gradients": 2},
        "apfl": {"uploads": 1.0, "gradients": 2},
        "fedper": {"uploads": pytest.approx(sent), "gradients": 1},
        "fedrep": {"uploads": pytest.approx(sent), "gradients": 1},
        "lg": {"uploads": pytest.approx(1 - sent), "gradients": 1},
        "mixed": {"uploads": 2.0, "gradients": 2},
    }


def test_the_served_models_of_ditto_and_apfl_are_those_of_plain_descent(played: RunDirectory) -> None:
    plain = [record.accuracy for record in records(played, "plain")]
    for arm in ("ditto", "apfl"):
        found = records(played, arm)
        assert [record.accuracy for record in found] == plain
        assert all(record.personal_accuracy is not None for record in found)
        assert [record.memory_age is not None for record in found] == [True, True]
    assert None not in plain
