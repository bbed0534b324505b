"""Patterns over the paths of files, which say whose each file is, such as `{client}/*.csv`.

A `*` is any text within a folder or a name, and `{client}` one of at least one letter. Both are as short as
possible, from left to right. Nothing here reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from emulator.errors import DataFileError

CLIENT = "{client}"

MOST_LETTERS = 1024
"""Longest pattern."""

_WILD = re.compile(r"(\{client\}|\*)")
_TWO_WILD = re.compile(r"(\{client\}|\*){2}")


class TwoClientsError(ValueError):
    """A path in which a pattern finds two clients."""


class PathPattern(NamedTuple):
    """A pattern, compiled; `agreeing` wants the same client everywhere, `any` takes different ones."""

    text: str
    agreeing: re.Pattern[str]
    any: re.Pattern[str]

    def client(self, path: str) -> str | None:
        """The client of the file at `path`, relative with slashes; None if the path does not match.

        Raises TwoClientsError if two places of the pattern have different clients.

        >>> parse_path_pattern("{client}/{client}_*.csv").client("ann/ann_2024_01.csv")
        'ann'
        >>> parse_path_pattern("*/{client}_*.jpg").client("cat/ann_7.png") is None
        True
        """
        match = self.agreeing.match(path)
        if match is None and (match := self.any.match(path)) is not None:
            one, *others = match.groups()
            other = next(name for name in others if name != one)
            raise TwoClientsError(f"{one!r} and {other!r}")
        return match["client"] if match is not None else None


def parse_path_pattern(text: str) -> PathPattern:
    """Compile a pattern; ValueError if it is none, with the rule that it breaks."""
    if len(text) > MOST_LETTERS:
        raise ValueError(f"has {len(text)} letters; a pattern has at most {MOST_LETTERS}")
    if CLIENT not in text:
        raise ValueError(f"has no {CLIENT}, which stands for the client, as in {CLIENT}/*.csv")
    if "**" in text:
        raise ValueError("has **; a * is a text within one folder: write one for each, as */*.csv")
    if not {"", ".", ".."}.isdisjoint(text.split("/")):
        raise ValueError(f"is no path below the root, as {CLIENT}/*.csv is: folders between single slashes")
    if (both := _TWO_WILD.search(text)) is not None:
        raise ValueError(f"has {both[0]}: with no text between, there is no telling where one ends")
    if not {"{", "}"}.isdisjoint(text.replace(CLIENT, "")):
        raise ValueError(f"has other braces than those of {CLIENT}")
    return PathPattern(text, _compiled(text, agreeing=True), _compiled(text, agreeing=False))


def _compiled(text: str, *, agreeing: bool) -> re.Pattern[str]:
    r"""The regular expression of a pattern; its groups are the clients, the first one `client`.

    NOTE: a wild card and the text behind it are one atomic group, as the first place of that text is right if
    any is: matching takes time in proportion to the length of the path.
    """
    clients, pieces = 0, [""]  # each begins with a wild card, but for the first one
    for part in _WILD.split(text):
        if part == "*":
            pieces.append("[^/]*?")
        elif part != CLIENT:
            pieces[-1] += re.escape(part)
        elif clients and agreeing:
            pieces[-1] += "(?P=client)"
        else:
            pieces.append("([^/]+?)" if clients else "(?P<client>[^/]+?)")
            clients += 1
    pieces[-1] += r"\Z"
    return re.compile(pieces[0] + "".join(f"(?>{piece})" for piece in pieces[1:]), re.DOTALL)


class MatchedFiles(NamedTuple):
    """The files that a pattern matches: their numbers (k,) among all, and the client of each (k,).

    `note` says which files are left out, if any are.
    """

    numbers: tuple[int, ...]
    clients: tuple[str, ...]
    note: str | None


def match_files(pattern: str, root: Path, paths: Sequence[str], what: str) -> MatchedFiles:
    """Match the files below `root` to a pattern.

    Args:
        pattern: the pattern.
        root: the folder, for messages.
        paths: of the files, relative to it, at least one.
        what: what the files are, such as "table".

    Raises:
        DataFileError: no file matches, or one has two clients.
    """
    compiled = parse_path_pattern(pattern)
    numbers, clients, others = [], [], []
    for number, path in enumerate(paths):
        try:
            client = compiled.client(path)
        except TwoClientsError as error:
            raise DataFileError(
                root,
                f"{path}: --client-from {pattern} finds two clients in this path, {error}; a file is one "
                f"client's: put a * in place of the other",
            ) from error
        if client is None:
            others.append(path)
        else:
            numbers.append(number)
            clients.append(client)
    if not numbers:
        raise DataFileError(
            root, f"no {what} in it matches --client-from {pattern}; one that is there is {paths[0]}"
        )
    note = None
    if others:
        files = f"1 {what} does" if len(others) == 1 else f"{len(others)} {what}s do"
        note = f"{files} not match --client-from {pattern}: left out; the first: {others[0]}"
    return MatchedFiles(tuple(numbers), tuple(clients), note)


PatternText = Annotated[str, AfterValidator(lambda text: parse_path_pattern(text).text)]
"""A setting that is a pattern; one that is none is refused with the settings."""
