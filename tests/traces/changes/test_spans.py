"""Who changes when, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.changes.settings import Change, ChangedClients
from traces.changes.spans import Run, Spans, draw_spans, drawn_clients
from traces.tables.base import NEVER

RUN = Run(num_clients=20, steps=20, rounds_per_step=5, streams=RandomStreams(3), tests_ahead=False)


def spans(**settings: Any) -> Spans:
    change = Change.model_validate({"what": "xor", "on": "held", **settings})
    return draw_spans(change, "trace.changes.0", RUN)


def rows(found: Spans) -> list[tuple[int, int, int]]:
    return list(zip(found.client.tolist(), found.start.tolist(), found.stop.tolist(), strict=True))


def clients(event: int = 0, **settings: Any) -> set[int]:
    return set(drawn_clients(ChangedClients.model_validate(settings), "trace.changes.0", RUN, event).tolist())


def test_a_larger_share_contains_a_smaller_one_and_parts_are_disjoint() -> None:
    shares = [clients(share=share, redraw=False) for share in (0.1, 0.25, 0.5, 1)]
    assert [len(share) for share in shares] == [2, 5, 10, 20]
    assert shares[0] < shares[1] < shares[2] < shares[3]
    assert clients(count=5, redraw=False) == shares[1]
    parts = [clients(part=part, of=3) for part in (1, 2, 3)]
    assert [len(part) for part in parts] == [6, 7, 7]
    assert set().union(*parts) == set(range(20))
    assert clients(part=1, of=4) == shares[1]


def test_redrawn_clients_differ_by_event_and_others_do_not() -> None:
    assert clients(0, share=0.5) != clients(1, share=0.5)
    assert clients(0, share=0.5, redraw=False) == clients(1, share=0.5, redraw=False)


@pytest.mark.parametrize(
    ("when", "onset", "stop"),
    [
        ({}, 0, NEVER),
        ({"at_round": 10}, 2, NEVER),
        ({"at_step": 0}, 0, NEVER),
        ({"at_share": 0.5}, 10, NEVER),
        ({"at_share": 0.07}, 1, NEVER),  # 1.4
        ({"at_step": 3, "until_round": 20}, 3, 4),
        ({"at_round": 5, "until_share": 0.9}, 1, 18),
        ({"at_round": 5, "until_step": 99}, 1, 99),  # after the run: it stays to its end
    ],
)
def test_times_are_rounds_steps_or_shares_of_the_run(when: dict[str, Any], onset: int, stop: int) -> None:
    assert rows(spans(clients={"names": [4]}, **when)) == [(4, onset, stop)]


def test_staggered_shares_are_nested_fifths() -> None:
    # FLASH: every 20 rounds, here 4 steps, a fifth more of the clients, in one random order.
    found = spans(at_step=2, every=20, staggered=0.2)
    by_start = {start: set(found.client[found.start == start].tolist()) for start in (2, 6, 10, 14, 18)}
    assert [len(stage) for stage in by_start.values()] == [4] * 5
    assert set().union(*by_start.values()) == set(range(20))
    assert set(found.stop.tolist()) == {NEVER}
    so_far: set[int] = set()
    for fifth, stage in enumerate(by_start.values(), start=1):
        so_far |= stage
        assert so_far == clients(share=fifth / 5, redraw=False)


def test_stages_are_shares_of_the_clients_that_change_and_the_last_one_is_what_is_left() -> None:
    found = spans(at_step=0, every=5, staggered=0.4, clients={"count": 5, "redraw": False})
    assert sorted(found.start.tolist()) == [0, 0, 1, 1, 2]


def test_a_change_that_recurs_is_on_as_long_as_at_first() -> None:
    found = spans(at_step=2, until_step=5, every=40, clients={"names": [4]})
    assert rows(found) == [(4, 2, 5), (4, 10, 13), (4, 18, 21)]


def test_redrawn_clients_change_from_one_event_to_the_next() -> None:
    found = spans(at_step=5, every=35, clients={"share": 0.3})
    first, second = (set(found.client[found.start == start].tolist()) for start in (5, 12))
    assert (len(first), len(second)) == (6, 6)
    assert first == clients(0, share=0.3)
    assert second == clients(1, share=0.3)
    assert set(zip(found.start.tolist(), found.stop.tolist(), strict=True)) == {(5, 12), (12, 19), (19, 26)}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"at_round": 12}, r"changes\.0\.at_round = 12: must be a multiple of trace\.rounds_per_step = 5"),
        ({"at_step": 1, "until_round": 7}, r"until_round = 7: must be a multiple of"),
        ({"at_step": 1, "every": 7, "until_step": 2}, r"every = 7: must be a multiple of"),
        ({"at_step": 20}, r"at_step = 20: it would begin at data step 20 .round 100., after the last .* 19"),
        ({"at_share": 1}, r"at_share = 1.0: it would begin at data step 20"),
        (
            {"at_share": 0.5, "until_step": 10},
            r"until_step = 10 is data step 10; must be after the onset, .* 10",
        ),
        (
            {"at_step": 16, "every": 5, "staggered": 0.2},
            r"staggered = 0.2: the last of 5 shares would change at",
        ),
        (
            {"at_step": 0, "every": 5, "staggered": 0.5, "until_step": 1},
            r"until_step: the last of 2 shares of the clients would change at data step 1, after the end",
        ),
        (
            {"at_step": 0, "every": 10},
            r"every = 10 changes nothing: without an end, and with the same clients",
        ),
        (
            {"at_step": 0, "every": 10, "until_step": 3},
            r"it would begin anew before its end, 3 data steps after",
        ),
        (
            {"at_step": 15, "every": 25, "until_step": 17},
            r"it would begin anew at data step 20, after the last",
        ),
        ({"at_step": 0, "clients": {"share": 0.01}}, r"share = 0.01: of 20 clients that is nobody"),
        ({"at_step": 0, "clients": {"count": 21}}, r"count = 21: there are 20 clients"),
        ({"at_step": 0, "clients": {"part": 1, "of": 99}}, r"of 20 clients part 1 has nobody"),
        (
            {"at_step": 0, "clients": {"names": ["x"]}},
            r"there is no client 'x'; there are 20: 0, 1, .*9, \.\.\.",
        ),
    ],
)
def test_what_does_not_fit_the_run_is_refused_in_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        spans(**settings)
    assert str(caught.value).startswith("trace.changes.0")
    assert "\n" not in str(caught.value)


def test_clients_with_names_are_found_by_them() -> None:
    named = Run(3, 20, 5, RandomStreams(0), tests_ahead=False, names=("a", "b", "7"))
    who = ChangedClients.model_validate({"names": ["b", 7]})
    assert drawn_clients(who, "", named).tolist() == [1, 2]


def test_a_span_is_on_from_its_start_to_before_its_stop() -> None:
    found = Spans(*(np.array(column) for column in ([1, 1, 4], [2, 5, 0], [4, 9, 3], [0, 0, 0])))
    client, step = np.array([0, 1, 1, 1, 1, 1, 4, 4, 5]), np.array([2, 1, 2, 4, 5, 9, 0, 3, 0])
    assert found.at(client, step).tolist() == [-1, -1, 0, -1, 1, -1, 2, -1, -1]
