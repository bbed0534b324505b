from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.federation.evaluation.measurement import scored_clients
from coordinator.federation.hearing.client_data import Reference
from coordinator.federation.method import RoundSettings
from emulator.errors import ConfigurationError, DataFileError, EmulatorError
from emulator.latency import DriftscaleLatency
from emulator.messages import SolverFacts, Work
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from executor.flops import forward_flops
from experiments.build import (
    HEADER,
    World,
    build_emulation,
    build_executor,
    build_parts,
    build_world,
    check_rounds,
    resolve_model_factor,
    round_settings,
    run_header,
)
from experiments.config import Experiment, Round, parse_experiment
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from tests.executor.fakes import wave
from tests.experiments.small import DEVICES, DRIFTING, drifting, small, write_idx_folder
from tests.traces.tiny import Row, trace_of
from traces.arrivals import TestOn
from traces.images import ImageSet
from traces.onsets import of_steps
from traces.trace import Trace

HOURS_S = 3600.0 * np.arange(0, 48, 5)


def world(experiment: Experiment, seed: int = 0, data: Path | None = None) -> World:
    return build_world(experiment, seed, locator(data, None))


def drawn(world: World) -> list[np.ndarray]:
    """All random draws of a world, as arrays."""
    everyone = np.arange(world.trace.num_clients)
    return [
        world.trace.columns().label,
        world.trace.columns().image,
        world.trace.columns().arrival,
        world.trace.features(np.arange(len(world.trace))),
        *world.fleet.columns().values(),
        *(world.availability.online(everyone, time_s) for time_s in HOURS_S),
    ]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> list[bool]:
    return [np.array_equal(a, b) for a, b in zip(first, second, strict=True)]


DRAWN = {"devices": {"profile": "smartphones", "availability": "diurnal"}, "trace": {"noise": 0.5}}


def test_a_seed_determines_the_world_and_another_seed_gives_another() -> None:
    experiment = small(**DRAWN)
    first, again, another = (drawn(world(experiment, seed)) for seed in (3, 3, 4))
    assert all(same(first, again))
    assert not any(same(first[:2], another[:2]))
    assert not np.array_equal(first[4], another[4])
    assert not all(same(first[8:], another[8:]))


def test_runs_of_two_seeds_have_the_same_samples_but_initial_models_and_batches_of_their_own() -> None:
    def updated(shared: World, start: np.ndarray) -> np.ndarray:
        """The update of one client's task from `start`, which depends on the samples and on the batches."""
        trainer = build_executor(experiment, experiment.arm[0], shared)
        return trainer.train(wave(counts=[20], steps=[2], batch_size=5), start, np.array([0])).delta

    experiment = drifting()
    first, second = world(experiment, 0), world(experiment, 1)
    assert all(same(drawn(first)[:4], drawn(second)[:4]))
    start, other = (
        build_executor(experiment, experiment.arm[0], shared).initial(0) for shared in (first, second)
    )
    assert not np.array_equal(start, other)
    assert np.array_equal(updated(first, start[None]), updated(world(experiment, 0), start[None]))
    assert not np.array_equal(updated(first, start[None]), updated(second, start[None]))


def test_runs_of_two_seeds_have_other_samples_if_each_draws_its_own() -> None:
    experiment = drifting(trace={"data_seed": "run"})
    first, second = (drawn(world(experiment, seed)) for seed in (0, 1))
    features, labels = 3, 0
    assert not np.array_equal(first[features], second[features])
    assert not np.array_equal(first[labels], second[labels])


def test_the_parts_of_an_arm_affect_neither_the_world_nor_the_first_model() -> None:
    plain = small(**DRAWN)
    clustered = small(**DRAWN, arm=[{"name": "x", "clusterer": "static", "aggregator": "fedavg"}])
    assert all(same(drawn(world(plain)), drawn(world(clustered))))
    shared = world(plain)
    np.testing.assert_array_equal(*(build_executor(plain, arm, shared).initial(0) for arm in plain.arm))


