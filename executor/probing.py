"""What a model does before anything is trained: refusals of one line, and whether it draws as it trains.

It is shown three samples of the trace, in training and in evaluation mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn.modules.batchnorm import _NormBase

from emulator.errors import ConfigurationError, shorten
from emulator.own.code import place_of
from emulator.own_parts import is_ours
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams, StreamKeys
from executor.flat import FlatModel, bytes_of, inputs
from executor.flops import SWITCHES
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.objectives.base import Objective, tokens_of
from executor.training.chance import KNOWN, KeyedChance, UnknownDrawError

SAMPLES, FIRST = 3, 16
"""Samples that a model is shown, which are among the first rows of the trace."""

ALONE = 1e-5
"""By how much a sample's logits may depend on its batch, of the largest logit: the rounding."""

MOST_SHOWN = 200
"""Letters of torch's message in an error."""

RECURRENT = (nn.RNNBase, nn.RNNCellBase)
CONVOLUTIONS = (nn.modules.conv._ConvNd,)
MOST_STACKED_PARAMETERS = 250_000
"""The largest model that is stacked if it does not say so itself."""


@dataclass(frozen=True)
class Probed:
    """What a model does: whether it draws as it trains; why vmap cannot batch it, empty if it can.

    `head`: the linear layer that computes last, whose inputs are an embedding; None: none that has a row for
    each sample. `least`: how many samples a batch must have in training.
    """

    draws: bool
    unstackable: str = ""
    head: str | None = None
    least: int = 1


def refuse_misfit(spec: ModelSpec, reader: SampleReader, objective: Objective) -> None:
    """ConfigurationError for tokens where a model of ours takes numbers, and for one that tells tokens alone.

    A model of somebody else's that does not tell the next token is tried.
    """
    tokens = tokens_of(reader) is not None
    if objective.reads == "tokens" if spec.tells_next_token else not (tokens and is_ours(type(spec))):
        return
    names = {MODELS.find(name): name for name in MODELS.ours()}
    known = f"model {names.get(type(spec), type(spec).__name__)}"
    if spec.tells_next_token:
        raise ConfigurationError(
            f"{known} tells the next token of texts, and the objective here is about {objective.reads}; set "
            f"training.objective = 'next_token' with a trace of tokens, or choose another model"
        )
    choices = ", ".join(name for kind, name in names.items() if kind.tells_next_token)
    raise ConfigurationError(
        f"{known} takes numbers, and samples here are tokens; choices: {choices}, or a torch module of your "
        f"own"
    )


def probed(model: FlatModel, streams: RandomStreams, reader: SampleReader | None = None) -> Probed:
    """What a model does with `SAMPLES` different samples of a reader, at its initial parameters.

    They are drawn from the stream "probe" if there is no reader, or if its first rows have too few.

    Raises:
        ConfigurationError: It does not take the samples, or makes no logits of them; it draws by an operation
            that has no keyed numbers, or in evaluation mode; it computes parts twice; it remembers anything
            but running statistics; its answers depend on the batch; nothing of it trains; or a parameter is
            not finite.
    """
    if not model.trainable:
        raise ConfigurationError(f"{model.name}: nothing of it trains: no parameter has requires_grad = True")
    flat = torch.from_numpy(model.initial(streams, 0))
    named = {name: part.clone() for name, part in model.named(flat).items()}
    for name, part in named.items():
        if not part.isfinite().all():
            raise ConfigurationError(f"{model.name}: its parameter {name!r} is not finite at the start")
    features, key = _samples(model, streams, reader), streams.keys("probe", np.array([1]))[0]
    draws = _in_training(model, named, features, key)
    least = 2 if model.statistics and _needs_two(model, named, features, key) else 1
    head = _in_evaluation(model, named, features, KeyedChance(key))
    return Probed(draws, _why_unstackable(model, flat, features, streams), head, least)


