"""Fielding's algorithm 4 in full, on quadratic losses, stays below a bound on its expected regret.

Client i's loss is |x - t_i|^2 / 2, and it reports its target t_i. The bound is not that of the paper's
theorem 1: for these losses one can be derived with all its constants, so tight that mistakes break it.

Assume that the targets of a concept lie within `radius` of its centre, that targets of different concepts are
farther apart than max(delta, 4 radius), that delta >= 2 radius, and that there are at most k concepts.

1. Every cluster holds targets of one concept. Where the trigger is silent, no two members are farther apart
   than delta. Where it fires, k-center picks a target of each concept before a second one of any, and all
   others are nearest to that of their own concept. So the mean squared distance of the members from their
   mean m, half of that between two members, is at most s^2 = (2 radius)^2 / 2.
2. A round draws n participants per cluster with replacement, and each takes one step of rate r from the model
   c, on a gradient with noise of variance v. Their mean is c' = c - r (c - mean of their targets + noise), so
   E|c' - m|^2 <= q |c - m|^2 + r^2 (s^2 + v) / n, where q = (1 - r)^2. With W the mean of |c - m|^2 over
   clients, u rounds later E W <= q^u W + (1 - q^u) V, where V = r^2 (s^2 + v) / (n (1 - q)).
3. At an event, a new model minus the new mean is the mean over members of (old model - new target). By
   Jensen and Minkowski sqrt(E W) after it is at most sqrt(E W + s^2) before it plus d, the root mean square
   of the distances by which targets moved. At first d is that of the targets from the common model.
4. A round's mean loss is at most (W + s^2) / 2, and no model has less than 0. Summed over the R rounds of an
   event that starts with W, the expected regret is at most (W - V) (1 - q^R) / (2 (1 - q)) + R (V + s^2) / 2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.golden.second_geometry import Array, distances, k_center, nearest

RADIUS, DELTA, K = 0.25, 2.0, 3
ROUNDS, PARTICIPANTS, RATE = 20, 6, 0.5
START = np.array([5.0, 5.0])

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [0.0, 16.0], [16.0, 0.0]])
# The place of each client's target at each event. Clients change to a concept that others have, or two
# concepts become one while a third one splits, which moves alone cannot follow.
CONCEPTS = (
    "000000001111111122222222",
    "000011111111111122222222",
    "111111111111111122223333",
    "222111111111111122223333",
    "222111111144444422222222",
)


def targets_of(seed: int, radius: float) -> Array:
    """(events, clients, 2) each client's target: a point within `radius` of its concept's place."""
    rng = np.random.default_rng([seed, 1])
    offsets = rng.uniform(-1, 1, size=(24, 2)) * radius / np.sqrt(2)
    return np.array([PLACES[[int(place) for place in event]] + offsets for event in CONCEPTS])


def mean_of_members(old_models: Array, of_member: Array) -> Array:
    return of_member.mean(axis=0)


def algorithm_4(
    targets: Array,
    noise: float,
    seed: int,
    delta: float = DELTA,
    model_of: Callable[[Array, Array], Array] = mean_of_members,
) -> tuple[float, list[bool], float]:
    """The regret over all rounds, whether each event re-clustered, and the largest diameter of a cluster.

    `noise` is the standard deviation of each coordinate of a gradient. `model_of` makes a cluster's model of
    the clusters' old models (k, 2) and those that its members had (n, 2).
    """
    rng = np.random.default_rng([seed, 2])
    models, regret, fired, diameter = np.tile(START, (K, 1)), 0.0, [], 0.0
    members, centres, last = np.zeros(targets.shape[1], dtype=int), np.zeros((K, 2)), None
    for now in targets:
        before = members
        if last is not None:
            drifted = (now != last).any(axis=1)
            members = members.copy()
            members[drifted] = nearest(now[drifted], centres, "euclidean")
        apart = distances(now, now, "euclidean")
        fired.append(last is None or (apart * (members[:, None] == members)).max() > delta)
        if fired[-1]:
            members = nearest(now, k_center(now, K, "euclidean"), "euclidean")
        clusters = np.unique(members)
        old_models, models = models, models.copy()
        for cluster in clusters:
            inside = members == cluster
            centres[cluster] = now[inside].mean(axis=0)
            models[cluster] = model_of(old_models, old_models[before[inside]])
        diameter = max(diameter, (apart * (members[:, None] == members)).max())
        for _ in range(ROUNDS):
            regret += ((models[members] - now) ** 2).sum(axis=1).mean() / 2
            for cluster in clusters:
                drawn = rng.choice(np.flatnonzero(members == cluster), PARTICIPANTS // K)
                gradients = models[cluster] - now[drawn] + noise * rng.standard_normal((len(drawn), 2))
                models[cluster] = (models[cluster] - RATE * gradients).mean(axis=0)
        last = now
    return regret, fired, diameter


def bound(targets: Array, noise: float, radius: float) -> float:
    """The bound that the module derives, for these targets."""
    q, s2, start = (1 - RATE) ** 2, (2 * radius) ** 2 / 2, np.tile(START, (1, targets.shape[1], 1))
    moved = np.sqrt((np.diff(np.concatenate([start, targets]), axis=0) ** 2).sum(axis=2).mean(axis=1))
    floor = RATE**2 * (s2 + 2 * noise**2) / (PARTICIPANTS // K * (1 - q))
    total, root = 0.0, 0.0  # the common model is nobody's cluster: it has no spread yet
    for d in moved:
        w = (root + d) ** 2
        total += (w - floor) * (1 - q**ROUNDS) / (2 * (1 - q)) + ROUNDS * (floor + s2) / 2
        root = np.sqrt(q**ROUNDS * w + (1 - q**ROUNDS) * floor + s2)
    return total


def mean_regret(noise: float, radius: float, **more: object) -> float:
    """Over the draws of participants and noise, for one population."""
    targets = targets_of(0, radius)
    return float(np.mean([algorithm_4(targets, noise, seed, **more)[0] for seed in range(20)]))  # type: ignore[arg-type]


@pytest.mark.parametrize(("noise", "radius"), [(0.0, RADIUS), (0.5, RADIUS), (0.5, 1e-3)])
def test_the_regret_stays_below_the_bound_and_is_of_its_order(noise: float, radius: float) -> None:
    limit = bound(targets_of(0, radius), noise, radius)
    assert limit / 3 < mean_regret(noise, radius) < limit


def test_all_clusters_are_of_one_concept_and_only_a_split_reclusters() -> None:
    for seed in range(5):
        _, fired, diameter = algorithm_4(targets_of(seed, RADIUS), 0.5, seed)
        assert fired == [True, False, True, False, True]
        assert diameter <= 2 * RADIUS


@pytest.mark.parametrize(
    "mistake",
    [
        {"delta": np.inf},
        {"model_of": lambda old, of_member: START},
        {"model_of": lambda old, of_member: old[0]},
    ],
    ids=["never re-clustered", "started anew at each event", "all continue with one model"],
)
def test_a_mistake_breaks_the_bound(mistake: dict[str, object]) -> None:
    assert mean_regret(0.5, RADIUS, **mistake) > bound(targets_of(0, RADIUS), 0.5, RADIUS)
