from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.errors import DataFileError, ForeignFileError
from emulator.messages import NamedNumbers, PairwiseTrigger, Trigger
from emulator.storage.log_lines import MOST_KEYS
from emulator.storage.packed import PLAIN
from emulator.storage.runlog import RoundRecord, RunLog, read_log

RECORD = RoundRecord(
    round=3,
    step=1,
    opened_s=10.5,
    dispatched_s=10.75,
    closed_s=20.0,
    participants=[1, 4, 5, 7],
    completed=[1, 7],
    dropped=[4],
    changed=6,
    reported=2,
    moved=1,
    reclustered=False,
    clusters=[0, 2],
    members=np.array([0, 2, 0]),
    train_loss=0.1,
    accuracy=None,
    accuracy_std=None,
    loss=None,
    mean_client_distance=0.3333333333333333,
    unclustered_distance=1e-17,
    scored_clients=3,
    drift_cells=1,
    accuracy_omitting_drift=0.75,
    serving=np.array([0, 2, -1]),
    download_bytes=1e20,
    upload_bytes=12.5,
    control_bytes=0.0,
    models_sent=12.0,
    kmeans_clients=None,
    silhouette_clients=None,
    rejected=[],
    crashed=[],
    client_accuracy=None,
    trigger=None,
    silhouettes=None,
)
LINES = (
    b'{"kind":"run","arm":"fielding","seed":0}\n'
    b'{"kind":"round","round":3,"step":1,"opened_s":10.5,"dispatched_s":10.75,"closed_s":20.0,'
    b'"participants":[1,4,5,7],"kept":[1,7],"dropped":[4],"changed":6,"reported":2,"moved":1,'
    b'"reclustered":false,"clusters":[0,2],"members":[0,2,0],"train_loss":0.1,"accuracy":null,'
    b'"accuracy_std":null,"loss":null,"mean_client_distance":0.3333333333333333,'
    b'"unclustered_distance":1e-17,"scored_clients":3,"drift_cells":1,"accuracy_omitting_drift":0.75,'
    b'"serving":[0,2,-1],"download_bytes":1e+20,"upload_bytes":12.5,"control_bytes":0.0,"models_sent":12.0,'
    b'"kmeans_clients":null,"silhouette_clients":null,"rejected":[],"crashed":[],"client_accuracy":null,'
    b'"trigger":null,"silhouettes":null}\n'
)
HEADER = {"arm": "fielding", "seed": 0}


def written_to(path: Path, *records: RoundRecord) -> Path:
    with RunLog(path, HEADER) as log:
        for record in records:
            log.append(record)
    return path


def test_a_log_is_these_bytes(tmp_path: Path) -> None:
    assert written_to(tmp_path / "log.jsonl", RECORD).read_bytes() == LINES


def test_what_is_read_back_equals_what_was_appended(tmp_path: Path) -> None:
    records = [RECORD, replace(RECORD, round=4, members=None, accuracy=1 / 3)]
    assert read_log(written_to(tmp_path / "log.jsonl", *records)) == (HEADER, records)


def test_how_many_clients_hold_data_is_written_where_it_is_not_all_of_them(tmp_path: Path) -> None:
    path = written_to(tmp_path / "log.jsonl", RECORD, replace(RECORD, round=4, holding=2))
    assert [b'"holding":2' in line for line in path.read_bytes().splitlines()[1:]] == [False, True]
    assert [record.holding for record in read_log(path)[1]] == [None, 2]


def test_a_round_of_several_steps_has_a_client_once_for_each_visit(tmp_path: Path) -> None:
    steps = replace(
        RECORD,
        participants=[1, 7, 1, 5],
        completed=[1, 7, 1],
        dropped=[5],
        steps=2,
        staleness=2 / 3,
        largest_staleness=1,
        in_flight=3,
    )
    ended = {"participants": [], "completed": [], "dropped": [], "train_loss": None}
    last = replace(RECORD, round=4, dispatched_s=20.0, closed_s=20.0, steps=0, in_flight=0, **ended)
    path = written_to(tmp_path / "log.jsonl", steps, last)
    lines = path.read_bytes().splitlines()
    assert lines[1].endswith(b'"steps":2,"staleness":0.6666666666666666,"largest_staleness":1,"in_flight":3}')
    assert lines[2].endswith(b'"steps":0,"in_flight":0}')
    assert read_log(path) == (HEADER, [steps, last])
    assert (steps.abandoned, last.abandoned) == (0, 0)


@pytest.mark.parametrize("name", ["steps", "staleness", "largest_staleness", "in_flight"])
def test_what_is_counted_by_steps_is_not_below_0(name: str, tmp_path: Path) -> None:
    path = written_to(tmp_path / "log.jsonl", replace(RECORD, **{name: -1}))
    with pytest.raises(DataFileError, match=f"{name} = -1 must be at least 0"):
        read_log(path)


