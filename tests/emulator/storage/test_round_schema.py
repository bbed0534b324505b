from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.storage.round_schema import TRIGGER_KINDS, Logged, RoundSchema
from emulator.storage.runlog import SCHEMA, RoundRecord

PERSONAL = (
    *("personal_accuracy", "personal_accuracy_std", "trained_accuracy", "pooled_accuracy"),
    *("memory_age", "memory_age_90", "without_memory", "personal_accuracy_by_age", "clients_by_age"),
)

DETECTION = ("decided", "flagged", "clipped")


def test_the_kinds_of_a_line_are_the_types_of_the_fields() -> None:
    assert (
        {name: kind.name for name, kind in SCHEMA.kinds.items()}
        == {
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
            "trigger": "Trigger | PairwiseTrigger | None",  # as it has always been named in an error
            **dict.fromkeys(PERSONAL[:-2], "float | None"),
            **dict.fromkeys(("silhouettes", *PERSONAL[-2:]), "dict[int, float | None] | None"),
            **dict.fromkeys(("decided", "flagged"), "dict[str, list[int]] | None"),
            "clipped": "dict[str, int] | None",
            "accuracy_by_concept": "dict[int, list[float]] | None",
            "noted": "dict[str, float] | None",
        }
    )
    assert SCHEMA.arrays == {
        **dict.fromkeys(("members", "serving", "client_label"), np.int64),
        "client_accuracy": np.float32,
    }
    assert SCHEMA.scored == {"client_accuracy", "client_label"}
    assert [{name: kind.name for name, kind in kinds.items()} for kinds in TRIGGER_KINDS.values()] == [
        {
            "shift": "float",
            "mean_distance": "float | None",
            "threshold": "float | None",
            "clusters": "int",
            "fired": "bool",
        },
        {"largest_distance": "float | None", "delta": "float", "clusters": "int", "fired": "bool"},
    ]


def test_lines_need_the_fields_of_the_first_version_alone() -> None:
    since = {item.line_name: item.logged.since for item in SCHEMA.fields if item.logged.since > 1}
    assert since == {
        **dict.fromkeys(("kmeans_clients", "silhouette_clients", "client_accuracy"), 2),
        **dict.fromkeys(("rejected", "crashed"), 3),
        **dict.fromkeys(("trigger", "silhouettes"), 4),
        "nonfinite_reports": 5,
        "holding": 6,
        "client_label": 7,
        **dict.fromkeys(("adaptation_samples", "adaptation_s", "nonfinite_copies"), 8),
        **dict.fromkeys(("steps", "staleness", "largest_staleness", "in_flight"), 9),
        **dict.fromkeys((*PERSONAL, "forgotten"), 10),
        **dict.fromkeys((*DETECTION, "accuracy_by_concept"), 11),
        "noted": 12,
    }
    assert SCHEMA.needed == SCHEMA.known - set(since)
    omitted = ("holding", "client_label", "adaptation_samples", "adaptation_s")
    nones = tuple((name, None) for name in omitted)
    later = ("steps", "staleness", "largest_staleness", "in_flight", *PERSONAL)
    of_steps = tuple((name, None) for name in later)
    assert SCHEMA.omitted == (
        ("nonfinite_reports", 0),
        *nones,
        ("nonfinite_copies", 0),
        *of_steps,
        ("forgotten", []),
        *((name, None) for name in (*DETECTION, "accuracy_by_concept", "noted")),
    )


@dataclass(frozen=True, eq=False)
class Longer(RoundRecord):
    waited_s: Annotated[float, Logged(since=8, least=2, omitted=True, after="accuracy")] = 2.0
    retried: Annotated[list[int], Logged(since=8, in_a_line="again")] = field(default_factory=list)


def test_a_new_quantity_is_one_line_of_the_table() -> None:
    longer = RoundSchema.of(Longer)
    assert longer.names == (*SCHEMA.names, "waited_s", "again")
    assert (longer.kinds["waited_s"].name, longer.kinds["again"].name) == ("float", "list[int]")
    assert longer.needed == SCHEMA.needed
    assert longer.omitted == (*SCHEMA.omitted, ("waited_s", 2.0))
    floats = [item.name for item in longer.columns("float")]
    assert floats[floats.index("accuracy") + 1] == "waited_s"
    assert longer.columns("list[int]")[-1].name == "retried"
    line = {"round": 0, "step": 0, "opened_s": 0, "dispatched_s": 0, "closed_s": 0, "waited_s": 1.5}
    with pytest.raises(ValueError, match=r"waited_s = 1.5 must be at least 2"):
        longer.refuse_wrong(line, {})


@dataclass
class Unknown:
    found: Floats


@dataclass
class Late:
    found: Annotated[int, Logged(since=2)]


@dataclass
class Early:
    found: int = 0


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Unknown, "found: a field of a round cannot be"),
        (Late, "found: fields since version 1, and no others, have no default"),
        (Early, "found: fields since version 1, and no others, have no default"),
    ],
)
def test_a_declaration_that_cannot_be_read_back_is_refused(record: type, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        RoundSchema.of(record)
