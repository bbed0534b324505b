"""The blocks of a page of documentation: their language, content and directives, and what is wrong with them.

A page is Markdown. A directive is an HTML comment on a line directly above a block, and says what
`make docs-test` does with it; CONTRIBUTING.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.shell import UnreadableLineError, simple_commands

ROOT = Path(__file__).resolve().parents[2]
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")

LANGUAGES = ("console", "toml", "python", "csv", "text", "bash", "json", "bibtex")
OF_THE_SITE = ("{toctree}",)
"""Fences that are no code: what the site makes of them."""
DIRECTIVES = ("file", "append", "shorten", "fails", "not run", "folder")
SAVED = ("toml", "python", "csv", "json", "text", "bash")
"""Languages of blocks that may be saved as a file."""

COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
PROMPT = "$ "
RUN = ("driftscale", "run")
PIP = {"pip"}


@dataclass(frozen=True)
class Command:
    """A command of a console block: its number of line on the page, its text, and the output below it."""

    line: int
    text: str
    output: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The path of its page, from the root.
        line: The line of its opening fence.
        language: One of `LANGUAGES`.
        content: Its text, without the fences.
        file: The name of the file that it is saved as; None if it is not.
        append: The name of the file that it is appended to; None if it is to none.
        shortened: Pairs of a text and what replaces it when the block is run by a test.
        options: What is then added to its lines of `driftscale run`.
        fails: The exit code of its last command.
        not_run: Why it is not run; empty if it is.
        begins_folder: Whether it is the first of another empty folder.
    """

    page: str
    line: int
    language: str
    content: str
    file: str | None = None
    append: str | None = None
    shortened: tuple[tuple[str, str], ...] = ()
    options: str = ""
    fails: int = 0
    not_run: str = ""
    begins_folder: bool = False

    @property
    def is_shortened(self) -> bool:
        """Whether what a test runs is not what the page shows."""
        return bool(self.shortened or self.options)

    @property
    def as_run(self) -> str:
        """The content as a test runs it."""
        content = self.content
        for old, new in self.shortened:
            content = content.replace(old, new)
        if not self.options:
            return content
        lines = content.splitlines()
        for command in reversed(_commands(self.line, content)):
            first = command.line - self.line - 1
            number = command.text.count("\n") + 1
            lines[first : first + number] = (PROMPT + _with_options(command.text, self.options)).splitlines()
        return "\n".join(lines) + "\n"

    @cached_property
    def commands(self) -> list[Command]:
        """The commands of a console block as the page shows them."""
        return _commands(self.line, self.content)

    @cached_property
    def commands_as_run(self) -> list[Command]:
        """The commands of a console block as a test runs them."""
        return _commands(self.line, self.as_run)


@dataclass(frozen=True)
class InlineCode:
    """Code in a sentence: the line on its page, and its text on one line."""

    line: int
    text: str


@dataclass
class Page:
    """A page: its blocks in their order, the code in its sentences, and what is wrong with its blocks.

    A problem is a line `page:line: what`.
    """

    name: str
    blocks: list[Block] = field(default_factory=list)
    inline: list[InlineCode] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def num_commands(self) -> int:
        """The number of commands, and of blocks of Python, that are run."""
        return sum(
            len(block.commands) if block.language == "console" else block.language == "python"
            for block in self.blocks
            if not (block.not_run or block.file or block.append)
        )

    @property
    def lines_run(self) -> list[str]:
        """The commands of the console blocks that are run."""
        consoles = [block for block in self.blocks if block.language == "console" and not block.not_run]
        return [command.text for block in consoles for command in block.commands]

    @property
    def installs(self) -> bool:
        """Whether a block that is run installs a package with pip."""
        return any(PIP & set(simple.words[:3]) for line in self.lines_run for simple in simple_commands(line))

    def add_problem(self, line: int, problem: str) -> None:
        """Note that something is wrong on a line."""
        self.problems.append(f"{self.name}:{line}: {problem}")


