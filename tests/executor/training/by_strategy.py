"""What one strategy makes of unequal tasks, to be compared with another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from emulator.arrays import Floats
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.models.base import ModelSpec
from executor.objectives.base import Objective
from executor.objectives.labels import LABELS
from executor.probing import probed
from executor.rules.base import LocalRule, build_chain
from executor.training.groups import Strategy, Wave
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from tests.executor.fakes import FakeReader, wave

STREAMS = RandomStreams(3)
UNEQUAL = wave(counts=[9, 3, 0, 12, 7, 1], steps=[4, 1, 5, 6, 4, 0], batch_size=[4, 4, 4, 4, 3, 3])


def trained(
    kind: type[ReferenceLoop | StackedStrategy],
    spec: ModelSpec,
    reader: FakeReader,
    rules: Sequence[LocalRule],
    chunk: int,
    tasks: TrainTasks = UNEQUAL,
    dtype: torch.dtype = torch.float64,
    objective: Objective = LABELS,
) -> Floats:
    """(n, P) the models that tasks make, each of an initialisation of its own."""
    model = FlatModel(
        spec,
        reader.sample_shape,
        objective.num_outputs(reader),
        STREAMS,
        integers=reader.tokens is not None,
        objective=objective,
    )
    chain = build_chain(rules, model.layout)
    strategy: Strategy = kind(model, chain)
    starts = np.stack([model.initial(STREAMS, number) for number in range(len(tasks))])
    known = probed(model, STREAMS)
    everyone = np.arange(len(tasks))
    how = {"chain": chain, "draws": known.draws, "objective": objective}
    waves = Wave(tasks, starts, everyone, reader, STREAMS, dtype, **how)
    made = np.zeros(starts.shape)
    for members in waves.cut(chunk):
        made[members] = strategy.train(waves.group(members)).parameters.numpy()
    return made
