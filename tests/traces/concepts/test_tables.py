from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError
from emulator.seeding import RandomStreams
from tests.traces.tiny import context
from traces.concepts import ConceptSamples, tables
from traces.concepts.tables import Tables, TablesSettings
from traces.patterns import named_pattern
from traces.sources.concepts import Concepts, ConceptsSettings

# Five rows of concept 0 and four of concept 1. The first feature identifies the row.
ONE = "x,y,label\n0,0.5,1\n1,1.5,0\n2,2.5,1\n3,3.5,0\n4,4.5,0\n"
OTHER = "x,y,label\n10,-0.5,0\n11,-1.5,1\n12,-2.5,0\n13,-3.5,1\n"


def write(path: Path, content: str) -> None:
    """Write `content`, comma-separated, as a file of the kind given by the suffix of `path`."""
    if path.suffix == ".parquet":
        pq.write_table(pyarrow.csv.read_csv(io.BytesIO(content.encode())), path)
    else:
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


def draw(
    folder: Path,
    contents: list[str],
    pattern: list[list[int]],
    samples: int = 3,
    seed: int = 0,
    suffix: str = ".csv",
    **settings: Any,
) -> ConceptSamples:
    """Draw from files 0, 1 and so on, where the file of concept k has `contents[k]`."""
    files = [f"{concept}{suffix}" for concept in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        write(folder / file, content)
    made = Tables(TablesSettings.model_validate({"files": files, **settings}))
    return made.draw(np.array(pattern), samples, RandomStreams(seed), lambda path: folder / path)


def refusal(*args: Any, **kwargs: Any) -> str:
    """The one-line error of `draw`, without the folder."""
    with pytest.raises(DataFileError) as caught:
        draw(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return re.sub(r"/\S*/", "", message)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_the_pool_is_all_rows_of_all_files_in_order(tmp_path: Path, suffix: str) -> None:
    pool = draw(tmp_path, [ONE, OTHER], [[0, 1]], suffix=suffix).pool
    features = pool.features(np.arange(9))
    assert features.dtype == np.float32
    assert features[:, 0].tolist() == [0, 1, 2, 3, 4, 10, 11, 12, 13]
    assert features[:, 1].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, -0.5, -1.5, -2.5, -3.5]
    assert pool.labels.tolist() == [1, 0, 1, 0, 0, 0, 1, 0, 1]
    assert (pool.shape, pool.num_labels) == ((2,), 2)
    assert (len(pool.train), len(pool.test)) == (9, 0)


def test_a_batch_is_of_its_concepts_rows_with_their_labels(tmp_path: Path) -> None:
    pattern = [[0, 1, 0], [1, 1, 0]]
    drawn = draw(tmp_path, [ONE, OTHER], pattern)
    assert drawn.image.shape == drawn.label.shape == (2, 3, 3)
    assert ((drawn.image >= 5) == np.array(pattern)[:, :, None]).all()
    assert (drawn.label == np.array([1, 0, 1, 0, 0, 0, 1, 0, 1])[drawn.image]).all()


def test_a_batch_takes_no_row_twice_and_other_batches_take_it_again(tmp_path: Path) -> None:
    image = draw(tmp_path, [ONE, OTHER], [[1, 1], [1, 1]], samples=4).image
    for batch in image.reshape(4, 4):
        assert sorted(batch.tolist()) == [5, 6, 7, 8]  # all of the file's four rows


def recurrence(rows: int, samples: int, batches: Ints) -> Floats:
    """The chance that a test sample is in one of that number of earlier batches of its concept."""
    return 1 - (1 - samples / rows) ** batches


@pytest.mark.slow
def test_a_test_sample_recurs_in_earlier_batches_as_often_as_the_closed_form_says(tmp_path: Path) -> None:
    # Each of 1,000 clients is a trial: two of five rows in each of three batches, and in the last, for tests.
    image = draw(tmp_path, [ONE], [[0] * 1000] * 4, samples=2).image
    seen = [np.isin(image[3, client], image[:3, client]).mean() for client in range(1000)]
    assert recurrence(5, 2, np.array(3)) == pytest.approx(1 - 0.6**3)  # 0.784
    assert np.mean(seen) == pytest.approx(
        0.784, abs=0.03
    )  # three standard deviations if rows are independent


def test_half_of_the_test_samples_of_the_authors_files_have_been_trained_on_in_pattern_y() -> None:
    pattern = named_pattern("Y")
    steps, clients = range(len(pattern) - 1), range(10)
    by_all = [[(pattern[: t + 1] == pattern[t + 1, c]).sum() for c in clients] for t in steps]
    by_itself = [[(pattern[: t + 1, c] == pattern[t + 1, c]).sum() for c in clients] for t in steps]
    assert recurrence(15_000, 500, np.array(by_all)).mean() == pytest.approx(0.53, abs=0.005)
    assert recurrence(15_000, 500, np.array(by_itself)).mean() == pytest.approx(0.09, abs=0.005)


@pytest.mark.slow
def test_every_row_is_as_likely(tmp_path: Path) -> None:
    image = draw(tmp_path, [ONE], [[0] * 50] * 40, samples=2).image
    # 2,000 batches of 2 of 5 rows: 800 of each, with a standard deviation of sqrt(2000 * 0.4 * 0.6) = 22.
    assert np.abs(np.bincount(image.ravel()) - 800).max() < 100


def test_a_batch_hangs_on_its_own_cell_alone(tmp_path: Path) -> None:
    long = draw(tmp_path, [ONE, OTHER], [[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    short = draw(tmp_path, [ONE, OTHER], [[0, 0], [0, 1]])
    assert np.array_equal(long.image[:2, :2], short.image)
    same_concept = draw(tmp_path, [ONE], [[0] * 10] * 2).image.reshape(20, 3)
    assert len(np.unique(same_concept, axis=0)) > 10  # 60 ordered triples there are


def test_another_seed_draws_other_rows(tmp_path: Path) -> None:
    first, second = (draw(tmp_path, [ONE], [[0] * 10], seed=seed).image for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_label_and_features_may_be_named(tmp_path: Path) -> None:
    pool = draw(tmp_path, ["kind,x,y\n7,1,2\n5,3,4\n7,5,6\n"], [[0]], label="kind").pool
    assert pool.pixels.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert pool.labels.tolist() == [1, 0, 1]
    pool = draw(tmp_path, [ONE, OTHER], [[0]], features=["y"]).pool
    assert pool.pixels[:2].tolist() == [[0.5], [1.5]]
    pool = draw(tmp_path, [ONE], [[0]], features=["y", "x"]).pool
    assert pool.pixels[:2].tolist() == [[0.5, 0], [1.5, 1]]  # in the order of `features`


@pytest.mark.parametrize(
    ("one", "other", "ranks"),
    [
        (["up", "down"], ["same", "up"], [2, 0, 1, 2]),
        (["10", "9"], ["100", "9"], [1, 0, 2, 0]),  # as numbers, not as texts
        (["1", "-1"], ["1.0", "0.5"], [2, 0, 2, 1]),  # 1 and 1.0 are one label
        (["true", "false"], ["true", "true"], [1, 0, 1, 1]),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_are_ranked_over_all_files(
    tmp_path: Path, one: list[str], other: list[str], ranks: list[int], suffix: str
) -> None:
    contents = [f"x,label\n0,{first}\n1,{second}\n" for first, second in (one, other)]
    pool = draw(tmp_path, contents, [[0]], samples=2, suffix=suffix).pool
    assert pool.labels.tolist() == ranks
    assert pool.num_labels == len(set(ranks))


def test_a_label_that_only_an_unused_concept_has_is_counted(tmp_path: Path) -> None:
    drawn = draw(tmp_path, ["x,label\n0,b\n1,c\n", "x,label\n0,a\n"], [[0]], samples=2)
    assert sorted(drawn.label.ravel().tolist()) == [1, 2]
    assert drawn.pool.num_labels == 3


@pytest.mark.parametrize(
    ("other", "settings", "problem"),
    [
        ("x,y,label\n", {}, "1.csv: has no rows"),
        ("", {}, "1.csv: is empty"),
        ("x,y,label\n1,2,0\n1,fast,0\n1,2,0\n", {}, "1.csv, row 2: column 'y' must hold numbers, not 'fast'"),
        ("x,y,label\n1,2,0\n1,2,0\n,2,0\n", {}, "1.csv, row 3: x = nan must be a finite number"),
        ("x,y,label\n1,nan,0\n1,2,0\n1,2,0\n", {}, "1.csv, row 1: y = nan must be a finite number"),
        ("x,y,label\n1,2,0\n1,-inf,0\n1,2,0\n", {}, "1.csv, row 2: y = -inf must be a finite number"),
        ("x,y,label\n1,2,0\n1,1e39,0\n1,2,0\n", {}, "1.csv, row 2: y = 1e+39 must lie between"),
        ("x,y,label\n1,2,0\n1,2,\n1,2,1\n", {}, "1.csv, row 2: label is missing"),
        ("x,y,label\n1,2,\n1,2,\n1,2,\n", {}, "1.csv, row 1: label is missing"),
        ("x,y,label\n1,2,a\n1,2,\n1,2,b\n", {}, "1.csv, row 2: label is missing"),
        (
            "x,y,label\n1,2,a\n1,2,b\n1,2,b\n",
            {},
            "1.csv: labels in column 'label' are of kind text, and in 0.csv of kind number",
        ),
        ("x,label\n1,0\n1,0\n1,0\n", {}, "1.csv: has 2 columns, and 0.csv has 3"),
        ("x,z,label\n1,2,0\n1,2,0\n1,2,0\n", {}, "1.csv: column 2 is 'z', and in 0.csv it is 'y'"),
        ("y,x,label\n1,2,0\n1,2,0\n1,2,0\n", {}, "1.csv: column 1 is 'y', and in 0.csv it is 'x'"),
        (OTHER, {"label": "target"}, "0.csv: column 'target' is missing; it has x, y, label"),
        (OTHER, {"features": ["x", "z"]}, "0.csv: column 'z' is missing; it has x, y, label"),
        (OTHER, {"features": ["x", "label"]}, "0.csv: its last column, 'label', would be the label and is"),
        (
            "x,y,label\n1,2,0\n1,2,1\n",
            {},
            "1.csv: has 2 rows, and a batch of trace.samples_per_step = 3 takes each row at most once",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_one_clear_line(
    tmp_path: Path, other: str, settings: dict[str, Any], problem: str
) -> None:
    assert refusal(tmp_path, [ONE, other], [[0, 1]], **settings).startswith(problem)


def test_a_table_of_labels_alone_has_no_features(tmp_path: Path) -> None:
    message = refusal(tmp_path, ["label\n1\n0\n1\n"], [[0]])
    assert message == "0.csv: has no column of features, only the label's, 'label'"


def test_a_missing_label_of_a_parquet_file_is_named_with_its_row(tmp_path: Path) -> None:
    for labels in ([1.0, float("nan")], [1.0, None]):
        pq.write_table(pa.table({"x": [0, 1], "label": labels}), tmp_path / "0.parquet")
        made = Tables(TablesSettings(files=("0.parquet",)))
        with pytest.raises(DataFileError, match=r"0\.parquet, row 2: label is missing"):
            made.draw(np.array([[0]]), 1, RandomStreams(0), lambda path: tmp_path / path)


def test_a_concept_that_nobody_is_in_may_have_few_rows(tmp_path: Path) -> None:
    few = "x,y,label\n1,2,0\n"
    assert draw(tmp_path, [ONE, few], [[0]]).image.max() < 5
    assert "has 1 rows" in refusal(tmp_path, [ONE, few], [[0], [1]])


@pytest.mark.slow
def test_a_continuous_column_is_no_label(tmp_path: Path) -> None:
    rows = [f"0,{value / 10}" for value in range(2**15 + 1)]
    most = "\n".join(["x,label", *rows[:-1]])
    assert draw(tmp_path, [most], [[0]]).pool.num_labels == 2**15
    message = refusal(tmp_path, ["\n".join(["x,label", *rows])], [[0]])
    assert message.startswith("0.csv: column 'label' has 32769 distinct values in all tables together, and")


def test_tables_that_are_too_large_are_refused_before_they_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_CELLS", 18)
    draw(tmp_path, [ONE, OTHER], [[0, 1]])
    monkeypatch.setattr(tables, "MAX_CELLS", 17)
    message = refusal(tmp_path, [ONE, OTHER], [[0, 1]])
    assert "9 rows of all 2 tables of trace.concepts.files x 2 features are more than 17 numbers" in message


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"files": []}, "at least 1 item"),
        ({"files": ["a.csv"], "features": []}, "at least 1 item"),
        ({"files": ["a.csv"], "features": ["x", "y", "x"]}, "column 'x' is named twice"),
        ({"files": ["a.csv"], "features": ["x", "y"], "label": "y"}, "column 'y' is the label, and cannot"),
    ],
)
def test_settings_that_break_a_rule_are_refused_before_a_file_is_read(
    settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        TablesSettings.model_validate(settings)


def test_a_pattern_may_use_as_many_concepts_as_there_are_files() -> None:
    chosen = {"kind": "tables", "files": ["a.csv", "b.csv"]}
    ConceptsSettings.model_validate({"concepts": chosen, "pattern": "Y"})
    with pytest.raises(ValidationError, match="the concepts of 'tables' are 0 to 1"):
        ConceptsSettings.model_validate({"concepts": chosen, "pattern": "F"})


def test_a_trace_of_tables_is_read_from_the_paths_in_its_settings(tmp_path: Path) -> None:
    write(tmp_path / "one.csv.gz", ONE)
    write(tmp_path / "other.csv", OTHER)
    settings = {
        "concepts": {"kind": "tables", "files": ["one.csv.gz", "other.csv"]},
        "pattern": ["00", "01", "11"],
        "samples_per_step": 3,
        "rounds_per_step": 1,
    }
    trace = Concepts(ConceptsSettings.model_validate(settings)).build(
        context(2, 0, lambda path: tmp_path / path)
    )
    table = trace.columns()
    assert (trace.num_clients, trace.num_labels, trace.sample_shape, len(trace)) == (2, 2, (2,), 24)
    # Client 1 is in concept 1, whose rows begin at 5, from step 1 on.
    drifted = (table.client == 1) & (table.split == 0) & (table.arrival == 1)
    assert (table.image[drifted] >= 5).all()


@pytest.mark.slow
def test_the_authors_files_of_sea_label_by_the_last_two_features(published: Path) -> None:
    files = tuple(f"tabular/feddrift_sea_concept{concept}.csv.gz" for concept in (1, 2, 3, 4))
    drawn = Tables(TablesSettings(files=files)).draw(
        np.array([[0, 1, 2, 3]]), 500, RandomStreams(0), lambda path: published / path
    )
    pool = drawn.pool
    assert (len(pool.labels), pool.shape, pool.num_labels) == (60_000, (3,), 2)
    for concept, threshold in enumerate((8, 9, 7, 9)):
        rows = slice(15_000 * concept, 15_000 * (concept + 1))
        above = pool.pixels[rows, 1].astype(np.float64) + pool.pixels[rows, 2] > threshold
        # A tenth of the labels are noise, with a standard deviation of 0.0024.
        assert (pool.labels[rows] != above).mean() == pytest.approx(0.1, abs=0.01)
