from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import InputError
from tests.traces.tiny import Row, some_images, trace_of
from traces.arrivals import DTYPES, NOISE_NUMBERS, SPLITS, arrivals_of
from traces.onsets import of_steps
from traces.tables.sorted import SortedTable
from traces.trace import Trace, TraceStream


@st.composite
def small_traces(draw: st.DrawFn) -> tuple[Trace, list[Row]]:
    """Up to four clients, some with a sample of both splits at the start, and up to 25 more at any step.

    Client 0 is one of these; others may begin to hold data later, or never.
    """
    retain = draw(st.integers(1, 4))
    num_clients = draw(st.integers(1, 4))
    starts = st.integers(1 - retain, 0)
    rows = [
        (client, split, draw(starts), draw(st.integers(0, 2)))
        for client in range(num_clients)
        if client == 0 or draw(st.booleans())
        for split in range(2)
    ]
    anywhere = st.tuples(
        st.integers(0, num_clients - 1), st.integers(0, 1), st.integers(-3, 9), st.integers(0, 2)
    )
    rows = draw(st.permutations(rows + draw(st.lists(anywhere, max_size=25))))
    return trace_of(rows, retain_steps=retain, images=some_images(3)), rows


def scan(rows: list[Row], client: int, split: int, step: int, retain: int) -> list[tuple[int, int]]:
    """(arrival, label) of the samples that a client holds, by a scan of every row."""
    return sorted(
        (arrival, label)
        for owner, side, arrival, label in rows
        if owner == client and side == split and step - retain < arrival <= step
    )


@pytest.mark.slow
@given(small_traces())
def test_what_is_held_equals_a_scan_of_every_row_at_every_step(drawn: tuple[Trace, list[Row]]) -> None:
    trace, rows = drawn
    table = trace.columns()
    everyone = np.arange(trace.num_clients)
    for step in range(-6, 16):  # from before the first arrival to after the last
        for index, split in enumerate(SPLITS):
            held = trace.held(everyone, split, step)
            for client in everyone.tolist():
                client_rows = held.rows(client)
                assert sorted(
                    zip(table.arrival[client_rows].tolist(), trace.labels(client_rows).tolist(), strict=True)
                ) == scan(rows, client, index, step, trace.retain_steps)
                assert (table.client[client_rows] == client).all()
                assert (table.split[client_rows] == index).all()


def test_held_ranges_follow_the_given_ids() -> None:
    trace = trace_of([(c, s, 0, 0) for c in range(3) for s in (0, 1, 1)])
    held = trace.held(np.array([2, 0, 2]), "test", 0)
    assert [held.rows(row).tolist() for row in range(3)] == [[7, 8], [1, 2], [7, 8]]


@pytest.mark.slow
@given(small_traces(), st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(0, 3))
def test_label_counts_kept_by_arrivals_and_expiries_equal_recounting_however_far_a_step_goes(
    drawn: tuple[Trace, list[Row]], jumps: list[int], start: int
) -> None:
    trace, rows = drawn
    retain, everyone = trace.retain_steps, np.arange(trace.num_clients)
    stream = TraceStream(trace)
    assert stream.advance_to_round(start).tolist() == everyone.tolist()
    step = start
    for jump in [0, *jumps]:
        stepwise = {
            client
            for client, side, arrival, _ in rows
            for at in range(step + 1, step + jump + 1)
            if side == 0 and arrival in (at, at - retain)  # it comes, or it expires
        }
        step += jump
        assert stream.advance_to_round(step).tolist() == sorted(stepwise)
        assert stream.step == step
        histograms = stream.label_histograms(everyone)
        for client in everyone.tolist():
            labels = [label for _, label in scan(rows, client, 0, step, retain)]
            expected = [labels.count(label) / max(len(labels), 1) for label in range(3)]
            assert histograms[client].tolist() == expected
            assert stream.held(everyone, "train").counts()[client] == len(labels)
            assert stream.holding[client] == (len(labels) > 0)


