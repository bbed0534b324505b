"""A trace of four clients, worked out by hand: one stays, one joins, one leaves, and one is away for a while.

Samples are held for one step, of one round. Client 0 has label 0 throughout. Client 1 joins at step 2 with
label 1, while it is offline. Client 2 has label 1, and leaves after step 2. Client 3 has label 0, is away in
steps 1 and 2, and returns with label 1; at step 4 it has no test samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.clusterers import Clusterer
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static, StaticSettings
from coordinator.population import Hear
from coordinator.view import View
from emulator.emulation import Emulation
from emulator.storage.runlog import RunLog, read_log
from emulator.storage.state_tree import from_bytes, to_bytes
from executor.ranks import Ranks
from experiments.build import World, build_world
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.results.reading.clusters_in_force import clusters_in_force
from experiments.results.tables.cluster_changes import share_that_changes
from tests.executor.meeting import together
from tests.experiments.small import SMALL, merged
from tests.fakes import NOTHING, FakeAvailability, FakeExecutor, Played, Population
from tests.reliability.replaying import SMALL_GROUPS, play_by_ranks
from tests.reliability.stops import Stopped
from tests.traces.tiny import Row, some_images, trace_of
from traces.images import ImageSet
from traces.trace import Trace, TraceStream

INF = float("inf")
LABELS = {0: [0, 0, 0, 0, 0], 1: [None, None, 1, 1, 1], 2: [1, 1, 1, None, None], 3: [0, None, None, 1, 1]}
"""The label of each client's samples at each step; None: it has none."""

HOLDING = [3, 2, 3, 3, 3]
SCORED = [3, 2, 3, 3, 2]
PARTICIPANTS = [[0, 2, 3], [0, 2], [0, 2], [0, 1, 3], [0, 1, 3]]
"""All that hold data and are online: at step 2 client 1 is not."""

CONTROL_BYTES = [24, 24, 32, 40, 40]
"""A report is of two numbers, 8 bytes: three clients register, then one, then the one that returns."""

AWAY = -1
CLUSTERED = [[0, AWAY, 1, 0], [0, AWAY, 1, AWAY], [0, 1, 1, AWAY], [0, 1, AWAY, 1], [0, 1, AWAY, 1]]
TOGETHER = [[AWAY if label < 0 else 0 for label in row] for row in CLUSTERED]

ACCURACY = [0.75, 1.0, 2.5 / 3, 2.75 / 3, (1 + 0.875) / 2]
"""With the targets 1, 0.5, 0 and 0.25, and models that go all the way to the mean of their participants.

Model 0 is at 0.625, then 1. Model 1 is at 0, with which client 1 has an accuracy of 0.5 at step 2, then at
0.375.
"""


def the_trace(images: ImageSet | None = None) -> Trace:
    rows: list[Row] = [
        (client, split, step, label)
        for client, labels in LABELS.items()
        for step, label in enumerate(labels)
        for split in (0, 1)
        if label is not None and (client, split, step) != (3, 1, 4)
    ]
    return trace_of(rows, retain_steps=1, images=images or some_images(num_labels=2))


def population(clusterer: Clusterer, hear: Hear = "online") -> Population:
    return Population(
        FakeExecutor([1.0, 0.5, 0.0, 0.25], pull=1.0),
        stream=TraceStream(the_trace()),
        availability=FakeAvailability({1: [(25.0, INF)]}),
        clusterer=clusterer,
        rounds=5,
        hear=hear,
    )


def fielding() -> Fielding:
    return Fielding(FieldingSettings(trigger="centre_shift"))


def members(played: Played) -> list[list[int]]:
    return [labels.tolist() for labels in clusters_in_force(played.records) if labels is not None]


