"""A trace folder: any data set whose samples reach clients at known times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from pydantic import Field, field_validator

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError, DataFileError, MissingFileError
from emulator.numbers import MOST, Count, Number, Share
from traces.arrivals import SPLITS, STEPS_AHEAD, Arrivals, TestOn
from traces.calendar import MOST_WINDOWS, StepWidth
from traces.changes.settings import ChangingSettings
from traces.draw import MAX_SAMPLES_IN_MEMORY, TEST_ON
from traces.files import ARRIVALS, ArrivalRows, TraceFolder, open_folder
from traces.files.arrivals import clients_in
from traces.files.expiry import EXPIRY
from traces.files.windows import windows_of_rows
from traces.held_out import TEST_SHARE, held_out
from traces.holders import CertainHolders, Holders
from traces.sources.base import TraceContext, TraceSource
from traces.tables.base import NEVER, Table
from traces.tables.expiring import ExpiringTable
from traces.tables.sorted import SortedTable
from traces.trace import Trace

Bound = date | Annotated[int, Number(ge=-MOST, le=MOST)]

TRAIN = SPLITS.index("train")

MAX_CELLS = 2**27
"""Most entries (steps x clients) of the table of true concepts."""


class FileSettings(ChangingSettings):
    """The folder, how its times become data steps, and how long samples are kept."""

    folder: str = Field(
        description="a trace folder: arrivals.parquet, features.npy and trace.toml",
        examples=["traces/sensors"],
    )
    step_width: StepWidth | None = Field(
        None,
        description="width of a data step: days (1 by default), 'month', 'quarter' or 'year', of a column "
        "time; ranks, of a column order; steps (1 by default), of a column step",
    )
    since: Bound | None = Field(None, description="earlier rows are left out: a date, a step or a rank")
    until: Bound | None = Field(None, description="rows from that date, step or rank on are left out")
    rounds_per_step: Count = Field(10, description="rounds between two arrivals of data")
    retain_rounds: Count | Literal["all"] = Field(
        50,
        description="rounds for which a client keeps a sample, or 'all': to the end. With a column expiry, "
        "it says only with how many windows of a column time or order clients start",
    )
    test_share: Share | None = Field(
        None,
        description="share of the samples of each client and label that are for tests, if the file has no "
        f"column split; without it, {TEST_SHARE:g}",
    )
    test_on: TestOn = Field("present", description=TEST_ON)

    build: str | None = Field(
        None, description="the command that makes the folder: an error names it where there is no such folder"
    )

    @field_validator("retain_rounds", mode="before")
    @classmethod
    def _is_a_number_or_all(cls, rounds: Any) -> Any:
        if isinstance(rounds, str) and rounds != "all":
            raise ValueError("must be a number of rounds, or 'all'")
        return rounds

    def find_files(self, locate: Callable[[str], Path]) -> None:
        self.located(locate)

    @property
    def retain_steps(self) -> int:
        """Data steps for which a client keeps a sample, rounded up; `NEVER` if it keeps all."""
        return NEVER if self.retain_rounds == "all" else -(-self.retain_rounds // self.rounds_per_step)

    @property
    def owned_windows(self) -> int:
        """Windows of times or ranks that clients own from the start; one, if they keep all that arrives."""
        return 1 if self.retain_rounds == "all" else self.retain_steps

    def located(self, locate: Callable[[str], Path]) -> Path:
        """The folder as `locate` finds it.

        Raises what `locate` raises; MissingFileError has the command that makes the folder, if the settings
        have one.
        """
        try:
            return locate(self.folder)
        except MissingFileError as error:
            if self.build is None:
                raise
            raise MissingFileError(error.path, f"{error.problem}; build it: {self.build}") from error


class Steps(NamedTuple):
    """The data steps of the rows of a folder, as columns of shape (rows,).

    Attributes:
        arrival: When each row arrives. A row that is left out arrives before all that is held at step 0.
        expiry: When it is held no longer, `NEVER` if it is held to the end, and 0 if it is left out; None:
            all are held for as many steps as the settings say.
    """

    arrival: np.ndarray
    expiry: Ints | None


class File(TraceSource):
    """Any data set as a trace folder, which `driftscale traces build` or a few lines of Python write.

    With a column `step`, rows arrive at that data step, and those below 0 are owned from the start. With
    `time` or `order`, each `step_width` is a window, from `since` or the earliest row on; clients start with
    the windows of `retain_rounds`, and one more arrives at each data step. Clients join when their first
    samples arrive, and leave when their last ones expire. Samples are mapped from the file, not copied.

    A client keeps samples for whole data steps: 45 rounds are 5 steps of 10 rounds. With a column `expiry` it
    keeps each from the data step of its arrival until before that of its expiry.

    Source: ours.

    >>> FileSettings(folder="portal", rounds_per_step=10, retain_rounds=45).retain_steps
    5
    """

    Settings = FileSettings
    settings: FileSettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        folder = open_folder(settings.located(context.locate))
        rows, path = folder.rows, folder.path / ARRIVALS
        if rows.split is not None and settings.test_share is not None:
            raise ConfigurationError(
                f"trace.test_share = {settings.test_share}: {path} has a column split, which says what is "
                f"for tests; leave test_share out"
            )
        steps = self._steps(folder)
        step = steps.arrival
        used = self._used(rows, steps)
        if not used.any():
            raise DataFileError(path, "no training sample that is left is ever held")
        clients, client = _renumbered(rows.client, used)
        span = max(0, int(step[used].max())) - min(0, int(step[used].min()))
        if span >= MOST_WINDOWS:
            raise DataFileError(
                path, f"its rows span {span} data steps; at most {MOST_WINDOWS} are supported"
            )
        # The last step whose rows are used: that of the run, or with test_on = "next" the one after it.
        last_step = -(-context.rounds // settings.rounds_per_step) - 1 + STEPS_AHEAD[settings.test_on]
        in_run = step <= last_step
        if not (used & in_run).any():
            raise DataFileError(path, f"no row arrives before round.rounds = {context.rounds}")
        chosen, split = self._split(folder, used, in_run, context)
        arrivals = Arrivals(
            client=client[chosen].astype(np.int32, copy=False),
            split=split,
            arrival=step[chosen],
            label=rows.label[chosen],
            image=rows.sample[chosen].astype(np.int32, copy=False),
            noise_start=np.broadcast_to(np.int8(0), len(split)),  # which nothing reads, without noise
        )
        table: Table
        if steps.expiry is None:
            table = SortedTable(arrivals, clients, context.scratch)
        else:
            table = ExpiringTable(arrivals, steps.expiry[chosen], clients, context.scratch)
        concepts = None
        if rows.concept is not None:
            num_steps = -(-context.rounds // settings.rounds_per_step)
            concepts = _true_concepts(folder, chosen, arrivals, table.num_clients, num_steps)
        trace = Trace(
            folder.features,
            table,
            retain_steps=settings.retain_steps if steps.expiry is None else NEVER,
            rounds_per_step=settings.rounds_per_step,
            noise=0.0,
            generator=context.streams.generator("noise"),
            concepts=concepts,
            test_then_train=False,
            test_on=settings.test_on,
            content=self._content(folder, context),
            client_names=_names(rows, used, clients),
        )
        names = [str(name) for name in _names(rows, used, clients)] if settings.changes else ()
        return self.changed(trace, context, names)

    def num_steps(self, locate: Callable[[str], Path]) -> int:
        """Count the data steps up to that of the last arrivals.

        Args:
            locate: resolves the path of the folder.

        Returns:
            The number of steps from step 0 on, at least one.

        Raises:
            ConfigurationError: a setting does not fit the folder.
            DataFileError: the folder cannot be used.
        """
        folder = open_folder(self.settings.located(locate))
        steps = self._steps(folder)
        used = self._used(folder.rows, steps)
        return 1 + int(steps.arrival.max(where=used, initial=0))

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        if self.settings.changes:
            return None
        path = self.settings.located(context.locate) / ARRIVALS
        names = pq.read_schema(path).names
        if "split" in names:
            return trace
        # Which training samples of a step have one concept differs too, and which of a time expire together.
        if "concept" in names or EXPIRY in names:
            return None
        return CertainHolders(
            trace.table,
            self.settings.retain_steps,
            self.settings.rounds_per_step,
            self._test_share,
            self.settings.test_on,
            trace.client_names,
        )

    def taking_part(self, folder: TraceFolder) -> tuple[Ints, int]:
        """The clients of the trace of `folder`, and the data step of its last arrivals.

        Returns:
            (clients,) numbers among the clients of the folder, ascending, as the trace numbers them from 0
            on; and the step.
        """
        steps = self._steps(folder)
        used = self._used(folder.rows, steps)
        clients: Ints = np.flatnonzero(np.bincount(folder.rows.client[used]))
        return clients, int(steps.arrival.max(where=used, initial=0))

    @property
    def _test_share(self) -> float:
        """The share of samples that are for tests, where the file does not say which."""
        return TEST_SHARE if self.settings.test_share is None else self.settings.test_share

    def key(self, name: str) -> str:
        """The name of a setting in messages, as its user knows it.

        Args:
            name: the name of the setting.
        """
        return f"trace.{name}"

    def _steps(self, folder: TraceFolder) -> Steps:
        """The data steps at which each row arrives and expires.

        Raises ConfigurationError if a setting does not fit the column of times, DataFileError if there are
        not enough windows.
        """
        settings, rows, path = self.settings, folder.rows, folder.path / ARRIVALS
        kept, step, expiry = windows_of_rows(
            rows,
            path,
            width=settings.step_width,
            since=settings.since,
            until=settings.until,
            key=self.key,
        )
        if rows.when != "step":
            last, owned = int(step[kept].max()), settings.owned_windows
            if last + 1 < owned:
                raise DataFileError(
                    path,
                    f"has {last + 1} windows, but clients start out with retain_rounds / rounds_per_step = "
                    f"{owned} of them; lower {self.key('retain_rounds')} or {self.key('step_width')} (in "
                    f"days for a column time, also fractions of one)",
                )
            step = step - (owned - 1)
            if expiry is not None:
                expiry = np.where(expiry == NEVER, NEVER, expiry - (owned - 1))
        if expiry is not None:
            return Steps(_narrowed(np.where(kept, step, 0)), np.where(kept, expiry, 0).astype(np.int32))
        return Steps(_narrowed(step if kept.all() else np.where(kept, step, -settings.retain_steps)), None)

    def _used(self, rows: ArrivalRows, steps: Steps) -> Bools:
        """(rows,) the rows that are held at some data step from 0 on, and counted at least once.

        A client whose rows of that kind are all for tests never takes part, and they are left out too.
        """
        oldest, expiry = 1 - self.settings.retain_steps, steps.expiry
        used: Bools = steps.arrival >= oldest if expiry is None else expiry > 0
        if rows.count is not None:
            used &= rows.count > 0
        if rows.split is not None:
            trains = clients_in(rows, TRAIN, used)
            if not trains.all():
                used &= trains[rows.client]
        return used

    def _split(
        self, folder: TraceFolder, used: Bools, in_run: Bools, context: TraceContext
    ) -> tuple[Ints | slice, np.ndarray]:
        """The rows `used` that arrive `in_run`, each as often as it is counted, and (n,) the split of each.

        Which rows are held out for tests does not depend on the number of rounds.
        """
        rows = folder.rows
        if rows.split is not None:
            chosen = self._repeated(folder, used & in_run)
            return chosen, rows.split[chosen]
        everything = self._repeated(folder, used)
        columns = (rows.client[everything], rows.label[everything], rows.at[everything])
        split = held_out(*columns, self._test_share, context.streams.generator("split")).astype(np.int8)
        kept = in_run[everything]
        if kept.all():
            return everything, split
        chosen = np.flatnonzero(kept) if isinstance(everything, slice) else everything[kept]
        return chosen, split[kept]

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

    def _content(self, folder: TraceFolder, context: TraceContext) -> str:
        """What determines the rows and features of the trace, besides the rounds and `test_on`."""
        settings = self.settings.model_dump(mode="json", exclude={"folder", "build", "test_on", "changes"})
        # Only if a folder states it: others keep the digest that their runs are filed under.
        not_stated = {key for key in ("tokens", "objective") if getattr(folder.facts, key) is None}
        facts = folder.facts.model_dump(mode="json", exclude={"files", "origin", "licence", *not_stated})
        seed = context.streams.seed if folder.rows.split is None else None
        text = repr((sorted(folder.digests.items()), settings, facts, seed))
        return hashlib.sha256(text.encode()).hexdigest()


def _narrowed(step: np.ndarray) -> np.ndarray:
    """`step` in the smallest signed type that holds all its values."""
    least, most = np.min_scalar_type(min(-1, int(step.min()))), np.min_scalar_type(-1 - int(step.max()))
    return step.astype(np.promote_types(least, most), copy=False)


def _names(rows: ArrivalRows, used: Bools, num_clients: int) -> tuple[str, ...] | Ints:
    """The names of the `num_clients` clients that have a row in `used` (rows,)."""
    if num_clients == len(rows.clients):
        return rows.clients
    present = np.unique(rows.client[used])
    if isinstance(rows.clients, tuple):
        return tuple(rows.clients[number] for number in present.tolist())
    numbers: Ints = rows.clients[present]
    return numbers


def _renumbered(client: np.ndarray, used: Bools) -> tuple[int, np.ndarray]:
    """The number of clients with a row in `used` (rows,), and (rows,) the number of each row's client."""
    present = np.bincount(client[used], minlength=int(client.max()) + 1) > 0
    if present.all():
        return len(present), client
    return int(present.sum()), (np.cumsum(present) - 1).astype(np.int32)[client]


