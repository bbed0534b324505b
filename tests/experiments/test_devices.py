from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_profiles import read_profile
from emulator.errors import InputError
from emulator.seeding import RandomStreams
from emulator.storage.table_paths import TablePath
from experiments.build import find_profile
from experiments.config import Devices
from experiments.devices import ClientDevices, assign_devices, unread_names

NUM = 40
NAMES = tuple(sorted(f"wearer-{number}" for number in range(NUM)))
"""As a trace has them: by letters, so that client 2 is wearer-10."""


class Clients:
    """As many clients as there are names; without names, forty."""

    def __init__(self, names: tuple[str, ...] | np.ndarray | None = NAMES) -> None:
        self.client_names = names
        self.num_clients = NUM if names is None else len(names)


def number(name: str) -> int:
    return int(name.removeprefix("wearer-"))


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty wearers' speeds and hours, in other orders: wearer i takes i + 1 s, and is online in hour i."""
    monkeypatch.chdir(tmp_path)
    write("speeds.csv", {f"wearer-{i}": i + 1 for i in reversed(range(NUM))})
    write_hours("hours.csv", {f"wearer-{i}": i for i in range(NUM)})


def write(path: str, seconds: Mapping[str, float]) -> None:
    head = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s\n"
    Path(path).write_text(head + "".join(f"{id_},{value},1e6,1e6\n" for id_, value in seconds.items()))


def write_hours(path: str, hours: Mapping[str, int]) -> None:
    rows = [f"{id_},{3600 * hour},{3600 * (hour + 1)},172800\n" for id_, hour in hours.items()]
    Path(path).write_text("device_id,start_s,end_s,period_s\n" + "".join(rows))


def silence(wearer: str) -> None:
    """Make the hours of a wearer empty."""
    lines = Path("hours.csv").read_text().splitlines()
    kept = [f"{wearer},0,0,172800" if line.startswith(f"{wearer},") else line for line in lines]
    Path("hours.csv").write_text("\n".join(kept) + "\n")


def assigned(
    clients: Any = None, seed: int = 0, profile: str = "speeds.csv", hours: Any = "hours.csv", **settings: Any
) -> tuple[ClientDevices, list[int], list[int]]:
    """What the clients have: their devices, seconds per sample, and the hours at which they come online."""
    table = Devices.model_validate({"profile": profile, "availability": hours_of(hours), **settings})
    clients = clients or Clients()
    found, streams = find_profile(TablePath.model_validate(profile), Path), RandomStreams(seed)
    devices = assign_devices(table, found, clients, streams, Path)
    seconds = devices.fleet(found, clients.num_clients, streams).seconds_per_sample
    online = devices.availability.next_online_s(np.arange(clients.num_clients), 172800.0 * 2 - 1) / 3600 - 96
    return devices, [round(value) for value in seconds], np.rint(online).tolist()


def hours_of(hours: Any) -> Any:
    return {"kind": "intervals", **hours} if isinstance(hours, dict) else hours


def refusal(**settings: Any) -> str:
    with pytest.raises(InputError) as refused:
        assigned(**settings)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("seed", range(3))
