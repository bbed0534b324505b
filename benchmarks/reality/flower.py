"""Flower's side, in a venv of its own: `python -m benchmarks.reality.flower serve|CLIENT FOLDER [PORT]`.

It imports nothing of ours but `link`, and reads work.npz of the folder (`emulated.work`). The server writes
played.json into it. A process ends with the one that started it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from flwr.client import NumPyClient, start_client
from flwr.common import FitIns, GetPropertiesIns, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import Server, ServerConfig, SimpleClientManager, start_server
from flwr.server.strategy import FedAvg
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.reality.link import HOST, Direction, open_links

JOIN_S = 120.0
MEASURED = ("round_s", "computed_s", "wire_bytes", "accuracies")


class Device(NumPyClient):  # type: ignore[misc]
    """A client, whose local work is plain SGD. `work` has the arrays of work.npz as tensors."""

    def __init__(self, folder: Path, client: int = 0) -> None:
        self.client = client
        with np.load(folder / "work.npz") as arrays:
            self.work = SimpleNamespace(**{name: torch.from_numpy(arrays[name]) for name in arrays.files})
        inputs, labels = self.work.features.shape[-1], int(self.work.num_labels)
        hidden = (len(self.work.initial) - labels) // (inputs + 1 + labels)
        self.module = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, labels))
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=float(self.work.learning_rate))

    def get_properties(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"client": self.client}

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        """Train the model as long as this device would, and report the seconds that it took."""
        began_s = time.perf_counter()
        self.load(parameters[0])
        times_as_slow, samples = float(self.work.times_as_slow[self.client]), self.work.labels.shape[1]
        rng = np.random.default_rng([config["seed"], config["round"], self.client])
        order = torch.from_numpy(np.stack([rng.permutation(samples) for _ in range(self.work.local_steps)]))
        for batch in order.view(-1, self.work.batch_size)[: self.work.local_steps]:
            time.sleep((times_as_slow - 1) * self.step(batch))
        trained = parameters_to_vector(self.module.parameters()).detach().numpy()
        return [trained], samples, {"client": self.client, "computed_s": time.perf_counter() - began_s}

    def load(self, model: Any) -> None:
        vector_to_parameters(torch.tensor(model), self.module.parameters())

    def step(self, batch: Tensor) -> float:
        """Take a step on some of the samples; returns the CPU seconds of this thread."""
        began_s = time.thread_time()
        self.optimizer.zero_grad()
        logits = self.module(self.work.features[self.client, batch])
        torch.autograd.backward(nn.functional.cross_entropy(logits, self.work.labels[self.client, batch]))
        self.optimizer.step()
        return time.thread_time() - began_s

    def accuracy(self, model: Any) -> float:
        """The share of all clients' test samples that a model (P,) predicts correctly."""
        self.load(model)
        predicted = self.module(self.work.tests).argmax(dim=-1)
        return float((predicted == self.work.test_labels).double().mean())


class Planned(FedAvg):  # type: ignore[misc]
    """FedAvg over the participants of a log, once for each batch seed; it times every round."""

    def __init__(self, device: Device, folder: Path, port: int) -> None:
        super().__init__(fraction_evaluate=0.0)
        self.device, self.work, self.folder, self.port = device, device.work, folder, port
        self.links = [(Direction(down, s), Direction(up, s)) for down, up, s in self.work.links.tolist()]
        self.first = ndarrays_to_parameters([self.work.initial.numpy()])
        self.played: dict[str, list[Any]] = {name: [] for name in MEASURED}

    def initialize_parameters(self, client_manager: Any) -> Any:
        """Start the clients, once the server listens, and learn which is which."""
        for client, port in enumerate(open_links(self.links, self.port)):
            command = [*sys.orig_argv[:3], str(client), str(self.folder), str(port)]
            with (self.folder / f"client-{client}.log").open("wb") as log:
                subprocess.Popen(command, stdout=log, stderr=log)
        if not client_manager.wait_for(len(self.links), JOIN_S):
            raise TimeoutError(f"{client_manager.num_available()} of {len(self.links)} clients joined")
        proxies, asked = client_manager.all().values(), GetPropertiesIns({})
        self.proxies = {item.get_properties(asked, JOIN_S, 0).properties["client"]: item for item in proxies}
        return self.first

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[Any]:
        participants = self.work.participants
        seed, round_ = divmod(server_round - 1, len(participants))
        config = {"seed": int(self.work.batch_seeds[seed]), "round": round_}
        instruction = FitIns(parameters if round_ else self.first, config)
        self.sent_s = time.monotonic()
        return [(self.proxies[client], instruction) for client in participants[round_].tolist()]

    def aggregate_fit(self, server_round: int, results: list[Any], failures: list[Any]) -> Any:
        self.played["round_s"].append(time.monotonic() - self.sent_s)
        if failures:
            raise RuntimeError(f"{len(failures)} clients did not answer in round {server_round}")
        metrics = sorted((answer.metrics["client"], answer.metrics["computed_s"]) for _, answer in results)
        self.played["computed_s"].append([computed_s for _, computed_s in metrics])
        self.played["wire_bytes"].append(sum(way.passed_bytes for link in self.links for way in link))
        averaged, _ = super().aggregate_fit(server_round, results, failures)
        if server_round % len(self.work.participants) == 0:
            self.played["accuracies"].append(self.device.accuracy(parameters_to_ndarrays(averaged)[0]))
        return averaged, {}


def serve(device: Device, folder: Path) -> dict[str, Any]:
    """Play all rounds; returns what was measured in each, accuracies at the end, and versions."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    strategy = Planned(device, folder, port)
    server = Server(client_manager=SimpleClientManager(), strategy=strategy)
    rounds, participants = device.work.participants.shape
    server.set_max_workers(participants)
    config = ServerConfig(num_rounds=rounds * len(device.work.batch_seeds))
    start_server(server_address=f"{HOST}:{port}", server=server, config=config)
    return strategy.played | {"versions": {name: version(name) for name in ("flwr", "grpcio")}}


def end_by_failure(*failure: Any) -> None:
    """End at once; threads of gRPC would keep a failed process alive."""
    sys.__excepthook__(*failure)
    os._exit(1)


def end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main(role: str, folder: Path, *port: str) -> None:
    sys.excepthook = end_by_failure
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    if port:
        client = Device(folder, int(role)).to_client()
        start_client(server_address=f"{HOST}:{port[0]}", client=client, insecure=True)
    else:
        (folder / "played.json").write_text(json.dumps(serve(Device(folder), folder)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
