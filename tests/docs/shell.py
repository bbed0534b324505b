"""The commands of a line of a shell: where each begins and ends, and its words.

Knows quotes, comments, redirections, and the operators between commands; substitutions stay as they are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<space>\\\n|\s+)"""
    r"""|(?P<comment>\#[^\n]*)"""
    r"""|(?P<redirection>(?:\d|&)?>>?(?:&\d)?|<)"""
    r"""|(?P<operator>&&|\|\||[;|&])"""
    r"""|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|&<>])+)""",
    re.VERBOSE | re.DOTALL,
)
QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
EXPANDED = re.compile(r"[$`*?~{!\\]|\[(?!\])")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class UnreadableLineError(ValueError):
    """A line that is no line of a shell, such as one with an open quote."""


@dataclass(frozen=True)
class SimpleCommand:
    """A program with its words, the first of which names it.

    `end` is where another word may be put into the line.
    """

    words: Sequence[str]
    end: int

    def after(self, *words: str) -> Sequence[str] | None:
        """The words after the first place where `words` stand in a row; None if they do not."""
        number = len(words)
        for first in range(len(self.words) - number + 1):
            if tuple(self.words[first : first + number]) == words:
                return self.words[first + number :]
        return None


def simple_commands(line: str) -> list[SimpleCommand]:
    """The commands of a line, without assignments of variables before them.

    >>> commands = simple_commands("A=1 ls -l 'a b' 2>&1 | wc >> out && pwd  # here")
    >>> [list(command.words) for command in commands]
    [['ls', '-l', 'a b'], ['wc'], ['pwd']]

    Raises UnreadableLineError.
    """
    return list(_commands(line))


def words_without_shell(line: str) -> list[str] | None:
    """The words of a line that is one program without anything that a shell does; None for any other.

    >>> words_without_shell("ls -l 'a *'  # here")
    ['ls', '-l', 'a *']
    >>> [words_without_shell(line) for line in ("ls a*", "ls > a", "ls && ls", "A=1 ls", "ls $A")]
    [None, None, None, None, None]
    """
    line = line.replace("\\\n", " ")
    try:
        [simple] = simple_commands(line)
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    return words if words == list(simple.words) and not EXPANDED.search(QUOTED.sub("", line)) else None


def _commands(line: str) -> Iterator[SimpleCommand]:
    words: list[str] = []
    position, end, redirected, ended = 0, 0, False, False
    while position < len(line):
        token = TOKEN.match(line, position)
        if token is None:
            raise UnreadableLineError(f"{line[position:]!r}: a quote is open, or a backslash ends the line")
        kind, text, position = token.lastgroup, token.group(), token.end()
        if kind == "operator":
            if words:
                yield SimpleCommand(tuple(words), end)
            words, ended = [], False
        elif kind == "redirection":
            redirected, ended = "&" not in text[1:], True
        elif kind == "word" and redirected:
            redirected = False
        elif kind == "word" and (words or not ASSIGNMENT.match(text)):
            words += shlex.split(text) or [""]
            end = end if ended else token.end()
    if words:
        yield SimpleCommand(tuple(words), end)
