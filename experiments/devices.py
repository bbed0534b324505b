"""The devices of a world: which client has which speeds and which hours.

Tables of a run have ids: that of its profile, and those of its hours (`emulator.assigning`). Mixtures,
generated hours and own code have none, and are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from device_profiles import DeviceProfile, Fleet
from device_profiles.table import TableProfile
from emulator.arrays import Bools, Ints
from emulator.assigning import DeviceIds, by_index, by_name, compared, deal, refuse_same_names
from emulator.errors import ConfigurationError, DataFileError
from emulator.own.guards import guarded
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from experiments.config import Devices
from experiments.locating import Locate
from traces.availability.interval_availability import IntervalAvailability
from traces.availability.intervals import Intervals
from traces.holders import Holders, names_of

ALWAYS, INTERVALS = "always", "intervals"
"""The source of hours that needs no device, and the one that reads tables of devices."""


@dataclass(frozen=True)
class ClientDevices:
    """What the N clients of a seed have.

    Attributes:
        speeds: (N,) the device of the profile's table that each client has; None without a table.
        availability: When each is online.
        assigned: Where `speeds` and `hours` come from, and how clients got theirs, as texts.
    """

    speeds: Ints | None
    availability: Availability
    assigned: Mapping[str, str]

    def fleet(self, profile: DeviceProfile, num_clients: int, streams: RandomStreams) -> Fleet:
        """The speeds of all clients; those of a profile without a table are drawn."""
        if self.speeds is None:
            return profile.draw(num_clients, streams.generator("devices"))
        return cast(TableProfile, profile).devices.take(self.speeds)


def assign_devices(
    settings: Devices, profile: DeviceProfile, clients: Holders, streams: RandomStreams, locate: Locate
) -> ClientDevices:
    """Find out which devices of its tables serve the clients of a seed, and when the clients are online.

    Args:
        settings: The table `[devices]`.
        profile: Its device profile.
        clients: The clients of the seed, with their names.
        streams: The seed's random streams.
        locate: Finds the files that the configuration names.

    Raises:
        ConfigurationError: Clients cannot be assigned as `devices.assign` says, since a profile or a source
            of hours has no ids, or two clients have one name.
        DataFileError: A table breaks a rule, or a client is in none of its rows.
    """
    speeds = profile.ids if type(profile) is TableProfile else None
    _refuse_without_ids(settings, profile, speeds)
    names = names_of(clients) if settings.assign == "by_name" else ()
    refuse_same_names(names)
    assignment = _Assignment(settings, clients.num_clients, names, streams)
    if settings.availability.kind != INTERVALS:
        devices, of_profile = assignment.speeds(speeds)
        chosen = settings.availability
        drawn = chosen.build().build(clients.num_clients, streams.generator("availability"), locate)
        of_hours = chosen.kind if chosen.kind == ALWAYS else f"{chosen.kind}, drawn"
        availability = guarded(chosen.what, drawn, Availability)
        return ClientDevices(devices, availability, {"speeds": of_profile, "hours": of_hours})

    source = cast(Intervals, settings.availability.build())
    read = source.read(locate)
    ids, is_dealt = cast(DeviceIds, read.ids), source.is_dealt(read)
    paired = None if speeds is None or settings.assign == "by_index" else speeds.found_in(ids)
    if paired is None or paired.min() < 0:  # the two tables are not of the same devices
        devices, of_profile = assignment.speeds(speeds)
        hours, of_hours = assignment.of_table(ids, "availability", is_dealt)
    else:
        devices, of_profile = assignment.speeds(speeds, is_dealt[paired])
        hours, of_hours = assignment.of_table(ids, "availability", is_dealt, paired[devices])
    kept = np.union1d(np.flatnonzero(is_dealt), hours)
    online = IntervalAvailability(read.take(kept), np.searchsorted(kept, hours))
    return ClientDevices(devices, online, {"speeds": of_profile, "hours": of_hours})


def unread_names(settings: Devices, profile: DeviceProfile, clients: Holders) -> list[str]:
    """A line, if devices are drawn though the profile has a row for each client by its name."""
    names = clients.client_names  # numbers may be ids by chance
    if settings.assign != "draw" or type(profile) is not TableProfile or not isinstance(names, tuple):
        return []
    if not all(compared(name) in profile.ids.by_key for name in names):
        return []
    return [
        f"devices.profile: the names of all {len(names)} clients are ids of {profile.ids.path.name}, and yet "
        f'its devices are drawn; devices.assign = "by_name" gives each client its own'
    ]


@dataclass(frozen=True)
class _Assignment:
    """How the clients of a seed get devices of a table; `names` are empty unless they decide."""

    settings: Devices
    num_clients: int
    names: Sequence[str]
    streams: RandomStreams

    def speeds(self, ids: DeviceIds | None, is_dealt: Bools | None = None) -> tuple[Ints | None, str]:
        """As `of_table`, of the profile's table; without one None, and where speeds are drawn from."""
        if ids is None:
            return None, f"{self.settings.profile.path}, drawn"
        return self.of_table(ids, "devices", is_dealt)

    def of_table(
        self, ids: DeviceIds, purpose: str, is_dealt: Bools | None = None, others: Ints | None = None
    ) -> tuple[Ints, str]:
        """Find the device of each client, and say how it was found.

        Args:
            ids: The D devices of the table.
            purpose: Names the random stream from which devices are dealt.
            is_dealt: (D,) which devices are dealt; None: all.
            others: (N,) what clients have instead of a dealt one: the device with which their speeds came.

        Returns:
            (N,) the devices, and a text.
        """
        clients, devices, how = self.num_clients, len(ids), "drawn"
        found = np.full(clients, -1)
        if self.settings.assign == "by_index":
            found, how = by_index(clients, ids), "by row"
        elif self.settings.assign == "by_name":
            found = by_name(self.names, ids, may_lack=self.settings.unmatched == "draw")
            lacking = int((found < 0).sum())
            how = f"by name, {lacking} of {clients:,} clients drawn" if lacking else "by name"
        rest = np.flatnonzero(found < 0)
        if others is not None:
            found[rest] = others[rest]
            how = how.replace("drawn", "drawn with their speeds")
        else:
            dealt = np.arange(devices) if is_dealt is None else np.flatnonzero(is_dealt)
            if not len(dealt):
                raise DataFileError(ids.path, "none of its devices is ever online, and so nobody has one")
            found[rest] = dealt[deal(len(rest), len(dealt), self.streams.generator(purpose))]
        text = f"{ids.path.name}, {devices:,} devices, {how}{_shared(found, devices)}"
        return found, "; ".join([text, *ids.notes])


