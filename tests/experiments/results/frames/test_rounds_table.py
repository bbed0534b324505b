import pyarrow as pa
import pyarrow.parquet as pq

from emulator.messages import Trigger
from experiments.results.frames.rounds_table import write_rounds_table
from tests.experiments.synthetic_runs import a_run

FAULTY = {"completed": [0], "crashed": [3], "rejected": [0, 1]}


def test_every_round_of_every_run_is_a_row(tmp_path):
    path = tmp_path / "rounds.parquet"
    write_rounds_table(path, [a_run("global", 0, [0.25, None]), a_run("fielding", 1, [0.5], **FAULTY)])
    rows = pq.read_table(path).to_pylist()
    assert [(row["arm"], row["seed"], row["round"], row["accuracy"]) for row in rows] == [
        ("global", 0, 0, 0.25),
        ("global", 0, 1, None),
        ("fielding", 1, 0, 0.5),
    ]
    assert [row["num_kept"] for row in rows] == [3, 3, 1]
    assert [row["num_abandoned"] for row in rows] == [0, 0, 2]
    assert [(row["num_crashed"], row["num_rejected"]) for row in rows] == [(0, 0), (0, 0), (1, 2)]


def test_what_a_trigger_compared_has_columns_of_its_own(tmp_path):
    path = tmp_path / "rounds.parquet"
    reclustering = {"trigger": Trigger(0.125, 1.5, None, 3, False), "silhouettes": {2: 0.5, 3: None}}
    write_rounds_table(path, [a_run("global", 0, [0.25]), a_run("fielding", 0, [0.5], **reclustering)])
    without, row = pq.read_table(path).to_pylist()
    names = ("shift", "mean_distance", "threshold", "clusters", "fired")
    assert [row[f"trigger_{name}"] for name in names] == [0.125, 1.5, None, 3, False]
    assert [without[f"trigger_{name}"] for name in names] == [None] * 5
    assert (row["silhouettes"], without["silhouettes"]) == ([(2, 0.5), (3, None)], None)


def test_who_holds_data_is_null_where_all_clients_do(tmp_path):
    path = tmp_path / "rounds.parquet"
    write_rounds_table(path, [a_run("global", 0, [0.25]), a_run("global", 1, [0.25], holding=3)])
    assert pq.read_table(path)["holding"].to_pylist() == [None, 3]


def test_columns_keep_their_types_when_nothing_was_measured_or_run(tmp_path):
    path = tmp_path / "rounds.parquet"
    write_rounds_table(path, [a_run("global", 0, [None])])
    schema = pq.read_schema(path)
    assert schema.field("accuracy").type == pa.float64()
    write_rounds_table(path, [])
    assert pq.read_schema(path) == schema