def test_by_name_forty_of_forty_wearers_have_their_own_device_and_hours(seed: int) -> None:
    devices, seconds, online = assigned(seed=seed, assign="by_name")
    assert seconds == [number(name) + 1 for name in NAMES]
    assert online == [number(name) for name in NAMES]
    assert devices.assigned == {
        "speeds": "speeds.csv, 40 devices, by name",
        "hours": "hours.csv, 40 devices, by name",
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_draw_gives_a_device_its_own_hours_if_both_tables_have_its_id(seed: int) -> None:
    devices, seconds, online = assigned(seed=seed)
    assert [hour + 1 for hour in online] == seconds
    assert sorted(seconds) == list(range(1, NUM + 1))
    assert seconds != [number(name) + 1 for name in NAMES]
    assert devices.assigned["hours"] == "hours.csv, 40 devices, drawn with their speeds"


def test_hours_of_further_devices_change_no_draw_of_speeds() -> None:
    _, before, _ = assigned()
    write_hours("hours.csv", {f"wearer-{i}": i % 48 for i in range(NUM + 9)})
    _, seconds, online = assigned()
    assert seconds == before == [hour + 1 for hour in online]


def test_tables_of_other_devices_are_drawn_apart() -> None:
    write_hours("hours.csv", {f"wearer-{i}": i for i in range(NUM - 1)})
    devices, seconds, online = assigned()
    assert devices.assigned["hours"] == "hours.csv, 39 devices, drawn, each for 1 to 2 of 40 clients"
    assert [hour + 1 for hour in online] != seconds


def test_a_draw_leaves_out_devices_that_are_never_online_with_their_speeds() -> None:
    Path("hours.csv").write_text(
        Path("hours.csv").read_text().replace("wearer-5,18000,21600", "wearer-5,0,0")
    )
    hours = {"windows": "hours.csv", "drop_never_online": True}
    _, seconds, online = assigned(hours=hours)
    assert 6 not in seconds
    assert [hour + 1 for hour in online] == seconds


def test_by_name_nobody_who_is_never_online_is_left_out() -> None:
    Path("hours.csv").write_text(
        Path("hours.csv").read_text().replace("wearer-5,18000,21600", "wearer-5,0,0")
    )
    hours = {"windows": "hours.csv", "drop_never_online": True}
    table = Devices.model_validate(
        {"profile": "speeds.csv", "availability": hours_of(hours), "assign": "by_name"}
    )
    found = assign_devices(table, read_profile(Path("speeds.csv")), Clients(), RandomStreams(0), Path)
    later = found.availability.next_online_s(np.arange(NUM), 0.0)
    assert [NAMES[client] for client in np.flatnonzero(np.isinf(later))] == ["wearer-5"]


def test_the_unmatched_are_drawn_together_with_their_hours() -> None:
    names = ("stranger", *NAMES[1:])
    devices, seconds, online = assigned(Clients(names), assign="by_name", unmatched="draw")
    assert seconds[1:] == [number(name) + 1 for name in NAMES[1:]]
    assert online[0] + 1 == seconds[0]
    assert devices.assigned["speeds"] == "speeds.csv, 40 devices, by name, 1 of 40 clients drawn"


def test_by_index_clients_have_the_rows_in_their_order_each_table_by_its_own_number() -> None:
    write_hours("hours.csv", {"c": 7, "a": 2, "b": 9})
    devices, seconds, online = assigned(assign="by_index")
    assert seconds == list(range(NUM, 0, -1))
    assert online == [[7, 2, 9][client % 3] for client in range(NUM)]
    assert devices.assigned["hours"] == "hours.csv, 3 devices, by row, each for 13 to 14 of 40 clients"


def test_by_index_a_table_of_devices_has_the_order_of_hours() -> None:
    write_hours("hours.csv", {"c": 7, "a": 2, "b": 9})
    text = Path("hours.csv").read_text().replace(",period_s", "").replace(",172800", "")
    Path("hours.csv").write_text(text)
    Path("described.csv").write_text("device_id,period_s\nb,172800\nc,172800\na,172800\n")
    hours = {"windows": "hours.csv", "devices": "described.csv"}
    assert assigned(hours=hours, assign="by_index")[2][:3] == [9, 7, 2]


def test_by_index_pairs_as_fedscale_does_once_the_first_device_of_the_hours_stands_last() -> None:
    """FedScale's client k, from 1 on, has capacity k, and entry k, from 0 on, of the file of hours."""
    write("speeds.csv", {str(id_): id_ for id_ in range(1, 8)})
    published = {"31": 5, "12": 4, "77": 3, "8": 2, "40": 1}
    first, *others = published
    write_hours("hours.csv", {id_: published[id_] for id_ in (*others, first)})
    _, seconds, online = assigned(assign="by_index")
    of_fedscale = list(published.values())
    assert seconds[:7] == list(range(1, 8))
    assert online[:12] == [of_fedscale[client % 5] for client in range(1, 13)]


def test_clients_without_names_are_called_by_their_numbers() -> None:
    write("speeds.csv", {str(i): i + 1 for i in range(NUM)})
    assert assigned(Clients(None), hours="always", assign="by_name")[1] == list(range(1, NUM + 1))
    write("speeds.csv", {f"{i:03}": i + 1 for i in range(NUM)})
    assert "row 1 has '000', the client is '0'" in refusal(
        clients=Clients(None), hours="always", assign="by_name"
    )


def test_rows_of_numbers_keep_their_order_by_size_whatever_is_written() -> None:
    write("speeds.csv", {"10": 1, "9": 2, "007": 3})
    profile = read_profile(Path("speeds.csv"))
    assert profile.devices.seconds_per_sample.tolist() == [3, 2, 1]  # type: ignore[union-attr]
    clients = Clients(("007", "9"))
    assert assigned(clients, hours="always", assign="by_name")[1] == [3, 2]
    clients = Clients(np.array([9, 10]))
    assert assigned(clients, hours="always", assign="by_name")[1] == [2, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"profile": "smartphones"}, "devices.profile = 'smartphones' has no ids that could be names"),
        ({"hours": "diurnal"}, "devices.availability = 'diurnal' has no ids that could be names of clients"),
        (
            {"assign": "by_index", "profile": "iot", "hours": "always"},
            "neither devices.profile = 'iot' nor devices.availability = 'always' is a table with rows",
        ),
        (
            {"assign": "by_index", "hours": {"windows": "hours.csv", "drop_never_online": True}},
            "the rows after a device that is left out would belong to other clients",
        ),
        ({"clients": Clients(("a", "a "))}, "clients 0 and 1 of the trace are 'a' and 'a ', the same but"),
        ({"clients": Clients(("Wearer-1",))}, "row 39 has 'wearer-1', the client is 'Wearer-1'"),
    ],
)
def test_what_cannot_be_assigned_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    assert message in refusal(**{"assign": "by_name", **settings})


