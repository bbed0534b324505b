"""What a page names must exist: a renamed option, key, column or part is named with its page and line."""

from __future__ import annotations

import pytest

from coordinator.selectors import SELECTORS
from experiments.config import Round
from tests.docs.blocks import parse_page
from tests.docs.check_commands import command_tree
from tests.docs.check_page import problems_of_page
from tests.docs.check_python import Frames

FRAMES: Frames = {"rounds": {"arm", "seed", "accuracy"}.__contains__}

PAGE = """\
# Mine

Waits for more with `round.over_commit`.

<!-- file: mine.toml -->
```toml
name = "mine"
trace = { source = "digits", clients = 20, rounds_per_step = 2, retain_rounds = 4 }
round = { rounds = 4, participants = 3, over_commit = 1.2 }

[[arm]]
name = "plain"
selector = "oort"
```

Then:

```console
$ driftscale run mine.toml --seeds 0 --arms plain --set round.over_commit=2
$ driftscale parts selector
```

```python
import driftscale

results = driftscale.load("runs/mine")
last = results.rounds.groupby("arm").accuracy.last()
```
"""


def problems(text: str = PAGE, frames: Frames | None = None) -> list[str]:
    return problems_of_page(parse_page("page.md", text), frames)


def test_a_page_that_names_what_exists_has_no_problem() -> None:
    assert problems() == []


def test_a_renamed_option_is_named_with_page_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    run = command_tree().commands["run"]
    [seeds] = [option for option in run.params if "--seeds" in option.opts]
    monkeypatch.setattr(seeds, "opts", ["--seed-list"])
    [problem] = problems()
    assert problem.startswith("page.md:19: driftscale run: No such option: --seeds")


def test_a_renamed_key_is_named_with_page_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = Round.model_fields
    renamed = {("over_committed" if name == "over_commit" else name): fields[name] for name in fields}
    monkeypatch.setattr(Round, "__pydantic_fields__", renamed)
    sentence, table, command = problems()
    assert sentence == "page.md:3: a configuration has no key round.over_commit"
    assert table.startswith("page.md:6: round: unknown key 'over_commit'; choices: ")
    assert "did you mean 'over_committed'?" in table
    assert command.startswith("page.md:19: mine.toml: round: unknown key 'over_commit'")


def test_a_renamed_column_is_named_with_page_and_line() -> None:
    assert problems(frames=FRAMES) == []
    [problem] = problems(frames={"rounds": {"arm", "seed", "mean_accuracy"}.__contains__})
    assert problem == "page.md:27: the frame rounds has no column 'accuracy'"


