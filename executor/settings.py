"""Settings of local training; a module of its own, so that a configuration can be read without torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from emulator.numbers import Count, Number
from emulator.plugins import Settings

MOST_THREADS = 1024

Batches = Literal["reshuffled", "fixed"]
"""How the batches of local training are drawn; see `executor.training.batches.task_batches`."""

LAYERS = "lowbias32 of (key, epoch, step, call, element)"
"""How the numbers that a model draws as it trains follow from a key, as recorded in a run's manifest."""

BatchNorm = Literal["averaged", "kept"]
"""What becomes of batch norm: averaged over clients with everything else, or each client keeps its own."""


class ExecutorSettings(Settings):
    """How local training is carried out: affects the speed, and results by rounding only."""

    strategy: Literal["auto", "stacked", "dense", "loop"] = Field(
        "auto",
        description="`stacked` and `dense` train many clients in one batched step, `dense` fully connected "
        "models, with gradients written by hand; `loop` trains one after the other; `auto` takes "
        "what suits the model",
    )
    chunk: Count | None = Field(
        None,
        description="clients that are stacked together, at most; if omitted, 25, or down to 8 for models of "
        "more than 10,000 parameters. `loop` stacks none",
    )
    threads: Annotated[int, Number(ge=1, le=MOST_THREADS)] = Field(
        1,
        description="threads, each of which trains a task group or scores a batch; torch computes with one, "
        "so that their number changes no bit of a result. One per core is fastest, where nothing "
        "else runs",
    )
    worker_timeout_s: Annotated[float, Number(ge=1, le=1e6)] = Field(
        600.0,
        description="wall seconds after which a silent worker or rank is given up; more than the longest "
        "step of a run takes",
    )
    on_out_of_memory: Literal["stop", "halve"] = Field(
        "stop",
        description="when a task group does not fit into the memory: the run stops and can be resumed, or "
        "the group is trained in two halves, which changes results by rounding",
    )
