"""Building traces of images: a kind lists its samples; the rest is the same for all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from PIL import __version__ as pillow_version
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import InputError
from emulator.numbers import Count, CountOrZero, Number, Share
from emulator.plugins import Settings
from emulator.storage.reading.tally import CELLS_OF_A_SAMPLE, Tally
from traces.arrivals import SPLITS
from traces.building.base import KEEPS_ALL, Builder, BuilderSettings, Built, Request
from traces.building.decoding import Decoder
from traces.building.feature_rows import FeatureRows
from traces.building.listing import TRAIN, Listing, ordered
from traces.building.names import refuse_names
from traces.building.pipeline import Pipeline, Progress, kept
from traces.building.remarks import count_cause, left_out, on_clients, same_but_for_spaces
from traces.building.workspace import Workspace, refuse_existing, workspace
from traces.files.arrivals import write_arrivals
from traces.files.facts import ARRIVALS, FEATURES, TraceFacts
from traces.held_out import TEST_SHARE

SCALE = 1 / 255

MOST_SIZE = 4096

Side = Annotated[int, Number(ge=1, le=MOST_SIZE)]

WITHOUT_EFFECT = {"skip_bad", "most_cells"}
"""Settings that a resumed build may change: they do not change the bytes of what is decoded."""


class ImageSettings(BuilderSettings):
    """The settings that all kinds of images have."""

    limit: Count | None = Field(None, description="take only that many samples, evenly spread over all")


class EncodedImageSettings(ImageSettings):
    """The settings of kinds whose images are to be decoded."""

    size: Side = Field(32, description="side of the images in pixels")
    grey: bool = Field(False, description="grey images of shape (size, size) instead of (3, size, size)")
    test_share: Share = Field(
        TEST_SHARE, description="share of each client's samples of each label that is held out for tests"
    )
    exact: bool = Field(
        False,
        description="decode JPEGs at full size, and not at the nearest scale of at least twice the size",
    )
    skip_bad: CountOrZero = Field(
        0, description="leave out at most that many samples that cannot be read, instead of stopping"
    )


class WholeImageSettings(EncodedImageSettings):
    """The settings of kinds whose samples are whole images: boxes are given for the stored pixels."""

    upright: bool = Field(False, description="turn images as EXIF says; without it, pixels stay as stored")


class ImageBuilder(Builder):
    """Base class of the kinds of images. A subclass implements `list_samples`, `shape` and `decoder`.

    `play` are settings of the source `file` for this data set, as its paper plays it.
    """

    Settings: ClassVar[type[Settings]] = ImageSettings
    settings: ImageSettings

    play: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def list_samples(self, root: Path) -> Listing:
        """List all samples of the data set, in any order; pixels are read later.

        Args:
            root: the folder of the data set.

        Raises:
            InputError: the folder does not have the layout of this kind, or a file of it breaks a rule.
        """

    @abstractmethod
    def shape(self, root: Path) -> tuple[int, ...]:
        """The shape of a sample.

        Args:
            root: the folder of the data set.
        """

    @abstractmethod
    def decoder(self) -> Decoder:
        """What makes an image a sample."""

    def tally(self) -> Tally:
        """The counts of what is listed, none yet."""
        return Tally(self.settings.most_cells, CELLS_OF_A_SAMPLE)

    @property
    def skip_bad(self) -> int:
        """The most samples that may be left out because they cannot be read."""
        return 0

    @property
    def test_share(self) -> float:
        """The share that is held out for tests, if the listing does not say which samples are."""
        return TEST_SHARE

    def build(self, request: Request) -> Built:
        """List, sort and decode the samples, then write their arrivals and facts; see `Builder.build`."""
        if not request.root.is_dir():
            raise InputError(f"--root {request.root}: no such folder; {type(self).needs}")
        settings = self.settings
        refuse_existing(request.out)  # before the data set is listed, which may take minutes
        listing = self.list_samples(request.root)
        self.tally().add_rows(request.root, len(listing), 1)
        chosen = listing.split is not None
        listing = ordered(listing, settings.limit, settings.seed, self.test_share)
        refuse_names(listing.clients, listing.classes)  # before anything is decoded
        listing.pixels.check(listing.image)
        shape = self.shape(request.root)
        with workspace(request.out, self._plan(listing, shape), fresh=request.fresh) as space:
            path = space.path / FEATURES
            resume = bool(space.progress) and path.is_file()
            if not resume and space.progress:
                raise InputError(f"{path}: is missing; give --fresh")
            with FeatureRows(path, (len(listing), *shape), resume=resume) as features:
                pipeline = Pipeline(listing, self.decoder(), shape, self.skip_bad)
                progress = pipeline.run(space, features, request.workers, request.watch)
            built = self._finish(space, request, listing, progress, shape)
        return replace(built, notes=(*built.notes, *self._remarks(listing, progress, chosen)))

    def _remarks(self, listing: Listing, progress: Progress, chosen: bool) -> list[str]:
        """What the user may not have meant; `chosen`: the data set says which samples are for tests."""
        assert listing.split is not None
        remarks = same_but_for_spaces(listing.classes)
        if progress.bad:
            causes: dict[str, int] = {}
            for why in progress.bad.values():
                count_cause(causes, why)
            image, why = min(progress.bad.items())
            remarks.append(
                left_out(len(progress.bad), "bad images", causes, f"{listing.pixels.name(image)}: {why}")
            )
        rows = kept(listing, progress)
        number = len(listing.clients)
        has_rows, has_tests = (
            np.bincount(listing.client[where], minlength=number) > 0
            for where in (rows, rows & (listing.split != TRAIN))
        )
        remedy: str | None = f"raise --test-share ({self.test_share:g})"
        if chosen:
            remedy = "the data set says which samples are for tests"
        elif self.test_share == 0:
            remedy = None
        return remarks + on_clients(int(has_rows.sum()), int((has_rows & ~has_tests).sum()), remedy)

    def _plan(self, listing: Listing, shape: tuple[int, ...]) -> dict[str, object]:
        """All that determines the result: an interrupted build is resumed only by an equal one."""
        options = self.settings.model_dump(mode="json", exclude=WITHOUT_EFFECT)
        return {
            **options,
            "kind": f"{type(self).__module__}:{type(self).__qualname__}",
            "listing": listing.digest(),
            "pillow": pillow_version,
            "samples": len(listing),
            "shape": list(shape),
        }

    def _finish(
        self, space: Workspace, request: Request, listing: Listing, progress: Progress, shape: tuple[int, ...]
    ) -> Built:
        """Write arrivals and facts, and give the workspace the name of the trace folder."""
        rows = np.flatnonzero(kept(listing, progress))
        if len(rows) == 0:
            raise InputError(f"{request.root}: no sample is left that can be read")
        write_arrivals(space.path / ARRIVALS, _columns(listing, rows))
        left_out = len(listing) - len(rows)
        origin = f"driftscale traces build, {type(self).__doc__ or ''}".partition("\n")[0]
        if left_out:
            origin += f" {left_out} of {len(listing)} samples are left out, as they cannot be read."
        num_bytes = space.finish(
            TraceFacts(
                version=1,
                shape=shape,
                scale=SCALE,
                mean=progress.sums.mean(SCALE),
                deviation=progress.sums.deviation(SCALE),
                classes=listing.classes,
                origin=origin,
                licence=type(self).licence,
            )
        )
        assert listing.split is not None
        train = int((listing.split[rows] == TRAIN).sum())
        return Built(
            clients=len(np.unique(listing.client[rows])),
            train=train,
            test=len(rows) - train,
            classes=len(listing.classes),
            shape=shape,
            when=listing.when,
            first=int(listing.at[rows].min()),
            last=int(listing.at[rows].max()),
            left_out=left_out,
            num_bytes=num_bytes,
            notes=listing.notes,
            play=type(self).play or _owned(listing, rows),
        )


class EncodedImageBuilder(ImageBuilder):
    """Base class of kinds whose images are to be decoded; a subclass implements `list_samples`."""

    Settings: ClassVar[type[Settings]] = EncodedImageSettings
    settings: EncodedImageSettings

    def shape(self, root: Path) -> tuple[int, ...]:
        """The shape that the settings ask for."""
        size = self.settings.size
        return (size, size) if self.settings.grey else (3, size, size)

    def decoder(self) -> Decoder:
        """The decoder that the settings ask for."""
        return Decoder(self.settings.size, self.settings.grey, self.settings.exact)

    @property
    def skip_bad(self) -> int:
        """The setting of this name."""
        return self.settings.skip_bad

    @property
    def test_share(self) -> float:
        """The setting of this name."""
        return self.settings.test_share


class WholeImageBuilder(EncodedImageBuilder):
    """Base class of kinds whose samples are whole images, to be decoded."""

    Settings: ClassVar[type[Settings]] = WholeImageSettings
    settings: WholeImageSettings

    def decoder(self) -> Decoder:
        """The decoder that the settings ask for."""
        return replace(super().decoder(), upright=self.settings.upright)


def _owned(listing: Listing, rows: Ints) -> Mapping[str, object]:
    """The settings with which clients keep all their samples, if they own them from the start."""
    if listing.when == "step" and (listing.at[rows] == 0).all():
        return KEEPS_ALL
    return {}


def _columns(listing: Listing, rows: Ints) -> dict[str, np.ndarray | pa.Array[Any]]:
    """The columns of `arrivals.parquet` for these rows (k,), which are also those of `features.npy`."""
    assert listing.split is not None
    at: np.ndarray = listing.at[rows]
    if listing.when == "time":
        at = at.astype("datetime64[us]")
    return {
        "client": _dictionary(listing.client[rows], listing.clients),
        "label": listing.label[rows].astype(np.int16),
        "sample": rows.astype(np.int32),
        listing.when: at,
        "split": _dictionary(listing.split[rows], SPLITS),
    }


def _dictionary(codes: np.ndarray, names: tuple[str, ...]) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names, pa.string()))
