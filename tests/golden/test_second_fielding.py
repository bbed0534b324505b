"""The engine's Fielding decides as a second implementation does, in every round of small runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from coordinator.clusterers.fielding import FieldingSettings
from coordinator.distances import DISTANCES
from coordinator.federation.faults import Faults
from coordinator.population import FaultSettings, Hear
from coordinator.representations import REPRESENTATIONS
from coordinator.triggers import TRIGGERS
from coordinator.triggers.centre_shift import CentreShiftSettings
from coordinator.triggers.learned import LearnedSettings
from coordinator.triggers.pairwise import PairwiseSettings
from device_profiles import load_profile
from emulator.messages import PairwiseTrigger, SampleRanges, TrainTasks, Updates
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from executor.executor import LocalExecutor
from experiments.build import World, build_emulation, build_executor
from experiments.config import Experiment
from experiments.reference import build_reference
from experiments.stopwatch import Stopwatch
from tests.experiments.small import small
from tests.fakes import FakeAvailability, MemoryLog, a_fleet
from tests.golden.second_fielding import Outcome, SecondFielding
from traces.arrivals import DTYPES, Arrivals, num_noise_starts
from traces.images import ImageSet
from traces.tables.changed import ChangedRows, ChangedTable
from traces.tables.sorted import SortedTable
from traces.trace import Trace

CLIENTS, LABELS = 18, 6
ROUNDS_PER_STEP = 2
EVERYONE = np.arange(CLIENTS)

# -- the population -------------------------------------------------------------------------------------

# How many samples of each label a client holds: few mixes, far apart, none equally far from two others.
MIXES = {
    "A": (20, 5, 0, 5, 0, 0),
    "B": (0, 27, 0, 2, 1, 0),
    "C": (0, 2, 19, 1, 4, 4),
    "D": (1, 0, 0, 20, 2, 7),
    "E": (0, 0, 6, 0, 24, 0),
    "F": (3, 0, 0, 4, 1, 22),
    "G": (12, 0, 4, 0, 13, 1),
}
HELD = 30

# The mix of each client at each step. Single clients move, and whole clusters turn to mixes unseen before.
WHOLE = (
    "AAAAAABBBBBBCCCCCC",
    "BAAAAABBBBBBCCCCCC",
    "BAAAAABBBBBBCCCCCB",
    "BAAAAADDDDDDEEEEEB",
    "BAAAAADDDDDDEEEEEA",
    "BFFFFFDDDDDDGGGGGF",
    "BFFFFFDDDDDDGGGGGD",
    "BCCCCCAAAAAAGGGGGC",
    "BCCCCCAAAAAAGGGGGA",
)
# Parts of clusters move to another one. At present models a trigger sees only such moves.
HALVES = (
    "AAAAAABBBBBBCCCCCC",
    "BAAAAABBBBBBCCCCCC",
    "BAAAAABBBBBBAAACCC",
    "BAAAAABBBBBBAAACCB",
    "BAACCCBBBBBBACCCCB",
    "BAACCCBBBBBCACCCCB",
    "CAACCCCCCBBCACCCCB",
    "CAACCCCCABBCACCCCB",
    "CAACCCCCABBCAAAAAB",
)


def held_labels(steps: Sequence[str], alike: bool) -> np.ndarray:
    """(steps, N, HELD) the labels that clients hold; if not `alike`, clients of one mix deviate from it."""
    labels = np.zeros((len(steps), CLIENTS, HELD), dtype=np.int64)
    for step, mixes in enumerate(steps):
        for client, mix in enumerate(mixes):
            counts = np.array(MIXES[mix])
            deviation = client % 4 + (client == 10 and step >= 4) + (client == 4 and step >= 6)
            if not alike:
                counts[counts.argmax()] -= deviation
                counts[5 * client % LABELS] += deviation
            labels[step, client] = np.repeat(np.arange(LABELS), counts)
    return labels


def replacing(arrivals: Arrivals) -> ChangedTable:
    """The table of `arrivals`, of which those after step 0 are sent anew: they replace all that was held."""
    at_start = SortedTable(arrivals.take(np.flatnonzero(arrivals.arrival == 0)), CLIENTS, None)
    later = np.flatnonzero(arrivals.arrival > 0)
    later = later[np.lexsort((arrivals.arrival[later], arrivals.client[later]))]
    rows = arrivals.take(later)
    slots, first, number = np.unique(rows.client * 2, return_index=True, return_inverse=True)
    changed = ChangedRows(
        slots=slots,
        since=rows.arrival[first],
        number=number,
        arrival=rows.arrival,
        born=np.zeros_like(rows.arrival),
        label=rows.label,
        image=rows.image,
        noise_start=rows.noise_start,
    )
    return ChangedTable(at_start, changed, None)


def a_trace(labels: np.ndarray) -> tuple[Trace, np.ndarray]:
    """A trace in which arrivals replace all that a client held, and (steps, N) whose data arrive when.

    A client gets new data when its labels change; every fourth client gets new data at every step.
    """
    rng = RandomStreams(5).generator("trace")
    label_of = np.arange(2 * LABELS) % LABELS  # one image of each label for each split
    images = ImageSet(
        rng.random((2 * LABELS, 4, 4), dtype=np.float32),
        1.0,
        label_of,
        LABELS,
        train=np.arange(LABELS),
        test=np.arange(LABELS, 2 * LABELS),
    )
    arrives = np.ones(labels.shape[:2], dtype=bool)
    arrives[1:] = (labels[1:] != labels[:-1]).any(axis=2) | (EVERYONE % 4 == 1)
    step, client = (np.repeat(each, HELD) for each in np.nonzero(arrives))
    trained, tested = labels[arrives].ravel(), labels[0, :, 0]
    columns = {
        "client": np.append(client, EVERYONE),
        "split": np.append(0 * client, 0 * EVERYONE + 1),
        "arrival": np.append(step, 0 * EVERYONE),
        "label": np.append(trained, tested),
        "image": np.append(trained, tested + LABELS),
        "noise_start": rng.integers(num_noise_starts(images), size=len(client) + CLIENTS),
    }
    arrivals = Arrivals(**{name: column.astype(DTYPES[name]) for name, column in columns.items()})
    trace = Trace(
        images,
        replacing(arrivals),
        retain_steps=len(labels),
        rounds_per_step=ROUNDS_PER_STEP,
        noise=0.05,
        generator=rng,
    )
    return trace, arrives


def sessions(mean_offline_s: float) -> FakeAvailability:
    """Clients that come and go, online eight times as long as offline; a round lasts 4 s and more."""
    rng = RandomStreams(6).generator("sessions")
    intervals = {}
    for client in range(CLIENTS):
        lengths_s = rng.exponential([8 * mean_offline_s, mean_offline_s], size=(80, 2))
        turns_s = [0.0, *lengths_s.cumsum().tolist()]
        intervals[client] = list(zip(turns_s[:-1:2], turns_s[1::2], strict=True))
    return FakeAvailability(intervals)


# -- reports, measured in float64 -----------------------------------------------------------------------


def last_layer(model: np.ndarray, x: np.ndarray, hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a network with one hidden layer, or none: its last inputs (n, H), weights (L, H) and biases (L,)."""
    weights, biases, last = np.split(model, [hidden * x.shape[1], hidden * (x.shape[1] + 1)])
    if hidden:
        x = np.maximum(0, x @ weights.reshape(hidden, -1).T + biases)
    return x, last[:-LABELS].reshape(LABELS, -1), last[-LABELS:]


