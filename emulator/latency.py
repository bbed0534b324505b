"""Time models: from the work of a visit to virtual seconds, and to the instant at which the visit drops out.

`driftscale`: download + compute + upload, each direction at its own bandwidth after the link's latency; a
heavier model computes `model_factor` times as long. A visit drops out when its client goes offline.
`fedscale`: FedScale's formula and its rule of drop-outs, for parity: one bandwidth both ways, no latency,
independent of the model. Only whether a client is online at the end of its visit matters, and it is known at
dispatch.

In both the coordinator learns of a drop-out at the instant of the drop-out, unless its pacing has a time-out.

A profile has one time for a device, of one model, and one rate for each direction of its link. Jitter is what
departs from these, as factors; docs/explanation/how-true.md has measured values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.messages import Work
from emulator.numbers import Number
from emulator.plugins import Settings
from emulator.ports import Availability, FleetColumns
from emulator.seeding import RandomStreams, StreamKeys, uniforms

FORWARD_SHARE = 1 / 3
"""Time of a forward pass, as a share of a training step's: a backward pass costs twice a forward pass."""

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


@dataclass(frozen=True)
class Phases:
    """Seconds of each phase of a visit, in order; columns of shape (n,)."""

    download_s: Floats
    compute_s: Floats
    upload_s: Floats

    @property
    def total_s(self) -> Floats:
        return self.download_s + self.compute_s + self.upload_s

    def times(self, compute: Floats, network: Floats) -> Phases:
        """The phases with the computing times `compute` (n,), and each transfer times `network` (n,)."""
        return Phases(self.download_s * network, self.compute_s * compute, self.upload_s * network)

    def moved(self, work: Work, elapsed_s: Floats) -> tuple[Floats, Floats]:
        """Bytes (down, up), each (n,), transferred in the first `elapsed_s` seconds of each visit.

        Bytes are transferred evenly over the time of their phase.

        Args:
            work: what the visits transfer in all.
            elapsed_s: array of shape (n,), seconds since each visit began.
        """
        down = _share(elapsed_s, self.download_s)
        up = _share(elapsed_s - self.download_s - self.compute_s, self.upload_s)
        return down * work.download_bytes, up * work.upload_bytes


class LatencyModel(Protocol):
    """Computes how long each client's work takes, and when its visit drops out."""

    @property
    def expected(self) -> LatencyModel:
        """What the coordinator expects of it: the profile, without factors of devices."""
        ...

    def phases(self, clients: Ints, work: Work) -> Phases:
        """How long each phase of the `work` (n,) takes `clients` (n,)."""
        ...

    def drop_out_s(
        self, clients: Ints, start_s: float, due_s: Floats, offline_s: Floats, availability: Availability
    ) -> Floats:
        """When each visit drops out because its client is offline; not before `due_s` if it completes.

        Args:
            clients: array of shape (n,), the client of each visit.
            start_s: absolute virtual time at which all visits begin.
            due_s: array of shape (n,), when each visit ends if it completes.
            offline_s: array of shape (n,), when each client goes offline for the first time, or inf;
                `start_s` if it is offline already.
            availability: says when the clients are online.

        Returns:
            Array of shape (n,): absolute virtual times at or after `start_s`, or inf.
        """
        ...


@dataclass(frozen=True)
class DriftscaleLatency:
    """The time model `driftscale`: latency and bandwidth in each direction, and compute time by model.

    A transfer takes `latency + bytes / bandwidth` seconds (0 if there are no bytes), and computing takes
    `samples x seconds_per_sample x model_factor x device_factor`. A sample that is only predicted counts as
    `FORWARD_SHARE` samples.
    """

    fleet: FleetColumns
    model_factor: float = 1.0
    device_factor: Floats | None = None  # (N,) of each client's device on this model; None: 1

    @property
    def expected(self) -> DriftscaleLatency:
        return self if self.device_factor is None else DriftscaleLatency(self.fleet, self.model_factor)

    def phases(self, clients: Ints, work: Work) -> Phases:
        fleet = self.fleet
        samples = work.trained_samples + FORWARD_SHARE * work.forward_samples
        if self.device_factor is not None:
            samples = samples * self.device_factor[clients]
        return Phases(
            _transfer(work.download_bytes, fleet.download_bytes_per_s[clients], fleet.latency_s[clients]),
            samples * fleet.seconds_per_sample[clients] * self.model_factor,
            _transfer(work.upload_bytes, fleet.upload_bytes_per_s[clients], fleet.latency_s[clients]),
        )

    def drop_out_s(
        self, clients: Ints, start_s: float, due_s: Floats, offline_s: Floats, availability: Availability
    ) -> Floats:
        """A visit drops out when its client goes offline for the first time."""
        return offline_s


