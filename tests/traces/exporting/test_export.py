"""What is exported of a trace, against what its clients hold, and built again as a trace folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.seeding import RandomStreams
from tests.traces.files.written import write_trace
from tests.traces.tiny import context, daily_rows, write_trace_folder
from traces.arrivals import SPLITS
from traces.building import Request
from traces.building.table.build import Table
from traces.building.table.settings import TableSettings
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.exporting import held, parquet
from traces.exporting.parquet import class_names, export_parquet
from traces.sources.concepts import Concepts, ConceptsSettings
from traces.sources.file import File, FileSettings
from traces.sources.mixed_images import Digits, DigitsSettings
from traces.trace import Trace

STEPS = 6

HELD = {"what": {"swap": [[0, 1]]}, "at_step": 2, "clients": {"share": 0.5}, "on": "held"}
ARRIVING = {"what": {"swap": [[0, 1]]}, "at_step": 3, "clients": {"share": 0.5}, "on": "arrivals"}
ROTATED = {"what": {"rotate": 90}, "at_step": 2, "clients": {"share": 0.5}, "on": "held"}


def of_days(folder: Path, **settings: Any) -> Trace:
    """Eight samples of each of two clients on each of eight days, of which three are kept."""
    write_trace_folder(folder / "days", daily_rows(2, 8))
    given = {"folder": str(folder / "days"), "rounds_per_step": 1, "retain_rounds": 3, "test_share": 0.25}
    return File(FileSettings.model_validate({**given, **settings})).build(context(STEPS))


def digits(**settings: Any) -> Callable[[Path], Trace]:
    given = {"clients": 3, "samples_per_step": 4, "test_samples_per_step": 2}
    given |= {"rounds_per_step": 1, "retain_rounds": 3}
    settings = {**given, **settings}
    return lambda folder: Digits(DigitsSettings.model_validate(settings)).build(context(STEPS))


def expiring(folder: Path) -> Trace:
    """Clients of which all samples of a day expire after one more day than those of the day before."""
    day = np.arange(7)
    at = [date(2015, 1, 1) + timedelta(days=int(number)) for number in day]
    until = [date(2015, 1, 2) + timedelta(days=int(2 * number)) for number in day]
    columns: dict[str, Any] = {"client": ["ann"] * 7 + ["bob"] * 7, "label": [*day % 2, *day % 3]}
    columns |= {"sample": np.arange(14), "time": at * 2, "expiry": [*until[:-1], None] * 2}
    columns |= {"split": (["train", "train", "test"] * 3)[:7] + (["test", "train", "train"] * 3)[:7]}
    write_trace(folder / "t", columns, np.arange(28, dtype=np.float32).reshape(14, 2), {"version": 2})
    settings = FileSettings(folder=str(folder / "t"), rounds_per_step=1, retain_rounds=1)
    return File(settings).build(context(STEPS))


def changed(source: Callable[[Path], Trace], *changes: Any) -> Callable[[Path], Trace]:
    given = [Change.model_validate(change) for change in changes]
    return lambda folder: with_changes(source(folder), given, STEPS, RandomStreams(0))


def concepts(folder: Path) -> Trace:
    settings = {"concepts": "sea", "samples_per_step": 3, "rounds_per_step": 1}
    settings["pattern"] = ("000", "001", "011", "110", "110", "101", "101")
    return Concepts(ConceptsSettings.model_validate(settings)).build(context(STEPS))


def static(folder: Path) -> Trace:
    given = {"clients": 3, "partition": {"kind": "dirichlet", "alpha": 0.5}, "rounds_per_step": 1}
    return Digits(DigitsSettings.model_validate(given)).build(context(STEPS))


LABEL_MIX = {"kind": "label_mix", "mixes": 3, "labels_per_mix": 2, "move_probability": 0.3}

TRACES: dict[str, Callable[[Path], Trace]] = {
    "a time folder with retention": of_days,
    "tests on what arrives next": lambda folder: of_days(folder, test_on="next"),
    "samples that expire": expiring,
    "labels that drift": digits(drift=LABEL_MIX, noise=0.1),
    "static images": static,
    "a swap of what is held": changed(digits(drift=LABEL_MIX), HELD),
    "a swap of what arrives": changed(of_days, ARRIVING),
    "two changes": changed(digits(), ROTATED, ARRIVING),
    "changes of samples that expire": changed(expiring, HELD, ARRIVING),
    "flipped labels": lambda folder: digits()(folder).with_flipped_labels(np.array([1])),
    "concepts": concepts,
}


def export(trace: Trace, path: Path) -> pa.Table:
    export_parquet(trace, STEPS, path, "drawn by a test")
    return pq.read_table(path)


def is_held(table: pa.Table, step: int) -> np.ndarray:
    until = table["expiry"].fill_null(2**31 - 1).to_numpy()
    held: np.ndarray = (table["step"].to_numpy() <= step) & (step < until)
    return held


@pytest.mark.parametrize("name", TRACES)
def test_rows_are_what_clients_hold_at_every_step_also_built_again(tmp_path: Path, name: str) -> None:
    trace = TRACES[name](tmp_path)
    table = export(trace, tmp_path / "trace.parquet")
    names = class_names(trace)
    shape = trace.sample_shape
    features = np.array(table["features"].to_pylist(), dtype=np.float32).reshape(len(table), *shape)
    known = trace.client_names if trace.client_names is not None else range(trace.num_clients)
    again = built_again(table, tmp_path)
    kept = [is_held(table, step) for step in range(STEPS)]
    if trace.concepts is not None:
        assert again.concepts is not None
        assert again.concepts[:STEPS].tolist() == trace.concepts[:STEPS].tolist()
    client, split, label = (table[key].to_pylist() for key in ("client", "split", "label"))
    for step in range(STEPS):
        for number, who in enumerate(known):
            for part in SPLITS:
                rows = trace.held(np.array([number]), part, step).rows(0)
                expected = Counter(
                    (sample.tobytes(), one)
                    for sample, one in zip(trace.features(rows), trace.labels(rows).tolist(), strict=True)
                )
                of = [row for row in np.flatnonzero(kept[step]) if (client[row], split[row]) == (who, part)]
                assert Counter((features[row].tobytes(), label[row]) for row in of) == expected
                again_at = list(map(str, again.client_names)).index(str(who))  # type: ignore[arg-type]
                labels = again.labels(again.held(np.array([again_at]), part, step).rows(0))
                counts = Counter(again.label_names[one] for one in labels.tolist())
                assert counts == Counter(names[one] for one in trace.labels(rows).tolist())


def built_again(table: pa.Table, folder: Path) -> Trace:
    """The trace folder of the exported table `folder/trace.parquet`, played."""
    columns = {name: name for name in ("client", "step", "expiry", "split", "label", "concept")}
    settings = {key: name for key, name in columns.items() if name in table.column_names}
    builder = Table(TableSettings.model_validate({**settings, "features": ["features"]}))
    builder.build(Request(folder / "trace.parquet", folder / "again"))
    return File(FileSettings(folder=str(folder / "again"), rounds_per_step=1)).build(context(STEPS))


def test_a_row_is_a_sample_with_its_steps_and_its_concept(tmp_path: Path) -> None:
    plain, changes = of_days(tmp_path), [Change.model_validate(change) for change in (HELD, ARRIVING)]
    sent_anew, arriving = (with_changes(plain, [change], STEPS, RandomStreams(0)) for change in changes)
    assert sent_anew.concepts is not None
    [someone] = np.flatnonzero(sent_anew.concepts[-1]).tolist()
    table = export(sent_anew, tmp_path / "held.parquet").to_pandas()
    of = table[(table.client == someone) & (table.split == "train")]
    # What the client held at step 2 was sent anew then, of the other concept, and kept the age of samples.
    sent = of[of.arrival < of.step]
    assert set(sent.step) == {2}
    assert set(sent.arrival) == {0, 1}
    assert (sent.expiry == sent.arrival + 3).all()
    assert (of[of.step >= 2].concept == 1).all()
    assert (of[of.step < 2].concept == 0).all()
    others = table[table.client != someone]
    assert (others.step == others.arrival).all()
    assert len(others) == 8 * 8
    # A change of what arrives moves rows of the table, and sends nothing anew: a sample stays one row.
    table = export(arriving, tmp_path / "new.parquet").to_pandas()
    assert (table.step == table.arrival).all()
    assert len(table) == 2 * 8 * 8
    assert sorted(table[table.concept == 1].step.unique()) == [3, 4, 5]


def test_the_schema_names_classes_clients_and_the_shape_of_samples(tmp_path: Path) -> None:
    table = export(expiring(tmp_path), tmp_path / "t.parquet")
    assert set(table["client"].to_pylist()) == {"ann", "bob"}
    assert table.schema.field("features").type == pa.list_(pa.field("element", pa.float32()), 2)
    # Expiries after the run are those of the folder; what it holds to the end has none.
    assert max(table["expiry"].drop_null().to_pylist()) == 11
    metadata = {key: json.loads(value) for key, value in table.schema.metadata.items()}
    features = metadata[b"huggingface"]["info"]["features"]
    assert list(features) == table.column_names
    assert features["label"] == {"names": ["0", "1", "2"], "_type": "ClassLabel"}
    assert metadata[b"driftscale"] == {"version": 1, "shape": [2], "origin": "drawn by a test"}
    image = export(digits()(tmp_path), tmp_path / "digits.parquet").schema
    row = pa.list_(pa.field("element", pa.float32()), 8)
    assert image.field("features").type == pa.list_(pa.field("element", row), 8)


def test_the_bytes_do_not_depend_on_how_many_clients_are_looked_at_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = changed(digits(drift=LABEL_MIX), HELD)(tmp_path)
    whole = export(trace, tmp_path / "whole.parquet")
    assert (tmp_path / "whole.parquet").read_bytes() == again_bytes(trace, tmp_path)
    monkeypatch.setattr(held, "MOST_RANGES", 1)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 5)
    assert export(trace, tmp_path / "pieces.parquet").equals(whole)


def again_bytes(trace: Trace, folder: Path) -> bytes:
    export(trace, folder / "twice.parquet")
    return (folder / "twice.parquet").read_bytes()


def test_what_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = digits()(tmp_path)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace, "features", fail)
    with pytest.raises(OSError, match="No space"):
        export(trace, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []
