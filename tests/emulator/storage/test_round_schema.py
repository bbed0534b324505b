from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.storage.round_schema import Logged, RoundSchema
from emulator.storage.runlog import SCHEMA, RoundRecord, RunLog
from tests.experiments.synthetic_runs import a_record

PERSONAL = (
    *("personal_accuracy", "personal_accuracy_std", "trained_accuracy", "pooled_accuracy"),
    *("memory_age", "memory_age_90", "without_memory", "personal_accuracy_by_age", "clients_by_age"),
)

DETECTION = ("decided", "flagged", "clipped")


def test_the_kinds_of_a_line_are_the_types_of_the_fields() -> None:
    null = " | None"
    assert {item.line_name: item.kind + null * item.may_miss for item in SCHEMA.fields} == {
        **dict.fromkeys(("round", "step", "changed", "reported", "moved"), "int"),
        **dict.fromkeys(("nonfinite_reports", "nonfinite_copies"), "int"),
        **dict.fromkeys(("opened_s", "dispatched_s", "closed_s", "models_sent"), "float"),
        **dict.fromkeys(("download_bytes", "upload_bytes", "control_bytes"), "float"),
        **dict.fromkeys(
            ("participants", "kept", "dropped", "clusters", "rejected", "crashed", "forgotten"),
            "list[int]",
        ),
        "reclustered": "bool",
        **dict.fromkeys(("train_loss", "accuracy", "accuracy_std", "loss"), "float | None"),
        **dict.fromkeys(("mean_client_distance", "unclustered_distance"), "float | None"),
        **dict.fromkeys(("adaptation_samples", "adaptation_s"), "float | None"),
        "accuracy_omitting_drift": "float | None",
        **dict.fromkeys(("scored_clients", "drift_cells", "holding"), "int | None"),
        **dict.fromkeys(("kmeans_clients", "silhouette_clients"), "int | None"),
        **dict.fromkeys(("steps", "largest_staleness", "in_flight"), "int | None"),
        "staleness": "float | None",
        "trigger": "Trigger | PairwiseTrigger | NamedNumbers | None",
        **dict.fromkeys(PERSONAL[:-2], "float | None"),
        **dict.fromkeys(("silhouettes", *PERSONAL[-2:]), "dict[int, float | None] | None"),
        **dict.fromkeys(("decided", "flagged"), "dict[str, list[int]] | None"),
        "clipped": "dict[str, int] | None",
        "accuracy_by_concept": "dict[int, list[float]] | None",
        "noted": "dict[str, float] | None",
        **dict.fromkeys(("members", "serving", "client_label", "client_accuracy"), "array | None"),
    }
    assert SCHEMA.arrays == {
        **dict.fromkeys(("members", "serving", "client_label"), np.int64),
        "client_accuracy": np.float32,
    }
    assert SCHEMA.scored == {"client_accuracy", "client_label"}


def test_fields_with_a_default_are_left_out_of_a_line_that_would_have_it() -> None:
    assert SCHEMA.optional == (
        ("nonfinite_reports", 0),
        *((name, None) for name in ("holding", "client_label", "adaptation_samples", "adaptation_s")),
        ("nonfinite_copies", 0),
        *((name, None) for name in ("steps", "staleness", "largest_staleness", "in_flight", *PERSONAL)),
        ("forgotten", []),
        *((name, None) for name in (*DETECTION, "accuracy_by_concept", "noted")),
    )


@dataclass(frozen=True, eq=False)
class Longer(RoundRecord):
    made_up_s: Annotated[float, Logged(least=2, after="accuracy")] = 2.0
    retried: Annotated[list[int], Logged(in_a_line="again")] = field(default_factory=list)


def test_a_new_quantity_is_one_line_of_the_table(tmp_path: Path) -> None:
    longer = RoundSchema.of(Longer)
    assert longer.names == (*SCHEMA.names, "made_up_s", "again")
    assert [item.kind for item in longer.fields[-2:]] == ["float", "list[int]"]
    assert longer.optional == (*SCHEMA.optional, ("made_up_s", 2.0), ("again", []))
    floats = [item.name for item in longer.columns("float")]
    assert floats[floats.index("accuracy") + 1] == "made_up_s"
    assert longer.columns("list[int]")[-1].name == "retried"
    with RunLog(tmp_path / "log.jsonl", {}) as log:
        log.append(a_record(0))
    _, line = (tmp_path / "log.jsonl").read_bytes().splitlines()
    assert longer.parse(line) == SCHEMA.parse(line)
    assert longer.parse(line[:-1] + b',"made_up_s":2,"again":[1]}')["again"] == [1]
    with pytest.raises(ValueError, match=r"made_up_s = 1.5 must be at least 2"):
        longer.parse(line[:-1] + b',"made_up_s":1.5}')


@dataclass
class Unknown:
    found: Floats


def test_a_declaration_that_cannot_be_read_back_is_refused() -> None:
    with pytest.raises(TypeError, match="found: a field of a round cannot be"):
        RoundSchema.of(Unknown)
