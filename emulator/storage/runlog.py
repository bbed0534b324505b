"""The append-only log of a run: one JSON line per round, virtual quantities only.

Wall times are never logged: the same configuration and seed give the same bytes.

Fields of a record with one value per client are arrays, written as `emulator.storage.packed` describes;
`members` may be written as a difference to the last members before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.errors import DataFileError
from emulator.messages import AnyTrigger
from emulator.storage.appended_file import AppendedFile
from emulator.storage.bounded import json_document
from emulator.storage.log_lines import (
    MOST_CLIENTS,
    MOST_DRIFTS,
    MOST_LINE_BYTES,
    MOST_LOG_BYTES,
    MOST_UNPACKED_BYTES,
    refuse_wrong_header,
)
from emulator.storage.packed import packed, unpacked
from emulator.storage.round_schema import (
    TRIGGERS,
    Logged,
    NumberNames,
    RoundSchema,
    refuse_wrong_noted,
    refuse_wrong_numbers,
)
from emulator.storage.state_tree import Tree

UNMEASURED = "if not evaluated"
UNCLUSTERED = "without a global clustering"
IMPERSONAL = "without personal parameters"
WHOLE_ROUNDS = "in whole rounds"


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """One round. Times are absolute virtual seconds; byte counts are totals since the start of the run.

    A round has one dispatch and one server step, unless it has `steps`. Then `participants` are the clients
    of the visits that its steps handed over, in the order of the steps, and of clients within a step: a
    client is in it once for each visit, as in the lists of outcomes. In the last round of a run that ends at
    an instant, they are also those of the visits that were abandoned there; that round may have no dispatch
    of its own, and no participant.

    Arrays have a value for each of the N clients, or for each of the header's n scored clients; those read
    from a log may have a narrower dtype than declared.

    This is the table of which the log's reader, `rounds.parquet`, the frames, the trackers' points and their
    reference are made: a new quantity is one field of it, with its meaning, and one where it is measured.
    """

    round: Annotated[int, Logged("number of the round, from 0", "rounds", least=0, tracked=False)]
    step: Annotated[
        int, Logged("data step of the data that clients held, from 0", "data steps", least=0, tracked=False)
    ]
    opened_s: Annotated[float, Logged("when it was opened", "virtual seconds", in_order=True, tracked=False)]
    dispatched_s: Annotated[
        float,
        Logged(
            "when its participants were sent their models, at its first dispatch",
            "virtual seconds",
            in_order=True,
            tracked=False,
        ),
    ]
    closed_s: Annotated[
        float,
        Logged("when it closed", "virtual seconds", in_order=True, tracked=False),
    ]
    participants: Annotated[
        list[int],
        Logged(
            "clients that were selected, of all lanes; where `steps` is there, those of the visits that "
            "these handed over, once for each",
            "clients",
        ),
    ]
    completed: Annotated[
        list[int], Logged("participants whose update arrived in time", "clients", in_a_line="kept")
    ]
    dropped: Annotated[
        list[int], Logged("participants that went offline or crashed during their visit", "clients")
    ]
    changed: Annotated[
        int,
        Logged("how often a client checked new data for drift; 0 if the method takes no reports", "checks"),
    ]
    reported: Annotated[
        int,
        Logged("how often a client reported: if it had drifted, was new, or all clients had to", "reports"),
    ]
    moved: Annotated[
        int,
        Logged("clients moved to another cluster one by one, not by a global re-clustering", "clients"),
    ]
    reclustered: Annotated[
        bool, Logged("whether all clients were clustered anew; false for the first clustering")
    ]
    clusters: Annotated[list[int], Logged("clusters that exist, also empty ones, by label", "clusters")]
    members: Annotated[
        Ints | None,
        Logged(
            "(N,) label of each client's cluster, stable across re-clusterings; -1: in none, as a client "
            "that holds no training samples",
            missing="in rounds in which it did not change, except the first",
        ),
    ]
    train_loss: Annotated[
        float | None,
        Logged(
            "mean over the updates of the loss of their local batches, each taken before its step, with "
            "dropout",
            "nats per sample",
            "in rounds in which no usable update arrived",
        ),
    ]
    accuracy: Annotated[
        float | None,
        Logged(
            "mean over the scored clients of each one's accuracy on its own test samples",
            "share, 0 to 1",
            UNMEASURED,
            least=0,
            most=1,
        ),
    ]
    accuracy_std: Annotated[
        float | None,
        Logged("standard deviation of these accuracies over clients", "share, 0 to 1", UNMEASURED),
    ]
    loss: Annotated[
        float | None,
        Logged(
            "mean over the scored clients of each one's mean loss on its test samples",
            "nats per sample",
            UNMEASURED,
        ),
    ]
    mean_client_distance: Annotated[
        float | None,
        Logged(
            "mean over clients of the mean distance to the others in the same cluster; 0 for one alone in it",
            "distance of round.client_distance",
            UNMEASURED,
        ),
    ]
    unclustered_distance: Annotated[
        float | None,
        Logged("the same if all clients were one cluster", "distance of round.client_distance", UNMEASURED),
    ]
    scored_clients: Annotated[
        int | None,
        Logged(
            "clients with test samples and a model, over which `accuracy` is the mean", "clients", UNMEASURED
        ),
    ]
    drift_cells: Annotated[
        int | None,
        Logged(
            "of these, those whose test samples have another concept than their newest training samples",
            "clients",
            f"{UNMEASURED}, and if the trace does not know its concepts",
        ),
    ]
    accuracy_omitting_drift: Annotated[
        float | None,
        Logged(
            "mean accuracy over the scored clients that are no drift cells",
            "share, 0 to 1",
            f"{UNMEASURED}, if all scored clients are drift cells, and if the trace does not know its "
            "concepts",
            least=0,
            most=1,
            after="accuracy_std",
        ),
    ]
    serving: Annotated[
        Ints | None,
        Logged(
            "(N,) label of the model of largest weight that serves each client; -1: none",
            missing=f"{UNMEASURED}, and if the trace does not know its concepts",
        ),
    ]
    download_bytes: Annotated[float, Logged("downloaded for training, since the start of the run", "bytes")]
    upload_bytes: Annotated[float, Logged("uploaded for training, since the start of the run", "bytes")]
    control_bytes: Annotated[
        float,
        Logged(
            "transferred for reports and client requests, both ways together, since the start of the run",
            "bytes",
        ),
    ]
    models_sent: Annotated[
        float,
        Logged(
            "models transferred either way, for training and for scoring, without packets sent again, since "
            "the start of the run; parts count as fractions",
            "models",
        ),
    ]
    kmeans_clients: Annotated[
        int | None,
        Logged(
            "clients whose reports determined the centres of a global clustering",
            "clients",
            UNCLUSTERED,
            after="moved",
            tracked=False,
        ),
    ]
    silhouette_clients: Annotated[
        int | None,
        Logged(
            "clients whose reports determined how many centres there are",
            "clients",
            UNCLUSTERED,
            after="kmeans_clients",
            tracked=False,
        ),
    ]
    rejected: Annotated[
        list[int],
        Logged("completed participants whose update was not finite", "clients", after="dropped"),
    ]
    crashed: Annotated[
        list[int], Logged("dropped participants whose device crashed", "clients", after="dropped")
    ]
    client_accuracy: Annotated[
        Floats32 | None,
        Logged(
            "(n,) accuracy of each scored client, 0 to 1; NaN without test samples or a model",
            missing=f"{UNMEASURED}, and without round.log_client_accuracy",
            scored=True,
        ),
    ]
    trigger: Annotated[
        AnyTrigger | None,
        Logged(
            "what a trigger compared to decide whether to cluster all clients anew",
            missing="if no trigger compared anything",
        ),
    ]
    silhouettes: Annotated[
        dict[int, float | None] | None,
        Logged(
            "mean silhouette for each number of clusters that a global clustering tried, also the first; "
            "null where it is undefined",
            missing=UNCLUSTERED,
        ),
    ]
    nonfinite_reports: Annotated[
        int,
        Logged(
            "reports that were not finite, and so not used; they count as reported",
            "reports",
            in_table=False,
        ),
    ] = 0
    holding: Annotated[
        int | None,
        Logged(
            "clients that hold training samples, and so take part",
            "clients",
            "in rounds in which all clients hold some",
        ),
    ] = None
    client_label: Annotated[
        Ints | None,
        Logged(
            "(n,) label of which each scored client holds most training samples, the lowest of several; "
            "-1: it holds none",
            missing=f"{UNMEASURED}, and without round.log_client_accuracy",
            scored=True,
        ),
    ] = None
    adaptation_samples: Annotated[
        float | None,
        Logged(
            "samples that all clients have trained on for their adaptation, one for each client and data "
            "step, since the start of the run",
            "samples",
            "if the arm has no adaptation, nor a context",
            least=0,
            after="models_sent",
        ),
    ] = None
    adaptation_s: Annotated[
        float | None,
        Logged(
            "what these adaptations have taken all clients, since the start of the run",
            "virtual seconds",
            "if the arm has no adaptation, nor a context",
            least=0,
            after="adaptation_samples",
        ),
    ] = None
    nonfinite_copies: Annotated[
        int,
        Logged(
            "copies that clients trained for their adaptation and that were not finite, so that the models "
            "that served these clients stayed as they were",
            "copies",
            in_table=False,
            tracked=False,
        ),
    ] = 0
    steps: Annotated[
        int | None,
        Logged("server steps of the round", "steps", WHOLE_ROUNDS, least=0),
    ] = None
    staleness: Annotated[
        float | None,
        Logged(
            "mean over the updates absorbed in the round of the server steps that their lane made between "
            "their dispatch and their absorption",
            "server steps",
            f"{WHOLE_ROUNDS}, and if no update was absorbed",
            least=0,
        ),
    ] = None
    largest_staleness: Annotated[
        int | None,
        Logged(
            "the largest staleness of the updates absorbed in the round",
            "server steps",
            f"{WHOLE_ROUNDS}, and if no update was absorbed",
            least=0,
        ),
    ] = None
    in_flight: Annotated[
        int | None,
        Logged(
            "visits that were out when the round closed, or had come back and were not yet absorbed",
            "visits",
            WHOLE_ROUNDS,
            least=0,
        ),
    ] = None

    personal_accuracy: Annotated[
        float | None,
        Logged(
            "mean accuracy, over the scored clients, of the parameters that each would use itself, made by "
            "the solver of the model that serves it and of what the client remembers, however old; without "
            "any, of the served model",
            "share, 0 to 1",
            f"{UNMEASURED}, and {IMPERSONAL}",
            least=0,
            most=1,
        ),
    ] = None
    personal_accuracy_std: Annotated[
        float | None,
        Logged(
            "standard deviation of these accuracies over clients",
            "share, 0 to 1",
            f"{UNMEASURED}, and {IMPERSONAL}",
        ),
    ] = None
    trained_accuracy: Annotated[
        float | None,
        Logged(
            "mean accuracy, over the scored clients whose update the last server step of the round absorbed, "
            "of the parameters that each has just trained: its personal ones, if the solver makes some, else "
            "those that it sent",
            "share, 0 to 1",
            f'{UNMEASURED}, if no such client has test samples, and without "trained" in round.accuracies',
            least=0,
            most=1,
        ),
    ] = None
    pooled_accuracy: Annotated[
        float | None,
        Logged(
            "share of correct predictions among all test samples of the scored clients, by what serves them",
            "share, 0 to 1",
            f'{UNMEASURED}, and without "pooled" in round.accuracies',
            least=0,
            most=1,
        ),
    ] = None
    memory_age: Annotated[
        float | None,
        Logged(
            "median over the scored clients that remember something of the rounds since each last wrote it",
            "rounds",
            f"{UNMEASURED}, if no scored client remembers anything, and {IMPERSONAL}",
            least=0,
        ),
    ] = None
    memory_age_90: Annotated[
        float | None,
        Logged(
            "the age that 90 % of these clients do not exceed",
            "rounds",
            f"{UNMEASURED}, if no scored client remembers anything, and {IMPERSONAL}",
            least=0,
        ),
    ] = None
    without_memory: Annotated[
        float | None,
        Logged(
            "share of the scored clients that remember nothing",
            "share, 0 to 1",
            f"{UNMEASURED}, and {IMPERSONAL}",
            least=0,
            most=1,
        ),
    ] = None
    personal_accuracy_by_age: Annotated[
        dict[int, float | None] | None,
        Logged(
            "mean personal accuracy of the scored clients by the age of what they remember, by the least "
            "number of rounds of each band of ages; null for a band without clients",
            missing=f"{UNMEASURED}, and {IMPERSONAL}",
        ),
    ] = None
    clients_by_age: Annotated[
        dict[int, float | None] | None,
        Logged(
            "the scored clients in each of these bands",
            missing=f"{UNMEASURED}, and {IMPERSONAL}",
        ),
    ] = None
    forgotten: Annotated[
        list[int],
        Logged(
            "completed participants whose new memory was not finite: they have none any more, and begin anew",
            "clients",
            after="rejected",
        ),
    ] = field(default_factory=list)
    decided: Annotated[
        dict[str, list[int]] | None,
        Logged(
            "clients, ascending, about which detectors decided in the round, by what these watch; about "
            "arrivals at its dispatches; a client's first report decides nothing",
            missing="without `[detection]`",
        ),
    ] = None
    flagged: Annotated[
        dict[str, list[int]] | None,
        Logged(
            "of these, the clients that each detector found drifted, by its name",
            missing="without `[detection]`",
        ),
    ] = None
    clipped: Annotated[
        dict[str, int] | None,
        Logged(
            "numbers since the start of the run outside the domain of each detector, which were clipped",
            missing="without `[detection]`",
        ),
    ] = None
    accuracy_by_concept: Annotated[
        dict[int, list[float]] | None,
        Logged(
            "accuracy of each of `clusters`' models, in their order, on the test samples of each true "
            "concept, of all scored clients whose tests are of it in one pool, by the concept's number; a "
            "concept without such samples is left out",
            "share, 0 to 1",
            f"{UNMEASURED}, without round.log_model_accuracy, and if the arm federates no models",
            least=0,
            most=1,
            by_cluster=True,
        ),
    ] = None
    noted: Annotated[
        dict[str, float] | None,
        Logged(
            "numbers that parts noted, by name, as an aggregator its `disparity`; of several server steps "
            "the last one's; where clients stop early, also the mean `epochs` of the tasks sent out, and how "
            "many clients of these hold no samples out (`without_held_out`)",
            missing="in rounds in which nothing was noted",
        ),
    ] = None

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; arrays entry by entry, NaN equal to NaN."""
        return isinstance(other, RoundRecord) and all(
            np.array_equal(ours, theirs, equal_nan=isinstance(ours, np.ndarray) and ours.dtype.kind == "f")
            for ours, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    @property
    def abandoned(self) -> int:
        """The number of visits still out when their lane closed, or abandoned otherwise."""
        return len(self.participants) - len(self.completed) - len(self.dropped)


SCHEMA = RoundSchema.of(RoundRecord)
"""What follows from the fields above for the lines of a log."""

IDS_BY_NAME = tuple(item.line_name for item in SCHEMA.fields if item.kind == "dict[str, list[int]]")
"""The fields with ids of clients by name; long lists are written as arrays are."""

LINES = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=packed)


