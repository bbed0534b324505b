"""How local training is carried out; a module of its own, so that a configuration is read without torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.plugins import Parameters


class ExecutorParameters(Parameters):
    """It changes the speed, and results by rounding only."""

    strategy: Literal["auto", "stacked", "dense", "loop"] = Field(
        "auto",
        description="`stacked` and `dense` train many clients in one batched step, `dense` with gradients "
        "written by hand, for fully connected models; `loop` trains one after the other; `auto` takes what "
        "suits the model",
    )
    chunk: int | None = Field(
        None,
        ge=1,
        description="clients that are stacked together, at most; left out, it is 25, or fewer, 8 at least, "
        "for models of more than 10,000 parameters, so that all that is stacked stays near the processor. "
        "`loop` stacks none",
    )
    threads: int = Field(
        1,
        ge=1,
        description="threads side by side, each of which trains a cohort of its own or scores a batch; torch "
        "itself computes with one thread, so that their number changes no bit of a result. One per core is "
        "fastest, where nothing else runs",
    )