def test_the_length_of_a_run_does_not_change_the_devices() -> None:
    long, short = small(**DRAWN), small(**DRAWN, round={"rounds": 2})
    assert all(same(drawn(world(long))[4:], drawn(world(short))[4:]))


@pytest.mark.parametrize("key", ["participants", "min_online"])
def test_a_round_cannot_need_more_clients_than_there_are(key: str) -> None:
    world(small(round={key: 12}))
    with pytest.raises(ConfigurationError, match=f"^round.{key} = 13: more than the 12 clients"):
        world(small(round={key: 13}))


def built(
    rows: list[Row],
    *,
    evaluate_every: int = 1,
    evaluate_clients: int | None = None,
    rounds: int = 8,
    test_on: TestOn = "present",
) -> Trace:
    """The trace of `rows`, with two rounds per step, after the checks of a run of it."""
    settings = {"rounds": rounds, "evaluate_every": evaluate_every, "evaluate_clients": evaluate_clients}
    experiment = small(round={"participants": 1, **settings})
    trace = trace_of(rows, retain_steps=1, rounds_per_step=2, test_on=test_on)
    check_rounds(experiment, trace, RandomStreams(0))
    return trace


def rows_at(steps: Sequence[int], tested: Sequence[int], client: int = 0) -> list[Row]:
    return [(client, split, step, 0) for split, of in ((0, steps), (1, tested)) for step in of]


def test_a_step_at_which_nobody_can_train_is_refused_before_the_run() -> None:
    built(rows_at(range(4), range(4)))
    built(rows_at([0, 2], range(4)) + rows_at([1, 3], range(4), client=1))
    with pytest.raises(ConfigurationError) as refused:
        built(rows_at(range(3), range(4)))
    assert str(refused.value) == (
        "round.rounds = 8: at data step 3, which round 6 begins, no client holds a training sample; data "
        "step 2 is the last before it at which one does, so set round.rounds = 6"
    )
    built(rows_at(range(3), range(4)), rounds=6)
    # A gap is refused too, whatever comes after it.
    with pytest.raises(
        ConfigurationError, match="at data step 1, which round 2 begins, no client holds a tr"
    ):
        built(rows_at([0, 2, 3], range(4)))


def test_a_step_at_which_nobody_can_be_tested_is_refused_if_it_is_evaluated() -> None:
    lacking = "at data step 1, which round 2 begins, no client holds both a training and a test sample"
    with pytest.raises(ConfigurationError, match=lacking):
        built(rows_at(range(4), [0, 2, 3]))
    with pytest.raises(ConfigurationError, match=lacking):  # client 1 has left
        built(rows_at(range(4), [0, 2, 3]) + rows_at([0], range(4), client=1))
    built(rows_at(range(4), [0, 2, 3]), evaluate_every=6)  # rounds 5 and 7 are in steps 2 and 3
    # Of two clients that hold data throughout, one has no more test samples, and it alone is scored.
    (scored,) = scored_clients(2, 1, RandomStreams(0)).tolist()
    lasting = rows_at(range(4), range(4), client=1 - scored)
    built(lasting + rows_at(range(4), [0], client=scored))
    of_scored = lacking.replace("no client", "no scored client")
    ways_out = r"; data step 0 is .*so set round\.rounds = 2, or raise round\.evaluate_clients = 1$"
    with pytest.raises(ConfigurationError, match=of_scored + ways_out):
        built(lasting + rows_at(range(4), [0], client=scored), evaluate_clients=1)
    with pytest.raises(ConfigurationError, match=r"at data step 0, .*; raise round\.evaluate_clients = 1$"):
        built(lasting + rows_at(range(4), [1], client=scored), evaluate_clients=1)


def test_a_run_that_is_tested_on_what_arrives_next_ends_one_step_before_its_trace() -> None:
    built(rows_at(range(5), range(5)), test_on="next")
    with pytest.raises(ConfigurationError) as refused:
        built(rows_at(range(4), range(4)), test_on="next")
    assert str(refused.value) == (
        "round.rounds = 8: at data step 3, which round 6 begins, no client holds both a training and a test "
        "sample, one that arrives at the next data step (trace.test_on = 'next'); data step 2 is the last "
        "before it at which one does, so set round.rounds = 6"
    )
    built(rows_at(range(4), range(4)), test_on="next", rounds=6)


