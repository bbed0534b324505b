"""Images whose labels drift: `digits` (needs no file) and `idx` (a folder like MNIST's)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.deprecated import keep_old_names
from emulator.numbers import Count
from emulator.plugins import ChoiceOf, Chosen
from traces.draw import StreamSettings, draw_trace, num_windows, refuse_oversize
from traces.drift import DRIFTS, Drift
from traces.idx import read_idx_folder
from traces.images import ImageSet, stratified_split
from traces.sources.base import TraceContext, TraceSource
from traces.trace import Trace

DIGITS_TEST_SHARE = 0.3


class MixedImagesSettings(StreamSettings):
    """The number of clients, the drift of their label shares, and the sizes and times of arrivals."""

    clients: Count = Field(200, description="how many clients there are")
    drift: Annotated[Chosen[Drift], ChoiceOf(DRIFTS)] = Field(
        "label_mix", validate_default=True, description="how label shares move; see `driftscale parts drift`"
    )


class IdxSettings(MixedImagesSettings):
    """The folder of the images, and the settings of all image sources with a drift."""

    folder: str = Field(description="folder of the four idx files, plain or gzipped")


class MixedImages(TraceSource):
    """Base class of sources that combine an image set with a drift."""

    @abstractmethod
    def images(self, context: TraceContext) -> ImageSet:
        """The pool of images, already split into train and test."""

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        windows = num_windows(settings, context.rounds)
        refuse_oversize(settings, settings.clients, windows)
        images = self.images(context)
        shares = settings.drift.build().shares(
            settings.clients,
            windows,
            images.num_labels,
            first_step=1 - settings.retain_steps,
            rounds_per_step=settings.rounds_per_step,
            generator=context.streams.generator("drift"),
        )
        return draw_trace(
            images,
            shares,
            num_clients=settings.clients,
            num_windows=windows,
            settings=settings,
            streams=context.streams,
            scratch=context.scratch,
        )


class Digits(MixedImages):
    """scikit-learn's bundled handwritten digits, whose labels drift; needs no file.

    UCI Optical Recognition: 1,797 images of 8x8 in 17 levels of grey.

    >>> from emulator.seeding import RandomStreams
    >>> settings = MixedImagesSettings(clients=2, samples_per_step=5, retain_rounds=20)
    >>> trace = Digits(settings).build(TraceContext(rounds=30, streams=RandomStreams(0), locate=str))
    >>> trace.sample_shape, trace.num_labels, trace.last_step
    ((8, 8), 10, 2)
    >>> trace.held(np.array([0, 1]), "train", step=0).counts().tolist()  # two steps of five
    [10, 10]
    """

    Settings = MixedImagesSettings

    def images(self, context: TraceContext) -> ImageSet:
        from sklearn.datasets import load_digits

        bundle = load_digits()
        labels = bundle.target.astype(np.int64)
        train, test = stratified_split(labels, DIGITS_TEST_SHARE, context.streams.generator("split"))
        pixels = bundle.images.astype(np.float32)
        return ImageSet(pixels, scale=1 / 16, labels=labels, num_labels=10, train=train, test=test)


class IdxFolder(MixedImages):
    """MNIST, Fashion-MNIST or EMNIST in the published files and split, whose labels drift.

    A client keeps samples for whole data steps: 45 rounds are 5 steps of 10 rounds.

    >>> IdxSettings(folder="mnist", rounds_per_step=10, retain_rounds=45).retain_steps
    5
    """

    Settings = IdxSettings
    settings: IdxSettings

    def images(self, context: TraceContext) -> ImageSet:
        return read_idx_folder(context.locate(self.settings.folder))


keep_old_names(__name__)
