from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.arrays import Floats
from emulator.errors import ConfigurationError, DataFileError, InputError
from emulator.storage.tables import read_table
from tests.traces.tiny import context, write_idx_folder
from traces.idx import read_idx_folder
from traces.sources.label_replay import LabelReplay, LabelReplaySettings, filled, read_label_counts
from traces.tables.base import Table
from traces.trace import Trace

COLUMNS = ("group", "time", "label", "count")
Row = tuple[Any, ...]

# Two groups, two windows, three labels: 30 of "b", 20 of "a", 10 of "c".
BASE: list[Row] = [
    ("north", 1, "a", 15),
    ("north", 1, "b", 5),
    ("north", 2, "b", 20),
    ("south", 1, "c", 10),
    ("south", 2, "b", 5),
    ("south", 2, "a", 5),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_idx_folder(tmp_path / "images", num_labels=3)
    return tmp_path


def table(folder: Path, rows: list[Row], columns: tuple[str, ...] = COLUMNS) -> Path:
    path = folder / "labels.parquet"
    pq.write_table(pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True))), path)
    return path


def settings_of(**settings: Any) -> LabelReplaySettings:
    return LabelReplaySettings.model_validate(
        {
            "table": "labels.parquet",
            "images": "images",
            "group": "group",
            "time": "time",
            "label": "label",
            "count": "count",
            "clients_per_group": 2,
            "rounds_per_step": 1,
            "retain_rounds": 1,
            **settings,
        }
    )


def counts_of(folder: Path, rows: list[Row], **settings: Any) -> list[Any]:
    read = read_label_counts(read_table(table(folder, rows)), settings_of(**settings))
    counts: list[Any] = read.counts.tolist()
    return counts


def build(folder: Path, rows: list[Row], rounds: int = 2, **settings: Any) -> Trace:
    table(folder, rows)
    source = LabelReplay(settings_of(**settings))
    return source.build(context(rounds, locate=lambda path: folder / path))


def test_the_most_frequent_label_becomes_class_0_and_so_on_down(folder: Path) -> None:
    # classes: b, a, c
    assert counts_of(folder, BASE) == [
        [[5, 15, 0], [20, 0, 0]],
        [[0, 0, 10], [5, 5, 0]],
    ]


def test_labels_of_one_frequency_go_by_name(folder: Path) -> None:
    rows: list[Row] = [("g", 1, "z", 2), ("g", 2, "y", 2), ("g", 3, "x", 1)]
    assert counts_of(folder, rows) == [[[0, 2, 0], [2, 0, 0], [0, 0, 1]]]


def test_rows_with_an_empty_label_are_left_out_on_request(folder: Path) -> None:
    with_empty = [*BASE, ("north", 1, "", 100)]
    assert counts_of(folder, with_empty, exclude=[""]) == counts_of(folder, BASE)
    with pytest.raises(DataFileError, match="row 7: label is missing"):
        counts_of(folder, with_empty, exclude=["a"])


@pytest.mark.parametrize("blank", ["", " ", None])
def test_every_kind_of_empty_label_is_left_out_on_request(folder: Path, blank: str | None) -> None:
    assert counts_of(folder, [*BASE, ("north", 1, blank, 100)], exclude=[""]) == counts_of(folder, BASE)


def test_an_empty_label_among_numbers_in_a_csv_is_refused_or_left_out(folder: Path) -> None:
    (folder / "labels.csv").write_text("group,time,label,count\ng,1,7,2\ng,2,,5\ng,3,8,1\n")
    read = read_table(folder / "labels.csv")
    with pytest.raises(DataFileError, match=r"labels.csv, row 2: label is missing"):
        read_label_counts(read, settings_of())
    left = read_label_counts(read, settings_of(exclude=[""]))
    assert left.counts.tolist() == [[[2, 0], [0, 1]]]
    assert left.names == ("7", "8")


def test_a_label_called_na_is_a_label(folder: Path) -> None:
    """One of Portal's species is: Neotoma albigula."""
    (folder / "labels.csv").write_text("group,time,label,count\ng,1,NA,2\ng,2,DM,1\n")
    assert read_label_counts(read_table(folder / "labels.csv"), settings_of()).names == ("NA", "DM")