DRIFT_COLUMNS = ("step", "client", "kind", "before", "after")
"""The columns of a header's `drifts`, beside the names of its `kinds`."""


class RunLog:
    """Appends to one file: a header line first, then a line per record.

    Args:
        path: the file, which must not exist unless `resume` is given.
        header: fields of the header line.
        resume: a state of this log; the file is truncated to its length at that time.

    Raises:
        FileExistsError: a new log's file exists.
        ValueError: the state to resume from is shorter than the header.
        DataFileError: the file to resume is missing, or what it should still hold has changed.
        ForeignFileError: the file to resume is not a regular file, or has a second name.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, header: dict[str, Any], resume: Mapping[str, Tree] | None = None) -> None:
        self._members: Ints | None = None if resume is None else resume["members"]  # the last written
        # Only runs with such numbers have them in their state.
        names, noted = (() if resume is None else resume.get(name, ()) for name in ("names", "noted"))
        self._names = NumberNames(frozenset(names), frozenset(noted))
        self._file = AppendedFile(path, _line({"kind": "run", **header}), resume)

    def state(self) -> dict[str, Tree]:
        """Length, hash and last members of the log so far, which is on the disk when this returns."""
        names = {"names": sorted(self._names.trigger), "noted": sorted(self._names.noted)}
        used = {name: of_numbers for name, of_numbers in names.items() if of_numbers}
        return {**self._file.state(), "members": self._members, **used}

    def append(self, record: RoundRecord) -> None:
        """Write a record.

        ValueError, with nothing written, if a number outside its arrays is not finite, or if a trigger's
        named numbers, or those noted, are not within their bounds.
        """
        line = {"kind": "round", **dict(zip(SCHEMA.names, vars(record).values(), strict=True))}
        for name in SCHEMA.arrays:
            values = line[name]
            if values is not None:
                line[name] = packed(values, self._members if name == "members" else None)
        for name in IDS_BY_NAME:
            if line[name] is not None:
                line[name] = {key: packed(np.array(ids, dtype=np.int64)) for key, ids in line[name].items()}
        if record.trigger is not None:
            line["trigger"] = _trigger_line(record.trigger)
        if record.noted is not None:
            refuse_wrong_noted(record.noted)
        names = self._names.after(line["trigger"], record.noted)
        for name, default in SCHEMA.optional:
            if line[name] == default:  # as in most rounds
                del line[name]
        content = _line(line)
        if record.members is not None:
            self._members = record.members
        self._names = names
        self._file.write(content)

    def close(self) -> None:
        """Close the file; all of it is on the disk when this returns."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _line(content: dict[str, Any]) -> bytes:
    return (LINES.encode(content) + "\n").encode()


