from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from coordinator.adaptations import ClientView
from coordinator.adaptations.base import Held
from coordinator.adaptations.transformed import Transformed, TransformedSettings, Transforming
from coordinator.adaptations.tries import TriesSettings
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import BYTES_PER_REPORTED_NUMBER
from experiments import contracts
from tests.coordinator.adaptations.views import a_view
from traces.changes.features import rotated

CORNER = np.array([[1, 0], [0, 0]], dtype=np.float32)
"""An image that is another one after each turn by 90 degrees."""


def transformed(**settings: Any) -> Transformed:
    return Transformed(TransformedSettings(**settings))


def a_view_of(*clients: tuple[npt.ArrayLike, Sequence[int]], losses: Any = None) -> ClientView:
    """Clients that hold samples of these features and labels, of two labels."""
    counts = [[labels.count(0), labels.count(1)] for _, labels in clients]
    held = Held(
        np.arange(len(clients)),
        np.concatenate([np.array(features, dtype=np.float32) for features, _ in clients]),
        np.concatenate([labels for _, labels in clients]),
        np.repeat(np.arange(len(clients)), [len(labels) for _, labels in clients]),
    )
    known = {} if losses is None else {"losses": losses}
    return a_view(counts, held=lambda: iter([held]), evaluated=True, **known)


def ways_of(adaptation: Transformed, view: ClientView) -> Floats:
    ways = adaptation.adapt(view).ways
    assert ways is not None
    return ways[:, 0]


def turned(times: int) -> Floats32:
    return np.array(np.rot90(CORNER, times))


def test_four_clients_undo_their_turns_by_the_loss_of_a_model_of_upright_images() -> None:
    """Turned on by 90 degrees k times, the images of client k are undone by 4 - k further turns."""
    adaptation = transformed(rotations=4)
    images = np.stack([turned(times) for times in range(4)])

    def losses(ways: Floats) -> Floats:
        read = [adaptation.read(images, np.repeat(way[None], 4, axis=0)) for way in ways]
        return np.stack([((each - CORNER) ** 2).sum(axis=(1, 2)) for each in read], axis=1)[:, None]

    view = a_view_of(*(([image], [0]) for image in images), losses=losses)
    ways = ways_of(adaptation, view)
    assert ways[:, 0].tolist() == [0, 3, 2, 1]
    np.testing.assert_allclose(adaptation.read(images, ways), np.stack([CORNER] * 4), atol=1e-6)


def test_the_same_by_class_means_once_somebody_has_reported() -> None:
    adaptation = transformed(rotations=4, by="class_means")
    clients = [([turned(times)], [0]) for times in range(4)]
    plain = adaptation.adapt(a_view_of(*clients))
    assert np.isnan(plain.ways).all()
    upright = a_view_of(([CORNER, CORNER], [0, 0]))
    adaptation.sent_out(upright, adaptation.adapt(upright))
    assert ways_of(adaptation, a_view_of(*clients))[:, 0].tolist() == [0, 3, 2, 1]
    # A participant reports what it reads: the common means stay those of upright images.
    later = a_view_of(([turned(1)], [0]))
    adaptation.sent_out(later, adaptation.adapt(later))
    assert ways_of(adaptation, a_view_of(*clients))[:, 0].tolist() == [0, 3, 2, 1]


def test_a_label_that_either_lacks_does_not_decide() -> None:
    adaptation = transformed(shifts=[1.0], by="class_means")
    sent = a_view_of(([[0.0]], [0]))
    adaptation.sent_out(sent, adaptation.adapt(sent))
    assert ways_of(adaptation, a_view_of(([[1.0], [0.0]], [0, 1]), ([[0.0]], [1]))).tolist() == [[1], [0]]


def test_losses_that_are_not_finite_leave_samples_as_they_are() -> None:
    view = a_view_of(([CORNER], [0]), losses=lambda ways: np.full((1, 1, len(ways)), np.nan))
    assert ways_of(transformed(rotations=4), view).tolist() == [[0]]


def test_shifts_and_scales_are_tried_each_with_each_and_none() -> None:
    adaptation = transformed(shifts=[1.0], scales=[2.0])
    one = np.full((4, 1), 5, dtype=np.float32)
    assert adaptation.read(one, np.arange(4.0)[:, None])[:, 0].tolist() == [5, 2.5, 4, 2]


