from __future__ import annotations

import numpy as np
import pytest

from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images, trace_of
from traces.arrivals import DTYPES, SPLITS
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.draw import StreamSettings, draw_trace
from traces.trace import Trace, TraceStream

# Three clients: (client, split, arrival, label), labels 0 to 2.
ROWS = [
    *[(client, 0, 0, label) for client in range(3) for label in (0, 1, 2, 0)],
    *[(client, 0, 1, 2) for client in range(3)],
    *[(client, 1, arrival, 0) for client in range(3) for arrival in (0, 1)],
]


def flipped(*clients: int) -> Trace:
    return trace_of(ROWS).with_flipped_labels(np.array(clients, dtype=np.int64))


def labels(trace: Trace, client: int, split: str) -> list[int]:
    rows = trace.held(np.array([client]), split, 1).rows(0)
    return trace.labels(rows).tolist()


def test_training_labels_of_these_clients_are_flipped_and_test_labels_are_not() -> None:
    trace = flipped(0, 2)
    assert labels(trace, 0, "train") == [2, 1, 0, 2, 0]
    assert labels(trace, 1, "train") == [0, 1, 2, 0, 2]
    assert labels(trace, 2, "train") == [2, 1, 0, 2, 0]
    assert [labels(trace, client, "test") for client in range(3)] == [[0, 0]] * 3


def test_a_trace_whose_labels_change_too_has_all_its_rows() -> None:
    """What is held and changes is sent anew: the table of changes has more rows than what it changes."""
    change = {"what": {"swap": [[0, 1]]}, "on": "held", "at_step": 1}
    changed = with_changes(trace_of(ROWS), [Change.model_validate(change)], 2, RandomStreams(0))
    assert len(changed.with_flipped_labels(np.array([1]))) == len(changed) > len(ROWS)


def test_the_samples_are_the_same() -> None:
    rows = np.arange(len(ROWS))
    assert flipped(1).features(rows).tobytes() == trace_of(ROWS).features(rows).tobytes()


def test_histograms_are_of_the_labels_that_a_client_trains_on() -> None:
    stream = TraceStream(flipped(1))
    stream.advance_to_round(0)
    assert stream.label_histograms(np.arange(3)).tolist() == [
        [0.5, 0.25, 0.25],
        [0.25, 0.25, 0.5],
        [0.5, 0.25, 0.25],
    ]
    assert stream.advance_to_round(1).tolist() == [0, 1, 2]
    assert (5 * stream.label_histograms(np.arange(2))).tolist() == [[2, 1, 2], [2, 1, 2]]


def test_all_columns_say_the_same_and_the_digest_knows() -> None:
    trace, rows = flipped(0, 2), np.arange(len(ROWS))
    columns = trace.columns()
    assert columns.label.tolist() == trace.labels(rows).tolist()
    plain = trace_of(ROWS).columns()
    for name in DTYPES:
        if name != "label":
            assert getattr(columns, name).tolist() == getattr(plain, name).tolist()
    assert trace.digest() != trace_of(ROWS).digest()


def test_stored_labels_are_refused_as_they_are_not_flipped() -> None:
    table, plain = flipped(0).table, trace_of(ROWS).table
    assert table.stored("image").tolist() == plain.stored("image").tolist()
    with pytest.raises(ValueError, match="before they were flipped"):
        table.stored("label")


def test_without_such_clients_it_is_the_very_trace() -> None:
    trace = trace_of(ROWS)
    assert trace.with_flipped_labels(np.zeros(0, dtype=np.int64)) is trace


def test_a_drawn_trace_turns_the_same_samples() -> None:
    shares = np.full((5, 4, 3), 1 / 3)  # (windows, clients, labels)
    plain = draw_trace(
        some_images(3),
        shares,
        num_clients=4,
        num_windows=5,
        settings=StreamSettings(
            rounds_per_step=1, retain_rounds=3, samples_per_step=6, test_samples_per_step=2
        ),
        streams=RandomStreams(0),
        scratch=None,
    )
    trace = plain.with_flipped_labels(np.array([1, 3]))
    before, after = plain.columns(), trace.columns()
    turned = np.isin(before.client, [1, 3]) & (before.split == SPLITS.index("train"))
    assert after.label.tolist() == np.where(turned, 2 - before.label, before.label).tolist()
    rows = np.random.default_rng(0).permutation(len(plain))
    assert trace.labels(rows).tolist() == after.label[rows].tolist()
    ours, theirs = TraceStream(trace), TraceStream(plain)
    for round_ in range(3):
        ours.advance_to_round(round_)
        theirs.advance_to_round(round_)
        expected = theirs.label_histograms(np.arange(4))
        expected[[1, 3]] = expected[[1, 3], ::-1]
        assert ours.label_histograms(np.arange(4)).tolist() == expected.tolist()