def gradient(model: np.ndarray, x: np.ndarray, labels: np.ndarray, hidden: int) -> np.ndarray:
    """(P,) the gradient of its mean cross-entropy."""
    inputs, weights, biases = last_layer(model, x, hidden)
    odds = np.exp(inputs @ weights.T + biases)
    error = (odds / odds.sum(axis=1, keepdims=True) - np.eye(LABELS)[labels]) / len(x)
    parts = [(error.T @ inputs).ravel(), error.sum(axis=0)]
    if hidden:
        below = (error @ weights) * (inputs > 0)
        parts = [(below.T @ x).ravel(), below.sum(axis=0), *parts]
    return np.concatenate(parts)


class Recorded:
    """An executor that notes at which model clients of a round take gradients, and its first losses."""

    def __init__(self, executor: LocalExecutor, log: MemoryLog) -> None:
        self._executor, self._log = executor, log
        self.models: dict[int, np.ndarray] = {}
        self.losses: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def gradients(self, parameters: np.ndarray, samples: SampleRanges, *more: Any) -> np.ndarray:
        self.models[len(self._log.records)] = parameters.astype(float)
        return self._executor.gradients(parameters, samples, *more)

    def train(self, tasks: TrainTasks, *more: Any) -> Updates:
        updates = self._executor.train(tasks, *more)
        assert (tasks.dispatch == len(self.losses)).all()  # each round trains
        self.losses.append(float(np.mean(updates.metrics.get("loss_before", np.nan))))
        return updates


# -- the runs -------------------------------------------------------------------------------------------