def test_observations_are_the_counts_with_the_names_of_groups_and_labels(folder: Path) -> None:
    table(folder, [*BASE, ("east", 1, "a", 1)])
    source = LabelReplay(settings_of(retain_rounds=2, min_windows=2, images="no such folder"))
    rows = source.observations(context(locate=lambda path: folder / path))
    assert rows.client_names == ("north", "south")
    assert rows.label_names == ("b", "a", "c")
    assert rows.first_step == -1
    dense = np.zeros((rows.num_clients, rows.num_windows, rows.num_labels))
    dense[rows.client, rows.window, rows.label] = rows.count
    assert dense.tolist() == [[[5, 15, 0], [20, 0, 0]], [[0, 0, 10], [5, 5, 0]]]


def test_an_empty_label_of_a_large_string_is_not_one_more_label(folder: Path) -> None:
    columns = dict(zip(COLUMNS, zip(*BASE, ("north", 1, "", 100), strict=True), strict=True))
    labels = pa.array(columns.pop("label"), pa.large_string())
    pq.write_table(pa.table({**columns, "label": labels}), folder / "labels.parquet")
    with pytest.raises(DataFileError, match="row 7: label is missing"):
        read_label_counts(read_table(folder / "labels.parquet"), settings_of())


def test_a_label_that_is_no_number_is_missing(folder: Path) -> None:
    rows: list[Row] = [("g", 1, 0.0, 1), ("g", 2, float("nan"), 1)]
    with pytest.raises(DataFileError, match="row 2: label is missing"):
        counts_of(folder, rows)


def test_a_trace_knows_what_its_table_calls_the_classes(folder: Path) -> None:
    assert build(folder, BASE).label_names == ("b", "a", "c")
    assert build(folder, BASE, most_common=2).label_names == ("b", "a")


def test_a_row_counts_once_without_a_column_of_counts(folder: Path) -> None:
    rows = [*BASE, ("north", 1, "a", 7)]
    assert counts_of(folder, rows, count=None)[0][0] == [2, 1, 0]  # classes a, b, c: 3, 3, 1 rows


def test_rows_of_one_cell_are_added_up(folder: Path) -> None:
    assert counts_of(folder, [*BASE, ("north", 2, "b", 7)])[0][1] == [27, 0, 0]


def test_an_excluded_label_is_out_before_the_most_common_are_counted(folder: Path) -> None:
    assert counts_of(folder, BASE, exclude=["b"], most_common=1) == [[[15], [0]], [[0], [5]]]
    assert counts_of(folder, BASE, most_common=2) == [[[5, 15], [20, 0]], [[0, 0], [5, 5]]]


def test_a_label_that_was_never_observed_is_no_class(folder: Path) -> None:
    assert counts_of(folder, [*BASE, ("north", 1, "d", 0)]) == counts_of(folder, BASE)


def test_since_is_the_first_day_that_counts_and_until_the_first_that_does_not(folder: Path) -> None:
    days = [date(2021, 1, day) for day in (1, 2, 3, 4)]
    rows: list[Row] = [("g", day, "a", index) for index, day in enumerate(days, start=1)]
    for kind in (
        rows,
        [(group, datetime(day.year, day.month, day.day), *rest) for group, day, *rest in rows],
    ):
        counts = counts_of(folder, kind, since=date(2021, 1, 2), until=date(2021, 1, 4))
        assert counts == [[[2], [3]]]


def test_a_time_of_day_belongs_to_its_day(folder: Path) -> None:
    rows: list[Row] = [("g", datetime(2021, 1, 3, 23, 59), "a", 1), ("g", datetime(2021, 1, 4, 0, 0), "a", 2)]
    assert counts_of(folder, rows, until=date(2021, 1, 4)) == [[[1]]]


def test_without_a_width_every_distinct_time_is_a_window(folder: Path) -> None:
    rows: list[Row] = [("g", 10.5, "a", 3), ("g", 2, "a", 1), ("g", 700, "a", 4), ("g", 2, "a", 1)]
    assert counts_of(folder, rows) == [[[2], [3], [4]]]


def test_windows_of_a_width_start_at_the_first_time_and_keep_empty_ones(folder: Path) -> None:
    rows: list[Row] = [("g", day, "a", count) for day, count in [(10, 1), (16.9, 2), (17, 4), (31, 8)]]
    assert counts_of(folder, rows, window_days=7) == [[[3], [4], [0], [8]]]


def test_groups_observed_in_fewer_windows_are_left_out(folder: Path) -> None:
    rows = [*BASE, ("east", 2, "a", 99), ("west", 1, "c", 0), ("west", 2, "c", 0)]
    assert len(counts_of(folder, rows)) == 3
    assert len(counts_of(folder, rows, min_windows=2)) == 2
    with pytest.raises(DataFileError, match="min_windows = 3 windows or more; the most is 2"):
        counts_of(folder, rows, min_windows=3)


