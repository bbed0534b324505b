"""How local training is carried out; a module of its own, so that a configuration is read without torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from emulator.numbers import Count, Number
from emulator.plugins import Parameters

MOST_THREADS = MOST_WORKERS = 1024


class ExecutorParameters(Parameters):
    """It changes the speed, and results by rounding only."""

    strategy: Literal["auto", "stacked", "dense", "loop"] = Field(
        "auto",
        description="`stacked` and `dense` train many clients in one batched step, `dense` with gradients "
        "written by hand, for fully connected models; `loop` trains one after the other; `auto` takes what "
        "suits the model",
    )
    chunk: Count | None = Field(
        None,
        description="clients that are stacked together, at most; left out, it is 25, or fewer, 8 at least, "
        "for models of more than 10,000 parameters, so that all that is stacked stays near the processor. "
        "`loop` stacks none",
    )
    threads: Annotated[int, Number(ge=1, le=MOST_THREADS)] = Field(
        1,
        description="threads side by side, each of which trains a cohort of its own or scores a batch; torch "
        "itself computes with one thread, so that their number changes no bit of a result. One per core is "
        "fastest, where nothing else runs",
    )
    workers: Annotated[int, Number(ge=0, le=MOST_WORKERS)] = Field(
        0,
        description="processes of their own on this machine that train and score, each with so many "
        "`threads`, or 0: all is done in one. Their number changes no bit of a result. `--workers` sets it; "
        "under torchrun there is an executor for each rank but the first",
    )
    worker_timeout_s: Annotated[float, Number(ge=1, le=1e6)] = Field(
        600.0,
        description="wall seconds after which a worker that does not answer is given up, and replaced; more "
        "than the longest job takes",
    )
    backend: Literal["gloo", "nccl"] = Field(
        "gloo",
        description="what messages to workers and ranks travel by. `nccl` is refused: it moves tensors "
        "between GPUs, and executors compute on processors",
    )
    on_out_of_memory: Literal["stop", "halve"] = Field(
        "stop",
        description="what happens when a cohort does not fit into the memory: the run stops and can go on "
        "later, or the cohort is trained in two halves, which changes results by rounding",
    )

    @field_validator("backend")
    @classmethod
    def _computes_on_processors(cls, backend: str) -> str:
        if backend == "nccl":
            raise ValueError('"nccl" is for tensors on GPUs, and executors compute on processors; use "gloo"')
        return backend