SHIFT = {"kind": "centre_shift", "shift_from": "previous", "threshold": 1 / 3}
SINCE_LAST = {**SHIFT, "shift_from": "last_global"}
LEARNED = {
    "kind": "learned",
    "shift_from": "previous",
    "thresholds": [0.0, 0.3, 2.0],
    "explore_events": 2,
    "keep_events": 1,
}
PAIRWISE = {"kind": "pairwise", "rule": "mended", "delta": 0.6}
LABEL = {"kind": "label"}
EMBEDDING = {"kind": "embedding", "epochs": 20}
GRADIENT = {"kind": "gradient", "epochs": 3}
AT_GLOBAL = {"kind": "gradient", "at": "global"}


def case(name: str, distance: str, trigger: dict[str, Any], **more: Any) -> Any:
    """The settings of a run. `eps` has limit and distance of the detector `distance`; None is `changed`."""
    settings = {
        "representation": LABEL,
        "partition": "kmeans",
        "hear": "online",
        "follow": "drifted",
        "average": "reclustering",
        "max_clusters": 6,
        "eps": None,
        "steps": WHOLE,
        "alike": False,
        "hidden": 0,
        "offline_s": 5.0,
        **more,
    }
    return pytest.param(SimpleNamespace(distance=distance, trigger=trigger, **settings), id=name)


CASES = [
    case("label", "l1", SHIFT),
    case("since the last clustering", "l1", SINCE_LAST, hear="check_in"),
    case("js", "js", SHIFT, hear="check_in"),
    case("participants", "squared_euclidean", {**SHIFT, "threshold": 0.2}, follow="participants"),
    case(
        "participants that check in",
        "l1",
        {**SHIFT, "threshold": 0.1},
        follow="participants",
        hear="check_in",
        offline_s=12.0,
    ),
    case("learned", "l1", {**LEARNED, "explore_events": 1}),
    case("learned, as shifts add up", "l1", {**LEARNED, "shift_from": "last_global"}, hear="check_in"),
    case("mended", "euclidean", {**PAIRWISE, "delta": 0.1}, partition="kcenter", hear="everyone"),
    case("printed", "l1", {**PAIRWISE, "rule": "printed"}, hear="everyone", alike=True),
    case("fixed", "cosine", {**PAIRWISE, "rule": "fixed", "delta": 0.2}, hear="check_in"),
    case(
        "algorithm 4",
        "euclidean",
        {**PAIRWISE, "delta": 0.3},
        partition="kcenter",
        average="every_drift",
    ),
    case(
        "embedding",
        "euclidean",
        {**SHIFT, "threshold": 0.2},
        representation=EMBEDDING,
        hidden=6,
        eps=(0.05, "squared_euclidean"),
        hear="everyone",
    ),
    case(
        "embedding of a linear model",
        "cosine",
        SINCE_LAST,
        representation=EMBEDDING,
        eps=(0.1, "euclidean"),
    ),
    case(
        "gradient",
        "euclidean",
        {**PAIRWISE, "rule": "fixed"},
        representation=GRADIENT,
        eps=(0.05, "euclidean"),
    ),
    case(
        "gradient of a network",
        "cosine",
        {**SHIFT, "threshold": 0.25},
        representation=GRADIENT,
        partition="kcenter",
        hidden=4,
        eps=(0.05, "cosine"),
    ),
    case("present models", "euclidean", SHIFT, representation=AT_GLOBAL, steps=HALVES, hear="everyone"),
    case(
        "present models, as clients check in",
        "euclidean",
        SHIFT,
        representation=AT_GLOBAL,
        steps=HALVES,
        hear="check_in",
    ),
]


def experiment_of(case: SimpleNamespace) -> Experiment:
    rounds = ROUNDS_PER_STEP * len(case.steps)
    clusterer = {
        key: getattr(case, key)
        for key in ("distance", "trigger", "partition", "follow", "average", "max_clusters")
    }
    detector: Any = "changed"
    if case.eps is not None:
        detector = {"kind": "distance", "eps": case.eps[0], "distance": case.eps[1]}
    return small(
        round={"rounds": rounds, "participants": 6, "evaluate_every": rounds, "hear": case.hear},
        training={
            "model": {"kind": "mlp", "hidden": [case.hidden] if case.hidden else []},
            "local_steps": 1,
        },
        arm=[
            {
                "name": "fielding",
                "clusterer": {"kind": "fielding", **clusterer},
                "representation": case.representation,
                "detectors": {"drift": detector},
            }
        ],
    )


