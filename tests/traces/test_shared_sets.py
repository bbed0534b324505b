from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emulator.errors import ConfigurationError, InputError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, some_images, trace_of
from traces.draw import StreamSettings
from traces.drift import PopulationContext
from traces.images import ImageSet
from traces.shared_sets import SharedSet, shared_labels, with_shared_set
from traces.trace import Trace, TraceStream

# Two clients, which train on labels 0, 0, 2 and 0 at each of five steps, and never on 1.
ROWS: list[Row] = [
    row
    for step in range(5)
    for row in [
        (0, 0, step, 0),
        (0, 0, step, 0),
        (0, 1, step, 0),
        (1, 0, step, 2),
        (1, 0, step, 0),
        (1, 1, step, 2),
    ]
]
IMAGES = some_images(3, 8)


def shared(which: SharedSet, static: bool = False, images: ImageSet = IMAGES, retain: int = 2) -> Trace:
    """The trace of `ROWS` with a shared set; samples are kept for two steps."""
    rows = [row for row in ROWS if not static or row[2] == 0]
    plain = trace_of(rows, images=IMAGES)
    settings = StreamSettings(rounds_per_step=1, retain_rounds=retain)
    context = PopulationContext(settings, 2, 5, static, RandomStreams(3))
    return Trace(
        images,
        with_shared_set(plain.table, which, images, context),
        retain_steps=9 if static else retain,
        rounds_per_step=1,
        noise=0.5,
        generator=np.random.default_rng(0),
    )


def labels(trace: Trace, client: int, split: str, step: int) -> list[int]:
    return sorted(trace.labels(trace.held(np.array([client]), split, step).rows(0)).tolist())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("which", "extra"),
    [("one", [0, 1, 2]), ("two", [0, 0, 1, 1, 2, 2]), ("rare_half", [1, 2])],
)
def test_everybody_holds_the_set_for_training_only_and_once_at_every_step(
    which: SharedSet, extra: list[int]
) -> None:
    trace, plain = shared(which), trace_of(ROWS, images=IMAGES)
    for step in range(5):
        for client in (0, 1):
            assert labels(trace, client, "train", step) == sorted(
                labels(plain, client, "train", step) + extra
            )
            assert labels(trace, client, "test", step) == labels(plain, client, "test", step)


def test_the_set_is_sent_again_as_it_expires_with_the_same_images_and_noise_to_all() -> None:
    table, plain = shared("two").columns(), trace_of(ROWS, images=IMAGES).columns()
    own = set(zip(plain.client, plain.arrival, plain.image, plain.noise_start, strict=True))
    sent: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for row in zip(table.client, table.arrival, table.image, table.noise_start, strict=True):
        if row not in own:
            sent.setdefault((int(row[0]), int(row[1])), set()).add((int(row[2]), int(row[3])))
    assert sorted(sent) == [(client, step) for client in (0, 1) for step in (0, 2, 4)]
    first = sent[0, 0]
    assert len({image for image, _ in first}) == 6  # two different images of each label
    assert all(samples == first for samples in sent.values())
    assert {image for image, _ in first} <= set(IMAGES.train.tolist())


def test_static_data_has_the_set_once_and_reports_no_news() -> None:
    trace = shared("one", static=True)
    assert labels(trace, 0, "train", 4) == [0, 0, 0, 1, 2]
    stream = TraceStream(trace)
    assert [stream.advance_to_round(round_).tolist() for round_ in range(5)] == [[0, 1], [], [], [], []]


def test_the_set_counts_in_label_histograms() -> None:
    stream = TraceStream(shared("one"))
    stream.advance_to_round(0)
    assert (5 * stream.label_histograms(np.arange(2))).tolist() == [[3, 1, 1], [2, 1, 2]]
    stream.advance_to_round(3)
    assert (7 * stream.label_histograms(np.arange(2))).round(9).tolist() == [[5, 1, 1], [3, 1, 3]]


@pytest.mark.parametrize(
    ("trained", "rare"),
    [
        ([0, 0, 1, 1, 2, 3], [2, 3]),  # the two of four with the fewest
        ([0, 1, 2, 3], [0, 1]),  # a tie goes to the lower label
        ([3, 3, 3], [0, 1]),  # a label without any is rare
    ],
)
def test_the_rarer_half_is_by_training_arrivals_with_ties_to_the_lower_label(
    trained: list[int], rare: list[int]
) -> None:
    rows: list[Row] = [(0, 0, 0, label) for label in trained] + [(0, 1, 0, 3)] * 9
    rows += [(0, 0, 1, label) for label in rare] * 9  # after the last step
    images = some_images(4)
    assert shared_labels("rare_half", trace_of(rows, images=images).columns(), images, 0).tolist() == rare


def test_half_of_an_odd_number_of_labels_is_rounded_up_and_labels_without_images_do_not_count() -> None:
    arrivals = trace_of([(0, 0, 0, 0), (0, 1, 0, 0)], images=IMAGES).columns()
    assert shared_labels("rare_half", arrivals, IMAGES, 0).tolist() == [1, 2]
    without = replace(IMAGES, train=IMAGES.train[IMAGES.labels[IMAGES.train] != 1])
    assert shared_labels("one", arrivals, without, 0).tolist() == [0, 2]
    assert shared_labels("rare_half", arrivals, without, 0).tolist() == [2]


def test_two_of_a_label_are_two_images() -> None:
    """With two training images of each label, the set has all of them; clients hold labels 0 to 2 besides."""
    images = some_images(10, 4)
    sent, trained = shared("two", images=images).columns(), images.train
    in_set = sent.image[sent.label > 2].tolist()
    assert set(in_set) == set(trained[images.labels[trained] > 2].tolist())


def test_two_of_a_label_with_one_image_is_refused() -> None:
    with pytest.raises(InputError, match="has 2 samples of each label, and label 0 has 1 training image"):
        shared("two", images=some_images(3, 2))


def test_a_set_for_more_clients_and_steps_than_memory_holds_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("traces.draw.MAX_SAMPLES_IN_MEMORY", 40)
    assert len(shared("rare_half", retain=5)) == 34
    with pytest.raises(ConfigurationError, match=r"trace: 42 samples are more than the 40 of a trace with"):
        shared("rare_half")
