"""A model as one flat vector of numbers, which is how all other code sees it.

Owns the order of the tensors in the vector, their initial values and the module that computes with them.
Knows nothing of clients, tasks or local rules.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cached_property
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.own.code import name_of
from emulator.own.generators import lending
from emulator.own_parts import is_ours
from emulator.ports import SampleReader, Segment, num_statistics
from emulator.seeding import RandomStreams
from executor.models.base import ModelSpec
from executor.models.masked import FeatureMask
from executor.objectives.base import Objective, tokens_of
from executor.objectives.labels import LABELS, is_labels

MOST_PARAMETERS = 2**30
"""The largest model: 4 GiB of parameters, several copies of which a run holds."""

NORMALISATIONS = (nn.GroupNorm, nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)

Mode = Literal["training", "scoring", "serving"]
"""How a module computes: as it trains; as it is scored, in torch's evaluation mode; as it serves clients.

The last two differ for a `FeatureMask` alone, which may be ignored where a model serves.
"""

_BUILDING = threading.Lock()


class FlatModel:
    """A model whose numbers are passed in as a vector (P,): its Q parameters, then statistics of batch norm.

    Parameters are in the order of `named_parameters()`, each once, also if several layers share it. Frozen
    ones, whose `requires_grad` is False, and buffers are constants, which no vector has; but the mask of a
    `FeatureMask`, which a coordinator sets, is in it, and so are statistics.

    Attributes:
        layout: The tensors of the vector by name.
        num_parameters: P.
        num_statistics: P - Q, the running means and variances.
        constants: The tensors that no update carries, by name: those of initial model 0.
        base: How many numbers the frozen parameters have.
        counters: The counters of batches that batch norm has, and nothing reads, as they are built.
        entries: The tensor that each entry of the module's state dict is, by name; None: it is none of them.
        objective: What it is trained on, and scored by.
        dense: Whether the spec is, all of it is in the vector, and it is trained on `Labels`.
        integers: Whether samples are whole numbers, as token ids are.
        name: What errors call it.

    Raises:
        ConfigurationError: It has more than `MOST_PARAMETERS` parameters, or keeps tensors elsewhere than in
            parameters and buffers.
    """

    def __init__(
        self,
        spec: ModelSpec,
        sample_shape: tuple[int, ...],
        num_outputs: int,
        streams: RandomStreams | None = None,
        *,
        integers: bool = False,
        objective: Objective = LABELS,
    ) -> None:
        """`streams`: of what is drawn as constants are made; those of initial model 0."""
        self._spec = spec
        self.sample_shape = sample_shape
        self.num_outputs = num_outputs
        self.objective = objective
        self.integers = integers
        self.head: str | None = None  # the linear layer that computes last; None: the one that comes last
        self._start: Mapping[str, Tensor] = {}
        self.name = "the model" if is_ours(type(spec)) else f"model {name_of(spec)!r}"
        streams = streams or RandomStreams(0)
        if spec.has_values:
            module = self._made(streams, 0)
        else:  # on the meta device nothing is drawn, and nothing takes memory
            with torch.device("meta"):
                module = spec.build(sample_shape, num_outputs)
        self._refuse_kept_elsewhere(module)
        keys, entries = _keys(module), nn.Module.state_dict(module, keep_vars=True)
        self.entries = {name: keys.get(id(entry)) for name, entry in entries.items()}
        self.counters = _drop_counters(module)
        self.layout = _layout(module)
        self._sizes = [part.last - part.first for part in self.layout.values()]
        self.num_parameters = sum(self._sizes)
        self.num_statistics = num_statistics(self.layout)
        frozen = (part for name, part in module.named_parameters() if name not in self.layout)
        self.base = sum(part.numel() for part in frozen)
        whole = self.num_parameters + self.base
        if whole > MOST_PARAMETERS:
            raise ConfigurationError(
                f"{self.name} has {whole:,} parameters; a model has at most {MOST_PARAMETERS:,}"
            )
        self.dense = spec.dense and self.base == 0 and is_labels(objective)
        constants = set(_keys(module).values()) - self.layout.keys()
        held = {name: part.detach() for name, part in _tensors(module) if name in constants}
        self._skeleton = _without_values(module)
        self.constants = held if spec.has_values or not held else self._values(streams, 0, constants)
        self._modules = _Modules(self._skeleton)

    @cached_property
    def trainable(self) -> list[str]:
        """The names of the tensors that local steps move."""
        return [name for name, part in self.layout.items() if part.trainable]

    @cached_property
    def statistics(self) -> list[str]:
        """The names of the running means and variances."""
        return [name for name, part in self.layout.items() if part.kind == "statistics"]

    @cached_property
    def with_statistics(self) -> set[str]:
        """The names of the layers that have statistics."""
        return {name.rpartition(".")[0] for name in self.statistics}

    @cached_property
    def batch_norm(self) -> list[Segment]:
        """All tensors of these layers, their parameters too."""
        return [part for name, part in self.layout.items() if name.rpartition(".")[0] in self.with_statistics]

    def layers(self, *kinds: type[nn.Module]) -> list[str]:
        """The names of the layers of some kinds."""
        return [name for name, layer in self._skeleton.named_modules() if isinstance(layer, kinds)]

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of `flat`, one per tensor: (..., *shape); of (..., P) all, of (..., Q) the parameters."""
        sizes = self._sizes if flat.shape[-1] == self.num_parameters else self._sizes[: -len(self.statistics)]
        parts = torch.split_with_sizes(flat, sizes, dim=-1)
        leading = flat.shape[:-1]
        return {
            name: part.view(*leading, *segment.shape)
            for (name, segment), part in zip(self.layout.items(), parts, strict=not self.num_statistics)
        }

    def state_dict(self, parameters: Floats32) -> dict[str, Tensor]:
        """The state dict of the module with the numbers `parameters` (P,), as views where it can.

        Raises:
            ConfigurationError: It has other entries than parameters and buffers.
        """
        tensors = {**self.counters, **self.constants, **self.named(torch.from_numpy(parameters))}
        other = [name for name, key in self.entries.items() if key is None]
        if other:
            raise ConfigurationError(
                f"{self.name}: the entry {other[0]!r} of its state dict is neither a parameter nor a buffer"
            )
        return {name: tensors[key] for name, key in self.entries.items() if key is not None}

    def logits(self, named: dict[str, Tensor], features: Tensor, mode: Mode = "training") -> Tensor:
        """(n, *output_shape) the outputs for `features` (n, *sample_shape), with the tensors `named`."""
        with self.bound(named, mode) as module:
            logits: Tensor = module(features)
        return logits

    @contextmanager
    def bound(self, named: dict[str, Tensor], mode: Mode = "training") -> Iterator[nn.Module]:
        """Context with a module of this thread whose tensors are `named`.

        For many calls with the same tensors. No tensor is kept after the context. In training the module
        writes the statistics among them.
        """
        module, places = self._modules.of(mode)
        tensors = {**self._constants_like(named), **named} if self.constants else named
        before = [members[name] for members, name, _ in places]
        try:
            for members, name, key in places:
                members[name] = tensors[key]
            yield module
        finally:
            for (members, name, _), tensor in zip(places, before, strict=True):
                members[name] = tensor

    def _constants_like(self, named: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The constants, those of single precision in that of the tensors `named`."""
        dtype, single, constants = next(iter(named.values())).dtype, torch.float32, self.constants.items()
        return {key: tensor.to(dtype) if tensor.dtype == single else tensor for key, tensor in constants}

    def embed(self, named: dict[str, Tensor], features: Tensor) -> Tensor:
        """(n, embedding_size) the input of the last linear layer, in torch's evaluation mode.

        Arguments are those of `logits`. Where the layer is applied at several positions, such as the tokens
        of a sequence, it is the mean over them. Raises ConfigurationError as `embedding_size` does.
        """
        embedded: list[Tensor] = []
        name, size = self._last_linear
        with self.bound(named, "serving") as module:
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
            (name, layer)
            for name, layer in self._skeleton.named_modules()
            if isinstance(layer, nn.Linear) and self.head in (name, None)
        ]
        if not layers:
            raise ConfigurationError(
                "the model has no linear layer, whose inputs are the embedding; choose another "
                "reference.model or representation"
            )
        name, layer = layers[-1]
        return name, layer.in_features

    @cached_property
    def head_tensors(self) -> set[str]:
        """The tensors of the linear layer that computes last, by name; none if it is frozen, or missing."""
        return self._in_layer(self.head) if self.head else set()

    @cached_property
    def last_layer(self) -> set[str]:
        """These tensors, or else those of the last layer that is trained."""
        return self.head_tensors or self._in_layer(self.trainable[-1].rpartition(".")[0])

    def _in_layer(self, layer: str) -> set[str]:
        """The names of the tensors of a layer that are in the vector."""
        named = (key for name, key in self.entries.items() if name.rpartition(".")[0] == layer)
        return {key for key in named if key is not None and key in self.layout}

    def begin(self, values: Mapping[str, Tensor]) -> None:
        """Begin with the tensors `values`, by name, in place of those of initial model 0.

        They are also those of any other initial model, but for the last layer, which is drawn as ever: or all
        initial models were equal.
        """
        self._start = {name: values[name] for name in values if name in self.layout}
        self.constants = {name: values.get(name, held) for name, held in self.constants.items()}
        self.counters = {name: values.get(name, held) for name, held in self.counters.items()}

    def initial(self, streams: RandomStreams, number: int) -> Floats32:
        """(P,) the number-th initialisation, drawn from the stream ("init", number).

        Weights and biases of linear and convolutional layers are uniform on +-1 / sqrt(fan-in), torch's
        default rule; a normalisation or a feature mask starts as the identity. Parameters of other layers,
        and all of a spec that `has_values`, are those with which the module is built: torch's generator is
        seeded from the same stream for that, so that they depend on torch's version, too. What it was told
        to `begin` with comes first.
        """
        given = self._start.keys() - (set() if number == 0 else self.last_layer)
        values = {**self._start, **self._values(streams, number, self.layout.keys() - given)}
        return torch.cat([values[name].reshape(-1) for name in self.layout]).numpy()

    def _values(self, streams: RandomStreams, number: int, names: Set[str]) -> Mapping[str, Tensor]:
        """Some tensors of the number-th initialisation, by name, as they are drawn."""
        if not names:
            return {}
        known = {} if self._spec.has_values else self._by_rule(streams.generator("init", number))
        if not names <= known.keys():
            made = {name: part.detach() for name, part in _tensors(self._made(streams, number))}
            known = made | known
        return {name: known[name] for name in names}

    def _by_rule(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """The tensors of the layers that we know, with our initial values."""
        shapes = {name: self.layout[name].shape for name in self.statistics}
        known: dict[str, Floats] = {
            name: np.full(shape, float(name.endswith("var"))) for name, shape in shapes.items()
        }
        for prefix, layer in self._skeleton.named_modules():
            for name, parameter in layer.named_parameters(prefix, recurse=False):
                if isinstance(layer, (*AFFINE, *NORMALISATIONS, FeatureMask)):
                    known[name] = _initial(layer, name, parameter, rng)
        return {name: torch.from_numpy(values.astype(np.float32)) for name, values in known.items()}

    def _made(self, streams: RandomStreams, number: int) -> nn.Module:
        """The module as it is built for an initialisation, with values, on the CPU.

        NOTE: the one place where a global generator is seeded, since torch's layers draw from no other. It is
        put back behind, and one thread at a time does it.
        """
        seed, generator = int(streams.generator("init", number).integers(2**62)), torch.default_generator
        with _BUILDING, lending("torch"):
            before = generator.get_state()
            try:
                generator.manual_seed(seed)
                return self._spec.build(self.sample_shape, self.num_outputs)
            finally:
                generator.set_state(before)

    def _refuse_kept_elsewhere(self, module: nn.Module) -> None:
        """ConfigurationError for tensors that no vector can have."""
        if isinstance(module, torch.jit.ScriptModule):
            raise ConfigurationError(f"{self.name}: is compiled by torch.jit; give the module itself")
        for name, layer in module.named_modules():
            where = f" in layer {name!r}" if name else ""
            for key, value in vars(layer).items():
                inner = value.values() if isinstance(value, dict) else value
                held = inner if isinstance(value, dict | list | tuple) else [value]
                if not key.startswith("_") and any(isinstance(item, Tensor) for item in held):
                    raise ConfigurationError(
                        f"{self.name}: the tensor {key!r}{where} is a plain attribute; register it, by "
                        f"self.register_buffer({key!r}, ...), or make it an nn.Parameter"
                    )
            if isinstance(layer, _NormBase) and layer.track_running_stats and layer.momentum is None:
                raise ConfigurationError(
                    f"{self.name}: momentum = None{where} ({type(layer).__name__}): the weight of a batch "
                    f"would depend on how many came before; give a number, such as torch's 0.1"
                )
            for key, part in layer.named_parameters(recurse=False):
                if isinstance(part, nn.UninitializedParameter):
                    raise ConfigurationError(
                        f"{self.name}: the {type(layer).__name__}{where} has no shape yet; give its inputs"
                    )
                if part.dtype != torch.float32:
                    raise ConfigurationError(
                        f"{self.name}: its parameter {key!r}{where} is {part.dtype}; must be torch.float32"
                    )


def inputs(reader: SampleReader, rows: Ints, dtype: torch.dtype = torch.float32) -> Tensor:
    """(n, *sample_shape) the features of some table rows as models take them: whole numbers as int64."""
    features = torch.from_numpy(reader.features(rows))
    return features.to(dtype if tokens_of(reader) is None else torch.int64)


def bytes_of(tensor: Tensor) -> memoryview:
    """The bytes of the numbers of a tensor, without a copy if they lie in order."""
    flat = tensor.resolve_conj().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if len(flat) else memoryview(b"")


Places = list[tuple[dict[str, Any], str, str]]


class _Modules(threading.local):
    """Copies of the module of each thread that binds them, with their places: `bound` swaps their tensors."""

    def __init__(self, skeleton: nn.Module) -> None:
        self._skeleton = skeleton
        self._made: dict[Mode, tuple[nn.Module, Places]] = {}

    def of(self, mode: Mode) -> tuple[nn.Module, Places]:
        if mode not in self._made:
            module = copy.deepcopy(self._skeleton)
            module.train(mode == "training")
            for layer in module.modules():
                if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
                    layer.sparse = False  # gradients are added up in one array
                if mode == "training" and isinstance(layer, nn.Embedding) and layer.padding_idx is not None:
                    layer.register_forward_hook(_without_padding)
                if mode == "scoring" and isinstance(layer, FeatureMask):
                    layer.training = True
            self._made[mode] = module, _places(module)
        return self._made[mode]


def _without_padding(layer: nn.Embedding, ids: tuple[Tensor, ...], embedded: Tensor) -> Tensor:
    """Forward hook: no gradient of padding reaches its row, as torch has it, but for vmap."""
    padding = torch.eq(ids[0], layer.padding_idx)  # type: ignore[arg-type]
    return torch.where(padding[..., None], embedded.detach(), embedded)


def _places(module: nn.Module) -> Places:
    """Each place of a parameter or buffer: the dict it is in, its name there, and its key in `named`.

    A tensor that several layers share has several places and one key, the first name of the tensor.
    """
    keys = _keys(module)
    return [
        (members, name, keys[id(tensor)])
        for owner in module.modules()
        for members in (owner._parameters, owner._buffers)
        for name, tensor in members.items()
        if tensor is not None
    ]


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """All tensors of a module with their names; of one that is buffer and parameter, the parameter last."""
    return [*module.named_buffers(), *module.named_parameters()]


def _keys(module: nn.Module) -> dict[int, str]:
    """The name of each tensor by its id: the first one, that of a parameter rather than of a buffer."""
    return {id(tensor): key for key, tensor in _tensors(module)}


def _drop_counters(module: nn.Module) -> dict[str, Tensor]:
    """Drop the counters of batches of batch norm, which nothing reads where momentum is a number.

    Returns what they were by name; 0 if the module has no values.
    """
    keys, counters = _keys(module), dict[str, Tensor]()
    for layer in module.modules():
        counter = layer.num_batches_tracked if isinstance(layer, _NormBase) else None
        if counter is not None:
            without = torch.zeros_like(counter, device="cpu") if counter.is_meta else counter
            counters[keys[id(counter)]] = without
            layer.register_buffer("num_batches_tracked", None)
    return counters


def _layout(module: nn.Module) -> Mapping[str, Segment]:
    """The parameters of a module that train or are set, then its running means and variances.

    Those that layers share are there once.
    """
    keys, statistics = _keys(module), dict[str, Tensor]()
    masks = {id(layer.mask) for layer in module.modules() if isinstance(layer, FeatureMask)}
    sent = {name: part for name, part in module.named_parameters() if part.requires_grad or id(part) in masks}
    for layer in module.modules():
        if isinstance(layer, _NormBase) and layer.running_mean is not None:
            both = map(layer.get_buffer, ("running_mean", "running_var"))
            statistics |= {keys[id(part)]: part for part in both}
    layout: dict[str, Segment] = {}
    first = 0
    for name, part in (*sent.items(), *statistics.items()):
        last = first + part.numel()
        kind: Literal["parameter", "statistics"] = "statistics" if name in statistics else "parameter"
        layout[name] = Segment(first, last, tuple(part.shape), part.requires_grad, kind)
        first = last
    return layout


def _without_values(module: nn.Module) -> nn.Module:
    """A copy of a module whose tensors are on the meta device; what layers share stays shared."""
    memo: dict[int, Any] = {id(part): torch.empty_like(part, device="meta") for part in module.buffers()}
    for part in module.parameters():
        memo[id(part)] = nn.Parameter(torch.empty_like(part, device="meta"), part.requires_grad)
    try:
        skeleton = copy.deepcopy(module, memo)
    except Exception as error:  # of whatever a module of one's own keeps
        raise ConfigurationError(f"the module cannot be copied ({type(error).__name__}: {error})") from error
    # A function that the module has made of itself, as a lambda, holds it, and not its copies: let that fail.
    for layer in module.modules():
        for members in (layer._parameters, layer._buffers):
            members |= {name: memo[id(part)] for name, part in members.items() if part is not None}
    return skeleton


def _initial(layer: nn.Module, name: str, parameter: Tensor, rng: np.random.Generator) -> Floats:
    shape = tuple(parameter.shape)
    if isinstance(layer, AFFINE):
        bound = 1 / sqrt(prod(layer.weight.shape[1:]))
        return rng.uniform(-bound, bound, shape)
    if isinstance(layer, NORMALISATIONS) and name.endswith("bias"):
        return np.zeros(shape)
    return np.ones(shape)