def both(case: SimpleNamespace) -> tuple[list[RoundRecord], list[Outcome]]:
    """The records of a run, and what the second implementation decides on the same facts."""
    trace, arrives = a_trace(held_labels(case.steps, case.alike))
    streams, availability = RandomStreams(0), sessions(case.offline_s)
    world = World(
        streams,
        trace,
        load_profile("uniform"),
        a_fleet(CLIENTS, download_bytes_per_s=1e4, upload_bytes_per_s=1e4),
        availability,
        Faults(FaultSettings(), CLIENTS, streams),
    )
    experiment, log = experiment_of(case), MemoryLog()
    arm = experiment.arm[0]
    reference = build_reference(experiment, arm, world)
    executor: Any = Recorded(build_executor(experiment, arm, world), log)
    build_emulation(experiment, arm, world, executor, log, (), Stopwatch(), reference).run()

    def measure(ids: np.ndarray, step: int, round_: int) -> np.ndarray:
        kind, held, reports = case.representation["kind"], trace.held(ids, "train", step), []
        for row in range(len(ids)):
            rows = held.rows(row)
            x, labels = trace.features(rows).reshape(len(rows), -1).astype(float), trace.labels(rows)
            if kind == "label":
                reports.append(np.bincount(labels, minlength=LABELS) / len(labels))
                continue
            model = executor.models[round_] if reference is None else reference.parameters.astype(float)
            if kind == "embedding":
                reports.append(last_layer(model, x, case.hidden)[0].mean(axis=0))
            else:
                reports.append(gradient(model, x, labels, case.hidden))
        return np.array(reports)

    facts = SimpleNamespace(
        opened_s=[record.opened_s for record in log.records],
        step=[round_ // ROUNDS_PER_STEP for round_ in range(len(log.records))],
        completed=[record.completed for record in log.records],
        arrives=arrives,
        online=availability.online,
        next_online_s=availability.next_online_s,
        measure=measure,
        losses=executor.losses,
        order=lambda round_, count: streams.generator("learned", round_).permutation(count),
    )
    return log.records, list(SecondFielding(facts, case).rounds())


def logged_numbers(record: RoundRecord) -> tuple[float | None, ...] | None:
    trigger = record.trigger
    if trigger is None:
        return None
    if isinstance(trigger, PairwiseTrigger):
        return trigger.largest_distance, trigger.delta
    return trigger.shift, trigger.mean_distance, trigger.threshold


def partition_of(members: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(members == label).tolist()) for label in np.unique(members)}


@pytest.mark.parametrize("case", CASES)
def test_reports_moves_triggers_and_clusters_are_those_of_a_second_implementation(
    case: SimpleNamespace,
) -> None:
    records, outcomes = both(case)
    # Embeddings and gradients are float32 in the engine.
    rel = 1e-9 if case.representation is LABEL else 1e-5
    members: Any = None
    for record, (checked, reported, numbers, fired, ours, clusters) in zip(records, outcomes, strict=True):
        assert (record.changed, record.reported) == (checked, reported), record.round
        logged = logged_numbers(record)
        assert (record.trigger and record.trigger.fired) == fired, record.round
        if numbers is not None and "delta" in case.trigger and numbers[1] < 0:
            # Any distance is above a limit below 0, however far: the engine does not double it.
            assert logged is not None
            assert logged[1] is not None
            assert logged[1] < 0
            logged, numbers = logged[:1], numbers[:1]
        assert logged == (None if numbers is None else pytest.approx(numbers, rel=rel, abs=1e-8))
        members = members if record.members is None else record.members
        assert partition_of(members) == partition_of(ours), record.round
        assert len(record.clusters) == clusters, record.round
    decided = [outcome[3] for outcome in outcomes if outcome[3] is not None]
    assert sum(decided) >= 2
    assert len(decided) - sum(decided) >= 2


def test_every_distance_trigger_representation_and_choice_of_a_setting_occurs() -> None:
    cases = [each.values[0] for each in CASES]
    assert {each.distance for each in cases} == set(DISTANCES)
    assert {each.trigger["kind"] for each in cases} == set(TRIGGERS.names())
    assert {each.representation["kind"] for each in cases} == set(REPRESENTATIONS.names())
    assert {each.representation.get("at") for each in cases} == {None, "global"}
    assert {each.hear for each in cases} == set(get_args(Hear))
    for key in ("partition", "follow", "average"):
        assert {getattr(each, key) for each in cases} == set(
            get_args(FieldingSettings.model_fields[key].annotation)
        )
    for kind, settings, key in (
        ("centre_shift", CentreShiftSettings, "shift_from"),
        ("learned", LearnedSettings, "shift_from"),
        ("pairwise", PairwiseSettings, "rule"),
    ):
        chosen = {each.trigger[key] for each in cases if each.trigger["kind"] == kind}
        assert chosen == set(get_args(settings.model_fields[key].annotation))
