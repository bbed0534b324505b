from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator.errors import InputError
from traces.building.image_values import work_of
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, ordered


def listing(**columns: object) -> Rows:
    """Six samples of two clients; image 3 makes the rows 1 and 4."""
    given: dict[str, object] = {
        "client": np.array([1, 0, 1, 0, 0, 1]),
        "clients": ("a", "b"),
        "label": np.array([0, 1, 0, 1, 0, 1]),
        "classes": ("x", "y"),
        "when": "step",
        "at": np.array([3, 2, 1, 2, 0, 1]),
        "value": np.array([0, 3, 2, 1, 3, 4]),
        "pixels": ImageFiles(Path(), [f"{k}.png" for k in range(5)]),
        **columns,
    }
    return Rows(**given)  # type: ignore[arg-type]


def test_rows_are_sorted_by_client_split_time_and_image() -> None:
    split = np.array([0, 1, 0, 0, 0, 0], np.int8)
    found = ordered(listing(split=split), None, 0, 0.2)
    assert found.client.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.split is not None
    assert found.split.tolist() == [0, 0, 1, 0, 0, 0]
    assert found.at.tolist() == [0, 2, 2, 1, 1, 3]
    assert found.value.tolist() == [3, 1, 3, 2, 4, 0]


def test_an_image_is_decoded_once_for_all_its_rows_in_the_order_of_the_first() -> None:
    found = ordered(listing(split=np.array([0, 1, 0, 0, 0, 0], np.int8)), None, 0, 0.2)
    work = work_of(found)
    assert work.images.tolist() == [3, 1, 2, 4, 0]
    assert [work.rows[a:b].tolist() for a, b in zip(work.starts[:-1], work.starts[1:], strict=True)] == [
        [0, 2],
        [1],
        [3],
        [4],
        [5],
    ]
    pixels = ImageFiles(Path(), [])
    pixels.in_order = True
    in_order = work_of(replace(found, pixels=pixels))
    assert in_order.images.tolist() == [0, 1, 2, 3, 4]
    assert in_order.rows.tolist() == [5, 1, 3, 0, 2, 4]


def test_clients_with_test_samples_only_and_those_without_rows_are_dropped() -> None:
    split = np.array([0, 1, 0, 1, 1, 0], np.int8)
    found = ordered(listing(split=split), None, 0, 0.2)
    assert (found.clients, found.client.tolist()) == (("b",), [0, 0, 0])
    assert found.notes == ("1 client(s) with test samples only are left out",)
    with pytest.raises(InputError, match="no training samples that fit the options"):
        ordered(listing(split=np.ones(6, np.int8)), None, 0, 0.2)
    with pytest.raises(InputError, match="no samples that fit the options"):
        ordered(listing().take(np.zeros(0, int)), None, 0, 0.2)


def test_every_column_counts_in_the_digest() -> None:
    digests = {
        listing().digest(),
        listing(client=np.array([1, 0, 1, 0, 0, 0])).digest(),
        listing(clients=("a", "c")).digest(),
        listing(label=np.zeros(6, int)).digest(),
        listing(classes=("x", "z")).digest(),
        listing(when="order").digest(),
        listing(at=np.zeros(6, int)).digest(),
        listing(value=np.arange(6)).digest(),
        listing(pixels=ImageFiles(Path(), ["other.png"])).digest(),
        listing(split=np.zeros(6, np.int8)).digest(),
        listing(box=np.zeros((6, 4))).digest(),
    }
    assert len(digests) == 11
    assert listing().digest() == listing().digest()
