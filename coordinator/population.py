"""What a configuration says of the clients of all methods: who reports, and the faults that befall them.

Without the federation, which a configuration is read before; `federation/faults.py` draws the faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from emulator.counts import exact
from emulator.numbers import PositiveFactor, Share, ShareBelowOne
from emulator.plugins import Settings, alone_is_a_list

Hear = Literal["online", "everyone", "check_in"]
"""The clients with new data that report: those online as a round opens, all, or all when next online."""

Kind = Literal["sign_flip", "noise", "label_flip", "misreport"]
SCALED: Sequence[Kind] = ("sign_flip", "noise")


class Byzantine(Settings):
    """Clients that deviate from the protocol, all in the same way."""

    kind: Kind = Field(
        description="sign_flip: sends -scale x its update; noise: adds noise with scale x the update's norm; "
        "label_flip: trains on label L - 1 - y; misreport: permutes the numbers of its reports",
    )
    share: Share = Field(description="share of all clients, drawn once per seed; 0: nobody")
    scale: PositiveFactor = Field(1.0, description="factor of sign_flip and noise")

    @model_validator(mode="after")
    def _scale_is_used(self) -> Byzantine:
        if self.kind not in SCALED and self.scale != 1:
            raise ValueError(f"{self.kind} has no scale; only {' and '.join(SCALED)} have")
        return self


class FaultSettings(Settings):
    """The faults of a population, the same in all arms."""

    crash: Share = Field(0.0, description="probability that a client crashes during its visit")
    corrupt: Share = Field(0.0, description="probability that an update arrives corrupted")
    corruption: Literal["nan", "bits"] = Field(
        "nan", description="some numbers of a corrupted update become NaN, or have a bit flipped"
    )
    loss: ShareBelowOne = Field(0.0, description="share of packets lost on every link; they are resent")
    byzantine: Annotated[tuple[Byzantine, ...], BeforeValidator(alone_is_a_list)] = Field(
        (), description="a table, or a list of tables; no client is in two of them"
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> FaultSettings:
        total = sum(exact(table.share) for table in self.byzantine)
        if total > 1:
            raise ValueError(
                f"the shares of byzantine clients sum to {float(total):g}; they must not exceed 1"
            )
        return self
