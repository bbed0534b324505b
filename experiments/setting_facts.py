"""What each setting of a part or of a table takes: its type, bounds and default in words.

They come from the annotations that validate a value, so that no list of them is kept by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from inspect import isclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from emulator.numbers import Number
from emulator.plugins import ChoiceOf, alone_is_a_list
from emulator.storage.table_paths import TablePath
from experiments.part_kinds import part_kinds
from experiments.setting_descriptions import descriptions

REQUIRED = "required"
"""The default of a setting that has none."""

UNSET = "not set"
"""The default of a setting that may be left out, and has no value then."""


@dataclass(frozen=True)
class SettingFacts:
    """What is known of a setting.

    Attributes:
        type: Its type, such as "whole number" or "list of texts".
        bounds: The bounds of its numbers, texts and lists, such as "1 to 1,000"; empty if there are none.
        default: Its default as a configuration would have it, or `REQUIRED`, or `UNSET`.
        about: Its description.
        kind: The kind of part that it takes, or that its list or table has; None if it takes none.
        keys: The keys of the tables that it takes, or of those in its list; empty if it takes none.
    """

    type: str
    bounds: str
    default: str
    about: str
    kind: str | None = None
    keys: Mapping[str, SettingFacts] | None = None


@dataclass(frozen=True)
class _Kind:
    """A type in words, for one value and for several, with its bounds."""

    one: str
    several: str
    bounds: str = ""


NUMBER, SHARE, WHOLE = ("number", "numbers"), ("share", "shares"), ("whole number", "whole numbers")
PLAIN: Mapping[Any, _Kind] = {
    bool: _Kind("true or false", "true or false"),
    str: _Kind("text", "texts"),
    AwareDatetime: _Kind("timestamp with a zone", "timestamps with a zone"),
    Path: _Kind("path", "paths"),
    date: _Kind("date", "dates"),
    int: _Kind(*WHOLE),
    float: _Kind(*NUMBER),
    Any: _Kind("any value", "values"),
}


def setting_facts(settings: type[BaseModel]) -> dict[str, SettingFacts]:
    """The facts about each setting by the key that a configuration has for it."""
    about = descriptions(settings)
    return {field.alias or name: _facts(field, about[name]) for name, field in settings.model_fields.items()}


def _facts(field: FieldInfo, about: str) -> SettingFacts:
    kind = _kind(field.annotation, field.metadata)
    tables = list(_tables(field.annotation))
    return SettingFacts(
        kind.one,
        kind.bounds,
        default_text(field),
        about,
        next(map(_name_of, _choices(field.annotation, field.metadata)), None),
        {key: facts for table in tables for key, facts in setting_facts(table).items()} or None,
    )


def default_text(field: FieldInfo) -> str:
    """The default of a setting, as TOML has it; `REQUIRED` or `UNSET`."""
    if field.is_required():
        return REQUIRED
    value = field.get_default(call_default_factory=True)
    return UNSET if value is None else toml_value(value)


def toml_value(value: Any) -> str:
    """A value as TOML has it, on one line; floats are rounded to six digits.

    >>> toml_value({"adam.beta1": 1})
    '{ "adam.beta1" = 1 }'
    >>> toml_value({"kind": "sgd", "momentum": 0.9}), toml_value((1, True, 1e-8, 1 / 3))
    ('{ kind = "sgd", momentum = 0.9 }', '[1, true, 1e-8, 0.333333]')
    """
    match value:
        case BaseModel():
            return "{}"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case float():
            return re.sub(r"e([+-])0*", r"e\1", f"{value:.6g}").replace("e+", "e")
        case Mapping():
            items = ", ".join(f"{_toml_key(key)} = {toml_value(item)}" for key, item in value.items())
            return f"{{ {items} }}" if items else "{}"
    return f"[{', '.join(map(toml_value, value))}]" if isinstance(value, Sequence) else str(value)


def _toml_key(key: str) -> str:
    """A key as TOML has it, in quotes if it is not a bare one."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'


def _kind(annotation: Any, metadata: Sequence[Any]) -> _Kind:
    """The type that an annotation and what stands beside it describe."""
    if get_origin(annotation) is Annotated:
        inner, *beside = get_args(annotation)
        return _kind(inner, [*_flat(beside), *metadata])
    if choices := [item for item in metadata if isinstance(item, ChoiceOf)]:
        kind = _name_of(choices[0])
        return _Kind(f"part of kind {kind}", f"parts of kind {kind}")
    if get_args(annotation):
        return _generic(get_origin(annotation), get_args(annotation), metadata)
    if annotation is TablePath:
        return _Kind("path, or { path, separator, ... }", "paths, or { path, separator, ... }")
    if isclass(annotation) and issubclass(annotation, BaseModel):
        return _Kind("table", "tables")
    name = getattr(annotation, "__name__", str(annotation))  # of a third party's own type
    return _bounded(PLAIN.get(annotation, _Kind(name, name)), annotation, metadata)


def _generic(origin: Any, arguments: Sequence[Any], metadata: Sequence[Any]) -> _Kind:
    """The type of a union, of a set of choices, of a list, or of a table of names."""
    if origin in (Union, UnionType):
        return _either([_kind(item, metadata) for item in arguments if item is not NoneType])
    if origin is Literal:
        return _one_of([toml_value(item) for item in arguments])
    if origin in (tuple, list):
        return _list(arguments if origin is tuple else (*arguments, Ellipsis), metadata)
    named = _kind(arguments[-1], [])
    words = "table" if arguments[-1] is Any else f"table of {named.several} by name"
    return _Kind(words, words.replace("table", "tables", 1), named.bounds)


