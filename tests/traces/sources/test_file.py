from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError, DataFileError, InputError
from emulator.ports import Split
from tests.traces.files.written import with_cell, write_trace
from tests.traces.tiny import context, write_trace_folder
from traces.sources.file import File, FileSettings
from traces.trace import Trace, TraceStream

Row = tuple[int, str, int, int]
"""(client, split, data step, row of features.npy)."""

SETTINGS = {"rounds_per_step": 1, "retain_rounds": 1}


def build(folder: Path, *, rounds: int = 10, seed: int = 0, **settings: Any) -> Trace:
    source = File(FileSettings.model_validate({"folder": str(folder), **SETTINGS, **settings}))
    return source.build(context(rounds, seed))


def rows_of(trace: Trace) -> list[Row]:
    """The rows of a trace, in the order of its table."""
    columns = trace.columns()
    return [
        (client, ("train", "test")[split], arrival, image)
        for client, split, arrival, image in zip(
            columns.client.tolist(),
            columns.split.tolist(),
            columns.arrival.tolist(),
            columns.image.tolist(),
            strict=True,
        )
    ]


def steps_of(trace: Trace) -> dict[int, int]:
    """The data step of each row of features.npy that arrives."""
    return {image: arrival for _, _, arrival, image in rows_of(trace)}


def of_one_client(when: str, values: list[Any], **more: list[Any]) -> dict[str, Any]:
    """Rows of one client, one sample each, for training; then the same rows for tests."""
    size = len(values)
    rows = {"client": ["c"] * size, "label": [0] * size, "sample": list(range(size)), when: values, **more}
    twice = {name: [*column, *column] for name, column in rows.items()}
    return {**twice, "split": ["train"] * size + ["test"] * size}


def features(size: int) -> np.ndarray:
    return np.zeros((size, 1), np.uint8)


def one_client(folder: Path, when: str, values: list[Any], **more: Any) -> Path:
    return write_trace(folder, of_one_client(when, values, **more), features(len(values)))


def test_a_step_is_a_data_step_and_what_expired_before_the_start_is_left_out(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "step", [-3, -2, -1, 0, 1, 5, 9, 10])
    # Two steps are kept: at step 0 those of -1 and 0. Ten rounds have the steps 0 to 9.
    trace = build(folder, retain_rounds=2)
    assert steps_of(trace) == {2: -1, 3: 0, 4: 1, 5: 5, 6: 9}
    # Two rounds a step: steps 0 to 4 arrive in ten rounds, and 0 to 5 in eleven.
    assert steps_of(build(folder, rounds_per_step=2, retain_rounds=2)) == {3: 0, 4: 1}
    assert steps_of(build(folder, rounds_per_step=2, retain_rounds=3, rounds=11)) == {2: -1, 3: 0, 4: 1, 5: 5}


def test_several_steps_of_the_file_may_be_one_data_step(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "step", [-2, -1, 0, 1, 2, 3, 4])
    # Width 2: -2 and -1 are step -1, 0 and 1 are step 0, and so on.
    assert steps_of(build(folder, step_width=2, retain_rounds=2)) == {
        0: -1,
        1: -1,
        2: 0,
        3: 0,
        4: 1,
        5: 1,
        6: 2,
    }
    assert steps_of(build(folder, step_width=2, retain_rounds=1, since=1, until=4)) == {3: 0, 4: 1, 5: 1}