@pytest.mark.parametrize("hear", ["online", "everyone", "check_in"])
@pytest.mark.parametrize("make", [fielding, lambda: Static(StaticSettings())], ids=["fielding", "static"])
def test_who_registers_is_clustered_drawn_scored_and_counted_at_every_step(
    make: Callable[[], Clusterer], hear: Hear
) -> None:
    played = population(make(), hear).play()
    records = played.records
    assert [record.holding for record in records] == HOLDING
    assert members(played) == CLUSTERED
    assert [record.participants for record in records] == PARTICIPANTS
    assert [record.completed for record in records] == PARTICIPANTS
    assert [record.scored_clients for record in records] == SCORED
    assert [record.accuracy for record in records] == pytest.approx(ACCURACY, abs=1e-15)
    assert [record.control_bytes for record in records] == CONTROL_BYTES
    # Joining takes no virtual time, and is neither a move nor a re-clustering.
    assert [record.dispatched_s for record in records] == [record.opened_s for record in records]
    assert [(record.moved, record.reclustered) for record in records] == [(0, False)] * 5
    assert [record.reported for record in records] == [3, 0, 1, 1, 0]
    # Members of a cluster are alike. Of those together, one of three is apart; then one of two.
    assert [record.mean_client_distance for record in records] == [0.0] * 5
    assert [record.unclustered_distance for record in records] == [4 / 3, 2.0, 4 / 3, 4 / 3, 4 / 3]
    # A client that comes, goes or returns has not changed cluster.
    assert share_that_changes(records) == 0.0


def test_only_the_first_clustering_is_of_all_clients_present_and_centres_are_of_those_that_are_left() -> None:
    records = population(fielding()).play().records
    assert [record.kmeans_clients for record in records] == [3, None, None, None, None]
    shifts = [None if record.trigger is None else record.trigger.shift for record in records]
    # Clients join at steps 2 and 3: where they are, nobody's centre moves, nor where others have left.
    assert shifts == [None, None, 0.0, 0.0, None]


def test_one_model_serves_whoever_holds_data() -> None:
    played = population(Single(NOTHING)).play()
    records = played.records
    assert [record.holding for record in records] == HOLDING
    assert members(played) == TOGETHER
    assert [record.participants for record in records] == PARTICIPANTS
    assert [record.scored_clients for record in records] == SCORED
    assert [record.control_bytes for record in records] == [0] * 5
    assert [record.mean_client_distance for record in records] == [4 / 3, 2.0, 4 / 3, 4 / 3, 4 / 3]


def test_the_views_of_a_clusterer_forget_who_left_and_flag_who_joins() -> None:
    views: list[View] = []

    class Watching(Fielding):
        def on_data(self, view: View) -> Any:
            views.append(replace(view, reports=view.reports.copy()))
            return super().on_data(view)

    population(Watching(FieldingSettings())).play()
    assert [view.joined.tolist() for view in views] == [[], [], [1], [3], []]
    assert [view.left.tolist() for view in views] == [[], [3], [], [2], []]
    assert [view.drifted.tolist() for view in views] == [[0, 2, 3], [], [1], [3], []]
    # All samples are replaced at every step; client 1 is offline when it joins.
    assert [view.changed.tolist() for view in views] == [[0, 2, 3], [0, 2], [0, 1, 2], [0, 1, 3], [0, 1, 3]]
    for view, row in zip(views, CLUSTERED, strict=True):
        present = [client for client, label in enumerate(row) if label != AWAY]
        assert np.flatnonzero(view.holding).tolist() == present
        assert np.flatnonzero(~np.isnan(view.reports).any(axis=1)).tolist() == present
        if view.assignment is not None:
            assert np.flatnonzero(view.members[:, 0] >= 0).tolist() == present


def test_a_client_that_trains_in_the_last_round_in_which_it_holds_data_is_absorbed() -> None:
    # A data step begins when a round is opened, and all visits of the round before are over by then.
    played = population(fielding()).play()
    of_client_2 = [wave for wave in played.executor.waves if 2 in wave.client]
    assert [set(wave.step.tolist()) for wave in of_client_2] == [{0}, {1}, {2}]
    assert played.records[2].completed == [0, 2]


