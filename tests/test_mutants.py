from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import mutants
from tests.mutants import Mutant, drawn, ending, group_of, mutants_of
from tests.processes import forked

SOURCE = """\
x = 3
y = x
y = x
if x < 2 and y is not None:
    run(x, y + 1)
    x += 1
    raise ValueError(True)
"""


def test_each_kind_of_mutant_is_made_of_a_line_that_occurs_once() -> None:
    made = [
        (mutant.line.strip(), mutant.mutated.strip(), mutant.kind) for mutant in mutants_of(SOURCE, "a.py")
    ]
    assert sorted(made) == sorted(
        [
            ("x = 3", "x = 4", "constant"),
            ("if x < 2 and y is not None:", "if x <= 2 and y is not None:", "comparison"),
            ("if x < 2 and y is not None:", "if x < 2 and y is None:", "comparison"),
            ("if x < 2 and y is not None:", "if x < 3 and y is not None:", "constant"),
            ("run(x, y + 1)", "pass", "statement"),
            ("run(x, y + 1)", "run(y + 1, x)", "arguments"),
            ("run(x, y + 1)", "run(x, y + 2)", "constant"),
            ("x += 1", "pass", "statement"),
            ("x += 1", "x += 2", "constant"),
            ("raise ValueError(True)", "pass", "statement"),
            ("raise ValueError(True)", "raise ValueError(False)", "constant"),
        ]
    )
    for mutant in mutants_of(SOURCE, "a.py"):
        ast.parse(SOURCE.replace(mutant.line, mutant.mutated))


def test_a_draw_is_the_same_again_and_a_third_of_each_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    for file in ("emulator/a.py", "experiments/jobs/b.py", "experiments/results/c.py", "other/d.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(SOURCE)
    made = drawn(9, 1, None)
    assert made == drawn(9, 1, None)
    assert made != drawn(9, 2, None)
    assert [group_of(mutant.file) for mutant in made] == ["processes", "reports", "elsewhere"] * 3
    assert len({mutant.kind for mutant in made}) == 3
    other = tmp_path / "before"
    (other / "emulator").mkdir(parents=True)
    (other / "emulator/a.py").write_text("x = 3\nx += 1\nx += 1\n")
    with pytest.raises(IndexError):  # no line of processes is in both
        drawn(3, 1, other)


def test_the_cheapest_tests_of_a_line_are_taken_first() -> None:
    path = "emulator/queue.py"
    line = "        self._now_s = 0.0"
    number = (Path(__file__).parents[1] / path).read_text().splitlines().index(line) + 1
    known = {
        "lines": {path: {str(number): ["slow", "quick", "late"]}},
        "seconds": {"slow": 20.0, "quick": 1.0, "late": 25.0},
        "starting": ["starts"],
    }
    assert mutants.tests_for(Mutant(path, line, line.replace("0.0", "1.0"), "constant"), known) == [
        "quick",
        "slow",
    ]


@pytest.mark.slow
def test_a_mutant_is_killed_or_survives_and_the_tree_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.subprocess.run", forked.run)
    (tmp_path / "counted.py").write_text("def least(a, b):\n    return a if a < b else b\n")
    (tmp_path / "test_counted.py").write_text(
        "from counted import least\ndef test_least():\n    assert least(1, 2) == 1\n"
    )
    line = "    return a if a < b else b"
    outcomes = {
        other: ending(
            Mutant("counted.py", line, line.replace("<", other), "comparison"), ["test_counted.py"], tmp_path
        )
        for other in (">", "<=")
    }
    assert outcomes == {">": "killed", "<=": "survived"}
    assert line in (tmp_path / "counted.py").read_text()
    assert ending(Mutant("counted.py", line, "", "statement"), [], tmp_path) == "not covered"
