"""Local training and evaluation as usually written in torch: the baseline of the bench.

One client after the other: an ordinary module, `torch.optim.SGD`, `loss.backward()`. From
`executor` it takes the model's recipe and the choice of each batch's samples, so that it trains the same
models on the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import TrainTasks
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.models.base import ModelSpec
from executor.models.cnn import ChannelsLast
from executor.parallel import one_thread
from executor.settings import Batches
from executor.training.batches import step_counts, task_batches


@dataclass(frozen=True)
class _Client:
    """One client's samples, and for each step the positions of its batch among them."""

    features: Tensor
    labels: Tensor
    batches: list[Tensor]
    learning_rate: float


class PlainLoop:
    """Trains tasks one by one, on one thread.

    `load` reads the samples of a wave of tasks into memory and draws its batches, so that the time of `train`
    is that of training alone.
    """

    def __init__(
        self,
        reader: SampleReader,
        model: ModelSpec,
        streams: RandomStreams,
        batches: Batches = "reshuffled",
    ) -> None:
        self._reader = reader
        self._streams = streams
        self._batches = batches
        # The values that torch draws here are overwritten before they are used.
        with torch.random.fork_rng(devices=()):
            module = model.build(reader.sample_shape, reader.num_labels)
        self._module = _as_usual(module, reader.sample_shape)
        self._clients: list[_Client] = []

    def load(self, tasks: TrainTasks) -> None:
        """Read the samples of every task and draw its batches, which are those of the executor."""
        steps = step_counts(tasks)
        self._clients = [self._ready(tasks, task, steps[[task]]) for task in range(len(tasks))]

    def train(self, start: Floats32) -> tuple[Floats32, Floats]:
        """(n, P) the update of each loaded task, all from the same `start` (P,), and (n,) its mean loss."""
        before = torch.from_numpy(start)
        state = self._state(before)
        updates = np.zeros((len(self._clients), len(start)), dtype=np.float32)
        losses = np.zeros(len(self._clients))
        with one_thread():
            for task, client in enumerate(self._clients):
                self._module.load_state_dict(state)
                losses[task] = _train_one(self._module, client)
                after = parameters_to_vector(self._module.parameters()).detach()
                updates[task] = (after - before).numpy()
        return updates, losses

    def evaluate(self, models: Floats32, serves: Ints) -> tuple[Floats, Floats]:
        """(n,) the accuracy and mean loss of the client of each loaded task, on all its samples.

        A client is served by its row of `models` (M, P), of which `serves` (n,) has the numbers.
        """
        results = np.zeros((2, len(serves)))
        self._module.eval()
        with one_thread(), torch.inference_mode():
            for model in np.unique(serves):
                self._module.load_state_dict(self._state(torch.from_numpy(models[model])))
                for task in np.flatnonzero(serves == model):
                    client = self._clients[task]
                    logits = self._module(client.features)
                    hits = (logits.argmax(dim=1) == client.labels).float().mean()
                    results[:, task] = hits.item(), nn.functional.cross_entropy(logits, client.labels).item()
        return results[0], results[1]

    def _ready(self, tasks: TrainTasks, task: int, steps: Ints) -> _Client:
        rows = tasks.samples.rows(task)
        drawn = task_batches(tasks, np.array([task]), steps, self._streams, self._batches)
        batches = drawn[:, 0]  # (steps, batch size)
        position = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        return _Client(
            torch.from_numpy(self._reader.features(rows)),
            torch.from_numpy(self._reader.labels(rows)),
            [torch.from_numpy(position[batch]) for batch in batches],
            float(tasks.settings["learning_rate"][task]),
        )

    def _state(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters `flat` (P,) as a state dict of the module."""
        named = list(self._module.named_parameters())
        parts = torch.split_with_sizes(flat, [parameter.numel() for _, parameter in named])
        return {name: part.view_as(old) for (name, old), part in zip(named, parts, strict=True)}


def _as_usual(module: nn.Module, sample_shape: tuple[int, ...]) -> nn.Module:
    """A convolutional network as usually written, channels first and ReLU before pooling.

    The parameters, their order and the function stay the same; other networks are returned as they are.
    """
    if not isinstance(module, nn.Sequential) or not isinstance(module[0], ChannelsLast):
        return module
    layers: list[nn.Module] = [nn.Unflatten(1, (1, sample_shape[0]))] if len(sample_shape) == 2 else []
    for layer in list(module)[1:]:
        if isinstance(layer, nn.ReLU) and isinstance(layers[-1], nn.MaxPool2d):
            layers.insert(-1, layer)
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


def _train_one(module: nn.Module, client: _Client) -> float:
    """Train `module` in place; returns the mean loss over the batches, each taken before its step."""
    module.train()
    optimiser = torch.optim.SGD(module.parameters(), lr=client.learning_rate)
    cross_entropy = nn.CrossEntropyLoss()
    total = 0.0
    for batch in client.batches:
        optimiser.zero_grad()
        loss = cross_entropy(module(client.features[batch]), client.labels[batch])
        loss.backward()
        optimiser.step()
        total += loss.item()
    return total / len(client.batches) if client.batches else float("nan")
