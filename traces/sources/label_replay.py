"""Label replay: the label histograms of a real trace, drawn onto the images of an idx folder.

It has real drift timing and a real spread between clients, with pixels that can be trained on. The trace is a
table of labels observed in groups (countries, plots, stations) over time; every group becomes several
clients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError, DataFileError
from emulator.numbers import LARGEST, Count, Number, PositiveFactor
from emulator.storage.table_paths import TablePath
from emulator.storage.tables import TableFile, find_table
from traces.arrivals import STEPS_AHEAD
from traces.calendar import MICROSECONDS_PER_DAY, CalendarWidth, periods
from traces.dealt import dealt_table
from traces.draw import (
    StreamSettings,
    draw_table,
    num_windows,
    refuse_oversize,
    refuse_oversize_in_memory,
)
from traces.held_out import TEST_SHARE
from traces.idx import read_idx_folder
from traces.images import ImageSet, has_every_label
from traces.inspection.observations import Observations, counted
from traces.sources.base import TraceContext, TraceSource
from traces.tables.base import Table
from traces.tables.sorted import SortedTable
from traces.trace import Trace

if TYPE_CHECKING:
    from traces.holders import Holders

OF_EQUAL_SIZES = ("samples_per_step", "test_samples_per_step")
"""Settings that have no meaning with samples = 'observed'."""

ADVICE = "trace.most_common or round.rounds, or narrow since and until"

MAX_CELLS = 2**24
"""Most cells (groups x windows x labels) of the table of counts, a hundred times those of a virus's variants
by country and week: 128 MiB, of which a few copies exist while empty windows are filled."""


class LabelReplaySettings(StreamSettings):
    """The table, its columns, and which part of it is replayed."""

    table: TablePath = Field(description="path of a table of observed labels", examples=["lineages.csv"])
    images: str = Field(
        description="folder of the idx image set the labels are drawn onto", examples=["mnist"]
    )
    group: str = Field(description="column that names the group", examples=["country"])
    time: str = Field(description="column of the time of observation", examples=["date"])
    label: str = Field(description="column of the label", examples=["lineage"])
    count: str | None = Field(None, description="column of how often it was observed; without it, once a row")
    exclude: tuple[str, ...] = Field(
        (), description='labels that are left out; "" leaves out rows whose label is empty'
    )
    most_common: Count | None = Field(None, description="keep only this many labels, the most frequent ones")
    since: date | None = Field(None, description="earlier rows are left out")
    until: date | None = Field(None, description="rows from that day on are left out")
    window_days: PositiveFactor | None = Field(
        None, description="width of a window; without it and `window`, every distinct time is one"
    )
    window: CalendarWidth | None = Field(
        None,
        description="windows are those of the calendar (in UTC), instead of a number of days",
        examples=["month"],
    )
    min_windows: Count = Field(1, description="groups observed in fewer windows are left out")
    clients_per_group: Count = Field(
        10, description="clients that draw from one group's histograms, or share its observations"
    )
    samples: Literal["equal", "observed"] = Field(
        "equal",
        description="equal: every client receives samples_per_step and test_samples_per_step, drawn from its "
        "group's shares in the window; observed: each observation of a group is a sample of one "
        "of its clients",
    )
    test_share: Annotated[float, Number(gt=0, lt=1)] | None = Field(
        None,
        description="with samples = 'observed': share of each client's samples of a label that are test "
        f"samples, {TEST_SHARE} by default",
    )
    absent: Literal["replay", "leave"] = Field(
        "replay",
        description="what a group does in a window without observations: replay the nearest one, or leave: "
        "its clients receive nothing",
    )

    def find_files(self, locate: Callable[[str], Path]) -> None:
        for path in (self.table.path, self.images):
            locate(path)

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """All settings, without those that observed sizes replace: these would be refused when read back."""
        unused = OF_EQUAL_SIZES if self.samples == "observed" else ()
        return {key: value for key, value in dump(self).items() if key not in unused}

    def refuse_contradictions(self) -> None:
        """ConfigurationError for two settings that exclude each other."""
        if self.window is not None and self.window_days is not None:
            raise ConfigurationError(
                f"trace.window = {self.window!r} and trace.window_days = {self.window_days:g}: both give the "
                f"width of a window; leave one of them out"
            )
        if self.samples == "equal" and self.test_share is not None:
            raise ConfigurationError(
                f"trace.test_share = {self.test_share:g} and trace.samples = 'equal': test_share is for "
                f"samples = 'observed'; with 'equal', set test_samples_per_step"
            )
        given = [key for key in OF_EQUAL_SIZES if key in self.model_fields_set]
        if self.samples == "observed" and given:
            raise ConfigurationError(
                f"trace.{given[0]} = {getattr(self, given[0])} and trace.samples = 'observed': clients "
                f"receive as many samples as were observed; leave {' and '.join(given)} out of the "
                f"configuration (--set 'trace={{...}}' sets the whole table), or set samples = 'equal'"
            )


class LabelReplay(TraceSource):
    """The label histograms of a real trace, drawn onto the images of an idx folder.

    Client i belongs to group i // clients_per_group. The k-th most frequent label becomes class k of the
    images.

    With absent = "replay" a window without observations replays the nearest earlier one (at the start, the
    nearest later one): a virus that was not sequenced was not absent. With "leave" the group's clients leave
    once their last samples are older than `retain_rounds`; the samples of all other windows are those of
    "replay". After the last window no data arrive, and a run may last as long as its clients still hold data:
    one step for each window. A window that nobody observed is a step too. With test_on = "next" the last
    window is for tests only, and a run ends before it arrives.

    Source: ours.

    The second of three windows has no observations, and replays the first:

    >>> filled(np.array([[[3.0, 1.0], [0.0, 0.0], [1.0, 3.0]]])).tolist()
    [[[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]]
    """

    Settings = LabelReplaySettings
    settings: LabelReplaySettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        settings.refuse_contradictions()
        table = find_table(settings.table, context.locate)
        images = read_idx_folder(context.locate(settings.images))
        counts, names, _ = read_label_counts(table, settings)
        if counts.shape[2] > images.num_labels:
            raise DataFileError(
                table.path,
                f"has {counts.shape[2]} labels in column {settings.label!r}, but the images of "
                f"{settings.images} have {images.num_labels} classes; set most_common or exclude",
            )
        windows, ahead = counts.shape[1], STEPS_AHEAD[settings.test_on]
        tested = ", and are tested on the next one (test_on = 'next')" if ahead else ""
        if windows < settings.retain_steps + ahead:
            raise DataFileError(
                table.path,
                f"has {windows} windows, but clients start out with retain_rounds / rounds_per_step = "
                f"{settings.retain_steps} of them{tested}; lower trace.retain_rounds",
            )
        # Tests on the next arrivals end with these; clients train for as long as they hold samples.
        steps = windows - settings.retain_steps if ahead else windows
        if steps < settings.num_steps(context.rounds):
            raise DataFileError(
                table.path,
                f"has {windows} windows, data for {steps * settings.rounds_per_step} rounds at "
                f"rounds_per_step = {settings.rounds_per_step}, but round.rounds = {context.rounds}: its "
                f"clients would be without data" + (" to be tested on (test_on = 'next')" if ahead else ""),
            )
        replayed = min(num_windows(settings, context.rounds), windows)
        images = replace(images, label_names=names)
        trace = Trace(
            images,
            self.table(images, counts, replayed, context),
            retain_steps=settings.retain_steps,
            rounds_per_step=settings.rounds_per_step,
            noise=settings.noise,
            generator=context.streams.generator("noise"),
            test_then_train=False,
            test_on=settings.test_on,
        )
        return self.changed(trace, context)

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        settings = self.settings
        is_alike = (
            settings.samples == "equal" and not settings.changes and has_every_label(trace.samples.images)
        )
        return trace if is_alike else None

    def observations(self, context: TraceContext) -> Observations:
        """The observations of all groups, in all windows of the table; a group stands for its clients."""
        self.settings.refuse_contradictions()
        read = read_label_counts(find_table(self.settings.table, context.locate), self.settings)
        group, window, label = np.nonzero(read.counts)
        return counted(
            group,
            window,
            label,
            read.counts[group, window, label],
            shape=read.counts.shape,
            first_step=1 - self.settings.retain_steps,
            client_names=read.groups,
            label_names=read.names,
        )

    def table(self, images: ImageSet, counts: Floats, windows: int, context: TraceContext) -> Table:
        """The rows of the first `windows` windows.

        Args:
            images: the images; class k is the k-th label of `counts`.
            counts: the observations of all windows, of shape (groups, windows, labels).
            windows: the number of windows that are replayed.
            context: the random streams, and the folder for large files.

        Returns:
            The rows. With absent = "leave" a client may have none at step 0, or none at all.

        Raises:
            ConfigurationError: there are too many samples.
            InputError: a label that is drawn has no images, or the images are too large.
            RunError: there is no room for the file of a large table.
        """
        make = self._dealt if self.settings.samples == "observed" else self._drawn
        return make(images, counts, windows, context)

    def _drawn(self, images: ImageSet, counts: Floats, windows: int, context: TraceContext) -> Table:
        """The samples of the first `windows`, equally many for each client, drawn from the shares of labels.

        `counts` (groups, all windows, labels) are the observations.
        """
        settings, per_group = self.settings, self.settings.clients_per_group
        groups = len(counts)
        refuse_oversize(settings, groups * per_group, windows)
        if settings.absent == "leave":
            per_window = settings.samples_per_step + settings.test_samples_per_step
            refuse_oversize_in_memory(groups * per_group * windows * per_window, ADVICE)
        # Filled before it is cut, so that a shorter run replays the beginning of a longer one.
        replayed = filled(counts)[:, :windows]
        shares = replayed / replayed.sum(axis=2, keepdims=True)
        table = draw_table(
            images,
            (np.repeat(shares[:, window], per_group, axis=0) for window in range(windows)),
            num_clients=groups * per_group,
            num_windows=windows,
            settings=settings,
            streams=context.streams,
            scratch=context.scratch,
        )
        if settings.absent == "replay":
            return table
        is_observed = counts.sum(axis=2) > 0  # (groups, all windows)
        rows = table.arrivals()
        kept = np.flatnonzero(is_observed[rows.client // per_group, rows.arrival - table.first_step])
        return SortedTable(rows.take(kept), table.num_clients, context.scratch, last_step=table.last_step)

    def _dealt(self, images: ImageSet, counts: Floats, windows: int, context: TraceContext) -> Table:
        """A sample of every observation in the first `windows`.

        `counts` (groups, all windows, labels) are the observations, in whole numbers.
        """
        settings = self.settings
        dealt = (filled(counts) if settings.absent == "replay" else counts)[:, :windows]
        refuse_oversize_in_memory(int(dealt.sum()), ADVICE)
        return dealt_table(
            images,
            dealt.astype(np.int64),
            clients_per_group=settings.clients_per_group,
            test_share=TEST_SHARE if settings.test_share is None else settings.test_share,
            retain_steps=settings.retain_steps,
            streams=context.streams,
            scratch=context.scratch,
        )


class LabelCounts(NamedTuple):
    """The number of observations of each label, the labels and the groups.

    `counts` (groups, windows, labels): groups and windows ascend, and labels are in order from the most
    frequent one down; `names` are the labels in that order, `groups` the groups in theirs.
    """

    counts: Floats
    names: tuple[str, ...]
    groups: tuple[str, ...]


def read_label_counts(table: TableFile, settings: LabelReplaySettings) -> LabelCounts:
    """The observations in the table, counted by group, window and label, in any order of its rows.

    Raises DataFileError if a column is missing or has an invalid value, no rows or groups are left, or there
    are more than MAX_CELLS counts.
    """
    table.require(settings.group, settings.time, settings.label)
    weight = np.ones(len(table))
    if settings.count is not None:
        weight = table.numbers(settings.count, at_least=0, most=LARGEST)
        if settings.samples == "observed":
            _refuse_fractions(table, settings.count, weight)
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

    groups, group_of = np.unique(np.array(table.values(settings.group)), return_inverse=True)
    group = group_of[used][ranked]
    window = _windows(table, days[used], settings)
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
    is_selected = observed >= settings.min_windows
    selected: Floats = counts[is_selected]
    if len(selected) == 0:
        raise DataFileError(
            table.path,
            f"no {settings.group} was observed in min_windows = {settings.min_windows} windows or more; "
            f"the most is {observed.max(initial=0)}: its clients would be without data",
        )
    chosen = groups[: len(counts)][is_selected]
    return LabelCounts(selected, tuple(names[order].tolist()), tuple(map(str, chosen.tolist())))


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
        return np.concatenate(list(map(np.from_dlpack, microseconds.chunks))) / MICROSECONDS_PER_DAY
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


def _refuse_fractions(table: TableFile, name: str, weight: Floats) -> None:
    """DataFileError for the first of the counts `weight` (rows,) that is no whole number."""
    rows = np.flatnonzero(weight != np.floor(weight))
    if len(rows):
        raise DataFileError(
            table.path,
            f"{name} = {weight[rows[0]]:g} must be a whole number with samples = 'observed'",
            row=int(rows[0]) + 1,
        )


def _windows(table: TableFile, days: Floats, settings: LabelReplaySettings) -> Ints:
    """(rows,) the number of the window that each time, in days, falls into.

    Windows are those of the calendar with `window`, and intervals of `window_days` with that, both counted
    from that of the first time. Without either, each distinct time is a window. Raises DataFileError for more
    than MAX_CELLS intervals, and for calendar windows of times that are numbers.
    """
    if settings.window is not None:
        kind = table.table.column(settings.time).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            raise DataFileError(
                table.path,
                f"column {settings.time!r} is {kind}; window = {settings.window!r} needs dates or timestamps",
            )
        period = periods(np.floor(days).astype(np.int64), settings.window)
        number: Ints = period - period.min()
        return number
    width = settings.window_days
    if width is None:
        return np.unique(days, return_inverse=True)[1].astype(np.int64)
    if float(days.max()) - float(days.min()) >= MAX_CELLS * width:
        raise DataFileError(table.path, f"window_days = {width:g}: more than {MAX_CELLS} windows; widen it")
    window: Ints = ((days - days.min()) // width).astype(np.int64)
    return window
