"""Label replay: the label histograms of a real trace, drawn onto the images of an idx folder.

It has real drift timing and a real spread between clients, with pixels that can be trained on. The trace is a
table of labels observed in groups (countries, plots, stations) over time; every group becomes several
clients.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.deprecated import keep_old_names
from emulator.errors import DataFileError
from emulator.numbers import Count, PositiveFactor
from emulator.storage.tables import TableFile, read_table
from traces.draw import StreamSettings, draw_trace, num_windows, refuse_oversize
from traces.idx import read_idx_folder
from traces.sources.base import TraceContext, TraceSource
from traces.trace import Trace

_MICROSECONDS_PER_DAY = 86_400 * 1_000_000

MAX_CELLS = 2**24
"""Most cells (groups x windows x labels) of the table of counts, a hundred times those of a virus's variants
by country and week: 128 MiB, of which a few copies exist while empty windows are filled."""


class LabelReplaySettings(StreamSettings):
    """The table, its columns, and which part of it is replayed."""

    table: str = Field(description="a .csv or .parquet of observed labels")
    images: str = Field(description="folder of the idx image set the labels are drawn onto")
    group: str = Field(description="column that names the group")
    time: str = Field(description="column of the time of observation")
    label: str = Field(description="column of the label")
    count: str | None = Field(None, description="column of how often it was observed; without it, once a row")
    exclude: tuple[str, ...] = Field(
        (), description='labels that are left out; "" leaves out rows whose label is empty'
    )
    most_common: Count | None = Field(None, description="keep only this many labels, the most frequent ones")
    since: date | None = Field(None, description="earlier rows are left out")
    until: date | None = Field(None, description="rows from that day on are left out")
    window_days: PositiveFactor | None = Field(
        None, description="width of a window; without it, every distinct time is one"
    )
    min_windows: Count = Field(1, description="groups observed in fewer windows are left out")
    clients_per_group: Count = Field(10, description="clients that draw from one group's histograms")


class LabelReplay(TraceSource):
    """The label histograms of a real trace, drawn onto the images of an idx folder.

    Client i belongs to group i // clients_per_group and draws its samples from that group's histogram of each
    window. The k-th most frequent label becomes class k of the images. A window without observations replays
    the nearest earlier one (at the start, the nearest later one): a virus that was not sequenced was not
    absent. After the last window no data arrive, and a run may last as long as its clients still hold data:
    one step for each window.

    The second of three windows has no observations, and replays the first:

    >>> filled(np.array([[[3.0, 1.0], [0.0, 0.0], [1.0, 3.0]]])).tolist()
    [[[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]]
    """

    Settings = LabelReplaySettings
    settings: LabelReplaySettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        table = read_table(context.locate(settings.table))
        images = read_idx_folder(context.locate(settings.images))
        counts, names = read_label_counts(table, settings)
        if counts.shape[2] > images.num_labels:
            raise DataFileError(
                table.path,
                f"has {counts.shape[2]} labels in column {settings.label!r}, but the images of "
                f"{settings.images} have {images.num_labels} classes; set most_common or exclude",
            )
        windows = counts.shape[1]
        if windows < settings.retain_steps:
            raise DataFileError(
                table.path,
                f"has {windows} windows, but clients start out with retain_rounds / rounds_per_step = "
                f"{settings.retain_steps} of them; lower trace.retain_rounds",
            )
        if windows < settings.num_steps(context.rounds):
            raise DataFileError(
                table.path,
                f"has {windows} windows, data for {windows * settings.rounds_per_step} rounds at "
                f"rounds_per_step = {settings.rounds_per_step}, but round.rounds = {context.rounds}: its "
                f"clients would be without data",
            )
        replayed = min(num_windows(settings, context.rounds), windows)
        refuse_oversize(settings, len(counts) * settings.clients_per_group, replayed)
        # Filled before it is cut, so that a shorter run replays the beginning of a longer one.
        counts = filled(counts)[:, :replayed]
        shares = counts / counts.sum(axis=2, keepdims=True)
        per_group = settings.clients_per_group
        return draw_trace(
            replace(images, label_names=names),
            (np.repeat(shares[:, window], per_group, axis=0) for window in range(replayed)),
            num_clients=len(counts) * per_group,
            num_windows=replayed,
            settings=settings,
            streams=context.streams,
            scratch=context.scratch,
        )


class LabelCounts(NamedTuple):
    """The number of observations of each label, and the labels.

    `counts` (groups, windows, labels): groups and windows ascend, and labels are in order from the most
    frequent one down; `names` are the labels in that order.
    """

    counts: Floats
    names: tuple[str, ...]


def read_label_counts(table: TableFile, settings: LabelReplaySettings) -> LabelCounts:
    """The observations in the table, counted by group, window and label, in any order of its rows.

    Raises DataFileError if a column is missing or has an invalid value, no rows or groups are left, or there
    are more than MAX_CELLS counts.
    """
    table.require(settings.group, settings.time, settings.label)
    weight = np.ones(len(table))
    if settings.count is not None:
        weight = table.numbers(settings.count, at_least=0)
        with np.errstate(over="ignore"):
            total = float(weight.sum())
        if not math.isfinite(total):
            raise DataFileError(table.path, f"the sum of column {settings.count!r} is not finite")
    days = _days(table, settings.time)
    labels = np.array(table.texts(settings.label, may_be_empty="" in settings.exclude))
    used = _used_rows(table, settings, labels, days)
    # Sum from the smallest weight up, so that the order of the rows does not change a digit of a sum.
    used = used[np.argsort(weight[used], kind="stable")]
    names, label = np.unique(labels[used], return_inverse=True)
    frequency = np.bincount(label, weights=weight[used])
    order = np.lexsort((names, -frequency))[: settings.most_common]
    order = order[frequency[order] > 0]
    rank = np.full(len(names), -1)
    rank[order] = np.arange(len(order))
    ranked = rank[label] >= 0

    group = table.ids(settings.group)[used][ranked]
    window = _windows(table, days[used], settings.window_days)
    shape = (int(group.max(initial=-1)) + 1, int(window.max(initial=-1)) + 1, len(order))
    if math.prod(shape) > MAX_CELLS:
        raise DataFileError(
            table.path,
            f"{shape[0]} groups x {shape[1]} windows x {shape[2]} labels are more than {MAX_CELLS} cells; "
            f"widen window_days, or lower most_common",
        )
    counts = np.zeros(shape)
    np.add.at(counts, (group, window[ranked], rank[label][ranked]), weight[used][ranked])
    observed = (counts.sum(axis=2) > 0).sum(axis=1)
    selected: Floats = counts[observed >= settings.min_windows]
    if len(selected) == 0:
        raise DataFileError(
            table.path,
            f"no {settings.group} was observed in min_windows = {settings.min_windows} windows or more; "
            f"the most is {observed.max(initial=0)}: its clients would be without data",
        )
    return LabelCounts(selected, tuple(names[order].tolist()))


def filled(counts: Floats) -> Floats:
    """`counts`, in which a window without observations repeats the nearest earlier one that has some.

    Windows before the first that has some repeat that one. `counts` is of shape (groups, windows, labels);
    every group must have been observed in at least one window.
    """
    seen = counts.sum(axis=2) > 0  # (groups, windows)
    windows = np.arange(counts.shape[1])
    earlier = np.maximum.accumulate(np.where(seen, windows, -1), axis=1)
    source = np.where(earlier >= 0, earlier, seen.argmax(axis=1)[:, None])
    return np.take_along_axis(counts, source[:, :, None], axis=1)


def _days(table: TableFile, name: str) -> Floats:
    """(rows,) the time column in days: dates and timestamps since 1970, numbers unchanged."""
    column = table.table.column(name)
    kind = column.type
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0]) + 1
        raise DataFileError(table.path, f"{name} is missing", row=row)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        microseconds = pc.cast(pc.cast(column, pa.timestamp("us"), safe=False), pa.int64())
        return np.asarray(microseconds.to_numpy()) / _MICROSECONDS_PER_DAY
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return table.numbers(name)
    raise DataFileError(table.path, f"column {name!r} is {kind}; a time is a date, a timestamp or a number")


def _used_rows(table: TableFile, settings: LabelReplaySettings, labels: np.ndarray, days: Floats) -> Ints:
    """The rows whose label is not excluded and whose time is in [`since`, `until`), ascending.

    Raises DataFileError if there are none, or an excluded label does not occur.
    """
    known = set(labels.tolist())
    for name in settings.exclude:
        if name not in known:
            raise DataFileError(table.path, f"exclude = {name!r}: no such label in column {settings.label!r}")
    used = ~np.isin(labels, settings.exclude)
    for bound, keep in ((settings.since, np.greater_equal), (settings.until, np.less)):
        if bound is not None:
            used &= keep(days, np.datetime64(bound, "D").astype(np.int64))
    if not used.any():
        raise DataFileError(
            table.path, "no row is left between since and until once the excluded labels are out"
        )
    return np.flatnonzero(used)


def _windows(table: TableFile, days: Floats, width: float | None) -> Ints:
    """(rows,) the number of the window that each time falls into.

    Without a `width`, each distinct time is a window. With it, windows are intervals of that many days,
    counted from the first time, and more than MAX_CELLS of them raise DataFileError.
    """
    if width is None:
        return np.unique(days, return_inverse=True)[1].astype(np.int64)
    if float(days.max()) - float(days.min()) >= MAX_CELLS * width:
        raise DataFileError(table.path, f"window_days = {width:g}: more than {MAX_CELLS} windows; widen it")
    window: Ints = ((days - days.min()) // width).astype(np.int64)
    return window


keep_old_names(__name__)
