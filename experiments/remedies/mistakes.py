"""The mistakes in a configuration in words: the key, the value, the rule, and the remedy, if it is known.

Imported only once a table was refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from emulator.errors import unknown
from emulator.plugins import ChoiceOf, Settings
from experiments.extending import inherited_from
from experiments.remedies.misreadings import did_you_mean_key, key_remedy, remedy
from experiments.results.reading.recorded import curve_of

MOST_MORE = 9
"""Most mistakes that are named besides the first."""

LIST, TABLE = "must be a list", "must be a table"
WHOLE, NUMBER, BOOLEAN = "must be a whole number", "must be a number", "must be true or false"
PLAIN_RULES = {
    **dict.fromkeys(("tuple_type", "list_type"), LIST),
    **dict.fromkeys(("dict_type", "model_type"), TABLE),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), BOOLEAN),
    "string_type": "must be a text",
    "too_short": "must not be empty",
    "timezone_aware": "must have a time zone, as 2026-01-31T12:00:00Z",
}
"""Our wording of rules that pydantic states in terms of Python, by pydantic's name of the rule."""


def mistakes(
    error: ValidationError, table: Mapping[str, Any], model: type[BaseModel] | None = None
) -> list[str]:
    """The mistakes as `key.path = value: rule; remedy`, each once: the first, and at most `MOST_MORE` others.

    A last line says if there are others still. Given the `model` of whole configurations, keys and names that
    are at home elsewhere in it are told so.
    """
    found: dict[tuple[str, str], str] = {}
    for problem in error.errors(include_url=False):
        path, value = _located(problem, table)
        place, source = ".".join(path), inherited_from(table, path)
        if problem["type"] == "too_short" and value:
            continue  # none of its entries is valid, as each of them says itself
        is_unknown = problem["type"] == "unknown"
        rule = _unknown(problem["ctx"], place, value, model) if is_unknown else _rule(problem, place, value)
        rule = f"{rule[:1].lower()}{rule[1:]}"
        shown = f" = {value!r}" if isinstance(value, str | int | float) else ""
        shown += f" (inherited from {source})" if source else ""
        about = rule if is_unknown or not place else ""
        if (place, about) not in found:
            if is_unknown and any(one == place and rest for one, rest in found):
                rule = re.sub("; choices: [^;]*", "", rule, count=1)  # which the line before has
            if len(found) > MOST_MORE:
                return [*found.values(), "and others"]
            found[place, about] = f"{place}{shown}: {rule}" if place else rule
        elif rule not in found[place, about]:  # of another branch of a union
            found[place, about] += f", or {rule}"
    return list(found.values())


def _located(problem: ErrorDetails, table: Mapping[str, Any]) -> tuple[list[str], Any]:
    """The steps to the key of a mistake as the file has it, with arms by name, and its value."""
    path: list[str] = []
    value: Any = table
    for step in _as_written(problem["loc"], table, problem.get("ctx", {}).get("name")):
        if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
            value = value[step]
            name = str(value.get("name", "")) if isinstance(value, Mapping) else ""
            path.append(name if name and name.isprintable() else str(step))  # the error stays one line
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
            path.append(str(step))
        elif isinstance(value, Mapping) and (curve := curve_of(str(step))[0]) in value:
            value = value[curve]
            path.append(str(step))
        elif problem["type"] == "missing":
            path.append(str(step))
            value = None
        # Any other step names a branch of a union, not a key.
    return path, value


def _rule(problem: ErrorDetails, place: str, value: Any) -> str:
    """The rule that is broken, and what to write instead, where a value of another type tells."""
    if (rule := PLAIN_RULES.get(problem["type"])) is not None:
        unit = " of seconds" if rule == NUMBER and place.endswith("_s") else ""
        written = f"{rule}{unit}{_instead(rule, place, value)}"
        return "; ".join(filter(None, (written, remedy("value", place))))
    message = problem["msg"].removeprefix("Value error, ")
    bound = next(iter(problem.get("ctx", {}).values()), None)
    if isinstance(bound, float):  # pydantic would write all 39 digits of 1e38
        message = f"{message.rpartition(' ')[0]} {bound:g}"
    return message


