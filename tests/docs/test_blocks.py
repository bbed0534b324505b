"""Reading the blocks of a page: languages, directives, commands, and what is refused."""

from __future__ import annotations

import pytest

from tests.docs.blocks import Page, parse_page


def a_page(*lines: str) -> Page:
    return parse_page("page.md", "\n".join(lines) + "\n")


def a_block(*lines: str, language: str = "console", directives: tuple[str, ...] = ()) -> Page:
    above = (f"<!-- {directive} -->" for directive in directives)
    return a_page("# Title", *above, f"```{language}", *lines, "```")


def test_a_block_has_the_line_of_its_fence_its_language_and_its_content() -> None:
    page = a_page("# Title", "", "1. In a list:", "", "   ```toml", "   [round]", "   rounds = 1", "   ```")
    [block] = page.blocks
    assert (block.line, block.language, block.content) == (5, "toml", "[round]\nrounds = 1\n")
    assert page.problems == []


def test_directives_stand_directly_above_their_block() -> None:
    page = a_block(
        "$ driftscale run mine.toml",
        directives=("shorten: + --seeds 0", "shorten: mine => yours", "fails: 2", "folder: new"),
    )
    [block] = page.blocks
    assert page.problems == []
    assert (block.fails, block.begins_folder, block.is_shortened) == (2, True, True)
    assert block.as_run == "$ driftscale run yours.toml --seeds 0\n"
    assert a_page("<!-- file: a.py -->", "", "```python", "1", "```").problems == [
        "page.md:1: the directive 'file' is not on the line directly above a block"
    ]
    assert a_page("Text <!-- with a comment -->", "<!-- and another -->").problems == []


def test_options_are_added_to_each_run_before_what_is_not_an_option() -> None:
    page = a_block(
        "$ driftscale run a.toml --set 'x=\"#|\"' \\",
        "    --jobs 2 > out  # two at once",
        "output",
        "$ driftscale check a.toml && driftscale run b.toml | head",
        directives=("shorten: + --seeds 0",),
    )
    [block] = page.blocks
    assert block.as_run.splitlines() == [
        "$ driftscale run a.toml --set 'x=\"#|\"' \\",
        "    --jobs 2 --seeds 0 > out  # two at once",
        "output",
        "$ driftscale check a.toml && driftscale run b.toml --seeds 0 | head",
    ]
    assert [(command.line, command.output) for command in block.commands] == [(4, ("output",)), (7, ())]


def test_code_in_sentences_has_its_line() -> None:
    page = a_page("With `a` and", "`b", "c`, and ``d ` e``.", "", "| `f` | g |", "|---|---|", "| `h` | |")
    assert [(code.line, code.text) for code in page.inline] == [
        *((1, "a"), (2, "b c"), (3, "d ` e"), (5, "f"), (7, "h")),
    ]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("```", "x", "```"), "1: a block without a language"),
        (("```sh", "x", "```"), "1: unknown language 'sh'"),
        (("Text", "", "    indented"), "3: an indented block"),
        (("1. Item", "", "       indented"), "3: an indented block"),
        (("```text", "x"), "1: a block that no fence closes"),
        (("<!-- flie: a.toml -->", "```toml", "```"), "1: unknown directive 'flie'; choices: file, "),
        (("<!-- file: -->", "```toml", "```"), "1: the directive 'file' has no value"),
        (("<!-- file: ../a -->", "```toml", "```"), "1: file: '../a' leads out of the page's folder"),
        (("<!-- file: a -->", "```console", "$ ls", "```"), "1: file: a console block is no file"),
        (("<!-- folder: old -->", "```toml", "```"), "1: folder: 'old' must be new"),
        (("<!-- fails: no -->", "```console", "$ ls", "```"), "1: fails: 'no' must be the exit code"),
        (("<!-- fails: 2 -->", "<!-- fails: 2 -->", "```console", "$ ls", "```"), "2: the directive"),
        (("<!-- shorten: 30 => 3 -->", "```python", "n = 20", "```"), "1: shorten: the block has no '30'"),
        (("<!-- shorten: 30 -->", "```python", "n = 30", "```"), "1: shorten: '30' must be OLD => NEW"),
        (("<!-- shorten: + -a -->", "```console", "$ ls", "```"), "1: shorten: + -a: the block has no line"),
        (("```console", "output", "```"), "1: a console block must begin with a command"),
        (("```csv", "a,b", "```"), "1: a csv block without the name of its file"),
        (("```bash", "ls", "```"), "1: a bash block is not run"),
        (("<!-- file: a -->", "<!-- not run: no -->", "```toml", "```"), "3: a block that is not run has"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_block_is_a_line_with_its_place(lines: tuple[str, ...], problem: str) -> None:
    [found] = a_page(*lines).problems
    assert found.startswith(f"page.md:{problem}")


def test_what_the_site_makes_of_a_fence_is_no_block() -> None:
    page = a_page("```{toctree}", "tutorial", "```")
    assert (page.blocks, page.problems) == ([], [])