def test_the_first_call_names_everybody_and_later_ones_only_whose_data_changed() -> None:
    stream = TraceStream(
        trace_of(
            [(c, s, 0, 0) for c in range(3) for s in (0, 1)] + [(1, 0, 1, 1), (2, 1, 1, 0)],
            retain_steps=3,
            rounds_per_step=10,
        )
    )
    assert stream.step == -1
    assert stream.advance_to_round(0).tolist() == [0, 1, 2]
    assert stream.advance_to_round(9).tolist() == []
    assert stream.advance_to_round(10).tolist() == [1]  # client 2 received a test sample only
    assert stream.label_histograms(np.array([1, 0])).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert stream.advance_to_round(20).tolist() == []
    assert stream.advance_to_round(30).tolist() == [0, 1, 2]  # the arrivals of step 0 expire
    assert stream.label_histograms(np.array([1, 0])).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_skipping_more_steps_than_are_retained_counts_nothing_twice() -> None:
    # Client 1 receives and loses its sample of step 2 between steps 0 and 6.
    rows = [(c, s, 0, 0) for c in range(2) for s in (0, 1)] + [(1, 0, 2, 1), (0, 0, 6, 1)]
    stream = TraceStream(trace_of(rows, retain_steps=2))
    stream.advance_to_round(0)
    assert stream.advance_to_round(6).tolist() == [0, 1]
    assert stream.label_histograms(np.arange(2)).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_test_samples_may_last_shorter_than_training_samples() -> None:
    rows = [(0, split, step, 0) for split in (0, 1) for step in (-1, 0, 1, 2)]
    trace = trace_of(rows, retain_steps=3, test_retain_steps=1)
    table = trace.columns()
    for step, arrivals in ((0, [-1, 0]), (1, [-1, 0, 1]), (2, [0, 1, 2]), (3, [1, 2]), (4, [2]), (5, [])):
        rows = {split: trace.held(np.array([0]), split, step).rows(0) for split in SPLITS}
        assert table.arrival[rows["train"]].tolist() == arrivals
        assert table.arrival[rows["test"]].tolist() == ([step] if step <= 2 else [])


def test_clients_may_be_tested_on_what_arrives_next() -> None:
    """Client 1 receives test samples at steps 1 and 3 only, and changes its concept at step 1."""
    rows: list[Row] = [(0, split, step, step) for split in (0, 1) for step in range(4)]
    rows += [(1, 0, step, 0) for step in range(4)] + [(1, 1, 1, 1), (1, 1, 1, 2), (1, 1, 3, 3)]
    concepts = [[5, 6], [5, 7], [5, 7], [8, 7]]
    trace = trace_of(rows, retain_steps=3, test_on="next", concepts=concepts)
    flipped = trace.with_flipped_labels(np.array([0, 1]))
    stream, tested = TraceStream(flipped), []
    for step in range(3):
        stream.advance_to_round(step)
        held = stream.held(np.arange(2), "test")
        assert stream.concepts is not None
        assert stream.test_concepts is not None
        now, then = stream.concepts.tolist(), stream.test_concepts.tolist()
        tested.append(([flipped.labels(held.rows(client)).tolist() for client in (0, 1)], now, then))
    assert tested == [
        ([[1], [1, 2]], [5, 6], [5, 7]),
        ([[2], []], [5, 7], [5, 7]),
        ([[3], [3]], [5, 7], [8, 7]),
    ]
    assert flipped.held(np.array([0]), "train", 2).counts().tolist() == [3]
    assert trace.digest() != trace_of(rows, retain_steps=3, concepts=concepts, test_retain_steps=1).digest()


def test_a_trace_without_next_test_samples_at_the_start_is_refused() -> None:
    with pytest.raises(InputError, match=r"a test sample at the start, .*, one that arrives at data step 1"):
        trace_of([(0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)], test_on="next")


@pytest.mark.parametrize(
    ("step", "first", "last", "arrivals"),
    [
        (0, 0, 0, [-2, -1, 0]),  # samples owned from the start count as arrived at step 0
        (2, 0, 0, [0]),  # without those that have expired
        (2, 1, 1, [1]),
        (2, 1, 2, [1, 2]),
        (2, 0, 9, [0, 1, 2]),  # nothing of the future
        (3, 0, 9, [1, 2, 3]),
        (3, 0, 0, []),
        (3, 4, 9, []),
        (3, 3, 2, []),
        (3, -2, -1, []),
    ],
)
def test_arrivals_of_some_steps_are_limited_to_what_is_held_now(
    step: int, first: int, last: int, arrivals: list[int]
) -> None:
    arrivals_of_0 = [(0, 0, arrival, 0) for arrival in range(-2, 5)]
    trace = trace_of([*arrivals_of_0, (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)], retain_steps=3)
    table = trace.columns()
    stream = TraceStream(trace)
    stream.advance_to_round(step)
    ranges = stream.arrived(np.array([1, 0]), first, last)
    rows = ranges.rows(1)
    assert table.arrival[rows].tolist() == arrivals
    assert (table.client[rows] == 0).all()
    assert (table.split[rows] == 0).all()
    assert ranges.weight.tolist() == [1.0, 1.0]
    assert ranges.counts()[0] == (first <= 0 <= last and step < 3)


