"""`transformed` by hand: four clients whose images are turned, and what undoes gains, maps and orders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from coordinator.adaptations import ClientView, Served
from coordinator.adaptations.families import LEAST_DEVIATION, Transform
from coordinator.adaptations.transformed import Transformed, TransformedSettings, Transforming
from coordinator.adaptations.tries import TriesSettings
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan
from experiments import contracts
from tests.coordinator.adaptations.views import a_view, holding
from traces.changes.features import rotated
from traces.changes.mixing import orthogonal_map

L, R = [[1, 0], [0, 0]], [[0, 0], [1, 0]]
"""An image of label 0, and one of label 1, upright."""

UPRIGHT = np.array([L, R, L], dtype=np.float32)
LABELS = [0, 1, 0]


def transformed(**settings: Any) -> Transformed:
    return Transformed(TransformedSettings.model_validate(settings))


def by_losses(losses: npt.ArrayLike, **facts: Any) -> ClientView:
    """A view of n clients, with these losses (n, width, T) on ways that are numbered from 0."""
    table = np.array(losses, dtype=np.float64)

    def of_ways(ways: Floats) -> Floats:
        assert ways.tolist() == [[number] for number in range(table.shape[2])]
        return table

    return a_view([[2, 1]] * len(table), losses=of_ways, **facts)


def turned(*degrees: float) -> ClientView:
    """A view of clients of which each holds three images that are turned by so much."""
    images = [(rotated(UPRIGHT, angle), LABELS) for angle in degrees]
    return a_view([[2, 1]] * len(degrees), held=holding(*images))


def chosen(served: Served) -> list[float]:
    """The only number of each client's way."""
    assert served.ways is not None
    return served.ways[:, 0, 0].tolist()


# -- what is tried -------------------------------------------------------------------------------------------


def test_each_client_takes_the_turn_of_the_least_loss_and_the_first_of_equals() -> None:
    losses = [[[0.1, 3, 3, 3]], [[3, 3, 3, 0.1]], [[2, 0.5, 0.5, 2]], [[1, 1, 1, 1]]]
    assert chosen(transformed(rotations=4).adapt(by_losses(losses))) == [0, 3, 1, 0]


def test_a_loss_that_is_not_finite_is_never_the_least() -> None:
    losses = [[[np.nan, 3, np.inf, 2]], [[np.nan] * 4]]
    assert chosen(transformed(rotations=4).adapt(by_losses(losses))) == [3, 0]


def test_each_model_of_a_client_has_a_turn_of_its_own() -> None:
    plan = InferencePlan.alike(np.array([[0, 1]]))
    served = transformed(rotations=2).adapt(by_losses([[[1, 2], [2, 1]]], plan=plan))
    assert served.plan is plan
    assert served.ways is not None
    assert served.ways.tolist() == [[[0.0], [1.0]]]


def test_a_turn_is_undone_by_the_rest_of_the_circle() -> None:
    adaptation = transformed(rotations=4)
    for quarters, way in ((0, 0), (1, 3), (2, 2), (3, 1)):
        images = rotated(UPRIGHT, 90 * quarters)
        read = adaptation.read(images, np.full((3, 1), float(way)))
        assert read == pytest.approx(UPRIGHT, abs=1e-6)
        assert adaptation.read(images, np.full((3, 1), np.nan)) is images


def test_each_sample_is_read_in_its_own_way() -> None:
    images = np.concatenate([rotated(UPRIGHT[:1], 90), UPRIGHT[1:2], rotated(UPRIGHT[2:], 180)])
    read = transformed(rotations=4).read(images, np.array([[3.0], [np.nan], [2.0]]))
    assert read == pytest.approx(UPRIGHT, abs=1e-6)


def test_numbers_are_taken_off_and_divided_by() -> None:
    """Way 0 is plain."""
    features = np.array([[3.0, 5.0]], dtype=np.float32)
    for settings, way, expected in (
        ({"shifts": [1, -2]}, 0, [3, 5]),
        ({"shifts": [1, -2]}, 1, [2, 4]),
        ({"shifts": [1, -2]}, 2, [5, 7]),
        ({"scales": [2, 0.5]}, 1, [1.5, 2.5]),
        ({"scales": [2, 0.5]}, 2, [6, 10]),
    ):
        assert transformed(**settings).read(features, np.array([[float(way)]])).tolist() == [expected]


