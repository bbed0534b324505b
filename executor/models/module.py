"""A model that is a torch module of one's own, as it stands: its class, or a function that returns one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from pydantic import ConfigDict, model_validator
from torch import nn

from emulator.errors import did_you_mean
from emulator.own_parts import OwnPartError, refuse_not_defined
from emulator.plugins import Settings
from executor.models.base import ModelSpec

OF_TRACE = ("sample_shape", "num_outputs", "num_labels")
"""Arguments that get the trace's facts, unless a configuration gives them; the last two are the same."""


class ModuleSettings(Settings):
    """The keyword arguments of a module, by name: any that its signature takes."""

    model_config = ConfigDict(extra="allow")

    signature: ClassVar[inspect.Signature] = inspect.Signature()

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        """Also sorts the keys: models are the same in whichever order a table gives their arguments."""
        parameters = cls.signature.parameters.values()
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        names = [part.name for part in parameters if part.kind in kinds]
        takes = f"its arguments: {', '.join(names) or 'none'}"
        for key in () if any(part.kind is part.VAR_KEYWORD for part in parameters) else values:
            if key not in names:
                raise ValueError(f"unknown argument {key!r}; {takes}{did_you_mean(str(key), names)}")
        needed = [part.name for part in parameters if part.name in names and part.default is part.empty]
        for name in needed:
            if name not in {*values, *OF_TRACE}:
                raise ValueError(f"lacks the argument {name!r}; {takes}; give it in the table, beside kind")
        return dict(sorted(values.items()))


def as_model(found: Any, name: str, what: str) -> Any:
    """The model that an object of the name "my_module:Name" is; the object itself, if it is no module.

    Args:
        found: The object.
        name: Its name.
        what: The kind of part with its key, for errors.

    Raises:
        OwnPartError: It is neither class nor function, or a function that is defined elsewhere.
    """
    if isinstance(found, type) and not issubclass(found, nn.Module | ModelSpec):
        raise OwnPartError(f"{what} {name!r}: the class must extend torch.nn.Module, or ModelSpec")
    if isinstance(found, type):
        make: Any = found
        return _model_of(make) if issubclass(found, nn.Module) else found
    if isinstance(found, nn.Module) or not callable(found):
        raise OwnPartError(
            f"{what} {name!r}: is a {type(found).__name__}; must be the class of a torch module, or a "
            f"function that returns one"
        )
    refuse_not_defined(found, name, what)
    return _model_of(found)


@cache
def _model_of(make: Callable[..., nn.Module]) -> type[ModelSpec]:
    """The model whose module `make` returns."""
    signature = inspect.signature(make)

    def arguments(self: ModelSpec, sample_shape: tuple[int, ...], num_outputs: int) -> dict[str, Any]:
        facts = zip(OF_TRACE, (tuple(sample_shape), num_outputs, num_outputs), strict=True)
        of_trace: dict[str, Any] = {key: fact for key, fact in facts if key in signature.parameters}
        return of_trace | (self.settings.model_extra or {})

    def build(self: ModelSpec, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        return make(**arguments(self, sample_shape, num_outputs))

    members = {
        "__module__": make.__module__,
        "__qualname__": make.__qualname__,
        "__doc__": make.__doc__,
        "Settings": type("Arguments", (ModuleSettings,), {"signature": signature}),
        "has_values": True,
        "made_of": staticmethod(make),
        "arguments": arguments,
        "build": build,
    }
    return type(make.__name__, (ModelSpec,), members)
