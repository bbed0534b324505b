"""The word for the mean of hits, in the texts of runs whose objective is not `labels`.

Texts are written with the word of `labels`, accuracy. What shows them puts them through `told`, which writes
the word of their objective in its place, and leaves alone names of files, keys and arms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

LABELS, ACCURACY = "labels", "accuracy"
"""The objective of a header that has none, and its word."""

_WRITTEN = r"(?<![\w.`'\"/])accurac(?:y|ies)(?![\w`'\"/]|\.\w)"

T = TypeVar("T")
P = ParamSpec("P")


class Told(Protocol):
    """What texts are about: a summary, a report, or a section of several run directories."""

    @property
    def word(self) -> str:
        """The word for the mean of hits."""

    @property
    def names(self) -> Collection[str]:
        """Names of users in its texts, in which nothing is replaced."""


@dataclass(frozen=True)
class Words:
    """A word and the names, of what has no summary and no section."""

    word: str
    names: Collection[str] = ()


def objective_of(header: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and the word of a run's objective, by the header of its log.

    >>> objective_of({"objective": {"kind": "next_token", "word": "tokens right"}}), objective_of({})
    (('next_token', 'tokens right'), ('labels', 'accuracy'))
    """
    recorded = header.get("objective", {"kind": LABELS, "word": ACCURACY})
    return str(recorded["kind"]), str(recorded["word"])


def told(of: Told, content: T) -> T:
    """The content with the word of `of`: texts, lists and tables of them, and what names its own in `TEXTS`.

    What was told once stays as it is.

    >>> told(Words("tokens right", ["high accuracy"]), "Accuracy of high accuracy: round.log_client_accuracy")
    'Tokens right of high accuracy: round.log_client_accuracy'
    """
    if of.word == ACCURACY:
        return content
    kept = sorted((name for name in {*of.names, of.word} if re.search(_WRITTEN, name, re.I)), key=len)
    names = "".join(rf"(?<!\w){re.escape(name)}(?!\w)|" for name in reversed(kept))
    put = partial(re.compile(f"(?P<name>{names}(?!))|(?i:{_WRITTEN})").sub, partial(_written, of.word))
    return cast(T, _told(content, put))


def in_its_word(make: Callable[P, T]) -> Callable[P, T]:
    """The function, whose texts have the word of its first argument."""

    @wraps(make)
    def made(*arguments: P.args, **named: P.kwargs) -> T:
        return told(cast(Told, arguments[0]), make(*arguments, **named))

    return made


def _written(word: str, found: re.Match[str]) -> str:
    """The word in the place of what was found, with a capital where that has one; a name as it is."""
    if found["name"]:
        return found[0]
    return word[0].upper() + word[1:] if word and found[0][0].isupper() else word


def _told(content: Any, put: Callable[[str], str]) -> Any:
    tell = partial(_told, put=put)
    if isinstance(content, str):
        return put(content)
    if isinstance(content, list | tuple):
        return type(content)(map(tell, content))
    if isinstance(content, dict):
        return {key: tell(value) for key, value in content.items()}
    if hasattr(content, "with_texts"):
        return content.with_texts(tell)
    names: tuple[str, ...] = getattr(content, "TEXTS", ())
    return replace(content, **{name: tell(getattr(content, name)) for name in names}) if names else content