def _shared(found: Ints, devices: int) -> str:
    """How many clients each device serves, if there are fewer devices than clients."""
    if devices >= len(found):
        return ""
    counts = np.bincount(found, minlength=devices)
    least, most = int(counts.min()), int(counts.max())
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f", each for {each} of {len(found):,} clients"


def _refuse_without_ids(settings: Devices, profile: DeviceProfile, speeds: DeviceIds | None) -> None:
    """ConfigurationError if clients cannot be assigned so: there is no table, or none where one is needed."""
    hours, how = settings.availability.kind, f"devices.assign = {settings.assign!r}".replace("'", '"')
    if settings.assign == "by_index" and speeds is None and hours != INTERVALS:
        raise ConfigurationError(
            f"{how}: neither devices.profile = {settings.profile.path!r} nor devices.availability = "
            f"{hours!r} is a table with rows; name a .csv or .parquet"
        )
    if settings.assign == "by_index" and getattr(settings.availability.settings, "drop_never_online", False):
        raise ConfigurationError(
            f"{how}: with devices.availability.drop_never_online the rows after a device that is left out "
            f"would belong to other clients; set one of them"
        )
    if settings.assign != "by_name":
        return
    for key, value, has_ids in (
        ("profile", settings.profile.path, speeds is not None),
        ("availability", hours, hours in (ALWAYS, INTERVALS)),
    ):
        if not has_ids:
            raise ConfigurationError(
                f"{how}: devices.{key} = {value!r} has no ids that could be names of clients; name a table "
                f"with a row for each client, a .csv or .parquet, or leave devices.assign out"
            )
