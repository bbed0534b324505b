"""The settings of the builder `table`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from emulator.numbers import MOST, Count, Number, Share
from emulator.plugins import ChoiceOf, Chosen
from emulator.storage.table_paths import Given
from traces.arrivals import SPLITS
from traces.building.base import BuilderSettings
from traces.building.path_patterns import PatternText
from traces.building.table.times.instants import TimeOptions
from traces.building.table.times.time_texts import has_offset, refuse_format
from traces.building.table.times.time_zones import zone_named
from traces.building.table.times.unix_times import Unit
from traces.files.arrivals import When
from traces.held_out import TEST_SHARE
from traces.partitions import PARTITIONS, Partition

MOST_SKIPPED = 100_000
"""Most bad rows that may be left out: their numbers are kept in memory, and stored with the progress."""

MOST_CHANNELS = 4
"""A last dimension up to this, behind a larger first one, is one of channels."""

Missing = Literal["refuse", "mean", "zero"]
Bound = date | Annotated[int, Number(ge=-MOST, le=MOST)]
Size = Annotated[int, Number(ge=1, le=4096)]


class TableSettings(Given, BuilderSettings):
    """Which columns of the table are what, which rows are used, and what is done about missing values."""

    label: str = Field(description="column of the class: texts or whole numbers")
    client: str | None = Field(None, description="column of the client: texts or whole numbers")
    client_from: PatternText | None = Field(
        None,
        description="where the client is in the path of a file, as {client}/*.csv; other paths are left out",
    )
    partition: Annotated[Chosen[Partition], ChoiceOf(PARTITIONS)] | None = Field(
        None, description="how rows are divided among clients, if no column has them"
    )
    clients: Count | None = Field(None, description="number of clients, with partition")
    time: str | None = Field(None, description="column of dates, timestamps or Unix times (texts: ISO 8601)")
    unix_seconds: bool = Field(False, description="the column of times has whole seconds since 1970")
    step: str | None = Field(None, description="column of data steps; rows up to 0 are owned at the start")
    order: str | None = Field(
        None, description="column by which the rows of a client are ordered; equal ones as in the file"
    )
    in_file_order: bool = Field(False, description="the rows of a client arrive in the order of the file")
    expiry: str | None = Field(
        None,
        description="column of when a client holds the row no longer, in the unit of time, step or order; "
        "empty: never",
    )
    features: tuple[str, ...] | None = Field(
        None,
        description="columns of numbers or of vectors, or one of images; a_*: all that begin with a_; "
        "without it, all other columns",
    )
    shape: tuple[Count, ...] | None = Field(
        None, description="height, width, or channels, height, width of the image that the features make"
    )
    one_hot: tuple[str, ...] = Field(
        (), description="features that become one column for each of their values"
    )
    missing: Missing = Field(
        "refuse",
        description="missing features: refuse them, or fill them with the mean of the training rows, or with "
        "zero; a one_hot feature then has zero in all its columns",
    )
    split: str | None = Field(None, description="column with train or test; without it, tests are held out")
    splits: tuple[str, ...] = Field(
        (), description="what other texts of the column split are, as val=test,dev=train"
    )
    count: str | None = Field(None, description="column with how often a row arrives")
    concept: str | None = Field(None, description="column of true concepts, whole numbers >= 0")
    classes: Count | None = Field(None, description="only rows of that many classes, the commonest ones")
    min_samples: Count = Field(1, description="only clients with at least that many rows")
    since: Bound | None = Field(None, description="only rows from this date, step or value of order on")
    until: Bound | None = Field(None, description="only rows before this date, step or value of order")
    limit: Count | None = Field(None, description="only that many rows, spread evenly over the file")
    retain: Annotated[float, Number(gt=0, le=MOST)] | None = Field(
        None,
        description="days, steps or ranks whose training rows, those that clients own at the start, numbers "
        "are standardised on; without it, on all",
    )
    test_share: Share = Field(
        TEST_SHARE,
        description="share of each client's rows of each label that is held out for tests, without split",
    )
    size: Size = Field(32, description="height and width to which images are resized")
    grey: bool = Field(False, description="grey images of shape (size, size) instead of (3, size, size)")
    upright: bool = Field(False, description="turn images as EXIF says; without it, pixels stay as stored")
    skip_bad: Annotated[int, Number(ge=0, le=MOST_SKIPPED)] = Field(
        0, description="how many bad rows may be left out; the first one more ends the build"
    )
    na: tuple[str, ...] = Field(
        (), description="texts that stand for a missing feature, besides an empty cell, NA, NaN and the like"
    )
    na_everywhere: bool = Field(
        False, description="the texts of na stand for a missing label, client, time, step or split, too"
    )
    unix: Unit | None = Field(
        None, description="unit of Unix times: s, ms, us or ns; without it, it is told by their sizes"
    )
    time_format: str | None = Field(
        None, description="how times are written, with the directives of strptime, such as %d.%m.%Y %H:%M"
    )
    zone: str | None = Field(
        None,
        description="time zone whose days count, for times with an offset and Unix times, such as "
        "Europe/Berlin; without it, UTC",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> TableSettings:
        self._one_says_the_client()
        if self.shape is not None and self.one_hot:
            raise ValueError("shape and one_hot exclude each other: zeros and ones are no values of pixels")
        if self.clients is not None and self.partition is None:
            raise ValueError(f"clients = {self.clients}: only with partition; the rows have their clients")
        instants = [key for key in ("time", "step", "order") if getattr(self, key) is not None]
        instants += ["in_file_order"] if self.in_file_order else []
        if len(instants) > 1:
            raise ValueError(f"{' and '.join(instants)} exclude each other: a row arrives once")
        if self.unix_seconds and self.time is None:
            raise ValueError("unix_seconds: only with time, the column of times")
        if self.na_everywhere and not self.na:
            raise ValueError("na_everywhere: only with na, the texts that stand for a missing value")
        self._times_fit()
        if self.expiry is not None and (not instants or self.in_file_order):
            raise ValueError(
                f"expiry = {self.expiry}: only with time, step or order, columns that say when a row arrives"
            )
        if not instants and self.retain is not None:
            raise ValueError(
                f"retain = {self.retain:g}: without time, step or order all rows are owned at the start"
            )
        for key in ("since", "until"):
            self._bound_fits(key)
        roles = [name for name in (*self._keys().values(), *(self.features or ())) if name is not None]
        twice = next((name for name in roles if roles.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"column {twice!r} is named twice")
        return self

    @field_validator("shape")
    @classmethod
    def _is_shape(cls, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
        problem = None if shape is None else shape_problem(shape)
        if problem is not None:
            raise ValueError(problem)
        return shape

    @model_validator(mode="after")
    def _splits_are_said(self) -> TableSettings:
        if self.splits and self.split is None:
            raise ValueError("splits: only with split, the column with train or test")
        for each in self.splits:
            text, _, split = each.partition("=")
            if not text.strip() or split.strip() not in SPLITS:
                raise ValueError(f"splits: {each!r} must be a text and train or test, as val=test")
        return self

    @property
    def splits_of(self) -> dict[str, int]:
        """The number of the split that each text of the column means."""
        others = (each.partition("=") for each in self.splits)
        named = {text.strip(): SPLITS.index(split.strip()) for text, _, split in others}
        return {split: number for number, split in enumerate(SPLITS)} | named

    @property
    def when(self) -> When:
        """What the trace says of arrivals; rows that are all owned at the start have step 0."""
        if self.time is not None:
            return "time"
        return "order" if self.order is not None or self.in_file_order else "step"

    @property
    def time_options(self) -> TimeOptions:
        """What the column of times cannot say itself."""
        return TimeOptions("s" if self.unix_seconds else self.unix, self.time_format, self.zone)

    @property
    def instant(self) -> tuple[When, str] | None:
        """What the column of arrivals says, and its name; None if no column does."""
        named: dict[When, str | None] = {"time": self.time, "step": self.step, "order": self.order}
        return next(((when, name) for when, name in named.items() if name is not None), None)

    def of_expiry(self) -> TableSettings:
        """Settings by which the column of expiry is read as that of arrivals."""
        assert self.instant is not None, "a column says when rows arrive"
        return self.model_copy(update={self.instant[0]: self.expiry, "expiry": None})

    def columns_of_keys(self) -> dict[str, str]:
        """The columns that are no features, by what they are."""
        return {key: name for key, name in self._keys().items() if name is not None}

    def _keys(self) -> dict[str, str | None]:
        keys = ("client", "label", "time", "step", "order", "expiry", "split", "count", "concept")
        return {key: getattr(self, key) for key in keys}

    def _times_fit(self) -> None:
        if self.unix is not None and self.time is None:
            raise ValueError(f"unix = {self.unix}: only with time, the column of times")
        if self.unix_seconds and self.unix not in (None, "s"):
            raise ValueError(f"unix = {self.unix} and unix_seconds, which are s, exclude each other")
        if self.time_format is not None:
            if self.time is None and self.order is None:
                raise ValueError(f"time_format = {self.time_format}: only with time or order")
            if self.unix_seconds or self.unix is not None:
                raise ValueError(
                    f"time_format = {self.time_format}: not with unix, as Unix times are numbers"
                )
            refuse_format(self.time_format)
        if self.zone is not None:
            if self.time is None:
                raise ValueError(f"zone = {self.zone}: only with time, the column of times")
            if self.time_format is not None and not has_offset(self.time_format):
                raise ValueError(
                    f"zone = {self.zone}: times that are written as {self.time_format!r} have no offset, %z: "
                    f"their days are local ones already"
                )
            zone_named(self.zone)

    def _one_says_the_client(self) -> None:
        given = [key for key in ("client", "client_from", "partition") if getattr(self, key) is not None]
        if not given:
            raise ValueError(
                "needs either client, a column, or partition, for data without clients; or client_from, a "
                "pattern of paths"
            )
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other: a row has one client")

    def _bound_fits(self, key: str) -> None:
        bound = getattr(self, key)
        if bound is None:
            return
        if isinstance(bound, date) != (self.time is not None):
            wanted = "a date, as 2015-01-01, with time" if self.time is not None else "a whole number"
            raise ValueError(f"{key} = {bound}: must be {wanted}")
        if self.step is None and self.time is None and self.order is None:
            raise ValueError(f"{key} = {bound}: only with time, step or order")


def shape_problem(shape: Sequence[int]) -> str | None:
    """Why images cannot have that shape; None if they can.

    >>> shape_problem((28, 28)), shape_problem((3, 32, 32)), shape_problem((7,))
    (None, None, 'an image has 2 or 3 dimensions, not 1: as 28,28 or 3,32,32')
    """
    if len(shape) not in (2, 3):
        return f"an image has 2 or 3 dimensions, not {len(shape)}: as 28,28 or 3,32,32"
    if len(shape) == 3 and shape[2] <= MOST_CHANNELS < shape[0]:
        height, width, channels = shape
        return (
            f"{height} x {width} x {channels} has the channels last; they come first, as {channels},{height},"
            f"{width}: store the images so"
        )
    return None
