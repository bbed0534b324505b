from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.datasets import load_digits

from emulator.errors import ConfigurationError, UnknownNameError
from emulator.ports import Split
from emulator.seeding import RandomStreams
from experiments.sameness import same
from tests.traces.tiny import context, write_idx, write_idx_folder
from traces.images import ImageSet, stratified_parts
from traces.sources import SOURCES
from traces.sources.mixed_images import MixedImages
from traces.trace import Trace, TraceStream

SMALL = {"clients": 6, "rounds_per_step": 5, "retain_rounds": 10}


def nowhere(path: str) -> Path:
    raise AssertionError(f"{path} was looked for")


def digits(rounds: int = 20, seed: int = 0, **settings: Any) -> Trace:
    source = SOURCES.find("digits")
    built = source(source.Settings.model_validate({**SMALL, **settings}))  # type: ignore[call-arg]
    return built.build(context(rounds, seed, nowhere))


def idx(folder: Path, **settings: Any) -> Trace:
    source = SOURCES.find("idx")
    built = source(  # type: ignore[call-arg]
        source.Settings.model_validate({**SMALL, "folder": "set", **settings})
    )
    return built.build(context(20, locate=lambda path: folder / path))


def test_sources_go_by_name_and_an_unknown_one_lists_them() -> None:
    assert SOURCES.names() == [
        "concepts",
        "digits",
        "file",
        "idx",
        "label_replay",
        "markov_text",
        "synthetic",
    ]
    with pytest.raises(
        UnknownNameError, match="unknown trace source 'digit'; choices: concepts, digits, file,"
    ):
        SOURCES.find("digit")


def test_digits_are_those_of_scikit_learn_in_its_order() -> None:
    bundle = load_digits()
    source = SOURCES.find("digits")
    images = source(source.Settings()).images(context(1, 0, nowhere))  # type: ignore[attr-defined, call-arg]
    assert np.array_equal(images.pixels, bundle.images)
    assert np.array_equal(images.labels, bundle.target)


def test_digits_need_no_file() -> None:
    trace = digits()
    assert (trace.num_clients, trace.num_labels, trace.sample_shape) == (6, 10, (8, 8))
    features = trace.features(np.arange(len(trace)))
    assert (features.min(), features.max()) == (0.0, 1.0)


@pytest.mark.slow
def test_the_pixels_of_a_digit_are_of_its_label() -> None:
    # The mean drawn image of each label is nearest to the same label's mean image in the test split.
    trace = digits(drift={"kind": "none", "mixes": 10, "labels_per_mix": 1}, clients=40)
    table = trace.columns()
    features = trace.features(np.arange(len(trace))).reshape(len(trace), -1)
    means = [
        np.array(
            [features[(table.split == split) & (table.label == label)].mean(axis=0) for label in range(10)]
        )
        for split in (0, 1)
    ]
    distance = ((means[0][:, None] - means[1][None]) ** 2).sum(axis=2)
    assert distance.argmin(axis=1).tolist() == list(range(10))


@pytest.mark.slow
def test_no_image_is_drawn_for_both_training_and_testing() -> None:
    for trace in (digits(clients=100), digits(clients=100, seed=5)):
        table = trace.columns()
        train, test = (set(table.image[table.split == split].tolist()) for split in (0, 1))
        assert len(train) > 1000
        assert len(test) > 500
        assert not train & test


@pytest.mark.slow
def test_a_seed_names_one_trace() -> None:
    assert digits(seed=1).digest() == digits(seed=1).digest() != digits(seed=2).digest()


@pytest.mark.slow
def test_noise_changes_no_draw() -> None:
    plain, noisy = digits(), digits(noise=0.5)
    assert np.array_equal(plain.columns().image, noisy.columns().image)
    rows = np.arange(100)
    assert (noisy.features(rows) - plain.features(rows)).std() == pytest.approx(0.5, rel=0.05)


def test_a_trace_lasts_as_long_as_its_run() -> None:
    trace = digits(rounds=23)  # five steps of data; two are retained
    assert trace.last_step == 4
    stream = TraceStream(trace)
    everyone = np.arange(6)
    for round_ in range(23):
        stream.advance_to_round(round_)
        assert stream.held(everyone, "train").counts().tolist() == [40] * 6
        assert stream.held(everyone, "test").counts().tolist() == [20] * 6


