"""Reading a log: what is measured, on a small one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.files.read_log import LogSizes, made_up_rounds, read_log_figures
from emulator.storage.runlog import RunLog, read_log

TINY = LogSizes(rounds=20, clients=30, participants=8)


def test_reading_is_measured_against_parsing() -> None:
    (figure,) = read_log_figures(TINY, 2, lambda text: None)
    assert figure.name == "read-log"
    assert figure.ratio is not None
    assert figure.ratio > 0


def test_the_rounds_that_are_read_are_those_that_were_written(tmp_path: Path) -> None:
    rounds = list(made_up_rounds(TINY))
    with RunLog(tmp_path / "log.jsonl", {"num_clients": TINY.clients}) as log:
        for record in rounds:
            log.append(record)
    assert read_log(tmp_path / "log.jsonl")[1] == rounds
    assert {type(record.trigger).__name__ for record in rounds} == {"Trigger", "NamedNumbers", "NoneType"}