# -- model_factor -------------------------------------------------------------------------------------------


def model_factor(experiment: Experiment, arm: int = 0, data: Path | None = None) -> float:
    return resolve_model_factor(experiment, experiment.arm[arm], world(experiment, data=data))


def test_a_number_as_model_factor_is_used_unchanged() -> None:
    assert model_factor(small(devices={"model_factor": 2.5})) == 2.5


def test_flops_as_model_factor_is_the_quotient_of_the_models_and_the_references_flops() -> None:
    experiment = small(devices={"model_factor": "flops"})
    flops = 2 * 64 * 10  # one affine map from 64 pixels to 10 labels
    assert forward_flops(experiment.training.model.build(), (8, 8), 10) == flops
    reference_flops = world(experiment).profile.reference_flops
    assert reference_flops is not None
    assert model_factor(experiment) == pytest.approx(flops / reference_flops)
    heavier = small(devices={"model_factor": "flops"}, training={"model": "mlp"})
    assert model_factor(heavier) > model_factor(experiment)


def test_every_arm_has_the_model_factor_of_its_own_model() -> None:
    arms = [{"name": "light"}, {"name": "heavy", "training": {"model": "mlp"}}]
    experiment = small(devices={"model_factor": "flops"}, arm=arms)
    assert model_factor(experiment, arm=1) > 2 * model_factor(experiment, arm=0)


def test_flops_needs_a_profile_with_the_flops_of_its_reference_model(tmp_path: Path) -> None:
    (tmp_path / "phones.csv").write_text(DEVICES)
    table = {"profile": "phones.csv", "model_factor": "flops"}
    with pytest.raises(ConfigurationError) as refused:
        model_factor(small(devices=table), data=tmp_path)
    assert "devices.model_factor" in str(refused.value)
    assert "'phones.csv'" in str(refused.value)
    assert "give a number" in str(refused.value)
    assert model_factor(small(devices={**table, "model_factor": 3}), data=tmp_path) == 3


def test_the_time_model_of_fedscale_ignores_the_model() -> None:
    assert model_factor(small(devices={"time_model": "fedscale", "model_factor": "flops"})) == 1


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
        lane, none = np.array([12]), np.array([0])
        sizes.append(int(pacing.opens(pacing.quota(lane), lane, none, none)[0]))
    assert sizes == [4, 3]  # of 3.75


def test_parts_are_fresh_for_every_run() -> None:
    experiment = small()
    fielding = experiment.find_arm("fielding")
    assert build_parts(experiment, fielding).clusterer is not build_parts(experiment, fielding).clusterer


def test_the_header_of_a_log_states_the_facts_of_the_run(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "letters", labels=4)
    experiment = small(trace={"source": "idx", "folder": "letters"}, executor={"strategy": "loop"})
    arm, shared = experiment.arm[1], world(experiment, 7, data=tmp_path)
    header = run_header(experiment, arm, shared, build_executor(experiment, arm, shared))
    assert header == {
        "arm": "fielding",
        "seed": 7,
        "num_clients": 12,
        "num_labels": 4,
        "num_parameters": 4 * (16 + 1),
        "strategy": "loop",
        "chunk": 1,
        "model_factor": 1.0,
    }


def header_of(experiment: Experiment, shared: World | None = None) -> dict[str, Any]:
    arm, shared = experiment.arm[-1], shared or world(experiment)
    return run_header(experiment, arm, shared, build_executor(experiment, arm, shared))