def test_finite_families_are_tried_each_with_each() -> None:
    features = np.full((4, 1), 5, dtype=np.float32)
    read = transformed(shifts=[1], scales=[2]).read(features, np.arange(4.0)[:, None])
    assert read[:, 0].tolist() == [5, 2.5, 4, 2]


# -- by class means ------------------------------------------------------------------------------------------


def test_before_anybody_has_reported_samples_are_read_plain() -> None:
    view = turned(0, 90)
    for settings in ({"rotations": 4}, {"channels": True}, {"orthogonal": True}):
        served = transformed(**settings, by="class_means").adapt(view)
        assert served.ways is not None
        assert np.isnan(served.ways).all()


def test_four_clients_undo_their_turns_by_the_means_of_the_one_that_reported() -> None:
    adaptation, first = transformed(rotations=4, by="class_means"), turned(0)
    adaptation.sent_out(first, adaptation.adapt(first))
    everyone = turned(0, 90, 180, 270)
    served = adaptation.adapt(everyone)
    assert chosen(served) == [0, 3, 2, 1]
    # What they report is as they read it: the mean of each label stays that of upright images.
    adaptation.sent_out(everyone, served)
    (means,) = adaptation._means.sums.means
    assert means.reshape(2, 2, 2) == pytest.approx(np.array([L, R]), abs=1e-6)
    assert adaptation._means.sums.counts[0, :, 0].tolist() == [2 + 4 * 2, 1 + 4 * 1]


def test_labels_of_which_nobody_or_not_the_client_has_reported_do_not_count() -> None:
    """With label 1 alone, of which only the turn by 180 degrees has the mean."""
    adaptation, first = transformed(rotations=4, by="class_means"), turned(0)
    adaptation.sent_out(first, adaptation.adapt(first))
    one = a_view([[0, 1, 1]], held=holding((rotated(np.array([R, R], dtype=np.float32), 180), [1, 1])))
    adaptation._means._counts = np.append(adaptation._means._counts, [[[0.0]]], axis=1)
    adaptation._means._sums = np.append(adaptation._means._sums, np.zeros((1, 1, 4)), axis=1)
    assert chosen(adaptation.adapt(one)) == [2]


def test_of_a_loss_nobody_reports_anything() -> None:
    adaptation, view = transformed(rotations=4), by_losses([[[1, 2, 3, 4]]])
    assert adaptation.sent_out(view, adaptation.adapt(view)) is None
    assert not adaptation._means


# -- what is measured ----------------------------------------------------------------------------------------


def read_own(adaptation: Transformed, *clients: npt.ArrayLike) -> list[Floats32]:
    """The features (n, D) of each client as it reads them."""
    columns = [np.array(features, dtype=np.float32) for features in clients]
    view = a_view([[1, 0]] * len(columns), held=holding(*((each, [0] * len(each)) for each in columns)))
    served = adaptation.adapt(view)
    assert served.ways is not None
    return [
        adaptation.read(each, np.repeat(served.ways[row, :1], len(each), axis=0))
        for row, each in enumerate(columns)
    ]


def test_standardised_undoes_a_gain_and_an_offset_of_each_feature() -> None:
    plain = np.array([[0, 4], [2, 0], [4, 8]], dtype=np.float32)
    first, second = read_own(transformed(standardised=True), plain, plain * [2, 0.25] + [8, -1])
    deviation = np.sqrt(8 / 3)
    assert first[:, 0] == pytest.approx([-2 / deviation, 0, 2 / deviation])
    assert second == pytest.approx(first)


def test_a_feature_that_hardly_varies_is_not_blown_up() -> None:
    """The second one never differs: it is divided by a tenth of the mean deviation, which is 1 / 2."""
    (read,) = read_own(transformed(standardised=True), [[0, 7], [2, 7]])
    assert read.tolist() == [[-1, 0], [1, 0]]
    (ways,) = transformed(standardised=True).adapt(a_view(held=holding(([[0, 7], [2, 7]], [0, 0])))).ways[0]
    assert ways.tolist() == [1, 7, 1, LEAST_DEVIATION * 0.5]
    (constant,) = read_own(transformed(standardised=True), [[3, 3], [3, 3]])
    assert constant.tolist() == [[0, 0], [0, 0]]


