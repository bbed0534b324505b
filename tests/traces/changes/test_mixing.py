"""Maps of features drawn at random: what they keep, that each change has its own, and what is refused."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, trace_of
from traces.changes.changed import with_changes
from traces.changes.features import check_features
from traces.changes.mixing import MOST_MIXED, check_mix, drawn_map, new_order, orthogonal_map
from traces.changes.settings import Change, Mixing
from traces.images import ImageSet
from traces.trace import Trace

PIXELS = np.random.default_rng(0).random((40, 4, 3), dtype=np.float32)
IMAGES = ImageSet(PIXELS, 1.0, np.repeat([0, 1], 20), 2, train=np.arange(0, 40, 2), test=np.arange(1, 40, 2))
STATIC: list[Row] = [(client, split, 0, 0) for client in (0, 1) for split in (0, 1) for _ in range(9)]
KINDS = ("orthogonal", "channels", "gains", "monotone")


def changed(*changes: dict[str, Any], seed: int = 1, own: int | None = None) -> Trace:
    plain = trace_of(STATIC, images=IMAGES, retain_steps=9, test_then_train=False)
    parsed = [Change.model_validate({"on": "held", "at_step": 2, **change}) for change in changes]
    streams = None if own is None else RandomStreams(own)
    return with_changes(plain, parsed, 8, RandomStreams(seed), own=streams)


def held(trace: Trace, step: int, client: int = 0, split: Any = "train") -> tuple[Floats32, Floats32]:
    """(n, 4, 3) the features that a client holds, and those of the images that they are made from."""
    rows = trace.held(np.array([client]), split, step).rows(0)
    return trace.features(rows), PIXELS[trace.table.take("image", rows)]


def of_seed(size: int, strength: float, seed: int) -> Floats:
    return orthogonal_map(size, strength, np.random.default_rng(seed))


@pytest.mark.parametrize("size", [2, 3, 12, 64])
@pytest.mark.parametrize("strength", [1.0, 0.5, 0.01])
def test_an_orthogonal_map_loses_nothing_and_mirrors_nothing(size: int, strength: float) -> None:
    whole = of_seed(size, strength, 5)
    assert np.abs(whole @ whole.T - np.eye(size)).max() < 1e-12
    assert np.linalg.det(whole) == pytest.approx(1.0, abs=1e-12)


def test_strength_is_a_share_of_each_angle_as_the_matrix_exponential_has_it() -> None:
    whole = of_seed(9, 1.0, 5)
    for strength in (0.25, 0.7):
        expected = linalg.expm(strength * np.real(linalg.logm(whole)))
        assert np.abs(of_seed(9, strength, 5) - expected).max() < 1e-12
    turn, half = of_seed(2, 1.0, 3), of_seed(2, 0.5, 3)
    angles = [np.arctan2(each[0, 1], each[0, 0]) for each in (turn, half)]
    assert angles[1] == pytest.approx(angles[0] / 2)


def test_no_direction_is_preferred_and_angles_are_uniform() -> None:
    # Of 3 dimensions the trace is 1 + 2 cos(angle), of mean 1 and variance 2.
    maps = np.array([of_seed(3, 1.0, seed) for seed in range(4000)])
    traces = np.trace(maps, axis1=1, axis2=2)
    assert traces.mean() == pytest.approx(1, abs=4 * (2 / 4000) ** 0.5)
    assert traces.var() == pytest.approx(2, rel=0.1)
    # The mean of all maps is a third of the mean trace, along the diagonal.
    assert np.abs(maps.mean(axis=0) - np.eye(3) / 3).max() < 4 * (2 / 4000) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_strength_0_is_no_change_to_the_bit(kind: str) -> None:
    features, images = held(changed({"what": {"mix": {"kind": kind, "strength": 0}}}), 3)
    assert np.array_equal(features, images)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_mixed_the_same_whatever_is_read_with_it(kind: str) -> None:
    samples = np.random.default_rng(1).normal(size=(700, 8, 9)).astype(np.float32) * 50
    mixed = drawn_map(Mixing.model_validate(kind), 1.0, (8, 9), seed=4)
    together = mixed(samples)
    assert together.dtype == np.float32
    for some in (slice(0, 1), slice(3, 300), slice(699, 700)):
        assert np.array_equal(mixed(samples[some]), together[some])
    assert mixed(samples[:0]).shape == (0, 8, 9)


def test_an_orthogonal_mix_is_the_product_with_its_map() -> None:
    units = np.repeat([1e-3, 1.0, 1e6], 20)[:, None]
    samples = (units * np.random.default_rng(1).normal(size=(60, 16))).astype(np.float32)
    made = drawn_map(Mixing(kind="orthogonal", strength=0.8), 0.5, (16,), seed=2)(samples)
    table = orthogonal_map(16, 0.4, RandomStreams(2).generator("mix"))
    largest = np.abs(samples).max(axis=1, keepdims=True)
    assert (np.abs(made - samples.astype(np.float64) @ table) / largest).max() < 1e-6
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.linalg.norm(samples, axis=1), rel=1e-5)


def test_gains_and_curves_are_those_of_their_formulas() -> None:
    samples = np.linspace(-2, 2, 30, dtype=np.float32).reshape(10, 3)
    a, b, c = RandomStreams(6).generator("mix").standard_normal((3, 3))
    for strength in (0.3, 1.0):
        gains = drawn_map(Mixing(kind="gains", strength=strength), 1.0, (3,), seed=6)(samples)
        assert gains == pytest.approx(samples * np.exp(strength * a) + strength * b, abs=1e-6)
        curves = drawn_map(Mixing(kind="monotone", strength=strength), 1.0, (3,), seed=6)(samples)
        bent = np.exp(a) * np.tanh(np.exp(b) * (samples - c))
        assert curves == pytest.approx(samples + strength * bent, abs=1e-6)
        assert (np.diff(curves, axis=0) > 0).all()


@pytest.mark.parametrize("size", [2, 3, 7])
def test_channels_lie_in_another_order(size: int) -> None:
    orders: list[Ints] = [new_order(size, np.random.default_rng(seed)) for seed in range(40)]
    assert all(sorted(order) == list(range(size)) for order in orders)
    assert not any((order == np.arange(size)).all() for order in orders)
    features, images = held(changed({"what": {"mix": "channels"}}), 3)
    found = [order for order in permutations(range(4)) if np.array_equal(features, images[:, order])]
    assert len(found) == 1
    assert found != [(0, 1, 2, 3)]


def test_each_change_has_a_map_of_its_own_and_others_stay() -> None:
    groups = [{"what": {"mix": "orthogonal"}, "clients": {"names": [client]}} for client in (0, 1)]
    trace = changed(*groups)
    for client in (0, 1):
        (train, images), (test, tests) = (held(trace, 3, client, split) for split in ("train", "test"))
        train, images, test, tests = (each.reshape(9, 12) for each in (train, images, test, tests))
        assert np.abs(train - images).max() > 0.1
        assert np.allclose(train @ test.T, images @ tests.T, atol=1e-5)  # one map for training and tests
        before, plain = held(trace, 1, client)
        assert np.array_equal(before, plain)
    one, other = (np.concatenate(held(trace, 3, client)).reshape(2, 9, 12) for client in (0, 1))
    assert not np.allclose(one[0] @ other[0].T, one[1] @ other[1].T, atol=0.1)
    features, images = held(changed(groups[0]), 3, client=1)
    assert np.array_equal(features, images)


def test_operations_that_a_pattern_chooses_from_are_maps_of_their_own() -> None:
    plain = trace_of(STATIC, images=IMAGES, retain_steps=9, test_then_train=False)
    gains = {"what": [{"mix": "gains"}] * 2, "on": "held", "pattern": ["00", "00", *["12"] * 7]}
    trace = with_changes(plain, [Change.model_validate(gains)], 8, RandomStreams(1))
    (one, images), (other, same) = (held(trace, 3, client) for client in (0, 1))
    assert np.array_equal(images[0], same[0])
    assert (np.abs(one[0] - other[0]) > 1e-3).all()


def test_the_maps_are_those_of_the_data_and_not_of_the_run() -> None:
    mix = {"what": {"mix": "orthogonal"}}
    assert np.array_equal(held(changed(mix, seed=1, own=7), 3)[0], held(changed(mix, seed=2, own=7), 3)[0])
    assert not np.allclose(held(changed(mix, seed=1, own=7), 3)[0], held(changed(mix, seed=1, own=8), 3)[0])
    assert not np.allclose(held(changed(mix, seed=1), 3)[0], held(changed(mix, seed=2), 3)[0])
    assert changed(mix, own=7).digest() != changed(mix, own=8).digest()


def test_the_strength_may_grow() -> None:
    grown = changed({"what": {"mix": "orthogonal"}, "magnitude": {"from": 0, "to": 1, "over": 4}})
    halves = changed({"what": {"mix": {"kind": "orthogonal", "strength": 0.5}}})
    assert np.array_equal(held(grown, 2)[0], held(grown, 2)[1])
    assert np.array_equal(held(grown, 4)[0], held(halves, 4)[0])
    assert np.array_equal(held(grown, 6)[0], held(changed({"what": {"mix": "orthogonal"}}), 6)[0])


def test_a_mix_is_a_true_concept_like_any_other_change() -> None:
    trace = changed({"what": {"mix": "gains"}, "clients": {"names": [1]}})
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [0] * 9
    assert trace.concepts[:, 1].tolist() == [0, 0] + [1] * 7
    assert [turn.name for turn in trace.turns] == ["mix"]


@pytest.mark.parametrize(
    ("kind", "shape", "says"),
    [
        ("orthogonal", (1,), "orthogonal needs at least two features; the samples here have shape (1,)"),
        ("channels", (1, 8, 8), "channels needs at least two channels, the first axis; the samples here"),
        (
            "orthogonal",
            (3, 32, 32),
            f"at most {MOST_MIXED:,} features, and samples of shape (3, 32, 32) have",
        ),
    ],
)
def test_samples_that_cannot_be_mixed_are_refused(kind: str, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_mix(Mixing.model_validate(kind), shape, 1, "trace.changes.0")
    assert str(refused.value).startswith("trace.changes.0: mix: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_more_levels_of_strength_than_memory_has_room_for_are_refused() -> None:
    check_mix(Mixing(kind="orthogonal"), (28, 28), 27, "trace.changes.0")
    with pytest.raises(ConfigurationError) as refused:
        check_mix(Mixing(kind="orthogonal"), (28, 28), 28, "trace.changes.0")
    assert str(refused.value) == (
        "trace.changes.0.magnitude: has 28 levels, each an orthogonal map of 784 features; at most 27 are "
        "supported; lower over, or lengthen trace.rounds_per_step"
    )


def test_tokens_are_not_mixed() -> None:
    mix = Change.model_validate({"what": {"mix": "gains"}, "on": "held"}).what[0]
    turn = Change.model_validate({"what": {"noise": 1}, "on": "held"}).what[0]
    for operation, name in ((mix, "mix"), (turn, "noise")):
        with pytest.raises(ConfigurationError, match=f"{name}: the samples here are whole numbers, such as"):
            check_features(operation, (20,), "trace.changes.0", integers=True)  # type: ignore[arg-type]


def test_labels_that_are_given_follow_no_rule() -> None:
    with pytest.raises(ConfigurationError, match=r"trace\.source = 'synthetic', whose labels are made"):
        changed({"what": "rule"})