def test_a_draw_of_nobody_who_is_ever_online_is_refused() -> None:
    write("speeds.csv", {"wearer-5": 1})
    Path("hours.csv").write_text(
        Path("hours.csv").read_text().replace("wearer-5,18000,21600", "wearer-5,0,0")
    )
    hours = {"windows": "hours.csv", "drop_never_online": True}
    assert refusal(hours=hours) == "speeds.csv: none of its devices is ever online, and so nobody has one"


def test_a_draw_over_rows_that_clients_are_named_after_is_noted() -> None:
    profile = read_profile(Path("speeds.csv"))
    [note] = unread_names(Devices(profile="speeds.csv"), profile, Clients())
    assert "names of all 40 clients are ids of speeds.csv, and yet its devices are drawn" in note
    assert unread_names(Devices(profile="speeds.csv", assign="by_name"), profile, Clients()) == []
    assert unread_names(Devices(profile="speeds.csv"), profile, Clients(("a", *NAMES))) == []
    write("numbers.csv", {str(i): 1 for i in range(NUM)})
    numbers = read_profile(Path("numbers.csv"))
    assert unread_names(Devices(), numbers, Clients(np.arange(NUM))) == []


def test_unmatched_is_read_by_name_alone() -> None:
    with pytest.raises(ValueError, match="unmatched = 'draw': is of assign = 'by_name', not of 'draw'"):
        Devices.model_validate({"unmatched": "draw"})


def test_what_was_made_of_the_tables_is_said_beside_where_they_come_from() -> None:
    for path, further in (("speeds.csv", "os"), ("hours.csv", "wifi")):
        head, *rows = Path(path).read_text().splitlines()
        Path(path).write_text("\n".join([f"{head},{further}", *(f"{row},x" for row in rows)]))
    devices, _, _ = assigned(assign="by_name")
    assert devices.assigned == {
        "speeds": "speeds.csv, 40 devices, by name; not read: os",
        "hours": "hours.csv, 40 devices, by name; not read: wifi",
    }


def test_hours_in_dates_are_said_with_the_instant_at_which_virtual_time_begins() -> None:
    rows = [f"wearer-{number},2026-01-01T{number % 24:02d}:00:00Z,\n" for number in range(NUM)]
    Path("log.csv").write_text("client,start,end\n" + "".join(rows))
    devices, _, _ = assigned(hours="log.csv", assign="by_name")
    assert devices.assigned["hours"] == (
        "log.csv, 40 devices, by name; virtual time 0 is 2026-01-01T00:00:00Z; dates until "
        "2026-01-01T23:00:00Z, the end of 40 without one"
    )
    online = [int(devices.availability.online(np.arange(NUM), hour * 3600.0).sum()) for hour in (0, 22.5, 23)]
    assert online == [2, 39, 0]  # wearers 0 and 24 begin at midnight; wearer 23 at the last instant