def test_quantiles_undo_whatever_rises_with_a_feature() -> None:
    plain = np.random.default_rng(0).normal(size=(7, 2))
    first, second = read_own(transformed(quantiles=True), plain, np.exp(plain) + np.array([0, 5]))
    assert first.tolist() == second.tolist()
    assert (np.diff(first[plain[:, 0].argsort(), 0]) > 0).all()


def test_a_rank_is_from_minus_1_to_1_and_0_in_the_middle() -> None:
    adaptation = transformed(quantiles=True)
    ways = adaptation.adapt(a_view(held=holding((np.arange(1.0, 22.0)[:, None], [0] * 21)))).ways
    assert ways is not None
    assert ways[0, 0].tolist() == pytest.approx(np.arange(1.5, 21.5))
    read = adaptation.read(np.array([[-9], [1], [2], [11], [21], [99]], dtype="f"), np.repeat(ways[0], 6, 0))
    assert read[:, 0] == pytest.approx([-1, -1, -0.9, 0, 1, 1])


PROFILES = np.array([[[0, 1], [5, 5], [9, 2]], [[1, 0], [7, 7], [8, 3]]], dtype=np.float32)
"""A sample of each of two labels, of three channels of two numbers."""


def test_channels_in_another_order_are_put_back() -> None:
    adaptation = transformed(channels=True, by="class_means")
    first = a_view([[1, 1]], held=holding((PROFILES, [0, 1])))
    adaptation.sent_out(first, adaptation.adapt(first))
    orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]]
    clients = [PROFILES[:, order] for order in orders]
    view = a_view([[1, 1]] * 4, held=holding(*((each, [0, 1]) for each in clients)))
    served = adaptation.adapt(view)
    assert served.ways is not None
    assert served.ways[:, 0].tolist() == [np.argsort(order).tolist() for order in orders]
    for row, each in enumerate(clients):
        assert adaptation.read(each, np.repeat(served.ways[row], 2, axis=0)).tolist() == PROFILES.tolist()


def test_an_orthogonal_map_is_undone_where_the_means_of_labels_determine_it() -> None:
    drawn = np.random.default_rng(4)
    plain = (drawn.normal(size=(8, 3)) + np.repeat(drawn.normal(size=(4, 3)), 2, axis=0)).astype(np.float32)
    labels = np.repeat(np.arange(4), 2).tolist()
    adaptation = transformed(orthogonal=True, by="class_means")
    first = a_view([[2] * 4], held=holding((plain, labels)))
    adaptation.sent_out(first, adaptation.adapt(first))
    maps = [np.eye(3), *(orthogonal_map(3, share, np.random.default_rng(1)) for share in (1.0, 0.3))]
    clients = [(plain @ each).astype(np.float32) for each in maps]
    view = a_view([[2] * 4] * 3, held=holding(*((each, labels) for each in clients)))
    served = adaptation.adapt(view)
    assert served.ways is not None
    for row, each in enumerate(clients):
        assert np.abs(adaptation.read(each, np.repeat(served.ways[row], 8, axis=0)) - plain).max() < 1e-5


def test_an_orthogonal_map_is_undone_whatever_labels_a_client_has_more_of_or_lacks() -> None:
    """The means of labels alone count: not how many samples each has, and none that only one side has."""
    means, turn = (
        np.random.default_rng(4).normal(size=(5, 3)),
        orthogonal_map(3, 1.0, np.random.default_rng(1)),
    )
    adaptation = transformed(orthogonal=True, by="class_means")
    first = a_view([[1] * 5], held=holding((means[[0, 0, 0, 1, 2, 3]], [0, 0, 0, 1, 2, 3])))
    adaptation.sent_out(first, adaptation.adapt(first))
    labels = [0, 1, 1, 1, 1, 2, 3, 4]
    view = a_view([[1] * 5] * 2, held=holding((means[labels] @ turn, labels), (means[[2, 2]] @ turn, [2, 2])))
    served = adaptation.adapt(view)
    assert served.ways is not None
    plain = means[labels].astype(np.float32)
    read = adaptation.read((plain @ turn).astype(np.float32), np.repeat(served.ways[0], 8, axis=0))
    assert np.abs(read - plain)[labels != np.array(4)].max() < 1e-5
    assert np.isnan(served.ways[1]).all()  # one label alone: as it is


