"""A client of two labels can swap only these: what it swaps, and when, is worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, some_images, trace_of
from traces.arrivals import SPLITS
from traces.changes.changed import with_changes
from traces.changes.labels import _numbered, _swapped
from traces.changes.settings import Change
from traces.trace import Trace, TraceStream

IMAGES = some_images(3, 8)
# Clients 0 and 1 hold labels 0 and 1, client 2 holds 1 and 2; more of one than of the other.
ROWS: list[Row] = [
    *[(client, 0, 0, label) for client, label in [(0, 0), (0, 0), (0, 1), (1, 0), (1, 1), (1, 1)]],
    *[(2, 0, 0, label) for label in (1, 2, 2)],
    *[(client, 1, 0, label) for client, label in [(0, 0), (1, 1), (2, 1), (2, 2), (2, 0)]],
]
THREE_LABELS: list[Row] = [
    (client, split, 0, label) for client in range(6) for split in (0, 1) for label in (0, 1, 1, 2, 2, 2)
]


def swapped(
    rows: list[Row] = ROWS, rounds: int = 7, seed: int = 0, every: int = 2, retain: int = 0, **clients: Any
) -> Trace:
    """The trace of `rows` with a data step each round, and swaps every second round."""
    swap = Change.model_validate(
        {"what": "own_swap", "on": "held", "clients": {"share": 1.0, **clients}, "every": every}
    )
    plain = trace_of(rows, images=IMAGES, retain_steps=retain or rounds + 1, test_then_train=False)
    return with_changes(plain, [swap], rounds, RandomStreams(seed))


def labels(trace: Trace, client: int, split: str, step: int) -> list[int]:
    rows = trace.held(np.array([client]), split, step).rows(0)  # type: ignore[arg-type]
    return [int(label) for label in trace.labels(rows)]


def permutations(trace: Trace, step: int) -> list[tuple[int, ...]]:
    """The composed swap of each client: the present label of each label of the images that it holds."""
    composed = []
    for client in range(trace.num_clients):
        mapping = np.arange(3)
        for split in SPLITS:
            rows = trace.held(np.array([client]), split, step).rows(0)
            mapping[IMAGES.labels[trace.table.take("image", rows)]] = trace.labels(rows)
        composed.append(tuple(mapping.tolist()))
    return composed


def test_swaps_of_two_labels_undo_each_other_and_concepts_say_so() -> None:
    identity, changed = [0, 0, 0], [1, 1, 2]
    assert swapped().concepts is not None
    assert swapped().concepts.tolist() == [  # type: ignore[union-attr]
        *[identity, identity],
        *[changed, changed],
        *[identity, identity],
        *[changed, changed],  # of step 6, and the row after the last step
    ]


def test_all_samples_of_both_splits_get_the_swapped_labels_and_keep_their_features() -> None:
    trace = swapped()
    assert [labels(trace, 0, "train", step) for step in range(5)] == [
        *[[0, 0, 1]] * 2,
        *[[1, 1, 0]] * 2,
        [0, 0, 1],
    ]
    # Label 0, which client 2 has for tests alone, is none of those it trains on: it is not swapped.
    assert sorted(labels(trace, 2, "test", 1)) == sorted(labels(trace, 2, "test", 2)) == [0, 1, 2]
    for split in SPLITS:
        before, after = (trace.held(np.arange(3), split, step) for step in (1, 2))
        for client in range(3):
            features = [trace.features(ranges.rows(client)).tobytes() for ranges in (before, after)]
            assert features[0] == features[1]
    assert permutations(trace, 2) == [(1, 0, 2), (1, 0, 2), (0, 2, 1)]


def test_rows_of_before_keep_their_labels_and_what_is_held_is_one_range() -> None:
    trace = swapped()
    frozen = trace.held(np.array([0]), "train", 1)
    assert trace.labels(frozen.rows(0)).tolist() == [0, 0, 1]  # a task of round 1, whenever it is trained
    for step in range(7):
        assert trace.held(np.arange(3), "train", step).counts().tolist() == [3, 3, 3]
        assert len(trace.held(np.arange(3), "train", step).first) == 3


def test_only_clients_that_swap_have_news_and_histograms_follow() -> None:
    trace = swapped(share=0.34)  # one of three
    stream, everyone = TraceStream(trace), np.arange(3)
    for round_ in range(7):
        changed = stream.advance_to_round(round_).tolist()
        assert len(changed) == {0: 3, 2: 1, 4: 1, 6: 1}.get(round_, 0)
        for client in range(3):
            counts = np.bincount(labels(trace, client, "train", round_), minlength=3)
            assert (3 * stream.label_histograms(everyone)[client]).round(9).tolist() == counts.tolist()
        assert stream.concepts is not None
        assert stream.concepts.tolist() == stream.test_concepts.tolist()  # type: ignore[union-attr]


def test_a_swap_is_an_arrival_of_its_step_and_what_it_replaced_is_gone() -> None:
    trace, one = swapped(), np.array([0])
    assert trace.arrived(one, 0, 0, 1).counts().tolist() == [3]
    assert trace.arrived(one, 0, 0, 2).counts().tolist() == [0]
    assert trace.arrived(one, 2, 2, 3).counts().tolist() == [3]
    assert trace.arrived(one, 2, 9, 5).counts().tolist() == [3]  # of step 4; those of step 2 are gone
    assert trace.arrived(one, 0, 9, 3).counts().tolist() == [3]


def test_skipping_events_leaves_the_labels_of_the_last_one() -> None:
    stream = TraceStream(swapped())
    stream.advance_to_round(0)
    assert stream.advance_to_round(6).tolist() == [0, 1, 2]
    assert (3 * stream.label_histograms(np.arange(3))).tolist() == [[1, 2, 0], [2, 1, 0], [0, 2, 1]]


def test_clients_are_drawn_anew_at_each_event_or_once() -> None:
    for redraw, different in ((False, 1), (True, 2)):
        stream = TraceStream(swapped(THREE_LABELS, rounds=20, share=0.5, redraw=redraw))
        changed = [tuple(stream.advance_to_round(round_).tolist()) for round_ in range(20)]
        struck = {clients for clients in changed[1:] if clients}
        assert all(len(clients) == 3 for clients in struck)
        assert len(struck) >= different
        assert redraw or len(struck) == 1


def test_a_concept_is_a_composed_permutation_whichever_swaps_led_to_it() -> None:
    trace = swapped(THREE_LABELS, rounds=30, share=0.5)
    assert trace.concepts is not None
    concept_of: dict[tuple[int, ...], int] = {}
    for step in range(30):
        for permutation, concept in zip(
            permutations(trace, step), trace.concepts[step].tolist(), strict=True
        ):
            assert concept_of.setdefault(permutation, concept) == concept
    assert concept_of[0, 1, 2] == 0
    assert sorted(concept_of.values()) == [0, 1, 2, 3, 4, 5]  # all permutations of three labels


def test_swaps_compose() -> None:
    class Ranks:
        def __init__(self, *ranks: float) -> None:
            self.ranks = ranks

        def random(self, shape: tuple[int, int]) -> Floats:
            return np.tile(self.ranks, (shape[0], 1))

    held = np.ones((1, 3), dtype=bool)
    once = _swapped(np.array([[0, 1, 2]]), held, Ranks(0.9, 0.8, 0.1))  # type: ignore[arg-type]
    assert once.tolist() == [[1, 0, 2]]  # labels 0 and 1
    # Then the present labels 1 and 2: what was 0 is 1, and becomes 2; what was 2 becomes 1.
    assert _swapped(once, held, Ranks(0.1, 0.9, 0.8)).tolist() == [[2, 0, 1]]  # type: ignore[arg-type]


def test_concepts_keep_their_numbers_and_new_ones_are_numbered_as_they_appear() -> None:
    known = np.array([[0, 1, 2], [2, 1, 0]])
    known, numbers = _numbered(known, np.array([[1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2], [0, 1, 2]]))
    assert numbers.tolist() == [2, 1, 3, 2, 0]
    assert known.tolist() == [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]]


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    short, long = (swapped(THREE_LABELS, rounds=rounds, share=0.5) for rounds in (9, 20))
    assert short.concepts is not None
    assert long.concepts is not None
    assert short.concepts[:9].tolist() == long.concepts[:9].tolist()
    assert labels(short, 3, "train", 8) == labels(long, 3, "train", 8)


def test_the_digest_knows_the_swaps_and_reference_rows_have_the_labels_of_step_0() -> None:
    trace = swapped()
    assert trace.digest() == swapped().digest()
    assert trace.digest() != swapped(every=3).digest()
    rows = trace.reference_rows(9)
    assert np.bincount(trace.labels(rows)).tolist() == [3, 4, 2]


@pytest.mark.parametrize(
    ("rows", "settings", "says"),
    [
        (
            [*ROWS, (3, 0, 0, 1), (3, 1, 0, 0)],
            {},
            "client 3 holds one .1 of 4 clients do.; every client needs",
        ),
        (ROWS, {"share": 0.1}, "clients.share = 0.1: of 3 clients that is nobody"),
        (
            ROWS,
            {"rounds": 2},
            r"every = 2: it would begin at data step 2 .round 2., after the last of the run, 1",
        ),
    ],
)
def test_swaps_that_change_nothing_are_refused_in_one_line(
    rows: list[Row], settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        swapped(rows, **settings)
    assert "\n" not in str(caught.value)


def test_more_samples_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(swapped()) == 14 + 3 * 14  # as they are at first, and sent anew at three events
    monkeypatch.setattr("traces.draw.MAX_SAMPLES_IN_MEMORY", 2 * 14)
    with pytest.raises(ConfigurationError, match=r"or round\.rounds, raise every"):
        swapped()