def _trigger_line(trigger: AnyTrigger) -> dict[str, Any]:
    """A trigger as an object of a line; ValueError if its named numbers could not be read back."""
    line = vars(trigger)
    if "numbers" in line:
        refuse_wrong_numbers(line)
        return {**line, "numbers": dict(line["numbers"])}
    return line


def read_log(path: Path, most_rounds: int | None = None) -> tuple[dict[str, Any], list[RoundRecord]]:
    """The header and the records of a log; DataFileError names the first invalid line.

    `most_rounds`: read only so many, as of a log that is being written; None: all.
    """
    lines = _lines(path)
    _, first = next(lines, (1, b"{}"))
    try:
        header = json_document(first.decode())
        if not isinstance(header, dict) or header.pop("kind", None) != "run":
            raise DataFileError(path, "a run log starts with a line of kind 'run'")
        refuse_wrong_header(header)
        most = header.get("num_clients") or MOST_CLIENTS
        _unpack_header(header, most)
    except ValueError as error:
        raise DataFileError(path, f"damaged: not the header of a run ({error})", row=1) from error
    records: list[RoundRecord] = []
    members: Ints | None = None  # the last members read
    names = NumberNames()  # so far
    num_bytes = 0  # of all arrays read so far
    for number, content in islice(lines, most_rounds):
        try:
            line = SCHEMA.parse(content)
            num_bytes += _unpack_record(line, members, most)
        except ValueError as error:
            raise _damaged(path, number, error) from error
        if num_bytes > MOST_UNPACKED_BYTES:
            problem = f"the arrays up to this row have more than {MOST_UNPACKED_BYTES:,} bytes"
            raise DataFileError(path, problem, row=number)
        try:
            SCHEMA.refuse_other_size(line, header)
            _refuse_other_length(line["members"], members)
            names = names.after(line.get("trigger"), line.get("noted"))
        except ValueError as error:
            raise _damaged(path, number, error) from error
        if line["members"] is not None:
            members = line["members"]
        records.append(_record(line))
    return header, records


