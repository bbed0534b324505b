"""The readers under fuzzing: valid files of each, and a function that reads an input and uses the result.

The result is used because what a reader accepts must not break its callers: devices are drawn from a profile,
an availability is queried, a log is summarised.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import tomli_w

from tests.experiments.small import DEVICES, DRIFTING, REPLAY, SMALL, WINDOWS
from tests.reliability.mutations import ODD_VALUES, odd_document

SMALL_BYTES = 2**28
"""Bound on the bytes allocated for an input of some kilobytes, unless its reader states a larger one: the
interpreter may need hundreds of bytes for one byte of a document."""

Odd = Callable[[random.Random], bytes]


@dataclass(frozen=True)
class Reader:
    """A reader under fuzzing."""

    suffix: str
    make_seeds: Callable[[], tuple[bytes, ...]]
    run: Callable[[Path, Path, int], None]
    """Called with the folder, the file in it, and the number of the input."""

    words: tuple[bytes, ...] = ()
    make_odd: Odd | None = None
    surround: Callable[[Path], None] = field(default=lambda folder: None)
    most_bytes: int = SMALL_BYTES
    name: str | None = None
    """The file name, if it matters."""

    @cached_property
    def seeds(self) -> tuple[bytes, ...]:
        return self.make_seeds()

    def odd(self, draw: random.Random) -> bytes | None:
        return self.make_odd(draw) if self.make_odd else None

    def prepare(self, folder: Path) -> Path:
        self.surround(folder)
        return folder

    def read(self, surroundings: Path, content: bytes, number: int) -> None:
        file = surroundings / (self.name or f"input{self.suffix}")
        file.write_bytes(content)
        self.run(surroundings, file, number)


# -- documents ----------------------------------------------------------------------------------------------


def odd_toml(*documents: dict[str, Any]) -> Odd:
    def odd(draw: random.Random) -> bytes:
        document = odd_document(copy.deepcopy(draw.choice(documents)), draw)
        try:
            return tomli_w.dumps(document).encode()
        except (TypeError, ValueError, RecursionError, AttributeError):  # the writer's own limits
            return tomli_w.dumps(documents[0]).encode()

    return odd


def odd_json(make: Callable[[], tuple[bytes, ...]]) -> Odd:
    """A valid file of one JSON object per line, of which one line has odd values."""
    values = (
        *ODD_VALUES,
        None,
        float("nan"),
        float("inf"),
        10**30,
        [None],
        {"dtype": "<i4", "zlib": "eJwDAAAAAAE="},
    )

    def odd(draw: random.Random) -> bytes:
        lines = [json.loads(line) for line in draw.choice(make()).splitlines()]
        number = draw.randrange(len(lines))
        lines[number] = odd_document(lines[number], draw, values)
        return "".join(json.dumps(line) + "\n" for line in lines).encode()

    return odd


# -- configurations -----------------------------------------------------------------------------------------

REPLAYING = {**SMALL, "trace": REPLAY}
TABLES = {
    **DRIFTING,
    "trace": {**DRIFTING["trace"], "concepts": {"kind": "tables", "files": ["a.csv", "b.csv", "c.csv"]}},
    "devices": {"profile": "devices.csv", "availability": "windows.csv"},
    "parts": {"solver": ["sgd"], "schedules": []},
}
CONFIGURATIONS = (SMALL, DRIFTING, REPLAYING, TABLES)


def read_configuration(folder: Path, file: Path, number: int) -> None:
    from experiments.reading import load_experiment

    load_experiment(file).to_toml()


# -- device profiles ----------------------------------------------------------------------------------------

MIXTURE: dict[str, Any] = {
    "reference_model": "MobileNet v2 at 224x224",
    "reference_flops": 0.6e9,
    "source": "measured",
    "class": [
        {
            "name": "phone",
            "share": 0.8,
            "seconds_per_sample": {"quantiles": [[0, 0.05], [0.5, 0.12], [1, 0.6]]},
            "bandwidth_kibit_per_s": {"quantiles": "bandwidth.csv"},
            "latency_s": 0.03,
        },
        {
            "name": "board",
            "share": 0.2,
            "compute_ms_per_sample": {"discrete": [[44, 2], [79, 1]]},
            "download_kbps": {"lognormal": {"median": 5000, "sigma": 0.5, "clip": [100, 10000]}},
            "upload_kbps": 2500,
        },
    ],
}


def beside_the_mixture(folder: Path) -> None:
    (folder / "bandwidth.csv").write_text("quantile,value\n0,10\n0.5,100\n1,1000\n", encoding="utf-8")


def read_profile_file(folder: Path, file: Path, number: int) -> None:
    from device_profiles import read_profile

    with np.errstate(all="ignore"):
        profile = read_profile(file)
        profile.draw(50, np.random.default_rng(0)).quantiles([0.5])


# -- tables -------------------------------------------------------------------------------------------------

LABELS = "place,day,kind,seen\n" + "".join(
    f"{place},2021-01-{day:02d},{kind},{day}\n"
    for place in ("here", "there")
    for day in (1, 2, 3)
    for kind in ("x", "y", "z")
)
CONCEPT_ROWS = "x1,x2,x3,label\n" + "".join(f"{n},{n / 7},{-n},{n % 3}\n" for n in range(20))
COLUMNS = (
    *(b"device_id", b"seconds_per_sample", b"download_bytes_per_s", b"upload_bytes_per_s", b"latency_s"),
    *(b"start_s", b"end_s", b"period_s", b"trace_end_s", b"origin_s", b"place", b"day", b"kind", b"seen"),
    *(b"x1", b"label"),
)


def as_parquet(text: str, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.csv.read_csv(io.BytesIO(text.encode())), out, **options)
    return out.getvalue()


def csv_seeds(*texts: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: tuple(text.encode() for text in texts)


def gzip_seeds(*texts: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: tuple(gzip.compress(text.encode(), mtime=0) for text in texts)


def parquet_seeds(*texts: str) -> Callable[[], tuple[bytes, ...]]:
    def seeds() -> tuple[bytes, ...]:
        plain = {"compression": "NONE", "use_dictionary": False, "store_schema": False}
        return tuple(
            as_parquet(text, **options) for text in texts for options in ({}, plain, {"compression": "GZIP"})
        )

    return seeds


def odd_csv(text: str) -> Odd:
    """A CSV table with odd cells and rows."""
    cells = (
        "",
        "0",
        "-1",
        "nan",
        "inf",
        "1e308",
        "1e-320",
        "1e999",
        "a",
        "TRUE",
        "2021-01-01",
        "9" * 30,
        '"',
        " 1",
    )

    def odd(draw: random.Random) -> bytes:
        rows = [line.split(",") for line in text.splitlines()]
        for _ in range(draw.choice((1, 1, 2, 5))):
            row = draw.choice(rows)
            match draw.randrange(8):
                case 0 if len(row) > 1:
                    del row[draw.randrange(len(row))]
                case 1:
                    row.insert(draw.randrange(len(row) + 1), draw.choice(cells))
                case 2:
                    rows.append(list(row))
                case 3:
                    column, cell = draw.randrange(len(rows[0])), draw.choice(cells)
                    for data_row in rows[1:]:
                        if column < len(data_row):
                            data_row[column] = cell
                case _ if row:
                    row[draw.randrange(len(row))] = draw.choice(cells)
        return draw.choice(("\n", "\n", "\r\n", "\r")).join(",".join(row) for row in rows).encode()

    return odd


def odd_gzip(text: str) -> Odd:
    odd = odd_csv(text)
    return lambda draw: gzip.compress(odd(draw), mtime=0)


def odd_parquet(*names: str) -> Odd:
    """A well-formed Parquet file of these columns, with odd types and values."""

    def odd(draw: random.Random) -> bytes:
        rows = draw.choice((0, 1, 2, 5, 5, 40))
        chosen = [name for name in names if draw.random() < 0.95]
        if draw.random() < 0.2:
            chosen.append(draw.choice((*names, "other", "", "é", "a" * 2000)))
        columns = [_odd_column(rows, draw) for _ in chosen]
        table = pa.Table.from_arrays(columns, names=chosen)
        if draw.random() < 0.3:
            keys = ("reference_model", "reference_flops", "source")
            table = table.replace_schema_metadata(
                {key: draw.choice(("1e9", "nan", "", "<b>")) for key in keys}
            )
        out = io.BytesIO()
        pq.write_table(
            table,
            out,
            compression=draw.choice(("NONE", "SNAPPY", "GZIP", "ZSTD")),
            use_dictionary=draw.random() < 0.5,
            store_schema=draw.random() < 0.7,
            data_page_version=draw.choice(("1.0", "2.0")),
            row_group_size=draw.choice((1, 3, 1000)),
        )
        return out.getvalue()

    return odd


def _odd_column(rows: int, draw: random.Random) -> pa.Array[Any]:
    floats = (0.0, 1.0, -1.0, 0.5, 60.0, float("nan"), float("inf"), 1e308, 5e-324, 1e300)
    ints = (0, 1, 2, 3, 60, -1, 2**31, 2**63 - 1, -(2**63))
    steady = [float(n) for n in range(rows)]
    kind = draw.randrange(16)
    if kind < 4:
        return pa.array([n + draw.random() for n in steady])
    if kind < 6:
        return pa.array(list(range(rows)), pa.int64())
    values: list[tuple[Any, pa.DataType]] = [
        ([draw.choice(floats) for _ in steady], pa.float64()),
        ([draw.choice((*ints, None)) for _ in steady], pa.int64()),
        ([draw.choice(("a", "b", "", "1", None, "é" * 50)) for _ in steady], pa.string()),
        ([draw.choice((b"a", b"\xff", None)) for _ in steady], pa.binary()),
        ([draw.choice((True, False, None)) for _ in steady], pa.bool_()),
        ([None for _ in steady], pa.null()),
        ([[1] * draw.randrange(3) for _ in steady], pa.list_(pa.int64())),
        ([{"x": 1} for _ in steady], pa.struct({"x": pa.int64()})),
        ([draw.choice((0, 10**6, -(10**9))) for _ in steady], pa.date32()),
        ([draw.choice(ints) for _ in steady], pa.timestamp(draw.choice(("us", "ns", "ms")))),
        ([draw.choice(ints) for _ in steady], pa.timestamp(draw.choice(("us", "ns", "ms")), "UTC")),
        ([draw.choice((0, 2**64 - 1)) for _ in steady], pa.uint64()),
        ([draw.choice((0, 1, None)) for _ in steady], pa.decimal128(38, 10)),
        ([draw.choice(("a", "b")) for _ in steady], pa.dictionary(pa.int32(), pa.string())),
        ([draw.choice((1.5, float("nan"))) for _ in steady], pa.float16()),
        ([draw.choice((0, 10**9)) for _ in steady], pa.time64("us")),
        ([draw.choice((0, 10**9)) for _ in steady], pa.duration("s")),
        ([b"abcd" for _ in steady], pa.binary(4)),
        ([draw.choice(("a", "b")) for _ in steady], pa.large_string()),
    ]
    content, column_type = draw.choice(values)
    if pa.types.is_float16(column_type):
        content = [None if v is None else np.float16(v) for v in content]
    return pa.array(content, column_type)


def read_availability(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.tables import read_table
    from traces.availability import IntervalAvailability
    from traces.availability.intervals import read_intervals

    ids = np.arange(6)
    align = "time_of_day" if number % 2 else "origin"
    # Every third input is the table of devices, beside a valid table of windows.
    devices = read_table(file) if number % 3 == 0 else None
    windows = read_table(folder / "windows.csv" if number % 3 == 0 else file)
    intervals = read_intervals(windows, devices, align)  # type: ignore[arg-type]
    if intervals.num_devices:
        online = IntervalAvailability(intervals, ids % intervals.num_devices)
        for time_s in (0.0, 17.5, 1e6):
            for query in (online.online, online.next_online_s, online.next_offline_s):
                query(ids, time_s)


def read_hours(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.tables import read_table
    from traces.availability.intervals import read_intervals

    origin = datetime(1970, 1, 1, tzinfo=UTC) if number % 2 else None
    hours = read_intervals(read_table(file), origin=origin, overlapping="merge" if number % 3 else "refuse")
    assert (hours.start_s >= 0).all()
    assert (hours.end_s > hours.start_s).all()


HOURS = "device_id,start,end\na,2026-01-01T00:00:00Z,\nb,2026-01-01 00:00:00+01:00,2026-01-02T00:00:00Z\n"


def beside_the_devices(folder: Path) -> None:
    (folder / "windows.csv").write_text("device_id,start_s,end_s\na,0,50\nb,30,60\n", encoding="utf-8")


DEVICE_ROWS = "device_id,origin_s,period_s\na,0,60\nb,10,60\nc,,\n"


def read_concept_table(folder: Path, file: Path, number: int) -> None:
    from emulator.seeding import RandomStreams
    from traces.concepts import CONCEPT_SETS

    kind = CONCEPT_SETS.find("tables")
    tables = kind(kind.Settings.model_validate({"files": [file.name, "good.csv"]}))  # type: ignore[call-arg]
    tables.draw(np.array([[0, 1], [1, 0]]), 2, RandomStreams(0), lambda path: folder / path)


def beside_the_concepts(folder: Path) -> None:
    (folder / "good.csv").write_text(CONCEPT_ROWS, encoding="utf-8")


def read_label_table(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.tables import read_table
    from traces.sources.label_replay import LabelReplaySettings, filled, read_label_counts

    settings = {
        "table": "t",
        "images": "i",
        "group": "place",
        "time": "day",
        "label": "kind",
        "count": "seen",
    }
    if number % 2:
        settings["window_days"] = 1.5
    counts = filled(read_label_counts(read_table(file), LabelReplaySettings.model_validate(settings)).counts)
    shares = counts / counts.sum(axis=2, keepdims=True)
    np.random.default_rng(0).multinomial(5, shares[:, 0])


# -- images -------------------------------------------------------------------------------------------------


def idx_seeds() -> tuple[bytes, ...]:
    pixels = bytes(range(48))
    return (
        struct.pack(">IIII", 0x803, 3, 4, 4) + pixels,
        struct.pack(">IIII", 0x803, 1, 1, 1) + b"\x07",
        struct.pack(">II", 0x801, 3) + b"\x00\x01\x02",
    )


def odd_idx(draw: random.Random) -> bytes:
    lengths = [draw.choice((0, 1, 2, 3, 28, 65536, 2**31, 2**32 - 1)) for _ in range(3)]
    return struct.pack(">I", 0x803) + b"".join(struct.pack(">I", length) for length in lengths) + bytes(60)


def read_idx_file(folder: Path, file: Path, number: int) -> None:
    from traces.idx import read_idx

    read_idx(file, 3)


# -- FedScale's pickles -------------------------------------------------------------------------------------


def fedscale_seeds() -> tuple[bytes, ...]:
    capacity = {n: {"computation": 10.5 * n + 1, "communication": 100.0 + n} for n in range(4)}
    behaviour = {
        n: {"duration": 9, "inactive": [20, 50 + n], "finish_time": 90, "active": [0, 30], "model": "x"}
        for n in range(4)
    }
    return tuple(
        pickle.dumps(content, protocol) for content in (capacity, behaviour) for protocol in (2, 3, 4)
    )


def read_fedscale(folder: Path, file: Path, number: int) -> None:
    from device_profiles.fedscale import import_fedscale

    import_fedscale(file, folder / "out.parquet")


# -- run directories ----------------------------------------------------------------------------------------


REPORT = {"window": 1, "horizon_s": 25.0, "targets": [0.3, "reference"], "headline": "fielding"}
ARMS = [
    {"name": "global", "clusterer": {"kind": "single"}, "adaptation": {"kind": "prior"}, "baseline": True},
    {"name": "fielding", "clusterer": {"kind": "fielding"}, "schedules": [{"kind": "adaptive_lr"}]},
]
TRACE = {"source": "concepts", "drift": {"events": [{"round": 1}]}}


def a_drifting_directory(folder: Path) -> None:
    """A run directory of two arms over a trace with known concepts; the input replaces one of its files."""
    from tests.experiments.synthetic_runs import a_directory, a_drifting_run, store

    directory = a_directory(folder / "run", [], [0], arm=ARMS, report=REPORT, trace=TRACE)
    for arm in ("global", "fielding"):
        store(directory, a_drifting_run(arm, 0, [0.5, 0.75], [[0, 0], [0, 1]]))
    directory.manifest_path.write_text('{"versions": {"python": "3.11"}}', encoding="utf-8")


def log_seeds() -> tuple[bytes, ...]:
    """A log whose arrays are lists, and one whose arrays are packed."""
    import tempfile

    from emulator.messages import NamedNumbers, Trigger
    from emulator.storage.runlog import RunLog
    from tests.experiments.synthetic_runs import CONCEPTS, a_drifting_run, a_record

    logs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        truth = {"concepts": CONCEPTS, "test_concepts": [[0, 1], [2, 1]]}
        onsets = {"steps": [1], "counts": [2], "clients": [[0, 1]]}
        header = {"arm": "global", "seed": 0, "num_clients": 2, **truth, "onsets": onsets}
        with RunLog(path, header) as log:
            for record in a_drifting_run("global", 0, [0.5, 0.75], [[0, 0], [0, 1]]).records:
                log.append(record)
        logs.append(path.read_bytes())
        path.unlink()
        clients = np.arange(1200)
        with RunLog(
            path, {"arm": "global", "seed": 0, "num_clients": 1200, "scored_clients": clients[:1100]}
        ) as log:
            for number in range(3):
                shares = (clients[:1100] / 1200).astype(np.float32)
                changes: dict[str, Any] = {
                    "members": clients % (number + 2),
                    "serving": clients % 3,
                    "client_accuracy": shares,
                }
                if number:
                    changes["trigger"] = (
                        NamedNumbers({"spread": 0.25, "by_cluster": [0.5, 1.0, 1.5]}, 3, False)
                        if number == 1
                        else Trigger(0.25, 1.5, 1 / number, 3, True)
                    )
                    changes["silhouettes"] = {2: 0.5, 3: None}
                log.append(a_record(number, clusters=[0, 1, 2], **changes))
        logs.append(path.read_bytes())
    return tuple(logs)


def odd_log() -> Odd:
    """A log with an odd line, or with an odd packed array inside a well-formed line."""
    lines = odd_json(lambda: READERS["log"].seeds)

    def odd(draw: random.Random) -> bytes:
        if draw.random() < 0.5:
            return lines(draw)
        import base64
        import zlib

        content = [json.loads(line) for line in READERS["log"].seeds[1].splitlines()]
        line = draw.choice(content)
        name = draw.choice(("members", "serving", "client_accuracy", "scored_clients"))
        size = draw.choice((0, 1, 7, 1100 * 4, 1200, 2400, 9600, 10**6, 2 * 10**7))
        raw = draw.choice((bytes(size), draw.randbytes(min(size, 10**5))))
        packed = zlib.compress(raw, 1)
        if draw.random() < 0.2:
            packed = packed[: draw.randrange(len(packed) + 1)]
        line[name] = {
            "dtype": draw.choice(
                ("|i1", "<i2", "<i4", "<i8", "<f4", "<f8", ">i4", "|O", "|V8", "<U4", "i4,i4", 3, None)
            ),
            "zlib": base64.b64encode(packed).decode(),
            "difference": draw.choice((True, False, 1, None)),
        }
        return "".join(json.dumps(line) + "\n" for line in content).encode()

    return odd


VISIT_COLUMNS = ("round", "visit", "client", "device", "lane", "models", "end_s", "outcome", "crashed")


def visit_seeds() -> tuple[bytes, ...]:
    """Tables of visits: one with devices, one without, one of server steps, and an empty one."""
    import tempfile

    from emulator.storage.visit_log import VisitLog, write_visits
    from tests.emulator.storage.test_visit_log import ROUNDS, STEPS

    tables = []
    for devices, rounds in (([40, 41, 42], ROUNDS), (None, ROUNDS), (None, STEPS), (None, [])):
        with tempfile.TemporaryDirectory() as folder:
            stream, path = Path(folder) / "visits.arrow", Path(folder) / "visits.parquet"
            with VisitLog(stream) as log:
                for visits in rounds:
                    log.append(visits)
            write_visits(stream, path, None if devices is None else np.array(devices))
            tables.append(path.read_bytes())
    return tuple(tables)


def read_visits_file(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.recorded_tables import read_visits

    read_visits(file)


def read_log_file(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.runlog import read_log

    read_log(file)


def in_a_directory(name: str) -> Callable[[Path, Path, int], None]:
    """Reads a whole run directory in which the input is the file `name`, a relative path."""

    def read(folder: Path, file: Path, number: int) -> None:
        from experiments.results.frames.rounds_table import rounds_table
        from experiments.results.many_runs.directories import read_folder
        from experiments.results.many_runs.folder_table import build_table
        from experiments.results.many_runs.runs_table import runs_notes, runs_table
        from experiments.results.many_runs.sections import sections
        from experiments.results.pages import write_report
        from experiments.results.pages.sentences import sentences
        from experiments.results.pages.what_was_run import lead, settings_of_run
        from experiments.results.reading.run_directory import RunDirectory
        from experiments.results.tables import baselines, concept_drift, costs, serving_maps
        from experiments.results.tables.report import Report
        from experiments.results.tables.summary import summarise_directory

        directory = RunDirectory(folder / "run")
        (directory.path / name).write_bytes(file.read_bytes())
        runs = directory.reported_runs()
        summary = summarise_directory(directory, runs)
        json.dumps(summary.as_json(), allow_nan=False)
        rounds_table(runs)
        report = directory.experiment()
        lead(report, runs)
        if summary.rows:
            sentences(summary, directory.experiment()["report"])
        for table in (baselines.TABLE, concept_drift.TABLE, costs.TABLE, serving_maps.TABLE):
            table.shown_on_page(Report(directory, runs, summary))
        settings_of_run(directory)
        build_table("table", {directory: summary.finished})
        for section in sections(read_folder([directory])):
            json.dumps(section.as_json(), allow_nan=False)
            runs_table(section)
            runs_notes(section)
        if number % 40 == 0 and summary.rows:
            write_report(directory, runs)

    return read


def experiment_document() -> dict[str, Any]:
    import tempfile
    import tomllib

    from tests.experiments.synthetic_runs import a_directory

    with tempfile.TemporaryDirectory() as folder:
        directory = a_directory(Path(folder), [], [0], arm=ARMS, report=REPORT, trace=TRACE)
        return tomllib.loads(directory.experiment_path.read_text(encoding="utf-8"))


def odd_experiment(draw: random.Random) -> bytes:
    return odd_toml(experiment_document())(draw)


MANIFEST = {
    "versions": {"driftscale": "0.1.0", "python": "3.11"},
    "commands": [
        {
            "arguments": ["driftscale", "run", "a.toml"],
            "started": "2026-01-31T12:00:00Z",
            "git_commit": "0a" * 20,
        }
    ],
    "machine": "Linux",
    "profile": {"name": "a", "source": "b"},
    "sha256": {"0": {"trace": "00", "fleet": "11"}},
    "sweep": {"of": "a", "keys": {"round.participants": 5, "trace": {"source": "digits"}}},
}
TIMING = {
    "host": "node3",
    "cpu_capability": "AVX2",
    "wall_s": 2.0,
    "train_s": 1.0,
    "peak_memory_bytes": 1e8,
    "runs_beside": 1,
}


def json_seeds(document: Any) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (json.dumps(document).encode(),)


# -- checkpoints --------------------------------------------------------------------------------------------


def checkpoint_seeds() -> tuple[bytes, ...]:
    from emulator.storage.state_tree import to_bytes

    tree = {
        "round": 3,
        "models": np.arange(12, dtype=np.float32).reshape(3, 4),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "moved": {7: (1.5, None, float("inf")), "x": [True, "é", np.float64(2.5)]},
        "empty": np.zeros((0, 5), dtype=np.int64),
    }
    return to_bytes(tree), to_bytes({"a": 1}), to_bytes([np.arange(3)])


def odd_checkpoint(draw: random.Random) -> bytes:
    """An odd safetensors header over valid data, or odd bytes in the data under a valid header."""
    content = draw.choice(READERS["checkpoint"].seeds)
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    if draw.random() < 0.5:
        shapes = (2**63, 2**40, [2**31, 2**31], [-1], [0, 2**62], [2**32, 2**32])
        header = odd_document(
            header, draw, (*ODD_VALUES, *shapes, "F32", "BF16", "F8_E4M3", "BOOL", [0, 4], [4, 0])
        )
    else:
        for _ in range(draw.choice((1, 3))):
            position = draw.randrange(len(data) + 1)
            word = draw.choice(
                (b'{"array":"/models"}', b"[" * 3000, b'{"tuple":', b'{"dict":[[', b'"axes":[9]', b"1e999")
            )
            data = data[:position] + word + data[position + draw.choice((0, len(word))) :]
    encoded = json.dumps(header).encode()
    length = len(encoded) if draw.random() < 0.9 else draw.choice((0, 1, 2**40, 2**63))
    return length.to_bytes(8, "little") + encoded + data


def read_checkpoint_file(folder: Path, file: Path, number: int) -> None:
    """Rename the file after its checksum first: otherwise it is refused before its content is read."""
    from emulator.storage.checkpoints import read_checkpoint

    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    named = file.rename(folder / f"round-000001-{sha256}.safetensors")
    try:
        read_checkpoint(named)
    finally:
        named.unlink()


# -- tables that traces are built of ------------------------------------------------------------------------

BUILT_OF = pa.table(
    {
        "who": pa.array(["ann", "bob", "ann", "cy"] * 5).dictionary_encode(),
        "kind": [1.0, 2.0, 1.0, 3.0] * 5,
        "x": pa.array([0.5, None, 1e-3, 7.0] * 5, pa.float32()),
        "list": [[1, 2]] * 20,
    }
)


def arrow_seeds() -> tuple[bytes, ...]:
    def written(new: Callable[..., Any], **options: Any) -> bytes:
        out = io.BytesIO()
        with new(out, BUILT_OF.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(BUILT_OF, 10)
        return out.getvalue()

    return (
        written(pa.ipc.new_stream),
        written(pa.ipc.new_file, compression="lz4"),
        written(pa.ipc.new_stream, compression="zstd", emit_dictionary_deltas=True),
    )


def zip_seeds() -> tuple[bytes, ...]:
    def written(method: int) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            member = zipfile.ZipInfo("t.csv")
            archive.writestr(member, "who;kind;x\n" + "ann;1,0;0,5\nbob;2,0;\n" * 20, method)
        return out.getvalue()

    return written(zipfile.ZIP_STORED), written(zipfile.ZIP_DEFLATED)


def read_built_of(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.reading.shards import find_shards
    from traces.building.bad_rows import BadRows
    from traces.building.table.encoders.feature_columns import FeatureColumns
    from traces.building.table.encoders.features import Numbers
    from traces.building.table.keys import read_keys, refuse_types
    from traces.building.table.settings import TableSettings

    settings = TableSettings(client="who", label="kind", missing="zero", skip_bad=100 * (number % 2))
    shards, bad = find_shards(file, most_cells=10**6, skips_bad=bool(number % 2)), BadRows(settings.skip_bad)
    shards.refuse_unknown("features", "x")
    refuse_types(shards, settings)
    read_keys(shards, settings, bad)
    encoder, start = Numbers(shards, FeatureColumns(("x",), {}, None), {}, settings.missing, bad), 0
    for batch in shards.batches(encoder.types, 7, malformed=(lambda: True) if number % 2 else None):
        encoder.encode(batch, start, np.ones(batch.num_rows, np.bool_))
        start += batch.num_rows


GIVEN: tuple[dict[str, Any], ...] = (
    {"separator": "space"},
    {"encoding": "utf-16"},
    {"encoding": "latin-1", "skip_lines": 1},
    {"separator": "space", "columns": ["who", "kind", "x"]},
    {"encoding": "gb18030", "columns": ["who", "kind", "x"]},
    {},
)


def form_seeds() -> tuple[bytes, ...]:
    rows = "who,kind,x\n" + "Zo\u00e9,1,0.5\nann,2,1.5\n" * 10
    return (
        rows.encode("utf-16"),
        f"# of May\n{rows}".encode("latin-1"),
        rows.replace(",", "   ").encode(),
        f"sep=;\r\n{rows.replace(',', ';')}".encode(),
        rows.replace("\n", ";\n").encode(),
    )


def read_other_form(folder: Path, file: Path, number: int) -> None:
    from emulator.storage.table_paths import Given
    from emulator.storage.tables import read_table

    table = read_table(file, Given.model_validate(GIVEN[number % len(GIVEN)]))
    table.ids("who")
    table.devices("kind")
    table.numbers("x")


# -- all of them --------------------------------------------------------------------------------------------

TABLE_BYTES = 2**31
"""The bound that `emulator.storage.tables` states: a page of a Parquet file may declare that size."""

KEYS = (
    *(b"name", b"seeds", b"trace", b"source", b"devices", b"profile", b"availability", b"training", b"model"),
    *(b"round", b"arm", b"clusterer", b"kind", b"solver", b"parts", b"report", b"published", b"pattern"),
    *(
        b"concepts",
        b"files",
        b"label",
        b"features",
        b"quantiles",
        b"discrete",
        b"lognormal",
        b"class",
        b"share",
    ),
)


def _tables(run: Any, texts: tuple[str, ...], names: tuple[str, ...], **options: Any) -> dict[str, Reader]:
    return {
        "csv": Reader(".csv", csv_seeds(*texts), run, COLUMNS, odd_csv(texts[0]), **options),
        "csv.gz": Reader(".csv.gz", gzip_seeds(*texts), run, COLUMNS, odd_gzip(texts[0]), **options),
        "parquet": Reader(
            ".parquet",
            parquet_seeds(*texts),
            run,
            COLUMNS,
            odd_parquet(*names),
            **{**options, "most_bytes": TABLE_BYTES},
        ),
    }


DEVICE_NAMES = ("device_id", "seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s")
PROFILE_TABLES = _tables(read_profile_file, (DEVICES,), DEVICE_NAMES)
WINDOW_TABLES = _tables(
    read_availability,
    (WINDOWS, DEVICE_ROWS),
    ("device_id", "start_s", "end_s", "period_s"),
    surround=beside_the_devices,
)
HOUR_TABLES = _tables(read_hours, (HOURS,), ("device_id", "start", "end", "os"))
CONCEPT_TABLES = _tables(
    read_concept_table, (CONCEPT_ROWS,), ("x1", "x2", "x3", "label"), surround=beside_the_concepts
)
LABEL_TABLES = _tables(read_label_table, (LABELS,), ("place", "day", "kind", "seen"))

READERS: dict[str, Reader] = {
    "configuration": Reader(
        ".toml",
        lambda: tuple(tomli_w.dumps(document).encode() for document in CONFIGURATIONS),
        read_configuration,
        KEYS,
        odd_toml(*CONFIGURATIONS),
    ),
    "profile-toml": Reader(
        ".toml",
        lambda: (tomli_w.dumps(MIXTURE).encode(),),
        read_profile_file,
        KEYS,
        odd_toml(MIXTURE),
        beside_the_mixture,
    ),
    "profile-csv": PROFILE_TABLES["csv"],
    "profile-parquet": PROFILE_TABLES["parquet"],
    "availability-csv": WINDOW_TABLES["csv"],
    "availability-csv.gz": WINDOW_TABLES["csv.gz"],
    "hours-csv": HOUR_TABLES["csv"],
    "hours-parquet": HOUR_TABLES["parquet"],
    "availability-parquet": WINDOW_TABLES["parquet"],
    "concepts-csv": CONCEPT_TABLES["csv"],
    "concepts-csv.gz": CONCEPT_TABLES["csv.gz"],
    "concepts-parquet": CONCEPT_TABLES["parquet"],
    "labels-csv": LABEL_TABLES["csv"],
    "labels-parquet": LABEL_TABLES["parquet"],
    "built-of-arrow": Reader(
        ".arrow", arrow_seeds, read_built_of, (b"ARROW1", b"\xff\xff\xff\xff"), most_bytes=TABLE_BYTES
    ),
    "built-of-zip": Reader(".csv.zip", zip_seeds, read_built_of, (b"PK\x01\x02", b"PK\x05\x06")),
    "other-forms": Reader(".csv", form_seeds, read_other_form, (b"sep=;\n", b"\xff\xfe", b'"', b"\0")),
    "visits": Reader(".parquet", visit_seeds, read_visits_file, (b"PAR1",), odd_parquet(*VISIT_COLUMNS)),
    "idx": Reader(".idx", idx_seeds, read_idx_file, (), odd_idx),
    "idx.gz": Reader(
        ".gz",
        lambda: tuple(gzip.compress(content, mtime=0) for content in idx_seeds()),
        read_idx_file,
        (),
        lambda draw: gzip.compress(odd_idx(draw), mtime=0),
    ),
    "fedscale": Reader(".pickle", fedscale_seeds, read_fedscale, (b"cposix\nsystem\n", b"R", b"(", b"\x95")),
    "log": Reader(".jsonl", log_seeds, read_log_file, (b'{"kind":"round"', b"null"), odd_log()),
    "directory-log": Reader(
        ".jsonl",
        log_seeds,
        in_a_directory("global/seed-0/log.jsonl"),
        (b"null",),
        odd_log(),
        a_drifting_directory,
    ),
    "directory-experiment": Reader(
        ".toml",
        lambda: (tomli_w.dumps(experiment_document()).encode(),),
        in_a_directory("experiment.toml"),
        KEYS,
        odd_experiment,
        a_drifting_directory,
    ),
    "directory-manifest": Reader(
        ".json",
        json_seeds(MANIFEST),
        in_a_directory("manifest.json"),
        (),
        odd_json(json_seeds(MANIFEST)),
        a_drifting_directory,
    ),
    "directory-timing": Reader(
        ".json",
        json_seeds(TIMING),
        in_a_directory("global/seed-0/timing.json"),
        (),
        odd_json(json_seeds(TIMING)),
        a_drifting_directory,
    ),
    "checkpoint": Reader(
        ".safetensors", checkpoint_seeds, read_checkpoint_file, (b'"tree"',), odd_checkpoint
    ),
}