def test_a_log_without_rounds_is_its_header(tmp_path: Path) -> None:
    assert read_log(written_to(tmp_path / "log.jsonl")) == (HEADER, [])


def test_every_line_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    with RunLog(tmp_path / "log.jsonl", HEADER) as log:
        log.append(RECORD)
        assert (tmp_path / "log.jsonl").read_bytes() == LINES


def test_nan_and_infinity_are_refused_and_leave_no_half_line(tmp_path: Path) -> None:
    with RunLog(tmp_path / "log.jsonl", HEADER) as log:
        for value in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match="not JSON compliant"):
                log.append(replace(RECORD, loss=value))
    assert read_log(tmp_path / "log.jsonl") == (HEADER, [])


def test_arrays_of_many_clients_are_read_back_as_they_were(tmp_path: Path) -> None:
    many = np.arange(PLAIN + 1)
    accuracy = np.where(many % 3 == 0, np.nan, many / 7).astype(np.float32)
    record = replace(RECORD, members=many % 5 - 1, serving=many * 1000, client_accuracy=accuracy)
    assert read_log(written_to(tmp_path / "log.jsonl", record)) == (HEADER, [record])


def test_members_that_hardly_change_take_hardly_any_room(tmp_path: Path) -> None:
    labels = np.random.default_rng(0).integers(0, 4, 100_000)
    moved = labels.copy()
    moved[::1000] = 7
    records = [
        replace(RECORD, members=labels),
        replace(RECORD, round=4, members=None),
        replace(RECORD, round=5, members=moved),
        replace(RECORD, round=6, members=labels),
    ]
    path = written_to(tmp_path / "log.jsonl", *records)
    assert read_log(path) == (HEADER, records)
    lengths = [len(line) for line in path.read_bytes().splitlines()]
    assert lengths[3] < lengths[1] / 20


def test_a_client_without_accuracy_is_null(tmp_path: Path) -> None:
    record = replace(RECORD, client_accuracy=np.array([0.5, np.nan], dtype=np.float32))
    path = written_to(tmp_path / "log.jsonl", record)
    assert b'"client_accuracy":[0.5,null]' in path.read_bytes()
    assert read_log(path)[1] == [record]


def test_what_a_trigger_compared_is_written_by_name_and_read_back(tmp_path: Path) -> None:
    not_fired = replace(RECORD, trigger=Trigger(0.125, 1.5, 0.25, 3, False))
    never_fires = replace(RECORD, trigger=Trigger(0.125, None, None, 1, False))
    fired = replace(RECORD, trigger=Trigger(1, 1.5, 0, 2, True), silhouettes={2: 0.5, 10: None})
    path = written_to(tmp_path / "log.jsonl", not_fired, never_fires, fired)
    lines = path.read_bytes().splitlines()
    assert lines[1].endswith(
        b'"trigger":{"shift":0.125,"mean_distance":1.5,"threshold":0.25,"clusters":3,"fired":false},'
        b'"silhouettes":null}'
    )
    assert lines[3].endswith(b'"silhouettes":{"2":0.5,"10":null}}')
    assert read_log(path) == (HEADER, [not_fired, never_fires, fired])
    assert not_fired != RECORD
    assert fired != replace(fired, silhouettes={2: 0.5})


def test_what_is_logged_by_number_is_read_back_by_number(tmp_path: Path) -> None:
    by_age = {"personal_accuracy_by_age": {1: 0.5, 10: None}, "clients_by_age": {1: 3, 10: 0}}
    aged = replace(RECORD, silhouettes={2: 1.0}, **by_age)
    assert read_log(written_to(tmp_path / "log.jsonl", aged)) == (HEADER, [aged])


def test_accuracies_by_concept_have_a_number_for_each_cluster_and_are_read_back(tmp_path: Path) -> None:
    measured = replace(RECORD, clusters=[4, 7], accuracy_by_concept={0: [0.25, 1.0], 12: [0, 0.5]})
    path = written_to(tmp_path / "log.jsonl", measured, RECORD)
    first, second = path.read_bytes().splitlines()[1:]
    assert first.endswith(b',"accuracy_by_concept":{"0":[0.25,1.0],"12":[0,0.5]}}')
    assert b"accuracy_by_concept" not in second
    assert read_log(path) == (HEADER, [measured, RECORD])