def _damaged(path: Path, row: int, error: ValueError) -> DataFileError:
    problem = str(error)
    return DataFileError(path, problem if problem.startswith("damaged") else f"damaged: {problem}", row=row)


def _unpack_header(header: dict[str, Any], most: int) -> None:
    """Unpack the arrays of a header in place; ValueError if they are not ids of at most `most` clients."""
    if header.get("scored_clients") is not None:
        scored = unpacked(header["scored_clients"], np.int64, most_entries=most)
        if (scored < 0).any() or (scored >= most).any() or (np.diff(scored) <= 0).any():
            raise ValueError(f"scored_clients must be ascending ids of the {most} clients")
        header["scored_clients"] = scored
    if "drifts" in header:
        drifts = header["drifts"]
        for name in DRIFT_COLUMNS:
            drifts[name] = unpacked(drifts[name], np.int64, most_entries=MOST_DRIFTS)
        _refuse_wrong_drifts(drifts, most)
    left = most  # no client is byzantine in two ways
    for kind, ids in header.get("byzantine", {}).items():
        header["byzantine"][kind] = unpacked(ids, np.int64, most_entries=left)
        left -= len(header["byzantine"][kind])


def _refuse_wrong_drifts(drifts: Mapping[str, Any], most: int) -> None:
    """Raise ValueError unless the columns of a header's `drifts` fit, of at most `most` clients."""
    step, client, kind = drifts["step"], drifts["client"], drifts["kind"]
    if len({len(drifts[name]) for name in DRIFT_COLUMNS}) > 1:
        raise ValueError("drifts must have columns of one length")
    if len(step) == 0:
        return
    order = np.lexsort((client, step))
    if step.min() < 1 or (order != np.arange(len(order))).any() or client.min() < 0 or client.max() >= most:
        raise ValueError(f"drifts must be ascending by step, from 1 on, and then by the {most} clients")
    if kind.min() < 0 or kind.max() >= len(drifts["kinds"]):
        raise ValueError(f"drifts: kind must be a row of the {len(drifts['kinds'])} kinds")


