from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from emulator.errors import DataFileError
from tests.traces.tiny import idx_bytes, write_idx, write_idx_folder
from traces.idx import MAX_BYTES, read_idx, read_idx_folder

PIXELS = np.arange(24, dtype=np.uint8).reshape(6, 2, 2)


def header(*shape: int) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + b"".join(length.to_bytes(4, "big") for length in shape)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(DataFileError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_was_written_is_read(tmp_path: Path, suffix: str) -> None:
    path = write_idx(tmp_path / f"images{suffix}", PIXELS)
    assert np.array_equal(read_idx(path, 3), PIXELS)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated: 0 bytes, the idx header alone has 16"),
        (idx_bytes(PIXELS)[:15], "truncated: 15 bytes, the idx header alone has 16"),
        (
            idx_bytes(PIXELS)[:-1],
            "the header states 6 x 2 x 2 (40 bytes), the file has only 39: truncated",
        ),
        (idx_bytes(PIXELS) + b"\0", "the header states 6 x 2 x 2 (40 bytes), the file has more"),
        (header(7, 2, 2) + bytes(24), "the header states 7 x 2 x 2 (44 bytes), the file has only 40"),
        (header(0, 2, 2), "the header states 0 x 2 x 2 (16 bytes); every length must be above 0"),
        (header(6, 0, 2), "the header states 6 x 0 x 2 (16 bytes); every length must be above 0"),
        (b"\0\0\x0d\x03" + idx_bytes(PIXELS)[4:], "magic number 00000d03 is not that of an idx file"),
        (idx_bytes(PIXELS.reshape(24)) + bytes(9), "magic number 00000801"),
        (b"<!DOCTYPE html><html></html>", "magic number 3c21444f"),
    ],
)
def test_a_file_that_does_not_match_its_header_is_refused(
    tmp_path: Path, suffix: str, content: bytes, problem: str
) -> None:
    path = write(tmp_path / f"images{suffix}", content)
    message = refusal(lambda: read_idx(path, 3))
    assert message.startswith(f"{path}: {problem}")


def test_a_gzip_file_that_is_none_or_is_cut_short_or_flipped_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    packed = gzip.compress(idx_bytes(np.random.default_rng(0).integers(0, 256, (500, 2, 2))))
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0xFF
    for content in (idx_bytes(PIXELS), packed[: len(packed) // 2], packed[:-4], bytes(flipped)):
        path.write_bytes(content)
        assert refusal(lambda: read_idx(path, 3)).startswith(f"{path}: ")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((2**32 - 1, 2**32 - 1, 2**32 - 1), "at most"),  # 79 billion terabytes
        ((2**20, 2**10, 2**10), "at most"),  # a terabyte
        ((MAX_BYTES // 4 - 3, 2, 2), "at most"),
        ((MAX_BYTES // 4 - 4, 2, 2), "only 20: truncated"),  # the largest allowed size, but truncated
    ],
)
def test_a_header_that_claims_too_much_is_refused_before_anything_of_that_size_is_allocated(
    tmp_path: Path, suffix: str, shape: tuple[int, ...], problem: str
) -> None:
    path = write(tmp_path / f"images{suffix}", header(*shape) + b"\1\2\3\4")
    tracemalloc.start()
    try:
        assert problem in refusal(lambda: read_idx(path, 3))
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_file_that_unpacks_to_more_than_its_header_states_is_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "images.gz", header(2, 2, 2) + bytes(64 * 2**20))
    tracemalloc.start()
    try:
        assert "(24 bytes), the file has more" in refusal(lambda: read_idx(path, 3))
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_folder_keeps_its_published_split(tmp_path: Path, suffix: str) -> None:
    images = read_idx_folder(write_idx_folder(tmp_path / "set", num_labels=3, per_label=2, suffix=suffix))
    assert images.num_labels == 3
    assert images.labels.tolist() == [0, 1, 2, 0, 1, 2] * 2
    assert images.train.tolist() == list(range(6))
    assert images.test.tolist() == list(range(6, 12))
    assert images.pixels[[5, 6], 0, 0].tolist() == [5, 100]
    assert images.features(np.array([6])).max() == np.float32(100) * np.float32(1 / 255)


def test_the_test_files_may_be_named_as_emnist_names_them(tmp_path: Path) -> None:
    folder = write_idx_folder(tmp_path / "set")
    for path in folder.glob("t10k-*"):
        path.rename(folder / path.name.replace("t10k", "test"))
    assert len(read_idx_folder(folder).test) == 12


def test_the_error_for_a_missing_file_lists_the_accepted_names(tmp_path: Path) -> None:
    folder = write_idx_folder(tmp_path / "set")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    message = refusal(lambda: read_idx_folder(folder))
    assert message.startswith(f"{folder}: not an idx folder: it has none of t10k-labels-idx1-ubyte, ")
    assert "test-labels-idx1-ubyte.gz" in message
    assert "not an idx folder" in refusal(lambda: read_idx_folder(tmp_path / "nowhere"))


def test_there_must_be_as_many_labels_as_images(tmp_path: Path) -> None:
    folder = write_idx_folder(tmp_path / "set")
    write_idx(folder / "train-labels-idx1-ubyte", np.zeros(11))
    message = refusal(lambda: read_idx_folder(folder))
    assert message.startswith(f"{folder}/train-labels-idx1-ubyte: 11 labels for 12 images in ")


def test_train_and_test_images_have_one_shape(tmp_path: Path) -> None:
    folder = write_idx_folder(tmp_path / "set")
    write_idx(folder / "t10k-images-idx3-ubyte", np.zeros((12, 3, 2)))
    assert "train images are (2, 2), test images (3, 2)" in refusal(lambda: read_idx_folder(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_the_published_files_are_read(published: Path, name: str) -> None:
    images = read_idx_folder(published / name)
    assert images.shape == (28, 28)
    assert (len(images.train), len(images.test), images.num_labels) == (60_000, 10_000, 10)
    assert (images.pixels.min(), images.pixels.max()) == (0, 255)


def allocated(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_wrong_number_of_labels_is_refused_before_any_pixel_is_read(tmp_path: Path, suffix: str) -> None:
    folder = write_idx_folder(tmp_path / "set", suffix=suffix)
    write(folder / f"train-images-idx3-ubyte{suffix}", header(2**14, 32, 32) + bytes(2**24))
    assert allocated(lambda: refusal(lambda: read_idx_folder(folder))) < 2**20
    assert "labels for 16384 images" in refusal(lambda: read_idx_folder(folder))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_pixels_of_a_folder_are_held_once(tmp_path: Path, suffix: str) -> None:
    folder = write_idx_folder(tmp_path / "set", suffix=suffix)
    for split in ("train", "t10k"):
        write(folder / f"{split}-images-idx3-ubyte{suffix}", header(2**13, 32, 32) + bytes(2**23))
        write(folder / f"{split}-labels-idx1-ubyte{suffix}", header(2**13) + bytes(2**13))
    assert allocated(lambda: read_idx_folder(folder)) < 1.5 * 2**24