def _bounded(kind: _Kind, annotation: Any, metadata: Sequence[Any]) -> _Kind:
    """A plain type with the bounds of its numbers or the length of its text."""
    number = next((item for item in metadata if isinstance(item, Number)), None)
    if annotation in (int, float) and number is not None:
        is_share = annotation is float and (number.le or number.lt or 2) <= 1
        return _Kind(*(SHARE if is_share else (kind.one, kind.several)), _range(number, annotation is int))
    if annotation is str:
        rules = [f"at most {most} letters" for most in _constraints("max_length", metadata)]
        rules += ["not empty" for _ in _constraints("min_length", metadata)]
        rules += [f"of the form {pattern}" for pattern in _constraints("pattern", metadata)]
        return _Kind(kind.one, kind.several, ", ".join(rules))
    return kind


def _constraints(name: str, metadata: Sequence[Any]) -> Iterator[Any]:
    """The values of pydantic's constraints of that name."""
    return (value for item in metadata if (value := getattr(item, name, None)) is not None)


def _list(arguments: Sequence[Any], metadata: Sequence[Any]) -> _Kind:
    item = _kind(arguments[0], [])
    if arguments[-1] is not Ellipsis:
        words = f"of {len(arguments)} {item.several}"
        return _Kind(f"list {words}", f"lists {words}", item.bounds and f"{item.bounds} each")
    alone = any(isinstance(beside, BeforeValidator) and beside.func is alone_is_a_list for beside in metadata)
    least = next(_constraints("min_length", metadata), 0)
    most = next(_constraints("max_length", metadata), None)
    length = "" if least == 0 else f"at least {least} of them"
    if most is not None:
        both = f"{least} {'or' if most == least + 1 else 'to'} {most} of them"
        length = both if least else f"at most {most} of them"
    each = f"{item.bounds.removesuffix(' each')} each" if item.bounds else ""
    bounds = "; ".join(filter(None, [each, length]))
    words = f"list of {item.several}"
    return _Kind(f"{words}, or one alone" if alone else words, words.replace("list", "lists", 1), bounds)


def _either(kinds: Sequence[_Kind]) -> _Kind:
    words = [kind.one for kind in kinds]
    several = [kind.several for kind in kinds]
    bounds = dict.fromkeys(kind.bounds for kind in kinds if kind.bounds)
    return _Kind(" or ".join(dict.fromkeys(words)), " or ".join(dict.fromkeys(several)), "; ".join(bounds))


def _one_of(choices: Sequence[str]) -> _Kind:
    if len(choices) == 1:
        return _Kind(choices[0], choices[0])
    words = f"one of {', '.join(choices)}"
    return _Kind(words, f"items, each {words}")


def _range(number: Number, is_whole: bool) -> str:
    """The bounds of a number.

    >>> _range(Number(ge=0, lt=2**32), True), _range(Number(gt=0, le=1), False)
    ('0 to 4,294,967,295', 'above 0, at most 1')
    """
    low, high = number.ge, number.le
    if is_whole:
        low = low if low is not None else (number.gt or 0) + 1
        high = high if high is not None else (number.lt or 0) - 1
    if low is not None and high is not None:
        return f"{_amount(low)} to {_amount(high)}"
    lower = f"at least {_amount(low)}" if low is not None else f"above {_amount(number.gt)}"
    upper = f"at most {_amount(high)}" if high is not None else f"below {_amount(number.lt)}"
    return f"{lower}, {upper}"


def _amount(value: float | None) -> str:
    """A bound: with commas up to fifteen digits, as a power of ten beyond.

    >>> _amount(10**9), _amount(1e38), _amount(0.5), _amount(1e-6)
    ('1,000,000,000', '1e38', '0.5', '1e-6')
    """
    assert value is not None, "a number has a bound on each side"
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else toml_value(float(value))


def _name_of(choice: ChoiceOf) -> str:
    """The name of a kind of part, as `driftscale parts` takes it."""
    names = (kind.name for kind in part_kinds().values() if kind.registry is choice.registry)
    return next(names, choice.registry.kind)


def _choices(annotation: Any, metadata: Sequence[Any]) -> Iterator[ChoiceOf]:
    """The choices of parts in an annotation, at any depth, and beside it."""
    yield from (item for item in metadata if isinstance(item, ChoiceOf))
    for item in get_args(annotation):
        yield from _choices(item, [item])


def _tables(annotation: Any) -> Iterator[type[BaseModel]]:
    """The tables in an annotation, at any depth; not the settings of a part, which its kind has.

    Nor the keys of a path of a table, which are those of every one.
    """
    is_class = isclass(annotation) and get_origin(annotation) is None
    if is_class and issubclass(annotation, BaseModel) and annotation is not TablePath:
        yield annotation
    for item in get_args(annotation):
        yield from _tables(item)


def _flat(beside: Sequence[Any]) -> list[Any]:
    """What stands beside a type in an annotation, with the constraints of a `Field` among them."""
    return [entry for item in beside for entry in (item.metadata if isinstance(item, FieldInfo) else [item])]
