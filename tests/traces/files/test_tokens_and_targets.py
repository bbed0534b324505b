"""Samples that are tokens, and targets beside labels: read, refused, checked, and in a digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import DataFileError
from emulator.ports import Tokens
from emulator.seeding import RandomStreams
from tests.traces.files.written import ROWS, write_trace
from traces.files import FACTS, FEATURES, TARGETS, TraceFacts, file_facts, open_folder, write_facts
from traces.files.checking import check_folder
from traces.files.facts import TokenFacts
from traces.sources.base import TraceContext
from traces.sources.file import File, FileSettings
from traces.trace import Trace

IDS = np.arange(18, dtype=np.float32).reshape(6, 3)
TEXTS = {"tokens": {"vocabulary": 18, "padding": 0}, "objective": {"kind": "next_token"}}
NUMBERS = np.arange(12, dtype=np.float32).reshape(6, 2) / 4


def of_tokens(folder: Path, features: np.ndarray = IDS, **facts: Any) -> Path:
    return write_trace(folder, features=features, facts={**TEXTS, **facts})


def with_targets(folder: Path, targets: np.ndarray = NUMBERS) -> Path:
    write_trace(folder)
    np.save(folder / TARGETS, targets)
    return folder


def played(folder: Path) -> Trace:
    settings = FileSettings(folder=str(folder), rounds_per_step=1)
    return File(settings).build(TraceContext(2, RandomStreams(0), Path))


def violations(folder: Path) -> list[str]:
    return [str(each).removeprefix(f"{folder}/") for each in check_folder(folder).violations]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_ids_are_what_the_file_has_whatever_its_type(tmp_path: Path, dtype: Any) -> None:
    folder = of_tokens(tmp_path / "t", IDS.astype(dtype))
    trace = played(folder)
    assert violations(folder) == []
    assert (trace.tokens, trace.objective) == (Tokens(18, 0), {"kind": "next_token"})
    images = trace.table.take("image", np.arange(len(trace)))
    assert trace.features(np.arange(len(trace))).tolist() == IDS[images].tolist()


@pytest.mark.parametrize("bad", [18.0, -1.0, 2.5, np.nan])
def test_what_is_no_id_is_refused_as_it_is_read_and_found_by_the_check(tmp_path: Path, bad: float) -> None:
    ids = IDS.copy()
    ids[4, 1] = bad
    folder = of_tokens(tmp_path / "t", ids)
    line = f"sample 4: has 1 value(s) that are no ids of 18 tokens, whole numbers from 0 to 17, such as {bad}"
    assert violations(folder) == [f"{FEATURES}: {line}"]
    features = open_folder(folder).features
    assert features.features(np.array([3, 5])).tolist() == IDS[[3, 5]].tolist()
    with pytest.raises(DataFileError) as error:
        features.features(np.array([3, 4]))
    assert error.value.problem == line


def test_bytes_are_checked_against_the_vocabulary_too(tmp_path: Path) -> None:
    folder = of_tokens(tmp_path / "t", np.full((6, 2), 80, np.uint8))
    assert violations(folder)[0].startswith(
        f"{FEATURES}: sample 0: has 2 value(s) that are no ids of 18 tokens"
    )


def test_tokens_are_a_sequence(tmp_path: Path) -> None:
    folder = of_tokens(tmp_path / "t", np.zeros((6, 2, 3), np.uint8))
    line = f"{FACTS}: tokens: samples of shape (2, 3) are no texts; features.npy must be (samples, tokens)"
    assert violations(folder) == [line]
    with pytest.raises(DataFileError, match="are no texts"):
        open_folder(folder)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_targets_are_in_the_order_of_samples(tmp_path: Path, dtype: Any) -> None:
    targets = np.floor(NUMBERS).astype(dtype)
    folder = with_targets(tmp_path / "t", targets)
    trace = played(folder)
    rows = np.arange(len(trace))
    assert violations(folder) == []
    assert trace.num_targets == 2
    assert trace.targets(rows).dtype == np.float32
    assert trace.targets(rows).tolist() == targets[trace.table.take("image", rows)].tolist()


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        (np.zeros((5, 2), np.float32), "has the shape (5, 2); it must be (6, K), as features.npy has"),
        (np.zeros((6, 1, 1), np.float32), "has the shape (6, 1, 1); it must be (6, K)"),
        (np.zeros((6, 2)), "holds float64; targets are uint8 or float32"),
        (np.where(NUMBERS == 1.0, np.nan, NUMBERS), "sample 2: has 1 value(s) that are not finite"),
        (np.where(NUMBERS == 2.75, np.inf, NUMBERS), "sample 5: has 1 value(s) that are not finite"),
    ],
)  # fmt: skip
def test_targets_that_break_a_rule_are_refused_and_found(tmp_path: Path, targets: Any, line: str) -> None:
    folder = with_targets(tmp_path / "t", targets)
    with pytest.raises(DataFileError) as error:
        open_folder(folder)
    assert error.value.problem.startswith(line)
    assert [found.startswith(f"{TARGETS}: {line}") for found in violations(folder)] == [True]


def test_targets_that_are_listed_are_compared_with_their_digest(tmp_path: Path) -> None:
    folder = with_targets(tmp_path / "t")
    listed = file_facts(folder / TARGETS)
    write_facts(folder, TraceFacts(version=1, files={TARGETS: listed}))
    assert open_folder(folder).digests[TARGETS] == listed.sha256
    np.save(folder / TARGETS, NUMBERS + 1)
    assert "changed since it was built" in violations(folder)[0]
    (folder / TARGETS).unlink()
    with pytest.raises(DataFileError, match=r"has no targets\.npy; a trace folder has .* and all files that"):
        open_folder(folder)


def test_tokens_targets_and_the_objective_are_in_the_digest_of_a_trace(tmp_path: Path) -> None:
    ids = IDS.astype(np.uint8)
    folders = [
        write_trace(tmp_path / "plain", features=ids),
        with_targets(tmp_path / "targets"),
        with_targets(tmp_path / "others", NUMBERS + 1),
        of_tokens(tmp_path / "tokens", ids),
        of_tokens(tmp_path / "larger", ids, tokens={"vocabulary": 19}),
        of_tokens(tmp_path / "labels", ids, objective={"kind": "labels"}),
    ]
    assert len({played(folder).digest() for folder in folders}) == len(folders)


def test_the_facts_are_written_as_they_are_read(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t", ROWS, IDS)
    facts = TraceFacts(version=1, tokens=TokenFacts(vocabulary=18), objective={"kind": "next_token"})
    write_facts(folder, facts)
    assert open_folder(folder).facts == facts
