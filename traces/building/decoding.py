"""Decoding: images of any common format to uint8 pixels of one shape.

What Pillow makes of a file, resized by its bilinear filter without regard to the aspect ratio. An image of
another mode than RGB is converted: transparency onto white, a palette to its colours, CMYK by Pillow's plain
formula; 16 bits a value are refused, as there is no telling which of them matter. Of several frames the first
one counts. The orientation that EXIF states is ignored, as boxes are given for the stored pixels, unless a
decoder is to make images `upright`.
"""

from __future__ import annotations

import io
import math
import stat
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from traces.building.pixels import Encoded

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""The formats that are read; each decoder is one more that untrusted files meet."""

MOST_IMAGE_BYTES = 2**28
"""Largest file of an image."""

MOST_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 0)
"""Most pixels of an image: where Pillow refuses it as a decompression bomb."""

LARGE_PIXELS = 2**25
"""Images of more pixels are decoded one at a time, whatever the number of threads."""

_STRIP_PIXELS = 2**22
"""Pixels that are laid on white at once."""

_large = threading.Lock()

DRAFT = 2
"""A JPEG is decoded at the smallest of its scales that is at least this many times the target."""

_ORIENTATION = 0x0112
"""The tag of EXIF that says how the stored pixels are to be turned."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What makes pixels upright, by orientation; 1 is upright, and other numbers state nothing."""

# What Pillow raises for damaged files of these formats.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, TypeError, KeyError, IndexError, OverflowError)


class BadImageError(Exception):
    """An image that cannot be decoded; the message says why."""


@dataclass(frozen=True)
class Decoder:
    """To what images are decoded: `size` x `size` pixels, grey or RGB; None, for pixels: as they are.

    With `exact`, JPEGs are decoded at full size before they are resized. With `upright`, images are turned
    as EXIF says; not for crops, whose boxes are those of the stored pixels.
    """

    size: int | None
    grey: bool
    exact: bool = False
    upright: bool = False

    def decode(self, image: Encoded, boxes: np.ndarray | None = None) -> np.ndarray:
        """Decode one image.

        Args:
            image: the image.
            boxes: (k, 4) corners x0, y0, x1, y1 of crops in pixels; None: the whole image.

        Returns:
            (k, 3, size, size) uint8, or (k, size, size) if grey; k is 1 without boxes.

        Raises:
            BadImageError: it cannot be decoded, or a box lies outside.
        """
        if isinstance(image, np.ndarray):
            return self._from_pixels(image)[None]
        content = _read(image) if isinstance(image, Path) else image
        try:
            if len(content) > MOST_IMAGE_BYTES:
                raise BadImageError(_too_large(len(content)))
            with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
                is_large = opened.width * opened.height > LARGE_PIXELS
                with _large if is_large else nullcontext():
                    return self._crops(opened, boxes)
        except UnidentifiedImageError as error:
            raise BadImageError(f"is not an image, or damaged (known are {', '.join(FORMATS)})") from error
        except Image.DecompressionBombError as error:
            raise BadImageError(f"has too many pixels ({error})") from error
        except (*_DAMAGE, struct.error, zlib.error) as error:
            raise BadImageError(f"damaged: {' '.join(str(error).split())[:200]}") from error

    def _crops(self, image: Image.Image, boxes: np.ndarray | None) -> np.ndarray:
        assert self.size is not None
        assert boxes is None or not self.upright
        width, height = image.size
        if boxes is None:
            boxes = np.array([[0, 0, width, height]], dtype=np.float64)
        boxes = np.clip(boxes.astype(np.float64), 0, [width, height, width, height])
        sides = boxes[:, 2:] - boxes[:, :2]
        if (sides <= 0).any():
            x0, y0, x1, y1 = boxes[int(np.flatnonzero((sides <= 0).any(axis=1))[0])].tolist()
            raise BadImageError(
                f"has {width} x {height} pixels, of which the box {x0:g},{y0:g},{x1:g},{y1:g} has none"
            )
        mode = "L" if self.grey else "RGB"
        if not self.exact and image.format == "JPEG":
            # At least twice the target in the smallest crop; no effect for other formats.
            wanted = np.ceil(DRAFT * self.size * np.array([width, height]) / sides.min(axis=0))
            image.draft(mode, (int(min(wanted[0], width)), int(min(wanted[1], height))))
            # NOTE: multiplied first: by a rounded ratio, the whole image could end beyond its last pixel.
            boxes = boxes * np.tile(image.size, 2) / [width, height, width, height]
        pixels, size = converted(image, mode), (self.size, self.size)
        if self.upright:
            pixels = _upright(pixels, image)
            boxes = np.array([[0, 0, *pixels.size]], dtype=np.float64)
        crops = [resized(pixels, box, size) for box in boxes.tolist()]
        stacked = np.stack([np.asarray(crop) for crop in crops])
        return stacked if self.grey else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))

    def _from_pixels(self, pixels: np.ndarray) -> np.ndarray:
        """The pixels (h, w) or (3, h, w) in the shape that is wanted; untouched if they have it already."""
        fits = self.size is None or pixels.shape[-2:] == (self.size, self.size)
        if (pixels.ndim == 2) == self.grey and fits:
            return pixels
        interleaved = pixels if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(1, 2, 0))
        image = Image.fromarray(interleaved).convert("L" if self.grey else "RGB")
        if self.size is not None:
            image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        array = np.asarray(image)
        return array if self.grey else np.ascontiguousarray(array.transpose(2, 0, 1))