def test_every_field_of_a_header_is_described_and_every_description_has_its_field() -> None:
    swap = {"what": "own_swap", "on": "held", "clients": {"share": 1}, "every": 2}
    embedding = {"kind": "embedding", "model": "linear"}
    experiment = small(
        detection={},
        trace={"static": True, "changes": [swap]},
        devices={"availability": "diurnal", "jitter": {"network": 0.3}},
        faults={"byzantine": {"kind": "label_flip", "share": 0.25}},
        round={"evaluate_clients": 5, "hear": "everyone", "client_distance": embedding},
        training={"objective": {"kind": "squared_error", "tolerance": 0.5}},
        arm=[
            {
                "name": "fielding",
                "clusterer": "fielding",
                "representation": embedding,
                "solver": ["ditto", "sgd"],
            }
        ],
    )
    [arm], shared = experiment.arm, world(experiment)
    pool = shared.trace._images
    assert isinstance(pool, ImageSet)
    shared.trace._images = replace(pool, numbers=np.zeros((len(pool), 3), dtype=np.float32))
    executor = build_executor(experiment, arm, shared)
    executor._solver = replace(executor.solver, base=3)  # as of a model with frozen parameters
    reference = Reference(executor, executor.initial(0), np.zeros(10, dtype=np.int64), 1.0)
    shared.trace.moves = of_steps([(1, np.array([0]))])
    shared.trace.test_concepts = np.zeros((2, shared.trace.num_clients), dtype=np.int64)
    header = run_header(experiment, arm, shared, executor, reference, reference)
    assert list(header) == list(HEADER)
    assert header["outputs"] == 3
    assert header["objective"] == {"kind": "squared_error", "word": "within 0.5"}
    always = {name for name, field in HEADER.items() if not field.present}
    assert set(header_of(small(trace={"drift": "none"}))) == always


@pytest.mark.parametrize("hear", ["everyone", "check_in"])
def test_the_header_states_who_is_heard_unless_it_is_those_online(hear: str) -> None:
    header = header_of(small(round={"hear": hear}, devices={"availability": "diurnal"}))
    assert header["hear"] == hear
    assert "hear" not in header_of(small(round={"hear": hear}))  # where nobody is ever offline


def test_the_fedscale_time_model_refuses_a_model_factor_it_would_not_use(tmp_path: Path) -> None:
    experiment = small(devices={"time_model": "fedscale", "model_factor": 50})
    with pytest.raises(ConfigurationError, match=r"model_factor = 50: .*ignores the model"):
        model_factor(experiment, data=tmp_path)


def test_the_fedscale_time_model_refuses_jitter() -> None:
    devices = {"time_model": "fedscale", "jitter": {"network": 0.1}}
    with pytest.raises(ConfigurationError, match=r"jitter beside time_model = 'fedscale'.*leave one of"):
        small(devices=devices)


@pytest.mark.parametrize("wrong", [-0.1, 3.01, float("inf"), float("nan")])
def test_jitter_is_refused_that_is_negative_not_finite_or_over_3(wrong: float) -> None:
    with pytest.raises(ConfigurationError, match=r"devices\.jitter\.model = "):
        small(devices={"jitter": {"model": wrong}})


# -- an arm's own training ----------------------------------------------------------------------------------


def test_an_arm_trains_with_its_own_model_and_numbers() -> None:
    training = {
        "model": {"kind": "mlp", "hidden": [3]},
        "learning_rate": 0.5,
        "local_steps": 7,
        "batch_size": 9,
    }
    experiment = small(arm=[{"name": "shared"}, {"name": "override", "training": training}])
    shared = world(experiment)
    sizes = [build_executor(experiment, arm, shared).num_parameters for arm in experiment.arm]
    assert sizes == [65 * 10, 65 * 3 + 4 * 10]
    emulation = build_emulation(
        experiment,
        experiment.arm[1],
        shared,
        build_executor(experiment, experiment.arm[1], shared),
        NoLog(),
        (),
        Stopwatch(),
    )
    settings = emulation.coordinator.federation.settings  # type: ignore[attr-defined]
    assert (settings.learning_rate, settings.local_steps, settings.batch_size) == (0.5, 7, 9)


def test_an_arm_has_its_own_way_of_drawing_batches() -> None:
    experiment = small(arm=[{"name": "shared"}, {"name": "fixed", "training": {"batches": "fixed"}}])
    shared = world(experiment)
    executors = [build_executor(experiment, arm, shared) for arm in experiment.arm]
    start = executors[0].initial(0)[None]
    tasks = wave(counts=[20], steps=[5])
    updates = [executor.train(tasks, start, np.zeros(1, dtype=np.int64)).delta for executor in executors]
    assert not np.array_equal(*updates)


