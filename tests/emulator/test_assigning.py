from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from emulator.assigning import DeviceIds, by_index, by_name, deal, refuse_same_names
from emulator.errors import ConfigurationError, DataFileError


def table(*ids: str, rows: Sequence[int] | None = None) -> DeviceIds:
    return DeviceIds(
        Path("phones.csv"), "device_id", ids, np.array(range(len(ids)) if rows is None else rows)
    )


def refusal(names: Sequence[str], devices: DeviceIds) -> str:
    with pytest.raises(DataFileError) as refused:
        by_name(names, devices, may_lack=False)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(("clients", "devices"), [(0, 3), (3, 3), (7, 3), (2, 5)])
def test_no_device_is_dealt_twice_before_all_are_dealt_once(clients: int, devices: int) -> None:
    dealt = deal(clients, devices, np.random.default_rng(1))
    counts = np.bincount(dealt, minlength=devices)
    assert len(dealt) == clients
    assert counts.max() - counts.min() <= 1


def test_by_name_each_client_has_the_device_of_its_name_wherever_it_stands() -> None:
    assert by_name(["b", "a", "c"], table("a", "b", "c", "d"), may_lack=False).tolist() == [1, 0, 2]


def test_by_index_clients_follow_the_rows_of_the_file_and_begin_again() -> None:
    assert by_index(5, table("x", "y", "z", rows=[4, 0, 2])).tolist() == [1, 2, 0, 1, 2]


def test_names_are_compared_as_written_but_for_blanks_and_composition() -> None:
    assert by_name([" a", "e\u0301"], table("\u00e9", "a "), may_lack=False).tolist() == [1, 0]
    assert by_name(["7", "A"], table("007", "a"), may_lack=True).tolist() == [-1, -1]


def test_clients_without_a_device_are_refused_with_five_names_on_either_side() -> None:
    names = [f"w{number}" for number in range(8)]
    message = refusal(names, table("w0", *(f"x{number}" for number in range(7))))
    assert message == (
        "phones.csv: device_id: 7 of 8 clients have no row, by their names: 'w1', 'w2', 'w3', 'w4', 'w5' and "
        "2 more; ids of no client: 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more; add or rename rows, or set "
        'devices.unmatched = "draw"'
    )


@pytest.mark.parametrize(("name", "id_"), [("wearer-7", "Wearer-7"), ("7", "007")])
def test_a_refusal_shows_the_row_that_is_meant(name: str, id_: str) -> None:
    message = refusal(["b", name], table("b", id_, rows=[1, 0]))
    assert f"names are compared as written: row 1 has {id_!r}, the client is {name!r}" in message


def test_a_device_of_no_client_is_no_mistake() -> None:
    assert by_name(["a"], table("a", "b"), may_lack=False).tolist() == [0]


def test_two_devices_or_clients_of_one_name_are_refused() -> None:
    message = refusal(["a"], table("a ", "a", rows=[3, 1]))
    assert message.startswith("phones.csv, row 4: device_id 'a ' is 'a' of row 2 but for blanks around it")
    with pytest.raises(ConfigurationError, match="clients 0 and 2 of the trace are 'a' and 'a ', the same"):
        refuse_same_names(["a", "b", "a "])


def test_devices_are_found_in_another_table_by_their_ids() -> None:
    assert table("a", "b").found_in(table("b", "c", "a")).tolist() == [2, 0]
    assert table("a", "x").found_in(table("b", "c", "a")).tolist() == [2, -1]