@pytest.mark.slow
def test_a_day_is_a_window_and_clients_start_with_those_they_retain(tmp_path: Path) -> None:
    hours = [datetime(2015, 1, 1, 6), datetime(2015, 1, 1, 23), datetime(2015, 1, 2, 5, 59)]
    times = [*hours, datetime(2015, 1, 2, 6), datetime(2015, 1, 4, 7)]
    folder = one_client(tmp_path / "t", "time", times)
    # Windows are counted from the first row, at 6 o'clock: 0, 0, 0, 1, 3. Two are owned from the start.
    assert steps_of(build(folder, retain_rounds=2)) == {0: -1, 1: -1, 2: -1, 3: 0, 4: 2}
    # From midnight on: windows 0, 0, 1, 1, 3.
    since = date(2015, 1, 1)
    assert steps_of(build(folder, retain_rounds=2, since=since)) == {0: -1, 1: -1, 2: 0, 3: 0, 4: 2}
    # From a day earlier on, the first window is empty.
    since = date(2014, 12, 31)
    assert steps_of(build(folder, retain_rounds=2, since=since)) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 3}
    until = date(2015, 1, 4)
    assert steps_of(build(folder, retain_rounds=1, until=until)) == {0: 0, 1: 0, 2: 0, 3: 1}
    assert steps_of(build(folder, step_width=0.5, retain_rounds=1)) == {0: 0, 1: 1, 2: 1, 3: 2, 4: 6}


@pytest.mark.parametrize(
    ("width", "windows"),
    [
        ("month", [0, 0, 1, 11, 12]),
        ("quarter", [0, 0, 0, 3, 4]),
        ("year", [0, 0, 0, 0, 1]),
        (31, [0, 0, 0, 11, 11]),
    ],
)
def test_windows_of_the_calendar_begin_on_its_days(tmp_path: Path, width: Any, windows: list[int]) -> None:
    days = [date(2015, 1, 15), date(2015, 1, 31), date(2015, 2, 1), date(2015, 12, 31), date(2016, 1, 1)]
    folder = one_client(tmp_path / "t", "time", days)
    trace = build(folder, step_width=width, rounds=20)
    assert steps_of(trace) == dict(enumerate(windows))


def test_ranks_are_cut_into_windows_of_each_client(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "order", [4, 3, 2, 1, 0, 5])
    assert steps_of(build(folder, step_width=2)) == {0: 2, 1: 1, 2: 1, 3: 0, 4: 0, 5: 2}
    assert steps_of(build(folder, step_width=2, since=1)) == {0: 1, 1: 1, 2: 0, 3: 0, 5: 2}
    assert steps_of(build(folder, step_width=2, since=1, until=4, retain_rounds=2)) == {1: 0, 2: -1, 3: -1}
    with pytest.raises(ConfigurationError, match=r"^trace.step_width: missing; the trace has a column order"):
        build(folder)


@pytest.mark.parametrize(
    ("when", "settings", "message"),
    [
        ("step", {"step_width": "month"}, "trace.step_width = 'month': the trace has a column step"),
        (
            "order",
            {"step_width": 1.5},
            "trace.step_width = 1.5: the trace has a column order, so it must be a",
        ),
        ("step", {"since": date(2015, 1, 1)}, "trace.since = 2015-01-01: the trace has a column step, so it"),
        ("time", {"until": 3}, "trace.until = 3: the trace has a column time, so it must be a date, as in"),
        ("step", {"test_share": 0.5}, "trace.test_share = 0.5: "),
    ],
)
def test_a_setting_that_does_not_fit_the_column_is_refused(
    tmp_path: Path, when: str, settings: dict[str, Any], message: str
) -> None:
    values: list[Any] = [date(2015, 1, 1), date(2015, 1, 2)] if when == "time" else [0, 1]
    with pytest.raises(ConfigurationError) as refused:
        build(one_client(tmp_path / "t", when, values), **settings)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"since": 20}, "no row is left between trace.since and trace.until"),
        ({"since": 3, "until": 3}, "no row is left between trace.since and trace.until"),
        ({"until": -4}, "no training sample that is left is ever held"),
        ({"since": 8, "rounds": 8}, "no row arrives before round.rounds = 8"),
    ],
)
def test_a_trace_of_which_nothing_is_left_is_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    folder = one_client(tmp_path / "t", "step", [-5, 0, 8])
    with pytest.raises(DataFileError) as refused:
        build(folder, **settings)
    assert str(refused.value) == f"{folder / 'arrivals.parquet'}: {message}"


def test_fewer_windows_than_clients_start_with_are_refused(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "order", [0, 1, 2, 3, 4])
    assert steps_of(build(folder, step_width=2, retain_rounds=3)) == {0: -2, 1: -2, 2: -1, 3: -1, 4: 0}
    with pytest.raises(DataFileError, match=r"has 3 windows, but clients start out with .* = 4 of them"):
        build(folder, step_width=2, retain_rounds=4)