def test_data_of_an_event_arrives_with_the_rounds_first_arrivals() -> None:
    drift = {"kind": "label_mix", "mixes": 3, "labels_per_mix": 1, "background": 0, "move_probability": 0}
    trace = digits(drift={**drift, "events": [{"round": 15, "share": 1.0}]})
    table = trace.columns()
    labels = [set(table.label[table.arrival == step].tolist()) for step in range(-1, 4)]
    before, after = set.union(*labels[:4]), labels[4]  # step 3 is round 15
    assert len(before) <= 3
    assert after
    assert not before & after


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_idx_folder_is_drawn_from_by_its_published_split(tmp_path: Path, suffix: str) -> None:
    write_idx_folder(tmp_path / "set", num_labels=4, per_label=3, suffix=suffix)
    trace = idx(tmp_path)
    table = trace.columns()
    assert (trace.num_labels, trace.sample_shape) == (4, (2, 2))
    assert set(table.image[table.split == 0].tolist()) <= set(range(12))
    assert set(table.image[table.split == 1].tolist()) <= set(range(12, 24))
    assert np.array_equal(table.label, table.image % 12 % 4)


# -- a split of the images that are pooled ------------------------------------------------------------------


TWO_OF_THREE = {"kind": "none", "labels_per_mix": 2, "mixes": 2}
"""Clients with two of three labels."""


def of_folder(**settings: Any) -> MixedImages:
    """The source of the images in the folder `set`."""
    source = SOURCES.find("idx")
    built = source(source.Settings.model_validate({"folder": "set", **settings}))  # type: ignore[call-arg]
    assert isinstance(built, MixedImages)
    return built


def pooled(folder: Path, seed: int = 0, **settings: Any) -> ImageSet:
    return of_folder(**settings).images(context(20, seed, lambda path: folder / path))


def test_a_split_pools_the_published_images_and_leaves_out_the_rest(tmp_path: Path) -> None:
    """Of each of three labels there are 5 + 5 images: 6 are for training, 2 for testing, 2 for nothing."""
    write_idx_folder(tmp_path / "set", per_label=5)
    published, images = pooled(tmp_path), pooled(tmp_path, split=[0.6, 0.2])
    assert (len(published.train), len(published.test)) == (15, 15)
    assert np.array_equal(images.pixels, published.pixels)
    assert np.bincount(images.labels[images.train]).tolist() == [6, 6, 6]
    assert np.bincount(images.labels[images.test]).tolist() == [2, 2, 2]
    used = [*images.train.tolist(), *images.test.tolist()]
    assert len(set(used)) == 24
    # Both kinds have training and test images of both published files.
    assert {0, 1} == set((images.train >= 15).tolist()) == set((images.test >= 15).tolist())


def test_each_seed_draws_its_own_split_from_the_stream_of_splits(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "set", per_label=5)
    first, again, other = (pooled(tmp_path, seed, split=[0.6, 0.2]) for seed in (0, 0, 1))
    assert np.array_equal(first.train, again.train)
    assert np.array_equal(first.test, again.test)
    assert not np.array_equal(first.train, other.train)
    train, test = stratified_parts(first.labels, (0.6, 0.2), RandomStreams(1).generator("split"))
    assert np.array_equal(other.train, train)
    assert np.array_equal(other.test, test)


def test_clients_draw_from_a_split_and_divide_it_by_a_partition(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "set", per_label=5)
    images, place = pooled(tmp_path, split=[0.6, 0.2]), context(20, 0, lambda path: tmp_path / path)
    drawn = of_folder(**SMALL, drift=TWO_OF_THREE, split=[0.6, 0.2]).build(place).columns()
    owned = of_folder(clients=2, partition="iid", split=[0.6, 0.2]).build(place).columns()
    for split, allowed in enumerate((images.train, images.test)):
        assert set(drawn.image[drawn.split == split].tolist()) <= set(allowed.tolist())
        assert sorted(owned.image[owned.split == split].tolist()) == allowed.tolist()
    two = of_folder(clients=2, partition="iid", split=[0.6, 0.2], labels=[2, 0]).build(place)
    assert len(two.columns().image) == 2 * (6 + 2)


