"""Images whose labels drift: `digits` (needs no file) and `idx` (a folder like MNIST's)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from emulator.arrays import Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number, PositiveShare
from emulator.plugins import ChoiceOf, Chosen
from traces.arrivals import STEPS_AHEAD
from traces.draw import StreamSettings
from traces.drift import DRIFTS, Population, PopulationContext
from traces.idx import read_idx_folder
from traces.images import (
    ImageSet,
    has_every_label,
    stratified_parts,
    stratified_split,
    two_digit_numbers,
    with_labels,
)
from traces.onsets import NO_ONSETS, Onsets
from traces.partitions import PARTITIONS, Partition
from traces.partitions.population import PartitionedImages
from traces.shared_sets import SharedSet, with_shared_set
from traces.sources.base import TraceContext, TraceSource
from traces.tables.base import Table
from traces.trace import Trace

if TYPE_CHECKING:
    from traces.holders import Holders

DIGITS_TEST_SHARE = 0.3

SUM_WITHIN = 1e-9
"""How far the shares of a split may sum to more than 1, by rounding."""

EXCLUDED_BY_PARTITION = ("drift", "retain_rounds", "samples_per_step", "test_samples_per_step")
"""Keys that say what arrives and expires, which nothing does in a partition."""

Label = Annotated[int, Number(ge=0, le=255)]
"""A label of published images, which is one byte."""


class MixedImagesSettings(StreamSettings):
    """The number of clients, what they hold and how that changes, and the sizes and times of arrivals."""

    clients: Count = Field(200, description="how many clients there are", examples=[100])
    labels: Annotated[tuple[Label, ...], Field(min_length=2)] | None = Field(
        None,
        description="the labels whose images are used; the first becomes label 0, and so on; all, if omitted",
    )
    split: tuple[PositiveShare, PositiveShare] | None = Field(
        None,
        description="the shares of each label's images for training and for testing, as [0.6, 0.2], drawn "
        "with each run's seed; the rest is unused; the split of the source, if omitted",
    )
    drift: Annotated[Chosen[Population], ChoiceOf(DRIFTS)] = Field(
        "label_mix", validate_default=True, description="how label shares move; see `driftscale parts drift`"
    )
    partition: Annotated[Chosen[Partition], ChoiceOf(PARTITIONS)] | None = Field(
        None,
        description="divides the images among the clients for good, instead of a drift; see `driftscale "
        "parts partition`",
    )
    starts_with: tuple[PositiveShare, PositiveShare] | None = Field(
        None,
        description="with a partition: the least and the greatest share of its images that a client holds at "
        "the start, as [0.1, 0.33]; equal parts of the rest arrive at the later data steps; all, "
        "if omitted",
    )
    static: bool = Field(
        False, description="whether clients keep what they hold at the start: nothing arrives or expires"
    )
    shared: SharedSet = Field(
        "none",
        description="training samples that all clients hold: one or two of each label, or one of each of the "
        "rarer half",
    )

    @model_validator(mode="before")
    @classmethod
    def _partition_stands_alone(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("partition") is None:
            return values
        given = [key for key in EXCLUDED_BY_PARTITION if values.get(key) is not None]
        if given:
            raise ValueError(
                f"partition cannot be combined with {', '.join(given)}: every image belongs to one client "
                f"from the start to the end; leave out one or the other (--set 'trace={{...}}' replaces all "
                f"keys of the trace)"
            )
        arrives = values.get("starts_with") is not None
        if values.get("static") is False and not arrives:
            raise ValueError(
                "partition cannot be combined with static = false: clients keep their images to the end; "
                "leave static out"
            )
        if values.get("static") is True and arrives:
            raise ValueError(
                "starts_with cannot be combined with static = true: of static data nothing arrives after the "
                "start; leave out one or the other"
            )
        if values.get("shared", "none") != "none":
            raise ValueError(
                f"partition cannot be combined with shared = {values['shared']!r}: every image belongs to "
                f"one client; leave out one or the other"
            )
        return {**values, "static": not arrives}

    @model_validator(mode="after")
    def _next_samples_arrive(self) -> MixedImagesSettings:
        is_whole = self.partition is not None and self.starts_with is None
        without = {"partition": is_whole, "static = true": self.static}
        named = next((name for name, value in without.items() if value), None)
        if self.test_on == "next" and named is not None:
            raise ValueError(
                f"test_on = 'next' cannot be combined with {named}: of static data nothing arrives at a next "
                f"data step; leave out one or the other"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_what_a_partition_excludes(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        excluded = EXCLUDED_BY_PARTITION if self.partition is not None else ()
        return {key: value for key, value in written.items() if key not in excluded}

    @field_validator("starts_with", mode="before")
    @classmethod
    def _two_shares(cls, shares: Any) -> Any:
        if shares is None:
            return shares
        numbers = _two_numbers(shares)
        if numbers is None or not 0 < numbers[0] <= numbers[1] <= 1:
            raise ValueError(
                f"{_given(shares)!r}: must be two numbers, [low, high] with 0 < low <= high <= 1"
            )
        return shares

    @field_validator("split", mode="before")
    @classmethod
    def _shares_of_a_split(cls, shares: Any) -> Any:
        if shares is None:
            return shares
        numbers = _two_numbers(shares)
        if numbers is None or not all(0 < share <= 1 for share in numbers) or sum(numbers) > 1 + SUM_WITHIN:
            raise ValueError(
                f"{_given(shares)!r}: must be two numbers, [training, test], above 0 and with a sum of at "
                f"most 1"
            )
        return shares

    @field_validator("labels", mode="before")
    @classmethod
    def _two_labels_or_more(cls, labels: Any) -> Any:
        if isinstance(labels, list | tuple) and len(labels) < 2:
            raise ValueError(f"{list(labels)}: must be two labels or more")
        return labels

    @field_validator("labels")
    @classmethod
    def _labels_differ(cls, labels: tuple[int, ...] | None) -> tuple[int, ...] | None:
        chosen = [] if labels is None else list(labels)
        for label in chosen:
            if chosen.count(label) > 1:
                raise ValueError(f"{chosen}: has label {label} twice; a label may be given only once")
        return labels


def _two_numbers(shares: Any) -> list[float] | None:
    """The two numbers of a setting; None if it has others, or other things."""
    numbers = list(shares) if isinstance(shares, list | tuple) else []
    are_numbers = all(isinstance(share, int | float) and not isinstance(share, bool) for share in numbers)
    return numbers if len(numbers) == 2 and are_numbers else None


def _given(shares: Any) -> Any:
    """A setting as it is written in TOML."""
    return list(shares) if isinstance(shares, tuple) else shares


class DigitsSettings(MixedImagesSettings):
    """How many digits an image shows, and the settings of all image sources with a drift."""

    digits_per_image: Annotated[int, Number(ge=1, le=2)] = Field(
        1,
        description="2: each image is two digits side by side, 8x16 pixels, and its label is a number from 0 "
        "to 99",
    )


class IdxSettings(MixedImagesSettings):
    """The folder of the images, and the settings of all image sources with a drift."""

    folder: str = Field(description="folder of the four idx files, plain or gzipped", examples=["mnist"])

    def find_files(self, locate: Callable[[str], Path]) -> None:
        locate(self.folder)
        super().find_files(locate)


class MixedImages(TraceSource):
    """Base class of sources that combine an image set with a drift, a shared set and changes."""

    @abstractmethod
    def images(self, context: TraceContext) -> ImageSet:
        """The pool of images, already split into train and test."""

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        images = self._chosen_images(context)
        table, moves = self._table(images, context)
        # Static data and images of a partition are kept beyond the last step of the run.
        is_kept = settings.static or settings.partition is not None
        longer = settings.num_steps(context.rounds) if is_kept else 0
        trace = Trace(
            images,
            table,
            retain_steps=settings.retain_steps + longer,
            rounds_per_step=settings.rounds_per_step,
            noise=settings.noise,
            generator=context.streams.generator("noise"),
            test_then_train=False,
            test_on=settings.test_on,
            moves=moves,
        )
        return self.changed(trace, context)

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        settings = self.settings
        if settings.changes or not has_every_label(trace.samples.images):
            return None
        if settings.partition is None and not settings.drift.build().same_holders:
            return None
        if settings.partition is not None and settings.test_on == "next":
            return None  # at which steps a client with few test images receives one is drawn
        if settings.partition is not None:
            # Every client keeps samples from the start to the end, or drawing them is refused. A split has as
            # many images of each label with every seed.
            self._table(self.same_images(trace) or self._chosen_images(context), context)
        return trace

    def same_images(self, trace: Trace) -> ImageSet | None:
        """The images, if they are those of `trace`, that of another seed; None if they may not be."""
        return None

    def _in_split(
        self, images: ImageSet, context: TraceContext, used: Sequence[int] | None = None
    ) -> ImageSet:
        """`images` in the split of `trace.split`, or in their own without that setting.

        Raises:
            ConfigurationError: a label, one of `used` if these are given, gets no training or no test image.
        """
        shares = self.settings.split
        if shares is None:
            return images
        train, test = stratified_parts(images.labels, shares, context.streams.generator("split"))
        divided = replace(images, train=train, test=test)
        _refuse_one_sided_labels(shares, divided, used)
        return divided

    def _chosen_images(self, context: TraceContext) -> ImageSet:
        """The images of `trace.labels`; ConfigurationError if one of these has no image."""
        images, labels = self.images(context), self.settings.labels
        if labels is None:
            return images
        _refuse_unknown_labels(labels, images)
        return with_labels(images, labels)

    def _table(self, images: ImageSet, context: TraceContext) -> tuple[Table, Onsets | None]:
        """The rows of the trace before any change, and the onsets of its drift, if they are known."""
        settings = self.settings
        if settings.starts_with is not None and settings.partition is None:
            raise ConfigurationError(
                f"trace.starts_with = {list(settings.starts_with)}: is the share of its images of a "
                f"partition that a client holds at the start; set trace.partition, or leave starts_with out"
            )
        steps = settings.num_steps(context.rounds)
        population = PopulationContext(
            settings, settings.clients, steps, settings.static, context.streams, context.scratch
        )
        longer = replace(population, num_steps=steps + STEPS_AHEAD[settings.test_on])
        moves: Onsets | None = NO_ONSETS
        if settings.partition is None:
            table, moves = settings.drift.build().draw_with_onsets(images, longer)
        else:
            owned = PartitionedImages(settings.partition.build(), settings.starts_with)
            table = owned.draw(images, longer)
        if settings.shared != "none":
            table = with_shared_set(table, settings.shared, images, population)
        return table, moves


def _refuse_one_sided_labels(shares: Sequence[float], images: ImageSet, used: Sequence[int] | None) -> None:
    """ConfigurationError for a label, one of `used` if given, that has no image in one of the splits."""
    whole, train, test = (
        np.bincount(of, minlength=images.num_labels)
        for of in (images.labels, images.labels[images.train], images.labels[images.test])
    )
    for label in np.flatnonzero((whole > 0) & ((train == 0) | (test == 0))).tolist():
        if used is None or label in used:
            missing = "training" if train[label] == 0 else "test"
            raise ConfigurationError(
                f"trace.split = {list(shares)}: label {label} gets no {missing} image; it has "
                f"{whole[label]} in all"
            )


def _refuse_unknown_labels(labels: Sequence[int], images: ImageSet) -> None:
    """ConfigurationError for the first of `labels` that no image has."""
    known = np.unique(images.labels).tolist()
    is_range = len(known) > 2 and known == list(range(known[0], known[-1] + 1))
    choices = f"{known[0]} to {known[-1]}" if is_range else ", ".join(map(str, known))
    for label in labels:
        if label not in known:
            raise ConfigurationError(
                f"trace.labels = {list(labels)}: no image has label {label}; choices: {choices}"
            )


class Digits(MixedImages):
    """scikit-learn's bundled handwritten digits, whose labels drift; needs no file.

    UCI Optical Recognition: 1,797 images of 8x8 in 17 levels of grey.

    Source: ours; the images are of the UCI repository, Optical Recognition of Handwritten Digits.

    >>> from emulator.seeding import RandomStreams
    >>> settings = DigitsSettings(clients=2, samples_per_step=5, retain_rounds=20)
    >>> trace = Digits(settings).build(TraceContext(rounds=30, streams=RandomStreams(0), locate=str))
    >>> trace.sample_shape, trace.num_labels, trace.last_step
    ((8, 8), 10, 2)
    >>> trace.held(np.array([0, 1]), "train", step=0).counts().tolist()  # two steps of five
    [10, 10]
    """

    Settings = DigitsSettings
    settings: DigitsSettings

    def images(self, context: TraceContext) -> ImageSet:
        pixels, labels = _digits()
        train, test = stratified_split(labels, DIGITS_TEST_SHARE, context.streams.generator("split"))
        digits = ImageSet(pixels, scale=1 / 16, labels=labels, num_labels=10, train=train, test=test)
        used = self.settings.labels if self.settings.digits_per_image == 1 else None
        digits = self._in_split(digits, context, used)
        if self.settings.digits_per_image == 1:
            return digits
        return two_digit_numbers(digits, context.streams.generator("numbers"))


@cache
def _digits() -> tuple[Floats32, Ints]:
    """Pixels (images, 8, 8) and labels of scikit-learn's `load_digits`, read-only: all traces share them.

    From its file: to import scikit-learn for it would take a second.
    """
    package = find_spec("sklearn")
    assert package is not None, "scikit-learn is a dependency"
    path = Path(str(package.origin)).with_name("datasets") / "data" / "digits.csv.gz"
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)  # 64 pixels and the label
    pixels, labels = rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(np.int64)
    for array in (pixels, labels):
        array.setflags(write=False)
    return pixels, labels


class IdxFolder(MixedImages):
    """MNIST, Fashion-MNIST or EMNIST in the published files, whose labels drift.

    The split is the published one, or drawn with `split`: then the images of all files are pooled before.
    A client keeps samples for whole data steps: 45 rounds are 5 steps of 10 rounds.

    Source: ours; the files are those of MNIST (LeCun et al. 1998) and of what followed it.

    >>> IdxSettings(folder="mnist", rounds_per_step=10, retain_rounds=45).retain_steps
    5
    """

    Settings = IdxSettings
    settings: IdxSettings

    def images(self, context: TraceContext) -> ImageSet:
        published = read_idx_folder(context.locate(self.settings.folder))
        return self._in_split(published, context, self.settings.labels)

    def same_images(self, trace: Trace) -> ImageSet | None:
        if self.settings.split is not None:
            return None  # each seed draws its own
        images = trace.samples.images
        return images if isinstance(images, ImageSet) else None
