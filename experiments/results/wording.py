"""The word for the mean of hits, in the texts of runs whose objective is not `labels`.

Texts are written with the word of `labels`, accuracy. What shows them puts them through `told`, which writes
the word of their objective in its place, and leaves alone keys, paths and names that users gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

ACCURACY = "accuracy"

TEXTS = (
    *("absence", "alternative", "arms", "caption", "figure", "lead", "notes"),
    *("plots", "remarks", "sentences", "table", "tables", "title"),
)
"""The fields with texts of tables, of plots, and of what holds them."""

_WRITTEN = r"(?<![\w.`'\"/])accurac(?:y|ies)(?![\w`'\"/]|\.\w)"

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Words:
    """What the mean of hits is called in texts, and the names that users gave to what is in them."""

    word: str
    names: Collection[str] = ()


def told(words: Words, content: T) -> T:
    """The content in these words: texts, lists and tables of them, and what has fields of `TEXTS`.

    What was told once stays as it is.

    >>> told(Words("tokens right", ["high accuracy"]), "Accuracy of high accuracy: round.log_client_accuracy")
    'Tokens right of high accuracy: round.log_client_accuracy'
    """
    if words.word == ACCURACY:
        return content
    capital = words.word[:1].upper() + words.word[1:]
    own = {*words.names, words.word, capital}
    kept = [name for name in own if re.search(_WRITTEN, name, re.IGNORECASE)]
    names = (rf"(?<!\w){re.escape(name)}(?!\w)|" for name in sorted(kept, key=len, reverse=True))
    pattern = re.compile(f"(?P<name>{''.join(names)}(?!))|(?i:{_WRITTEN})")

    def written(found: re.Match[str]) -> str:
        return found[0] if found["name"] else capital if found[0][0].isupper() else words.word

    return cast(T, _told(content, partial(pattern.sub, written)))


def in_its_words(make: Callable[P, T]) -> Callable[P, T]:
    """The function, whose texts are in the `words` of its first argument."""

    @wraps(make)
    def made(*arguments: P.args, **named: P.kwargs) -> T:
        return told(cast(Any, arguments[0]).words, make(*arguments, **named))

    return made


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
    texts = {name: tell(getattr(content, name)) for name in TEXTS if hasattr(content, name)}
    return replace(content, **texts) if texts else content
