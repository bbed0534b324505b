import pyarrow as pa
import pyarrow.parquet as pq

from emulator.messages import NamedNumbers, Trigger
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


def test_the_columns_and_their_order_are_these(tmp_path):
    path = tmp_path / "rounds.parquet"
    write_rounds_table(path, [a_run("global", 0, [0.25])])
    assert [(field.name, str(field.type)) for field in pq.read_schema(path)] == [
        ("arm", "string"),
        *((name, "int64") for name in ("seed", "round", "step", "changed", "reported", "moved")),
        *((name, "int64") for name in ("kmeans_clients", "silhouette_clients", "scored_clients")),
        *((name, "int64") for name in ("drift_cells", "holding")),
        *((name, "int64") for name in ("steps", "largest_staleness", "in_flight")),
        ("reclustered", "bool"),
        *((name, "double") for name in ("opened_s", "dispatched_s", "closed_s", "train_loss", "accuracy")),
        *((name, "double") for name in ("accuracy_std", "accuracy_omitting_drift", "loss")),
        *((name, "double") for name in ("mean_client_distance", "unclustered_distance")),
        *((name, "double") for name in ("download_bytes", "upload_bytes", "control_bytes", "models_sent")),
        *((f"adaptation_{name}", "double") for name in ("samples", "s")),
        ("staleness", "double"),
        *((f"personal_accuracy{name}", "double") for name in ("", "_std")),
        *((name, "double") for name in ("trained_accuracy", "pooled_accuracy")),
        *((name, "double") for name in ("memory_age", "memory_age_90", "without_memory")),
        *((f"trigger_{name}", "double") for name in ("shift", "mean_distance", "threshold")),
        ("trigger_clusters", "int64"),
        ("trigger_fired", "bool"),
        *((f"trigger_{name}", "double") for name in ("largest_distance", "delta")),
        ("silhouettes", "map<int64, double ('silhouettes')>"),
        *((f"num_{name}", "int64") for name in ("participants", "kept", "dropped", "crashed", "rejected")),
        *((f"num_{name}", "int64") for name in ("forgotten", "clusters", "abandoned")),
    ]


def test_numbers_that_a_trigger_named_have_columns_at_the_end(tmp_path):
    path = tmp_path / "rounds.parquet"
    runs = [
        a_run("global", 0, [0.25]),
        a_run("fielding", 0, [0.5], trigger=NamedNumbers({"spread": 0.5, "far": 1.0}, 2, False)),
        a_run("fielding", 1, [0.5], trigger=NamedNumbers({"near": 2, "far": [1.0, 3.0]}, 2, True)),
    ]
    write_rounds_table(path, runs)
    table = pq.read_table(path)
    assert table.column_names[-4:] == ["num_abandoned", "trigger.spread", "trigger.far", "trigger.near"]
    assert table["trigger.spread"].to_pylist() == [None, 0.5, None]
    assert table["trigger.near"].to_pylist() == [None, None, 2.0]
    assert table["trigger.far"].to_pylist() == [None, [1.0], [1.0, 3.0]]
    assert table["trigger_clusters"].to_pylist() == [None, 2, 2]
    assert table["trigger_fired"].to_pylist() == [None, False, True]
    assert table["trigger_shift"].null_count == 3


def test_numbers_that_parts_noted_have_columns_behind_those_of_triggers(tmp_path):
    path = tmp_path / "rounds.parquet"
    runs = [
        a_run("global", 0, [0.25]),
        a_run("flash", 0, [0.5], noted={"disparity": 2, "epochs": 1.5}),
        a_run("fielding", 0, [0.5], trigger=NamedNumbers({"spread": 0.5}, 2, False)),
    ]
    write_rounds_table(path, runs)
    table = pq.read_table(path)
    assert table.column_names[-4:] == ["num_abandoned", "trigger.spread", "noted.disparity", "noted.epochs"]
    assert table["noted.disparity"].to_pylist() == [None, 2.0, None]


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