def documented_files(root: Path = ROOT) -> list[str]:
    """The paths of all pages, from the root; folders whose names begin with "_" are the site's own."""
    below = (path.relative_to(root) for path in (root / "docs").rglob("*.md"))
    return [
        *(name for name in AT_THE_TOP if (root / name).is_file()),
        *sorted(path.as_posix() for path in below if not any(part.startswith("_") for part in path.parts)),
    ]


def read_page(name: str, root: Path = ROOT) -> Page:
    """The page at the path `name` below `root`."""
    return parse_page(name, (root / name).read_text(encoding="utf-8"))


def parse_page(name: str, text: str) -> Page:
    """The page of this name and Markdown."""
    page = Page(name)
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    lines = text.splitlines()
    comments: list[Token] = []  # those directly above the next token, if it follows at once
    for token in tokens:
        if token.map is None:
            continue
        if comments and comments[-1].map[1] != token.map[0]:
            _refuse_directives(page, comments)
            comments = []
        if token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            comments.append(token)
        elif token.type == "fence":
            _add_block(page, token, comments, lines)
            comments = []
        elif token.type == "code_block":
            page.add_problem(token.map[0] + 1, "an indented block; fence it, with a language")
        elif token.type == "inline":
            page.inline += _inline_code(token)
        if token.type not in ("html_block", "fence"):
            _refuse_directives(page, comments)
            comments = []
    _refuse_directives(page, comments)
    return page


def _inline_code(token: Token) -> Iterator[InlineCode]:
    for found in INLINE_CODE.finditer(token.content):
        line = token.map[0] + 1 + token.content.count("\n", 0, found.start())
        yield InlineCode(line, " ".join(found[2].split()))


def _refuse_directives(page: Page, comments: Sequence[Token]) -> None:
    """Note directives that stand above nothing; other comments are nobody's concern."""
    for line, text in _lines_of(comments):
        word = text.partition(":")[0].strip()
        if word in DIRECTIVES:
            page.add_problem(line, f"the directive {word!r} is not on the line directly above a block")


