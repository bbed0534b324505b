"""Keyed chance: what a model draws in training follows from its task, its step and nothing else.

Below vmap and autograd, each operation that torch tags as drawing from a generator is replaced by a hash of
(the task's stream, epoch, step, call, element). So all strategies, threads and ranks draw the same numbers,
and no generator is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import pi, prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from emulator.seeding import StreamKeys, Words

BITS = 32  # of a hash
FLOAT_BITS = 24  # of a uniform number: all float32 in [0, 1) with that spacing
SPREAD = 0x9E3779B1  # odd, so that all counters differ


class UnknownDrawError(Exception):
    """A model draws by an operation that has no keyed numbers here; the message is its name."""


class KeyedChance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context in which torch's operations that draw are hashes.

    `keys`: of n tasks whose tensors have a leading axis of length n, (n, 2); or of a single task, (2,).
    `drawn` are the names of the operations so far, each with the last of the `layers`
    that compute at that time, which others set.
    Raises UnknownDrawError for one that is not known.
    """

    def __init__(self, keys: StreamKeys, epoch: int = 0, step: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._stacked = keys.ndim == 2
        self._words: Words = np.ascontiguousarray(keys).view(np.uint32)  # (n, 4) or (4,)
        self._moment = epoch, step
        self._calls = 0
        self.drawn: list[str] = []
        self.layers = [""]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # with True, torch imports dynamo in order to skip it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or _without_dropout(func, args, named):
            return func(*args, **named)
        name = func._schema.name.removeprefix("aten::")
        self.drawn.append(f"{name}{self.layers[-1]}")
        if name not in KNOWN or "out" in named:
            raise UnknownDrawError(self.drawn[-1])
        return KNOWN[name](self, func, *args, **named)

    def bits(self, shape: Sequence[int]) -> Words:
        """(*shape) numbers of 32 random bits, other ones at each call."""
        if self._stacked and (len(shape) == 0 or shape[0] != len(self._words)):
            raise RuntimeError(f"random numbers of shape {tuple(shape)} for {len(self._words)} tasks")
        self._calls += 1
        of_call = self._words
        for number in (*self._moment, self._calls):
            of_call = _mixed(of_call + np.uint32(number * SPREAD % 2**32))
        shift, mask = np.moveaxis(of_call[..., :2] ^ of_call[..., 2:], -1, 0)[..., None]
        numbers = _mixed(np.arange(prod(shape[1:] if self._stacked else shape), dtype=np.uint32) + shift)
        # Counters of two calls may overlap, of which one is then the other, shifted; with the mask it is not.
        numbers ^= mask
        numbers *= np.uint32(SPREAD)
        numbers ^= numbers >> np.uint32(16)
        return numbers.reshape(tuple(shape))

    def uniforms(self, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> Tensor:
        """(*shape) numbers in [low, high)."""
        top = self.bits(shape) >> np.uint32(BITS - FLOAT_BITS)
        return torch.from_numpy(top.astype(np.float32)).mul_(2.0**-FLOAT_BITS * (high - low)).add_(low)

    def normals(self, shape: Sequence[int], mean: float = 0.0, std: float = 1.0) -> Tensor:
        """(*shape) normal numbers, by Box and Muller."""
        radius = (-2 * torch.log1p(-self.uniforms(shape))).sqrt_()
        return radius.mul_(torch.cos(2 * pi * self.uniforms(shape))).mul_(std).add_(mean)

    def waits(self, shape: Sequence[int], rate: float = 1.0) -> Tensor:
        """(*shape) exponential numbers, of the mean 1 / `rate`."""
        return torch.log1p(-self.uniforms(shape)).div_(-rate)

    def below(self, shape: Sequence[int], chance: float | Tensor = 0.5) -> Tensor:
        """(*shape) booleans, True with a probability of `chance`, a number or an array of numbers."""
        if isinstance(chance, Tensor):
            return self.uniforms(shape) < chance
        if round(chance * 2**BITS) >= 2**BITS:
            return torch.ones(tuple(shape), dtype=torch.bool)
        return torch.from_numpy(self.bits(shape) < np.uint32(round(chance * 2**BITS)))


Chance = Callable[[], AbstractContextManager[Any]]
"""Makes the context in which the models of some tasks take a step, also when they take it again."""


class Chances:
    """Where the models of a task group draw from; nowhere, if they draw nothing: `keys` is None then."""

    def __init__(self, keys: StreamKeys | None, epoch: int = 0) -> None:
        """`keys` (n, 2): of the streams of n tasks. `epoch`: the number of epochs behind them."""
        self._keys = keys
        self._epoch = epoch

    def of(self, tasks: Any, epoch: int) -> Chances:
        """Those of some of the tasks, in a later epoch."""
        return Chances(None if self._keys is None else self._keys[tasks], epoch)

    def step(self, step: int, tasks: Any) -> AbstractContextManager[Any]:
        """Context of a step of some tasks, as `slice(0, k)`, or of one, by its number."""
        return nullcontext() if self._keys is None else KeyedChance(self._keys[tasks], self._epoch, step)


NO_CHANCES = Chances(None)


def _into(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An operation that overwrites its first argument."""

    def drawn(chance: KeyedChance, func: Any, into: Tensor, *args: Any, generator: Any = None) -> Tensor:
        return into.copy_(draw(chance, into.shape, *args))

    return drawn


def _like(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An operation that makes an array like its first argument, or of a given shape."""

    def drawn(chance: KeyedChance, func: Any, like: Any, *args: Any, **as_: Any) -> Tensor:
        shape = like.shape if isinstance(like, Tensor) else like
        kind = as_.get("dtype") or (like.dtype if isinstance(like, Tensor) else torch.get_default_dtype())
        return draw(chance, shape, *args).to(kind)

    return drawn


def _bernoulli(chance: KeyedChance, func: Any, of: Tensor, *args: Any, generator: Any = None) -> Tensor:
    return chance.below(of.shape, args[0] if args else of).to(of.dtype)


def _native_dropout(
    chance: KeyedChance, func: Any, features: Tensor, share: float, train: bool | None
) -> tuple[Tensor, Tensor]:
    if train is False:
        return features.clone(), torch.ones_like(features, dtype=torch.bool)
    kept = chance.below(features.shape, 1 - share)
    return features * kept * (0.0 if share == 1 else 1 / (1 - share)), kept


KNOWN: Mapping[str, Callable[..., Any]] = {
    "bernoulli": _bernoulli,
    "bernoulli_": _into(KeyedChance.below),
    "exponential_": _into(KeyedChance.waits),
    "native_dropout": _native_dropout,
    "normal_": _into(KeyedChance.normals),
    "rand": _like(KeyedChance.uniforms),
    "rand_like": _like(KeyedChance.uniforms),
    "randn": _like(KeyedChance.normals),
    "randn_like": _like(KeyedChance.normals),
    "uniform_": _into(KeyedChance.uniforms),
}
"""The operations that have keyed numbers, by their names in torch."""


def _without_dropout(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether an operation is tagged for its dropout, as attention is, and has none."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            return bool((args[place] if place < len(args) else named.get("dropout_p", 0.0)) == 0.0)
    return False


def _mixed(numbers: Words) -> Words:
    """A hash of each number, in place: the bijection "lowbias32" of Wellons (2018)."""
    numbers ^= numbers >> np.uint32(16)
    numbers *= np.uint32(0x7FEB352D)
    numbers ^= numbers >> np.uint32(15)
    numbers *= np.uint32(0x846CA68B)
    numbers ^= numbers >> np.uint32(16)
    return numbers
