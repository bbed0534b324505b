"""A trace folder: any data set whose samples reach clients at known times."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError, DataFileError
from emulator.numbers import MOST, Count, Number, Share
from emulator.plugins import Settings
from traces.arrivals import SPLITS, Arrivals
from traces.calendar import CALENDAR, MOST_WINDOWS, StepWidth, microseconds, windows_of
from traces.draw import MAX_SAMPLES_IN_MEMORY
from traces.files import ARRIVALS, ArrivalRows, TraceFolder, open_folder
from traces.held_out import TEST_SHARE, held_out
from traces.sources.base import TraceContext, TraceSource
from traces.tables.sorted import SortedTable
from traces.trace import Trace

Bound = date | Annotated[int, Number(ge=-MOST, le=MOST)]

MAX_CELLS = 2**27
"""Most entries (steps x clients) of the table of true concepts."""


class FileSettings(Settings):
    """The folder, how its times become data steps, and how long samples are kept."""

    folder: str = Field(description="a trace folder: arrivals.parquet, features.npy and trace.toml")
    step_width: StepWidth | None = Field(
        None,
        description="width of a data step: days, or 'month', 'quarter' or 'year', of a column time (without "
        "it, a day); ranks, of a column order; steps of the file, of a column step (without it, 1)",
    )
    since: Bound | None = Field(None, description="earlier rows are left out: a date, a step or a rank")
    until: Bound | None = Field(None, description="rows from that date, step or rank on are left out")
    rounds_per_step: Count = Field(10, description="rounds between two arrivals of data")
    retain_rounds: Count = Field(50, description="rounds for which a client keeps a sample")
    test_share: Share | None = Field(
        None,
        description="share of the samples of each client and label that are for tests, if the file has no "
        f"column split; without it, {TEST_SHARE:g}",
    )

    @property
    def retain_steps(self) -> int:
        """Data steps for which a client keeps a sample, rounded up."""
        return -(-self.retain_rounds // self.rounds_per_step)


class File(TraceSource):
    """Any data set as a trace folder, which `driftscale traces build` or a few lines of Python write.

    With a column `step`, rows arrive at that data step, and those below 0 are owned from the start. With
    `time` or `order`, each `step_width` is a window, from `since` or the earliest row on; clients start with
    the windows of `retain_rounds`, and one more arrives at each data step. Clients join when their first
    samples arrive, and leave when their last ones expire. Samples are mapped from the file, not copied.

    A client keeps samples for whole data steps: 45 rounds are 5 steps of 10 rounds.

    >>> FileSettings(folder="portal", rounds_per_step=10, retain_rounds=45).retain_steps
    5
    """

    Settings = FileSettings
    settings: FileSettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        folder = open_folder(context.locate(settings.folder))
        rows, path = folder.rows, folder.path / ARRIVALS
        if rows.split is not None and settings.test_share is not None:
            raise ConfigurationError(
                f"trace.test_share = {settings.test_share}: {path} has a column split, which says what is "
                f"for tests; leave test_share out"
            )
        step = self._steps(folder)
        used = self._used(rows, step)
        if not used.any():
            raise DataFileError(path, "no row is left between since and until that is ever held")
        clients, client = _renumbered(rows.client, used)
        span = max(0, int(step[used].max())) - min(0, int(step[used].min()))
        if span >= MOST_WINDOWS:
            raise DataFileError(
                path, f"its rows span {span} data steps; at most {MOST_WINDOWS} are supported"
            )
        # Rows that arrive after the run are left out; their clients are not.
        used &= step <= -(-context.rounds // settings.rounds_per_step) - 1
        if not used.any():
            raise DataFileError(path, f"no row arrives before round.rounds = {context.rounds}")
        chosen = self._repeated(folder, used)
        arrivals = self._arrivals(folder, chosen, client, step, context)
        table = SortedTable(arrivals, clients, context.scratch)
        concepts = None
        if rows.concept is not None:
            concepts = _true_concepts(folder, rows.concept[chosen], arrivals, table)
        return Trace(
            folder.features,
            table,
            retain_steps=settings.retain_steps,
            rounds_per_step=settings.rounds_per_step,
            noise=0.0,
            generator=context.streams.generator("noise"),
            concepts=concepts,
            test_then_train=False,
            content=self._content(folder, context),
        )

    def _steps(self, folder: TraceFolder) -> np.ndarray:
        """(rows,) the data step at which each row arrives; far below 0 if it is left out.

        Raises ConfigurationError if a setting does not fit the column of times, DataFileError if there are
        not enough windows.
        """
        settings, rows = self.settings, folder.rows
        since, until = (self._bound(rows, key) for key in ("since", "until"))
        kept = np.ones(len(rows), dtype=np.bool_)
        if since is not None:
            kept &= rows.at >= since
        if until is not None:
            kept &= rows.at < until
        if not kept.any():
            raise DataFileError(folder.path / ARRIVALS, "no row is left between trace.since and trace.until")
        window = self._windows(rows, int(rows.at[kept].min()) if since is None else since)
        if rows.when != "step":
            last, owned = int(window[kept].max()), settings.retain_steps
            if last + 1 < owned:
                raise DataFileError(
                    folder.path / ARRIVALS,
                    f"has {last + 1} windows, but clients start out with retain_rounds / rounds_per_step = "
                    f"{owned} of them; lower trace.retain_rounds or trace.step_width",
                )
            window = window - (owned - 1)
        return _narrowed(window if kept.all() else np.where(kept, window, -settings.retain_steps))

    def _windows(self, rows: ArrivalRows, origin: int) -> Ints:
        """(rows,) the window of each row: of time or order counted from `origin`, of steps from step 0."""
        width = self.settings.step_width
        if rows.when == "time":
            return windows_of(rows.at, 1.0 if width is None else width, origin, "trace.step_width")
        if width is None and rows.when == "order":
            raise ConfigurationError(
                "trace.step_width: missing; the trace has a column order, so it must say how many samples of "
                "a client arrive at a data step"
            )
        if isinstance(width, str) or (width is not None and width != int(width)):
            raise ConfigurationError(
                f"trace.step_width = {width!r}: the trace has a column {rows.when}, so it must be a whole "
                f"number; {', '.join(CALENDAR)} and fractions of a day are for a column time"
            )
        start = origin if rows.when == "order" else 0
        shifted: Ints = rows.at.astype(np.int64) - start if start else rows.at
        return shifted if width is None or width == 1 else shifted // int(width)

    def _bound(self, rows: ArrivalRows, key: str) -> int | None:
        """`since` or `until` in the unit of `rows.at`; ConfigurationError if it is of another kind."""
        value: date | int | None = getattr(self.settings, key)
        if value is None:
            return None
        if isinstance(value, date) != (rows.when == "time"):
            wanted = "a date, as in 2015-01-01" if rows.when == "time" else "a whole number"
            raise ConfigurationError(
                f"trace.{key} = {value}: the trace has a column {rows.when}, so it must be {wanted}"
            )
        return microseconds(value) if isinstance(value, date) else value

    def _used(self, rows: ArrivalRows, step: Ints) -> Bools:
        """(rows,) the rows that are held at some data step from 0 on, and counted at least once."""
        used: Bools = step > -self.settings.retain_steps
        return used if rows.count is None else used & (rows.count > 0)

    def _repeated(self, folder: TraceFolder, used: Bools) -> Ints | slice:
        """The rows `used` (rows,), each as often as it is counted; DataFileError if there are too many."""
        count = folder.rows.count
        size = int(used.sum() if count is None else count[used].sum(dtype=np.int64))
        if size > MAX_SAMPLES_IN_MEMORY:
            raise DataFileError(
                folder.path / ARRIVALS, f"has {size} samples; at most {MAX_SAMPLES_IN_MEMORY} are played"
            )
        if count is not None:
            return np.repeat(np.flatnonzero(used), count[used])
        return slice(None) if used.all() else np.flatnonzero(used)

    def _arrivals(
        self, folder: TraceFolder, chosen: Ints | slice, client: np.ndarray, step: Ints, context: TraceContext
    ) -> Arrivals:
        """The rows `chosen` as the columns of a table; DataFileError if a client has test samples only."""
        rows = folder.rows
        label, mine = rows.label[chosen], client[chosen]
        if rows.split is not None:
            split = rows.split[chosen]
            _refuse_test_only(folder, mine, split)
        else:
            share = TEST_SHARE if self.settings.test_share is None else self.settings.test_share
            generator = context.streams.generator("split")
            split = held_out(mine, label, rows.at[chosen], share, generator).astype(np.int8)
        return Arrivals(
            client=mine.astype(np.int32, copy=False),
            split=split,
            arrival=step[chosen],
            label=label,
            image=rows.sample[chosen].astype(np.int32, copy=False),
            noise_start=np.broadcast_to(np.int8(0), len(label)),  # which nothing reads, as there is no noise
        )

    def _content(self, folder: TraceFolder, context: TraceContext) -> str:
        """What determines the rows and the features of the trace, besides the number of rounds."""
        settings = self.settings.model_dump(mode="json", exclude={"folder"})
        facts = folder.facts.model_dump(mode="json", exclude={"files", "origin", "licence"})
        seed = context.streams.seed if folder.rows.split is None else None
        text = repr((sorted(folder.digests.items()), settings, facts, seed))
        return hashlib.sha256(text.encode()).hexdigest()


def _narrowed(step: np.ndarray) -> np.ndarray:
    """`step` in the smallest signed type that holds all its values."""
    least, most = np.min_scalar_type(min(-1, int(step.min()))), np.min_scalar_type(-1 - int(step.max()))
    return step.astype(np.promote_types(least, most), copy=False)


def _renumbered(client: np.ndarray, used: Bools) -> tuple[int, np.ndarray]:
    """The number of clients with a row in `used` (rows,), and (rows,) the number of each row's client."""
    present = np.bincount(client[used], minlength=int(client.max()) + 1) > 0
    if present.all():
        return len(present), client
    return int(present.sum()), (np.cumsum(present) - 1).astype(np.int32)[client]


