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
    chunk: int = Field(50, ge=1, description="clients that are stacked together")
    threads: int = Field(1, ge=1, description="torch's threads, of the whole process")
