"""Faults from the configuration to the log, the summary and the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import experiments
from emulator.errors import ConfigurationError, DataFileError
from emulator.storage.packed import packed
from emulator.storage.runlog import RoundRecord, RunLog, read_log
from experiments.build import World, build_emulation, build_executor, build_world, run_header
from experiments.cli.configurations.check_table import check_facts
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.stopwatch import Stopwatch
from tests.experiments.small import small, small_table

FAULTY: dict[str, Any] = {
    "crash": 0.2,
    "corrupt": 0.2,
    "loss": 0.1,
    "byzantine": [
        {"kind": "sign_flip", "share": 0.25, "scale": 3},
        {"kind": "noise", "share": 0.2},
        {"kind": "label_flip", "share": 0.25},
        {"kind": "misreport", "share": 0.25},
    ],
}
NOWHERE = locator(None, None)


@dataclass
class Records:
    records: list[RoundRecord] = field(default_factory=list)

    def append_visits(self, rows: object) -> None: ...

    def append(self, record: RoundRecord) -> None:
        self.records.append(record)


def play(experiment: Experiment, world: World, arm: int = 0) -> list[RoundRecord]:
    log, chosen = Records(), experiment.arm[arm]
    executor = build_executor(experiment, chosen, world)
    build_emulation(experiment, chosen, world, executor, log, (), Stopwatch()).run()
    return log.records


# -- configuration --------------------------------------------------------------------------------------


def test_faults_survive_being_written_out_and_have_defaults() -> None:
    faulty = small(faults=FAULTY)
    assert parse_experiment(faulty.resolved(), "again") == faulty
    assert small().resolved()["faults"] == {
        "crash": 0.0,
        "corrupt": 0.0,
        "corruption": "nan",
        "loss": 0.0,
        "byzantine": [],
    }


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"crash": 2}, "x.toml: faults.crash = 2: input should be less than or equal to 1"),
        (
            {"byzantine": [{"kind": "lazy", "share": 0.1}]},
            "x.toml: faults.byzantine.0.kind = 'lazy': input should be 'sign_flip', 'noise', 'label_flip' or "
            "'misreport'",
        ),
        (
            {"byzantine": {"kind": "noise", "share": 1.5}},
            "x.toml: faults.byzantine.share = 1.5: input should be less than or equal to 1",
        ),
        (
            {"byzantine": {"kind": "label_flip", "share": 0.1, "scale": 3}},
            "x.toml: faults.byzantine: label_flip has no scale; only sign_flip and noise have",
        ),
        ({"byzantine": 3}, "x.toml: faults.byzantine = 3: must be a list, as in [3]"),
    ],
)
def test_an_invalid_fault_is_refused_in_one_line_with_its_key(faults: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_experiment(small_table(faults=faults), "x.toml")
    assert str(refused.value) == message


def test_settings_reach_the_faults(tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(tomli_w.dumps(small_table(faults=FAULTY)))
    changed = load_experiment(path, ["faults.crash=0.5", "faults.byzantine=[]"])
    assert (changed.faults.crash, changed.faults.byzantine) == (0.5, ())


# -- world and run --------------------------------------------------------------------------------------


def test_only_byzantine_clients_that_flip_labels_hold_flipped_training_samples() -> None:
    plain, faulty = small(), small(faults=FAULTY)
    honest, world = build_world(plain, 0, NOWHERE), build_world(faulty, 0, NOWHERE)
    [flipping] = [group.clients for group in world.faults.byzantine if group.kind == "label_flip"]
    before, after = honest.trace.columns(), world.trace.columns()
    flipped = np.isin(before.client, flipping) & (before.split == 0)
    assert flipped.any()
    assert after.label.tolist() == np.where(flipped, 9 - before.label, before.label).tolist()
    assert honest.fingerprint()["trace"] != world.fingerprint()["trace"]
    assert honest.fingerprint()["fleet"] == world.fingerprint()["fleet"]


@pytest.mark.slow
def test_a_faulty_run_is_repeatable_and_records_its_faults() -> None:
    experiment = small(faults=FAULTY, round={"rounds": 12, "participants": 6})
    first = play(experiment, build_world(experiment, 0, NOWHERE), arm=1)
    again = play(experiment, build_world(experiment, 0, NOWHERE), arm=1)
    assert first == again
    assert any(record.crashed for record in first)
    assert any(record.rejected for record in first)
    for record in first:
        assert set(record.crashed) <= set(record.dropped)
        assert set(record.rejected) <= set(record.completed)


def test_arms_of_a_seed_share_their_faults() -> None:
    arms = [{"name": "mean"}, {"name": "median", "aggregator": "median"}]
    experiment = small(faults=FAULTY, round={"rounds": 8, "participants": 6}, arm=arms)
    world = build_world(experiment, 0, NOWHERE)
    mean, median = (play(experiment, world, arm) for arm in range(2))
    assert [record.crashed for record in mean] == [record.crashed for record in median]
    assert [record.rejected for record in mean] == [record.rejected for record in median]
    assert [record.closed_s for record in mean] == [record.closed_s for record in median]
    assert mean[-1].loss != median[-1].loss


def test_the_header_of_a_log_names_the_byzantine_clients(tmp_path: Path) -> None:
    experiment = small(faults=FAULTY)
    world = build_world(experiment, 0, NOWHERE)
    executor = build_executor(experiment, experiment.arm[0], world)
    path = tmp_path / "log.jsonl"
    RunLog(path, run_header(experiment, experiment.arm[0], world, executor)).close()
    byzantine = read_log(path)[0]["byzantine"]
    assert {kind: ids.tolist() for kind, ids in byzantine.items()} == {
        group.kind: group.clients.tolist() for group in world.faults.byzantine
    }
    plain = build_world(small(), 0, NOWHERE)
    assert "byzantine" not in run_header(experiment, experiment.arm[0], plain, executor)


def test_byzantine_clients_of_a_large_population_are_packed_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    ids = np.arange(0, 5000, 2)
    RunLog(path, {"arm": "a", "byzantine": {"noise": ids}}).close()
    assert isinstance(packed(ids), dict)
    assert read_log(path)[0]["byzantine"]["noise"].tolist() == ids.tolist()


@pytest.mark.parametrize("byzantine", [3, {"noise": "x"}, {"noise": [1, 2, 3], "sign_flip": [4]}])
def test_a_header_with_impossible_byzantine_clients_is_damaged(tmp_path: Path, byzantine: Any) -> None:
    path = tmp_path / "log.jsonl"
    RunLog(path, {"num_clients": 3, "byzantine": byzantine}).close()
    with pytest.raises(DataFileError, match="not the header of a run"):
        read_log(path)


# -- check ----------------------------------------------------------------------------------------------


def test_a_check_shows_the_faults_and_how_many_clients_are_byzantine() -> None:
    experiment = small(faults={**FAULTY, "corruption": "bits"})
    facts = check_facts(experiment, build_world(experiment, 0, NOWHERE))
    assert {key: value for key, value in facts.items() if key.startswith("faults")} == {
        "faults: crash": 0.2,
        "faults: corrupt": "0.2 (bits)",
        "faults: loss": 0.1,
        "faults: sign_flip": "3 clients (scale 3)",
        "faults: noise": "3 clients (scale 1)",
        "faults: label_flip": "3 clients",
        "faults: misreport": "3 clients",
    }
    healthy = small()
    facts = check_facts(healthy, build_world(healthy, 0, NOWHERE))
    assert not any(key.startswith("faults") for key in facts)


# -- the shipped experiment -----------------------------------------------------------------------------


def test_the_shipped_experiment_has_byzantine_clients_and_an_arm_for_each_robust_aggregator() -> None:
    path = Path(experiments.__file__).parent / "configs" / "faults.toml"
    experiment = load_experiment(path, ["round.rounds=3"])
    assert [arm.aggregator.kind for arm in experiment.arm] == [
        "fedavg",
        "median",
        "trimmed_mean",
        "krum",
        "norm_clip",
    ]
    world = build_world(experiment, 0, NOWHERE)
    assert len(world.faults.clients("sign_flip")) == 20
    losses = [play(experiment, world, arm)[-1].loss for arm in range(5)]
    assert len(set(losses)) == 5
