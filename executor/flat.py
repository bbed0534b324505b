"""A model as one flat parameter vector, which is how all other code sees it.

Owns the order of the parameters in the vector, their initial values and the check that a module can be
trained in this form. Knows nothing of clients, tasks or local rules.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.ports import Segment
from emulator.seeding import RandomStreams
from executor.models.base import ModelSpec
from executor.models.masked import FeatureMask

MOST_PARAMETERS = 2**30
"""The largest model: 4 GiB of parameters, several copies of which a run holds."""

NORMALISATIONS = (nn.GroupNorm, nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class FlatModel:
    """A model whose parameters are passed in as a vector (P,), in the order of `named_parameters()`.

    Raises ConfigurationError for a module with buffers, which an update does not carry; with dropout, which
    would draw from torch's global generator; or with more than `MOST_PARAMETERS` parameters.
    """

    def __init__(self, spec: ModelSpec, sample_shape: tuple[int, ...], num_labels: int) -> None:
        # On the meta device nothing is drawn, so torch's global generator is not read.
        with torch.device("meta"):
            self._skeleton = spec.build(sample_shape, num_labels)
        _refuse_buffers_and_dropout(self._skeleton)
        self.num_labels = num_labels
        self._modules = _Modules(self._skeleton)
        self.layout = _layout(self._skeleton)
        self._sizes = [segment.last - segment.first for segment in self.layout.values()]
        self.num_parameters = sum(self._sizes)
        if self.num_parameters > MOST_PARAMETERS:
            raise ConfigurationError(
                f"the model has {self.num_parameters:,} parameters; a model has at most {MOST_PARAMETERS:,}"
            )
        self.frozen = _frozen(self.layout)  # (P,) True where training never moves a parameter; None: nowhere

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of `flat` (..., P), one per parameter: (..., *shape)."""
        parts = torch.split_with_sizes(flat, self._sizes, dim=-1)
        leading = flat.shape[:-1]
        return {
            name: part.view(*leading, *segment.shape)
            for (name, segment), part in zip(self.layout.items(), parts, strict=True)
        }

    def logits(self, named: dict[str, Tensor], features: Tensor, serving: bool = False) -> Tensor:
        """(n, num_labels) the logits for `features` (n, *sample_shape), with the parameters `named`.

        `serving`: in torch's evaluation mode, as when the trained model serves clients.
        """
        with self.bound(named, serving) as module:
            logits: Tensor = module(features)
        return logits

    @contextmanager
    def bound(self, named: dict[str, Tensor], serving: bool = False) -> Iterator[nn.Module]:
        """Context with a module of this thread whose parameters are `named`; `serving`: see `logits`.

        For many calls with the same parameters. No tensor is kept after the context.
        """
        module, places = self._modules.serving if serving else self._modules.training
        before = [members[name] for members, name, _ in places]
        try:
            for members, name, key in places:
                members[name] = named[key]
            yield module
        finally:
            for (members, name, _), tensor in zip(places, before, strict=True):
                members[name] = tensor

    def embed(self, named: dict[str, Tensor], features: Tensor) -> Tensor:
        """(n, embedding_size) the input of the last linear layer, in torch's evaluation mode.

        Arguments are those of `logits`. Where the layer is applied at several positions, such as the tokens
        of a sequence, it is the mean over them. Raises ConfigurationError as `embedding_size` does.
        """
        embedded: list[Tensor] = []
        name, size = self._last_linear
        with self.bound(named, serving=True) as module:
            layer = module.get_submodule(name)
            hook = layer.register_forward_pre_hook(lambda module, inputs: embedded.append(inputs[0]))
            try:
                module(features)
            finally:
                hook.remove()
        return embedded[-1].reshape(len(features), -1, size).mean(1)

    @property
    def embedding_size(self) -> int:
        """The number of inputs of the last linear layer.

        Raises ConfigurationError if the model has no linear layer.
        """
        return self._last_linear[1]

    @cached_property
    def _last_linear(self) -> tuple[str, int]:
        """The name and the number of inputs of the model's last linear layer."""
        layers = [
            (name, layer) for name, layer in self._skeleton.named_modules() if isinstance(layer, nn.Linear)
        ]
        if not layers:
            raise ConfigurationError(
                "the model has no linear layer, whose inputs are the embedding; choose another "
                "reference.model or representation"
            )
        name, layer = layers[-1]
        return name, layer.in_features

    def module(self) -> nn.Module:
        """A new ordinary module on the CPU, with uninitialised parameters."""
        return copy.deepcopy(self._skeleton).to_empty(device="cpu")

    def initial(self, streams: RandomStreams, number: int) -> Floats32:
        """(P,) the number-th initialisation: torch's default rule, drawn from the stream ("init", number).

        Weights and biases of linear and convolutional layers are uniform on +-1 / sqrt(fan-in); a
        normalisation or a feature mask starts as the identity. Raises ConfigurationError for a parameter in
        any other kind of layer.
        """
        rng = streams.generator("init", number)
        values = {}
        for prefix, layer in self._skeleton.named_modules():
            for name, parameter in layer.named_parameters(prefix, recurse=False):
                values[name] = _initial(layer, name, parameter, rng)
        return np.concatenate([values[name].ravel() for name in self.layout]).astype(np.float32)