def _instead(rule: str, place: str, value: Any) -> str:
    """How the value, which is of another type than the rule wants, is probably written; empty if unknown."""
    from emulator.storage.slips import MOST_SHOWN, meant  # which a misspelt key does not need

    if rule == TABLE and isinstance(value, list):
        return f", as [{place}] in single brackets"
    if rule == LIST and isinstance(value, Mapping):
        return f", as [[{place}]] in double brackets, above each entry"
    if not isinstance(value, str | int | float) or len(str(value)) > MOST_SHOWN:
        return ""
    written = meant(str(value)) or ""
    if rule == LIST:
        entries = (meant(part.strip()) or json.dumps(part.strip()) for part in str(value).split(","))
        return f", as in {written}" if "[" in written else f", as in [{', '.join(entries)}]"
    form = {WHOLE: r"\d+", NUMBER: r".*\d", BOOLEAN: "true|false"}.get(rule)
    fits = isinstance(value, str) and form is not None and re.fullmatch(form, written)
    return f", as in {written}, without quotes" if fits else ""


def _unknown(context: Mapping[str, Any], place: str, value: Any, model: type[BaseModel] | None) -> str:
    """The words about an unknown key or name, with where it is known, as far as that is no other table."""
    what, name = context["what"], context["name"]
    instead = _at_home(what, name, place, model, context["choices"]) if model is not None else ""
    if isinstance(value, Mapping) and isinstance(value.get(name), Mapping) and instead.startswith("did you"):
        instead = ""
    return unknown(what, name, context["choices"], instead)


def _at_home(what: str, name: str, place: str, model: type[BaseModel], choices: Collection[str]) -> str:
    """What an unknown key or name was meant to be: by a misreading, another table or another kind.

    A key that is known by that misreading in its own table, as the rate of an aggregator, is that one.
    """
    if what != "key":
        others = [
            f"did you mean {key.rpartition('.')[2]} = {json.dumps(_as_part(key, name))}?"
            for key, field in _fields(model)
            for choice in _choices((field.annotation, *field.metadata))
            if name in choice.registry.names()
        ]
        return remedy(what, name) or next(iter(others), "")
    table, _, own = remedy("key", name).rpartition(".")
    if own in choices and table != place:
        return f"did you mean {own!r}?"
    homes = (key for key, _ in _fields(model) if key.rpartition(".")[2] == name)
    return key_remedy(name, place) or did_you_mean_key(next(homes, ""))


def _as_part(key: str, name: str) -> str | list[str]:
    """How a part is given under a key: of a solver, a rule that is no optimiser with one."""
    return [name, "sgd"] if key.endswith("solver") and name not in ("adam", "sgd") else name


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The keys of a model that are no tables, and those in its tables, dotted."""
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        tables = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)]
        yield from [] if tables else [(name, field)]
        for table in tables:
            yield from ((f"{name}.{key}", inner) for key, inner in table.model_fields.items())


def _choices(annotations: tuple[Any, ...]) -> Iterator[ChoiceOf]:
    for annotation in annotations:
        if isinstance(annotation, ChoiceOf):
            yield annotation
        else:
            yield from _choices(get_args(annotation))


def _as_written(
    location: tuple[str | int, ...], table: Mapping[str, Any], name: str | None
) -> tuple[str | int, ...]:
    """The `location` of a problem as the file has it: that of `parts` or `training`, if an arm has it thence.

    `name` is the unknown key in the table at the location, if the problem is one.
    """
    if len(location) < 3 or location[0] != "arm":
        return location
    _, arm, key, *inner = location
    assert isinstance(arm, int)
    own = table["arm"][arm]
    if key == "training":
        overrides, setting = own.get(key, {}), inner[0] if inner else name
        is_shared = isinstance(overrides, Mapping) and (
            setting not in overrides if setting else not overrides
        )
        return location[2:] if is_shared else location
    parts = table.get("parts")
    is_shared = isinstance(parts, Mapping) and key in parts and key not in own
    return ("parts", *location[2:]) if is_shared else location