def _samples(model: FlatModel, streams: RandomStreams, reader: SampleReader | None) -> Tensor:
    """(SAMPLES, *sample_shape) different samples; of tokens those that any vocabulary has are drawn."""
    if reader is not None and isinstance(reader, Sized):
        known = inputs(reader, np.arange(min(FIRST, len(reader))))
        first: dict[bytes, int] = {}  # `np.unique` has rows of 65,535 numbers at most
        for number, sample in enumerate(known.flatten(1).numpy()):
            first.setdefault(sample.tobytes(), number)
        if len(first) >= SAMPLES:
            return known[list(first.values())[:SAMPLES]]
    rng, shape = streams.generator("probe"), (SAMPLES, *model.sample_shape)
    if model.integers:
        return torch.from_numpy(rng.integers(0, 2, shape))
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def _in_training(model: FlatModel, named: Mapping[str, Tensor], features: Tensor, key: StreamKeys) -> bool:
    """Whether a pass forward and back draws; refuses what cannot be trained."""
    named = {name: part.clone() for name, part in named.items()}
    statistics = {name: named[name].clone() for name in model.statistics}
    wanted = [named[name].requires_grad_() for name in model.trainable]
    constants = {name: sha256(bytes_of(tensor)).digest() for name, tensor in model.constants.items()}
    chance = KeyedChance(key)
    with model.bound(named) as module, chance, _watched(model, module, chance, features) as computed:
        before = _remembered(module)
        logits = module(features.clone())
        _refuse_other_outputs(model, logits)
        forward, drawn = len(computed), len(chance.drawn)
        torch.autograd.grad(logits.sum(), wanted, materialize_grads=True)
        again = [f"layer {layer.name!r}" for layer in computed[forward:]]
        if again or len(chance.drawn) > drawn:
            raise ConfigurationError(
                f"{model.name}: computes {again[0] if again else 'parts of it'} again as it goes back, as "
                f"torch.utils.checkpoint does, where it would draw other numbers; leave it out"
            )
        changed = sorted(key for key, value in _remembered(module).items() if before.get(key) != value)
    now = {name: sha256(bytes_of(tensor)).digest() for name, tensor in model.constants.items()}
    changed += [name for name, digest in constants.items() if now[name] != digest]
    with model.bound({**named, **statistics}) as module, KeyedChance(key):
        repeated = module(features.clone())  # with gradients, for which some layers compute otherwise
    if changed or not torch.equal(repeated, logits):
        names = ", ".join(map(repr, changed))
        what = f"changes its {names}" if changed else "answers otherwise when repeated"
        raise ConfigurationError(
            f"{model.name}: training {what}, which no update carries: a module may remember nothing but "
            f"running means and variances of batch norm; make it a parameter, or leave it as it is"
        )
    return bool(chance.drawn)


def _remembered(module: nn.Module) -> dict[str, Any]:
    """The numbers and texts that a module has as attributes, as texts by their names."""
    return {
        f"{name}.{key}" if name else key: repr(value)
        for name, layer in module.named_modules()
        for key, value in vars(layer).items()
        if isinstance(value, int | float | str)
    }


def _needs_two(model: FlatModel, named: Mapping[str, Tensor], features: Tensor, key: StreamKeys) -> bool:
    """Whether a single sample is no batch, of which batch norm has no variance."""
    copies = {name: part.clone() for name, part in named.items()}
    try:
        with torch.no_grad(), model.bound(copies) as module, KeyedChance(key):
            module(features[:1].clone())
    except ValueError:
        return True
    return False


def _in_evaluation(
    model: FlatModel, named: dict[str, Tensor], features: Tensor, chance: KeyedChance
) -> str | None:
    """The linear layer that computes last; refuses answers that are drawn, or depend on who is beside."""
    with torch.no_grad(), model.bound(named, "serving") as module, chance:
        with _watched(model, module, chance, features) as computed:
            together = module(features.clone())
            if chance.drawn:
                raise ConfigurationError(
                    f"{model.name}: draws in evaluation mode, by {chance.drawn[0]}; draw only while "
                    f"self.training, as functional.dropout(..., training=self.training) does"
                )
            _refuse_other_outputs(model, together)
        try:
            each = [module(features[row : row + 1].clone()) for row in range(SAMPLES)]
        except Exception as error:  # as batch norm of a single number
            each, why = [together + torch.inf], f"; alone, one raises {_told(error)}"
        else:
            why = ""
            if each[0].shape != together[:1].shape:
                raise ConfigurationError(
                    f"{model.name}: makes {tuple(each[0].shape)} of a single sample, and must make "
                    f"{tuple(together[:1].shape)}: a squeeze() drops the axis of samples; use flatten(1)"
                )
    alone = torch.cat(each)
    if not torch.allclose(together, alone, rtol=0, atol=ALONE * max(float(together.abs().max()), 1e-30)):
        layers = [name for name in model.layers(_NormBase) if name not in model.with_statistics]
        which = f" (batch norm without running statistics: {', '.join(layers)})" if layers else ""
        raise ConfigurationError(
            f"{model.name}: the answer to a sample depends on the others in its batch{which}{why}; use "
            f"track_running_stats = True, or a norm of single samples, such as nn.GroupNorm"
        )
    linear = [layer for layer in computed if layer.is_linear]
    return linear[-1].name if linear and linear[-1].rows == SAMPLES else None


