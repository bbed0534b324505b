"""The settings of the builder `table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from traces.files.arrivals import MOST_CLASSES, When
from traces.files.facts import TokenFacts
from traces.held_out import TEST_SHARE
from traces.partitions import PARTITIONS, Partition

MOST_SKIPPED = 100_000
"""Most bad rows that may be left out: their numbers are kept in memory, and stored with the progress."""

MOST_CHANNELS = 4
"""A last dimension up to this, behind a larger first one, is one of channels."""

TARGET = "target"
"""Begins the keys of columns that are targets."""

Missing = Literal["refuse", "mean", "zero"]
Bound = date | Annotated[int, Number(ge=-MOST, le=MOST)]
Size = Annotated[int, Number(ge=1, le=4096)]


class TableSettings(Given, BuilderSettings):
    """Which columns of the table are what, which rows are used, and what is done about missing values."""

    label: str | None = Field(
        None,
        description="column of the class: texts or whole numbers; with target or tokens it may be left out",
    )
    target: tuple[str, ...] = Field(
        (), description="columns of numbers, or of vectors, that models tell beside the class: targets.npy"
    )
    tokens: TokenFacts | None = Field(
        None,
        description="features are ids of tokens, as { vocabulary = 80, padding = 0 }, and not standardised",
    )
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
    num_classes: Annotated[int, Number(ge=1, le=MOST_CLASSES)] | None = Field(
        None,
        description="labels are numbers from 0 on of that many classes, which stay whether they occur or not",
    )
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
        for problem in self._problems():
            raise ValueError(problem)
        return self

    @field_validator("shape")
    @classmethod
    def _is_shape(cls, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
        problem = None if shape is None else shape_problem(shape)
        if problem is not None:
            raise ValueError(problem)
        return shape

    @property
    def splits_of(self) -> dict[str, int]:
        """The number of the split that each text of the column means."""
        others = (each.partition("=") for each in self.splits)
        named = {text.strip(): SPLITS.index(split.strip()) for text, _, split in others}
        return {split: number for number, split in enumerate(SPLITS)} | named

    @property
    def when(self) -> When:
        """What the trace says of arrivals; rows that are all owned at the start have step 0."""
        when: When = "order" if self.in_file_order else "step"
        return when if self.instant is None else self.instant[0]

    @property
    def time_options(self) -> TimeOptions:
        """What the column of times cannot say itself."""
        return TimeOptions("s" if self.unix_seconds else self.unix, self.time_format, self.zone)

    @property
    def instant(self) -> tuple[When, str] | None:
        """What the column of arrivals says, and its name; None if no column does."""
        named: dict[When, str | None] = {"time": self.time, "step": self.step, "order": self.order}
        return next(((when, name) for when, name in named.items() if name is not None), None)

    def columns_of_keys(self) -> dict[str, str]:
        """The columns that are no features, by what they are."""
        keys = ("client", "label", "time", "step", "order", "expiry", "split", "count", "concept")
        targets = {f"{TARGET} {number}": name for number, name in enumerate(self.target, 1)}
        return {key: getattr(self, key) for key in self._given(*keys)} | targets

    def _given(self, *keys: str) -> list[str]:
        """The ones of these settings that are given: a number also if it is 0."""
        values = ((key, getattr(self, key)) for key in keys)
        return [key for key, value in values if value not in (None, ()) and value is not False]

    def _problems(self) -> Iterator[str]:
        """What is wrong with the settings together; ValueError for a format or a zone."""
        whose = self._given("client", "client_from", "partition")
        if not whose:
            yield (
                "needs either client, a column, or partition, for data without clients; or client_from, a "
                "pattern of paths"
            )
        yield from _exclusive(whose, "a row has one client")
        if self.shape is not None and self.one_hot:
            yield "shape and one_hot exclude each other: zeros and ones are no values of pixels"
        yield from self._only_with("clients", "partition", "; the rows have their clients")
        instants = self._given("time", "step", "order", "in_file_order")
        yield from _exclusive(instants, "a row arrives once")
        yield from self._only_with("unix_seconds", "time", ", the column of times")
        yield from self._only_with("na_everywhere", "na", ", the texts that stand for a missing value")
        yield from self._times_problems()
        yield from self._label_problems()
        yield from self._only_with("expiry", "time, step or order", ", columns that say when a row arrives")
        if self.retain is not None and not instants:
            yield f"retain = {self.retain:g}: without time, step or order all rows are owned at the start"
        for key in self._given("since", "until"):
            bound = getattr(self, key)
            if isinstance(bound, date) != (self.time is not None):
                wanted = "a whole number" if self.time is None else "a date, as 2015-01-01, with time"
                yield f"{key} = {bound}: must be {wanted}"
            yield from self._only_with(key, "time, step or order")
        roles = (*self.columns_of_keys().values(), *(self.features or ()))
        yield from (f"column {name!r} is named twice" for name in roles if roles.count(name) > 1)
        yield from self._only_with("splits", "split", ", the column with train or test")
        for each in self.splits:
            text, _, split = each.partition("=")
            if not text.strip() or split.strip() not in SPLITS:
                yield f"splits: {each!r} must be a text and train or test, as val=test"

    def _label_problems(self) -> Iterator[str]:
        yield from _exclusive(self._given("classes", "num_classes"), "the commonest are numbered anew")
        yield from self._only_with("num_classes", "label", ", whose numbers are those of classes")

    def _times_problems(self) -> Iterator[str]:
        pattern = self.time_format
        yield from self._only_with("unix", "time", ", the column of times")
        if self.unix_seconds and self.unix not in (None, "s"):
            yield f"unix = {self.unix} and unix_seconds, which are s, exclude each other"
        yield from self._only_with("time_format", "time or order")
        if pattern is not None and self._given("unix", "unix_seconds"):
            yield f"time_format = {pattern}: not with unix, as Unix times are numbers"
        if pattern is not None:
            refuse_format(pattern)
        yield from self._only_with("zone", "time", ", the column of times")
        if self.zone is not None and pattern is not None and not has_offset(pattern):
            yield (
                f"zone = {self.zone}: times that are written as {pattern!r} have no offset, %z: their days "
                f"are local ones already"
            )
        if self.zone is not None:
            zone_named(self.zone)

    def _only_with(self, key: str, others: str, why: str = "") -> Iterator[str]:
        """That a setting is given without one of the others, which `others` names."""
        if self._given(key) and not self._given(*others.replace(" or ", ", ").split(", ")):
            value = getattr(self, key)
            shown = key if isinstance(value, bool | tuple) else f"{key} = {value}"
            yield f"{shown}: only with {others}{why}"


def _exclusive(given: Sequence[str], why: str) -> Iterator[str]:
    if len(given) > 1:
        yield f"{' and '.join(given)} exclude each other: {why}"


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