class NoLog:
    def append_visits(self, rows: object) -> None: ...

    def append(self, record: RoundRecord) -> None: ...


# -- schedules ----------------------------------------------------------------------------------------------


def test_an_arm_has_its_schedules() -> None:
    experiment = small(arm=[{"name": "a", "schedules": "adaptive_lr"}, {"name": "b"}])
    scheduled, unscheduled = (build_parts(experiment, arm).schedules for arm in experiment.arm)
    assert [schedule.sets for schedule in scheduled] == [{"learning_rate"}]
    assert unscheduled == ()


def test_two_schedules_of_an_arm_may_not_set_the_same_number() -> None:
    experiment = small(arm=[{"name": "a", "schedules": ["adaptive_lr", {"kind": "adaptive_lr"}]}])
    with pytest.raises(ConfigurationError) as refused:
        build_parts(experiment, experiment.arm[0])
    assert str(refused.value) == (
        "schedules 'adaptive_lr' and 'adaptive_lr' both set learning_rate; only one may"
    )


# -- concepts -----------------------------------------------------------------------------------------------


def test_the_header_carries_the_concepts_that_the_trace_knows() -> None:
    experiment = drifting()
    shared = world(experiment)
    header = run_header(
        experiment, experiment.arm[0], shared, build_executor(experiment, experiment.arm[0], shared)
    )
    assert header["concepts"] == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert "test_then_train" not in header


def test_the_header_says_if_tests_are_of_the_steps_own_concept() -> None:
    swap = {"what": "own_swap", "on": "held", "clients": {"share": 1}, "every": 2}
    experiment = small(trace={"static": True, "changes": [swap]})
    shared = world(experiment)
    [arm, *_] = experiment.arm
    header = run_header(experiment, arm, shared, build_executor(experiment, arm, shared))
    assert header["test_then_train"] is False
    assert [max(step) > 0 for step in header["concepts"]] == [False, True, True]


def test_the_oracle_has_a_model_for_each_composition_of_swaps() -> None:
    swap = {"what": "own_swap", "on": "held", "clients": {"share": 1}, "every": 2}
    drift = {"kind": "none", "mixes": 1}
    experiment = small(
        trace={"static": True, "changes": [swap], "labels": [0, 1, 2], "drift": drift},
        round={"rounds": 6},
        arm=[{"name": "oracle", "clusterer": "oracle"}],
    )
    shared, records = world(experiment), list[RoundRecord]()
    [arm] = experiment.arm
    executor = build_executor(experiment, arm, shared)
    build_emulation(experiment, arm, shared, executor, NoLog(), (records.append,), Stopwatch()).run()
    assert shared.trace.concepts is not None
    together = [set(shared.trace.concepts[record.step].tolist()) for record in records]
    # Three labels have three swaps; and two swaps in turn are none, or one of the two rotations.
    assert [len(concepts) for concepts in together] == [1, 1, 3, 3, 3, 3]
    for record, concepts in zip(records, together, strict=True):
        assert record.serving is not None
        pairs = zip(shared.trace.concepts[record.step].tolist(), record.serving.tolist(), strict=True)
        assert len(set(pairs)) == len(concepts) == len(set(record.serving.tolist()))


def test_the_last_field_of_a_header_has_the_onsets_of_the_drift() -> None:
    drift = {"kind": "label_mix", "move_probability": 0, "events": [{"round": 4, "share": 0.5}]}
    experiment = small(trace={"drift": drift}, round={"rounds": 6})
    shared = world(experiment)
    header = header_of(experiment, shared)
    assert list(header)[-1] == "onsets"
    assert header["onsets"]["steps"] == [2]  # of two rounds each
    [moved], [count] = header["onsets"]["clients"], header["onsets"]["counts"]
    assert len(moved) == count == round(0.5 * shared.trace.num_clients)
    trace = shared.trace
    assert trace.onsets is not None
    assert moved == trace.onsets.client.tolist()
    still = small(trace={"drift": "none"})
    assert "onsets" not in header_of(still, world(still))


