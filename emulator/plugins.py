"""How parts are named, described and found: one mechanism for every kind of plug-in.

A part is a class with a frozen `Settings` model. Where our own are is in a literal mapping in their
package's `__init__`; third parties register theirs under the entry-point group of the kind. Only those that
are asked for are imported. In a configuration a part is its name, or a table with its name under `kind` and
its settings beside it.

Kinds of which all parts need torch load late. A configuration can be looked at twice, and only the second
look (the ordinary one) imports them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from emulator.deprecated import adopt_old_members, keep_old_names, warn_renamed
from emulator.errors import ConfigurationError, UnknownNameError

T = TypeVar("T")

FIRST_LOOK = "first look"
"""The validation context in which only the name of a part that loads late is looked at."""


@cache
def installed_entry_points() -> Mapping[str, Sequence[EntryPoint]]:
    """Entry points by their group: of all kinds at once, since every installed distribution is read for
    them."""
    everything = entry_points()
    return {group: tuple(everything.select(group=group)) for group in everything.groups}


class Settings(BaseModel):
    """Base of every part's settings and every table of a configuration: frozen, typed, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for key in values:
                if key not in known:
                    close = difflib.get_close_matches(str(key), known, n=1)
                    hint = f"; did you mean {close[0]!r}?" if close else ""
                    choices = ", ".join(sorted(known)) or "none"
                    raise ValueError(f"unknown key {key!r}; choices: {choices}{hint}")
        return values


class NoSettings(Settings):
    """Parameters of a part that has none."""


class Configured:
    """Base of all kinds of parts: a class with its Settings, built with an instance of them."""

    Settings: ClassVar[type[Settings]] = NoSettings

    settings: Any
    """An instance of `Settings`; a part says which, for type checkers: `settings: XSettings`."""

    def __init__(self, settings: BaseModel) -> None:
        self.settings = settings

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        adopt_old_members(cls)

    def __getattr__(self, name: str) -> Any:
        alias = {"parameters": "settings", "settings": "parameters"}.get(name)
        if alias is None or alias not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "parameters":
            warn_renamed(f"{type(self).__name__}.parameters", "settings")
        return vars(self)[alias]


def alone_is_a_list(value: Any) -> Any:
    """For a field that holds a list: a name or a table that is alone needs none around it."""
    return [value] if isinstance(value, str | Mapping) else value


@dataclass(frozen=True)
class Chosen(Generic[T]):
    """A part as a configuration names it: its name, its class and its validated settings."""

    kind: str
    part: Callable[..., T]
    settings: Settings

    def build(self, *facts: Any) -> T:
        """A fresh instance; `facts` is what its kind is told besides its settings."""
        return self.part(self.settings, *facts)


class ChoiceOf:
    """Annotates a field that holds a part of one kind: `Annotated[Chosen[X], ChoiceOf(...)]`."""

    def __init__(self, registry: Registry[Any], key: str = "kind") -> None:
        self._registry = registry
        self._key = key

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            self.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(self._describe),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Nothing in particular: what a part takes beside its name is described by its own settings."""
        return {}

    def parse(self, value: Any, info: ValidationInfo) -> Chosen[Any]:
        """The part that a name, or a table with a name, chooses; ValueError (pydantic adds the key) else.

        In a first look, one that loads late has no settings yet, and cannot be built.
        """
        if isinstance(value, Chosen):
            return value
        table = {self._key: value} if isinstance(value, str) else value
        if not isinstance(table, Mapping) or not isinstance(table.get(self._key), str):
            choices = ", ".join(self._registry.names())
            raise ValueError(f"must be a name, or a table with {self._key!r}; choices: {choices}")
        name = table[self._key]
        try:
            if info.context == FIRST_LOOK and self._registry.loads_late:
                self._registry.refuse_unknown(name)
                return Chosen(name, _unread, NoSettings())
            part = self._registry.find(name)
        except UnknownNameError as error:
            raise ValueError(str(error)) from error
        if not isinstance(getattr(part, "Settings", None), type):
            raise ValueError(f"the {self._registry.kind} {name!r} is {part!r}, which has no class Parameters")
        rest = {key: item for key, item in table.items() if key != self._key}
        return Chosen(name, part, part.Settings.model_validate(rest, context=info.context))

    def _describe(self, chosen: Chosen[Any]) -> dict[str, Any]:
        """The table that names the part, every default written out."""
        return {self._key: chosen.kind, **chosen.settings.model_dump(mode="json", by_alias=True)}


def _unread(*_: Any) -> NoReturn:
    raise AssertionError("this part was only looked at by its name")


class Registry(Generic[T]):
    """The parts of one kind, ours and third parties', by name.

    `ours` has them, or says where they are: "module:Class". Those that load late are known by their names
    alone in a first look.
    """

    def __init__(
        self, kind: str, group: str, ours: Mapping[str, T | str], *, loads_late: bool = False
    ) -> None:
        self.kind = kind
        self.group = group
        self.loads_late = loads_late
        self._ours = dict(ours)

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted({*self._ours, *self._entries})

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return ((name, self.find(name)) for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._entries

    def refuse_unknown(self, name: str, where: str = "") -> None:
        """UnknownNameError lists the choices; ConfigurationError when a plug-in has taken a name of ours."""
        if name not in self._entries and name not in self._ours:
            raise UnknownNameError(self.kind, name, self.names(), where)

    def find(self, name: str, where: str = "") -> T:
        """What is registered as `name`; as `refuse_unknown` otherwise.

        ConfigurationError too when a plug-in cannot be loaded.
        """
        self.refuse_unknown(name, where)
        entries = self._entries
        if name in self._ours:
            part = self._ours[name]
            return cast(T, EntryPoint(name, part, self.group).load() if isinstance(part, str) else part)
        try:
            return cast(T, entries[name].load())
        except Exception as error:  # whatever a module can do while it is imported
            why = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
            raise ConfigurationError(
                f"entry point {entries[name].value!r} of group {self.group!r}, which registers the "
                f"{self.kind} {name!r}, cannot be loaded ({why})"
            ) from error

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        """Third parties' entry points."""
        by_name: dict[str, EntryPoint] = {}
        for entry in installed_entry_points().get(self.group, ()):
            if entry.name in self._ours or entry.name in by_name:
                raise ConfigurationError(
                    f"entry point {entry.value!r} of group {self.group!r} registers the {self.kind} "
                    f"{entry.name!r}, which is taken; rename one of them"
                )
            by_name[entry.name] = entry
        return by_name


keep_old_names(__name__)
