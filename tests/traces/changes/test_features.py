"""What is done to features: rotations as scipy has them, noise and replaced values, each sample's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from emulator.arrays import Floats32
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, some_images, trace_of
from traces.changes.changed import with_changes
from traces.changes.features import rotated
from traces.changes.settings import Change
from traces.images import ImageSet
from traces.trace import Trace

PIXELS = np.random.default_rng(0).random((40, 6, 5), dtype=np.float32)
IMAGES = ImageSet(PIXELS, 1.0, np.repeat([0, 1], 20), 2, train=np.arange(0, 40, 2), test=np.arange(1, 40, 2))
STATIC: list[Row] = [(client, split, 0, 0) for client in (0, 1) for split in (0, 1) for _ in range(9)]


def changed(*changes: dict[str, Any], rows: list[Row] = STATIC, rounds: int = 8, retain: int = 9) -> Trace:
    plain = trace_of(rows, images=IMAGES, retain_steps=retain, test_then_train=False)
    parsed = [Change.model_validate({"on": "held", "at_step": 2, **change}) for change in changes]
    return with_changes(plain, parsed, rounds, RandomStreams(1))


def held(trace: Trace, step: int, client: int = 0, split: Any = "train") -> tuple[Floats32, Floats32]:
    """(n, 6, 5) the features that a client holds, and those of the images that they are made from."""
    rows = trace.held(np.array([client]), split, step).rows(0)
    return trace.features(rows), PIXELS[trace.table.take("image", rows)]


@pytest.mark.parametrize("shape", [(6, 5), (3, 8, 8), (1, 2, 9)])
@pytest.mark.parametrize("degrees", [0.0, 17.3, 90.0, -45.0, 180.0, 360.0, 300.5])
def test_images_turn_as_scipy_turns_them(shape: tuple[int, ...], degrees: float) -> None:
    images = np.random.default_rng(1).random((4, *shape), dtype=np.float32)
    expected = ndimage.rotate(images, degrees, axes=(-1, -2), reshape=False, order=1)
    assert np.abs(rotated(images, degrees) - expected).max() < 1e-6
    assert np.array_equal(rotated(images, degrees)[1:2], rotated(images[1:2], degrees))


def test_a_quarter_turn_is_counter_clockwise_and_exact() -> None:
    square = PIXELS[:3, :5]
    assert np.array_equal(rotated(square, 90), np.rot90(square, axes=(1, 2)))
    assert np.array_equal(rotated(square, 360), square)


def test_features_change_at_the_onset_and_come_back_at_the_end() -> None:
    trace = changed({"what": {"rotate": 40}, "until_step": 5, "clients": {"names": [0]}})
    for split in ("train", "test"):
        for step, angle in ((1, 0), (2, 40), (4, 40), (5, 0), (7, 0)):
            features, images = held(trace, step, split=split)
            assert np.array_equal(features, rotated(images, angle) if angle else images)
    features, images = held(trace, 3, client=1)
    assert np.array_equal(features, images)


def test_the_magnitude_is_a_factor_that_may_move() -> None:
    curve = {"from": 0, "to": 1, "over": 4}
    trace = changed({"what": {"rotate": 40}, "magnitude": curve})
    for step, angle in enumerate([0, 0, 0, 10, 20, 30, 40, 40]):
        features, images = held(trace, step)
        assert np.array_equal(features, rotated(images, angle) if angle else images)


def test_noise_is_each_samples_own_and_stays_while_it_is_held() -> None:
    trace = changed({"what": {"noise": 0.5}}, {"what": "reverse", "at_step": 4})
    features, images = held(trace, 2)
    noise = features - images
    assert 0.4 < noise.std() < 0.6
    assert len(np.unique(noise[:, 0, 0])) == len(noise)
    # Another change sends all anew; the noise of a sample is what it was.
    again, images = held(trace, 4)
    assert np.allclose(again - images, noise)
    of_others = held(trace, 2, client=1)
    assert not np.allclose(of_others[0] - of_others[1], noise)


def test_two_changes_with_noise_do_not_share_it() -> None:
    once = [held(changed({"what": {"noise": deviation}}), 2) for deviation in (1.0, 2.0)]
    one, double = (features - images for features, images in once)
    assert np.allclose(double, 2 * one, atol=1e-6)
    features, images = held(changed({"what": {"noise": 1.0}}, {"what": {"noise": 1.0}}), 2)
    assert not np.allclose(features - images, double, atol=0.1)


def test_replaced_features_are_uniform_between_the_limits_and_labels_stay() -> None:
    trace = changed({"what": {"replace": [10, 1000]}, "on": "held"})
    features, _ = held(trace, 2)
    assert 10 <= features.min() < 40
    assert 900 < features.max() < 1000
    half, images = held(changed({"what": {"replace": [10, 1000]}, "magnitude": 0.5}), 2)
    assert np.allclose(half, (features + images) / 2, rtol=1e-5)


@pytest.mark.parametrize(("share", "count"), [(0.5, 4), (0.34, 3), (1.0, 9), (1 / 3, 3)])
def test_of_n_samples_int_of_the_share_changes(share: float, count: int) -> None:
    trace = changed({"what": {"rotate": 90}, "samples": share}, {"what": "reverse", "at_step": 0})
    for split in ("train", "test"):
        features, images = held(trace, 3, split=split)
        assert int((features != images).any(axis=(1, 2)).sum()) == count


@pytest.mark.parametrize(
    ("nothing", "says"),
    [
        ({"samples": 0.1}, r"rotate changes no sample: .* is too small"),
        ({"samples": 0}, r"changes\.0\.samples = 0: changes nothing"),
        ({"magnitude": 0}, r"changes\.0\.magnitude = 0: changes nothing"),
    ],
)
def test_a_share_or_a_magnitude_that_leaves_all_as_it_was_is_refused(
    nothing: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        changed({"what": {"rotate": 90}, **nothing})


def test_a_curve_that_lasts_for_ever_costs_no_more_than_the_run() -> None:
    slow = {"from": 0.5, "to": 1, "over": 10**9}
    features, images = held(changed({"what": {"rotate": 90}, "samples": slow}), 7)
    assert int((features != images).any(axis=(1, 2)).sum()) == 4


def test_of_a_growing_share_the_samples_are_nested() -> None:
    trace = changed({"what": {"rotate": 90}, "samples": {"from": 1 / 9, "to": 1, "over": 4}})
    turned: set[int] = set()  # samples stay in their order when they are sent anew
    for step, count in zip(range(2, 8), [1, 3, 5, 7, 9, 9], strict=True):
        features, images = held(trace, step)
        now = set(np.flatnonzero((features != images).any(axis=(1, 2))).tolist())
        assert len(now) == count
        assert turned <= now
        turned = now


def test_of_a_stream_the_share_adds_up_over_what_arrives() -> None:
    rows: list[Row] = [(0, split, step, 0) for split in (0, 1) for step in range(8)]
    trace = changed({"what": {"noise": 1}, "samples": 0.5, "at_step": 0, "on": "arrivals"}, rows=rows)
    features, images = held(trace, 7)
    assert int((features != images).any(axis=(1, 2)).sum()) == 4


def test_cumulative_turns_add_up_on_samples_drawn_anew() -> None:
    curves = {"samples": {"from": 1 / 9, "to": 1, "over": 2}, "magnitude": {"from": 0.5, "to": 1, "over": 2}}
    trace = changed({"what": {"rotate": 20}, "cumulative": True, **curves})
    single = changed({"what": {"rotate": 20}, **curves})
    at_start = [held(which, 2) for which in (trace, single)]
    counts = [int((features != images).any(axis=(1, 2)).sum()) for features, images in at_start]
    assert counts == [1, 1]  # int(9 / 9)
    features, images = held(trace, 4)
    # All are turned by 20 degrees at step 4; five of nine by 15 at step 3, one by 10 at step 2, before that.
    angles = {(): 0, (15,): 0, (10,): 0, (10, 15): 0}
    for sample, image in zip(features, images, strict=True):
        for path in angles:
            turned = image[None]
            for angle in (*path, 20):
                turned = rotated(turned, angle)
            if np.allclose(turned[0], sample, atol=1e-6):
                angles[path] += 1
    assert sum(angles.values()) == 9
    assert angles[15,] + angles[10, 15] == 5
    assert angles[10,] + angles[10, 15] == 1
    later, images = held(trace, 7)
    assert np.array_equal(later, features)  # its curves have ended
    features, images = held(single, 7)
    assert np.array_equal(features, rotated(images, 20))


def test_a_digest_knows_what_is_done_to_features() -> None:
    kinds = [{"what": {"rotate": 20}}, {"what": {"rotate": 21}}, {"what": {"noise": 20}}]
    traces = [changed(kind) for kind in (*kinds, kinds[0] | {"magnitude": 0.5}, kinds[0])]
    assert len({trace.digest() for trace in traces}) == 4
    assert traces[0].digest() == traces[4].digest()


def test_sensor_noise_is_added_after_the_change() -> None:
    plain = trace_of(STATIC, images=IMAGES, retain_steps=9, noise=0.3, test_then_train=False)
    change = Change.model_validate({"what": {"rotate": 40}, "on": "held", "at_step": 1})
    trace = with_changes(plain, [change], 4, RandomStreams(1))
    before, after = (trace.held(np.array([0]), "train", step).rows(0) for step in (0, 1))
    images = PIXELS[trace.table.take("image", before)]
    noise = trace.features(before) - images
    assert np.allclose(trace.features(after), rotated(images, 40) + noise, atol=1e-6)


def test_what_is_no_image_cannot_be_turned() -> None:
    vectors = trace_of(STATIC, images=some_images(shape=(4,)), test_then_train=False)
    with pytest.raises(
        ConfigurationError, match=r"rotate turns images, .*; the samples here have shape \(4,\)"
    ):
        with_changes(
            vectors,
            [Change.model_validate({"what": {"rotate": 9}, "on": "held", "at_step": 1})],
            4,
            RandomStreams(0),
        )