def test_who_was_decided_about_and_flagged_is_read_back_and_takes_little_room(tmp_path: Path) -> None:
    many = list(range(0, 200_000, 2))
    detected = replace(
        RECORD, decided={"training": many}, flagged={"ddm": [4, 8], "trend": many}, clipped={"ddm": 3}
    )
    path = written_to(tmp_path / "log.jsonl", detected, RECORD)
    assert read_log(path) == (HEADER, [detected, RECORD])
    assert b'"flagged":{"ddm":[4,8],"trend":{"dtype"' in path.read_bytes()
    assert path.stat().st_size < 4 * len(many)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("decided", [1], r"decided must be of kind dict\[str, list\[int\]\] \| None"),
        ("flagged", {"ddm": "1"}, r"flagged must be of kind dict\[str, list\[int\]\] \| None"),
        ("flagged", {"ddm": [1.5]}, "flagged must be of kind dict"),
        ("flagged", {"ddm": [2, 1]}, "flagged must have ascending ids of the"),
        ("decided", {"training": [-1, 1]}, "decided must have ascending ids of the"),
        ("clipped", {"ddm": [1]}, "clipped must be of kind"),
    ],
)
def test_wrong_decisions_name_the_line(tmp_path: Path, name: str, value: Any, problem: str) -> None:
    path = written_to(tmp_path / "log.jsonl", RECORD)
    head, line = path.read_text().splitlines()
    path.write_text(f"{head}\n{json.dumps({**json.loads(line), name: value})}\n")
    with pytest.raises(DataFileError, match=f"row 2: damaged: {problem}"):
        read_log(path)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"0": 0.5}, r"accuracy_by_concept must be of kind dict\[int, list\[float\]\] \| None"),
        ({"0": [None, 0.5]}, "accuracy_by_concept must be of kind"),
        ({"zero": [0.5, 0.5]}, "accuracy_by_concept must be of kind"),
        ({"0": [0.5, 1.5]}, "accuracy_by_concept has 1.5, which must be from 0 to 1"),
        ({"0": [0.5, 0.5], "1": [0.5]}, "accuracy_by_concept: 1 has 1 numbers, for 2 clusters"),
    ],
)
def test_wrong_accuracies_by_concept_name_the_line(tmp_path: Path, value: Any, problem: str) -> None:
    path = written_to(tmp_path / "log.jsonl", replace(RECORD, clusters=[4, 7]))
    head, line = path.read_text().splitlines()
    path.write_text(f"{head}\n{json.dumps({**json.loads(line), 'accuracy_by_concept': value})}\n")
    with pytest.raises(DataFileError, match=f"row 2: damaged: {problem}"):
        read_log(path)


def test_a_trigger_by_pairs_has_fields_of_its_own(tmp_path: Path) -> None:
    fired = replace(RECORD, trigger=PairwiseTrigger(0.75, 0.5, 3, True))
    alone = replace(RECORD, trigger=PairwiseTrigger(None, -0.1, 3, False))
    path = written_to(tmp_path / "log.jsonl", fired, alone)
    assert b'"trigger":{"largest_distance":0.75,"delta":0.5,"clusters":3,"fired":true},' in path.read_bytes()
    assert read_log(path) == (HEADER, [fired, alone])


def test_numbers_of_a_trigger_of_its_own_are_written_by_name_and_read_back(tmp_path: Path) -> None:
    found = replace(RECORD, trigger=NamedNumbers({"spread": 0.25, "by_cluster": [0.5, 1.0]}, 2, False))
    nothing = replace(RECORD, trigger=NamedNumbers({}, 1, True))
    path = written_to(tmp_path / "log.jsonl", found, nothing)
    assert (
        b'"trigger":{"numbers":{"spread":0.25,"by_cluster":[0.5,1.0]},"clusters":2,"fired":false},'
        in path.read_bytes()
    )
    assert read_log(path) == (HEADER, [found, nothing])


LONG = "a" * 32


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ({f"n{number}": 1.0 for number in range(17)}, "a mapping of at most 16 names"),
        ([1.0], "a mapping of at most 16 names"),
        ({LONG + "a": 1.0}, "'a{33}' cannot name a number: at most 32 lower-case letters"),
        ({"Spread": 1.0}, "'Spread' cannot name a number"),
        ({"1st": 1.0}, "'1st' cannot name a number"),
        ({"a.b": 1.0}, "'a.b' cannot name a number"),
        ({"größe": 1.0}, "'größe' cannot name a number"),
        ({"a\n": 1.0}, "cannot name a number"),
        ({"": 1.0}, "'' cannot name a number"),
        ({"spread": None}, "spread must be a finite number, an int or float of Python, or a list of them"),
        ({"spread": True}, "spread must be a finite number"),
        ({"spread": "1"}, "spread must be a finite number"),
        ({"spread": {"a": 1.0}}, "spread must be a finite number"),
        ({"spread": 2**53 + 1}, "spread must be a finite number"),
        ({"spread": [1.0, None]}, "spread must be a finite number"),
        ({"spread": [1.0, [2.0]]}, "spread must be a finite number"),
        ({"spread": [1.0]}, "spread has 1 numbers, for 2 clusters"),
        ({"spread": [1.0] * 3}, "spread has 3 numbers, for 2 clusters"),
    ],
)
def test_named_numbers_out_of_bounds_are_neither_written_nor_read(
    tmp_path: Path, numbers: dict[str, object], problem: str
) -> None:
    path = tmp_path / "log.jsonl"
    with (
        RunLog(path, HEADER) as log,
        pytest.raises(ValueError, match=problem),
    ):
        log.append(replace(RECORD, trigger=NamedNumbers(numbers, 2, False)))  # type: ignore[arg-type]
    assert read_log(path) == (HEADER, [])
    forged = json.dumps({"numbers": numbers, "clusters": 2, "fired": False}).encode()
    path.write_bytes(LINES.replace(b'"trigger":null', b'"trigger":' + forged))
    with pytest.raises(DataFileError, match=f"log.jsonl, row 2: damaged: trigger.*{problem}"):
        read_log(path)


