from __future__ import annotations

import errno
import hashlib
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from emulator.errors import InputError, ResumableError
from tests.processes import forked
from tests.traces.building.table.tables import (
    TINY,
    a_large_table,
    as_csv,
    build,
    built,
    refused,
    rows,
    write,
    write_parquet,
)
from traces.arrivals import Arrivals
from traces.building import Request
from traces.building.table.build import Table
from traces.building.table.encoders import features
from traces.building.table.settings import TableSettings
from traces.files import TraceFolder, open_folder
from traces.tables.sorted import is_in_order

ROOT = Path(__file__).resolve().parents[4]


def everything(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_features_are_in_the_order_of_the_file_and_arrivals_in_that_of_a_trace(tmp_path: Path) -> None:
    folder = built(write(tmp_path, TINY), step="day", test_share=0)
    assert folder.features.values.tolist() == [[1, 10], [2, 20], [3, 30], [4, 40]]
    assert folder.facts.classes == ("down", "up")
    assert rows(folder, "client", "label", "sample", "step", "split") == [
        ("ann", 0, 2, 1, "train"),
        ("ann", 1, 0, 3, "train"),
        ("bob", 0, 1, 1, "train"),
        ("bob", 1, 3, 2, "train"),
    ]


def test_features_are_standardised_by_the_facts_and_stored_as_they_are(tmp_path: Path) -> None:
    folder = built(write(tmp_path, TINY), step="day", test_share=0)
    # Of 1, 2, 3, 4: mean 2.5, deviation sqrt(1.25).
    assert folder.facts.mean == pytest.approx((2.5, 25.0))
    assert folder.facts.deviation == pytest.approx((1.25**0.5, 10 * 1.25**0.5))
    given = folder.features.features(np.arange(4))
    assert given.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert given.std(axis=0) == pytest.approx([1, 1])


def test_only_training_rows_that_are_owned_at_the_start_are_standardised_on(tmp_path: Path) -> None:
    table = write(
        tmp_path,
        "who,kind,day,use,a\nx,0,0,train,1\nx,1,-1,train,3\nx,0,0,test,50\nx,1,1,train,90\nx,1,-2,train,70\n",
    )
    folder = built(table, step="day", split="use", retain=2)
    assert folder.facts.mean == (2.0,)  # of days 0 and -1, for training
    assert folder.facts.deviation == (1.0,)


def test_days_of_retain_begin_with_the_first_row(tmp_path: Path) -> None:
    table = write(
        tmp_path,
        "who,kind,day,a\nx,0,2020-01-05,1\nx,1,2020-01-06T23:00:00,3\nx,0,2020-01-07,50\n",
    )
    folder = built(table, time="day", retain=2, test_share=0)
    assert folder.facts.mean == (2.0,)


def test_a_row_that_arrives_twice_counts_twice(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,n,a\nx,0,1,1\nx,1,3,5\nx,1,0,100\n")
    folder = built(table, count="n", test_share=0)
    assert folder.facts.mean == (4.0,)  # (1 + 3 * 5) / 4
    assert folder.facts.deviation == pytest.approx((3**0.5,))  # sqrt((9 + 3 * 1) / 4)
    assert rows(folder, "sample", "count") == [(0, 1), (1, 3)]
    assert len(folder.features) == 2  # the row that never arrives is not stored


def test_rows_of_a_client_are_ranked_by_a_column_and_equal_ones_as_in_the_file(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,at,a\nx,0,0.5,1\ny,0,9,2\nx,0,0.25,3\nx,0,0.5,4\n")
    folder = built(table, order="at", test_share=0)
    assert rows(folder, "client", "order", "sample") == [("x", 0, 2), ("x", 1, 0), ("x", 2, 3), ("y", 0, 1)]


def test_rows_of_a_client_can_arrive_in_the_order_of_the_file(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,a\nx,0,1\ny,0,2\nx,1,3\n")
    folder = built(table, in_file_order=True, test_share=0)
    assert rows(folder, "client", "order", "sample") == [("x", 0, 0), ("x", 1, 2), ("y", 0, 1)]


def test_without_a_column_of_arrivals_all_rows_are_owned_at_the_start(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,a\nx,0,1\ny,0,2\n")
    result = build(table, tmp_path / "out")
    assert rows(open_folder(tmp_path / "out"), "step") == [(0,), (0,)]
    assert result.play == {"retain_rounds": "all"}
    assert any("retain_rounds" in note for note in result.notes)


def test_numbers_of_clients_and_labels_sort_as_numbers(tmp_path: Path) -> None:
    folder = built(write(tmp_path, "who,kind,a\n10,10,1\n9,9,2\n"))
    assert folder.facts.classes == ("9", "10")
    assert rows(folder, "client", "label") == [(9, 0), (10, 1)]


def test_a_class_named_na_is_a_class(tmp_path: Path) -> None:
    """Neotoma albigula, one of Portal's commonest rodents, is NA."""
    assert built(write(tmp_path, "who,kind,a\nx,NA,1\nx,DM,2\n")).facts.classes == ("DM", "NA")


def test_a_text_becomes_a_column_for_each_of_its_values(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,sex,a\nx,0,M,1\nx,0,F,2\nx,0,,3\n")
    folder = built(table, one_hot=["sex"], missing="zero", test_share=0)
    assert folder.features.values.tolist() == [[0, 1, 1], [1, 0, 2], [0, 0, 3]]
    assert folder.facts.mean == (0.0, 0.0, 2.0)  # ones and zeros stay what they are
    assert folder.facts.deviation is not None
    assert folder.facts.deviation[:2] == (1.0, 1.0)
    assert "sex=F, sex=M, a" in folder.facts.origin


def test_a_missing_number_becomes_the_mean_of_the_training_rows(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,use,a,b\nx,0,train,1,1\nx,0,train,,2\nx,0,train,5,3\nx,0,test,100,\n")
    folder = built(table, split="use", missing="mean")
    assert folder.features.values.tolist() == [[1, 1], [3, 2], [5, 3], [100, 2]]
    assert folder.facts.mean == (3.0, 2.0)


def test_a_missing_number_can_become_zero(tmp_path: Path) -> None:
    folder = built(write(tmp_path, "who,kind,a\nx,0,6\nx,0,NA\n"), missing="zero", test_share=0)
    assert folder.features.values.tolist() == [[6], [0]]
    assert folder.facts.mean == (3.0,)


def test_only_the_commonest_classes_and_clients_with_enough_rows_are_used(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,a\nx,p,1\nx,q,2\ny,q,3\nx,r,4\nx,p,5\ny,r,6\nz,q,7\n")
    folder = built(table, classes=2, min_samples=2, test_share=0)
    # q has three rows; p and r have two, of which the first one in order counts. Then y and z have one each.
    assert folder.facts.classes == ("p", "q")
    assert rows(folder, "client", "sample") == [("x", 0), ("x", 1), ("x", 2)]
    assert folder.features.values.tolist() == [[1], [2], [5]]


def test_since_and_until_cut_a_half_open_stretch_of_time(tmp_path: Path) -> None:
    lines = "".join(f"x,0,2020-01-0{day},{day}\n" for day in range(1, 6))
    table = write(tmp_path, f"who,kind,t,a\n{lines}")
    folder = built(table, time="t", since="2020-01-02", until="2020-01-04")
    assert folder.features.values.tolist() == [[2], [3]]


def test_a_limit_takes_rows_spread_over_the_file(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,a\n" + "".join(f"x,0,{row}\n" for row in range(10)))
    assert built(table, limit=5).features.values[:, 0].tolist() == [0, 2, 4, 6, 8]


def test_rows_without_clients_are_divided_by_a_partition(tmp_path: Path) -> None:
    table = write(tmp_path, "kind,a\n" + "".join(f"{row % 2},{row}\n" for row in range(12)))
    folder = built(table, client=None, partition="iid", clients=3)
    clients = [client for (client,) in rows(folder, "client")]
    assert sorted(clients) == [0] * 4 + [1] * 4 + [2] * 4
    assert rows(folder, "client") == rows(built_again(table), "client")


def built_again(table: Path) -> TraceFolder:
    out = table.parent / "again"
    build(table, out, client=None, partition="iid", clients=3)
    return open_folder(out)


def test_shards_are_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, "who,kind,a\ny,0,2\n", "t/b.csv")
    write(tmp_path, "kind,who,a\n1,x,1\n", "t/a.csv.gz")
    write(tmp_path, "no table", "t/README.md")
    folder = built(tmp_path / "t")
    assert folder.features.values.tolist() == [[1], [2]]
    assert rows(folder, "client", "sample") == [("x", 0), ("y", 1)]


def test_csv_and_parquet_give_the_same_trace(tmp_path: Path) -> None:
    columns = a_large_table(3000, 3)
    one = built(write_parquet(tmp_path, columns, row_group_size=700), step="day")
    other = built(write(tmp_path, as_csv(columns), "table.csv.gz"), step="day")
    assert (one.features.values == other.features.values).all()
    assert one.digests == other.digests
    assert one.facts.mean == pytest.approx(other.facts.mean)  # merged of other batches
    table = one.rows
    assert table.split is not None
    assert is_in_order(Arrivals(table.client, table.split, table.at, table.label, table.sample, table.sample))


def test_a_category_may_be_nan_and_a_feature_may_be_called_client(tmp_path: Path) -> None:
    columns = {"who": ["x"] * 3, "kind": [0, 1, 0], "client": pa.array([2.5, np.nan, None], pa.float32())}
    settings = {"one_hot": ["client"], "test_share": 0, "missing": "zero"}
    folder = built(write_parquet(tmp_path, columns), **settings)
    assert folder.facts.origin.endswith("features client=2.5, client=nan")
    assert folder.features.values.tolist() == [[1, 0], [0, 1], [0, 0]]
    whole = {**columns, "client": pa.array([7, None, -1], pa.int32())}
    folder = built(write_parquet(tmp_path, whole, "whole.parquet"), **settings)
    assert folder.facts.origin.endswith("features client=-1, client=7")
    assert folder.features.values.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_tests_are_held_out_as_from_all_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_parquet(tmp_path, a_large_table(3000, 1))
    whole = built(root, step="day")
    monkeypatch.setattr("traces.ordering.CHUNK_ROWS", 200)
    build(root, tmp_path / "chunks", step="day")
    assert everything(tmp_path / "chunks") == everything(whole.path)
    assert whole.rows.split is not None
    assert whole.rows.split.mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("instant", ["at the start", "while writing"])
def test_a_full_disk_ends_in_one_line_and_the_same_build_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    root = write_parquet(tmp_path, a_large_table(5000, 2), row_group_size=500)
    build(root, tmp_path / "whole", step="day")
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        name = "os.posix_fallocate" if instant == "at the start" else "FeatureRows.flush"
        patch.setattr(f"traces.building.writing.{name}", _raise(full))
        with pytest.raises(ResumableError, match="make room, and give the same command again"):
            build(root, tmp_path / "out", step="day")
    assert not (tmp_path / "out").exists()
    build(root, tmp_path / "out", step="day")
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def _raise(error: OSError) -> Callable[..., None]:
    def raises(*_: object) -> None:
        raise error

    return raises


def test_texts_of_any_arrow_type_and_truth_values_are_names(tmp_path: Path) -> None:
    columns = {
        "who": pa.array(["b", "a"], pa.large_string()),
        "kind": pa.array([True, False]),
        "a": pa.array([1, 2], pa.uint8()),
    }
    folder = built(write_parquet(tmp_path, columns), test_share=0)
    assert folder.facts.classes == ("false", "true")
    assert rows(folder, "client", "label", "sample") == [("a", 0, 1), ("b", 1, 0)]
    dictionary = {**columns, "who": columns["who"].dictionary_encode()}
    again = built(write_parquet(tmp_path, dictionary, "other.parquet"), test_share=0)
    assert rows(again, "client") == rows(folder, "client")


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_build_that_was_killed_is_resumed_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    columns = a_large_table(30_000, 4)
    columns["x1"][::7] = np.nan
    if name.endswith("csv"):
        root = write(tmp_path, as_csv(columns), name)
    else:
        root = write_parquet(tmp_path, columns, name, row_group_size=9000)
    monkeypatch.setattr(features, "VALUES", 2**12)
    monkeypatch.setattr("emulator.storage.reading.csv_file._BLOCK", 2**16)
    monkeypatch.setattr("traces.building.writing.RECORD_EVERY_S", 0.0)
    build(root, tmp_path / "whole", step="day", missing="mean")
    encode, calls = features.Numbers.encode, [0]

    def fail_later(*arguments: object) -> object:
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt
        return encode(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(features.Numbers, "encode", fail_later)
    with pytest.raises(KeyboardInterrupt):
        build(root, tmp_path / "out", step="day", missing="mean")
    assert not (tmp_path / "out").exists()
    calls[0] = 8
    build(root, tmp_path / "out", step="day", missing="mean")
    assert calls[0] > 8
    again = calls[0] - 8
    calls[0] = 8
    build(root, tmp_path / "afresh", step="day", missing="mean")
    assert again == calls[0] - 8 - 7  # what was written is not encoded again
    whole = everything(tmp_path / "whole")
    assert everything(tmp_path / "out") == whole == everything(tmp_path / "afresh")
    assert set(whole) == {"arrivals.parquet", "features.npy", "trace.toml"}


def test_a_process_that_is_killed_leaves_no_trace_and_the_next_one_finishes_it(tmp_path: Path) -> None:
    root = write_parquet(tmp_path, a_large_table(20_000, 4), row_group_size=1000)
    build(root, tmp_path / "whole", step="day")
    program = (
        "import sys, time; from pathlib import Path\n"
        "from traces.building import writing; from traces.building.table.encoders import features\n"
        "from tests.traces.building.table.tables import build\n"
        "features.VALUES, writing.RECORD_EVERY_S = 2**12, 0.0\n"
        "encode = features.Numbers.encode\n"
        "def slowly(*given):\n"
        "    time.sleep(0.05)\n"
        "    return encode(*given)\n"
        "features.Numbers.encode = slowly\n"
        "build(Path(sys.argv[1]), Path(sys.argv[2]), step='day')\n"
    )
    process = forked.Forked([sys.executable, "-c", program, str(root), str(tmp_path / "out")], cwd=ROOT)
    deadline = time.monotonic() + 30
    while not (tmp_path / "out.building/progress.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "out.building/progress.json").exists()
    assert not (tmp_path / "out").exists()
    build(root, tmp_path / "out", step="day")
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_an_unfinished_build_with_other_settings_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path, TINY)
    with monkeypatch.context() as patch:
        patch.setattr("traces.building.folder.write_arrival_pieces", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(root, tmp_path / "out", step="day")
    with pytest.raises(InputError, match="begun with another settings; give --fresh"):
        build(root, tmp_path / "out", step="day", seed=1)
    settings = TableSettings(client="who", label="kind", step="day", seed=1)
    Table(settings).build(Request(root, tmp_path / "out", fresh=True))


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_bad_rows_are_left_out_up_to_the_number_that_is_given(tmp_path: Path) -> None:
    text = "who,kind,day,a\nx,0,1,1\nx,1,2,abc\n,0,1,3\nx,0,later,4\nx,0,1\nx,0,1,6\nx,1,1,\nx,1,3,8\n"
    with_times = text.replace("later", "soon")
    for day in "123":
        with_times = with_times.replace(f",{day},", f",2020-01-0{day},")
    table = write(tmp_path, with_times)
    result = build(table, tmp_path / "out", time="day", features=["a"], skip_bad=5, test_share=0)
    assert result.left_out == 5
    folder = open_folder(tmp_path / "out")
    values = folder.features.values[:, 0]
    assert sorted(values[sample] for (sample,) in rows(folder, "sample")) == [1, 6, 8]
    assert folder.facts.mean == (5.0,)
    assert any("5 bad rows" in note for note in result.notes)
    message = refused(table, time="day", features=["a"], skip_bad=4)
    assert message.startswith("table.csv: more than --skip-bad 4 rows are bad: 5; the first: ")


def test_columns_that_lose_digits_are_named(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,t,a\nx,0,1500000000,1\nx,0,1500000100,2\n")
    notes = build(table, tmp_path / "out", test_share=0).notes
    assert any(note.startswith("t: vary little about a large mean") for note in notes)