def test_a_window_without_observations_replays_the_nearest_earlier_one_or_else_the_nearest_later() -> None:
    counts: Floats = np.zeros((2, 5, 1))
    counts[0, [1, 3], 0] = [7, 9]
    counts[1, :, 0] = [1, 2, 3, 4, 5]
    before = counts.copy()
    assert filled(counts)[:, :, 0].tolist() == [[7, 7, 7, 9, 9], [1, 2, 3, 4, 5]]
    assert np.array_equal(counts, before)


def test_every_group_becomes_its_number_of_clients_with_its_labels_window_by_window(folder: Path) -> None:
    trace = build(folder, BASE)
    table = trace.columns()
    assert trace.num_clients == 4

    def labels(clients: list[int], step: int) -> set[int]:
        of = np.isin(table.client, clients) & (table.arrival == step)
        return set(table.label[of].tolist())

    assert labels([0, 1], 0) == {0, 1}
    assert labels([0, 1], 1) == {0}
    assert labels([2, 3], 0) == {2}
    assert labels([2, 3], 1) == {0, 1}
    # Clients of one group draw their own samples.
    drawn = [table.label[(table.client == client) & (table.arrival == 1)].tolist() for client in (2, 3)]
    assert drawn[0] != drawn[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_tables_rows_changes_nothing(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Counts that are not whole: their sum depends on the order of addition.
    rows: list[Row] = [
        (f"g{rng.integers(3)}", int(rng.integers(4)), "abc"[rng.integers(3)], float(rng.random()))
        for _ in range(400)
    ]
    permuted = [rows[index] for index in rng.permutation(len(rows))]
    assert counts_of(folder, rows) == counts_of(folder, permuted)
    assert build(folder, rows).digest() == build(folder, permuted).digest()


@pytest.mark.slow
def test_a_csv_replays_as_its_parquet_does(folder: Path) -> None:
    digest = build(folder, BASE).digest()
    lines = [",".join(map(str, row)) for row in [COLUMNS, *BASE]]
    (folder / "labels.csv").write_text("\n".join(lines))
    source = LabelReplay(settings_of(table="labels.csv"))
    assert source.build(context(2, locate=lambda path: folder / path)).digest() == digest


def refusal(folder: Path, rows: list[Row], rounds: int = 2, **settings: Any) -> str:
    with pytest.raises(DataFileError) as caught:
        build(folder, rows, rounds, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")


def test_the_error_for_more_labels_than_classes_states_how_many_and_what_to_do(folder: Path) -> None:
    assert refusal(folder, [*BASE, ("north", 1, "d", 1)]) == (
        "labels.parquet: has 4 labels in column 'label', but the images of images have 3 classes; "
        "set most_common or exclude"
    )
    build(folder, [*BASE, ("north", 1, "d", 1)], most_common=3)


@pytest.mark.parametrize(
    ("change", "settings", "problem"),
    [
        (("north", 1, "a", -1.0), {}, "labels.parquet, row 7: count = -1 must be at least 0"),
        (("north", 1, "a", float("nan")), {}, "labels.parquet, row 7: count = nan must be a finite number"),
        (("north", 1, "a", 1e308), {}, "labels.parquet, row 7: count = 1e+308 must be at most 1e+38"),
        (("north", 1, None, 1.0), {}, "labels.parquet, row 7: label is missing"),
        (("north", 1, "", 1.0), {}, "labels.parquet, row 7: label is missing"),
        (("north", 1, " ", 1.0), {}, "labels.parquet, row 7: label is missing"),
        (("", 1, "a", 1.0), {}, "labels.parquet, row 7: group is missing"),
        (("north", None, "a", 1.0), {}, "labels.parquet, row 7: time is missing"),
        ((None, 1, "a", 1.0), {}, "labels.parquet, row 7: group is missing"),
        (None, {"label": "lable"}, "labels.parquet: column 'lable' is missing; it has group, time, label, c"),
        (None, {"count": "n"}, "labels.parquet: column 'n' is missing"),
        (None, {"time": "group"}, "labels.parquet: column 'group' is string; a time is a date, a timestamp"),
        (None, {"count": "label"}, "labels.parquet, row 1: column 'label' must hold numbers"),
        (None, {"exclude": ["B"]}, "labels.parquet: exclude = 'B': no such label in column 'label'"),
        (None, {"exclude": ["a", "b", "c"]}, "labels.parquet: no row is left between since and until"),
        (None, {"since": "2021-01-01"}, "labels.parquet: no row is left between since and until"),
        (
            None,
            {"retain_rounds": 3},
            "labels.parquet: has 2 windows, but clients start out with retain_rounds / rounds_per_step = 3",
        ),
        (None, {"window_days": 1e-12}, "labels.parquet: window_days = 1e-12: more than"),
    ],
)
def test_a_table_that_cannot_be_replayed_is_one_clear_line(
    folder: Path, change: Row | None, settings: dict[str, Any], problem: str
) -> None:
    rows: list[Row] = [(*row[:3], float(row[3])) for row in BASE]
    assert refusal(folder, [*rows, change] if change else rows, **settings).startswith(problem)


def test_a_table_of_counts_larger_than_its_bound_is_refused_before_it_is_made(folder: Path) -> None:
    rows: list[Row] = [
        ("g", 0, "a", 1),
        ("g", 1e7, "b", 1),
        ("h", 0, "c", 1),
        *[(f"i{k}", 0, "a", 1) for k in range(9)],
    ]
    message = refusal(folder, rows, window_days=1.0)
    assert "11 groups x 10000001 windows x 3 labels are more than 16777216 cells" in message


def test_clients_beyond_what_a_trace_may_hold_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="2000000000 clients x 2 steps of data"):
        build(folder, BASE, clients_per_group=10**9)


@pytest.mark.parametrize(("rounds_per_step", "enough"), [(1, 2), (10, 20)])
def test_a_run_lasts_no_longer_than_its_clients_hold_data(
    folder: Path, rounds_per_step: int, enough: int
) -> None:
    settings = {"rounds_per_step": rounds_per_step, "retain_rounds": rounds_per_step}
    trace = build(folder, BASE, enough, **settings)
    last = (enough - 1) // rounds_per_step
    assert (trace.held(np.arange(4), "train", last).counts() > 0).all()
    assert refusal(folder, BASE, enough + 1, **settings) == (
        f"labels.parquet: has 2 windows, data for {enough} rounds at rounds_per_step = {rounds_per_step}, "
        f"but round.rounds = {enough + 1}: its clients would be without data"
    )


def test_after_the_last_window_clients_hold_what_they_still_retain(folder: Path) -> None:
    trace = build(folder, BASE, rounds=2, retain_rounds=2)  # both windows are owned from the start
    everyone = np.arange(4)
    assert trace.last_step == 0
    assert [trace.held(everyone, "train", step).counts().tolist() for step in (0, 1)] == [[40] * 4, [20] * 4]


def test_the_last_window_is_for_tests_only_if_clients_are_tested_on_what_arrives_next(folder: Path) -> None:
    rows: list[Row] = [("north", day, label, 9) for day, label in enumerate("abca")]
    settings: dict[str, Any] = {"retain_rounds": 2, "samples": "observed", "test_share": 1 / 3}
    upcoming = build(folder, rows, rounds=2, test_on="next", **settings)
    longer = build(folder, rows, rounds=4, **settings)
    everyone = np.arange(2)
    for step, (held, tested) in enumerate([({0, 1}, {2}), ({1, 2}, {0})]):  # classes: a, b, c
        for split, labels in (("train", held), ("test", tested)):
            ranges = upcoming.held(everyone, split, step)  # type: ignore[arg-type]
            drawn = np.concatenate([ranges.rows(client) for client in everyone])
            assert set(upcoming.labels(drawn).tolist()) == labels
        assert np.array_equal(
            upcoming.held(everyone, "train", step).counts(), longer.held(everyone, "train", step).counts()
        )
    with pytest.raises(DataFileError, match=r"has 4 windows, data for 2 rounds .*round.rounds = 3: .*tested"):
        build(folder, rows, rounds=3, test_on="next", **settings)
    with pytest.raises(
        DataFileError, match=r"= 4 of them, and are tested on the next one .*; lower trace.re"
    ):
        build(folder, rows, rounds=1, test_on="next", **settings | {"retain_rounds": 4})


def test_a_shorter_run_replays_the_beginning_of_a_longer_one(folder: Path) -> None:
    # "east" is first observed after the shorter run: its clients start with these later observations.
    rows = [*BASE, ("east", 3, "c", 1), ("east", 4, "a", 1)]
    trace = build(folder, rows, rounds=2)
    table = trace.columns()
    assert trace.num_clients == 6
    assert trace.last_step == 1
    assert set(table.label[np.isin(table.client, [0, 1])].tolist()) == {2}
    full = build(folder, rows, rounds=4).columns()
    assert set(full.label[np.isin(full.client, [0, 1]) & (full.arrival == 3)].tolist()) == {1}


# -- observed sizes, and clients that leave -----------------------------------------------------------------


# "north" is not observed at time 2, and "south" not at time 3.
GAPS: list[Row] = [
    ("north", 1, "a", 15),
    ("north", 1, "b", 5),
    ("north", 3, "b", 20),
    ("south", 1, "c", 10),
    ("south", 2, "b", 5),
    ("south", 2, "a", 5),
]


def table_of(folder: Path, rows: list[Row], rounds: int = 3, **settings: Any) -> Table:
    """The table of the trace, whose clients may hold nothing at the start."""
    source = LabelReplay(settings_of(**settings))
    counts, names, _ = read_label_counts(read_table(table(folder, rows)), source.settings)
    images = replace(read_idx_folder(folder / "images"), label_names=names)
    made = source.table(images, counts, rounds, context(rounds))
    assert isinstance(made, Table)
    return made


def received(rows: Table, num_labels: int = 3) -> list[Any]:
    """The samples of both splits, by client, data step and label."""
    columns = rows.arrivals()
    shape = (rows.num_clients, rows.last_step - rows.first_step + 1, num_labels)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (columns.client, columns.arrival - rows.first_step, columns.label), 1)
    listed: list[Any] = counts.tolist()
    return listed


def test_observed_sizes_are_those_of_the_table(folder: Path) -> None:
    settings = {"samples": "observed", "clients_per_group": 1}
    # classes: b, a, c
    leaving = received(table_of(folder, GAPS, absent="leave", **settings))
    assert leaving == [[[5, 15, 0], [0, 0, 0], [20, 0, 0]], [[0, 0, 10], [5, 5, 0], [0, 0, 0]]]
    replaying = received(table_of(folder, GAPS, **settings))
    assert replaying == [[[5, 15, 0], [5, 15, 0], [20, 0, 0]], [[0, 0, 10], [5, 5, 0], [5, 5, 0]]]


def test_a_fifth_of_the_observations_are_test_samples_unless_said_otherwise(folder: Path) -> None:
    rows: list[Row] = [("g", time, "a", 100) for time in (1, 2, 3)]
    for share, expected in ((None, 20), (0.5, 50)):
        given = {} if share is None else {"test_share": share}
        columns = table_of(folder, rows, samples="observed", clients_per_group=1, **given).arrivals()
        assert np.bincount(columns.arrival[columns.split == 1]).tolist() == [expected] * 3


def test_a_group_that_leaves_receives_nothing_and_the_others_what_they_would_have_received(
    folder: Path,
) -> None:
    settings = {"samples_per_step": 6, "test_samples_per_step": 4}
    leaving = table_of(folder, GAPS, absent="leave", **settings).arrivals()
    full = table_of(folder, GAPS, **settings).arrivals()
    gone = np.isin(full.client, [0, 1]) & (full.arrival == 1) | np.isin(full.client, [2, 3]) & (
        full.arrival == 2
    )
    for name, column in vars(leaving).items():
        assert column.tolist() == getattr(full, name)[~gone].tolist(), name
    assert np.bincount(leaving.client).tolist() == [20] * 4


def test_a_client_that_is_first_observed_after_the_run_exists_and_receives_nothing(folder: Path) -> None:
    rows = [*GAPS, ("east", 4, "c", 5)]
    for samples in ("equal", "observed"):
        made = table_of(folder, rows, rounds=3, samples=samples, absent="leave")
        assert made.num_clients == 6
        assert made.last_step == 2
        assert np.unique(made.arrivals().client).tolist() == [2, 3, 4, 5]


def test_a_trace_of_observed_sizes_holds_what_was_observed(folder: Path) -> None:
    trace = build(folder, BASE, samples="observed", clients_per_group=1, retain_rounds=2)
    held = [
        sum(trace.held(np.arange(2), split, step).counts() for split in ("train", "test")) for step in (0, 1)
    ]
    assert [counts.tolist() for counts in held] == [[40, 20], [20, 10]]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"window": "month", "window_days": 7},
            "trace.window = 'month' and trace.window_days = 7: both give the width of a window; leave one of "
            "them out",
        ),
        (
            {"test_share": 0.3},
            "trace.test_share = 0.3 and trace.samples = 'equal': test_share is for samples = 'observed'; "
            "with 'equal', set test_samples_per_step",
        ),
        (
            {"samples": "observed", "samples_per_step": 20},
            "trace.samples_per_step = 20 and trace.samples = 'observed': clients receive as many samples as "
            "were observed; leave samples_per_step out of the configuration (--set "
            "'trace={...}' sets the whole table), or set samples = 'equal'",
        ),
        (
            {"samples": "observed", "test_samples_per_step": 5},
            "trace.test_samples_per_step = 5 and trace.samples = 'observed': clients receive as many samples "
            "as were observed; leave test_samples_per_step out of the configuration (--set "
            "'trace={...}' sets the whole table), or set samples = 'equal'",
        ),
    ],
)
def test_settings_that_exclude_each_other_are_refused_by_both_names(
    folder: Path, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build(folder, BASE, **settings)
    assert str(caught.value) == problem


def test_settings_of_observed_sizes_are_read_back_as_they_were_written(folder: Path) -> None:
    table(folder, BASE)
    settings = settings_of(samples="observed", clients_per_group=1)
    written = settings.model_dump(mode="json")
    assert not {"samples_per_step", "test_samples_per_step"} & set(written)
    source = LabelReplay(LabelReplaySettings.model_validate(written))
    source.build(context(2, locate=lambda path: folder / path))  # refuses none of them
    assert settings_of().model_dump()["samples_per_step"] == 20


def test_a_count_that_is_not_whole_cannot_be_observed(folder: Path) -> None:
    rows: list[Row] = [*BASE, ("north", 1, "a", 2.5)]
    rows = [(*row[:3], float(row[3])) for row in rows]
    assert refusal(folder, rows, samples="observed") == (
        "labels.parquet, row 7: count = 2.5 must be a whole number with samples = 'observed'"
    )
    build(folder, rows)


def test_more_observations_than_fit_into_memory_are_refused_before_they_are_made(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"trace: 1000000060 samples are more than the 134217728"):
        build(folder, [*BASE, ("north", 2, "a", 10**9)], samples="observed")


# -- windows of the calendar --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("month", [[1], [2], [0], [4], *[[0]] * 9, [8]]),
        ("quarter", [[1], [6], [0], [0], [0], [8]]),
        ("year", [[7], [8]]),
    ],
)
def test_windows_of_the_calendar_begin_with_it_and_keep_unobserved_ones(
    folder: Path, window: str, expected: list[Any]
) -> None:
    days = [date(2020, 3, 31), date(2020, 4, 1), date(2020, 6, 30), date(2021, 4, 30)]
    rows: list[Row] = [("g", day, "a", 2**index) for index, day in enumerate(days)]
    assert counts_of(folder, rows, window=window)[0] == expected
    times = [(group, datetime(day.year, day.month, day.day, 23, 59), *rest) for group, day, *rest in rows]
    assert counts_of(folder, times, window=window)[0] == expected