def test_a_stream_has_the_concepts_of_the_newest_training_samples_and_of_the_test_samples() -> None:
    rows = [(c, s, step, 0) for c in range(2) for s in (0, 1) for step in (0, 1)]
    stream = TraceStream(trace_of(rows, rounds_per_step=5, concepts=[[0, 0], [0, 1], [2, 1]]))
    with pytest.raises(ValueError, match="before the first call of advance_to_round"):
        _ = stream.concepts
    for round_, now, tested in ((0, [0, 0], [0, 1]), (4, [0, 0], [0, 1]), (5, [0, 1], [2, 1])):
        stream.advance_to_round(round_)
        assert stream.concepts is not None
        assert stream.test_concepts is not None
        assert stream.concepts.tolist() == now
        assert stream.test_concepts.tolist() == tested


def test_a_stream_over_a_trace_without_known_concepts_has_none() -> None:
    stream = TraceStream(trace_of([(0, 0, 0, 0), (0, 1, 0, 0)]))
    stream.advance_to_round(0)
    assert stream.concepts is None
    assert stream.test_concepts is None


def test_tests_have_concepts_of_their_own_where_a_trace_has_them() -> None:
    rows = [(c, s, step, 0) for c in range(2) for s in (0, 1) for step in (0, 1)]
    concepts, of_tests = [[0, 0], [0, 0], [0, 0]], [[0, 0], [4, 0]]
    facts = {"concepts": concepts, "test_then_train": False}
    stream = TraceStream(trace_of(rows, test_concepts=of_tests, **facts))
    with pytest.raises(ValueError, match="before the first call of advance_to_round"):
        _ = stream.test_concepts
    for round_, tested, newest in ((0, [0, 0], [0, 0]), (1, [4, 0], [1, 0])):
        stream.advance_to_round(round_)
        assert stream.concepts is not None
        assert stream.test_concepts is not None
        assert stream.newest_onset is not None
        assert stream.concepts.tolist() == [0, 0]
        assert stream.test_concepts.tolist() == tested
        assert stream.newest_onset.tolist() == newest  # a change of the tests alone is an onset too
    digests = {
        trace_of(rows, concepts=concepts, test_concepts=tests).digest()
        for tests in (None, of_tests, [[0, 0], [0, 4]])
    }
    assert len(digests) == 3


def test_a_stream_has_each_clients_newest_onset_of_its_concepts_and_of_its_drift() -> None:
    rows = [(c, s, step, 0) for c in range(3) for s in (0, 1) for step in range(4)]
    concepts = [[0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 9, 0]]
    moves = of_steps([(1, np.array([0, 1])), (2, np.array([1]))])
    stream = TraceStream(trace_of(rows, rounds_per_step=5, concepts=concepts, moves=moves))
    with pytest.raises(ValueError, match="before the first call of advance_to_round"):
        _ = stream.newest_onset
    for round_, newest in ((4, [0, 0, 0]), (5, [1, 1, 0]), (10, [1, 2, 0]), (15, [3, 2, 0])):
        stream.advance_to_round(round_)
        assert stream.newest_onset is not None
        assert stream.newest_onset.tolist() == newest


def test_onsets_change_no_digest_and_are_unknown_without_concepts_and_moves() -> None:
    rows = [(c, s, step, 0) for c in range(2) for s in (0, 1) for step in (0, 1)]
    moved, unknown = trace_of(rows, moves=of_steps([(1, np.array([1]))])), trace_of(rows)
    assert moved.digest() == unknown.digest()
    assert moved.onsets is not None
    assert moved.onsets.client.tolist() == [1]
    assert moved.with_flipped_labels(np.array([0])).onsets is not None
    assert unknown.onsets is None
    stream = TraceStream(unknown)
    stream.advance_to_round(0)
    assert stream.newest_onset is None


def test_a_stream_refuses_to_go_back() -> None:
    stream = TraceStream(trace_of([(0, 0, 0, 0), (0, 1, 0, 0)], rounds_per_step=5))
    stream.advance_to_round(12)
    stream.advance_to_round(10)  # an earlier round of the same step
    with pytest.raises(ValueError, match=r"round 9 \(step 1\) lies before the present step 2"):
        stream.advance_to_round(9)