def test_a_row_far_outside_since_and_until_needs_no_window(tmp_path: Path) -> None:
    times = [datetime(1, 1, 1), datetime(2015, 1, 1), datetime(2015, 1, 1, 0, 0, 2), datetime(9999, 1, 1)]
    folder = one_client(tmp_path / "t", "time", times)
    bounds = {"since": date(2015, 1, 1), "until": date(2016, 1, 1)}
    assert steps_of(build(folder, step_width=1e-5, **bounds)) == {1: 0, 2: 2}
    with pytest.raises(ConfigurationError, match=r"trace.step_width = 1e-05: the times span more than"):
        build(folder, step_width=1e-5)


def test_clients_are_numbered_in_the_order_of_their_names(tmp_path: Path) -> None:
    for names, order in ((["b", "a", "ä"], ["a", "b", "ä"]), ([10, 9, -1], [-1, 9, 10])):
        rows = {
            "client": [*names, names[0]],
            "label": [0] * 4,
            "sample": [0, 1, 2, 3],
            "step": [0] * 4,
            "split": [*["train"] * 3, "test"],
        }
        trace = build(write_trace(tmp_path / "t", rows, features(4)))
        samples = {name: sample for sample, name in enumerate(names)}
        trained = [image for _, split, _, image in rows_of(trace) if split == "train"]
        assert trained == [samples[name] for name in order]


def test_a_client_without_a_training_sample_that_is_left_is_no_client(tmp_path: Path) -> None:
    rows = {
        "client": ["a", "b", "b", "c", "c", "d"],
        "label": [0] * 6,
        "sample": [0, 1, 2, 3, 4, 5],
        "step": [-1, -1, 0, 0, 0, 40],
        "split": ["train", "train", "test", "train", "test", "train"],
    }
    folder = write_trace(tmp_path / "t", rows, features(6))
    # a and the training sample of b have expired at the start; d arrives after the run.
    trace = build(folder)
    assert trace.num_clients == 2
    assert rows_of(trace) == [(0, "train", 0, 3), (0, "test", 0, 4)]
    assert build(folder, retain_rounds=2).num_clients == 4


def test_unequal_arrivals_keep_their_sizes(tmp_path: Path) -> None:
    rows = {
        "client": ["a"] * 3 + ["b"] * 2,
        "label": [0, 1, 0, 1, 1],
        "sample": [3, 2, 1, 0, 4],
        "step": [0, 0, 1, 0, 0],
        "split": ["train"] * 4 + ["test"],
    }
    trace = build(write_trace(tmp_path / "t", rows, features(5)))
    everyone = np.arange(2)
    assert trace.held(everyone, "train", 0).counts().tolist() == [2, 1]
    assert trace.held(everyone, "train", 1).counts().tolist() == [1, 0]