def test_named_numbers_may_be_as_many_and_as_long_as_their_bounds(tmp_path: Path) -> None:
    most = {LONG[: 16 + number] + "_0": -(2**53) for number in range(15)}
    record = replace(RECORD, trigger=NamedNumbers({LONG: [0.0], **most}, 1, False))
    assert read_log(written_to(tmp_path / "log.jsonl", record))[1] == [record]


def test_the_names_of_numbers_are_at_most_sixteen_in_a_log_also_after_resuming(tmp_path: Path) -> None:
    """Each is a column of all rounds: as many new ones in every round would be more than memory holds."""
    path = tmp_path / "log.jsonl"
    first, second, third = (
        replace(RECORD, trigger=NamedNumbers(dict.fromkeys(names, 1.0), 2, False))
        for names in ([f"n{number}" for number in range(12)], ["n0", "m0", "m1", "m2", "m3"], ["n1", "late"])
    )
    with RunLog(path, HEADER) as log:
        log.append(first)
        log.append(second)
        state = log.state()
    with RunLog(path, HEADER, state) as log, pytest.raises(ValueError, match="17 names; at most 16 in a log"):
        log.append(third)
    assert read_log(path)[1] == [first, second]
    forged = path.read_bytes().splitlines(keepends=True)[2].replace(b'"m0"', b'"m4"')
    path.write_bytes(path.read_bytes() + forged)
    with pytest.raises(DataFileError, match=r"row 4: damaged: trigger.* 17 names; at most 16 in a log"):
        read_log(path)


def test_what_parts_noted_is_written_by_name_and_read_back(tmp_path: Path) -> None:
    noted = replace(RECORD, noted={"disparity": 0.25, "epochs": 3})
    path = written_to(tmp_path / "log.jsonl", noted, RECORD)
    first, second = path.read_bytes().splitlines()[1:]
    assert first.endswith(b',"noted":{"disparity":0.25,"epochs":3}}')
    assert b"noted" not in second
    assert read_log(path) == (HEADER, [noted, RECORD])


@pytest.mark.parametrize(
    ("noted", "problem"),
    [
        (
            {f"n{number}": 1.0 for number in range(17)},
            "noted: its numbers must be a mapping of at most 16 names",
        ),
        ({"Disparity": 1.0}, "noted: 'Disparity' cannot name a number: at most 32 lower-case letters"),
        ({"disparity": True}, "noted: disparity must be a finite number, an int or float of Python"),
        ({"disparity": [1.0]}, "noted: disparity must be a finite number, an int or float of Python"),
    ],
)
def test_noted_numbers_out_of_bounds_are_neither_written_nor_read(
    tmp_path: Path, noted: dict[str, Any], problem: str
) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(path, HEADER) as log, pytest.raises(ValueError, match=problem):
        log.append(replace(RECORD, noted=noted))
    assert read_log(path) == (HEADER, [])
    written_to(tmp_path / "forged.jsonl", RECORD)
    head, line = (tmp_path / "forged.jsonl").read_text().splitlines()
    forged = f"{head}\n{json.dumps({**json.loads(line), 'noted': noted})}\n"
    (tmp_path / "forged.jsonl").write_text(forged)
    with pytest.raises(DataFileError, match=f"row 2: damaged: {problem}"):
        read_log(tmp_path / "forged.jsonl")


def test_the_names_of_noted_numbers_are_at_most_sixteen_in_a_log_also_after_resuming(tmp_path: Path) -> None:
    """They are counted apart from those of triggers."""
    path = tmp_path / "log.jsonl"
    named = replace(RECORD, trigger=NamedNumbers({"spread": 1.0}, 2, False))
    first, second, late = (
        replace(named, noted=dict.fromkeys(names, 1.0))
        for names in ([f"n{number}" for number in range(12)], ["n0", "m0", "m1", "m2", "m3"], ["late"])
    )
    with RunLog(path, HEADER) as log:
        log.append(first)
        log.append(second)
        state = log.state()
    problem = "noted: its numbers have had 17 names; at most 16 in a log"
    with RunLog(path, HEADER, state) as log, pytest.raises(ValueError, match=problem):
        log.append(late)
    assert read_log(path)[1] == [first, second]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64(1), np.ones(2), (1.0, 2.0)])