def test_digits_take_a_split_instead_of_their_own(tmp_path: Path) -> None:
    source = SOURCES.find("digits")

    def of(**settings: Any) -> ImageSet:
        built = source(source.Settings.model_validate(settings))  # type: ignore[call-arg]
        return built.images(context(20, 0, nowhere))  # type: ignore[attr-defined, no-any-return]

    images = of(split=[0.6, 0.2])
    counts = np.bincount(images.labels)
    assert np.bincount(images.labels[images.train]).tolist() == np.rint(0.6 * counts).tolist()
    used = np.bincount(images.labels[np.concatenate([images.train, images.test])])
    assert used.tolist() == np.rint(0.8 * counts).tolist()
    # Numbers of two digits are made of digits of their own split.
    numbers, rest = of(split=[0.6, 0.2], digits_per_image=2), set(range(1797))
    for mine, theirs in ((numbers.train, images.train), (numbers.test, images.test)):
        halves = {half.tobytes() for image in mine for half in np.split(numbers.pixels[image], 2, axis=1)}
        assert halves <= {images.pixels[image].tobytes() for image in theirs}
        rest -= set(theirs.tolist())
    assert len(rest) == 1797 - used.sum()


def test_without_a_split_the_configuration_that_is_written_has_none() -> None:
    for name, needed in (("digits", {}), ("idx", {"folder": "set"})):
        settings = SOURCES.find(name).Settings
        assert settings.model_validate(needed).model_dump()["split"] is None
        read = settings.model_validate({**needed, "split": [0.6, 0.2]})
        assert settings.model_validate(read.model_dump(mode="json")) == read


NOT_A_SPLIT: list[Any] = [[0, 0.5], [0.5, 0], [0.5, 1.1], [0.6, 0.5], [-0.1, 0.5], [0.1, np.nan], [0.5]]
NOT_A_SPLIT += [[0.6, 0.2, 0.2], [True, 0.1], [0.1, "1"], 0.6, "all", {"train": 0.6, "test": 0.2}]


