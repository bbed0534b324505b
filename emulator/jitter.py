"""Jitter: how far times lie from those of a device's profile, as factors of median 1 whose logs are normal.

A profile has one time for a device, of one model, and one rate for each direction of its link.
docs/explanation/how-true.md has measured values of what departs from these. Nothing here has state.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.numbers import Number
from emulator.plugins import Settings
from emulator.seeding import RandomStreams, StreamKeys, uniforms

Deviation = Annotated[float, Number(ge=0, le=3)]
"""The standard deviation of a factor's natural logarithm."""


class Jitter(Settings):
    """Factors of median 1 on times, each by the standard deviation of its log; 0: as the profile says."""

    compute: Deviation = Field(0.0, description="of a visit's computing, drawn for each visit")
    network: Deviation = Field(0.0, description="of a visit's two transfers, one factor for each visit")
    model: Deviation = Field(
        0.0,
        description="of all computing of a client, one factor for each client and model: how its device "
        "departs from model_factor; the coordinator does not expect it",
    )

    @property
    def of_visits(self) -> bool:
        """Whether visits to one client differ."""
        return self.compute > 0 or self.network > 0

    def visit_factors(self, streams: RandomStreams, dispatch: int, clients: Ints) -> tuple[Floats, Floats]:
        """(n,) factors of the computing, and (n,) of the transfers, of visits to `clients` (n,).

        Both are of the key (dispatch number, client).
        """
        compute, network = _normals(streams.keys("jitter", dispatch, clients))
        return np.exp(self.compute * compute), np.exp(self.network * network)

    def device_factors(self, streams: RandomStreams, num_clients: int, model: str) -> Floats | None:
        """(num_clients,) factors of the computing of each client's device on a model; None: all are 1.

        Args:
            streams: the seed's.
            num_clients: the number of clients.
            model: names the model, with its settings: the same text has the same factors.
        """
        if self.model == 0:
            return None
        normal, _ = _normals(streams.keys(f"jitter of {model}", np.arange(num_clients)))
        return np.exp(self.model * normal)


NO_JITTER = Jitter()


def _normals(keys: StreamKeys) -> tuple[Floats, Floats]:
    """Two columns (n,) of independent standard normals, two of each stream (Box and Muller 1958)."""
    distance, angle = uniforms(keys).T
    radius, turn = np.sqrt(-2 * np.log1p(-distance)), 2 * np.pi * angle
    return radius * np.cos(turn), radius * np.sin(turn)
