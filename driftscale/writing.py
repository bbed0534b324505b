"""`driftscale.write_trace`: a trace folder of an array and a pandas frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from driftscale.arguments import AnyPath, path_of, settings_of
from driftscale.one_line import in_python, one_line
from driftscale.opening import TraceFolder
from emulator.errors import InputError
from emulator.storage.checkpoints import delete_folder

if TYPE_CHECKING:
    import pandas as pd


@one_line
def write_trace(
    folder: AnyPath,
    features: Any,
    frame: pd.DataFrame | Mapping[str, Any],
    *,
    label: str | None = None,
    client: str | None = None,
    partition: str | Mapping[str, Any] | None = None,
    clients: int | None = None,
    time: str | None = None,
    unix: Literal["s", "ms", "us", "ns"] | None = None,
    unix_seconds: bool = False,
    time_format: str | None = None,
    zone: str | None = None,
    step: str | None = None,
    order: str | None = None,
    in_file_order: bool = False,
    expiry: str | None = None,
    split: str | None = None,
    splits: str | Sequence[str] = (),
    count: str | None = None,
    concept: str | None = None,
    tokens: bool | int | None = None,
    vocabulary: int | None = None,
    targets: Any = None,
    class_names: Sequence[str] | None = None,
    num_classes: int | None = None,
    classes: int | None = None,
    min_samples: int = 1,
    since: date | str | int | None = None,
    until: date | str | int | None = None,
    limit: int | None = None,
    retain: float | None = None,
    test_share: float | None = None,
    skip_bad: int = 0,
    most_cells: int | None = None,
    seed: int = 0,
    fresh: bool = False,
) -> TraceFolder:
    """Write a trace folder of samples in memory, by the rules of `driftscale traces build table`.

        driftscale.write_trace("traces/own", features, frame, client="device", label="kind", time="seen")

    Samples stay as they are if they are bytes (uint8), and become float32 otherwise: floats are rounded, and
    whole numbers must be at most 2^24 in size. A value that is not finite is refused with its row. Each
    channel is standardised by its mean and deviation over the training rows when the trace is played, unless
    samples are tokens: their ids, whole numbers, stay as they are.

    Args:
        folder: The trace folder to make, which must not exist.
        features: The samples, a numpy array or a torch tensor of shape (n, features), (n, height, width) or
            (n, channels, height, width).
        frame: A pandas frame of n rows, or a mapping of columns that makes one. Row i is about features[i],
            whatever its index is; messages count rows from 0, as `frame.iloc` does.
        label: Column of the class: texts, whole numbers, or categories, whose order the classes keep; only
            with targets or tokens may it be left out, and there is one class then.
        client: Column of the client: texts or whole numbers.
        partition: Instead of client, how rows are divided among clients: a name such as "dirichlet", or a
            mapping such as {"kind": "dirichlet", "alpha": 0.1}; `driftscale parts partition` lists them.
        clients: Number of clients of the partition.
        time: Column of timestamps or dates. Without any of time, step, order and in_file_order, clients own
            all rows at the start.
        unix: Unit of times that are numbers, since 1970; default: told by their sizes.
        unix_seconds: The same as unix="s".
        time_format: How times that are texts are written, as strptime reads it; default: ISO 8601.
        zone: Time zone whose days count, of times with an offset and Unix times; default: UTC.
        step: Column of data steps, whole numbers; rows up to 0 are owned at the start.
        order: Column by which the rows of a client are ordered.
        in_file_order: Whether the rows of a client arrive in the order of the frame.
        expiry: Column of when a client holds the row no longer, in the unit of time, step or order; a missing
            one is never.
        split: Column with "train" or "test"; without it, tests are held out.
        splits: What other texts of that column are, as "val=test"; one, or a list of several.
        count: Column with how often a row arrives.
        concept: Column of true concepts, whole numbers from 0 on.
        tokens: Whether samples are texts, of shape (n, tokens): ids of tokens; or the id of the token that
            fills up short ones.
        vocabulary: The number of tokens, whose ids are 0 to vocabulary - 1.
        targets: What models are to tell beside the class: numbers of shape (n,) or (n, targets), or the names
            of one or several columns.
        class_names: Names of labels that are whole numbers: class i, output i of a model, is named
            class_names[i], whether it occurs or not.
        num_classes: Number of classes, of which labels are numbers from 0 on, without names; without it and
            class_names, classes are those that occur.
        classes: Only rows of that many classes, the commonest ones.
        min_samples: Only clients with at least that many rows.
        since: Only rows from this date, step or value of order on.
        until: Only rows before this date, step or value of order.
        limit: Only that many rows, spread evenly over the frame.
        retain: Mean and deviation are those of training rows of the first so many days, steps or ranks, which
            clients own at the start; default: of all training rows.
        test_share: Share of each client's rows of each label that is held out for tests; default: 0.2.
        skip_bad: How many rows that break a rule may be left out.
        most_cells: Most cells (rows x columns) of the frame that are read; default: 2^28.
        seed: Seed of all that is drawn: the partition, the test samples.
        fresh: Whether to delete what an interrupted `driftscale traces build` of the folder has left.

    Returns:
        The folder, opened: it shows what was written, with remarks such as how many rows were left out.

    Raises:
        EmulatorError: Of one line; nothing is left of the folder. An InputError names the row and the rule.
        OSError: A file cannot be written or read; the error has its name. Nothing is left of the folder.
    """
    from traces.building.table.frame import write_frame
    from traces.building.table.settings import TableSettings
    from traces.files import open_folder

    if (tokens is None or tokens is False) != (vocabulary is None):
        raise InputError(
            f"tokens={tokens}, vocabulary={vocabulary}: samples of tokens need both, others neither"
        )
    padding = {} if tokens is True else {"padding": tokens}
    names = [targets] if isinstance(targets, str) else targets
    in_columns = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    settings = settings_of(
        TableSettings,
        {
            "label": label,
            "target": names if in_columns else (),
            "tokens": None if vocabulary is None else {"vocabulary": vocabulary, **padding},
            "num_classes": num_classes,
            "client": client,
            "partition": partition,
            "clients": clients,
            "time": time,
            "unix": unix,
            "unix_seconds": unix_seconds,
            "time_format": time_format,
            "zone": zone,
            "step": step,
            "order": order,
            "in_file_order": in_file_order,
            "expiry": expiry,
            "split": split,
            "splits": [splits] if isinstance(splits, str) else splits,
            "count": count,
            "concept": concept,
            "classes": classes,
            "min_samples": min_samples,
            "since": since,
            "until": until,
            "limit": limit,
            "retain": retain,
            "test_share": test_share,
            "skip_bad": skip_bad,
            "most_cells": most_cells,
            "seed": seed,
        },
        "write_trace",
    )

    path = path_of(folder, "folder")
    built = write_frame(
        path,
        features,
        _as_frame(frame),
        settings,
        class_names=class_names if class_names is None or isinstance(class_names, str) else list(class_names),
        targets=None if in_columns else targets,
        fresh=fresh,
    )
    try:
        opened = open_folder(path)
    except Exception:  # nothing is left, so that the same call succeeds
        delete_folder(path)
        raise
    parameters = signature(write_trace).parameters
    return TraceFolder(
        opened, notes=tuple(in_python(text, parameters) for text in built.notes), play=built.play
    )


def _as_frame(given: pd.DataFrame | Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    if isinstance(given, pd.DataFrame):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"frame: is a {type(given).__name__}; must be a pandas frame, or columns by name")
    try:
        return pd.DataFrame(dict(given))
    except ValueError as error:  # columns of unequal length
        raise InputError(f"frame: {error}") from error
