"""A run that was stopped and resumed at any step has the same log as one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from coordinator.population import Hear
from coordinator.representations import REPRESENTATIONS
from coordinator.triggers import TRIGGERS
from emulator.storage.runlog import read_log
from experiments.build import build_executor, build_world, ways_of
from experiments.config import parse_experiment
from experiments.locating import locator
from tests.experiments.small import SMALL, merged
from tests.reliability.conftest import WorldOf
from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped, state_fields
from tests.traces.tiny import daily_rows, write_trace_folder

Row = Callable[[str], Stopped]

REPORTING = ("embedding", "gradient", "gradient-in-full", "gradient-at-the-mean-model", "labels-by-js")

AFTER_EVERY_STEP = (
    *("labels-by-js", "oort", "feddrift", "feddrift-c", "auxo", "driftsurf", "fielding-learned"),
    *(
        "feddrift-eager",
        "drift-groups",
        "flexcfl",
        "static",
        "fedyogi",
        "flash",
        "aue",
        "aue-pc",
        "kue",
        "last-losses",
    ),
    *("ways-by-class-means", "ways-of-labels", "context"),
    *("oracle", "cfl", "adam-by-step", "away", "alone", "tuned-kept", "buffered-by-seconds"),
)
"""Rows that together have every state field; the others are stopped after every step in sweeps."""

STEPPED = [pytest.param(name, marks=[] if name in AFTER_EVERY_STEP else [pytest.mark.sweep]) for name in ARMS]

AT_RANDOM = [
    pytest.param(name, seed, marks=[] if seed == 0 and name not in AFTER_EVERY_STEP else [pytest.mark.sweep])
    for name in ARMS
    for seed in range(12)
]
"""Rows and seeds of stops at random; in `make test` the rows that are not stopped after every step."""


def test_every_representation_trigger_and_choice_of_who_is_heard_is_in_a_row() -> None:
    """Otherwise the other tests of this file would not be about them."""
    arms = [row(name).arm[0] for name in ARMS]
    triggers = {arm.clusterer.settings.trigger.kind for arm in arms if arm.clusterer.kind == "fielding"}
    assert {arm.representation.kind for arm in arms} == set(REPRESENTATIONS.names())
    assert triggers == set(TRIGGERS.names())
    assert {row(name).round.hear for name in ARMS} == set(get_args(Hear))


@pytest.mark.parametrize("name", REPORTING)
def test_the_trigger_of_such_a_row_fires_and_is_silent(name: str, whole: Row) -> None:
    records = read_log(whole(name).log_path)[1]
    triggers = [record.trigger for record in records if record.trigger is not None]
    assert {trigger.fired for trigger in triggers} == {True, False}


@pytest.mark.parametrize("name", ["scaffold", "feddyn", "feddc", "ditto", "apfl", "personal-layers"])
def test_clusters_are_made_anew_while_the_clients_of_such_a_row_remember(name: str, whole: Row) -> None:
    """What lasts for the run survives: nobody that has trained is without, as all clients stay."""
    records = read_log(whole(name).log_path)[1]
    assert sum(record.reclustered for record in records[1:]) > 1
    if name in ("ditto", "apfl", "personal-layers"):
        has_trained = {client for record in records for client in record.completed}
        clients = row(name).trace.settings.clients
        assert records[-1].without_memory == 1 - len(has_trained) / clients


@pytest.mark.parametrize("name", ["ways-by-loss", "ways-by-class-means", "ways-of-labels", "context"])
def test_such_a_row_is_stopped_with_ways_in_flight_and_has_no_others(
    name: str, world_of: WorldOf, tmp_path: Path
) -> None:
    experiment, world = row(name), world_of(name)
    executor = build_executor(experiment, experiment.arm[0], world)
    ways = ways_of(executor)
    assert ways is not None
    with Stopped(experiment, world, tmp_path, lambda: executor).attempt() as attempt:
        known = [ways.num_known for _ in attempt.emulation.steps()]
    assert 0 < max(known) <= 25  # at most 8 clients are out with a model each, or 5 with five
    assert len(set(known)) > 1


@pytest.mark.parametrize("name", ["ways-by-loss", "ways-of-labels", "context"])
def test_ways_change_what_clients_of_such_a_row_train(name: str, whole: Row, tmp_path: Path) -> None:
    table, arm = ARMS[name]
    plain = {**arm, "adaptation": "none"}
    if name == "context":
        plain["training"] = {"model": "linear"}
    experiment = parse_experiment(merged(table, {"name": name, "arm": [{"name": name, **plain}]}), name)
    run = Stopped(experiment, whole(name).world, tmp_path)
    run.play()
    losses = [[record.train_loss for record in read_log(of.log_path)[1]] for of in (run, whole(name))]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("name", ["ways-by-loss", "context"])
def test_ways_are_the_same_by_two_threads(name: str, whole: Row, tmp_path: Path) -> None:
    by_two = Stopped(row(name, executor={"threads": 2}), whole(name).world, tmp_path)
    assert (by_two.play(), by_two.kept) == (whole(name).log, whole(name).kept)


def test_a_run_that_is_tested_on_what_arrives_next_resumes_and_counts_its_drift_cells(tmp_path: Path) -> None:
    """Client 0 has concept 1 at step 1; at step 2, which is for tests only, two clients have another one."""
    columns = daily_rows(clients=3, days=4)  # the days are steps -1 to 2
    day, client = np.arange(96) // 24, columns["client"]
    concept = np.where((day == 2) & (client == 0), 1, 0) + np.where((day == 3) & (client == 1), 2, 0)
    split = np.where(np.arange(96) % 4 == 0, "test", "train")
    write_trace_folder(tmp_path / "trace", {**columns, "concept": concept, "split": split})
    trace = {"source": "file", "folder": "trace", "rounds_per_step": 2, "retain_rounds": 4, "test_on": "next"}
    arm = {"name": "oracle", "clusterer": "oracle"}
    rounds = {"participants": 2, "rounds": 4, "evaluate_every": 2}
    experiment = parse_experiment({**SMALL, "trace": trace, "round": rounds, "arm": [arm]}, "")
    world = build_world(experiment, 0, locator(tmp_path, None))
    at_once, stopped = (Stopped(experiment, world, tmp_path / name) for name in ("whole", "stopped"))
    log = at_once.play()
    header, records = read_log(at_once.log_path)
    assert header["concepts"] == [[0, 0, 0], [1, 0, 0], [0, 2, 0]]
    assert "test_then_train" not in header
    assert [record.drift_cells for record in records] == [None, 1, None, 2]
    assert stopped.play_with_stops(lambda: 3) == log
    assert stopped.resumes > 2


def test_the_rows_that_are_stopped_after_every_step_have_every_state_field(stopped: Row) -> None:
    def fields(name: str) -> set[tuple[type, str]]:
        with stopped(name).attempt() as attempt:
            return state_fields(attempt.emulation.coordinator)

    by_row = {name: fields(name) for name in ARMS}
    covered = set().union(*(by_row[name] for name in AFTER_EVERY_STEP))
    assert len(covered) > 100
    assert set().union(*by_row.values()) == covered


@pytest.mark.parametrize("name", STEPPED)
def test_a_run_that_is_stopped_after_every_step_and_loses_a_few_more_has_the_same_log_and_models(
    name: str, stopped: Row, whole: Row
) -> None:
    draw = np.random.default_rng(0)
    run = stopped(name)
    assert run.play_with_stops(lambda: 1, lambda: int(draw.integers(0, 4))) == whole(name).log
    assert run.kept == whole(name).kept
    assert run.resumes > 2 * row(name).round.rounds
    assert run.notes == []


@pytest.mark.parametrize(("name", "seed"), AT_RANDOM)
def test_a_run_that_is_stopped_at_random_and_loses_what_it_did_since_has_the_same_log_and_models(
    name: str, seed: int, stopped: Row, whole: Row
) -> None:
    draw = np.random.default_rng(seed)
    run = stopped(name)
    log = run.play_with_stops(lambda: int(draw.integers(1, 9)), lambda: int(draw.integers(0, 30)))
    assert (log, run.kept) == (whole(name).log, whole(name).kept)
    assert run.notes == []
