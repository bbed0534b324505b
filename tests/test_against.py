from __future__ import annotations

from pathlib import Path

import pytest

from tests.against import ROOT, RefusedError, Tree, compared, git, refuse_missing


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


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this tree is no checkout")
def test_what_git_does_not_know_is_refused_in_one_line() -> None:
    with pytest.raises(RefusedError, match="Needed a single revision"):
        git("rev-parse", "--verify", "no-such-commit^{commit}")