def test_gains_and_offsets_are_undone_by_standardising() -> None:
    features = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    other = features * np.float32([2, 5, 0.5]) + np.float32([1, -3, 0])
    adaptation, labels = transformed(standardised=True), [0] * 30
    ways = ways_of(adaptation, a_view_of((features, labels), (other, labels)))
    read = [
        adaptation.read(each, np.repeat(way[None], 30, axis=0))
        for each, way in zip((features, other), ways, strict=True)
    ]
    np.testing.assert_allclose(*read, atol=0.2)  # the least deviation is a tenth of the mean one
    np.testing.assert_allclose(read[0].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(read[0].std(axis=0), 1, atol=1e-5)


def test_a_constant_feature_and_a_single_sample_are_read_as_numbers() -> None:
    for family in ("standardised", "quantiles"):
        adaptation = transformed(**{family: True})
        ways = ways_of(adaptation, a_view_of(([[1.0, 1.0]], [0])))
        assert np.isfinite(adaptation.read(np.ones((1, 2), dtype=np.float32), ways)).all()


def test_what_rises_with_a_feature_is_undone_by_quantiles() -> None:
    features = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
    adaptation, labels = transformed(quantiles=True), [0] * 40
    ways = ways_of(adaptation, a_view_of((features, labels), (3 * features + 1, labels)))
    first, second = (
        adaptation.read(each, np.repeat(way[None], 40, axis=0))
        for each, way in zip((features, 3 * features + 1), ways, strict=True)
    )
    assert np.abs(first - second).max() <= 2 / 20  # one of twenty levels
    assert first.min() == -1
    assert first.max() == 1


def test_channels_are_put_in_the_order_of_the_reports() -> None:
    adaptation = transformed(channels=True, by="class_means")
    sample = np.array([[[0.0, 1.0], [5.0, 5.0], [9.0, 0.0]]])
    sent = a_view_of((sample, [0]))
    assert np.isnan(adaptation.adapt(sent).ways).all()
    adaptation.sent_out(sent, adaptation.adapt(sent))
    ways = ways_of(adaptation, a_view_of((sample[:, [2, 0, 1]], [0]), (sample, [0])))
    assert ways.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert adaptation.read(sample[:, [2, 0, 1]].astype("f"), ways[:1]).tolist() == sample.tolist()


def test_each_transform_of_each_sample_is_predicted_and_charged() -> None:
    view = a_view_of(([CORNER] * 3, [0, 0, 1]), ([CORNER], [1]))
    for adaptation, tried in ((transformed(rotations=8), 8), (transformed(scales=[2.0, 3.0]), 3)):
        for work in (adaptation.work(view), adaptation.choosing_work(view)):
            assert work is not None
            assert work.forward_samples.tolist() == [3 * tried, tried]
            assert not np.any([work.download_bytes, work.upload_bytes, work.trained_samples])
    assert transformed(rotations=8).work(a_view(evaluated=False)) is None


def test_what_is_measured_is_free() -> None:
    adaptation = transformed(standardised=True)
    assert adaptation.work(a_view(evaluated=True)) is adaptation.choosing_work(a_view()) is None


def test_class_means_travel_in_both_directions_and_cost_no_prediction() -> None:
    adaptation = transformed(rotations=4, by="class_means")
    view = a_view_of(([CORNER], [0]), ([CORNER], [1]))
    adaptation.sent_out(view, adaptation.adapt(view))
    work = adaptation.choosing_work(view)
    assert work is not None
    numbers = 2 * (4 + 1) + 4  # of two labels the sum and the number, and the squares of four features
    assert (
        work.download_bytes.tolist()
        == work.upload_bytes.tolist()
        == [BYTES_PER_REPORTED_NUMBER * numbers] * 2
    )
    assert not work.forward_samples.any()
    assert adaptation.work(view) is None


def test_with_train_it_is_asked_at_dispatch_and_without_only_to_hear_reports() -> None:
    assert transformed(rotations=4).trains
    late = transformed(rotations=4, train=False)
    assert not late.hears
    late = transformed(rotations=4, train=False, by="class_means")
    assert late.hears
    assert not late.trains


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "families of changes: none; set one of rotations, shifts"),
        ({"rotations": 4, "standardised": True}, "families of changes: rotations, standardised; set one of"),
        ({"shifts": []}, "at least 1 item"),
        ({"standardised": True, "by": "loss"}, "with standardised nothing is compared"),
        ({"channels": True}, "too many orders to try each; set by = 'class_means'"),
        ({"rotations": 360, "scales": [2.0, 3.0]}, "1,080 combinations to try; at most 1,000"),
        ({"rotations": 1}, "2"),
    ],
)
def test_mistakes_in_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        TransformedSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "shape", "complaint"),
    [
        ({"rotations": 4}, (64,), "rotations are of images.* the samples here have shape \\(64,\\): choose"),
        ({"rotations": 4}, (1, 8), "rotations are of images"),
        ({"channels": True, "by": "class_means"}, (1, 8, 8), "at least two; the samples here have shape"),
    ],
)
def test_a_family_that_does_not_fit_the_features_is_refused(
    settings: dict[str, Any], shape: tuple[int, ...], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        transformed(**settings).check_features(shape, integers=False)


def test_tokens_have_no_ways() -> None:
    with pytest.raises(ConfigurationError, match=r"whole numbers, such as tokens.*choices: 'relabelled'"):
        transformed(scales=[2.0]).check_features((16,), integers=True)
    transformed(scales=[2.0]).check_features((16,), integers=False)


class Negatives(Transforming):
    def transforms(self) -> list[Any]:
        return [lambda features: features, lambda features: -features]


def test_a_class_of_ones_own_says_its_transforms_alone() -> None:
    own = Negatives(TriesSettings())
    view = a_view_of(([[1.0]], [0]), losses=lambda ways: np.array([[[2.0, 1.0]]]))
    ways = own.adapt(view).ways
    assert ways is not None
    assert own.read(np.ones((1, 1), dtype=np.float32), ways[:, 0]).tolist() == [[-1]]


@pytest.mark.parametrize(
    "settings",
    [
        {"rotations": 4},
        {"rotations": 2, "scales": [2.0], "train": False},
        {"scales": [2.0], "by": "class_means"},
        {"standardised": True},
        {"quantiles": True},
        {"channels": True, "by": "class_means"},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_families_keep_the_contract(settings: dict[str, Any]) -> None:
    contracts.check_adaptation(lambda: transformed(**settings))


def test_turning_back_by_the_last_of_eight_is_a_turn_by_45_degrees() -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    read = transformed(rotations=8).read(image, np.array([[7.0]]))
    np.testing.assert_array_equal(read, rotated(image, 315))
