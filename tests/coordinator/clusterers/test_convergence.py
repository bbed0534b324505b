"""The bound of docs/fielding.md on algorithm 4, on quadratics whose L, mu and theta are known.

Client i has the loss (w - b)' diag(mu, L) (w - b) / 2 with b = (2 theta / mu * share of its label 0, 0): the
gradients of two clients differ by theta times the L1 distance of their label shares, at every w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, TrainTasks
from tests.fakes import FakeExecutor, FakeStream, Population

MU, L, THETA = 1.0, 4.0, 3.0
LARGEST_RATE = 2 / (L + MU)
ROUNDS = 3  # from one event to the next
SLACK = 1e-5  # models are float32


def optima(shares: Floats) -> Floats:
    """(N, 2) the minima of clients with these `shares` (N,) of label 0."""
    return np.stack([2 * THETA / MU * shares, np.zeros_like(shares)], axis=1)


class Quadratics(FakeExecutor):
    """A visit is one full gradient step on the client's loss at the present data step."""

    def __init__(self, shares: Floats, rate: float, start: tuple[float, float]) -> None:
        super().__init__(np.zeros(shares.shape[1]), num_parameters=2)
        self.shares, self.rate, self.start = shares, rate, np.array(start, dtype=np.float32)
        self.stream = FakeStream(np.stack([shares, 1 - shares], axis=2), ROUNDS)

    def initial(self, number: int) -> Floats32:
        return self.start

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        updates = super().train(tasks, models, start, weights)
        minima = optima(self.shares[self.stream.step])[tasks.client]
        updates.delta[:] = -self.rate * np.array([MU, L]) * (models[start] - minima)
        return updates


@dataclass(frozen=True)
class Course:
    """The errors of a run, and the constants of the bound on them.

    `errors` (events, ROUNDS) is the largest distance of a client's model from its own minimum after each
    round; `first` that of the start from a first cluster's minimum; `apart` the largest L1 distance of two
    members of a cluster (Delta); `drift` the largest mean drift of a cluster's members at an event (delta).
    """

    rate: float
    errors: Floats
    first: float
    apart: float
    drift: float

    def bounds_above(self, floor: float) -> Floats:
        """(events, ROUNDS) the bound with a floor s of noise; 0 where everybody takes part in every round."""
        keep, rounds = 1 - self.rate * MU, np.arange(1, ROUNDS + 1)
        jump = THETA * (2 * self.apart + self.drift) / MU
        events = np.arange(len(self.errors))[:, None]
        after = keep ** (events * ROUNDS + rounds) * self.first
        after += keep**rounds * (jump + floor) * (1 - keep ** (events * ROUNDS)) / (1 - keep**ROUNDS)
        bounds: Floats = after + floor + THETA * self.apart / MU
        return bounds