def _unpack_record(line: dict[str, Any], members: Ints | None, most: int) -> int:
    """Unpack the arrays of a record in place and return their size in bytes.

    `members` are the last ones read. ValueError unless each is an array of at most `most` entries.
    """
    num_bytes = 0
    for name, kind in SCHEMA.arrays.items():
        if line.get(name) is not None:
            try:
                line[name] = unpacked(line[name], kind, members if name == "members" else None, most)
            except ValueError as error:
                raise ValueError(f"{name} is not an array ({error})") from error
            num_bytes += line[name].nbytes
    for name in IDS_BY_NAME:
        if isinstance(line.get(name), dict):
            for key, ids in line[name].items():
                line[name][key] = _ids(name, ids, most)
                num_bytes += 8 * len(line[name][key])
    return num_bytes


def _ids(name: str, written: Any, most: int) -> list[int]:
    """A list of ids; ValueError unless they are ascending ids of at most `most` clients."""
    try:
        ids = unpacked(written, np.int64, most_entries=most)
    except ValueError as error:
        raise ValueError(f"{name} is not by name a list of ids ({error})") from error
    if len(ids) and (ids[0] < 0 or ids[-1] >= most or (np.diff(ids.astype(np.int64)) <= 0).any()):
        raise ValueError(f"{name} must have ascending ids of the {most} clients")
    found: list[int] = ids.tolist()
    return found


