"""The workload decoding: large JPEGs become samples of 32 x 32 pixels, as in a build of a trace of images.

The reference is a plain loop over the same files that does the same with Pillow and keeps the samples in
memory; ours also writes them to `features.npy`, sums them, and records its progress.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved, timed
from traces.building.base import Watch
from traces.building.decoding import DRAFT, Decoder
from traces.building.image_values import ImageValues
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows
from traces.building.workspace import workspace
from traces.building.writing import write_features

SEED = 0
SIZE = 32
BARE = "a plain loop with Pillow, one thread"


@dataclass(frozen=True)
class DecodingSizes:
    """Number of images to decode, of files that they are, and the side of these in pixels."""

    images: int = 96
    files: int = 24
    side: int = 1000


def measure_decoding(repeats: int, say: Say) -> list[Figure]:
    return decoding_figures(DecodingSizes(), repeats, say)


def decoding_figures(sizes: DecodingSizes, repeats: int, say: Say) -> list[Figure]:
    """Images per second: against the plain loop, with draft against without, and by two threads."""
    with tempfile.TemporaryDirectory() as folder:
        say(f"drawing {sizes.files} JPEGs of {sizes.side:,} x {sizes.side:,} pixels")
        workload = Decoding(sizes, Path(folder))
        seconds = interleaved(
            {
                "bare": workload.bare(),
                "draft": workload.ours(workers=1),
                "exact": workload.ours(workers=1, exact=True),
                "two": workload.ours(workers=2),
            },
            repeats,
            say=say,
        )
    rate = {name: sizes.images / samples for name, samples in seconds.items()}
    about = f"JPEGs of {sizes.side:,} x {sizes.side:,} pixels to {SIZE} x {SIZE}"
    unit = "images/s"
    return [
        figure(
            "decoding",
            f"{about}, one thread",
            rate["draft"],
            unit,
            better="higher",
            against=Reference(rate["bare"], BARE),
            target=Target("ratio", at_least=0.9),
        ),
        figure(
            "decoding-draft",
            f"{about}, at the nearest scale of a JPEG",
            rate["draft"],
            unit,
            better="higher",
            against=Reference(rate["exact"], "decoding at full size"),
            target=Target("ratio", at_least=2.0),
        ),
        figure(
            "decoding-2-workers",
            f"{about}, two threads",
            rate["two"],
            unit,
            better="higher",
            threads=2,
            against=Reference(rate["draft"], "one thread"),
            target=Target("ratio", at_least=1.7),
        ),
    ]


class Decoding:
    """A folder of JPEGs, each of which is listed several times."""

    def __init__(self, sizes: DecodingSizes, folder: Path) -> None:
        self.folder = folder
        names = [f"{number}.jpg" for number in range(sizes.files)]
        for number, name in enumerate(names):
            photograph(sizes.side, np.random.default_rng([SEED, number])).save(folder / name, quality=90)
        self.names = [names[number % sizes.files] for number in range(sizes.images)]
        rows = np.zeros(sizes.images, dtype=np.int64)
        self.rows = Rows(
            client=rows,
            clients=("all",),
            label=rows,
            classes=("any",),
            when="step",
            at=rows,
            value=np.arange(sizes.images),
            pixels=ImageFiles(folder, self.names),
            split=rows.astype(np.int8),
        )
        self._number = count()

    def bare(self) -> Measured:
        """A function that decodes all images by the plain loop, and returns the seconds."""
        samples = np.empty((len(self.names), 3, SIZE, SIZE), dtype=np.uint8)

        def loop() -> None:
            for row, name in enumerate(self.names):
                with Image.open(self.folder / name) as image:
                    image.draft("RGB", (DRAFT * SIZE, DRAFT * SIZE))
                    small = image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
                samples[row] = np.asarray(small).transpose(2, 0, 1)

        return timed(loop)

    def ours(self, *, workers: int, exact: bool = False) -> Measured:
        """A function that decodes all images as a build does, and returns the seconds."""
        decoder = Decoder(SIZE, grey=False, exact=exact)

        def measured() -> float:
            out = self.folder / f"out-{next(self._number)}"
            with workspace(out, {}) as space:
                values = ImageValues(self.folder, self.rows, decoder, (3, SIZE, SIZE), skip_bad=0)
                return timed(lambda: write_features(values, len(self.rows), space, workers, Watch()))()

        return measured


def photograph(side: int, generator: np.random.Generator) -> Image.Image:
    """An image with coarse and fine structure, so that its JPEG has about as many bytes as a photograph."""
    coarse = generator.integers(0, 256, (side // 16, side // 16, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)
    grain = generator.integers(-8, 9, (side, side, 1), dtype=np.int16)
    return Image.fromarray(np.clip(np.asarray(smooth) + grain, 0, 255).astype(np.uint8))
