from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import against
from tests.against import ROOT, RefusedError, Tree, compared, counted, git, instructions_in, refuse_missing


def test_ratios_are_of_the_same_turn_and_figures_that_one_tree_lacks_are_left_out() -> None:
    turns = [
        {"before": {"a": (2.0, "s")}, "now": {"a": (1.0, "s"), "new": (9.0, "s")}},
        {"now": {"a": (6.0, "s"), "new": (9.0, "s")}, "before": {"a": (4.0, "s")}},
        {"before": {"a": (10.0, "s")}, "now": {"a": (8.0, "s"), "new": (9.0, "s")}},
    ]
    assert compared(turns)[2:] == ["| `a` | 4 s | 6 s | 0.800 [0.500, 1.500] |"]


def test_a_row_that_one_tree_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tree, "rows", lambda tree: {"e1", *tree.folder.parts})
    trees = {name: Tree(Path(name), Path("python")) for name in ("before", "now")}
    refuse_missing(["e1"], trees)
    with pytest.raises(RefusedError, match=r"^before has no row 'now'; it has before, e1$"):
        refuse_missing(["e1", "now"], trees)


def test_the_bench_of_a_tree_is_found_where_it_was_at_its_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "now" / "benchmarks").mkdir(parents=True)
    started = []

    def run(tree: Tree, *arguments: str, by: Sequence[str] = ()) -> CompletedProcess[str]:
        started.append((tree.folder.name, " ".join(arguments[:3])))
        return CompletedProcess(arguments, 0, "[]", "==7== I refs: 1,000\n")

    monkeypatch.setattr(Tree, "run", run)
    for name in ("before", "now"):
        tree = Tree(tmp_path / name, Path("python"))
        tree.rows()
        tree.instructions()
    assert started[0] == ("before", "-m experiments.cli bench")
    assert "experiments.bench.rounds" in started[1][1]
    assert started[3] == ("now", "-m benchmarks --list")
    assert "from benchmarks.rounds" in started[4][1]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this tree is no checkout")
def test_what_git_does_not_know_is_refused_in_one_line() -> None:
    with pytest.raises(RefusedError, match="Needed a single revision"):
        git("rev-parse", "--verify", "no-such-commit^{commit}")


def test_instructions_are_read_as_cachegrind_prints_them() -> None:
    assert instructions_in("==7== Cachegrind\n==7== \n==7== I   refs:      2,345,678,901\n") == 2_345_678_901
    with pytest.raises(RefusedError, match="counted no instructions: 'Killed'"):
        instructions_in("Killed")


def test_of_a_round_are_the_instructions_that_more_rounds_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 billion at the start and 2 million a round."""

    def run(tree: Tree, *arguments: str, by: Sequence[str]) -> CompletedProcess[str]:
        rounds = int(arguments[-1].partition("rounds=")[2].partition(")")[0])
        return CompletedProcess(
            arguments, 0, stderr=f"==7== I refs: {3_000_000_000 + 2_000_000 * rounds:,}\n"
        )

    monkeypatch.setattr(Tree, "run", run)
    monkeypatch.setattr(against.shutil, "which", lambda name: name)
    trees = {name: Tree(Path(name), Path("python")) for name in ("before", "now")}
    assert counted(trees) == {name: {"e1-instructions": (2.0, "M")} for name in trees}


def test_without_valgrind_the_row_is_skipped_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(against.shutil, "which", lambda name: None)
    assert counted({"now": Tree(Path("now"), Path("python"))}) == {"now": {}}
    assert capsys.readouterr().err == "e1-instructions: skipped, valgrind is not installed\n"