@dataclass(frozen=True)
class _Computed:
    """A layer that has begun to compute; `rows`: the length of its input, 0 if it is no array."""

    name: str
    is_linear: bool
    rows: int


@contextmanager
def _watched(
    model: FlatModel, module: nn.Module, chance: KeyedChance, features: Tensor
) -> Iterator[list[_Computed]]:
    """Context with the layers that compute, in order; what they do wrong is a ConfigurationError."""
    computed: list[_Computed] = []

    def enters(name: str, layer: nn.Module, args: Any) -> None:
        chance.layers.append(f", in layer {name!r} ({type(layer).__name__})" if name else "")
        rows = len(args[0]) if args and isinstance(args[0], Tensor) and args[0].dim() > 0 else 0
        computed.append(_Computed(name, isinstance(layer, nn.Linear), rows))

    def leaves(layer: nn.Module, args: Any, out: Any) -> None:
        chance.layers.pop()

    hooks = []
    for name, layer in module.named_modules():
        hooks += [layer.register_forward_pre_hook(partial(enters, name)), layer.register_forward_hook(leaves)]
    try:
        yield computed
    except (ConfigurationError, MemoryError):
        raise
    except UnknownDrawError as error:
        raise ConfigurationError(
            f"{model.name}: draws by {error}: it has no repeatable numbers here; what has: dropout, "
            f"{', '.join(sorted(KNOWN))}"
        ) from error
    except Exception as error:
        raise ConfigurationError(_taken_wrongly(model, error, chance.layers[-1], features)) from error
    finally:
        for hook in hooks:
            hook.remove()


def _taken_wrongly(model: FlatModel, error: Exception, place: str, features: Tensor) -> str:
    problem = _told(error)
    if isinstance(error, TypeError) and "missing" in str(error) and "argument" in str(error):
        return f"{model.name}: its forward must take the samples and nothing else ({problem})"
    if "meta" in str(error):
        return (
            f"{model.name}: computes{place} with layers that are not its own: a function that was made as it "
            f"was built, such as a lambda or a hook, holds another module; make it a method"
        )
    if "(Embedding)" in place or (not model.integers and "indices" in str(error)):
        kind = "whole numbers" if model.integers else "floats"
        return f"{model.name}: samples are {kind}, and it looks them up as token ids{place} ({problem})"
    shape = tuple(features.shape[1:])
    return f"{model.name}: does not take {SAMPLES} samples of shape {shape}{place}: {problem}"


def _told(error: Exception) -> str:
    """An error of a module on one line, with the place in its code."""
    problem = shorten(f"{type(error).__name__}: {' '.join(str(error).split())}", MOST_SHOWN)
    return f"{problem}{place_of(error)}"


def _refuse_other_outputs(model: FlatModel, logits: Any) -> None:
    shape = model.objective.output_shape(model.sample_shape, model.num_outputs)
    expected = (SAMPLES, *shape)
    of = " of its tokens" if len(shape) > 1 else ""
    made = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if made != expected:
        raise ConfigurationError(
            f"{model.name}: must make outputs of shape {expected} of {SAMPLES} samples, {model.num_outputs} "
            f"for each{of}, and makes {made}; an argument named num_outputs gets that number"
        )
    if not (logits.dtype.is_floating_point and logits.isfinite().all()):
        raise ConfigurationError(
            f"{model.name}: must make logits that are finite floats of its first samples"
        )


def _why_unstackable(model: FlatModel, flat: Tensor, features: Tensor, streams: RandomStreams) -> str:
    """Why vmap cannot train several of these models at once; empty if it can."""
    if model.layers(*RECURRENT):
        return "vmap cannot batch recurrent layers"
    functorch: Any = torch._C._functorch
    with SWITCHES:
        fallback = functorch._is_vmap_fallback_enabled()
        functorch._set_vmap_fallback_enabled(False)  # which computes task by task, slower than `loop`
        try:
            flats = torch.stack([flat, flat])
            named = {name: part.clone() for name, part in model.named(flats).items()}
            wanted = [named[name].requires_grad_() for name in model.trainable]
            with KeyedChance(streams.keys("probe", np.arange(2))):
                logits = vmap(model.logits, randomness="different")(named, torch.stack([features, features]))
            torch.autograd.grad(logits.sum(), wanted, materialize_grads=True)
        except (ConfigurationError, MemoryError):
            raise
        except Exception as error:
            return f"vmap cannot batch it ({shorten(' '.join(str(error).split()), MOST_SHOWN)})"
        finally:
            functorch._set_vmap_fallback_enabled(fallback)
    return ""
