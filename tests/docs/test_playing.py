"""Playing a page: files, commands and output, in folders of its own; here with commands of a shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import playing
from tests.docs.blocks import parse_page
from tests.docs.namespace import run
from tests.docs.playing import Environment, Played, matches, play


@pytest.fixture
def played(tmp_path: Path):
    """Plays a page of this Markdown; what became of it."""

    def play_text(*lines: str) -> Played:
        page = parse_page("page.md", "\n".join(lines) + "\n")
        assert page.problems == []
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        place.mkdir()
        return play(page, Environment(tmp_path, place / "home"), place)

    return play_text


def test_blocks_are_played_in_their_order_in_a_folder_that_is_empty_first(played) -> None:
    result = played(
        *("```console", "$ ls -A", "$ echo $HOME | grep -c page", "0", "```"),
        *("<!-- file: a/b.toml -->", "```toml", "x = 1", "```"),
        *("<!-- append: a/b.toml -->", "```toml", "y = 2", "```"),
        *("```console", "$ cat a/b.toml", "x = 1", "y = 2", "```"),
        *("<!-- folder: new -->", "```console", "$ ls -A", "$ ls a 2>/dev/null || echo none", "none", "```"),
        *("```toml", "z = 3", "```"),
    )
    assert "grep" in result.failure, "nothing of the home is in the folder, and grep -c ends with 1"
    assert result.num_run == 0


def test_a_page_that_is_as_it_says_has_no_failure(played) -> None:
    result = played(
        *("<!-- file: a/b.toml -->", "```toml", "x = 1", "```"),
        *("<!-- append: a/b.toml -->", "```toml", "y = 2", "```"),
        *("```console", "$ cat a/b.toml", "x = 1", "y = 2", "$ ls -A $HOME", "```"),
        *("<!-- folder: new -->", "```console", "$ ls -A | wc -l", "0", "```"),
        *("<!-- not run: needs a cluster -->", "```console", "$ false", "```"),
        *("<!-- shorten: 30 => 1 -->", "```console", "$ sleep 30", "anything", "```"),
        *("<!-- fails: 3 -->", "```console", "$ true", "$ exit 3", "```"),
        *("```toml", "z = 3", "```", "```text", "output", "```"),
    )
    assert (result.failure, result.num_run, result.num_shortened) == ("", 6, 1)
    assert result.not_run == ["page.md:21: needs a cluster"]


@pytest.mark.parametrize(
    ("lines", "failure"),
    [
        (("```console", "$ true", "$ echo no; false", "```"), "page.md:3: echo no; false\nended with 1\nno"),
        (("```console", "$ echo 2", "1", "```"), "page.md:2: echo 2\nprinted\n2\n\nand the page shows\n1"),
        (("<!-- fails: 2 -->", "```console", "$ true", "```"), "page.md:3: true\nended with 0, not with 2"),
    ],
)  # fmt: skip
def test_a_block_that_fails_is_named_with_its_line_command_and_output(
    played, lines: tuple[str, ...], failure: str
) -> None:
    assert played(*lines).failure.startswith(failure)


def test_a_command_without_an_end_is_stopped_with_what_it_has_started(
    played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "MOST_S", 0.2)
    result = played("```console", "$ echo before; sleep 1000 & sleep 1000", "```")
    assert "has not ended within 0 s\nbefore" in result.failure
    assert not Environment.running


DRIFTSCALE = ["/bin/python", "/bin/driftscale"]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("driftscale run a.toml --set x=[]  # here", [*DRIFTSCALE, "run", "a.toml", "--set", "x=[]"]),
        ("driftscale view \\\n    'runs/a b'", [*DRIFTSCALE, "view", "runs/a b"]),
        ("python search.py", ["/bin/python", "search.py"]),
        ("python -m pytest -q test_mine.py", ["/bin/python", "-m", "pytest", "-q", "test_mine.py"]),
    ],
)  # fmt: skip
def test_python_is_forked_where_no_shell_is_needed(tmp_path: Path, line: str, command: list[str]) -> None:
    environment = Environment(Path("/bin"), tmp_path / "home", forks=True)
    assert list(map(str, environment.command(line))) == command


@pytest.mark.parametrize(
    "line",
    [
        *("driftscale view a | head", "cd a && driftscale view b", "driftscale view a > out", "python -V"),
        *("A=1 driftscale view a", "driftscale view $A", "driftscale view *", "driftscale view a; exit 1"),
        *("driftscale run a.toml --jobs 2", "driftscale cluster worker", "python -m pip install .", "ls"),
        *("timeout --signal=INT 5 driftscale run a.toml || true", "driftscale view 'a"),
    ],
)  # fmt: skip
def test_what_a_shell_does_and_workers_take_a_real_start(tmp_path: Path, line: str) -> None:
    environment = Environment(Path("/bin"), tmp_path / "home", forks=True, workers=True)
    assert list(environment.command(line)) == ["bash", "-c", line]


def test_a_run_is_played_without_its_jobs_but_for_the_first_of_a_page_with_workers(tmp_path: Path) -> None:
    lines = [f"driftscale run a.toml --jobs {value} --seeds 0" for value in ("2", "auto")]
    without = "driftscale run a.toml --seeds 0"
    for workers, played in ((False, [without, without]), (True, [lines[0], without])):
        environment = Environment(tmp_path, tmp_path / f"home-{workers}", workers=workers)
        assert environment.command(lines[1], is_shown=True)[-1] == lines[1], "output is compared as shown"
        assert [environment.command(line)[-1] for line in lines] == played
        assert environment.num_without_jobs == played.count(without)
        assert environment.command("pytest --jobs 2")[-1] == "pytest --jobs 2"


def test_documented_output_may_leave_out_what_differs() -> None:
    assert matches(["1 of …", "…", "done"], "1 of 3 \n2 of 3\n\n3 of 3\ndone\n\n")
    assert matches(["…", "done"], "done\n")
    assert not matches(["done"], "done, with a warning\n")
    assert not matches(["1 of …"], "1 of 3\n2 of 3\n")


def test_blocks_of_python_share_a_namespace_and_fail_with_the_lines_of_their_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, object] = {}
    assert run("x = 1\n", "page.md", 4, names) == ""
    assert run("def f():\n    return x / 0\n\nx + 1", "page.md", 8, names) == ""
    assert capsys.readouterr().out == "2\n"
    error = run("f()", "page.md", 20, names)
    assert re.findall(r'File "(.*)", line (\d+)', error) == [("page.md", "20"), ("page.md", "9")]
    assert "return x / 0" in error
    assert run("raise SystemExit(0)", "page.md", 22, names) == ""
    assert run("raise SystemExit('no')", "page.md", 22, names).endswith("SystemExit: no\n")
    assert run("f(", "page.md", 22, names).endswith("SyntaxError: '(' was never closed\n")
