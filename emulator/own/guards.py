"""Guards around parts of one's own: what they return, what they raise, and whether they leave chance alone.

A part is guarded where it is built. What its methods return is held to what its protocol declares, by the
annotation and the rule (`emulator.plugins.returns`) of each method; an error that they raise names the part,
the method and the line. Parts of our packages are never guarded, so that no call of theirs costs more.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import wraps
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar, get_origin

from emulator.errors import ConfigurationError
from emulator.own.code import OwnCodeError, is_expected, name_of, packages, raised
from emulator.own.declared import WrongAnswerError, annotated, in_words, is_of, shown
from emulator.own.generators import Generators
from emulator.own_parts import GUARDS, is_ours, top_of

T = TypeVar("T")


class Call(NamedTuple):
    """A call of own code: whose it is, its method, where its chance is to come from, and its arguments.

    Those that it may write to are not among the `arguments`.
    """

    whose: str
    method: str
    chance: str
    arguments: tuple[Any, ...]


Inspector = Callable[[Call], AbstractContextManager[None]]

_END: Any = object()

_inspector: Inspector | None = None


@contextmanager
def inspecting(inspector: Inspector) -> Iterator[None]:
    """Context in which each call of a method of own code is in the context of `inspector`."""
    global _inspector
    before, _inspector = _inspector, inspector
    try:
        yield
    finally:
        _inspector = before


@contextmanager
def without_chance(call: Call) -> Iterator[None]:
    """An inspector: OwnCodeError if the call draws from a global generator, or seeds one."""
    generators, imported = Generators(), len(sys.modules)
    generators.begin()
    yield
    moved = generators.moved()
    if moved and len(sys.modules) == imported:  # a library may draw as it is imported
        raise OwnCodeError(f"{call.whose}: {call.method} {drawn_from(moved)}; {call.chance}")


def drawn_from(generators: list[str]) -> str:
    """What the error says of own code that moves global generators."""
    return f"draws from or seeds the global generator of {', '.join(generators)}, so that equal runs differ"


def build(what: str, make: Callable[..., T], *arguments: Any) -> T:
    """What `make`, a class or a function, makes of `arguments`: guarded, if `make` is of one's own.

    Args:
        what: The kind of part, such as "selector".
        make: The class or function.
        arguments: Its arguments.

    Raises:
        OwnCodeError: It is of one's own and raises an error.
        ConfigurationError: A method of it does not take the arguments of its protocol.
    """
    if is_ours(make):
        return make(*arguments)
    packages.add(top_of(make.__module__))
    whose, name = f"{what} {name_of(make)!r}", "__init__" if isinstance(make, type) else "it"
    made: T = _called(Call(whose, name, "", arguments), make, *arguments)
    return guarded(what, made) if isinstance(make, type) else made


def guarded(what: str, part: T, *protocols: Any) -> T:
    """`part` itself, whose methods are held to their protocol from now on, if its class is of one's own.

    Args:
        what: What it is, such as "selector".
        part: An object.
        protocols: Those that its class does not extend, but has to follow.

    Raises:
        ConfigurationError: A method does not take the arguments of its protocol, or its class cannot be
            extended by guards.
    """
    kind: Any = type(part)
    if not is_ours(kind) and (protocols or not hasattr(kind, GUARDS)):
        packages.add(top_of(kind.__module__))
        kind = getattr(kind, GUARDS, kind)
        members = _members(kind, what, protocols)
        if not members:  # as of types.SimpleNamespace
            return part
        try:
            object.__setattr__(part, "__class__", _guard(kind, what, protocols))  # also of a frozen dataclass
        except Exception as error:  # as of an enumeration
            raise ConfigurationError(
                f"{what} {name_of(kind)!r}: its class must be one that can be extended ({error})"
            ) from error
    return part


def _guard(kind: Any, what: str, protocols: tuple[Any, ...]) -> type:
    """A subclass of `kind` whose methods that a protocol declares, and own code defines, are guarded."""
    facts = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    members = {"__slots__": (), **facts, **_members(kind, what, protocols)}
    guard: type = type(kind)(kind.__name__, (kind,), members)
    setattr(guard, GUARDS, kind)  # now: pydantic would take it for a private attribute of instances
    return guard


def _members(kind: Any, what: str, protocols: tuple[Any, ...]) -> dict[str, Any]:
    """The methods and properties of `kind` that a protocol declares, and own code defines, guarded."""
    ours = [base for base in (*kind.__mro__, *protocols) if is_ours(base)]
    whose = f"{what} {name_of(kind)!r}"
    chance = next((str(vars(base)["chance"]) for base in ours if "chance" in vars(base)), "")
    members: dict[str, Any] = {}
    for name in dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("_")):
        base = next((base for base in kind.__mro__ if name in vars(base)), None)
        if base is None or is_ours(base):
            continue
        declared = [vars(base)[name] for base in ours if name in vars(base)]
        own = vars(base)[name]
        if isinstance(own, property) and own.fget is not None:
            members[name] = property(_guarded(own.fget, name, whose, chance, declared))
        elif inspect.isfunction(own):
            _refuse_misfit(own, declared[-1], f"{whose}: {name}")
            members[name] = _guarded(own, name, whose, chance, declared)
    return members


def _guarded(
    method: Callable[..., Any], name: str, whose: str, chance: str, declared: list[Any]
) -> Callable[..., Any]:
    functions = [getattr(of_base, "fget", of_base) for of_base in declared]
    where = next((found.returns for found in functions if hasattr(found, "returns")), None)
    rule = None if where is None else resolve_name(where)
    # The protocol's own, as that of a shipped part which is extended may be narrower.
    expected = next((kind for kind in map(annotated, reversed(functions)) if kind is not Any), Any)
    writes = any(getattr(found, "writes", False) for found in functions)

    def checked(answer: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if rule is not None:
                rule(answer, self, *args, **kwargs)
        except (WrongAnswerError, ValueError, TypeError, LookupError, AttributeError) as wrong:
            raise OwnCodeError(f"{whose}: {name} returned {shown(answer)}: {wrong}") from None
        return answer

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        of_call = Call(whose, name, chance, () if writes else (*args, *kwargs.values()))
        answer = _called(of_call, method, self, *args, **kwargs)
        if not is_of(answer, expected):
            must = in_words(expected)
            raise OwnCodeError(f"{whose}: {name} returned {shown(answer)}: must be {must}")
        if get_origin(expected) is Iterator:
            return _iterated(iter(answer), of_call, lambda item: checked(item, self, *args, **kwargs))
        return checked(answer, self, *args, **kwargs)

    return call


def _iterated(items: Iterator[T], call: Call, checked: Callable[[T], T]) -> Iterator[T]:
    """What own code yields, item by item as its method returns it."""
    while (item := _called(call, next, items, _END)) is not _END:
        yield checked(item)


def _called(call: Call, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What `function` returns; OwnCodeError, which names the call, for an error that is not expected."""
    try:
        with nullcontext() if _inspector is None else _inspector(call):
            return function(*args, **kwargs)
    except (Exception, SystemExit) as error:
        if is_expected(error):
            raise
        raise raised(error, f"{call.whose}: {call.method} ") from error


def _refuse_misfit(own: Callable[..., Any], declared: Any, whose: str) -> None:
    """ConfigurationError unless a method takes the arguments of the protocol's."""
    if not inspect.isfunction(declared):
        return
    names, signature = list(inspect.signature(declared).parameters), inspect.signature(own)
    try:
        signature.bind(*names)
    except TypeError as error:
        with suppress(TypeError):  # those that callers name may be taken by name alone
            signature.bind(names[0], **dict.fromkeys(names[1:]))
            return
        raise ConfigurationError(
            f"{whose}{signature}: must take ({', '.join(names)}), the arguments of its protocol"
        ) from error