@dataclass(frozen=True)
class FedScaleLatency:
    """FedScale's durations and drop-outs.

    A visit takes 3 x batch x steps x ms / 1000 + (up + down) / bandwidth seconds (`client_metadata.py`). The
    factor 3 and the unit of 1024 bits are already in the fleet's columns. Samples that are only predicted
    take no time.

    A visit drops out if its client is offline at the end of it, however often the client goes offline before
    that. It drops out at dispatch, and so takes no time and moves no bytes (`aggregator.py`,
    `tictak_client_tasks`).

    FedScale crashes if all visits of a round drop out; here they do so as in `DriftscaleLatency`. Its
    intervals include their ends; ours are half-open, so a client that came online again during its visit and
    goes offline at the very end of it is offline there. Further differences are in
    docs/explanation/emulation.md.
    """

    fleet: FleetColumns
    model_factor: float = 1.0  # unused, as in FedScale, which computes one and never uses it
    device_factor: Floats | None = None  # unused: a configuration with one is refused

    @property
    def expected(self) -> FedScaleLatency:
        return self

    def phases(self, clients: Ints, work: Work) -> Phases:
        bandwidth = self.fleet.download_bytes_per_s[clients]
        return Phases(
            work.download_bytes / bandwidth,
            work.trained_samples * self.fleet.seconds_per_sample[clients],
            work.upload_bytes / bandwidth,
        )

    def drop_out_s(
        self, clients: Ints, start_s: float, due_s: Floats, offline_s: Floats, availability: Availability
    ) -> Floats:
        """A visit drops out at `start_s` if its client is offline at `due_s`, unless all visits do."""
        drop_out_s = np.full(len(clients), np.inf)
        for visit in np.flatnonzero(offline_s < due_s):  # each with an end of its own
            if not availability.online(clients[visit : visit + 1], float(due_s[visit])).item():
                drop_out_s[visit] = start_s
        # If all visits did, this round and all later ones could close at the same instant: time must pass.
        return offline_s if np.isfinite(drop_out_s).all() else drop_out_s


TIME_MODELS: Mapping[str, type[DriftscaleLatency] | type[FedScaleLatency]] = {
    "driftscale": DriftscaleLatency,
    "fedscale": FedScaleLatency,
}


def _transfer(bytes_: Floats, bytes_per_s: Floats, latency_s: Floats) -> Floats:
    """(n,) seconds to transfer `bytes_` (n,) one way; 0 for 0 bytes."""
    return np.where(bytes_ > 0, latency_s + bytes_ / bytes_per_s, 0.0)


def _share(elapsed_s: Floats, phase_s: Floats) -> Floats:
    """The share of a phase completed after `elapsed_s` seconds; a phase of 0 s is complete as it begins."""
    safe = np.where(phase_s > 0, phase_s, 1.0)
    within = np.minimum(np.maximum(elapsed_s / safe, 0.0), 1.0)
    return np.where(phase_s > 0, within, elapsed_s >= 0)


def _normals(keys: StreamKeys) -> tuple[Floats, Floats]:
    """Two columns (n,) of independent standard normals, two of each stream (Box and Muller 1958)."""
    distance, angle = uniforms(keys).T
    radius, turn = np.sqrt(-2 * np.log1p(-distance)), 2 * np.pi * angle
    return radius * np.cos(turn), radius * np.sin(turn)
