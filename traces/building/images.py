"""Building traces of images: a kind lists its samples; the rest is the same for all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from PIL import __version__ as pillow_version
from pydantic import Field

from emulator.arrays import Bools
from emulator.errors import InputError
from emulator.numbers import Count, CountOrZero, Number, Share
from emulator.plugins import Settings
from emulator.storage.reading.tally import CELLS_OF_A_SAMPLE, Tally
from traces.building.base import KEEPS_ALL, Builder, BuilderSettings, Built, Request
from traces.building.decoding import Decoder
from traces.building.folder import Told, write_folder
from traces.building.image_values import ImageValues
from traces.building.names import refuse_names, refuse_unnamed
from traces.building.remarks import PIXELS_STANDARDISED, renumbered
from traces.building.rows import Rows, ordered
from traces.building.sums import SCALE, ByteSums
from traces.building.workspace import refuse_existing, workspace
from traces.held_out import TEST_SHARE

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
    """The settings of kinds whose samples are whole images; boxes are given for pixels as they are stored."""

    upright: bool = Field(False, description="turn images as EXIF says; without it, pixels stay as stored")


class ImageBuilder(Builder):
    """Base class of the kinds of images. A subclass has `needs`, and implements `list_samples`.

    The first line of its docstring is its help, and the origin of its traces; `play` are settings of the
    source `file` for this data set, as its paper plays it.
    """

    Settings: ClassVar[type[Settings]] = EncodedImageSettings
    settings: ImageSettings

    play: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def list_samples(self, root: Path) -> Rows:
        """List all samples of the data set, in any order; pixels are read later.

        Args:
            root: the folder of the data set.

        Raises:
            InputError: the folder does not have the layout of this kind, or a file of it breaks a rule.
        """

    def tally(self) -> Tally:
        """The counts of what is listed, none yet."""
        return Tally(self.settings.most_cells, CELLS_OF_A_SAMPLE)

    @property
    def skip_bad(self) -> int:
        """The most samples that may be left out because they cannot be read."""
        return getattr(self.settings, "skip_bad", 0)

    @property
    def test_share(self) -> float:
        """The share that is held out for tests, if the data set does not say which samples are."""
        return getattr(self.settings, "test_share", TEST_SHARE)

    def build(self, request: Request) -> Built:
        """List, sort and decode the samples, then write their arrivals and facts; see `Builder.build`."""
        root, settings = request.root, self.settings
        if not root.is_dir():
            raise InputError(f"--root {root}: no such folder; needs {type(self).needs}")
        refuse_existing(request.out)  # before the data set is listed, which may take minutes
        rows = self.list_samples(root)
        self.tally().add_rows(root, len(rows), 1)
        refuse_unnamed(rows)
        is_split = rows.split is not None
        rows = ordered(rows, settings.limit, settings.seed, self.test_share)
        refuse_names(map(str, rows.clients), rows.classes)  # before anything is decoded
        shape = self._shape(rows)
        decoded = settings.model_dump(include={"size", "exact", "upright"})
        values = ImageValues(root, rows, Decoder(grey=len(shape) == 2, **decoded), shape, self.skip_bad)
        remedy: str | None = f"raise --test-share ({self.test_share:g})"
        if is_split:
            remedy = "the data set says which samples are for tests"
        elif self.test_share == 0:
            remedy = None

        def tell(good: Bools, sums: ByteSums) -> Told:
            left_out = len(rows) - int(good.sum())
            origin = f"driftscale traces build, {type(self).__doc__ or ''}".partition("\n")[0]
            if left_out:
                origin += f" {left_out} of {len(rows)} samples are left out, as they cannot be read."
            is_owned = rows.when == "step" and not rows.at[good].any()
            return Told(
                facts={"version": 1, "origin": origin, "licence": type(self).licence, "scale": SCALE},
                built={"left_out": left_out, "play": type(self).play or (KEEPS_ALL if is_owned else {})},
                remedy=remedy,
                unread=values.remarks(),
                notes=(PIXELS_STANDARDISED, *renumbered(rows.classes)),
            )

        with workspace(request.out, self._plan(rows, values.shape), fresh=request.fresh) as space:
            return write_folder(space, rows, values, request, tell, request.workers)

    def _shape(self, rows: Rows) -> tuple[int, ...]:
        """The shape of a sample: that of the images where they have one, but for what the settings say."""
        assert rows.pixels is not None
        size, is_grey = (getattr(self.settings, key, None) for key in ("size", "grey"))
        shape = (rows.pixels.shape or (3, 0, 0))[-2 if is_grey else -3 :]
        return shape if size is None else (*shape[:-2], size, size)

    def _plan(self, rows: Rows, shape: tuple[int, ...]) -> dict[str, object]:
        """All that determines the result: an interrupted build is resumed only by an equal one."""
        options = self.settings.model_dump(mode="json", exclude=WITHOUT_EFFECT)
        return {
            **options,
            "kind": f"{type(self).__module__}:{type(self).__qualname__}",
            "listing": rows.digest(),
            "pillow": pillow_version,
            "samples": len(rows),
            "shape": list(shape),
        }
