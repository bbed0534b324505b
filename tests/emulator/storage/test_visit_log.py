"""The log of visits and the tables that a run records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.messages import Outcome, VisitRows
from emulator.numbers import DEVICE_BOUNDS
from emulator.storage import visit_log
from emulator.storage.recorded_tables import (
    CLIENTS_UNNAMED,
    VISITS,
    VISITS_OF_STEPS,
    read_clients,
    read_visits,
    write_clients,
)
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.visit_log import VisitLog, write_visits


def rows(round_: int, first_visit: int, outcomes: list[Outcome]) -> VisitRows:
    """Visits of a round; the first trains models 7 and 8, every other one trains model 7."""
    count = len(outcomes)
    seconds = np.arange(count, dtype=np.float64)
    return VisitRows(
        round=round_,
        visit=first_visit + np.arange(count),
        client=np.arange(count)[::-1].copy(),
        lane=np.zeros(count, dtype=np.int64),
        num_models=np.array([2] + [1] * (count - 1)),
        models=np.array([7, 8] + [7] * (count - 1)),
        dispatched_s=seconds,
        requests_s=seconds,
        download_s=seconds,
        compute_s=seconds,
        upload_s=seconds,
        end_s=5 * seconds,
        outcome=np.array([int(outcome) for outcome in outcomes]),
        crashed=np.zeros(count, dtype=bool),
        download_bytes=seconds,
        upload_bytes=seconds,
        payload_bytes=2 * seconds,
    )


ROUNDS = [
    rows(0, 0, [Outcome.COMPLETED, Outcome.DROPPED]),
    rows(1, 2, [Outcome.ABANDONED, Outcome.COMPLETED, Outcome.COMPLETED]),
]


STEPS = [
    replace(
        visits,
        visit=visits.visit[::-1],
        dispatch=np.arange(len(visits.visit)),
        staleness=np.arange(len(visits.visit)) + number,
    )
    for number, visits in enumerate(ROUNDS)
]


def written(folder: Path, devices: list[int] | None = None, rounds: list[VisitRows] = ROUNDS) -> Path:
    folder.mkdir(exist_ok=True)
    with VisitLog(folder / "visits.arrow") as log:
        for visits in rounds:
            log.append(visits)
    table = None if devices is None else np.array(devices)
    write_visits(folder / "visits.arrow", folder / "visits.parquet", table)
    return folder / "visits.parquet"


def test_the_table_has_the_visits_of_all_rounds_in_order(tmp_path: Path) -> None:
    table = read_visits(written(tmp_path, devices=[40, 41, 42]))
    assert table.schema.equals(VISITS)
    assert table["round"].to_pylist() == [0, 0, 1, 1, 1]
    assert table["visit"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["client"].to_pylist() == [1, 0, 2, 1, 0]
    assert table["device"].to_pylist() == [41, 40, 42, 41, 40]
    assert table["models"].to_pylist() == [[7, 8], [7], [7, 8], [7], [7]]
    assert table["outcome"].to_pylist() == ["completed", "dropped", "abandoned", "completed", "completed"]


def test_without_a_table_of_devices_their_rows_are_missing(tmp_path: Path) -> None:
    assert read_visits(written(tmp_path))["device"].null_count == 5


def test_visits_of_steps_have_a_dispatch_and_a_staleness_in_the_order_of_the_steps(tmp_path: Path) -> None:
    table = read_visits(written(tmp_path, rounds=STEPS))
    assert table.schema.equals(VISITS_OF_STEPS)
    assert table["visit"].to_pylist() == [1, 0, 4, 3, 2]
    assert table["dispatch"].to_pylist() == [0, 1, 0, 1, 2]
    assert table["staleness"].to_pylist() == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("name", ["dispatch", "staleness"])
@pytest.mark.parametrize("first", [ROUNDS[0], STEPS[0]])
@pytest.mark.parametrize("rows_of_batch", [1, 100])
def test_all_visits_of_a_run_have_both_or_none_has(
    name: str, first: VisitRows, rows_of_batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit_log, "ROWS_OF_BATCH", rows_of_batch)
    path = tmp_path / "visits.arrow"
    one_missing, other = replace(STEPS[1], **{name: None}), (STEPS if first is ROUNDS[0] else ROUNDS)[1]
    with VisitLog(path) as log:
        log.append(first)
        state = log.state()
        for visits in (one_missing, other):
            with pytest.raises(ValueError, match="have a dispatch and a staleness, or none has"):
                log.append(visits)
    content = path.read_bytes()
    with VisitLog(path, state) as log, pytest.raises(ValueError, match="a staleness, or none has"):
        log.append(other)
    assert path.read_bytes() == content


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 5])
def test_groups_of_rows_change_nothing(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_visits(written(tmp_path / "whole"))
    monkeypatch.setattr(visit_log, "ROWS_AT_ONCE", at_once)
    path = written(tmp_path / "parts")
    assert read_visits(path).equals(whole)
    assert pq.ParquetFile(path).num_row_groups == -(-5 // at_once)


def test_batches_are_combined_while_they_wait_for_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [rows(0, visit, [Outcome.COMPLETED]) for visit in range(10)]
    whole = read_visits(written(tmp_path / "whole", rounds=steps))
    monkeypatch.setattr(visit_log, "BATCHES_AT_ONCE", 3)
    assert read_visits(written(tmp_path / "parts", rounds=steps)).equals(whole)


def test_a_run_without_a_visit_has_an_empty_table(tmp_path: Path) -> None:
    with VisitLog(tmp_path / "visits.arrow"):
        pass
    write_visits(tmp_path / "visits.arrow", tmp_path / "visits.parquet", None)
    assert len(read_visits(tmp_path / "visits.parquet")) == 0


@pytest.mark.parametrize("rows_of_batch", [1, 3, 4, 5, 100])
@pytest.mark.parametrize("rounds", [ROUNDS, STEPS])
def test_a_resumed_log_comes_to_the_same_bytes_wherever_it_was_stopped(
    rounds: list[VisitRows], rows_of_batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit_log, "ROWS_OF_BATCH", rows_of_batch)
    path = tmp_path / "visits.arrow"
    once = (written(tmp_path / "once", rounds=rounds).parent / "visits.arrow").read_bytes()
    with VisitLog(path) as log:
        before = log.state()
        log.append(rounds[0])
        state = from_bytes(to_bytes(log.state()))
        log.append(rounds[0])
    with VisitLog(path, state) as log:
        log.append(rounds[1])
    assert path.read_bytes() == once
    with VisitLog(path, before) as log:
        for visits in rounds:
            log.append(visits)
    assert path.read_bytes() == once


def test_visits_of_many_steps_are_gathered_into_a_batch(tmp_path: Path) -> None:
    steps = [rows(0, visit, [Outcome.COMPLETED]) for visit in range(2 * visit_log.ROWS_OF_BATCH + 1)]
    written(tmp_path, rounds=steps)
    with pa.ipc.open_stream(tmp_path / "visits.arrow") as stream:
        sizes = [len(batch) for batch in stream]
    assert sizes == [visit_log.ROWS_OF_BATCH, visit_log.ROWS_OF_BATCH, 1]


@pytest.mark.parametrize(
    "damage", [{"num_models": [3, 1]}, {"num_models": [-1, 4]}, {"client": ["a", "b"]}, {"end_s": [1.0]}]
)
def test_waiting_visits_that_no_log_had_are_refused(damage: dict[str, list[object]], tmp_path: Path) -> None:
    path = tmp_path / "visits.arrow"
    with VisitLog(path) as log:
        log.append(ROUNDS[0])
        state = log.state()
    changes = {name: np.array(values) for name, values in damage.items()}
    with pytest.raises(ValueError, match=r"invalid literal|length|offset|Length"):
        VisitLog(path, {**state, "waiting": [{**state["waiting"][0], **changes}]})


def test_a_damaged_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit_log, "ROWS_OF_BATCH", 1)
    path = tmp_path / "visits.arrow"
    with VisitLog(path) as log:
        log.append(ROUNDS[0])
        state = log.state()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="damaged: its first"):
        VisitLog(path, state)


def changed(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(
        index, table.schema.field(index), pa.array(values, table.schema.field(index).type)
    )


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("round", [0, 0, 1, None, 1], "column 'round' has empty cells"),
        (
            "end_s",
            [0.0, 1.0, 2.0, float("nan"), 4.0],
            r"row 4: damaged: end_s = nan must be from 0 to 1e\+100",
        ),
        (
            "compute_s",
            [1.0, 1e308, 1.0, 1e308, 1.0],
            r"row 2: damaged: compute_s = 1e\+308 must be from 0 to",
        ),
        (
            "upload_bytes",
            [1.0, 1.0, 1.0, 1.0, -1.0],
            r"row 5: damaged: upload_bytes = -1 must be from 0 to 1e",
        ),
        ("outcome", ["completed", "lost", "dropped", "dropped", "dropped"], "an outcome must be one of"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused(
    name: str, values: list[object], problem: str, tmp_path: Path
) -> None:
    path = written(tmp_path)
    pq.write_table(changed(read_visits(path), name, values), path)
    with pytest.raises(DataFileError, match=problem):
        read_visits(path)


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    pq.write_table(read_visits(path).drop_columns(["lane"]), path)
    with pytest.raises(DataFileError, match="must have the columns round, visit, client"):
        read_visits(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table at all" * 9])
def test_a_file_that_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_bytes(content)
    with pytest.raises(DataFileError, match=r"visits\.parquet"):
        read_visits(tmp_path / "visits.parquet")


def test_every_cut_of_a_table_is_refused_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(DataFileError):
            read_visits(path)


def test_clients_are_written_and_read_back(tmp_path: Path) -> None:
    names = CLIENTS_UNNAMED.names[2:]
    columns = {name: np.array([1.0, 2.0]) + index for index, name in enumerate(names)}
    path = tmp_path / "clients.parquet"
    write_clients(path, columns, np.array([5, 3]), [*"uvwxyz"], ["é", "b"])
    table = read_clients(path)
    assert table["client"].to_pylist() == [0, 1]
    assert table["device"].to_pylist() == [5, 3]
    assert table["device_id"].to_pylist() == ["z", "x"]
    assert table["client_name"].to_pylist() == ["é", "b"]
    assert table["latency_s"].to_pylist() == columns["latency_s"].tolist()
    pq.write_table(changed(table, "client", [1, 0]), path)
    with pytest.raises(DataFileError, match="its clients are not 0, 1, 2"):
        read_clients(path)


@pytest.mark.parametrize(("names", "texts"), [(None, ["0", "1"]), (np.array([7, 3]), ["7", "3"])])
def test_clients_without_texts_for_names_have_their_numbers(
    names: Ints | None, texts: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "clients.parquet"
    write_clients(path, {column: np.ones(2) for column in DEVICE_BOUNDS}, None, None, names)
    table = read_clients(path)
    assert table["client_name"].to_pylist() == texts
    assert table["device_id"].to_pylist() == [None, None]


def test_a_name_that_nobody_gave_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clients.parquet"
    columns = {column: np.ones(2) for column in DEVICE_BOUNDS}
    write_clients(path, columns, np.array([0, 0]), ["x" * 2**16], ["a", "b"])
    assert len(read_clients(path)) == 2
    write_clients(path, columns, np.array([0, 0]), ["x" * (2**16 + 1)], ["a", "b"])
    with pytest.raises(DataFileError, match="damaged: device_id has a text of over 65,536 bytes"):
        read_clients(path)


def test_a_table_of_clients_from_before_they_had_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "clients.parquet"
    write_clients(path, {column: np.ones(2) for column in DEVICE_BOUNDS}, None, None, None)
    pq.write_table(pq.read_table(path).select(CLIENTS_UNNAMED.names), path)
    assert read_clients(path).schema == CLIENTS_UNNAMED
    pq.write_table(pq.read_table(path).select(CLIENTS_UNNAMED.names[:-1]), path)
    with pytest.raises(
        DataFileError, match=r"with or without client_name and device_id and device_factor, of"
    ):
        read_clients(path)


@pytest.mark.parametrize(
    ("name", "value", "least", "most"),
    [
        ("seconds_per_sample", 1e308, "1e-15", "1e\\+09"),
        ("seconds_per_sample", 0.0, "1e-15", "1e\\+09"),
        ("download_bytes_per_s", 5e-324, "1e-06", "1e\\+18"),
        ("upload_bytes_per_s", -1.0, "1e-06", "1e\\+18"),
        ("latency_s", float("inf"), "0", "1e\\+09"),
    ],
)
def test_a_device_that_no_fleet_may_have_is_refused_with_its_row(
    name: str, value: float, least: str, most: str, tmp_path: Path
) -> None:
    path = tmp_path / "clients.parquet"
    write_clients(path, {column: np.ones(3) for column in DEVICE_BOUNDS}, None, None, None)
    pq.write_table(changed(read_clients(path), name, [1.0, value, 1.0]), path)
    refusal = rf"clients.parquet, row 2: damaged: {name} = \S+ must be from {least} to {most}$"
    with pytest.raises(DataFileError, match=refusal):
        read_clients(path)