def _refuse_test_only(folder: TraceFolder, client: np.ndarray, split: np.ndarray) -> None:
    size = int(client.max()) + 1
    has = [np.bincount(client[split == number], minlength=size) > 0 for number in range(len(SPLITS))]
    only = np.flatnonzero(~has[0] & has[1])
    if len(only):
        raise DataFileError(
            folder.path / ARRIVALS,
            f"client {only[0]} (of {size}, in order) has test samples and none for training "
            f"({len(only)} clients are so)",
        )


def _true_concepts(folder: TraceFolder, concept: np.ndarray, arrivals: Arrivals, table: SortedTable) -> Ints:
    """(steps + 1, clients) the concept of each client's newest training samples; the last row repeats.

    Before its first arrival a client has the concept of that one. `concept` (n,) are those of the rows.

    Raises DataFileError if a client's training samples of one step have two concepts, or there are too many
    steps x clients.
    """
    clients, steps = table.num_clients, table.last_step + 1
    if steps * clients > MAX_CELLS:
        raise DataFileError(
            folder.path / ARRIVALS, f"concept: {steps} steps x {clients} clients exceed {MAX_CELLS} entries"
        )
    train = np.flatnonzero(arrivals.split == SPLITS.index("train"))
    order = train[np.lexsort((arrivals.arrival[train], arrivals.client[train]))]
    client, step = arrivals.client[order].astype(np.int64), np.maximum(arrivals.arrival[order], 0)
    sent, same_cell = arrivals.arrival[order], concept[order]
    mixed = (client[1:] == client[:-1]) & (sent[1:] == sent[:-1]) & (same_cell[1:] != same_cell[:-1])
    if mixed.any():
        row = int(np.flatnonzero(mixed)[0])
        raise DataFileError(
            folder.path / ARRIVALS,
            f"concept: client {client[row]} (of {clients}, in order) has concepts {same_cell[row]} and "
            f"{same_cell[row + 1]} at data step {sent[row]}; training samples of one step have one concept",
        )
    newest = np.full((steps + 1, clients), -1, dtype=np.int64)
    newest[step, client] = same_cell  # of rows owned from the start, the latest one is assigned last
    known = np.where(newest >= 0, np.arange(steps + 1)[:, None], -1)
    source = np.maximum.accumulate(known, axis=0)
    source = np.where(source >= 0, source, (newest >= 0).argmax(axis=0)[None, :])
    filled: Ints = np.take_along_axis(newest, source, axis=0)
    return filled
