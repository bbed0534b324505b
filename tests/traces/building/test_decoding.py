from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.traces.building.layouts import BLUE, RED, draw
from traces.building.decoding import BadImageError, Decoder, without_warnings

SMALL = Decoder(4, grey=False)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def first_pixel(content: bytes, decoder: Decoder = SMALL) -> list[int]:
    with without_warnings():
        [sample] = decoder.decode(content)
    return np.atleast_1d(sample[..., 0, 0]).tolist()


# -- modes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "colour", "pixel"),
    [
        ("RGB", (10, 20, 30), [10, 20, 30]),
        ("L", 77, [77, 77, 77]),
        ("1", 1, [255, 255, 255]),
        ("LA", (77, 255), [77, 77, 77]),
        ("LA", (77, 0), [255, 255, 255]),  # transparent: white
        ("RGBA", (10, 20, 30, 255), [10, 20, 30]),
        ("RGBA", (10, 20, 30, 0), [255, 255, 255]),
        ("P", 0, [0, 0, 0]),
    ],
)
def test_a_mode_is_converted_and_transparency_is_white(mode: str, colour: object, pixel: list[int]) -> None:
    assert first_pixel(encoded(Image.new(mode, (4, 4), colour))) == pixel  # type: ignore[arg-type]


def test_a_palette_has_its_colours_and_one_of_them_may_be_transparent() -> None:
    image = Image.new("RGB", (4, 4), RED).convert("P", palette=Image.Palette.ADAPTIVE)
    index = image.getpixel((0, 0))
    assert first_pixel(encoded(image)) == list(RED)
    assert first_pixel(encoded(image, transparency=index)) == [255, 255, 255]


def test_cmyk_becomes_rgb() -> None:
    content = encoded(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "JPEG", quality=100)
    red, green, blue = first_pixel(content, Decoder(4, grey=False, exact=True))
    assert red > 250
    assert max(green, blue) < 5


@pytest.mark.parametrize(("mode", "kind"), [("I;16", "PNG"), ("I", "TIFF"), ("F", "TIFF")])
def test_more_than_8_bits_a_value_are_refused(mode: str, kind: str) -> None:
    with pytest.raises(BadImageError, match="has more than 8 bits a value"):
        first_pixel(encoded(Image.new(mode, (4, 4), 7), kind))


def test_of_an_animated_image_the_first_frame_counts() -> None:
    frames = [Image.new("RGB", (4, 4), rgb) for rgb in (RED, BLUE)]
    assert first_pixel(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])) == list(RED)


def test_grey_images_have_no_dimension_of_channels() -> None:
    grey = Decoder(4, grey=True)
    assert grey.decode(encoded(Image.new("RGB", (8, 8), (77, 77, 77)))).shape == (1, 4, 4)
    assert first_pixel(encoded(Image.new("RGBA", (8, 8), (77, 77, 77, 255))), grey) == [77]


def test_the_orientation_that_exif_states_is_ignored() -> None:
    image = Image.new("RGB", (8, 8), RED)
    image.paste(BLUE, (4, 0, 8, 8))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    assert first_pixel(encoded(image, "PNG", exif=exif)) == list(RED)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(10))