def test_the_header_has_the_numbers_of_too_many_onsets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = small(trace={"drift": {"kind": "label_mix", "move_probability": 1}})
    shared = world(experiment)
    clients = shared.trace.num_clients
    steps = shared.trace.last_step
    monkeypatch.setattr("experiments.build.MOST_CONCEPTS", clients * steps - 1)
    numbers = {"steps": list(range(1, steps + 1)), "counts": [clients] * steps}
    assert header_of(experiment, shared)["onsets"] == numbers


def test_the_onsets_of_concepts_are_in_the_header_where_their_table_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = drifting()
    shared = world(experiment)
    assert "onsets" not in header_of(experiment, shared)
    monkeypatch.setattr("experiments.build.MOST_CONCEPTS", 8)
    assert header_of(experiment, shared)["onsets"] == {"steps": [1], "counts": [1], "clients": [[1]]}


def test_the_header_has_the_concepts_of_tests_if_those_of_training_do_not_tell_them() -> None:
    experiment = drifting()
    shared = world(experiment)
    assert "test_concepts" not in header_of(experiment, shared)
    shared.trace.test_concepts = np.array([[0, 0, 0], [0, 4, 4]])
    assert header_of(experiment, shared)["test_concepts"] == [[0, 0, 0], [0, 4, 4]]


def test_the_header_leaves_a_large_table_of_concepts_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.build.MOST_CONCEPTS", 8)
    experiment = drifting()
    shared = world(experiment)
    executor = build_executor(experiment, experiment.arm[0], shared)
    assert "concepts" not in run_header(experiment, experiment.arm[0], shared, executor)


def test_every_data_step_of_a_trace_with_concepts_must_be_scored_at_its_end() -> None:
    experiment = drifting(round={"rounds": 4, "participants": 3, "over_commit": 1, "evaluate_every": 3})
    with pytest.raises(
        ConfigurationError, match=r"evaluate_every = 3: must divide trace.rounds_per_step = 2"
    ):
        world(experiment)


# -- many clients -------------------------------------------------------------------------------------------


def test_a_sample_of_clients_is_scored_and_its_ids_are_in_the_header(tmp_path: Path) -> None:
    experiment = small(round={"evaluate_clients": 5, "log_client_accuracy": True})
    shared = world(experiment)
    records: list[RoundRecord] = []
    headers = []
    for arm in experiment.arm:
        executor = build_executor(experiment, arm, shared)
        headers.append(run_header(experiment, arm, shared, executor))
        build_emulation(experiment, arm, shared, executor, NoLog(), (records.append,), Stopwatch()).run()
    ids = headers[0]["scored_clients"]
    assert ids.tolist() == headers[1]["scored_clients"].tolist() == sorted(set(ids.tolist()))
    assert len(ids) == 5
    for record in records:
        assert record.scored_clients == 5
        assert record.client_accuracy is not None
        assert record.client_accuracy.shape == (5,)
        assert record.accuracy == pytest.approx(record.client_accuracy.mean())


def test_a_sample_as_large_as_the_population_is_not_recorded() -> None:
    experiment = small(round={"evaluate_clients": 50})
    shared = world(experiment)
    executor = build_executor(experiment, experiment.arm[0], shared)
    assert "scored_clients" not in run_header(experiment, experiment.arm[0], shared, executor)


def test_a_large_trace_lies_in_the_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", 1)
    experiment = small()
    with pytest.raises(EmulatorError, match="nowhere"):
        build_world(experiment, 0, locator(None, None), tmp_path / "nowhere")
    mapped = build_world(experiment, 0, locator(None, None), tmp_path)
    assert mapped.fingerprint() == world(experiment).fingerprint()
    assert list(tmp_path.iterdir()) == []  # the file has no name