def _refuse_other_length(members: Ints | None, last: Ints | None) -> None:
    """Raise ValueError if `members` and the `last` ones before them differ in length."""
    if members is not None and last is not None and len(members) != len(last):
        raise ValueError(f"members has {len(members)} entries, and had {len(last)} before")


def _record(line: dict[str, Any]) -> RoundRecord:
    """The record in a line that was checked and whose arrays are unpacked."""
    if line.get("trigger") is not None:
        line["trigger"] = TRIGGERS[frozenset(line["trigger"])](**line["trigger"])
    line |= {name: line.pop(in_a_line) for name, in_a_line in SCHEMA.renamed.items()}
    return RoundRecord(**line)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line's number, from 1, and its content.

    DataFileError if the log cannot be read, or if it or a line is too long.
    """
    number = 0
    try:
        if path.exists() and not path.is_file():
            raise DataFileError(path, "cannot be read as a run log (it is not a regular file)")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > MOST_LOG_BYTES:
                raise DataFileError(path, f"has more than {MOST_LOG_BYTES:,} bytes; a log has fewer")
            while content := file.readline(MOST_LINE_BYTES + 1):
                number += 1
                if len(content) > MOST_LINE_BYTES:
                    raise DataFileError(path, f"damaged: longer than {MOST_LINE_BYTES:,} bytes", row=number)
                yield number, content
    except OSError as error:
        raise DataFileError(path, f"cannot be read as a run log ({error})") from error