def stored(emulation: Emulation, log: RunLog) -> bytes:
    return to_bytes({"emulation": emulation.state(), "log": log.state()})


@pytest.mark.slow
@pytest.mark.parametrize("make", [fielding, lambda: Static(StaticSettings())], ids=["fielding", "static"])
def test_a_run_resumed_after_any_step_has_the_same_log(make: Callable[[], Clusterer], tmp_path: Path) -> None:
    whole, again = tmp_path / "whole.jsonl", tmp_path / "again.jsonl"
    with RunLog(whole, {}) as log:
        emulation = Emulation(population(make()).coordinator(), log)
        checkpoints = [stored(emulation, log) for _ in emulation.steps()]
    assert len(checkpoints) > 20
    for checkpoint in checkpoints:
        again.write_bytes(whole.read_bytes())
        state = from_bytes(checkpoint)
        with RunLog(again, {}, state["log"]) as log:
            emulation = Emulation(population(make()).coordinator(), log)
            emulation.restore(state["emulation"])
            assert stored(emulation, log) == checkpoint
            emulation.run()
        assert again.read_bytes() == whole.read_bytes()


# -- real runs ---------------------------------------------------------------------------------------------

METHODS: dict[str, dict[str, Any]] = {
    "single": {},
    "fielding": {"clusterer": "fielding"},
    "fielding-by-gradients": {
        "clusterer": "fielding",
        "representation": {"kind": "gradient", "at": "global"},
        "detectors": {"moved": {"kind": "distance", "eps": 0.01}},
    },
    "feddrift": {"clusterer": "feddrift", "memory": "claimed"},
    "aue_pc": {"clusterer": {"kind": "aue_pc", "weigh": "updates"}},
}


def real(name: str) -> tuple[Experiment, World]:
    """The run of one method with real models, in a world of the same trace."""
    changes = {
        "name": name,
        "trace": {"clients": 4},
        "round": {"rounds": 5, "participants": 4, "hear": "everyone", "log_client_accuracy": True},
        "arm": [{"name": name, **METHODS[name]}],
    }
    experiment = parse_experiment(merged(merged(SMALL, changes), SMALL_GROUPS), name)
    world = build_world(experiment, 0, locator(Path(), None))
    return experiment, replace(world, trace=the_trace())


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_real_run_has_the_same_log_by_two_ranks_and_after_stops(name: str, tmp_path: Path) -> None:
    experiment, world = real(name)
    alone = Stopped(experiment, world, tmp_path / "alone")
    whole = alone.play()
    stopped = Stopped(experiment, world, tmp_path / "stopped")
    assert stopped.play_with_stops(lambda: 2, lambda: 1) == whole
    assert stopped.resumes > 5
    ranks = tmp_path / "ranks"

    def play(of_job: Ranks) -> None:
        play_by_ranks(of_job, experiment, world, ranks)

    assert together(2, play) == [None, None]
    assert (ranks / name / "seed-0" / "log.jsonl").read_bytes() == whole
    header, records = read_log(alone.log_path)
    assert header["num_clients"] == 4
    assert [record.holding for record in records] == HOLDING
    assert [record.scored_clients for record in records] == SCORED
    for record, row in zip(records, CLUSTERED, strict=True):
        present = {client for client, label in enumerate(row) if label != AWAY}
        assert set(record.participants) == present
        assert record.client_accuracy is not None
        scored = present - ({3} if record.step == 4 else set())
        assert set(np.flatnonzero(np.isfinite(record.client_accuracy)).tolist()) == scored
    absent = [
        {client for client, label in enumerate(labels.tolist()) if label < 0}
        for labels in clusters_in_force(records)
        if labels is not None
    ]
    assert absent == [{1}, {1, 3}, {3}, {2}, {2}]