def test_two_streams_over_one_trace_do_not_disturb_each_other() -> None:
    trace = trace_of([(0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 1)])
    ahead, behind = TraceStream(trace), TraceStream(trace)
    ahead.advance_to_round(1)
    behind.advance_to_round(0)
    assert ahead.label_histograms(np.array([0])).tolist() == [[0.5, 0.5]]
    assert behind.label_histograms(np.array([0])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [(0, 0, 0, 0), (1, 0, 0, 0)],
            r"^trace: none of its 2 clients has a test sample at the start, data st",
        ),
        ([(0, 1, 0, 0), (1, 1, 0, 0)], "none of its 2 clients has a train sample at the start"),
        ([(0, 0, 1, 0), (0, 1, 0, 0)], "none of its 1 clients has a train sample"),  # it arrives too late
        ([(0, 0, -2, 0), (0, 1, 0, 0)], "none of its 1 clients has a train sample"),  # it has expired
    ],
)
def test_a_trace_that_nobody_has_data_of_at_the_start_is_refused(rows: list[Row], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        trace_of(rows)


def test_a_client_holds_data_from_its_first_samples_until_its_last_ones_expire() -> None:
    # Client 1 joins at step 1, and leaves at step 3, two steps later; client 2 has no test samples.
    rows = [(0, split, step, 0) for split in (0, 1) for step in range(5)]
    rows += [(1, 0, 1, 0), (1, 1, 1, 0), (2, 0, 0, 0), (2, 0, 3, 1)]
    trace = trace_of(rows, retain_steps=2)
    stream = TraceStream(trace)
    assert stream.holding.tolist() == [False] * 3
    held = []
    for round_ in range(5):
        stream.advance_to_round(round_)
        held.append(stream.holding.tolist())
        assert held[-1] == trace.holding(np.arange(3), "train", round_).tolist()
    assert [row[1] for row in held] == [False, True, True, False, False]
    assert [row[2] for row in held] == [True, True, False, True, True]
    assert all(row[0] for row in held)


def test_who_holds_data_is_one_read_only_array_while_it_stays_the_same() -> None:
    stream = TraceStream(trace_of([(0, split, step, 0) for split in (0, 1) for step in range(3)]))
    stream.advance_to_round(0)
    first = stream.holding
    stream.advance_to_round(2)
    assert stream.holding is first
    assert not first.flags.writeable


def many_rows(noise: float, shape: tuple[int, ...] = (2, 2)) -> Trace:
    rows = [(0, split, 0, 0) for split in (0, 1) for _ in range(2000)]
    return trace_of(rows, noise=noise, images=some_images(2, shape=shape))


def test_without_noise_a_sample_is_its_image() -> None:
    trace = many_rows(0.0)
    table = trace.columns()
    rows = np.array([0, 3999])
    assert np.array_equal(trace.features(rows), some_images(2).features(table.image[rows]))
    assert trace.features(rows).shape == (2, *trace.sample_shape)


def test_a_samples_noise_is_its_own_and_the_same_whenever_and_with_whomever_it_is_read() -> None:
    trace = many_rows(0.5)
    once = trace.features(np.arange(4000))
    again = trace.features(np.array([17, 3, 17]))
    assert np.array_equal(again, once[[17, 3, 17]])
    assert np.array_equal(many_rows(0.5).features(np.array([3])), once[[3]])
    assert len(np.unique(once.reshape(4000, -1), axis=0)) > 3980  # of 2^20 stretches, few are shared


def test_noise_has_the_mean_and_the_spread_of_its_settings() -> None:
    trace, rows = many_rows(0.5), np.arange(4000)
    table = trace.columns()
    noise = (trace.features(rows) - some_images(2).features(table.image)).astype(np.float64)
    assert abs(noise.mean()) < 4 * 0.5 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.5, rel=0.03)
    assert abs(np.corrcoef(noise[:-1, 0, 0], noise[1:, 0, 0])[0, 1]) < 4 / np.sqrt(4000)