def test_directions_that_no_means_of_labels_have_are_left_out() -> None:
    plain = np.array([[1, 0, 5], [3, 0, -5]], dtype=np.float32)  # means that differ along one feature alone
    plain = np.concatenate([plain, plain * [[1, 1, -1]]]).astype(np.float32)
    adaptation = transformed(orthogonal=True, by="class_means")
    view = a_view([[1, 1]], held=holding((plain, [0, 1, 0, 1])))
    adaptation.sent_out(view, adaptation.adapt(view))
    served = adaptation.adapt(view)
    assert served.ways is not None
    read = adaptation.read(plain, np.repeat(served.ways[0], 4, axis=0))
    assert read == pytest.approx(np.array([[1, 0, 0], [3, 0, 0]] * 2), abs=1e-6)


# -- of one's own --------------------------------------------------------------------------------------------


class Mine(Transforming):
    """Features as they are, with signs turned, and in reverse order."""

    def transforms(self) -> Sequence[Transform]:
        return [np.positive, np.negative, lambda features: features[:, ::-1]]


def test_a_class_of_ones_own_needs_transforms_alone() -> None:
    mine = Mine(TriesSettings())
    served = mine.adapt(by_losses([[[2, 1, 3]], [[2, 3, 1]]]))
    assert chosen(served) == [1, 2]
    read = mine.read(np.array([[1, 2], [1, 2], [1, 2]], dtype="f"), np.array([[0.0], [1.0], [2.0]]))
    assert read.tolist() == [[1, 2], [-1, -2], [2, 1]]
    assert (mine.trains, mine.hears, mine.reads, mine.serves_one) == (True, True, True, True)
    mine.check_features((2,), integers=False)


class Halving(Transforming):
    def transforms(self) -> Sequence[Transform]:
        return [np.positive, lambda features: features[:, :1]]


class Averaging(Transforming):
    def transforms(self) -> Sequence[Transform]:
        return [lambda features: features.mean()]


class Centring(Transforming):
    def transforms(self) -> Sequence[Transform]:
        return [lambda features: features - features.mean(axis=0)]


def test_a_transform_reads_each_sample_by_itself() -> None:
    with pytest.raises(
        ConfigurationError, match="number 0 reads a sample otherwise if another one is beside"
    ):
        Centring(TriesSettings()).check_features((3,), integers=False)


@pytest.mark.parametrize(("kind", "number", "made"), [(Halving, 1, "(2, 1)"), (Averaging, 0, "()")])
def test_transforms_that_change_shapes_are_refused(kind: type[Transforming], number: int, made: str) -> None:
    said = f"transforms: number {number} makes {made} of two samples, and must keep shapes"
    with pytest.raises(ConfigurationError, match=f"^{re.escape(said)}, and samples here have shape"):
        kind(TriesSettings()).check_features((3,), integers=False)


# -- costs ---------------------------------------------------------------------------------------------------