@pytest.mark.parametrize("shares", NOT_A_SPLIT)
def test_shares_of_a_split_are_two_numbers_above_0_that_sum_to_1_at_most(shares: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        digits(split=shares)
    [error] = caught.value.errors()
    assert error["loc"] == ("split",)
    assert error["msg"] == (
        f"Value error, {shares!r}: must be two numbers, [training, test], above 0 and with a sum of at most 1"
    )


@pytest.mark.parametrize(
    ("shares", "says"),
    [([0.05, 0.5], "label 0 gets no training image"), ([0.5, 0.01], "label 0 gets no test image")],
)
def test_a_label_without_a_training_or_a_test_image_is_refused(
    tmp_path: Path, shares: list[float], says: str
) -> None:
    write_idx_folder(tmp_path / "set", per_label=5)
    with pytest.raises(ConfigurationError) as refused:
        idx(tmp_path, split=shares)
    assert str(refused.value) == f"trace.split = {shares}: {says}; it has 10 in all"


def test_a_label_that_is_not_used_may_lack_images(tmp_path: Path) -> None:
    folder = write_idx_folder(tmp_path / "set", per_label=5)
    labels = np.array([0, 1] * 7 + [2])
    write_idx(folder / "train-labels-idx1-ubyte", labels)
    write_idx(folder / "t10k-labels-idx1-ubyte", labels[:-1])
    write_idx(folder / "t10k-images-idx3-ubyte", np.zeros((14, 2, 2)))
    rare = r"label 2 gets no test image; it has 1 in all"
    with pytest.raises(ConfigurationError, match=rare):
        idx(tmp_path, split=[0.6, 0.2])
    with pytest.raises(ConfigurationError, match=rare):
        idx(tmp_path, split=[0.6, 0.2], labels=[2, 0])
    still = {"kind": "none", "labels_per_mix": 2, "mixes": 1}
    assert idx(tmp_path, split=[0.6, 0.2], labels=[1, 0], drift=still).num_labels == 2


@pytest.mark.parametrize("given", [{**SMALL, "drift": TWO_OF_THREE}, {"clients": 2, "partition": "iid"}])
@pytest.mark.parametrize("split", [{}, {"split": [0.6, 0.2]}])
def test_seeds_do_not_share_a_split_but_who_holds_samples_is_certain(
    given: dict[str, Any], split: dict[str, Any], tmp_path: Path
) -> None:
    write_idx_folder(tmp_path / "set", per_label=5)
    built = of_folder(**given, **split)
    first, second = (context(20, seed, lambda path: tmp_path / path) for seed in (0, 1))
    trace = built.build(first)
    assert (built.same_images(trace) is None) == bool(split)
    assert built.certain_holders(trace, second) is trace


def test_only_images_of_the_chosen_labels_are_used_renumbered_in_their_order() -> None:
    original = load_digits()
    trace = digits(labels=[7, 2], drift={"kind": "none", "labels_per_mix": 2, "mixes": 1}, clients=40)
    columns = trace.columns()
    kept = np.flatnonzero(np.isin(original.target, [7, 2]))
    assert trace.num_labels == 2
    assert (np.array([7, 2])[columns.label] == original.target[kept][columns.image]).all()
    assert np.array_equal(trace.features(np.array([3])), original.images[kept][columns.image[[3]]] / 16)


def test_an_image_of_a_chosen_label_stays_in_its_split(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "set", num_labels=4, per_label=3)
    trace = idx(tmp_path, labels=[3, 1], drift={"kind": "none", "labels_per_mix": 2, "mixes": 1})
    table = trace.columns()
    first_pixel = trace.features(np.arange(len(trace)))[:, 0, 0] * 255  # names the image; test's from 100 on
    assert np.array_equal(first_pixel >= 100, table.split == 1)
    assert np.array_equal(np.array([3, 1])[table.label], first_pixel.round().astype(int) % 100 % 4)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"labels": [0, 11]}, r"trace\.labels = \[0, 11\]: no image has label 11; choices: 0 to 9$"),
        ({"labels": [0, 1]}, r"trace\.drift\.labels_per_mix = 3: the images have 2 labels"),
        ({"labels": [0, 1], "drift": "buckets"}, r"drift\.labels_per_client = 5: the images have 2 labels"),
        ({"labels": [3]}, r"\[3\]: must be two labels or more"),
        ({"digits_per_image": 3}, r"should be less than or equal to 2"),
        ({"digits_per_image": True}, r"should be a valid integer"),
        ({"labels": [3, 1, 3]}, r"\[3, 1, 3\]: has label 3 twice; a label may be given only once"),
    ],
)
def test_labels_that_the_images_or_the_drift_cannot_have_are_refused(
    settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises((ConfigurationError, ValidationError), match=problem):
        digits(**settings)


@pytest.mark.parametrize(
    "absurd", [{"samples_per_step": 10**9}, {"clients": 10**9}, {"test_samples_per_step": 10**9}]
)
def test_a_trace_that_nobody_could_hold_is_refused_before_it_is_drawn(absurd: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="more than the 2147483648 samples a trace may hold"):
        digits(**absurd)


def test_a_run_of_more_rounds_than_a_trace_may_hold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"lower samples_per_step, clients or round\.rounds"):
        digits(rounds=10**12)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"drift": "drfit"}, ("drift",)),
        ({"drift": {"kind": "label_mix", "mixes": 0}}, ("drift", "mixes")),
        (
            {"drift": {"kind": "label_mix", "events": [{"round": 0, "share": 1}]}},
            ("drift", "events", 0, "round"),
        ),
        ({"clients": 0}, ("clients",)),
        ({"noise": -0.1}, ("noise",)),
        ({"noise": 1e300}, ("noise",)),
    ],
)
def test_a_parameter_that_breaks_a_rule_is_named_by_its_path(
    settings: dict[str, Any], where: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        digits(**settings)
    assert [error["loc"] for error in caught.value.errors()] == [where]


@pytest.mark.slow
def test_static_data_is_what_clients_hold_at_the_start_for_the_whole_run() -> None:
    static, stream = digits(static=True), TraceStream(digits(static=True))
    everyone, at_start = np.arange(6), digits().held(np.arange(6), "train", 0)
    for round_ in range(20):
        assert stream.advance_to_round(round_).tolist() == (everyone.tolist() if round_ == 0 else [])
        for split, size in (("train", 40), ("test", 20)):
            assert stream.held(everyone, split).counts().tolist() == [size] * 6  # type: ignore[arg-type]
    assert static.last_step == 0
    held = static.held(everyone, "train", 3)
    for client in range(6):
        samples = [
            trace.features(ranges.rows(client)) for trace, ranges in ((static, held), (digits(), at_start))
        ]
        assert samples[0].tobytes() == samples[1].tobytes()


SWAP = {"what": "own_swap", "on": "held", "clients": {"share": 0.5}, "every": 10}
BUCKETS = {"kind": "buckets", "labels_per_client": 3, "buckets": 3}


def contents(trace: Trace, split: Split, step: int) -> list[list[int]]:
    """The labels, images and starts of the noise of the samples that clients hold, in the order of rows."""
    rows = trace.held(np.arange(trace.num_clients), split, step)
    held = np.concatenate([rows.rows(client) for client in range(trace.num_clients)])
    columns = [trace.table.take(name, held) for name in ("label", "image", "noise_start")]
    return [rows.counts().tolist(), *(column.tolist() for column in columns)]


@pytest.mark.parametrize(
    "settings",
    [
        {"drift": {"kind": "label_mix", "move_probability": 0.5}, "noise": 0.5},
        {"drift": {**BUCKETS, "buckets": 2, "after": "repeat"}, "shared": "rare_half"},
    ],
)
def test_tests_on_what_arrives_next_change_no_training_sample(settings: dict[str, Any]) -> None:
    present, longer = digits(**settings), digits(rounds=25, **settings)
    upcoming = digits(test_on="next", **settings)
    longer.test_retain_steps = 1
    for step in range(4):
        assert contents(upcoming, "train", step) == contents(present, "train", step)
        assert contents(upcoming, "test", step) == contents(longer, "test", step + 1)
        assert sum(contents(upcoming, "test", step)[0]) > 0
    assert upcoming.last_step == 4


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"static": True, "changes": [SWAP]}, "static = true"),
        ({"partition": "iid"}, "partition"),
    ],
)
def test_static_data_have_nothing_that_arrives_next(settings: dict[str, Any], named: str) -> None:
    source = SOURCES.find("digits")
    with pytest.raises(ValidationError) as caught:
        source.Settings.model_validate({"test_on": "next", **settings})
    [error] = caught.value.errors()
    assert error["msg"] == (
        f"Value error, test_on = 'next' cannot be combined with {named}: of static data nothing arrives at a "
        f"next data step; leave out one or the other"
    )