def test_named_numbers_are_those_of_python_and_finite(tmp_path: Path, value: object) -> None:
    with RunLog(tmp_path / "log.jsonl", HEADER) as log, pytest.raises(ValueError, match="finite number"):
        log.append(replace(RECORD, trigger=NamedNumbers({"n": value}, 2, False)))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b'{"numbers":{},"clusters":2}', "numbers, clusters and fired, and nothing else"),
        (b'{"numbers":{},"clusters":2,"fired":false,"delta":1.0}', "and nothing else"),
        (b'{"numbers":{},"clusters":0,"fired":false}', "clusters must be an int of at least 1"),
        (b'{"numbers":{},"clusters":true,"fired":false}', "clusters must be an int of at least 1"),
        (b'{"numbers":{},"clusters":2,"fired":0}', "and fired a bool"),
    ],
)
def test_named_numbers_stand_beside_clusters_and_fired(tmp_path: Path, value: bytes, problem: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES.replace(b'"trigger":null', b'"trigger":' + value))
    with pytest.raises(DataFileError, match=f"row 2: damaged: trigger.*{problem}"):
        read_log(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trigger", b'{"shift":1.0}'),
        ("trigger", b'{"largest_distance":1.0,"delta":null,"clusters":2,"fired":false}'),
        ("trigger", b'{"shift":1.0,"delta":1.0,"clusters":2,"fired":false}'),
        ("trigger", b'{"shift":1.0,"mean_distance":1.0,"threshold":1.0,"clusters":2,"fired":false,"more":1}'),
        ("trigger", b'{"shift":null,"mean_distance":1.0,"threshold":1.0,"clusters":2,"fired":false}'),
        ("trigger", b'{"shift":1.0,"mean_distance":1.0,"threshold":1.0,"clusters":2.5,"fired":false}'),
        ("trigger", b'{"shift":1.0,"mean_distance":1.0,"threshold":1.0,"clusters":2,"fired":0}'),
        ("trigger", b"[1.0,1.0,1.0,2,false]"),
        ("trigger", b"true"),
        ("silhouettes", b'{"2":"0.5"}'),
        ("silhouettes", b'{"two":0.5}'),
        ("silhouettes", b'{"02":0.5}'),
        ("silhouettes", b'{"":0.5}'),
        ("silhouettes", b'{"-2":0.5}'),
        ("silhouettes", b'{"1234567890":0.5}'),
        ("silhouettes", b'{"12345678901":0.5}'),
        ("silhouettes", '{"٢":0.5}'.encode()),
        ("silhouettes", b"[0.5]"),
    ],
)
def test_an_invalid_trigger_or_silhouette_names_the_line(tmp_path: Path, name: str, value: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES.replace(f'"{name}":null'.encode(), f'"{name}":'.encode() + value))
    with pytest.raises(DataFileError, match=rf"log.jsonl, row 2: damaged: {name} must be of kind"):
        read_log(path)


@pytest.mark.parametrize("count", [3, PLAIN + 1])
def test_the_ids_of_scored_clients_head_the_log_and_are_read_back(tmp_path: Path, count: int) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(path, {**HEADER, "scored_clients": np.arange(count)}):
        pass
    assert read_log(path)[0]["scored_clients"].tolist() == list(range(count))


def test_records_differ_when_an_entry_of_an_array_does() -> None:
    assert replace(RECORD, members=np.array([0, 2, 1])) != RECORD
    assert replace(RECORD, members=None) != RECORD
    assert replace(RECORD) == RECORD


def test_a_line_needs_every_field_without_a_default_and_no_other_can_be_in_it(tmp_path: Path) -> None:
    assert {item.name for item in fields(RoundRecord) if item.default is MISSING} >= {"round", "silhouettes"}
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES.replace(b',"silhouettes":null', b""))
    with pytest.raises(
        DataFileError, match="row 2: damaged, or of an earlier version of driftscale: lacks silhouettes"
    ):
        read_log(path)
    path.write_bytes(LINES.replace(b',"silhouettes":null', b',"silhouettes":null,"made_up_s":1.5'))
    with pytest.raises(
        DataFileError,
        match="row 2: damaged, or of a later version of driftscale: has the unknown field 'made_up_s'",
    ):
        read_log(path)


