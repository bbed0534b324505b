"""The emulator's side: a run over a fleet of devices, and the same work as Flower is given it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import driftscale
from device_profiles.fleet import COLUMNS, Fleet
from experiments.build import build_executor, build_world
from experiments.locating import locator
from experiments.measuring.script import measure, script
from experiments.reading import load_experiment

HERE = Path(__file__).parent
CONFIGURATION = HERE / "reality.toml"
PREDICTED = ["round", "client", "download_s", "compute_s", "upload_s"]


class Emulated(NamedTuple):
    """A run over one fleet: the device of each client; visits, by round and client; and rounds."""

    fleet: Fleet
    visits: pd.DataFrame
    rounds: pd.DataFrame

    def work(self, seconds_per_sample: float) -> dict[str, Any]:
        """Who takes part in each round, and the speed of each client's device and link, by name."""
        links = (self.fleet.download_bytes_per_s, self.fleet.upload_bytes_per_s, self.fleet.latency_s)
        return {
            "participants": self.visits.client.to_numpy().reshape(len(self.rounds), -1),
            "times_as_slow": self.fleet.seconds_per_sample / seconds_per_sample,
            "links": np.column_stack(links),
        }


def seconds_per_sample() -> float:
    """What `driftscale profiles measure` says of this machine and the model, on one thread."""
    row, _ = measure(script(CONFIGURATION, None, (), is_for_here=True), {"threads": 1})
    return float(pd.read_csv(io.StringIO(row)).seconds_per_sample.item())


def emulate(fleet: str, folder: Path, seconds_per_sample: float) -> Emulated:
    """Play the configuration over devices that are multiples of a machine which takes so long.

    Writes prediction.csv into the folder.
    """
    devices = pd.read_csv(HERE / "fleets" / f"{fleet}.csv")
    devices["seconds_per_sample"] = devices.times_as_slow * seconds_per_sample
    folder.mkdir(parents=True, exist_ok=True)
    devices.to_csv(folder / "fleet.csv", index=False)
    profile = {"devices.profile": "fleet.csv"}
    results = driftscale.run(
        CONFIGURATION, profile, out=folder / "run", data=folder, fresh=True, progress=False
    )
    clients, visits = results.clients.sort_values("client"), results.visits.sort_values(["round", "client"])
    visits[PREDICTED].to_csv(folder / "prediction.csv", index=False)
    return Emulated(Fleet(**{name: clients[name].to_numpy() for name in COLUMNS}), visits, results.rounds)


def work() -> dict[str, Any]:
    """The data, the initial model and the local steps of every client, which no fleet changes, by name."""
    experiment = load_experiment(CONFIGURATION)
    [arm] = experiment.arm
    world = build_world(experiment, experiment.seeds[0], locator(None, CONFIGURATION))
    trace, clients = world.trace, np.arange(world.trace.num_clients)
    train, test = (
        np.stack([held.rows(client) for client in clients.tolist()])
        for held in (trace.held(clients, "train", 0), trace.held(clients, "test", 0))
    )
    return {
        "features": trace.features(train.ravel()).reshape(*train.shape, -1),
        "labels": trace.labels(train.ravel()).reshape(train.shape),
        "tests": trace.features(test.ravel()).reshape(*test.shape, -1),
        "test_labels": trace.labels(test.ravel()).reshape(test.shape),
        "initial": build_executor(experiment, arm, world).initial(0),
        "num_labels": trace.num_labels,
        **{name: getattr(arm.training, name) for name in ("learning_rate", "local_steps", "batch_size")},
    }
