"""What can be written as a change, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from traces.changes.settings import Change

XOR: dict[str, Any] = {"what": "xor", "on": "held", "at_round": 20}
ROTATE: dict[str, Any] = {**XOR, "what": {"rotate": 30}}
OWN: dict[str, Any] = {"what": "own_swap", "on": "held", "clients": {"share": 0.5}, "every": 20}


@pytest.mark.parametrize(
    "written",
    [
        XOR,
        {**OWN, "clients": {"share": 0.5, "redraw": True}},
        {**XOR, "what": {"swap": [[3, 8], [5, 6]]}, "clients": {"part": 2, "of": 3}, "splits": ["train"]},
        {**ROTATE, "samples": {"from": 0.1, "to": 1.0, "over": 20}, "magnitude": 0.5, "cumulative": True},
        {"what": ["xor", {"swap": [[1, 2]]}], "on": "arrivals", "pattern": ["00", "12"]},
        {**XOR, "what": {"replace": [10.0, 1000.0]}, "clients": {"names": ["a", "3"]}},
    ],
)
def test_a_change_is_recorded_as_it_was_written(written: dict[str, Any]) -> None:
    change = Change.model_validate(written)
    recorded = change.model_dump(mode="json", by_alias=True)
    assert recorded == written
    assert Change.model_validate(recorded) == change


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (
            {**XOR, "what": "xnor"},
            "no such operation; must be one of xor, reverse, permute, own_swap, rule, or a table",
        ),
        (
            {**XOR, "what": 5},
            "must be a word such as 'xor', a table such as { rotate = 30 }, or a list of them",
        ),
        ({**XOR, "splits": ["train", "train"]}, "['train', 'train']: has a split twice"),
        ({**XOR, "clients": {"part": 1, "of": 2, "redraw": False}}, "redraw: is for share and count"),
        ({**XOR, "clients": {"names": [1.5]}}, "must be a text or a whole number"),
        ({**XOR, "what": []}, "what: an empty list changes nothing; must have an operation"),
        ({**XOR, "what": {}}, "no such operation; must be one of xor"),
        (
            {**XOR, "what": {"blur": 1}},
            "'blur': no such operation; tables have one of swap, rotate, noise, replace",
        ),
        ({**XOR, "what": "rotate"}, "'rotate' needs a value: write a table, { rotate = ... }"),
        ({**XOR, "what": {"replace": [10]}}, "must be [low, high]"),
        (
            {**XOR, "what": {"swap": [["UP", "DOWN", 1]]}},
            "must be a list of pairs of labels, which are numbers",
        ),
        (
            {**XOR, "what": {"rotate": 3, "noise": 1}},
            "has rotate and noise in one table; give each a change of its own",
        ),
        ({**XOR, "what": {"swap": []}}, "must have a pair of labels, such as [[3, 8]]"),
        ({**XOR, "what": {"swap": [[3, 3]]}}, "[[3, 3]]: has label 3 twice; a label changes places with one"),
        ({**XOR, "what": {"swap": [[1, 2], [2, 3]]}}, "has label 2 twice"),
        ({**XOR, "what": {"replace": [2, 1]}}, "[2.0, 1.0]: must be [low, high], with low at most high"),
        ({**XOR, "at_step": 2}, "at_round and at_step: only one of at_round, at_step, at_share may be given"),
        ({**XOR, "until_round": 20}, "until_round = 20: must be after the onset, at_round = 20"),
        ({**XOR, "clients": {"share": 0.5, "count": 3}}, "share and count: only one of share, part, "),
        ({**XOR, "clients": {"part": 3, "of": 2}}, "part = 3: must be at most of = 2"),
        ({**XOR, "what": ["xor", "reverse"]}, "what: a list needs a pattern"),
        ({**XOR, "cumulative": True}, "cumulative: is for changes of features of held data; leave it out"),
        ({**ROTATE, "cumulative": True}, "cumulative: needs a curve { from, to, over }"),
        ({**XOR, "samples": "all"}, "must be a number, or a table { from, to, over }"),
        ({**XOR, "samples": 1.5}, "samples: is up to 1.5; must be a share, 0 to 1"),
        ({**XOR, "samples": {"from": 0, "to": 1, "over": 0}}, "over = 0: must be at least 1"),
        (
            {**XOR, "pattern": ["00", "11"]},
            "pattern cannot be combined with at_round: it says who changes when",
        ),
        ({"what": "xor", "on": "held", "pattern": "Q"}, "no such pattern; choices: Y, Z, "),
        (
            {"what": ["xor", {"noise": 1}], "on": "held", "pattern": ["0", "2"]},
            "what: a list has changes of labels or of features, not both",
        ),
        ({**OWN, "on": "arrivals"}, "own_swap: swaps two labels that a client holds; must have on = 'held'"),
        ({**OWN, "every": None}, "own_swap: needs clients = { share, redraw } alone, and every"),
        ({**OWN, "samples": 0.5}, "own_swap: changes all samples of its clients"),
        ({**OWN, "splits": ["train"]}, "own_swap: changes both splits; leave out splits"),
        (
            {**XOR, "what": {"mix": "dense"}},
            "Input should be 'orthogonal', 'channels', 'gains' or 'monotone'",
        ),
        ({**XOR, "what": {"mix": {"kind": "gains", "strength": 1.5}}}, "less than or equal to 1"),
        ({**XOR, "what": {"mix": "gains", "strength": 1}}, "mix = { kind = 'gains', strength = ... }"),
        ({**XOR, "what": {"mix": {"kind": "channels", "strength": 0.5}}}, "strength = 0.5: channels lie in"),
        ({**XOR, "what": {"mix": "channels"}, "magnitude": 0.5}, "magnitude: channels lie in another order"),
        (
            {**XOR, "what": {"mix": {"kind": "gains", "strength": 0.5}}, "magnitude": 3},
            "magnitude: is up to 3; must be at most 1 with strength = 0.5",
        ),
        ({"on": "held", "what": ["rule", "xor"], "pattern": ["0", "1"]}, "what: a list has 'rule' alone, or"),
        (
            {"what": "own_swap", "on": "held", "pattern": ["0", "1"]},
            "pattern cannot be combined with own_swap",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_line(written: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Change.model_validate(written)
    [error] = caught.value.errors()
    assert says in error["msg"]
    assert "\n" not in error["msg"]