@pytest.mark.parametrize(
    "members",
    [
        b'{"dtype":"<i4"}',
        b'{"dtype":"<i4","zlib":"!"}',
        b'{"dtype":"<i4","zlib":"AAAA"}',
        b'{"dtype":"|O","zlib":""}',
        b'{"dtype":"<f4","zlib":""}',
        b'{"dtype":7,"zlib":""}',
        b'["a"]',
        b"[[1],[2,3]]",
        b"7",
    ],
)
def test_an_invalid_array_is_named(tmp_path: Path, members: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(LINES.replace(b'"members":[0,2,0]', b'"members":' + members))
    with pytest.raises(DataFileError, match="row 2: damaged: members is not an array"):
        read_log(tmp_path / "log.jsonl")


CONCEPTS = {"concepts": [[0, 1], [0, 1], [0, 1]]}


def header_with(**facts: object) -> bytes:
    return json.dumps({"kind": "run", **facts}).encode() + b"\n"


def drifts(**changes: object) -> dict[str, object]:
    """The drifts of two clients at data step 1, with some columns changed."""
    both = {"kinds": ["swap"], "step": [1, 1], "client": [0, 2], "kind": [0, 0], "before": [0, 0]}
    return {**both, "after": [1, 1], **changes}


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"num_clients": 0}, "num_clients must be a whole number from 1 to"),
        ({"num_clients": 2**40}, "num_clients must be a whole number from 1 to"),
        ({"num_parameters": 0}, "num_parameters must be a whole number from 1 to"),
        ({"num_parameters": 25.0}, "num_parameters must be a whole number from 1 to"),
        ({"concepts": [[0, 1]]}, "concepts must be a table"),
        ({"concepts": [[0, 1], [0]]}, "concepts must be a table"),
        ({"concepts": [[0, 1], [0, 1]], "num_clients": 3}, "concepts must have a column for each client"),
        ({"test_concepts": [[0, 1]]}, "test_concepts must be beside concepts"),
        ({**CONCEPTS, "test_concepts": 3}, "test_concepts must be a table of whole numbers"),
        ({**CONCEPTS, "test_concepts": [[0, 1]]}, "test_concepts must be a table of whole numbers"),
        ({**CONCEPTS, "test_concepts": [[0, 1], [0]]}, "test_concepts must be a table of whole numbers"),
        ({**CONCEPTS, "test_concepts": [[0, 1], [0, -1]]}, "test_concepts must be a table of whole numbers"),
        ({"onsets": [1]}, "onsets must be an object of lists of whole numbers: steps, counts"),
        ({"onsets": {"steps": [1]}}, "onsets must be an object of lists of whole numbers: steps, counts"),
        ({"onsets": {"steps": [1], "counts": [1.0]}}, "onsets must be an object of lists of whole numbers"),
        ({"onsets": {"steps": [1], "counts": [1], "clients": [1]}}, "onsets must be an object of lists of"),
        ({"onsets": {"steps": [1], "counts": [1], "clients": None}, **CONCEPTS}, "onsets must be an object"),
        ({"onsets": {"steps": [1], "counts": [1]}, **CONCEPTS}, "whole numbers: steps, counts, clients"),
        ({"onsets": {"steps": [], "counts": []}}, "onsets: steps must be ascending data steps from 1 to"),
        ({"onsets": {"steps": [0], "counts": [1]}}, "onsets: steps must be ascending data steps from 1 to"),
        (
            {"onsets": {"steps": [2, 2], "counts": [1, 1]}},
            "onsets: steps must be ascending data steps from 1",
        ),
        ({"onsets": {"steps": [2**40], "counts": [1]}}, "onsets: steps must be ascending data steps from 1"),
        ({"onsets": {"steps": [2], "counts": [1], "clients": [[0]]}, **CONCEPTS}, "data steps from 1 to 1"),
        ({"onsets": {"steps": [1], "counts": [1, 1]}}, "onsets: counts must have 1 to"),
        ({"onsets": {"steps": [1], "counts": [0]}}, "onsets: counts must have 1 to"),
        (
            {"onsets": {"steps": [1], "counts": [4]}, "num_clients": 3},
            "onsets: counts must have 1 to 3 clients",
        ),
        (
            {"onsets": {"steps": [1], "counts": [2], "clients": [[0]]}},
            "onsets: clients must have as many ids",
        ),
        (
            {"onsets": {"steps": [1], "counts": [1], "clients": [[3]]}, "num_clients": 3},
            "ids of the 3 clients",
        ),
        ({"onsets": {"steps": [1], "counts": [2], "clients": [[1, 1]]}}, "clients must be ascending ids"),
        ({"onsets": {"steps": [1], "counts": [1], "clients": [[-1]]}}, "clients must be ascending ids"),
        ({"client_distance": "label"}, "client_distance must be an object with a kind and a distance"),
        ({"objective": {"kind": "next_token"}}, "objective must be an object: kind and word"),
        ({"client_distance": {"kind": 3, "distance": "l1"}}, "client_distance must be an object with a kind"),
        ({"scored_clients": [0, 1], "num_clients": 1}, "it has more than 1 entries"),
        ({"scored_clients": [-1, 0], "num_clients": 3}, "scored_clients must be ascending ids of the 3"),
        ({"scored_clients": [0, 3], "num_clients": 3}, "scored_clients must be ascending ids of the 3"),
        ({"scored_clients": [1, 1], "num_clients": 3}, "scored_clients must be ascending ids of the 3"),
        ({"detectors": ["ddm"]}, "detectors must be an object: what each watches"),
        (
            {"detectors": {"ddm": "everything"}},
            "what each watches, by its name; choices: representation, arrivals, training",
        ),
        (
            {"drifts": {"step": [1]}},
            "drifts must be an object of after, before, client, kind, step, and as kinds",
        ),
        ({"drifts": drifts(kinds="swap")}, "as kinds at most 1000 names"),
        ({"drifts": drifts(step="1")}, "not the header of a run"),
        ({"drifts": drifts(step=[1])}, "drifts must have columns of one length"),
        ({"drifts": drifts(step=[0, 1])}, "drifts must be ascending by step, from 1 on, and then by the"),
        ({"drifts": drifts(step=[2, 1])}, "drifts must be ascending by step, from 1 on, and then by the"),
        ({"drifts": drifts(client=[0, 3]), "num_clients": 3}, "and then by the 3 clients"),
        ({"drifts": drifts(kind=[0, 1])}, "drifts: kind must be a row of the 1 kinds"),
    ],
)
def test_an_impossible_header_is_refused(tmp_path: Path, header: dict[str, object], problem: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(header_with(**header))
    with pytest.raises(DataFileError, match=f"row 1: damaged: .*{problem}"):
        read_log(tmp_path / "log.jsonl")


def test_a_header_of_more_ids_of_onsets_than_are_written_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.storage.log_lines.MOST_CONCEPTS", 3)
    onsets = {"steps": [1, 4], "counts": [2, 1], "clients": [[0, 5], [2]]}
    (tmp_path / "log.jsonl").write_bytes(header_with(onsets=onsets))
    assert read_log(tmp_path / "log.jsonl")[0]["onsets"] == onsets
    more = {"steps": [1, 4], "counts": [2, 2], "clients": [[0, 5], [2, 3]]}
    (tmp_path / "log.jsonl").write_bytes(header_with(onsets=more))
    with pytest.raises(DataFileError, match=r"row 1: damaged: .*as many ids as counts say, at most 3"):
        read_log(tmp_path / "log.jsonl")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"round":3', b'"round":"3"', "round must be of kind int"),
        (b'"round":3', b'"round":-3', "round = -3 must be at least 0"),
        (b'"round":3', b'"round":true', "round must be of kind int"),
        (b'"closed_s":20.0', b'"closed_s":1e999', "closed_s must be of kind float, and finite"),
        (
            b'"closed_s":20.0',
            b'"closed_s":1e308',
            r"closed_s must be of kind float, and finite, up to 1e\+100",
        ),
        (
            b'"models_sent":12.0',
            b'"models_sent":-2e100',
            "models_sent must be of kind float, and finite, up to",
        ),
        (b'"closed_s":20.0', b'"closed_s":NaN', "closed_s must be of kind float, and finite"),
        (b'"closed_s":20.0', b'"closed_s":-1.0', "closed_s must be at least 0, and in this order"),
        (b'"opened_s":10.5', b'"opened_s":-1.0', "closed_s must be at least 0, and in this order"),
        (b'"opened_s":', b'"opened_s":1000', "closed_s must be at least 0, and in this order"),
        (b'"accuracy":null', b'"accuracy":1.5', "accuracy = 1.5 must be from 0 to 1"),
        (b'"accuracy":null', b'"accuracy":-0.5', "accuracy = -0.5 must be from 0 to 1"),
        (b'"kept":[1,7]', b'"kept":[1,7.5]', r"kept must be of kind list\[int\]"),
        (
            b'"kept":[1,7]',
            b'"kept":[9223372036854775808]',
            r"kept must be of kind list\[int\], of at most 64 bits",
        ),
        (b'"reclustered":false', b'"reclustered":0', "reclustered must be of kind bool"),
        (b'"train_loss":0.1', b'"train_loss":"0.1"', "train_loss must be of kind float"),
        (b'"step":1', b'"step":2', "step = 2: there are 2 data steps"),
        (
            b'"trigger":null',
            b'"holding":3,"trigger":null',
            "holding = 3 must be at least 1, and below the num",
        ),
        (b'"trigger":null', b'"holding":0,"trigger":null', "holding = 0 must be at least 1"),
        (b'"trigger":null', b'"holding":1.5,"trigger":null', r"holding must be of kind int \| None"),
        (b'"members":[0,2,0]', b'"members":[0,2]', "members has 2 entries, for 3 clients"),
        (b'"members":[0,2,0]', b'"members":[0,2,0,1]', "members is not an array .it has more than 3 entries"),
    ],
)
def test_an_impossible_record_is_refused(tmp_path: Path, old: bytes, new: bytes, problem: str) -> None:
    header = header_with(num_clients=3, concepts=[[0, 0, 0], [0, 0, 1], [0, 1, 1]])
    record = LINES.split(b"\n")[1] + b"\n"
    (tmp_path / "log.jsonl").write_bytes(header + record)
    assert read_log(tmp_path / "log.jsonl")[1] == [RECORD]
    assert old in record
    (tmp_path / "log.jsonl").write_bytes(header + record.replace(old, new))
    with pytest.raises(DataFileError, match=f"row 2: .*{problem}"):
        read_log(tmp_path / "log.jsonl")