def test_times_before_1970_fall_into_their_month(folder: Path) -> None:
    rows: list[Row] = [
        ("g", datetime(1969, 12, 31, 12), "a", 1),
        ("g", datetime(1970, 1, 1), "a", 2),
        ("g", datetime(1969, 12, 1), "a", 4),
    ]
    assert counts_of(folder, rows, window="month") == [[[5], [2]]]


def test_a_window_of_the_calendar_needs_dates(folder: Path) -> None:
    assert refusal(folder, BASE, window="year") == (
        "labels.parquet: column 'time' is int64; window = 'year' needs dates or timestamps"
    )


@pytest.mark.slow
def test_variants_of_the_virus_by_country_replay_onto_digits(published: Path) -> None:
    covid = {
        "table": "label_traces/covid_variants_by_country.parquet",
        "images": "mnist",
        "group": "location",
        "time": "date",
        "label": "variant",
        "count": "num_sequences",
    }
    counted = read_table(published / covid["table"])
    everything = read_label_counts(counted, settings_of(**covid)).counts
    assert everything.shape == (117, 43, 23)
    ten = settings_of(**covid, exclude=["others"], most_common=10, min_windows=20, clients_per_group=1)
    counts = read_label_counts(counted, ten).counts
    assert counts.shape[1:] == (43, 10)
    frequency = counts.sum(axis=(0, 1))
    assert frequency[0] == frequency.max() > 1e6  # Delta
    trace = LabelReplay(ten).build(context(12, locate=lambda path: published / path))
    table = trace.columns()
    assert trace.num_clients == len(counts)
    assert trace.sample_shape == (28, 28)
    assert not set(table.image[table.split == 0].tolist()) & set(table.image[table.split == 1].tolist())