def played(
    shares: Floats, rate: float, start: tuple[float, float] = (0, 0), participants: int | None = None
) -> Course:
    """Algorithm 4, with k-center of two, on clients with these `shares` (events, N)."""
    executor = Quadratics(shares, rate, start)
    settings = FieldingSettings.model_validate(
        {
            "partition": "kcenter",
            "min_clusters": 2,
            "max_clusters": 2,
            "trigger": {"kind": "pairwise", "delta": 0.4, "rule": "fixed"},
            "average": "every_drift",
        }
    )
    Population(
        executor,
        stream=executor.stream,
        clusterer=Fielding(settings),
        rounds=len(shares) * ROUNDS,
        participants=participants,
    ).play()
    errors = [
        np.linalg.norm(models[serves] - optima(shares[round_ // ROUNDS]), axis=1).max()
        for round_, (models, serves) in enumerate(executor.evaluated)
    ]
    clusters = [serves for _, serves in executor.evaluated[::ROUNDS]]
    drift = 2 * np.abs(np.diff(shares, axis=0))
    return Course(
        rate,
        np.array(errors).reshape(len(shares), ROUNDS),
        first=max(
            float(np.linalg.norm(optima(shares[0][clusters[0] == k]).mean(axis=0) - start)) for k in (0, 1)
        ),
        apart=max(
            2 * float(np.ptp(row[serves == k]))
            for row, serves in zip(shares, clusters, strict=True)
            for k in (0, 1)
        ),
        drift=max(
            float(moved[serves == k].mean())
            for moved, serves in zip(drift, clusters[1:], strict=True)
            for k in (0, 1)
        ),
    )


def alike() -> Floats:
    """Two clusters, whose members are alike, drift by a label share of 0.05 at every event."""
    return np.array([0.1] * 4 + [0.5] * 4) + 0.05 * np.arange(6)[:, None]


def swapping() -> Floats:
    """At every event a quarter of each of two clusters change places."""
    shares = np.tile([0.1, 0.9], (6, 4))
    for event in range(1, 6):
        shares[event] = shares[event - 1]
        swapped = np.arange(2 * event, 2 * event + 2) % 8
        shares[event, swapped] = 1 - shares[event, swapped]
    return shares


def scattered() -> Floats:
    """Two clusters whose members differ, and wander."""
    steps = np.random.default_rng(0).uniform(-0.03, 0.03, size=(6, 8))
    return np.array([0.2] * 4 + [0.8] * 4) + np.cumsum(steps, axis=0)


@pytest.mark.parametrize(
    ("shares", "factor"),
    [
        pytest.param(alike(), 1, id="clients that drift alike attain it"),
        pytest.param(swapping(), 1.15, id="a quarter of each cluster swap"),
        pytest.param(scattered(), 6, id="members differ and wander"),
    ],
)
def test_no_client_is_farther_from_its_minimum_than_the_bound_nor_much_nearer(
    shares: Floats, factor: float
) -> None:
    course = played(shares, LARGEST_RATE)
    assert (course.errors <= course.bounds_above(0) + SLACK).all()
    assert (course.errors * factor >= course.bounds_above(0) - SLACK).all()


@pytest.mark.parametrize(("rate", "holds"), [(LARGEST_RATE, True), (1.1 * LARGEST_RATE, False)])
def test_it_holds_up_to_the_rate_of_its_condition_and_not_beyond(rate: float, holds: bool) -> None:
    course = played(alike(), rate, start=(0, 100))  # far off along the axis of curvature L
    assert (course.errors <= course.bounds_above(0) + SLACK).all() == holds


def test_with_few_participants_it_holds_with_the_largest_deviation_of_a_gradient() -> None:
    course = played(scattered(), LARGEST_RATE, participants=2)
    assert (course.errors <= course.bounds_above(THETA * course.apart / MU)).all()


def test_the_noise_of_m_gradients_drawn_with_replacement_is_as_stated() -> None:
    """Five clients at the corners of a simplex, whose shares are a label each, so that Delta is 2."""
    clients, drawn, rounds, trials, noise, apart, rate = 5, 3, 6, 4_000, 0.5, 2, LARGEST_RATE
    minima = np.sqrt(2) * THETA / MU * np.eye(clients)
    start = np.full(clients, 4.0)
    rng = np.random.default_rng(0)
    model = np.tile(start, (trials, 1))
    for _ in range(rounds):
        of_drawn = minima[rng.integers(clients, size=(trials, drawn))]
        noisy = MU * (model[:, None] - of_drawn) + rng.normal(0, noise / np.sqrt(clients), of_drawn.shape)
        model -= rate * noisy.mean(axis=1)
    center = minima.mean(axis=0)
    squared = float(np.square(model - center).sum(axis=1).mean())

    keep, first = 1 - rate * MU, float(np.linalg.norm(start - center))
    variance = noise**2 + (1 - 1 / clients) * THETA**2 * apart**2 / 2
    floor = np.sqrt(rate * variance / (MU * (2 - rate * MU) * drawn))
    exact = (keep**rounds * first) ** 2 + floor**2 * (1 - keep ** (2 * rounds))
    assert squared == pytest.approx(exact, rel=0.03)
    assert np.sqrt(squared) < keep**rounds * first + floor