def _lines_of(comments: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """The line and the text of each comment."""
    for token in comments:
        for found in COMMENT.finditer(token.content):
            yield (
                token.map[0] + 1 + token.content.count("\n", 0, found.start()),
                " ".join(found[1].split()),
            )


def _add_block(page: Page, token: Token, comments: Sequence[Token], lines: Sequence[str]) -> None:
    line, language = token.map[0] + 1, token.info.strip()
    before = len(page.problems)
    if not lines[token.map[1] - 1].strip(" >").startswith(token.markup) or token.map[1] == line:
        page.add_problem(line, "a block that no fence closes")
    if language.split(maxsplit=1)[:1] and language.split()[0] in OF_THE_SITE:
        return
    if not language:
        page.add_problem(line, f"a block without a language; choices: {', '.join(LANGUAGES)}")
    elif language not in LANGUAGES:
        page.add_problem(line, f"unknown language {language!r}; choices: {', '.join(LANGUAGES)}")
    block = _with_directives(page, Block(page.name, line, language, token.content), comments)
    if len(page.problems) == before:
        _check_directives(page, block)
    if language in LANGUAGES:
        page.blocks.append(block)


def _with_directives(page: Page, block: Block, comments: Sequence[Token]) -> Block:
    """The block with what the comments above it say."""
    given: dict[str, list[str]] = {}
    for line, text in _lines_of(comments):
        word, colon, value = (part.strip() for part in text.partition(":"))
        if word not in DIRECTIVES:
            page.add_problem(line, f"unknown directive {word!r}; choices: {', '.join(DIRECTIVES)}")
        elif not value or not colon:
            page.add_problem(line, f"the directive {word!r} has no value")
        elif word in given and word != "shorten":
            page.add_problem(line, f"the directive {word!r} is given twice")
        else:
            problem = PROBLEMS[word](value, block)
            if problem:
                page.add_problem(line, f"{word}: {problem}")
            else:
                given.setdefault(word, []).append(value)
    shorten = given.get("shorten", [])
    return Block(
        block.page,
        block.line,
        block.language,
        block.content,
        file=given.get("file", [None])[0],
        append=given.get("append", [None])[0],
        shortened=tuple(_pair(value) for value in shorten if not value.startswith("+")),
        options=" ".join(value.removeprefix("+").strip() for value in shorten if value.startswith("+")),
        fails=int(given.get("fails", ["0"])[0]),
        not_run=given.get("not run", [""])[0],
        begins_folder="folder" in given,
    )


def _wrong_name(value: str, block: Block) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts:
        return f"{value!r} leads out of the page's folder"
    return "" if block.language in SAVED else f"a {block.language} block is no file"


def _wrong_shortening(value: str, block: Block) -> str:
    if value.startswith("+"):
        has_run = any(tuple(words[:2]) == RUN for words in _words_of(block))
        return "" if has_run else f"{value}: the block has no line of {' '.join(RUN)!r}"
    if " => " not in f"{value} ":
        return f"{value!r} must be OLD => NEW, or + OPTIONS"
    old, _ = _pair(value)
    return "" if old in block.content else f"the block has no {old!r}"


def _wrong_code(value: str, block: Block) -> str:
    is_code = value.isdigit() and 0 < int(value) < 256
    fits = is_code and block.language == "console"
    return "" if fits else f"{value!r} must be the exit code of a console block's last command"


PROBLEMS: Mapping[str, Callable[[str, Block], str]] = {
    "file": _wrong_name,
    "append": _wrong_name,
    "shorten": _wrong_shortening,
    "fails": _wrong_code,
    "not run": lambda value, block: "",
    "folder": lambda value, block: "" if value == "new" else f"{value!r} must be new",
}
"""For each directive, what is wrong with a value of it above a block; empty if nothing is."""


def _words_of(block: Block) -> Iterator[Sequence[str]]:
    for command in block.commands:
        try:
            for simple in simple_commands(command.text):
                if "driftscale" in simple.words:
                    yield simple.words[simple.words.index("driftscale") :]
        except UnreadableLineError:
            continue  # is noted where the commands are looked at


def _pair(value: str) -> tuple[str, str]:
    old, _, new = f"{value} ".partition(" => ")
    return old, new.strip()


def _check_directives(page: Page, block: Block) -> None:
    """Note directives that exclude each other, and blocks that need one."""
    if block.file and block.append:
        page.add_problem(block.line, "the block is both a file and appended to one")
    if block.not_run and (block.file or block.append or block.is_shortened or block.fails):
        page.add_problem(block.line, "a block that is not run has another directive on how it is run")
    if block.language == "csv" and not (block.file or block.append or block.not_run):
        page.add_problem(block.line, "a csv block without the name of its file: <!-- file: NAME -->")
    if block.language == "bash" and not (block.file or block.not_run):
        page.add_problem(block.line, "a bash block is not run: <!-- not run: REASON -->")
    if block.language == "console" and not block.content.startswith(PROMPT):
        page.add_problem(block.line, f"a console block must begin with a command: {PROMPT!r}")


def _commands(line: int, content: str) -> list[Command]:
    """The commands of a console block whose fence is on this line of its page."""
    found: list[tuple[int, list[str], list[str]]] = []
    is_continued = False
    for number, text in enumerate(content.splitlines(), line + 1):
        if is_continued:
            found[-1][1].append(text)
        elif text.startswith(PROMPT):
            found.append((number, [text.removeprefix(PROMPT)], []))
        elif found:
            found[-1][2].append(text)
        is_continued = text.endswith("\\") and (is_continued or text.startswith(PROMPT))
    return [Command(number, "\n".join(texts), _without_blank_end(output)) for number, texts, output in found]


def _without_blank_end(lines: Sequence[str]) -> tuple[str, ...]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return tuple(lines[:end])


def _with_options(text: str, options: str) -> str:
    """A command with `options` at the end of each `driftscale run` in it."""
    for simple in reversed(simple_commands(text)):
        if simple.after(*RUN) is not None:
            text = f"{text[: simple.end]} {options}{text[simple.end :]}"
    return text
