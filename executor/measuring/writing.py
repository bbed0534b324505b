"""The module of a model as a Python expression, for a file with `timing.py` in it."""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any

from torch import nn

from emulator.errors import ConfigurationError
from emulator.own_parts import is_ours, is_own
from executor.models.base import ModelSpec

OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def written(
    kind: str, spec: ModelSpec, sample_shape: tuple[int, ...], num_outputs: int
) -> tuple[str, list[str]]:
    """An expression that makes the module of a model, and what it calls, as "module:name".

    A torch module of one's own, which `kind` names, is made by its class or function. A shipped model is
    built, and written layer by layer, without its numbers.

    Raises:
        ConfigurationError: It is another one, or does not fit the samples.
    """
    recipe: Any = spec
    if hasattr(spec, "made_of"):
        name = kind if is_own(kind) else f"{recipe.made_of.__module__}:{recipe.made_of.__qualname__}"
        return f"{name.replace(':', '.')}(**{recipe.arguments(sample_shape, num_outputs)!r})", [name]
    kinds: set[str] = set()
    return _layer(spec.build(sample_shape, num_outputs), kinds, is_ours(type(spec))), sorted(kinds)


def _layer(layer: nn.Module, kinds: set[str], is_known: bool) -> str:
    """An expression that makes a layer; classes of ours join `kinds`."""
    kind = type(layer)
    is_of_torch = kind.__module__.startswith("torch.nn.modules.")
    if not (is_known and (is_of_torch or is_ours(kind))):
        raise ConfigurationError(
            f"training.model: a {kind.__name__} in a model that is neither shipped nor a torch module cannot "
            f"be written; name the class of a torch module, or a function that returns one, as "
            f'"my_module:MyModel"'
        )
    if is_of_torch and not [*layer.children()]:
        return f"nn.{kind.__name__}({_arguments(layer)})"
    name = f"nn.{kind.__name__}"
    if not is_of_torch:
        name = f"{kind.__module__}.{kind.__qualname__}"
        kinds.add(f"{kind.__module__}:{kind.__qualname__}")
    members = {key: repr(value) for key, value in vars(layer).items() if key not in OF_EVERY_MODULE}
    for key, part in layer.named_parameters(recurse=False):
        members[key] = f"nn.Parameter(torch.ones({tuple(part.shape)}), {part.requires_grad})"
    for key, held in layer.named_buffers(recurse=False):
        members[key] = f"torch.ones({tuple(held.shape)})"
    members |= {key: _layer(child, kinds, is_known) for key, child in layer.named_children()}
    inner = indent("".join(f"{key!r}: {member},\n" for key, member in members.items()), "    ")
    return f"assembled({name}, {{\n{inner}}})"


def _arguments(layer: nn.Module) -> str:
    """What the constructor of a layer of torch is given that is not its default.

    NOTE: not its `repr`, which leaves out what the layer computes with, as `ceil_mode`.
    """
    given = []
    recurrent = isinstance(layer, nn.RNNBase)  # whose own signatures are (*args, **kwargs)
    signature = inspect.signature(nn.RNNBase if recurrent else type(layer))
    for argument in [*signature.parameters.values()][recurrent:]:  # without the mode
        value = getattr(layer, argument.name, argument.default)  # which has no `device`, `args` and the like
        if argument.name == "bias":
            value = value is not None and value is not False
        if value is not argument.empty and value != argument.default:
            given.append(f"{argument.name}={value!r}")
    return ", ".join(given)
