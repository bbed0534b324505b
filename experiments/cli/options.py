"""Settings whose keys are options of a command, with dashes for underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from emulator.errors import InputError

Declared = TypeVar("Declared", bound=BaseModel)


def option_of(key: str) -> str:
    """The option of a setting.

    >>> option_of("skip_lines")
    '--skip-lines'
    """
    return f"--{key.replace('_', '-')}"


def parse_settings(declared: type[Declared], values: Mapping[str, Any], command: str) -> Declared:
    """The settings with these values; InputError, which names the option or else the command, if invalid."""
    try:
        return declared.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = option_of(str(first["loc"][0])) if first["loc"] else command
        given = values.get(str(first["loc"][0])) if first["loc"] else None
        shown = f"{name}: {given}" if given is not None else name
        raise InputError(f"{shown}: {first['msg'].removeprefix('Value error, ')}") from error