def test_buckets_a_shared_set_and_swaps_play_together_in_one_trace() -> None:
    owned = BUCKETS | {"buckets": 1, "samples_per_client": 9}
    trace = digits(drift=owned, static=True, shared="one", changes=[SWAP])
    stream, everyone = TraceStream(trace), np.arange(6)
    for round_ in range(20):
        assert len(stream.advance_to_round(round_)) == {0: 6, 10: 3}.get(round_, 0)
        assert stream.held(everyone, "train").counts().tolist() == [9 + 10] * 6
    assert trace.concepts is not None
    assert (trace.concepts.max(axis=1) > 0).tolist() == [False, False, True, True, True]


@pytest.mark.slow
def test_every_new_key_is_known_to_the_digest() -> None:
    owned = {"buckets": 1, "samples_per_client": 9}
    others: list[dict[str, Any]] = [
        {},
        {"static": True},
        *[{"shared": which} for which in ("rare_half", "one", "two")],
        {"static": True, "changes": [SWAP]},
        {"static": True, "changes": [SWAP | {"clients": {"share": 0.5, "redraw": False}}]},
        {"drift": BUCKETS | owned, "static": True},
        {"drift": BUCKETS | owned | {"concentration": 5}, "static": True},
    ]
    assert len({digits(rounds=30, **settings).digest() for settings in others}) == len(others)


def test_swaps_of_clients_with_one_label_are_refused() -> None:
    drift = {"kind": "none", "mixes": 2, "labels_per_mix": 1, "background": 0, "concentration": 1e9}
    with pytest.raises(
        ConfigurationError, match="swaps two labels that a client holds, and client 0 holds one"
    ):
        digits(static=True, changes=[SWAP], drift=drift)


OWNED: dict[str, Any] = {"clients": 20, "rounds_per_step": 5}