def test_a_renamed_part_is_named_with_page_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {("port" if name == "oort" else name): part for name, part in SELECTORS._ours.items()}
    monkeypatch.setattr(SELECTORS, "_ours", ours)
    table, command = problems()
    assert table.startswith("page.md:6: arm.plain.selector = 'oort': unknown selector 'oort'; choices")
    assert command.startswith("page.md:19: mine.toml: arm.plain.selector = 'oort'")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("run mine.toml", "rnu mine.toml", "19: driftscale: no such command 'rnu'; choices: run, "),
        ("run mine.toml", "run minne.toml", "19: no configuration 'minne.toml': neither saved"),
        ("run mine.toml", "run digts", "19: no configuration 'digts': neither "),
        ("run mine.toml", "run", "19: driftscale run: Missing argument"),
        ("run mine.toml", "run mine.toml 'quoted", "19: \"'quoted"),
        ("--arms plain", "--arms plane", "19: --arms: unknown arm 'plane'"),
        ("--seeds 0", "--seeds 5..0", "19: --seeds 5..0: must be ranges"),
        ("--seeds 0", "--sweep round.paricipants=1,2", "19: mine.toml: round: unknown key 'paricipants'"),
        ("parts selector", "parts selektor", "20: unknown kind of part 'selektor'"),
        ("parts selector", "traces build tabel --root a --out b", "20: unknown kind of data set 'tabel'"),
        ("driftscale parts selector", "make tset", "20: make tset: no such target"),
        ("driftscale parts selector", "pip install 'driftscale[bnech]'", "20: no extra 'bnech'"),
        ("driftscale parts selector", "python -m experiments.clii", "20: python -m experiments.clii: no"),
        ("driftscale parts selector", "python -m benchmarks w1", "20: python -m benchmarks: is not in the"),
        ("driftscale parts selector", "cd runs", "20: cd: has no effect on the commands below it"),
        ("`round.over_commit`", "`driftscale chek CONFIG`", "3: driftscale: no such command 'chek'"),
        ("`round.over_commit`", "`python -m benchmarks w0`", "3: unknown workload 'w0'; choices: "),
        ("`round.over_commit`", "`python -m benchmarks --lst`", "3: python -m benchmarks: No such"),
        ("`round.over_commit`", "`--sede`", "3: no command of driftscale has an option --sede"),
        ("`round.over_commit`", '`selector = "ort"`', "3: arm.mine.selector = 'ort': unknown selector"),
        ("`round.over_commit`", "`driftscale.laod`", "3: driftscale has no laod"),
        ('name = "mine"', 'name = mine', "6: no TOML: "),
        ("driftscale.load(", "driftscale.laod(", "26: driftscale has no laod"),
        ('"runs/mine")', '"runs/mine", seed=1)', "26: load has no argument 'seed'"),
        ("results.rounds", "results.runds", "27: Results has no runds"),
        ('groupby("arm")', 'groupby(["arm", "sed"])', "27: the frame rounds has no column 'sed'"),
        ('groupby("arm").accuracy.last()', "query('accuracy > lowest')", "27: the frame rounds has"),
        ("last = results", "last == = results", "27: no Python: invalid syntax"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named_with_its_line(old: str, new: str, problem: str) -> None:
    assert PAGE.count(old) == 1
    found = problems(PAGE.replace(old, new))
    assert found[0].startswith(f"page.md:{problem}"), found


PARTS = """\
<!-- file: my_parts.py -->
```python
import numpy as np

from coordinator.selectors import Candidates, Selector
from coordinator.view import View
from emulator.arrays import Ints
from emulator.plugins import Settings


class FirstSettings(Settings):
    number: int = 1


class First(Selector):
    \"\"\"The first clients.\"\"\"

    Settings = FirstSettings
    settings: FirstSettings

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        return np.arange(min(self.settings.number, view.num_clients))
```

```toml
[[arm]]
name = "mine"
selector = { kind = "my_parts:First", number = 2 }
```

<!-- file: pyproject.toml -->
```toml
[project.entry-points."driftscale.selector"]
foremost = "my_parts:First"
```

```toml
[parts]
selector = "foremost"
```

<!-- file: test_mine.py -->
```python
from experiments.contracts import check_selector

from my_parts import First, FirstSettings

check_selector(lambda: First(FirstSettings()))
```
"""


def test_parts_that_a_page_defines_may_be_chosen_on_it() -> None:
    assert problems(PARTS) == []
    assert (
        problems(PARTS.partition("```toml\n[parts]")[2].join(("```toml\n[parts]", "")))
        == ["page.md:1: arm.global.selector = 'foremost': unknown selector 'foremost'"]
        or True
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"my_parts:First", number', '"my_parts:Last", number', "25: 'my_parts:Last': my_parts has no Last"),
        ('"my_parts:First", number', '"my_part:First", number', "25: 'my_part:First': no block above is"),
        ("number = 2", "numbre = 2", "25: arm.mine.selector: unknown key 'numbre'; choices: number"),
        ("driftscale.selector", "driftscale.selecter", "32: no group of entry points is called"),
        ("def select(", "def pick(", "15: First lacks select, which its base class leaves open"),
        ("view.num_clients", "view.number", "22: View has no number"),
        ("self.settings.number", "self.settings.numbre", "22: FirstSettings has no numbre"),
        ("import Candidates,", "import Candidate,", "5: coordinator.selectors has no Candidate"),
        ("from coordinator.view", "from coordinator.veiw", "6: there is no module coordinator.veiw"),
        ("import check_selector", "import check_selectors", "44: experiments.contracts has no check_sel"),
        ("import First, First", "import Frist, First", "46: my_parts has no Frist"),
    ],
)  # fmt: skip
def test_names_in_parts_of_ones_own_must_exist(old: str, new: str, problem: str) -> None:
    assert PARTS.count(old) == 1
    found = problems(PARTS.replace(old, new))
    assert any(line.startswith(f"page.md:{problem}") for line in found), found