def _true_concepts(
    folder: TraceFolder, chosen: Ints | slice, arrivals: Arrivals, clients: int, steps: int
) -> Ints:
    """(steps + 1, clients) the concept of each client's newest training samples.

    `steps` are those of the run: it may last longer than samples arrive. The last row is of the step after
    the run, and repeats the one before if `arrivals` has none of then. Before its first arrival a client has
    the concept of that one; one without arrivals has 0. `arrivals` are the rows `chosen` of the folder.

    Raises DataFileError if a client's training samples of one step have two concepts, or there are too many
    steps x clients.
    """
    rows, path = folder.rows, folder.path / ARRIVALS
    assert rows.concept is not None, "the concepts are known"
    if steps * clients > MAX_CELLS:
        raise DataFileError(path, f"concept: {steps} steps x {clients} clients exceed {MAX_CELLS} entries")
    train = np.flatnonzero(arrivals.split == TRAIN)
    order = train[np.lexsort((arrivals.arrival[train], arrivals.client[train]))]
    client, sent = arrivals.client[order].astype(np.int64), arrivals.arrival[order]
    row = order if isinstance(chosen, slice) else chosen[order]
    concept = rows.concept[row]
    mixed = (client[1:] == client[:-1]) & (sent[1:] == sent[:-1]) & (concept[1:] != concept[:-1])
    if mixed.any():
        first = int(np.flatnonzero(mixed)[0])
        second = int(row[first + 1])
        raise DataFileError(
            path,
            f"concept: client {rows.name_of(rows.client[second])} has concepts {concept[first]} and "
            f"{concept[first + 1]} at data step {sent[first]}; training samples of one step have one concept",
            row=second + 1,
        )
    newest = np.full((steps + 1, clients), -1, dtype=np.int64)
    # Of rows owned from the start, the latest one is assigned last.
    newest[np.maximum(sent, 0), client] = concept
    known = np.where(newest >= 0, np.arange(steps + 1)[:, None], -1)
    source = np.maximum.accumulate(known, axis=0)
    source = np.where(source >= 0, source, (newest >= 0).argmax(axis=0)[None, :])
    filled: Ints = np.maximum(np.take_along_axis(newest, source, axis=0), 0)
    return filled
