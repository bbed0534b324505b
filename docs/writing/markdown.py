"""Plain Markdown from texts of docstrings and descriptions: CommonMark with GitHub's tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from itertools import pairwise

WRITTEN = "<!-- Written by `make reference` -->"
"""The first line of every page."""

CODE = re.compile(r"`[^`]*`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
QUOTED = re.compile(r'"[^"`\s]*"')


def page(title: str, *blocks: str) -> str:
    """A page with its title; blocks that are empty are left out."""
    return (
        "\n\n".join([WRITTEN, f"# {title}", *(block.strip("\n") for block in blocks if block.strip())]) + "\n"
    )


def code(text: str) -> str:
    """Code within a line; empty if the text is.

    >>> code("a | b"), code("")
    ('`a | b`', '')
    """
    return f"`{text}`" if text else ""


def prose(text: str) -> str:
    """A text on one line, of which Markdown renders what it says, and only code and options as code.

    >>> prose("w_t <- w [x], `a_b` and *p* or <name>")
    'w_t <- w [x], `a_b` and \\\\*p\\\\* or \\\\<name>'
    """
    text = " ".join(text.split())
    ends = [0, *(end for match in CODE.finditer(text) for end in match.span()), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends)]
    return "".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts))


def sentence(text: str) -> str:
    """The text as `prose`, with a capital and a full stop.

    >>> sentence("when it closed")
    'When it closed.'
    """
    shown = prose(text)
    shown = shown[:1].upper() + shown[1:] if shown[:1] != "`" else shown
    return shown if not shown or shown[-1] in ".?!:" else f"{shown}."


def _escaped(text: str) -> str:
    text = re.sub(r"([*\\])", r"\\\1", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    text = re.sub(r"<(?=[A-Za-z/!?])", r"\\<", text)
    text = re.sub(r"\]\(", r"]\\(", text)
    return OPTION.sub(lambda match: code(match[0]), text)


def quoted_as_code(text: str) -> str:
    """The text as `prose`, with what stands between quotation marks as code, as TOML has it.

    >>> quoted_as_code('one of "near", "far"')
    'one of `"near"`, `"far"`'
    """
    return prose(QUOTED.sub(lambda match: code(match[0]), text))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; columns that are empty in all rows are left out, and the table if it has no rows.

    >>> print(table(["a", "b", "c"], [["1", "", "x | y"]]))
    | a | c |
    |---|---|
    | 1 | x \\| y |
    """
    if not rows:
        return ""
    kept = [column for column in range(len(headings)) if any(row[column] for row in rows)]
    lines = [_row([headings[column] for column in kept]), "|" + "---|" * len(kept)]
    return "\n".join([*lines, *(_row([row[column] for column in kept]) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def fence(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def heading(level: int, text: str) -> str:
    """A heading of that level."""
    return f"{'#' * level} {text}"


def anchor(text: str) -> str:
    """The anchor of a heading, as GitHub names it.

    >>> anchor("`[[arm]]`"), anchor("driftscale run"), anchor("results.plot_below()")
    ('arm', 'driftscale-run', 'resultsplot_below')
    """
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def paragraphs(docstring: str) -> list[str]:
    """The paragraphs of a docstring; lists stay lists, and what is indented is a block of its own."""
    blocks = []
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        if paragraph.startswith("    "):
            blocks.append(fence("text", inspect.cleandoc(f"\n{paragraph}")))
        elif paragraph.startswith("* "):
            items = re.split(r"^\* ", paragraph, flags=re.MULTILINE)[1:]
            blocks.append("\n".join(f"* {prose(item)}" for item in items))
        else:
            blocks.append(prose(paragraph))
    return blocks