def test_each_way_that_is_tried_is_a_prediction_of_every_sample_by_every_model() -> None:
    plan = InferencePlan(np.array([[0, 1], [0, -1]]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    view = a_view([[2, 1], [3, 2]], plan=plan)
    adaptation = transformed(rotations=8)
    for work in (adaptation.work(view), adaptation.choosing_work(view)):
        assert work is not None
        assert work.forward_samples.tolist() == [3 * 8 * 2, 5 * 8]
        assert not work.trained_samples.any()
    assert adaptation.work(a_view(evaluated=False)) is None
    assert transformed(shifts=[1, 2, 3]).choosing_work(a_view([[2, 1]])).forward_samples.tolist() == [3 * 4]


def test_what_compares_is_charged_for_means_of_labels_alone() -> None:
    """2 labels and 4 features: 2 numbers of samples, 2 x 4 sums and 4 of squares, of 4 bytes each."""
    adaptation, view = transformed(rotations=4, by="class_means"), turned(0, 90)
    before = adaptation.choosing_work(view)
    reported = adaptation.sent_out(view, adaptation.adapt(view))
    after = adaptation.choosing_work(view)
    assert before is not None
    assert after is not None
    assert reported is not None
    assert before.download_bytes.tolist() == [0, 0]
    assert after.download_bytes.tolist() == reported.upload_bytes.tolist() == [56, 56]
    assert not after.upload_bytes.any()
    assert not after.forward_samples.any()
    assert adaptation.work(view) is None


@pytest.mark.parametrize("family", ["standardised", "quantiles"])
def test_what_is_measured_costs_nothing(family: str) -> None:
    adaptation, view = transformed(**{family: True}), turned(0)
    assert adaptation.choosing_work(view) is adaptation.work(view) is None
    assert adaptation.sent_out(view, adaptation.adapt(view)) is None


def test_what_trains_or_compares_is_asked_at_each_dispatch() -> None:
    for settings, trains, hears in (
        ({}, True, True),
        ({"train": False}, False, False),
        ({"train": False, "by": "class_means"}, False, True),
    ):
        adaptation = transformed(rotations=4, **settings)
        assert (adaptation.trains, adaptation.hears) == (trains, hears)


# -- what is refused -----------------------------------------------------------------------------------------

ALL = "rotations, shifts, scales, standardised, quantiles, channels, orthogonal"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, f"families of changes: none; set one of {ALL}"),
        ({"rotations": 4, "quantiles": True}, f"families of changes: rotations, quantiles; set one of {ALL}"),
        ({"rotations": 360, "shifts": [1, 2]}, "1,080 combinations to try; at most 1,000 are supported"),
        ({"shifts": []}, "at least 1 item"),
        ({"scales": []}, "at least 1 item"),
        ({"scales": [0]}, "greater than or equal to 0.000001"),
        ({"rotations": 1}, "greater than or equal to 2"),
        ({"standardised": False}, "families of changes: none"),
        ({"standardised": True, "by": "class_means"}, "by = 'class_means': standardised is measured, and"),
        ({"quantiles": True, "by": "class_means"}, "by = 'class_means': quantiles is measured, and"),
        ({"channels": True}, "channels: too many orders to try each; set by = 'class_means'"),
        ({"orthogonal": True}, "orthogonal: too many maps to try each; set by = 'class_means'"),
    ],
)
def test_mistakes_of_settings_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        transformed(**settings)


IMAGES = "rotations: turn images, of shape (height, width) or (channels, height, width)"
CHANNELS = "channels: are the first axis of a sample, at least two"


@pytest.mark.parametrize(
    ("settings", "shape", "wrong"),
    [
        ({"rotations": 4}, (13,), IMAGES),
        ({"rotations": 4}, (1, 13), IMAGES),
        ({"rotations": 4}, (2, 3, 8, 8), IMAGES),
        ({"channels": True, "by": "class_means"}, (1, 28, 28), CHANNELS),
    ],
)
def test_features_that_do_not_fit_the_family_are_refused(
    settings: dict[str, Any], shape: tuple[int, ...], wrong: str
) -> None:
    said = re.escape(f"{wrong}, and samples here have shape {shape}")
    with pytest.raises(ConfigurationError, match=f"^{said}$"):
        transformed(**settings).check_features(shape, integers=False)


def test_features_that_fit_are_taken_and_whole_numbers_refused() -> None:
    for settings, shape in (
        ({"rotations": 4}, (28, 28)),
        ({"rotations": 4}, (3, 32, 32)),
        ({"shifts": [1]}, (1,)),
        ({"channels": True, "by": "class_means"}, (2,)),
        ({"quantiles": True}, (5, 2)),
    ):
        transformed(**settings).check_features(shape, integers=False)
        with pytest.raises(ConfigurationError, match=r"whole numbers, such as tokens, .*'relabelled'"):
            transformed(**settings).check_features(shape, integers=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"rotations": 2, "scales": [2.0], "train": False},
        {"scales": [2.0], "by": "class_means"},
        {"standardised": True},
        {"quantiles": True},
        {"channels": True, "by": "class_means"},
        {"orthogonal": True, "by": "class_means"},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_families_keep_the_contract(settings: dict[str, Any]) -> None:
    contracts.check_adaptation(lambda: transformed(**settings))
