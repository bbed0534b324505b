"""Damaged and hostile files are accepted or raise an EmulatorError: a few new ones, and all of the corpus.

The corpus holds inputs that once broke a reader. The long run is `fuzz_readers.py` beside this file, which
starts a process for each reader.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from emulator.errors import EmulatorError
from tests.reliability import fuzz_readers
from tests.reliability.mutations import make_input
from tests.reliability.readers import READERS

INPUTS = 100  # of each reader
MOST_S = 60.0
CORPUS = sorted(file for file in Path(__file__).with_name("corpus").glob("*/*") if file.is_file())
NUMBERS = range(6)  # of an input: some readers alternate between modes by it


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """End the whole process with a traceback if a test takes minutes."""
    faulthandler.dump_traceback_later(2 * MOST_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("name", READERS)
def test_a_valid_file_is_read(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    reader.read(reader.prepare(tmp_path), reader.seeds[0], 1)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    surroundings = reader.prepare(tmp_path)
    refused = 0
    for number in range(1, INPUTS + 1):
        try:
            reader.read(surroundings, make_input(reader, f"7/{name}/{number}"), number)
        except EmulatorError as error:
            refused += bool(str(error))
    assert refused > INPUTS / 4  # else most inputs would not be damaged


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_file_of_the_corpus_is_read_or_refused(tmp_path: Path, file: Path) -> None:
    reader = READERS[file.parent.name]
    surroundings = reader.prepare(tmp_path)
    for number in NUMBERS:
        with suppress(EmulatorError):
            reader.read(surroundings, file.read_bytes(), number)


def test_every_folder_of_the_corpus_is_named_after_a_reader() -> None:
    assert CORPUS
    assert {file.parent.name for file in CORPUS} <= set(READERS)


def test_an_input_is_made_of_its_key_alone() -> None:
    for name, reader in READERS.items():
        assert [make_input(reader, f"0/{name}/{number}") for number in range(20)] == [
            make_input(reader, f"0/{name}/{number}") for number in range(20)
        ]


def test_the_long_run_counts_what_it_does_and_saves_nothing_where_it_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--inputs", "40", "--reader", "idx", "--save", str(tmp_path / "found")]
    monkeypatch.setattr(sys, "argv", ["fuzz_readers.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        fuzz_readers.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 0, printed
    assert "40 inputs, 0 findings" in printed
    [_, line, _] = printed.splitlines()
    reader, inputs, accepted, refused, *_ = line.split()
    assert (reader, int(inputs), int(accepted) + int(refused)) == ("idx", 40, 40)
    assert not (tmp_path / "found").exists()
