"""Images whose labels drift by a generator: `digits` (needs no file) and `idx` (a folder like MNIST's)."""

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
    """Clients whose label shares follow `drift`."""

    clients: Count = Field(200, description="how many clients there are")
    drift: Annotated[Chosen[Drift], ChoiceOf(DRIFTS)] = Field(
        "label_mix", validate_default=True, description="how label shares move; see `driftscale parts drift`"
    )


class IdxSettings(MixedImagesSettings):
    """Where the images are."""

    folder: str = Field(description="folder of the four idx files, plain or gzipped")


class MixedImages(TraceSource):
    """A source that pairs an image set with a drift."""

    @abstractmethod
    def images(self, context: TraceContext) -> ImageSet:
        """The pool, already split into train and test."""

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
    """MNIST, Fashion-MNIST or EMNIST in the published files and split, whose labels drift."""

    Settings = IdxSettings
    settings: IdxSettings

    def images(self, context: TraceContext) -> ImageSet:
        return read_idx_folder(context.locate(self.settings.folder))


keep_old_names(__name__)