def divided(rounds: int = 20, seed: int = 0, **settings: Any) -> Trace:
    """Digits with a partition."""
    source = SOURCES.find("digits")
    read = source.Settings.model_validate({**OWNED, "partition": "iid", **settings})
    return source(read).build(context(rounds, seed, nowhere))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "partition",
    [
        {"kind": "dirichlet", "alpha": 0.1},
        {"kind": "dirichlet", "per": "class", "min_samples": 3},
        "iid",
        "lognormal",
        "quarters",
        "shards",
    ],
)
def test_clients_of_a_partition_own_distinct_images_from_the_start_to_the_end(partition: Any) -> None:
    trace = divided(partition=partition)
    table, stream = trace.columns(), TraceStream(trace)
    assert sorted(table.image.tolist()) == list(range(1797))
    everyone = np.arange(20)
    for round_ in range(20):
        assert stream.advance_to_round(round_).tolist() == (everyone.tolist() if round_ == 0 else [])
        sizes = [stream.held(everyone, split).counts() for split in ("train", "test")]  # type: ignore[arg-type]
        assert [counts.sum() for counts in sizes] == [1258, 539]
        assert min(counts.min() for counts in sizes) > 0
    # 539 test images follow 1,258 training images.
    assert abs(sizes[1] - sizes[0] * 539 / 1258).max() < 4


def test_a_partition_combines_with_noise_labels_swaps_and_two_digits() -> None:
    trace = divided(
        partition="iid", noise=0.5, labels=[0, 10, 20], digits_per_image=2, clients=5, changes=[SWAP]
    )
    assert (trace.num_clients, trace.num_labels, trace.sample_shape) == (5, 3, (8, 16))
    assert trace.concepts is not None
    assert trace.concepts.max() > 0
    assert len(np.unique(trace.columns().image)) == 3 * (60 + 30)