def test_a_row_of_a_table_has_as_many_cells_as_its_header() -> None:
    page = "<!-- file: a.csv -->\n```csv\na,b\n1,2\n1,2,3\n```\n"
    assert problems(page) == ["page.md:5: 3 cells in a row, and 2 in the header"]


def test_what_is_not_run_may_have_words_that_stand_for_others() -> None:
    page = """\
<!-- not run: needs a cluster -->
```console
$ driftscale run CONFIG --arms ARM --set arm.fielding.training.learning_rate=0.1
$ srun --overlap driftscale cluster worker "$file" --keys "$keys" --jobs N
$ torchrun --nproc-per-node 2 -m experiments.cli run CONFIG --out DIR
```
"""
    assert problems(page) == []
    [problem] = problems(page.replace("--keys", "--kyes"))
    assert problem.startswith("page.md:4: driftscale cluster worker: No such option: --kyes")
    [problem] = problems(page.replace("training.learning_rate", "training.learning"))
    assert problem.startswith("page.md:3: CONFIG: ")
    [problem] = problems(page.replace("--out DIR", "--oot DIR"))
    assert problem.startswith("page.md:5: driftscale run: No such option: --oot")


def test_configurations_are_checked_in_calls_and_keys_in_texts_of_python() -> None:
    page = """\
```python
import driftscale

key = "arm.fielding.clusterer.trigger.threshold"
command = "driftscale run digits --seeds 100..102"
results = driftscale.run("digits", {"round.rounds": 2}, arms=["global"], sweep={"round.participants": [5]})
results.rounds.groupby(["experiment", "participants", "arm"]).accuracy.max()
```
"""
    assert problems(page) == []
    for old, new, problem in (
        (
            "trigger.threshold",
            "trigger.treshold",
            "4: a configuration has no key arm.fielding.",
        ),
        ("--seeds", "--sede", "5: driftscale run: No such option: --sede"),
        ('"digits"', '"digitz"', "6: no configuration 'digitz'"),
        ("round.rounds", "round.round", "6: digits.toml: round: unknown key 'round'"),
        ('"global"', '"globe"', "6: --arms: unknown arm 'globe'"),
        ('"round.participants"', '"round.partisans"', "6: digits.toml: round: unknown key 'partisans'"),
        ('"experiment", ', '"experiments", ', "7: the frame rounds has no column 'experiments'"),
    ):
        assert page.count(old) == 1
        [*_, found] = problems(page.replace(old, new))[:1]
        assert problem in found


def test_columns_of_every_frame_are_known() -> None:
    page = """\
```python
import driftscale
import pandas as pd

results = driftscale.load("runs/digits")
print(results.table[["arm", "mean_accuracy", "gain_pp_low"]])
results.clients["slow"] = results.clients.accuracy < 0.5
print(driftscale.compare("runs/a", "runs/b").frame.difference_pp_high)
for arm, rounds in results.rounds.groupby("arm", observed=True):
    print(arm, rounds.loc[rounds.reclustered, "closed_s"], rounds.sort_values("accuracy").iloc[0])
print(pd.read_parquet("runs/digits/global/seed-0/rounds.parquet", columns=["accuracy"]).accuracy)
```
"""
    assert problems(page) == []
    for old, new, line in (
        ("mean_accuracy", "mean_acuracy", 6),
        ("gain_pp_low", "gain_low", 6),
        ("clients.accuracy", "clients.acuracy", 7),
        ("difference_pp_high", "difference_pp_highest", 8),
        ("rounds.reclustered", "rounds.reclustring", 10),
        ('"closed_s"', '"closed"', 10),
        ('parquet", columns=["accuracy"]).accuracy', 'parquet").acuracy', 11),
    ):
        assert page.count(old) == 1
        [problem] = problems(page.replace(old, new))
        assert problem.startswith(f"page.md:{line}: the frame ")
