"""Tasks, ranges and plans as few arrays: in a short message each array costs more than what is in it."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from emulator.messages import InferencePlan, SampleRanges, TrainTasks
from emulator.state_tree import Tree


def packed_ranges(samples: SampleRanges) -> Tree:
    """Weights that are all 1 are left out."""
    weight = None if (samples.weight == 1).all() else samples.weight
    spans = np.stack([samples.first, samples.last])
    return {
        "offsets": samples.offsets,
        "spans": spans,
        "weight": weight,
        "bootstrap": bool(samples.bootstrap),
    }


def unpacked_ranges(tree: Tree) -> SampleRanges:
    first, last = tree["spans"]
    weight = np.ones(len(first)) if tree["weight"] is None else tree["weight"]
    return SampleRanges(tree["offsets"], first, last, weight, tree["bootstrap"])


def packed_tasks(tasks: TrainTasks, start: Ints) -> Tree:
    """With the row of the models that each task starts from."""
    return {
        "ids": np.stack([tasks.client, tasks.model, tasks.version, tasks.visit, start]).astype(np.int64),
        "samples": packed_ranges(tasks.samples),
        "names": list(tasks.settings),
        "settings": np.stack([np.asarray(column, np.float64) for column in tasks.settings.values()]),
        "round": int(tasks.round),
        "step": int(tasks.step),
        "state": dict(tasks.state),
        "tampering": dict(tasks.tampering),
    }


def unpacked_tasks(tree: Tree) -> tuple[TrainTasks, Ints]:
    client, model, version, visit, start = tree["ids"]
    settings = dict(zip(tree["names"], tree["settings"], strict=True))
    samples = unpacked_ranges(tree["samples"])
    tasks = TrainTasks(
        client,
        model,
        version,
        visit,
        samples,
        settings,
        tree["round"],
        tree["step"],
        tree["state"],
        tree["tampering"],
    )
    return tasks, start


def packed_plan(plan: InferencePlan) -> Tree:
    return {"models": plan.models, "weights": plan.weights, "combine": plan.combine}


def unpacked_plan(tree: Tree) -> InferencePlan:
    return InferencePlan(tree["models"], tree["weights"], tree["combine"])
