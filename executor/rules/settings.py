"""Settings of our local rules, without torch: a mistake in them is reported before torch is imported."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from emulator.numbers import Factor, InnerShare, LocalEpochs, PositiveFactor, Share, ShareBelowOne
from emulator.plugins import Settings


class AdamSettings(Settings):
    """Settings of `adam`."""

    beta1: ShareBelowOne = Field(0.9, description="share of the mean gradient that is kept")
    beta2: ShareBelowOne = Field(0.999, description="share of the mean squared gradient that is kept")
    epsilon: PositiveFactor = Field(1e-8, description="added to the root, so that nothing is divided by 0")
    weight_decay: Factor = Field(0.0, description="times the parameters, added to the gradient")
    amsgrad: bool = Field(
        False, description="divide by the largest mean squared gradient so far", examples=[True]
    )
    keep: Literal["task", "step"] = Field(
        "step",
        description="`step`: moments live on from task to task until the client's data changes; `task`: "
        "they start anew in each task",
    )


class AsoMemorySettings(Settings):
    """Settings of `aso_memory`."""

    beta: ShareBelowOne = Field(0.001, description="share of the decayed mean of gradients that is kept")


class ClipSettings(Settings):
    """Settings of `clip`."""

    norm: PositiveFactor = Field(10.0, description="largest norm of a gradient", examples=[1.0])


class FedProxSettings(Settings):
    """Settings of `fedprox`."""

    mu: Factor = Field(0.1, description="strength of the pull")
    fedscale_sign: bool = Field(False, description="push away instead, as FedScale does: for parity only")


class FedDynSettings(Settings):
    """Settings of `feddyn`."""

    alpha: PositiveFactor = Field(
        0.01, description="strength of the pull; the aggregator `feddyn` must have the same"
    )
    weights: Literal["alike", "samples"] = Field(
        "alike", description="clients count alike (the paper), or by their samples (the authors' code)"
    )
    clip: PositiveFactor | None = Field(
        None, description="largest norm of a gradient, without alpha w; without it, any", examples=[10.0]
    )


class FedDCSettings(Settings):
    """Settings of `feddc`."""

    alpha: Factor = Field(0.1, description="strength of the pull towards the received model less the drift")
    clip: PositiveFactor | None = Field(
        10.0, description="largest norm of a corrected gradient; without it, any", examples=[1.0]
    )


class SgdSettings(Settings):
    """Settings of `sgd`."""

    momentum: ShareBelowOne = Field(0.0, description="share of the last step that is kept", examples=[0.9])
    weight_decay: Factor = Field(0.0, description="times the parameters, added to the gradient")


class DittoSettings(Settings):
    """Settings of `ditto`."""

    pull: Factor = Field(
        0.1,
        description="lambda: how strongly a client's own model is pulled towards the one that it receives; "
        "0: it trains alone",
    )
    learning_rate: Factor | None = Field(
        None, description="of the own model; that of the task, if omitted", examples=[0.05]
    )


class ApflSettings(Settings):
    """Settings of `apfl`."""

    alpha: Share = Field(
        0.5,
        description="weight of a client's own model in the mixture that it uses: 1 is training alone, 0 is "
        "the federated model",
    )
    adaptive: bool = Field(
        False, description="each client moves its alpha along the gradient, and keeps it", examples=[True]
    )
    mix: Literal["parameters", "outputs"] = Field(
        "parameters", description="what is mixed: parameters (the paper), or logits (the authors' code)"
    )


class EarlyStoppingSettings(Settings):
    """Settings of `early_stopping`."""

    gamma: PositiveFactor = Field(
        0.03,
        description="a client stops after epoch e if the loss of its held-out samples fell by less than "
        "gamma / e in it",
    )
    epochs: LocalEpochs | None = Field(
        None,
        description="most epochs of a task, whatever training says; training.local_epochs, if omitted",
        examples=[8],
    )
    held_out: InnerShare = Field(
        0.3, description="share of a client's samples that it never trains on, and that decide"
    )
    loss: Literal["mean", "sum"] = Field(
        "mean", description="over the held-out samples; with a sum, what gamma means depends on their number"
    )
    first: Literal["measured", "infinite"] = Field(
        "measured",
        description="loss before the first epoch: that of the received model, which costs predictions, or "
        "infinite, so that a client takes at least two epochs",
        examples=["infinite"],
    )


class PersonalLayersSettings(Settings):
    """Settings of `personal_layers`."""

    keep: Literal["head", "body"] | Annotated[list[str], Field(min_length=1)] = Field(
        "head",
        description="what stays with the client: `head`, the last layer (FedPer), `body`, all before it "
        "(LG-FedAvg), or a list of tensors",
        examples=["body"],
    )
    alternate: bool = Field(
        False,
        description="train the head first, then the body (FedRep)",
        examples=[True],
    )
    head_steps: Share = Field(0.5, description="share of the steps that trains the head, with `alternate`")

    @model_validator(mode="after")
    def _alternates_layers(self) -> Self:
        if self.alternate and isinstance(self.keep, list):
            raise ValueError("alternate = true: needs keep = 'head' or 'body', not a list of tensors")
        if not self.alternate and self.head_steps != type(self).model_fields["head_steps"].default:
            raise ValueError(f"head_steps = {self.head_steps}: needs alternate = true")
        return self