def test_the_order_of_rows_does_not_matter_with_a_column_split(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = {
        "client": generator.integers(0, 5, 300),
        "label": generator.integers(0, 3, 300),
        "sample": np.arange(300),
        "step": generator.integers(0, 10, 300),
        "split": np.where(np.arange(300) % 5 == 0, "test", "train"),
    }
    order = np.lexsort((rows["step"], rows["split"] == "test", rows["client"]))
    in_order = {name: values[order] for name, values in rows.items()}
    kinds = (rows, in_order)
    both = [build(write_trace(tmp_path / str(n), kind, features(300))) for n, kind in enumerate(kinds)]
    assert rows_of(both[0]) == rows_of(both[1])
    assert both[0].labels(np.arange(300)).tolist() == both[1].labels(np.arange(300)).tolist()


def test_a_row_arrives_as_often_as_it_is_counted(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "step", [0, 0, 1, 0], count=[2, 0, 3, 1])
    of_split = [(0, 0), (0, 0), (0, 3), *[(1, 2)] * 3]
    assert [row[2:] for row in rows_of(build(folder))] == [*of_split, *of_split]


def test_counts_that_are_more_than_can_be_played_are_refused(tmp_path: Path) -> None:
    folder = one_client(tmp_path / "t", "step", [0, 0], count=[2**31 - 1, 2**31 - 1])
    with pytest.raises(DataFileError, match=r"has 8589934588 samples; at most \d+ are played"):
        build(folder)


def test_a_client_in_test_only_is_named_with_its_row(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t", with_cell("split", 1, "test") | {"client": ["x", *["ann"] * 5]})
    with pytest.raises(DataFileError) as refused:
        build(folder)
    message = "client 'x' has test samples and none for training"
    assert str(refused.value) == f"{folder / 'arrivals.parquet'}, row 1: {message}"
    rows = with_cell("split", 1, "test") | {"client": [5, 5, 5, 7, 7, 7], "split": ["test"] * 6}
    with pytest.raises(
        DataFileError, match=r"row 1: client 5 has test .* training; so have 1 other clients$"
    ):
        build(write_trace(folder, rows))


def drawn(folder: Path, size: int = 50) -> Path:
    """Two clients with two labels each, of `size` samples each, in the order of time; without a split."""
    rows = {
        "client": np.repeat([1, 2], 2 * size),
        "label": np.tile(np.repeat([0, 1], size), 2),
        "sample": np.arange(4 * size),
        "step": np.tile(np.arange(size), 4),
    }
    return write_trace(folder, rows, features(4 * size))


def held_out_of(trace: Trace) -> list[int]:
    return [image for _, split, _, image in rows_of(trace) if split == "test"]


@pytest.mark.slow
def test_a_drawn_split_has_its_share_of_each_client_and_label_and_is_seeded(tmp_path: Path) -> None:
    folder = drawn(tmp_path / "t")
    trace = build(folder, rounds=50)
    held_out = np.array(held_out_of(trace))
    assert np.bincount(held_out // 50).tolist() == [10] * 4  # 0.2 of 50
    # Systematic: one in every stretch of five.
    assert (np.bincount(held_out // 5) == 1).all()
    assert held_out_of(build(folder, rounds=50)) == held_out.tolist()
    assert held_out_of(build(folder, rounds=50, seed=1)) != held_out.tolist()
    assert len(held_out_of(build(folder, rounds=50, test_share=0.5))) == 100
    with pytest.raises(InputError, match="none of its 2 clients has a test sample at the start"):
        build(folder, test_share=0.0)


@pytest.mark.slow
def test_a_drawn_split_does_not_depend_on_the_number_of_rounds(tmp_path: Path) -> None:
    folder = drawn(tmp_path / "t")
    longer = rows_of(build(folder, rounds=50))
    assert rows_of(build(folder, rounds=7)) == [row for row in longer if row[2] < 7]
    # Also if a label is first seen after the shorter run.
    rows = {
        "client": [0] * 40,
        "label": [1] * 20 + [0] * 20,
        "sample": np.arange(40),
        "step": np.arange(40) - 4,
    }
    late = write_trace(tmp_path / "late", rows, features(40))
    longer = rows_of(build(late, rounds=36, retain_rounds=5))
    assert rows_of(build(late, rounds=10, retain_rounds=5)) == [row for row in longer if row[2] < 10]


@pytest.mark.slow
def test_a_digest_is_of_the_files_the_settings_and_the_seed_of_a_drawn_split(tmp_path: Path) -> None:
    folder, split = drawn(tmp_path / "t"), one_client(tmp_path / "split", "step", [0, 1])
    digest = build(folder).digest()
    assert build(folder).digest() == digest
    assert build(drawn(tmp_path / "copy")).digest() == digest
    assert build(folder, seed=1).digest() != digest
    assert build(folder, retain_rounds=2).digest() != digest
    assert build(drawn(tmp_path / "copy", size=49)).digest() != digest
    with_split = build(split).digest()
    assert build(split, seed=1).digest() == with_split
    assert build(one_client(split, "step", [0, 2])).digest() != with_split
    scaled = write_trace(split, of_one_client("step", [0, 1]), features(2), {"scale": 0.5})
    assert build(scaled).digest() != with_split
    renamed = write_trace(split, of_one_client("step", [0, 1]), features(2), {"origin": "elsewhere"})
    assert build(renamed).digest() == with_split


def test_flipped_labels_are_in_the_digest(tmp_path: Path) -> None:
    trace = build(one_client(tmp_path / "t", "step", [0, 1]))
    flipped = trace.with_flipped_labels(np.array([0]))
    assert flipped.digest() != trace.digest()
    assert trace.with_flipped_labels(np.array([0])).digest() == flipped.digest()


def test_concepts_are_those_of_the_newest_training_samples(tmp_path: Path) -> None:
    rows = {
        "client": ["a", "a", "a", "b", "b", "c", "d"],
        "label": [0] * 7,
        "sample": np.arange(7),
        "step": [-1, 0, 3, 2, 1, 4, 9],
        "split": ["train", "test", "train", "train", "test", "train", "train"],
        "concept": [4, 9, 5, 6, 8, 7, 3],
    }
    trace = build(write_trace(tmp_path / "t", rows, features(7)), retain_rounds=2, rounds=5)
    assert trace.concepts is not None
    # d arrives after the run.
    assert trace.concepts.tolist() == [[4, 6, 7, 0], [4, 6, 7, 0], [4, 6, 7, 0], *[[5, 6, 7, 0]] * 3]
    assert not trace.test_then_train


def test_concepts_last_as_long_as_the_run(tmp_path: Path) -> None:
    rows = of_one_client("step", [0, 1], concept=[2, 3])
    folder = write_trace(tmp_path / "t", rows, features(2))
    trace = build(folder, retain_rounds=9, rounds=7, rounds_per_step=2)
    # Seven rounds have the data steps 0 to 3, and nothing arrives after step 1.
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [[2], [3], [3], [3], [3]]
    stream = TraceStream(trace)
    stream.advance_to_round(6)
    assert stream.concepts is not None
    assert stream.concepts.tolist() == [3]


def test_tests_on_what_arrives_next_and_their_concepts_are_one_step_ahead(tmp_path: Path) -> None:
    rows = of_one_client("step", [-1, 0, 1, 2, 3, 4], concept=[1, 1, 2, 2, 3, 4])
    folder = write_trace(tmp_path / "t", rows, features(6))
    present = build(folder, retain_rounds=2, rounds=3)
    upcoming = build(folder, retain_rounds=2, rounds=3, test_on="next")
    client = np.array([0])

    def images(trace: Trace, split: Split, step: int) -> list[int]:
        return trace.table.take("image", trace.held(client, split, step).rows(0)).tolist()

    assert [images(upcoming, "test", step) for step in range(3)] == [[2], [3], [4]]
    for step in range(3):
        assert images(upcoming, "train", step) == images(present, "train", step) == [step, step + 1]
    assert upcoming.last_step == 3
    assert upcoming.concepts is not None
    assert upcoming.concepts.tolist() == [[1], [2], [2], [3]]
    assert upcoming.test_then_train
    assert len({trace.digest() for trace in (present, upcoming)}) == 2


def test_changes_know_the_clients_of_a_folder_by_name_and_compose_with_its_concepts(tmp_path: Path) -> None:
    days = np.repeat(np.arange(4), 2)
    columns = {
        "client": np.tile(["b", "a"], 4),
        "label": np.tile([0, 1], 4),
        "sample": np.arange(8),
        "step": days,
        "split": np.repeat("train", 8),
        "concept": days // 2,
    }
    tests = {name: values[:2] for name, values in columns.items()} | {"split": np.repeat("test", 2)}
    rows = {name: np.append(values, tests[name]) for name, values in columns.items()}
    folder = write_trace_folder(tmp_path / "named", rows)
    change = {"what": "reverse", "on": "held", "at_share": 0.25, "clients": {"names": ["b"]}}
    facts = {"rounds": 4, "rounds_per_step": 1, "retain_rounds": 4}
    trace = build(folder, **facts, changes=[change])
    # Client 0 is "a", whose concepts are those of the file; "b" has new ones with each of them.
    assert trace.concepts is not None
    assert trace.concepts.T.tolist() == [[0, 0, 1, 1, 1], [0, 2, 3, 3, 3]]
    held = trace.held(np.arange(2), "train", 2)
    assert [trace.labels(held.rows(client)).tolist() for client in (0, 1)] == [[1, 1, 1], [1, 1, 1]]
    assert trace.digest() != build(folder, **facts).digest()
    with pytest.raises(ConfigurationError, match=r"there is no client 'c'; there are 2: a, b"):
        build(folder, **facts, changes=[{**change, "clients": {"names": ["c"]}}])


def test_two_concepts_of_a_client_in_one_step_are_refused_with_the_row(tmp_path: Path) -> None:
    rows = of_one_client("step", [0, 1, 1], concept=[0, 1, 2])
    folder = write_trace(tmp_path / "t", rows, features(3))
    with pytest.raises(DataFileError) as refused:
        build(folder)
    assert str(refused.value) == (
        f"{folder / 'arrivals.parquet'}, row 3: concept: client 'c' has concepts 1 and 2 at data step 1; "
        f"training samples of one step have one concept"
    )
    tests = write_trace(folder, rows | {"split": ["train", "train", *["test"] * 4]}, features(3))
    assert build(tests).concepts is not None


def test_features_are_scaled_and_standardised_by_channel(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)
    facts = {"mean": [0.0, 0.5, 1.0], "deviation": [1.0, 0.5, 0.25]}
    trace = build(write_trace(tmp_path / "t", of_one_client("step", [0, 1]), images, facts))
    assert trace.sample_shape == (3, 2, 2)
    wanted = (images / 255 - np.reshape([0, 0.5, 1], (3, 1, 1))) / np.reshape([1, 0.5, 0.25], (3, 1, 1))
    assert trace.features(np.array([1, 0])) == pytest.approx(wanted[::-1], abs=1e-6)
    vectors = np.array([[1, 10], [2, 20]], np.float32)
    bare = build(write_trace(tmp_path / "v", of_one_client("step", [0, 1]), vectors))
    assert bare.features(np.array([1])).tolist() == [[2, 20]]
    facts = {"scale": 2.0, "mean": [1.0, 10.0]}
    moved = build(write_trace(tmp_path / "v", of_one_client("step", [0, 1]), vectors, facts))
    assert moved.features(np.array([1])).tolist() == [[3, 30]]


def private_bytes() -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line]
    return 1024 * int(line.split()[1])


@pytest.mark.slow
def test_features_are_mapped_and_not_copied(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the private memory of a process is read from /proc")
    size, width = 64, 2**20
    big = np.zeros((size, width), np.uint8)
    folder = write_trace(tmp_path / "t", of_one_client("step", [0] * size), big)
    del big
    before = private_bytes()
    trace = build(folder)
    digest = trace.digest()
    assert digest
    for row in range(size):
        assert trace.features(np.array([row])).shape == (1, width)
    # 64 MiB of features; one sample is 4 MiB as float32, and the table of noise another 4.
    assert private_bytes() - before < 2**25


def test_all_that_clients_own_or_receive_can_be_kept_to_the_end(tmp_path: Path) -> None:
    steps = one_client(tmp_path / "steps", "step", [-70_000, -1, 0, 3])
    days = one_client(tmp_path / "days", "time", [date(2015, 1, day) for day in (1, 1, 2, 4)])
    for folder in (steps, days):  # of days, clients start with the first one
        trace = build(folder, retain_rounds="all", since=None if folder == days else -70_000)
        held = [trace.held(np.array([0]), "train", step).counts()[0] for step in (0, 1, 2, 3, 9)]
        assert held == ([3, 3, 3, 4, 4] if folder == steps else [2, 3, 3, 4, 4])
    assert FileSettings(folder="t").model_dump(mode="json")["retain_rounds"] == 50
    # The number of rounds that builders printed before is played as ever.
    static = one_client(tmp_path / "static", "step", [0, 0])
    large = build(static, rounds_per_step=10**6, retain_rounds=10**6)
    assert (large.retain_steps, large.rounds_per_step) == (1, 10**6)
