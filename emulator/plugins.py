"""How parts are registered, described and looked up: one mechanism for every kind of plug-in.

A part is a class with a frozen `Settings` model. Our own parts are listed in a literal mapping in their
package's `__init__`; third parties register theirs under the entry-point group of the kind. A part that is
registered nowhere is named by "my_module:MyPart" (see `emulator.own_parts`). Only the parts that are looked
up are imported. A configuration gives a part by its name, or by a table with its name under
`kind` and its settings beside it.

Kinds whose parts all need torch load late: a configuration can be validated twice, and only the second pass
(the ordinary one) imports them. The first validates the settings of our own, which need no torch, and knows
third parties' by their names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from emulator.errors import ConfigurationError, UnknownNameError, unknown
from emulator.own_parts import OwnPartError, is_ours, is_own, load, refuse_missing

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

GROUPS = b"[driftscale."
"""How the section of each of our groups begins in a file of entry points."""

FIRST_LOOK = "first look"
"""Validation context of the first pass, which imports no part that loads late."""

PART = "x-part"
"""The key of a JSON schema that says which kind of part a value is."""


@cache
def installed_entry_points() -> Mapping[str, Sequence[EntryPoint]]:
    """Entry points of all installed distributions by group.

    Cached, and read for all kinds at once: even one group takes reading every installed distribution. That
    is done only if one has parts of ours, or could: where no file says so, the files alone are looked at.
    """
    if not (
        any(map(_finds_distributions, sys.meta_path)) or any(map(_may_have_parts, dict.fromkeys(sys.path)))
    ):
        return {}
    from importlib.metadata import entry_points

    everything = entry_points()
    return {group: tuple(everything.select(group=group)) for group in everything.groups}


MOST_UNKNOWN = 10
"""Most unknown keys of a table that are named."""


class Settings(BaseModel):
    """Base of every part's settings and every table of a configuration: frozen, typed, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any, info: ValidationInfo) -> Any:
        """Refuse unknown keys first, then what else is wrong: an absent key may be one that is misspelt."""
        if not isinstance(values, Mapping):
            return values
        known = {field.alias or name for name, field in cls.model_fields.items()}
        others = [str(key) for key in values if key not in known]
        if not others:
            return values
        mistakes: list[tuple[PydanticCustomError, tuple[int | str, ...]]] = [
            (_unknown("key", key, known, is_first=key == others[0]), ()) for key in others[:MOST_UNKNOWN]
        ]
        try:
            cls.model_validate({key: values[key] for key in values if key in known}, context=info.context)
        except ValidationError as error:
            for found in error.errors(include_url=False):
                context = {**found.get("ctx", {}), "rule": found["msg"]}
                if found["type"] != "missing" or len(found["loc"]) > 1:
                    mistakes.append((PydanticCustomError(found["type"], "{rule}", context), found["loc"]))
        details = [InitErrorDetails(type=kind, loc=place, input=values) for kind, place in mistakes]
        raise ValidationError.from_exception_data(cls.__name__, details)

    def find_files(self, locate: Callable[[str], Path]) -> None:
        """Find the files and folders that these settings name, so that an absent one is reported early.

        Nothing is read. Settings that name files override this; by default, those of the parts and tables
        among the values find theirs.

        Args:
            locate: maps a path in the configuration to an existing file or folder.

        Raises:
            DataFileError: what `locate` raises.
        """
        for name in type(self).model_fields:
            value = getattr(self, name)
            several = value.values() if isinstance(value, Mapping) else value
            for item in several if isinstance(value, Mapping | list | tuple) else (value,):
                settings = item.settings if isinstance(item, Chosen) else item
                if isinstance(settings, Settings):
                    settings.find_files(locate)


class NoSettings(Settings):
    """Settings of a part that has none."""


class Configured:
    """Base of all kinds of parts: a class with its `Settings` model, built from an instance of it."""

    Settings: ClassVar[type[Settings]] = NoSettings

    settings: Any
    """An instance of `Settings`; a part declares its type for type checkers: `settings: XSettings`."""

    def __init__(self, settings: BaseModel) -> None:
        """Keep the settings; a part that overrides this may take further arguments of its kind.

        Args:
            settings: an instance of `Settings`.
        """
        self.settings = settings


def returns(where: str, *, writes: bool = False) -> Callable[[Method], Method]:
    """Declares, beside a method of a protocol, what it returns; its type is that of its annotation.

    Args:
        where: A rule, "module:function". It is called with what a part of one's own has returned, the part,
            and the arguments of the method, and raises WrongAnswerError if that is not as declared.
        writes: Whether the method may write to its arguments.
    """

    def declare(method: Method) -> Method:
        method.returns, method.writes = where, writes  # type: ignore[attr-defined]
        return method

    return declare


def alone_is_a_list(value: Any) -> Any:
    """Validator of a list field that also accepts a single name or table.

    Args:
        value: the field's value.

    Returns:
        A list of `value` if it is a name or a table, else `value` itself.
    """
    return [value] if isinstance(value, str | Mapping) else value