def test_a_mean_of_ones_may_exceed_one_by_rounding(tmp_path: Path) -> None:
    rounded = replace(RECORD, accuracy=1 + 5e-10)
    assert read_log(written_to(tmp_path / "log.jsonl", rounded))[1] == [rounded]
    path = written_to(tmp_path / "more.jsonl", replace(RECORD, accuracy=1 + 5e-9))
    with pytest.raises(DataFileError, match=r"accuracy = 1\.000000005 must be from 0 to 1"):
        read_log(path)


def test_members_stay_as_many_as_they_were(tmp_path: Path) -> None:
    fewer = replace(RECORD, round=4, members=np.array([0, 2]), serving=None)
    with pytest.raises(DataFileError, match="row 3: damaged: members has 2 entries, and had 3 before"):
        read_log(written_to(tmp_path / "log.jsonl", RECORD, fewer))


def test_abandoned_visits_are_those_neither_completed_nor_dropped() -> None:
    assert RECORD.abandoned == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (LINES[:-40], r"log.jsonl, row 2: damaged"),  # a line cut short
        (LINES + b"\n", r"log.jsonl, row 3: damaged"),
        (LINES + b"7\n", r"log.jsonl, row 3: damaged: .* \(Input should be an object\)"),
        (
            LINES + b'{"kind":"round","round":4}\n',
            r"log.jsonl, row 3: damaged, or of an earlier version of driftscale: lacks step",
        ),
        (
            LINES.replace(b'"changed":6', b'"altered":6'),
            r"log.jsonl, row 2: damaged, or of an earlier version of driftscale: lacks changed",
        ),
        (LINES + LINES, r"log.jsonl, row 3: damaged: its kind is not 'round'"),  # a second header
        (LINES + b"\xff\xfe\n", r"log.jsonl, row 3: damaged: not a line of a run log .Invalid JSON"),
        (b"", r"log.jsonl: a run log starts with a line of kind 'run'"),
        (LINES.split(b"\n")[1] + b"\n", r"log.jsonl: a run log starts with a line of kind 'run'"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes, message: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(damage)
    with pytest.raises(DataFileError, match=message):
        read_log(tmp_path / "log.jsonl")


def test_a_missing_log_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot be read as a run log"):
        read_log(tmp_path / "log.jsonl")


@pytest.mark.parametrize("num_bytes", [0, -1, 40, 41.0, float("nan"), True, "41", None])
def test_a_state_shorter_than_the_header_is_refused_and_leaves_the_file(
    num_bytes: object, tmp_path: Path
) -> None:
    path = written_to(tmp_path / "log.jsonl", RECORD)
    forged = {"bytes": num_bytes, "sha256": hashlib.sha256().hexdigest(), "members": None}
    with pytest.raises(ValueError, match=r"its log has .* bytes, fewer than the 41 of a header"):
        RunLog(path, HEADER, forged)
    assert path.read_bytes() == LINES


def test_a_header_longer_than_what_is_read_at_once_is_a_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.storage.appended_file.READ_AT_ONCE", 10)
    path = tmp_path / "log.jsonl"
    with RunLog(path, HEADER) as log:
        log.append(RECORD)
        state = log.state()
    with RunLog(path, HEADER, state):
        assert path.read_bytes() == LINES


def test_a_log_is_not_opened_through_a_link(tmp_path: Path) -> None:
    real = written_to(tmp_path / "real.jsonl", RECORD)
    state = {"bytes": len(LINES), "sha256": hashlib.sha256(LINES).hexdigest(), "members": None}
    link = tmp_path / "log.jsonl"
    link.symlink_to(real)
    with pytest.raises(ForeignFileError, match="is a link to"):
        RunLog(link, HEADER, state)
    with pytest.raises(FileExistsError):
        RunLog(link, HEADER)
    assert real.read_bytes() == LINES


def test_an_object_by_number_may_have_as_many_keys_as_there_are_concepts(tmp_path: Path) -> None:
    many = replace(RECORD, accuracy_by_concept={number: [0.5, 0.25] for number in range(2 * MOST_KEYS)})
    assert read_log(written_to(tmp_path / "log.jsonl", many))[1] == [many]


def test_an_object_of_very_many_wrong_entries_is_one_error(tmp_path: Path) -> None:
    """Each would be an error of its own, as large as a kilobyte."""
    many = json.dumps({str(number): "x" for number in range(MOST_KEYS + 1)}).encode()
    path = tmp_path / "log.jsonl"
    for name in ("silhouettes", "trigger"):  # by number, and of fields
        path.write_bytes(LINES.replace(f'"{name}":null'.encode(), f'"{name}":'.encode() + many))
        with pytest.raises(DataFileError, match=f"row 2: damaged: {name} must be of kind") as refused:
            read_log(path)
        cause = refused.value.__cause__.__cause__  # type: ignore[union-attr]
        assert isinstance(cause, ValidationError)
        assert cause.error_count() == 1