def test_images_larger_than_the_table_of_noise_are_one_clear_line() -> None:
    images = some_images(2, per_label=2, shape=(NOISE_NUMBERS // 4, 4))
    with pytest.raises(InputError, match=f"images of 262144 x 4 have {NOISE_NUMBERS} pixels; fewer than"):
        trace_of([(0, 0, 0, 0), (0, 1, 0, 0)], images=images)


@pytest.mark.slow
def test_the_digest_knows_every_column_and_no_order_of_the_clients_rows() -> None:
    rows = [(0, 0, 0, 0), (0, 1, 0, 0), (1, 0, -1, 1), (1, 1, 0, 1)]
    digest = trace_of(rows).digest()
    assert trace_of(rows[::-1]).digest() == digest
    for changed in (
        trace_of([*rows[:3], (1, 1, -1, 1)]),  # an arrival
        trace_of([*rows[:3], (1, 1, 0, 0)]),  # a label and its image
        trace_of([*rows, (0, 0, 1, 0)]),  # a row
        trace_of(rows, noise=0.1),
        trace_of(rows, retain_steps=3),
        trace_of(rows, rounds_per_step=2),
        trace_of(rows, test_retain_steps=1),
        trace_of(rows, concepts=[[0, 0], [0, 0]]),
    ):
        assert changed.digest() != digest
    of_concepts = {
        trace_of(rows, concepts=concepts).digest()
        for concepts in ([[0, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 0], [1, 0]])
    }
    assert len(of_concepts) == 3


# -- reference rows ----------------------------------------------------------------------------------------

# At step 0: labels 0, 0, 1 for client 0, and 0, 3 for client 1; a later arrival, an expired one and tests.
REFERENCE: list[Row] = [
    *[(0, 0, -1, 0), (0, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0), (1, 0, 0, 3)],
    *[(1, 0, 1, 2), (0, 0, -2, 2), (0, 1, 0, 2), (1, 1, 0, 1)],
]


def test_reference_rows_are_training_samples_of_step_0_at_most_so_many_of_each_label() -> None:
    trace = trace_of(REFERENCE)
    columns = trace.columns()
    for per_label, labels in ((1, [0, 1, 3]), (2, [0, 0, 1, 3]), (9, [0, 0, 0, 1, 3])):
        rows = trace.reference_rows(per_label)
        assert sorted(trace.labels(rows).tolist()) == labels
        assert rows.tolist() == sorted(set(rows.tolist()))
        assert (columns.split[rows] == 0).all()
        assert set(columns.arrival[rows].tolist()) <= {-1, 0}


def test_reference_rows_are_a_seeded_draw_that_is_the_same_whenever_and_however_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[Row] = [(client, split, 0, client % 2) for client in range(40) for split in (0, 0, 1)]
    trace = trace_of(rows)
    drawn = trace.reference_rows(5)
    assert trace.reference_rows(5).tolist() == drawn.tolist() == trace_of(rows).reference_rows(5).tolist()
    assert set(drawn.tolist()) < set(trace.reference_rows(7).tolist())
    table = trace.table
    other = Trace(
        some_images(2),
        table,
        retain_steps=2,
        rounds_per_step=1,
        noise=0.0,
        generator=np.random.default_rng(1),
    )
    assert other.reference_rows(5).tolist() != drawn.tolist()
    monkeypatch.setattr("traces.trace.CHUNK_ROWS", 3)
    assert trace.reference_rows(5).tolist() == drawn.tolist()


def test_reference_rows_have_the_flipped_labels_of_clients_that_flip_them() -> None:
    flipped = trace_of(REFERENCE).with_flipped_labels(np.array([1]))
    assert sorted(flipped.labels(flipped.reference_rows(9)).tolist()) == [0, 0, 0, 1, 3]
    assert sorted(flipped.labels(flipped.reference_rows(1)).tolist()) == [0, 1, 3]


def test_without_a_training_sample_there_are_no_reference_rows() -> None:
    trace = trace_of(REFERENCE)
    with pytest.raises(ValueError, match="per_label = 0: must be at least 1"):
        trace.reference_rows(0)
    nobody = SortedTable(arrivals_of(**{name: np.zeros(0) for name in DTYPES}), 0, None)
    empty = Trace(
        some_images(),
        nobody,
        retain_steps=1,
        rounds_per_step=1,
        noise=0.0,
        generator=np.random.default_rng(0),
    )
    with pytest.raises(InputError, match="no client holds a training sample at step 0"):
        empty.reference_rows(1)


def test_the_digest_knows_of_which_concept_tests_are() -> None:
    rows: list[Row] = [(0, split, step, 0) for split in (0, 1) for step in (0, 1)]
    digests = set()
    for test_then_train in (False, True):
        for test_concepts in (None, np.zeros((2, 1), dtype=np.int64), np.ones((2, 1), dtype=np.int64)):
            trace = trace_of(rows, concepts=[[0], [0], [0]], test_then_train=test_then_train)
            trace.test_concepts = test_concepts
            digests.add(trace.digest())
    assert len(digests) == 6