@pytest.mark.slow
def test_a_partition_a_seed_and_a_setting_name_one_trace() -> None:
    traces = [
        divided(),
        divided(seed=1),
        divided(partition="shards"),
        divided(partition="dirichlet"),
        divided(partition={"kind": "dirichlet", "alpha": 5}),
    ]
    assert len({trace.digest() for trace in traces}) == len(traces)
    assert same(divided(rounds=40).columns(), divided().columns())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"drift": "none"}, r"partition cannot be combined with drift: every image belongs to one client"),
        (
            {"drift": {"kind": "label_mix"}, "samples_per_step": 20, "retain_rounds": 50},
            r"with drift, retain_rounds, samples_per_step: .*--set 'trace=\{\.\.\.\}' replaces all keys",
        ),
        ({"test_samples_per_step": 5}, "cannot be combined with test_samples_per_step"),
        ({"static": False}, "cannot be combined with static = false"),
        ({"shared": "two"}, "cannot be combined with shared = 'two'"),
        (
            {"partition": "idd"},
            "unknown partition 'idd'; choices: column, dirichlet, iid, lognormal",
        ),
        ({"partition": {"kind": "shards", "shards": 2}}, "unknown key 'shards'; choices: shards_per_client"),
    ],
)
def test_keys_that_a_partition_excludes_are_refused_by_name(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says) as caught:
        divided(**settings)
    [error] = caught.value.errors()
    assert "\n" not in error["msg"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"clients": 540}, r"client \d+ has no test image of its labels \(\d+ of 540 .*lower trace\.clients"),
        ({"clients": 2000}, "2000 clients cannot each have one of 1258 samples; lower clients"),
        ({"clients": 10**9}, "1000000000 clients cannot each have one of 1258 samples"),
        ({"clients": 19, "partition": "quarters"}, "clients = 19: must be 20, as quarters cuts each of 10"),
        ({"partition": {"kind": "column", "column": "camera"}}, "the data have no columns, only images and"),
    ],
)
def test_a_partition_that_the_images_do_not_suffice_for_is_refused(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        divided(**settings)


# -- a partition that arrives -------------------------------------------------------------------------------

STARTS = {"starts_with": [0.1, 0.33]}


def by_step(trace: Trace) -> np.ndarray:
    """(2, clients, steps) the images that arrive, by split, client and step."""
    table = trace.columns()
    counts = np.zeros((2, trace.num_clients, trace.last_step + 1), dtype=np.int64)
    np.add.at(counts, (table.split, table.client, table.arrival), 1)
    return counts


def test_images_of_a_partition_arrive_once_each_and_are_kept_to_the_end() -> None:
    whole, trace = divided(), divided(**STARTS)
    assert sorted(trace.columns().image.tolist()) == list(range(1797))
    for split in (0, 1):
        for client in range(20):
            owned = [
                np.sort(table.image[(table.split == split) & (table.client == client)])
                for table in (whole.columns(), trace.columns())
            ]
            assert same(*owned)
    stream, everyone, arrives = TraceStream(trace), np.arange(20), by_step(trace)
    for step in range(4):
        assert stream.advance_to_round(5 * step).tolist() == everyone.tolist()
        for number, split in enumerate(("train", "test")):
            held = stream.held(everyone, split)  # type: ignore[arg-type]
            assert held.counts().tolist() == arrives[number, :, : step + 1].sum(axis=1).tolist()
    assert held.counts().tolist() == whole.held(everyone, "test", 3).counts().tolist()


def test_clients_start_with_shares_between_the_two_and_receive_equal_parts() -> None:
    for seed in range(5):
        arrives = by_step(divided(rounds=30, seed=seed, **STARTS))  # five parts after the start
        sizes = arrives.sum(axis=2)
        assert (arrives[:, :, 0] >= np.maximum(np.rint(0.1 * sizes), 1)).all()
        assert (arrives[:, :, 0] <= np.rint(0.33 * sizes)).all()
        assert len(np.unique(arrives[0, :, 0])) > 5  # of 62 or 63 images each
        # The same share of both splits, rounded: test images are 539 to 1,258.
        assert abs(arrives[1, :, 0] / sizes[1] - arrives[0, :, 0] / sizes[0]).max() < 0.5 / 26 + 0.5 / 62
        assert (np.ptp(arrives[:, :, 1:], axis=2) <= 1).all()


def test_what_a_client_starts_with_does_not_depend_on_the_number_of_rounds() -> None:
    short, long = (divided(rounds=rounds, noise=0.5, **STARTS) for rounds in (10, 40))
    for split in ("train", "test"):
        held = [contents(trace, split, 0) for trace in (short, long)]  # type: ignore[arg-type]
        samples = [sorted(zip(*columns[1:], strict=True)) for columns in held]
        assert held[0][0] == held[1][0]
        assert samples[0] == samples[1]


def test_a_partition_that_arrives_is_another_trace() -> None:
    given: list[dict[str, Any]] = [
        {},
        {"starts_with": [0.1, 0.2]},
        {"starts_with": [0.1, 0.3]},
        {**STARTS, "test_on": "next"},
        {**STARTS, "seed": 1},
    ]
    assert len({divided(**settings).digest() for settings in given}) == len(given)
    assert divided(**STARTS).digest() == divided(**STARTS).digest()


def test_tests_of_the_next_step_are_of_its_part_and_change_no_training_sample() -> None:
    present, upcoming = divided(**STARTS), divided(**STARTS, test_on="next")
    arrives = by_step(upcoming)
    assert (present.last_step, upcoming.last_step) == (3, 4)
    assert arrives[0, :, 4].tolist() == [0] * 20  # of test images alone
    assert sorted(upcoming.columns().image.tolist()) == list(range(1797))
    everyone = np.arange(20)
    for step in range(4):
        assert contents(upcoming, "train", step) == contents(present, "train", step)
        assert upcoming.held(everyone, "test", step).counts().tolist() == arrives[1, :, step + 1].tolist()
    assert (np.ptp(arrives[1, :, 1:], axis=1) <= 1).all()


def test_a_client_without_a_test_image_at_a_step_is_not_tested_then() -> None:
    """300 clients have one test image or two: at each step some are tested, and others are not."""
    trace = divided(clients=300, **STARTS, test_on="next")
    everyone = np.arange(300)
    tested = np.array([trace.holding(everyone, "test", step) for step in range(4)])
    assert (tested.sum(axis=1) > 0).all()
    assert (tested.sum(axis=1) < 300).all()
    assert (tested.sum(axis=0) == np.minimum(by_step(trace)[1].sum(axis=1) - 1, 4)).all()


def test_who_holds_images_of_a_partition_that_arrives_is_certain_unless_tests_are_of_the_next_step() -> None:
    source = SOURCES.find("digits")
    for test_on in ("present", "next"):
        read = source.Settings.model_validate({**OWNED, "partition": "iid", **STARTS, "test_on": test_on})
        first = source(read).build(context(20, 0, nowhere))  # type: ignore[call-arg]
        certain = source(read).certain_holders(first, context(20, 1, nowhere))  # type: ignore[call-arg]
        assert certain is (first if test_on == "present" else None)


@pytest.mark.parametrize(
    "shares",
    [
        [0, 0.5],
        [0.5, 0.4],
        [0.5, 1.1],
        [0.5],
        [0.1, 0.2, 0.3],
        0.5,
        "all",
        [True, 1],
        [0.1, "1"],
        [0.1, np.nan],
    ],
)
def test_shares_to_start_with_are_two_ascending_numbers(shares: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        divided(starts_with=shares)
    [error] = caught.value.errors()
    assert error["loc"] == ("starts_with",)
    assert error["msg"] == (
        f"Value error, {shares!r}: must be two numbers, [low, high] with 0 < low <= high <= 1"
    )


def test_a_partition_that_arrives_is_not_static() -> None:
    source = SOURCES.find("digits")
    with pytest.raises(ValidationError, match="starts_with cannot be combined with static = true: of static"):
        divided(**STARTS, static=True)
    read = source.Settings.model_validate({**OWNED, "partition": "iid", **STARTS, "static": False})
    written = read.model_dump(mode="json")
    assert written["static"] is False
    assert source.Settings.model_validate(written) == read


def test_shares_to_start_with_need_a_partition_and_a_later_data_step() -> None:
    with pytest.raises(ConfigurationError) as refused:
        digits(**STARTS)
    assert str(refused.value) == (
        "trace.starts_with = [0.1, 0.33]: is the share of its images of a partition that a client holds at "
        "the start; set trace.partition, or leave starts_with out"
    )
    for test_on in ("present", "next"):
        divided(rounds=6, **STARTS, test_on=test_on)
        with pytest.raises(ConfigurationError) as refused:
            divided(rounds=5, **STARTS, test_on=test_on)
        assert str(refused.value) == (
            "trace.starts_with = [0.1, 0.33]: the run has one data step, so there is none at which the rest "
            "of the images could arrive; raise round.rounds above trace.rounds_per_step = 5, or leave "
            "starts_with out"
        )


def test_the_dump_of_a_partition_leaves_out_what_it_excludes() -> None:
    settings = SOURCES.find("digits").Settings
    whole = settings.model_validate({"static": True})
    excluded = {"drift", "retain_rounds", "samples_per_step", "test_samples_per_step"}
    for given in ({}, {"static": True}, {"shared": "none"}):
        read = settings.model_validate({**OWNED, **given, "partition": "iid"})
        written = read.model_dump(mode="json")
        assert set(whole.model_dump()) - set(written) == excluded
        assert written["static"] is True
        assert settings.model_validate(written) == read


def test_every_sources_settings_survive_their_dump() -> None:
    needed = {
        "concepts": {"concepts": {"kind": "sea", "noise": 0.2}, "pattern": ["01", "12"], "data_seed": "run"},
        "digits": {"drift": BUCKETS, "static": True, "shared": "two", "changes": [SWAP]},
        "file": {"folder": "mine", "since": "2021-07-01", "step_width": "month"},
        "idx": {"folder": "mnist", "drift": {"kind": "label_mix", "events": [{"round": 5, "share": 0.5}]}},
        "label_replay": {
            "table": "t",
            "images": "i",
            "group": "g",
            "time": "d",
            "label": "l",
            "until": "2021-07-01",
        },
        "markov_text": {"authors": 3, "data_seed": "run"},
        "synthetic": {"alpha": 1, "beta": 1, "data_seed": "run"},
    }
    for name, source in SOURCES:
        settings = source.Settings.model_validate(needed[name])
        for mode in ("python", "json"):
            assert source.Settings.model_validate(settings.model_dump(mode=mode)) == settings


def test_onsets_are_known_of_drifts_and_of_concepts_and_of_static_data_there_are_none() -> None:
    moving = digits(drift={"kind": "label_mix", "move_probability": 1.0})
    assert moving.onsets is not None
    assert moving.onsets.step.tolist() == np.repeat([1, 2, 3], 6).tolist()
    source = SOURCES.find("digits")
    divided = source(source.Settings(clients=6, partition="dirichlet"))  # type: ignore[call-arg]
    for still in (digits(static=True), digits(drift="none"), divided.build(context(20, 0, nowhere))):
        found = still.onsets
        assert found is not None
        assert len(found) == 0
    swap = {"what": "own_swap", "on": "held", "clients": {"share": 0.5}, "every": 10}
    swapped = digits(static=True, changes=[swap]).onsets
    assert swapped is not None
    assert swapped.step.tolist() == [2, 2, 2]  # of 4 data steps; the event in round 10 is at step 2
