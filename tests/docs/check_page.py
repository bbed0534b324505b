"""Checks the blocks of a page without running them, in their order, and the code in its sentences."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.docs import product
from tests.docs.blocks import Block, Page
from tests.docs.check_commands import problem_of_call, problems_of_command
from tests.docs.check_configurations import problem_of_file, problem_of_text
from tests.docs.check_inline import problem_of_inline
from tests.docs.check_python import Frames, Namespace, check_python, constants
from tests.docs.page_state import PageState


def problems_of_page(page: Page, frames: Frames | None = None) -> list[str]:
    """What is wrong on a page, a line `page:line: what` for each problem.

    Args:
        page: The page.
        frames: The columns of each frame; by default those that frames have.
    """
    columns = product.frames() if frames is None else frames
    checked = Page(page.name, problems=list(page.problems))
    with tempfile.TemporaryDirectory() as name:
        state = PageState(Path(name, "first"), Namespace(columns))
        for block in page.blocks:
            if block.begins_folder:
                state.forget_modules()
                state = PageState(Path(name, str(block.line)), Namespace(columns))
            _check_block(block, state, checked)
        for code in page.inline:
            if problem := problem_of_inline(code.text, state):
                checked.add_problem(code.line, problem)
        state.forget_modules()
    return sorted(checked.problems, key=_line_of)


def _line_of(problem: str) -> int:
    return int(problem.split(":")[1])


def _check_block(block: Block, state: PageState, page: Page) -> None:
    """Check a block, and let what it saves be at hand below it."""
    if block.append and not state.has(block.append):
        page.add_problem(block.line, f"append: no block above is saved as {block.append!r}")
        return
    if block.file or block.append:
        state.save(block)
    if (check := CHECKS.get(block.language)) is not None:
        check(block, state, page)


def _check_bash(block: Block, state: PageState, page: Page) -> None:
    text = block.content.replace("\\\n", "  ")
    for number, line in enumerate(text.splitlines(), block.line + 1):
        for problem in problems_of_command(line, state, is_run=False):
            page.add_problem(number, problem)


def _check_console(block: Block, state: PageState, page: Page) -> None:
    """Check the commands of a block, but for the last one if that is to fail."""
    commands = list(zip(block.commands, block.commands_as_run, strict=True))
    for shown, run in commands[:-1] if block.fails else commands:
        for text in dict.fromkeys((shown.text, run.text)):
            for problem in problems_of_command(text, state, is_run=not block.not_run):
                page.add_problem(shown.line, problem)


def _check_toml(block: Block, state: PageState, page: Page) -> None:
    name = block.file or block.append
    problem = problem_of_file(name, state) if name else problem_of_text(block.content, state)
    if problem:
        page.add_problem(block.line, problem)


def _check_python(block: Block, state: PageState, page: Page) -> None:
    namespace = state.namespace
    if block.file or block.append:
        namespace = Namespace(namespace.frames, modules=namespace.modules)
        name = Path(block.file or block.append or "").with_suffix("").as_posix().replace("/", ".")
        known = state.namespace.modules.get(name)
        if block.append and known is not None:
            namespace = Namespace(namespace.frames, modules=namespace.modules, names=known)
            text = (state.folder / block.append).read_text(encoding="utf-8")
            before = text.removesuffix(block.content)
            check_python(before, namespace, lambda line, problem: None, lambda arguments: "")

    def add(line: int, problem: str) -> None:
        page.add_problem(block.line + line, problem)

    def problem(arguments: Mapping[str, Any]) -> str:
        return problem_of_call(arguments, state)

    check_python(block.content, namespace, add, problem)
    for line, text in constants(block.content):
        if not text.startswith("-") and (found := problem_of_inline(text, state)):
            add(line, found)


def _check_csv(block: Block, state: PageState, page: Page) -> None:
    rows = list(csv.reader(io.StringIO(block.content)))
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            page.add_problem(
                block.line + number, f"{len(row)} cells in a row, and {len(rows[0])} in the header"
            )


def _check_json(block: Block, state: PageState, page: Page) -> None:
    try:
        json.loads(block.content)
    except ValueError as error:
        if "…" not in block.content:
            page.add_problem(block.line, f"no JSON: {error}")


CHECKS: Mapping[str, Callable[[Block, PageState, Page], None]] = {
    "bash": _check_bash,
    "console": _check_console,
    "csv": _check_csv,
    "json": _check_json,
    "python": _check_python,
    "toml": _check_toml,
}