def test_an_upright_image_is_turned_before_it_is_resized(kind: str, orientation: int) -> None:
    """As if Pillow's own exif_transpose had turned the file; 0 and 9 are no orientations."""
    pixels = np.random.default_rng(orientation).integers(0, 256, (24, 16, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(pixels), kind, exif=exif)
    turned = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    [sample] = Decoder(4, grey=False, exact=True, upright=True).decode(content)
    wanted = np.asarray(turned.resize((4, 4), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.array_equal(sample, wanted)


def test_a_drafted_jpeg_is_turned_too() -> None:
    image = Image.new("L", (128, 64), 0)
    image.paste(255, (0, 0, 64, 64))
    exif = Image.Exif()
    exif[0x0112] = 6  # stored with its top to the left: what is at the left belongs to the top
    [sample] = Decoder(4, grey=True, upright=True).decode(encoded(image, "JPEG", exif=exif))
    assert (sample[0] > 250).all()
    assert (sample[3] < 5).all()


# -- sizes --------------------------------------------------------------------------------------------------


def test_an_image_of_the_wanted_size_keeps_every_pixel() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    [sample] = SMALL.decode(encoded(Image.fromarray(pixels)))
    assert np.array_equal(sample, pixels.transpose(2, 0, 1))


def test_a_crop_takes_nothing_from_around_its_box() -> None:
    image = Image.new("RGB", (40, 30), RED)
    image.paste(BLUE, (10, 10, 20, 20))
    boxes = np.array([[10, 10, 20, 20], [0, 0, 10, 30]])
    inside, left = SMALL.decode(encoded(image), boxes)
    assert (inside == np.array(BLUE)[:, None, None]).all()
    assert (left == np.array(RED)[:, None, None]).all()


def test_a_box_is_cut_at_the_border_and_one_outside_is_refused() -> None:
    content = encoded(Image.new("RGB", (8, 8), RED))
    assert SMALL.decode(content, np.array([[-5, -5, 4, 4]])).shape == (1, 3, 4, 4)
    with pytest.raises(BadImageError, match="has 8 x 8 pixels, of which the box 8,0,8,4 has none"):
        SMALL.decode(content, np.array([[9, 0, 12, 4]]))


def gradient(side: int) -> bytes:
    row = np.linspace(0, 255, side, dtype=np.uint8)
    return encoded(Image.fromarray(np.stack([np.tile(row, (side, 1))] * 3, axis=-1)), "JPEG", quality=90)


def test_a_large_jpeg_is_decoded_at_twice_the_target_unless_it_is_to_be_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def noting(self: Image.Image, *arguments: object) -> Image.Image:
        sizes.append(self.size)
        return resize(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Image.Image, "resize", noting)
    content = gradient(256)
    [draft] = Decoder(16, grey=False).decode(content)
    [exact] = Decoder(16, grey=False, exact=True).decode(content)
    assert sizes == [(32, 32), (256, 256)]
    assert np.abs(draft.astype(int) - exact).max() <= 4
    # Of a crop, the crop is at least twice the target.
    sizes.clear()
    [draft] = Decoder(16, grey=False).decode(content, np.array([[128, 0, 256, 128]]))
    [exact] = Decoder(16, grey=False, exact=True).decode(content, np.array([[128, 0, 256, 128]]))
    assert sizes == [(32, 32), (128, 128)]
    assert np.abs(draft.astype(int) - exact).max() <= 4


@pytest.mark.parametrize("side", [85, 87, 96])
def test_nothing_from_beyond_the_last_pixel_gets_into_a_drafted_jpeg(side: int) -> None:
    """44 / 87 is rounded, and 87 times it is more than 44: a black row and column were taken along."""
    content = encoded(Image.new("RGB", (side, side), (255, 255, 255)), "JPEG")
    assert (Decoder(16, grey=False).decode(content) == 255).all()


def test_pixels_bypass_pillow_unless_they_are_resized() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 4), dtype=np.uint8)
    assert np.array_equal(Decoder(None, grey=False).decode(pixels), pixels[None])
    assert Decoder(2, grey=True).decode(pixels).shape == (1, 2, 2)
    assert Decoder(2, grey=False).decode(pixels).shape == (1, 3, 2, 2)
    assert np.array_equal(Decoder(None, grey=True).decode(pixels[0]), pixels[:1])


# -- damage -------------------------------------------------------------------------------------------------


def test_what_is_not_an_image_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"no image", b"\xff\xd8\xff"):
        with pytest.raises(BadImageError, match=r"is not an image, or damaged|damaged: "):
            SMALL.decode(content)
    with pytest.raises(BadImageError, match="no such file"):
        SMALL.decode(tmp_path / "x.png")
    with pytest.raises(BadImageError, match="is not a regular file"):
        SMALL.decode(tmp_path)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM"])
def test_a_truncated_image_is_refused_wherever_it_is_cut(kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(pixels), kind)
    assert SMALL.decode(content).shape == (1, 3, 4, 4)
    for end in (len(content) // 3, len(content) // 2):
        with without_warnings(), pytest.raises(BadImageError):
            SMALL.decode(content[:end])


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    content = bytearray(encoded(Image.new("L", (8, 8)), "BMP"))
    content[18:26] = np.array([20_000, 20_000], "<i4").tobytes()
    with without_warnings(), pytest.raises(BadImageError, match="has too many pixels"):
        SMALL.decode(bytes(content))


def test_a_file_is_read_like_its_bytes(tmp_path: Path) -> None:
    path = draw(tmp_path / "x.png", RED)
    assert np.array_equal(SMALL.decode(path), SMALL.decode(path.read_bytes()))
