"""Models that see, beside each sample, what its client holds of each label."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from emulator.errors import ConfigurationError
from executor.models.base import ModelSpec
from executor.models.settings import ContextSettings, MixtureSettings


class Context(ModelSpec):
    """Another model that takes each sample, and the context of its client, as one vector.

    The context tells how the means of the client's own training samples, of all and of each label, differ
    from those of all clients, in `size` numbers (`coordinator.adaptations.context`). So one model is another
    function for each client. An arm with this model has its samples read with the context behind them.

    Four features, a context of 2 and three labels around `linear`: 3 x 6 weights and 3 biases.

    Source: ours.

    >>> model = Context(Context.Settings(inner="linear", size=2)).build((6,), num_outputs=3)
    >>> [parameter.numel() for parameter in model.parameters()]
    [18, 3]
    """

    Settings = ContextSettings

    def __init__(self, settings: ContextSettings) -> None:
        super().__init__(settings)
        self._inner = _dense(settings, "context")
        self.stacks, self.dense = self._inner.stacks, True

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        return self._inner.build(sample_shape, num_outputs)


class Mixture(ModelSpec):
    """A mixture of experts, which are models of the sample; the context of its client weighs their logits.

    Soft clusters: the weights are a softmax of a linear map of the context, which is that of `context`, and
    all experts and the gate are one vector of parameters, trained and sent as a whole.

    Four features, a context of 2, three labels and two experts around `linear`: the gate has 2 x 2 weights
    and 2 biases, each expert 3 x 4 and 3.

    Source: Jacobs, Jordan, Nowlan and Hinton 1991, with the means of logits for those of outputs.

    >>> model = Mixture(Mixture.Settings(inner="linear", size=2, experts=2)).build((6,), num_outputs=3)
    >>> [parameter.numel() for parameter in model.parameters()]
    [4, 2, 12, 3, 12, 3]
    """

    Settings = MixtureSettings

    stacks = True

    def __init__(self, settings: MixtureSettings) -> None:
        super().__init__(settings)
        self._inner = _dense(settings, "mixture")

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        size, features = self.settings.size, prod(sample_shape) - self.settings.size
        if features < 1:
            raise ConfigurationError(
                f"mixture: the last size = {size} numbers of a sample are its context, and samples of shape "
                f"{sample_shape} have no others; lower size"
            )
        experts = [self._inner.build((features,), num_outputs) for _ in range(self.settings.experts)]
        return Experts(nn.Linear(size, len(experts)), experts)


class Experts(nn.Module):
    """The mean of the logits of `experts`, weighed by the `gate`: a softmax of a map of the context."""

    def __init__(self, gate: nn.Linear, experts: list[nn.Module]) -> None:
        super().__init__()
        self.gate = gate
        self.experts = nn.ModuleList(experts)

    def forward(self, features: Tensor) -> Tensor:
        size, features = self.gate.in_features, features.flatten(1)
        weights = torch.softmax(self.gate(features[:, -size:]), dim=1)
        logits = torch.stack([expert(features[:, :-size]) for expert in self.experts], dim=2)
        mean: Tensor = (logits * weights[:, None]).sum(dim=2)
        return mean


def _dense(settings: ContextSettings, kind: str) -> ModelSpec:
    """The model inside; ConfigurationError if it takes no vector."""
    inner: ModelSpec = settings.inner.build()
    if not inner.dense:
        raise ConfigurationError(
            f"model {kind!r}: inner = {settings.inner.kind!r} takes samples of their own shape, and no "
            f"context beside them; choices: 'linear', 'mlp'"
        )
    return inner