def test_doubling_the_seconds_per_sample_of_a_table_doubles_every_compute_time(tmp_path: Path) -> None:
    doubled = "\n".join(
        ",".join([row.split(",")[0], repr(2 * float(row.split(",")[1])), *row.split(",")[2:]])
        for row in DEVICES.splitlines()[1:]
    )
    (tmp_path / "once.csv").write_text(DEVICES)
    (tmp_path / "twice.csv").write_text(DEVICES.splitlines()[0] + "\n" + doubled + "\n")
    compute_s = []
    for name in ("once", "twice"):
        experiment = small(devices={"profile": f"{name}.csv"})
        fleet = build_world(experiment, 0, locator(tmp_path, None)).fleet
        work = Work.of(12, download_bytes=1e4, upload_bytes=1e4, trained_samples=8)
        compute_s.append(DriftscaleLatency(fleet, 1.5).phases(np.arange(12), work).compute_s)
    np.testing.assert_array_equal(2 * compute_s[0], compute_s[1])


@pytest.mark.parametrize(
    ("timing", "problem"),
    [
        (
            {"evaluate_every_s": 60},
            r"round\.evaluate_every_s = 60: data steps follow rounds, so evaluations must, too, .* set "
            r"round\.evaluate_every, or round\.seconds_per_round$",
        ),
        (
            {"seconds_per_round": 30, "evaluate_every": 2},
            r"round\.evaluate_every = 2: data steps follow virtual time, so it must be 1, or "
            r"round\.evaluate_every_s be given that divides their 60 s, so that every data step is scored",
        ),
        (
            {"seconds_per_round": 30, "evaluate_every_s": 40},
            r"round\.evaluate_every_s = 40: must divide the 60 s of a data step, trace\.rounds_per_step x "
            r"round\.seconds_per_round, so that every data step is scored at its end$",
        ),
    ],
)
def test_by_virtual_time_too_every_data_step_with_concepts_is_scored_at_its_end(
    timing: dict[str, Any], problem: str
) -> None:
    def checked(rounds: dict[str, Any]) -> World:
        table = {**DRIFTING, "round": {"rounds": 4, "participants": 3, **rounds}}
        return world(parse_experiment(table, "drifting"))

    for fit in ({"seconds_per_round": 30}, {"seconds_per_round": 0.3, "evaluate_every_s": 0.1}):
        checked(fit)
    with pytest.raises(ConfigurationError, match=problem):
        checked(timing)


@pytest.mark.parametrize("timing", [{"seconds_per_round": 60}, {"evaluate_every_s": 60}])
def test_by_virtual_time_any_data_step_may_be_evaluated(timing: dict[str, Any]) -> None:
    gap = built(rows_at(range(4), [0, 2, 3]), evaluate_every=6)  # rounds 5 and 7 are in steps 2 and 3
    timed = small(round={"rounds": 8, "participants": 1, **timing})
    problem = r"at data step 1, which (nominal )?round 2 begins, no client holds both a training and a test"
    with pytest.raises(ConfigurationError, match=problem):
        check_rounds(timed, gap, RandomStreams(0))


def test_the_settings_of_time_reach_the_rounds() -> None:
    timed = small(round={"rounds": 4, "participants": 3, "seconds_per_round": 60, "evaluate_every_s": 120})
    shared, arm = world(timed), timed.arm[0]
    executor = build_executor(timed, arm, shared)
    emulation = build_emulation(timed, arm, shared, executor, NoLog(), (), Stopwatch())
    settings = emulation.coordinator.federation.settings
    assert (settings.seconds_per_round, settings.evaluate_every_s) == (60, 120)


def test_every_key_of_round_is_a_setting_of_rounds_but_those_of_the_cohort() -> None:
    """`round_settings` takes them by name: one without a field there would do nothing."""
    assert set(Round.model_fields) - {field.name for field in fields(RoundSettings)} == {
        "over_commit",
        "participants",
    }


def test_epochs_of_a_solver_come_before_those_of_training() -> None:
    experiment = small()
    arm = experiment.arm[0]
    assert round_settings(experiment, arm, SolverFacts(stops=True, epochs=3)).local_epochs == 3
    settings = round_settings(experiment, arm, SolverFacts())
    assert (settings.local_epochs, settings.stops) == (arm.training.local_epochs, False)
