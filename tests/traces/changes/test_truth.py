"""True concepts, and what four clients hold, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, trace_of
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.trace import Trace, TraceStream

# At each of six steps each client receives a sample of each split: label 0 of client 0, 1 of 1, and so on.
STREAM: list[Row] = [
    (client, split, step, client) for client in range(4) for split in (0, 1) for step in range(-1, 6)
]
# Client 3 is away from step 2 on, and comes back at step 5.
AWAY = [row for row in STREAM if not (row[0] == 3 and row[2] in (2, 3, 4))]


def changed(*changes: dict[str, Any], rows: list[Row] = STREAM, **facts: Any) -> Trace:
    plain = trace_of(rows, **{"retain_steps": 2, "test_then_train": False, **facts})
    parsed = [Change.model_validate({"what": "xor", "on": "held", **change}) for change in changes]
    return with_changes(plain, parsed, 6, RandomStreams(0))


def labels(trace: Trace, step: int, split: Any = "train") -> list[list[int]]:
    held = trace.held(np.arange(4), split, step)
    return [trace.labels(held.rows(client)).tolist() for client in range(4)]


def test_of_four_clients_two_change_what_they_hold_and_one_of_them_comes_back() -> None:
    trace = changed(
        {"at_step": 2, "clients": {"names": [1, 2]}},
        {"what": "reverse", "at_step": 3, "until_step": 5, "clients": {"names": [2, 3]}},
    )
    # 0 to 3 become by xor 1, 0, 3, 2, and by reverse 3, 2, 1, 0; client 2 has first the one, then the other.
    assert [labels(trace, step) for step in range(6)] == [
        [[0, 0], [1, 1], [2, 2], [3, 3]],
        [[0, 0], [1, 1], [2, 2], [3, 3]],
        [[0, 0], [0, 0], [3, 3], [3, 3]],
        [[0, 0], [0, 0], [0, 0], [0, 0]],
        [[0, 0], [0, 0], [0, 0], [0, 0]],
        [[0, 0], [0, 0], [3, 3], [3, 3]],
    ]
    # Sets of changes, as they appear: xor; both; reverse.
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 1, 0],
        [0, 1, 1, 0],
    ]


def test_arrivals_keep_their_change_and_those_of_before_have_none() -> None:
    trace = changed({"on": "arrivals", "at_step": 2, "until_step": 4, "clients": {"names": [1]}})
    assert [labels(trace, step)[1] for step in range(6)] == [[1, 1], [1, 1], [1, 0], [0, 0], [0, 1], [1, 1]]
    assert trace.concepts is not None
    assert trace.concepts[:, 1].tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_a_row_that_is_sent_anew_keeps_its_age_and_is_claimed_anew() -> None:
    trace, one = changed({"at_step": 2, "clients": {"names": [1]}}, retain_steps=3), np.array([1])
    # At step 2 a client holds the samples of steps 0 to 2; the first two are sent anew, and expire in time.
    for step in (1, 2, 3, 4):
        assert trace.held(one, "train", step).counts().tolist() == [3]
    born = [trace.table.arrival(trace.held(one, "train", step).rows(0)).tolist() for step in (2, 3, 4)]
    assert born == [[2, 2, 2], [2, 2, 3], [2, 3, 4]]
    assert trace.arrived(one, 0, 1, 2).counts().tolist() == [0]
    assert trace.arrived(one, 2, 2, 2).counts().tolist() == [3]
    assert trace.arrived(one, 2, 2, 4).counts().tolist() == [1]
    assert trace.arrived(one, 3, 9, 4).counts().tolist() == [2]
    assert trace.arrived(np.array([0, 1]), 2, 2, 3).counts().tolist() == [1, 2]


def test_only_clients_whose_training_samples_change_have_news_of_it() -> None:
    stream = TraceStream(
        changed(
            {"at_step": 2, "clients": {"names": [1]}},
            {"at_step": 3, "clients": {"names": [2]}, "splits": ["test"]},
            rows=[(*row[:2], min(row[2], 0), row[3]) for row in STREAM],
            retain_steps=9,
        )
    )
    assert [stream.advance_to_round(step).tolist() for step in range(5)] == [[0, 1, 2, 3], [], [1], [], []]


def test_who_is_away_at_the_onset_changes_with_what_it_receives_later() -> None:
    trace = changed({"at_step": 4, "until_step": 5}, {"at_step": 3}, rows=AWAY)
    assert [labels(trace, step)[3] for step in range(6)] == [[3, 3], [3, 3], [3], [], [], [2]]
    assert trace.concepts is not None
    assert trace.concepts[:, 3].tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert trace.concepts[:, 0].tolist() == [0, 0, 0, 1, 2, 1, 1]


def test_changes_of_one_split_have_concepts_of_tests_of_their_own() -> None:
    trace = changed({"at_step": 2, "splits": ["train"], "clients": {"names": [0, 1]}})
    assert labels(trace, 3) == [[1, 1], [0, 0], [2, 2], [3, 3]]
    assert labels(trace, 3, "test") == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert trace.concepts is not None
    assert trace.test_concepts is not None
    assert trace.concepts[:, 0].tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert trace.test_concepts.tolist() == [[0, 0, 0, 0]] * 6
    stream = TraceStream(trace)
    stream.advance_to_round(2)
    assert stream.concepts is not None
    assert stream.test_concepts is not None
    assert (stream.concepts.tolist(), stream.test_concepts.tolist()) == ([1, 1, 0, 0], [0, 0, 0, 0])


def test_changes_of_tests_alone_are_no_news_of_training() -> None:
    trace = changed({"at_step": 2, "splits": ["test"], "clients": {"names": [0]}})
    assert trace.concepts is not None
    assert trace.test_concepts is not None
    assert not trace.concepts.any()
    assert trace.test_concepts[:, 0].tolist() == [0, 0, 1, 1, 1, 1]
    assert labels(trace, 3, "test")[0] == [1, 1]
    assert labels(trace, 3)[0] == [0, 0]


def test_tests_of_the_next_step_carry_the_changes_of_it() -> None:
    trace = changed({"at_step": 2}, test_on="next")
    assert [labels(trace, step, "test")[0] for step in range(5)] == [[0], [1], [1], [1], [1]]
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [0, 0, 1, 1, 1, 1, 1]
    stream = TraceStream(trace)
    stream.advance_to_round(1)
    assert stream.concepts is not None
    assert stream.concepts.tolist() != stream.test_concepts.tolist()  # type: ignore[union-attr]


def test_known_concepts_stay_and_those_with_changes_come_after_them() -> None:
    known = [[0, 0, 5, 5]] * 3 + [[0, 2, 5, 5]] * 4
    trace = changed({"at_step": 2, "clients": {"names": [1, 2]}}, concepts=known)
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [
        *[[0, 0, 5, 5]] * 2,
        [0, 6, 7, 5],
        *[[0, 8, 7, 5]] * 4,
    ]


def test_magnitude_and_share_do_not_make_a_concept() -> None:
    curve = {"from": 0.2, "to": 1, "over": 3}
    trace = changed({"what": {"noise": 1}, "at_step": 1, "samples": curve, "magnitude": curve})
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [0, 1, 1, 1, 1, 1, 1]


def test_own_swaps_of_data_that_expire_swap_labels_that_are_held_then() -> None:
    # Client 0 holds labels 0 and 1 to step 2, then 2 and 3; client 1 only ever one label, and so never swaps.
    rows: list[Row] = [
        (0, split, step, (step >= 2) * 2 + k) for split in (0, 1) for step in range(6) for k in (0, 1)
    ]
    rows += [(1, split, step, 2) for split in (0, 1) for step in range(6)]
    swap = {"what": "own_swap", "clients": {"share": 1.0}, "every": 1, "at_step": 1, "until_step": 5}
    trace = changed(swap, rows=rows, retain_steps=1)
    held = [sorted(labels_of(trace, 0, step)) for step in range(6)]
    assert held == [[0, 1]] * 2 + [[2, 3]] * 4
    of_first = [labels_of(trace, 0, step)[0] for step in range(6)]
    # Swapped at step 1; at steps 2 and 4, and not at 3; at 5 it is over.
    assert of_first == [0, 1, 3, 2, 3, 2]
    assert [labels_of(trace, 1, step) for step in range(6)] == [[2]] * 6
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [0, 1, 2, 1, 2, 0, 0]
    assert trace.concepts[:, 1].tolist() == [0] * 7


def labels_of(trace: Trace, client: int, step: int) -> list[int]:
    return [int(label) for label in trace.labels(trace.held(np.array([client]), "train", step).rows(0))]


def test_a_change_that_reaches_no_sample_is_refused() -> None:
    static = [row for row in STREAM if row[2] == 0]
    with pytest.raises(ConfigurationError, match=r"trace\.changes\.0: xor changes no sample: of its clients"):
        changed({"on": "arrivals", "at_step": 2}, rows=static, retain_steps=9)


@pytest.mark.parametrize("other", ["xor", "own_swap"])
def test_own_swaps_beside_another_change_of_labels_are_refused_by_name(other: str) -> None:
    swap = {"what": "own_swap", "clients": {"share": 1.0}, "every": 2}
    beside = swap if other == "own_swap" else {"what": other, "at_step": 1, "on": "arrivals"}
    with pytest.raises(ConfigurationError) as caught:
        changed({"what": {"noise": 1}, "at_step": 1}, swap, beside)
    assert str(caught.value).startswith(
        f"trace.changes.1 (own_swap) and trace.changes.2 ({other}) cannot both apply: own_swap draws from"
    )


def test_a_change_of_labels_has_no_magnitude() -> None:
    with pytest.raises(
        ConfigurationError, match=r"changes\.0\.magnitude: xor changes labels, which has no mag"
    ):
        changed({"at_step": 2, "magnitude": 0.5})


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    plain = trace_of(STREAM, retain_steps=2, test_then_train=False)
    change = Change.model_validate(
        {"what": {"noise": 1}, "on": "held", "at_step": 1, "samples": 0.5, "clients": {"share": 0.5}}
    )
    short, long = (with_changes(plain, [change], rounds, RandomStreams(0)) for rounds in (3, 6))
    for step in range(3):
        rows = [trace.held(np.array([1]), "train", step).rows(0) for trace in (short, long)]
        assert np.array_equal(short.features(rows[0]), long.features(rows[1]))


def test_onsets_of_tests_that_are_ahead_are_of_the_step_that_their_samples_are_of() -> None:
    both, alone = {"at_step": 3}, {"what": {"noise": 1}, "at_step": 5, "splits": ["train"]}
    for test_on, steps in (("present", [3, 5]), ("next", [3, 5])):
        onsets = changed(both, {**alone, "clients": {"names": [0]}}, test_on=test_on).onsets
        assert onsets is not None
        assert onsets.step.tolist() == [steps[0]] * 4 + [steps[1]]
    onsets = changed({"at_step": 1, "splits": ["test"], "clients": {"names": [2]}}, test_on="next").onsets
    assert onsets is not None
    assert (onsets.step.tolist(), onsets.client.tolist()) == ([1], [2])


def test_parts_stay_the_same_at_each_event() -> None:
    recurring = {"clients": {"part": 1, "of": 4}, "at_step": 0, "until_step": 1, "every": 2}
    trace = changed(recurring)
    assert trace.concepts is not None
    assert trace.concepts.sum(axis=1).tolist() == [1, 0, 1, 0, 1, 0, 0]
    assert len(np.unique(trace.concepts.nonzero()[1])) == 1


def test_an_event_of_the_step_after_the_run_is_in_its_last_tests() -> None:
    recurring = {"at_step": 0, "until_step": 1, "every": 3}
    trace = changed(recurring, test_on="next")
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [1, 0, 0, 1, 0, 0, 1]


def test_many_changes_have_as_many_concepts() -> None:
    trace = changed(*[{"at_step": 0, "clients": {"names": [number % 4]}} for number in range(80)])
    assert trace.concepts is not None
    assert trace.concepts[0].tolist() == [1, 2, 3, 4]


def test_a_change_of_arrivals_is_not_in_a_concept_before_a_sample_has_it() -> None:
    # Client 3 is away from step 2 to 4: what it holds at step 3 was sent before the change of arrivals.
    arrivals = {"what": "reverse", "on": "arrivals", "at_step": 2}
    trace = changed(arrivals, {"at_step": 3, "clients": {"names": [3]}}, rows=AWAY, retain_steps=4)
    assert labels(trace, 3)[3] == [2, 2]
    assert trace.concepts is not None
    assert trace.concepts[:, 3].tolist() == [0, 0, 0, 2, 2, 3, 3]
    assert trace.concepts[:, 0].tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_tests_follow_the_arrivals_of_tests() -> None:
    # Client 0 receives test samples alone from step 2 on.
    rows = [row for row in STREAM if not (row[0] == 0 and row[1] == 0 and row[2] > 1)]
    trace = changed({"on": "arrivals", "at_step": 3}, rows=rows, retain_steps=9)
    assert trace.concepts is not None
    assert trace.test_concepts is not None
    assert trace.concepts[:, 0].tolist() == [0] * 7
    assert trace.test_concepts[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    assert trace.test_concepts[:, 1].tolist() == trace.concepts[:-1, 1].tolist()