@dataclass(frozen=True)
class Chosen(Generic[T]):
    """A part chosen in a configuration: its name, its class and its validated settings.

    `what` its kind is called in messages, such as "selector".
    """

    kind: str
    part: Callable[..., T] = field(repr=False)
    settings: Settings
    what: str = field(default="part", compare=False, repr=False)

    def build(self, *facts: Any) -> T:
        """A new instance of the part.

        Args:
            facts: the arguments that all parts of its kind take after the settings.
        """
        if is_ours(self.part):
            return self.part(self.settings, *facts)
        from emulator.own.guards import build  # which own code alone needs

        return build(self.what, self.part, self.settings, *facts)


class ChoiceOf:
    """Annotation of a field that holds a part of one kind: `Annotated[Chosen[X], ChoiceOf(...)]`."""

    def __init__(self, registry: Registry[Any], key: str = "kind") -> None:
        """Choose among the parts of `registry`.

        Args:
            registry: the parts of the kind.
            key: the key of a table that holds the part's name.
        """
        self.registry = registry
        self.key = key

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: validate with `parse`, dump as the table that `parse` accepts."""
        return core_schema.with_info_plain_validator_function(
            self.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(self._describe),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Pydantic's hook: any value of that kind, since each part's `Settings` describes its keys."""
        return {PART: self.registry.kind}

    def parse(self, value: Any, info: ValidationInfo) -> Chosen[Any]:
        """The part chosen by a name, or by a table with a name and settings.

        Args:
            value: the field's value; a `Chosen` is returned unchanged.
            info: pydantic's; with the context `FIRST_LOOK`, a part that loads late is not imported and
                cannot be built; one of a third party is returned without settings.

        Raises:
            ValueError: the value is neither, the name is unknown, the part has no class `Settings`, or the
                settings are invalid; pydantic adds the key.
            ConfigurationError: a plug-in cannot be loaded, or registers a name that is taken.
        """
        if isinstance(value, Chosen):
            return value
        table = {self.key: value} if isinstance(value, str) else value
        if not isinstance(table, Mapping) or not isinstance(table.get(self.key), str):
            choices = ", ".join(self.registry.names())
            raise ValueError(f"must be a name, or a table with {self.key!r}; choices: {choices}")
        name = table[self.key]
        try:
            if info.context == FIRST_LOOK and self.registry.loads_late:
                self.registry.refuse_unknown(name)
                part: Callable[..., Any] = _unread
                declared = self.registry.early_settings(name)
                if declared is None:
                    return Chosen(name, _unread, NoSettings(), self.registry.kind)
            else:
                part = self.registry.find(name)
                declared = getattr(part, "Settings", None)
        except UnknownNameError as error:
            raise _unknown(self.registry.kind, name, self.registry.names()) from error
        except OwnPartError as error:
            raise ValueError(str(error)) from error
        if not (isinstance(declared, type) and issubclass(declared, BaseModel)):
            raise ValueError(f"the {self.registry.kind} {name!r} is {part!r}, which has no class Settings")
        rest = {key: item for key, item in table.items() if key != self.key}
        settings = cast(Any, declared).model_validate(rest, context=info.context)
        return Chosen(name, part, settings, self.registry.kind)

    def _describe(self, chosen: Chosen[Any]) -> dict[str, Any]:
        """The table from which `parse` makes this choice, with all defaults written out."""
        return {self.key: chosen.kind, **chosen.settings.model_dump(mode="json", by_alias=True)}


def _unknown(what: str, name: str, choices: Collection[str], *, is_first: bool = True) -> PydanticCustomError:
    """The error of a name that is not among the `choices`; it has all three, for who words it anew.

    Only the first of an object has the whole message: suggestions take time, and there may be many.
    """
    rule = unknown(what, name, choices) if is_first else f"unknown {what} {name!r}"
    context = {"what": what, "name": name, "choices": choices, "rule": rule}
    return PydanticCustomError("unknown", "{rule}", context)


def _finds_distributions(finder: Any) -> bool:
    """Whether a finder of sys.meta_path may know distributions that are in no folder of sys.path.

    Python's own knows none, and the package importlib_metadata replaces it by one that does not either.
    """
    is_of_folders = finder is PathFinder or type(finder).__module__.startswith("importlib_metadata")
    return not is_of_folders and hasattr(finder, "find_distributions")


def _may_have_parts(folder: str) -> bool:
    """Whether a distribution in this entry of sys.path names a group of ours, as far as files tell."""
    path = Path(folder)
    if path.is_file():  # an archive
        return True
    files = [path / "EGG-INFO/entry_points.txt"]
    for pattern in ("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt"):
        files += path.glob(pattern)
    for file in files:
        with suppress(OSError):  # as importlib.metadata does
            if GROUPS in file.read_bytes():
                return True
    return False


