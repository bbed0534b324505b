"""Workload detectors: a million clients that each decide on one number, and what reading their signal costs.

One process, one thread. Every detector has had as many numbers as it needs before it can flag a client. The
reference is one object of river per client; 10,000 of them are measured, and scaled to a million. River is a
dependency of the tests, not of the package: without it the figures have no reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import count, cycle
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved, often
from benchmarks.training import DENSE, SEED, Contest, Schedule, wave
from coordinator.detectors import DETECTORS
from coordinator.detectors.columns import Columns
from emulator.arrays import Floats, Ints
from emulator.messages import BATCH_METRICS, TaskMetric

NUMBERS = 32
"""Numbers of each client before the measurement; also those from one comparison of ADWIN to the next."""

MOST_MS_OF_FEW = 0.3

MOST_OF_SIGNALS = 1.05
"""Most CPU time of a wave that measures what detectors watch, in times that of one that does not."""


@dataclass(frozen=True)
class Contender:
    """A detector, the most milliseconds of a call, the most megabytes, and what it is called in river."""

    name: str
    part: str
    most_ms: float
    most_mb: float | None = None
    in_river: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    settings_in_river: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 3  # of which the mean is taken


BOTH_SIDES, BOTH_SIDES_IN_RIVER = {"two_sided": True}, {"two_sided_test": True}

CONTENDERS = (
    Contender("ddm", "ddm", 30, 40, "binary.DDM"),
    Contender("page-hinkley", "page_hinkley", 30, None, "PageHinkley"),
    Contender("eddm", "eddm", 60, None, "binary.EDDM"),
    Contender("hddm-a", "hddm_a", 200, None, "binary.HDDMA"),
    Contender("hddm-a-two-sided", "hddm_a", 260, None, "binary.HDDMA", BOTH_SIDES, BOTH_SIDES_IN_RIVER),
    Contender("hddm-w", "hddm_w", 75, None, "binary.HDDMW"),
    Contender("hddm-w-two-sided", "hddm_w", 200, None, "binary.HDDMW", BOTH_SIDES, BOTH_SIDES_IN_RIVER),
    Contender("adwin", "adwin", 250, None, "ADWIN", calls=NUMBERS),
    Contender("loss-jump", "loss_jump", 10),
    Contender("loss-trend", "loss_trend", 40, 100),
)


class DetectorSizes(NamedTuple):
    """Clients, those that decide of so many in a round, and objects of river."""

    clients: int = 1_000_000
    deciding: int = 130
    objects: int = 10_000


def measure_detectors(repeats: int, say: Say) -> list[Figure]:
    drift = import_module("river.drift") if find_spec("river") is not None else None
    if drift is None:
        say("river is not installed (pip install river): the figures have no reference")
    return [*detector_figures(DetectorSizes(), repeats, say, drift), *signal_figures(repeats, say, waves=8)]


def signal_figures(
    repeats: int, say: Say, clients: int = 50, schedule: Schedule | None = None, waves: int = 1
) -> list[Figure]:
    """Milliseconds of CPU time of a wave of W1 that measures a signal, against one that measures nothing."""
    contest, nothing = Contest(DENSE, clients, schedule or Schedule()), frozenset[TaskMetric]()
    contenders: dict[str, Measured] = {"none": _training(contest, clients, nothing, waves)}
    for name in sorted(BATCH_METRICS):
        contenders[name] = _training(contest, clients, frozenset({name}), waves)
    say("signals")
    samples = interleaved(contenders, repeats)
    without = Reference(1000 * samples["none"], "the same wave, of which nothing is measured")
    return [
        figure(
            f"w1-{name.replace('_', '-')}",
            f"one wave of {clients} clients with {name.replace('_', ' ')}",
            1000 * samples[name],
            "ms",
            better="lower",
            against=without,
            target=Target("ratio", 1 / MOST_OF_SIGNALS),
        )
        for name in sorted(BATCH_METRICS)
    ]


def _training(contest: Contest, clients: int, measure: frozenset[TaskMetric], waves: int) -> Measured:
    """A function that trains waves with these metrics and returns the mean CPU seconds of one."""
    executor, models = contest.executor(1), contest.start[None, :]
    row, rounds = np.zeros(clients, dtype=np.int64), count()

    def measured() -> float:
        ready = [
            replace(wave(clients, contest.schedule, next(rounds)), measure=measure) for _ in range(waves)
        ]
        begun = time.process_time()
        for tasks in ready:
            executor.train(tasks, models, row)
        return (time.process_time() - begun) / waves

    return measured


def detector_figures(sizes: DetectorSizes, repeats: int, say: Say, drift: Any) -> list[Figure]:
    """The figures of each detector; `drift` is the module `river.drift`, None without references."""
    figures = []
    for contender in CONTENDERS:
        say(contender.name)
        figures += _figures(contender, sizes, repeats, drift)
    return figures


def numbers(sizes: DetectorSizes, part: str) -> list[Floats]:
    """Eight times a number of each client, (clients, 1): every fifth batch is wrong, or a loss of 1 to 2."""
    generator = np.random.default_rng(SEED)
    drawn = generator.random((8, sizes.clients, 1))
    return list(drawn + 1 if part.startswith("loss") else (drawn < 0.2).astype(float))


def _figures(contender: Contender, sizes: DetectorSizes, repeats: int, drift: Any) -> list[Figure]:
    """Milliseconds of a decision of all clients, and of a few of them; megabytes that are remembered."""
    part = DETECTORS.find(contender.part)
    detector = part(part.Settings(**contender.settings))
    assert isinstance(detector, Columns)
    detector.open(sizes.clients)
    drawn = numbers(sizes, contender.part)
    contenders = {
        "all": _deciding(
            detector, cycle([(np.arange(sizes.clients), signal) for signal in drawn]), contender.calls
        ),
        "few": _deciding(detector, cycle(_few(sizes, drawn)), 24),
    }
    if drift is not None and contender.in_river is not None:
        objects = [_of_river(drift, contender) for _ in range(sizes.objects)]
        contenders["river"] = _updating(
            objects, cycle([signal[: sizes.objects, 0].tolist() for signal in drawn])
        )
    for _ in range(NUMBERS // contender.calls):
        contenders["all"]()
    if "river" in contenders:
        for _ in range(NUMBERS):
            contenders["river"]()
    samples = {name: 1000 * of for name, of in interleaved(contenders, repeats).items()}
    against = None
    if "river" in samples:
        scaled = samples["river"] * sizes.clients / sizes.objects
        against = Reference(scaled, f"{sizes.objects:,} objects of river's, scaled to {sizes.clients:,}")
    of = f"of {sizes.clients:,} clients by {contender.name}"
    remembered = sum(column.nbytes for column in detector.state()["_columns"].values())
    return [
        figure(
            f"detectors-{contender.name}",
            f"a decision {of}, a number each",
            samples["all"],
            "ms",
            better="lower",
            against=against,
            target=Target("value", contender.most_ms),
        ),
        figure(
            f"detectors-{contender.name}-few",
            f"a decision of {sizes.deciding:,} {of}",
            samples["few"],
            "ms",
            better="lower",
            target=Target("value", MOST_MS_OF_FEW),
        ),
        figure(
            f"detectors-{contender.name}-memory",
            f"what is remembered {of}",
            np.full(repeats, remembered / 1e6),
            "MB",
            better="lower",
            target=None if contender.most_mb is None else Target("value", contender.most_mb),
        ),
    ]


Asked = Iterator[tuple[Ints, Floats]]
"""Clients (n,) and the number of each (n, 1), again and again."""


def _deciding(detector: Columns, asked: Asked, calls: int) -> Measured:
    return often(lambda: detector.detect(*next(asked), None), calls)


def _few(sizes: DetectorSizes, drawn: list[Floats]) -> list[tuple[Ints, Floats]]:
    """Other clients at each decision, as in the rounds of a large fleet."""
    generator = np.random.default_rng(SEED)
    rows = [np.sort(generator.choice(sizes.clients, sizes.deciding, replace=False)) for _ in range(24)]
    return [(ids, drawn[0][ids]) for ids in rows]


def _of_river(drift: Any, contender: Contender) -> Any:
    assert contender.in_river is not None
    module = drift.binary if contender.in_river.startswith("binary.") else drift
    return getattr(module, contender.in_river.removeprefix("binary."))(**contender.settings_in_river)


def _updating(objects: list[Any], drawn: Iterator[list[float]]) -> Measured:
    def update_all() -> list[bool]:
        flags = []
        for detector, number in zip(objects, next(drawn), strict=True):
            detector.update(number)
            flags.append(detector.drift_detected)
        return flags

    return often(update_all, 1)