Places = list[tuple[dict[str, Any], str, str]]


class _Modules(threading.local):
    """One copy of the modules per thread that binds them, with their places: `bound` swaps their tensors."""

    def __init__(self, skeleton: nn.Module) -> None:
        self._skeleton = skeleton

    @cached_property
    def training(self) -> tuple[nn.Module, Places]:
        module = copy.deepcopy(self._skeleton)
        return module, _places(module)

    @cached_property
    def serving(self) -> tuple[nn.Module, Places]:
        module = copy.deepcopy(self._skeleton).eval()
        return module, _places(module)


def _places(module: nn.Module) -> Places:
    """Each place of a parameter or buffer: the dict it is in, its name there, and its key in `named`.

    A tensor that several layers share has several places and one key, the first name of the tensor.
    """
    keys = {id(tensor): key for key, tensor in (*module.named_parameters(), *module.named_buffers())}
    return [
        (members, name, keys[id(tensor)])
        for owner in module.modules()
        for members in (owner._parameters, owner._buffers)
        for name, tensor in members.items()
        if tensor is not None
    ]


def _layout(module: nn.Module) -> Mapping[str, Segment]:
    layout: dict[str, Segment] = {}
    first = 0
    for name, parameter in module.named_parameters():
        last = first + parameter.numel()
        layout[name] = Segment(first, last, tuple(parameter.shape), parameter.requires_grad)
        first = last
    return layout


def _frozen(layout: Mapping[str, Segment]) -> Tensor | None:
    if all(segment.trainable for segment in layout.values()):
        return None
    return torch.cat(
        [torch.full((segment.last - segment.first,), not segment.trainable) for segment in layout.values()]
    )


def _initial(layer: nn.Module, name: str, parameter: Tensor, rng: np.random.Generator) -> Floats:
    shape = tuple(parameter.shape)
    if isinstance(layer, AFFINE):
        bound = 1 / sqrt(prod(layer.weight.shape[1:]))
        return rng.uniform(-bound, bound, shape)
    if isinstance(layer, NORMALISATIONS):
        return np.ones(shape) if name.endswith("weight") else np.zeros(shape)
    if isinstance(layer, FeatureMask):
        return np.ones(shape)
    raise ConfigurationError(
        f"the model's parameter {name!r} is in a {type(layer).__name__}, which has no initialisation here; "
        f"choices: {', '.join(kind.__name__ for kind in (*AFFINE, *NORMALISATIONS, FeatureMask))}"
    )


def _refuse_buffers_and_dropout(module: nn.Module) -> None:
    buffers = [name for name, _ in module.named_buffers()]
    if buffers:
        raise ConfigurationError(
            f"the model has the buffer {buffers[0]!r}, which is not a parameter, so an update would not "
            "carry it; instead of BatchNorm use GroupNorm"
        )
    for name, layer in module.named_modules():
        if isinstance(layer, _DropoutNd) and layer.p > 0:
            raise ConfigurationError(
                f"the model has the dropout layer {name!r} with p = {layer.p}, which draws from torch's "
                "global generator; leave it out"
            )