def _object_at(where: str) -> Any:
    """The object of ours that is named "module:Class"."""
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def _unread(*_: Any) -> NoReturn:
    raise AssertionError("this part was not imported, only its settings were validated: it cannot be built")


def _under(where: str, kind: str) -> str:
    """How errors name a kind of part, with the key that names the part in front, if it is known."""
    return f"{where}: {kind}" if where else kind


class Registry(Generic[T]):
    """The parts of one kind by name: our own and those of third parties."""

    def __init__(
        self,
        kind: str,
        group: str,
        ours: Mapping[str, T | str],
        *,
        loads_late: bool = False,
        settings: Mapping[str, str] | None = None,
        base: str = "",
        taken: str = "",
    ) -> None:
        """Register our own parts; those of third parties are looked up when they are needed.

        Args:
            kind: what a part of this kind is called in messages, such as "clusterer".
            group: the entry-point group of third parties' parts.
            ours: our own parts, or where they are: "module:Class".
            loads_late: whether the first pass over a configuration imports none of these parts.
            settings: where the settings of our own parts are that the first pass validates although the parts
                load late: "module:Class" by name.
            base: the class that all parts of the kind extend, as "module:Class", to which parts named by
                "my_module:MyPart" are held; without one they may be any object.
            taken: the function that makes a part of another object so named, as "module:function".
        """
        self._taken = taken
        self._base = base
        self.kind = kind
        self.group = group
        self.loads_late = loads_late
        self._settings = dict(settings or {})
        self._ours = dict(ours)

    def names(self) -> list[str]:
        """All registered names, sorted; ConfigurationError if a plug-in registers a name that is taken."""
        return sorted({*self._ours, *self._entries})

    def ours(self) -> list[str]:
        """The names of our own parts, sorted, without those of third parties."""
        return sorted(self._ours)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Iterate over all (name, part), sorted by name; every part is imported."""
        return ((name, self.find(name)) for name in self.names())

    def __contains__(self, name: object) -> bool:
        """Whether a part is registered as `name`, or it has the form "my_module:MyPart"; imports nothing."""
        return name in self._ours or name in self._entries or (isinstance(name, str) and is_own(name))

    def early_settings(self, name: str) -> type[BaseModel] | None:
        """The settings that the first pass validates for the part `name`; None for a third party's."""
        where = self._settings.get(name)
        return None if where is None else cast(type[BaseModel], _object_at(where))

    def refuse_unknown(self, name: str, where: str = "") -> None:
        """Check that a part is registered as `name`, or that the module in it exists; imports nothing.

        Args:
            name: the name to look up.
            where: the key of a configuration that holds the name, for the message.

        Raises:
            UnknownNameError: there is no such part; the message lists the choices.
            OwnPartError: there is no such module, or the name has a colon or a dot and is of another form.
            ConfigurationError: a plug-in registers a name that is taken.
        """
        if name not in self._entries and name not in self._ours:
            if is_own(name):
                refuse_missing(name, _under(where, self.kind))
                return
            if ":" in name or "." in name:
                raise OwnPartError(
                    f"{_under(where, self.kind)} {name!r}: is not of the form 'my_module:MyPart', by which a "
                    f"part of one's own is named; choices: {', '.join(self.names())}"
                )
            raise UnknownNameError(self.kind, name, self.names(), where)

    def find(self, name: str, where: str = "") -> T:
        """The part registered as `name`, or named by it ("my_module:MyPart"), imported if it was not.

        Args:
            name: the name to look up.
            where: the key of a configuration that holds the name, for the message.

        Raises:
            UnknownNameError: there is no such part; the message lists the choices.
            OwnPartError: the module cannot be imported, or has no such part of this kind.
            ConfigurationError: a plug-in cannot be loaded, or registers a name that is taken.
        """
        entries = self._entries
        if name not in self._ours and name not in entries and is_own(name):
            base = _object_at(self._base) if self._base else None
            taken = _object_at(self._taken) if self._taken else None
            return cast(T, load(name, _under(where, self.kind), base, taken))
        self.refuse_unknown(name, where)
        if name in self._ours:
            part = self._ours[name]
            return cast(T, _object_at(part) if isinstance(part, str) else part)
        try:
            return cast(T, entries[name].load())
        except Exception as error:  # importing a module can raise anything
            why = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
            raise ConfigurationError(
                f"entry point {entries[name].value!r} of group {self.group!r}, which registers the "
                f"{self.kind} {name!r}, cannot be loaded ({why})"
            ) from error

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        """Third parties' entry points by name; ConfigurationError if a name is taken."""
        by_name: dict[str, EntryPoint] = {}
        for entry in installed_entry_points().get(self.group, ()):
            if entry.name in self._ours or entry.name in by_name:
                raise ConfigurationError(
                    f"entry point {entry.value!r} of group {self.group!r} registers the {self.kind} "
                    f"{entry.name!r}, which is taken; rename one of them"
                )
            by_name[entry.name] = entry
        return by_name