def _read(path: Path) -> bytes:
    """The content of a file; BadImageError if it is missing, too large, or no regular file.

    NOTE: by its size, as a buffer of the largest size for every image takes a tenth of the time of decoding.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadImageError("is not a regular file")
        if status.st_size > MOST_IMAGE_BYTES:
            raise BadImageError(_too_large(status.st_size))
        with path.open("rb", buffering=0) as file:
            return file.read(status.st_size)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadImageError("no such file") from error
    except OSError as error:
        raise BadImageError(f"cannot be read ({error.strerror})") from error


def _too_large(num_bytes: int) -> str:
    return f"has {num_bytes:,} bytes; an image has at most {MOST_IMAGE_BYTES:,}"


def resized(image: Image.Image, box: list[float], size: tuple[int, int]) -> Image.Image:
    """The part of an image in `box` (x0, y0, x1, y1), resized.

    NOTE: it is cropped first, as the filter would also take pixels from around the box.
    """
    outer = (math.floor(box[0]), math.floor(box[1]), math.ceil(box[2]), math.ceil(box[3]))
    if outer != (0, 0, *image.size):
        image = image.crop(outer)
    if image.size == size and list(outer) == box:
        return image
    inner = (box[0] - outer[0], box[1] - outer[1], box[2] - outer[0], box[3] - outer[1])
    return image.resize(size, Image.Resampling.BILINEAR, inner)


def converted(image: Image.Image, mode: str) -> Image.Image:
    """The image in `mode`, "RGB" or "L"; BadImageError if it has more than 8 bits a value."""
    if image.mode == mode:
        image.load()
        return image
    if image.mode.startswith(("I", "F")):
        raise BadImageError(f"has more than 8 bits a value (mode {image.mode}); convert it to 8 bits first")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return _on_white(image, mode)
    if image.mode not in ("RGB", "L") and mode == "L":
        image = image.convert("RGB")
    return image.convert(mode)


def _upright(pixels: Image.Image, image: Image.Image) -> Image.Image:
    """The `pixels` of `image`, turned as EXIF says.

    NOTE: asked for once the image is loaded: a TIFF is turned by Pillow then, which deletes the tag.
    """
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    return pixels if turn is None else pixels.transpose(turn)


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    """A transparent image on white in `mode`, made in strips: whole, it would be in memory four times."""
    image.load()
    width, height = image.size
    done = Image.new(mode, image.size)
    rows = max(1, _STRIP_PIXELS // max(1, width))
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows))).convert("RGBA")
        white = Image.new("RGBA", strip.size, (255, 255, 255, 255))
        strip = Image.alpha_composite(white, strip)
        done.paste((strip.convert("RGB") if mode == "L" else strip).convert(mode), (0, top))
    return done


@contextmanager
def without_warnings() -> Iterator[None]:
    """Context in which Pillow does not warn of odd files: an image is decoded, or is an error.

    NOTE: to be entered before threads are started, as filters of warnings are those of the process.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        yield
