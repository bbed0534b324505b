"""Wrong own parts of all kinds, in all ways: what a check, or else a run, says of each in one line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import tomli_w

from experiments.own import trial
from experiments.part_kinds import part_kinds
from tests.experiments.cli.conftest import Driftscale, driftscale
from tests.experiments.small import SMALL, merged, write_small

__all__ = ["driftscale"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_modules")]

MODULE = """\
import random
from dataclasses import replace
import numpy as np
import torch
from torch import nn
from emulator.seeding import RandomStreams
from {module} import {shipped} as Its
calls = []
class Dropping(nn.Module):
    def forward(self, logits):
        return nn.functional.dropout(logits, 0.5)
class Mine(Its):
    "Mine."
    def {method}(self, *args, **kwargs):
        calls.append(1)
        {before}
        answer = super().{method}(*args, **kwargs)
        return {after}
"""

FIELDING = '[[arm]]\nname = "mine"\nclusterer = "fielding"\n'


class Kind(NamedTuple):
    """A kind of part: a shipped one, the method that an own subclass gets wrong, and how it does.

    `wrong` has, by what is wrong, the answer instead and words of the line; `writes` an argument that it
    overwrites. `first` is whether the method is called in a first round; if not, only a run can know.
    """

    shipped: str
    method: str
    wrong: dict[str, tuple[str, str]]
    writes: str = ""
    first: bool = True
    config: str = ""


KINDS = {
    "clusterer": Kind(
        "static",
        "serve",
        {
            "shape": ("replace(answer, models=answer.models[1:])", "must have a row for each client"),
            "NaN": ("replace(answer, weights=np.nan * answer.weights)", "weights must be finite"),
            "range": ("replace(answer, models=answer.models + 99)", "must be rows of the bank, or -1"),
        },
        writes="args[0].models",
    ),
    "representation": Kind(
        "label",
        "measure",
        {"shape": ("answer[:, 1:]", "must be of shape (12, 10): a row of `size` numbers for each client")},
        writes="args[0]",
        config=FIELDING,
    ),
    "trigger": Kind(
        "pairwise",
        "evaluate",
        {"NaN": ("replace(answer, delta=float('nan'))", "numbers must be finite")},
        writes="args[0].reports",
        first=False,
    ),
    "detector": Kind(
        "changed",
        "detect",
        {"shape": ("answer[1:]", "must be an array of shape"), "kind": ("1.0 * answer", "array of bool")},
        writes="args[1]",
        first=False,
        config=FIELDING,
    ),
    "selector": Kind(
        "random",
        "select",
        {
            "shape": ("answer[None]", "must be an array of shape"),
            "range": ("answer + 999", "of int64 from 0 to 11"),
            "order": ("answer[::-1].copy()", "must be distinct ids, ascending"),
            "twice": ("np.repeat(answer, 2)", "must be distinct ids, ascending"),
            "none of them": ("answer[:0]", "at least one"),
            "kind": ("1.0 * answer", "array of int64"),
            "another time": ("answer[len(calls) % 2:]", "is another round"),
        },
        writes="args[1]",
    ),
    "memory": Kind(
        "held",
        "rows",
        {
            "shape": ("(answer[0][1:], *answer[1:])", "must have samples for each pair"),
            "range": ("(answer[0], answer[1] + 9, answer[2])", "models must be rows of the bank"),
            "order": ("(answer[0][::-1], *answer[1:])", "must be distinct pairs, sorted"),
        },
        writes="args[0]",
    ),
    "solver": Kind(
        "sgd",
        "correct",
        {
            "shape": ("answer[:, 1:]", "must be of shape"),
            "NaN": ("answer * float('nan')", "must be finite, as the gradient is"),
            "another time": ("answer * len(calls)", "is another round"),
        },
    ),
    "aggregator": Kind(
        "fedavg",
        "aggregate",
        {
            "shape": ("answer[:, 1:]", "must be an array of shape"),
            "NaN": ("np.float32('nan') * answer", "of finite floats"),
            "kind": ("answer.astype(float)", "an array of float32"),
            "another time": ("answer + np.float32(len(calls))", "is another round"),
        },
        writes="args[1].models",
    ),
    "pacing": Kind(
        "sync",
        "opens",
        {
            "shape": ("answer[0]", "must be an array of shape (1, 1) of int64 from 0 on"),
            "range": ("answer - 99", "from 0 on"),
            "kind": ("1.0 * answer", "array of int64"),
        },
        writes="args[0]",
    ),
    "adaptation": Kind(
        "tuned",
        "adapt",
        {
            "shape": ("replace(answer, plan=answer.plan.take([0]))", "must have a row for each client"),
            "range": ("replace(answer, models=answer.models[:0])", "must be rows of the bank"),
            "another time": ("replace(answer, models=answer.models + len(calls))", "is another round"),
        },
        writes="args[0].models",
    ),
    "schedule": Kind(
        "slowness",
        "task_settings",
        {
            "shape": ("{name: of[1:] for name, of in answer.items()}", "must be an array of shape"),
            "NaN": ("{name: np.nan * of for name, of in answer.items()}", "of finite floats or int64"),
            "key": ("{}", "must have the settings in sets"),
        },
        writes="args[0]",
    ),
    "model": Kind(
        "linear",
        "build",
        {
            "shape": (
                "nn.Sequential(answer, nn.Linear(10, 3))",
                "must make outputs of shape (3, 10) of 3 samples, 10 for each, and makes",
            ),
            "functional dropout": (
                "nn.Sequential(answer, Dropping())",
                "draws in evaluation mode, by bernoulli_",
            ),
            "input": ("nn.Linear(3, 3)", "does not take 3 samples of shape (8, 8): RuntimeError"),
        },
    ),
    "objective": Kind(
        "labels",
        "hits",
        {
            "shape": ("answer.mean()", "must be of shape (96,), and is of ()"),
            "range": ("2 * answer", "must be in [0, 1]"),
        },
    ),
    "source": Kind(
        "digits",
        "build",
        {
            "another time": (
                "super().build(replace(args[0], streams=RandomStreams(len(calls))))",
                "drawn again, is another",
            )
        },
    ),
    "drift": Kind(
        "label_mix",
        "shares",
        {
            "shape": ("(of[1:] for of in answer)", "must be an array of shape"),
            "NaN": ("(np.nan * of for of in answer)", "finite floats"),
            "range": ("(2 * of for of in answer)", "rows must sum to 1"),
        },
    ),
    "partition": Kind(
        "iid",
        "assign",
        {"shape": ("answer[1:]", "must be an array of shape"), "range": ("answer + 99", "from 0 to 19")},
    ),
    "concepts": Kind(
        "sine",
        "draw",
        {
            "shape": ("replace(answer, label=answer.label[1:])", "must be an array of shape"),
            "range": ("replace(answer, label=answer.label + 9)", "of int64 from 0 to 1"),
        },
    ),
    "availability": Kind("diurnal", "build", {}),
}

ANY = {
    "random": ("random.random()", "answer", "the global generator of random"),
    "numpy": ("np.random.normal()", "answer", "the global generator of numpy"),
    "torch": ("torch.rand(1)", "answer", "the global generator of torch"),
    "None": ("pass", "None", "returned None: must be"),
    "text": ("pass", "'text'", "returned 'text': must be"),
    "raises": ("1 / 0", "answer", "raised ZeroDivisionError: division by zero ("),
}
"""What any part can get wrong: a line before, the answer, and words of the line."""

CASES = [
    # On the device without values on which models are built, torch draws nothing.
    *(
        (kind, what, *case)
        for kind in KINDS
        for what, case in ANY.items()
        if (kind, what) != ("model", "torch")
    ),
    *((kind, what, "pass", *case) for kind, of in KINDS.items() for what, case in of.wrong.items()),
    *(
        (kind, "writes", f"{of.writes}[...] = 1", "answer", "writes to its arguments; change a copy")
        for kind, of in KINDS.items()
        if of.writes and of.first
    ),
]


def write(folder: Path, kind: str, before: str, after: str) -> None:
    """Write an own part of a kind, and a configuration that names it."""
    of, registry = KINDS[kind], part_kinds()[kind].registry
    shipped = registry.find(of.shipped)
    (folder / "my_parts.py").write_text(
        MODULE.format(
            module=shipped.__module__, shipped=shipped.__name__, method=of.method, before=before, after=after
        )
    )
    table = tomllib.loads(part_kinds()[kind].example_of("my_parts:Mine", {}))
    fielding = tomllib.loads(of.config).get("arm", [{}])[0]
    arm = merged(fielding, table.pop("arm", [{"name": "mine"}])[0])
    shared = {"round": {"rounds": 4, "participants": 2}, "devices": SMALL["devices"], "arm": [arm]}
    whole = merged({**SMALL, **shared, "trace": table.pop("trace", SMALL["trace"])}, table)
    whole["trace"].setdefault("rounds_per_step", 2)
    (folder / "mine.toml").write_text(tomli_w.dumps(whole))


@pytest.mark.parametrize(
    ("kind", "what", "before", "after", "words"),
    [pytest.param(*case, id="-".join(case[:2])) for case in CASES],
)
def test_a_wrong_part_is_one_line_that_names_it_and_what_is_wrong(
    driftscale: Driftscale, tmp_path: Path, kind: str, what: str, before: str, after: str, words: str
) -> None:
    write(tmp_path, kind, before, after)
    of, registry = KINDS[kind], part_kinds()[kind].registry
    checked = driftscale("check", "mine.toml")
    if of.first:
        assert checked.code == 2, checked.err
        line = checked.error
        assert line.startswith("mine.toml: ")
    else:  # the first round has no drift yet
        assert checked.code == 0, checked.err
        ended = driftscale("run", "mine.toml")
        assert ended.code == 3, ended.err
        assert "Traceback" not in ended.err
        [line] = [line for line in ended.err.splitlines() if "FAILED" in line]
        assert "round 2: " in line
    assert words in line
    assert "my_parts:Mine'" in line
    of_made = "logits" in words or "outputs" in words
    if what not in ("another time", "functional dropout", "input") and of.first and not of_made:
        assert f"{registry.kind} 'my_parts:Mine': {of.method} " in line


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_part_is_tried_and_runs(driftscale: Driftscale, tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind, "pass", "answer")
    checked = driftscale("check", "mine.toml")
    assert checked.code == 0, checked.err
    assert f"{part_kinds()[kind].registry.kind} my_parts:Mine" in checked.out
    ended = driftscale("run", "mine.toml")
    assert ended.code == 0, ended.err


def test_changes_that_an_own_source_leaves_out_are_refused(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "my_parts.py").write_text(
        "from traces.sources.synthetic import Synthetic\n"
        "class Mine(Synthetic):\n"
        '    "Mine."\n'
        "    def changed(self, trace, *context, **others):\n"
        "        return trace\n"
    )
    changes = [{"what": "reverse", "on": "held", "at_step": 1}]
    trace = {"source": "my_parts:Mine", "clients": 12, "changes": changes}
    (tmp_path / "mine.toml").write_text(tomli_w.dumps({**SMALL, "trace": trace}))
    refused = driftscale("check", "mine.toml")
    assert refused.code == 2
    assert "trace.changes: the source 'my_parts:Mine' does not apply them; end its build" in refused.error


def test_a_long_trial_says_what_took_how_long(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "LONG_S", 0.0)
    write(tmp_path, "selector", "pass", "answer")
    checked = driftscale("check", "mine.toml")
    assert re.search(r"arm 'mine': the trial of its own code took 0 s: .*train 0 s", checked.err), checked.err


@pytest.mark.parametrize(
    ("before", "more", "words"),
    [
        ("np.random.normal()", "0", "draw draws from or seeds the global generator of numpy"),
        ("pass", "1", "must have 12 devices, one for each client"),
        ("calls.append(1); generator = np.random.default_rng(len(calls))", "0", "drawn again, is another"),
    ],
)
def test_a_wrong_device_profile_is_one_line_too(
    driftscale: Driftscale, tmp_path: Path, before: str, more: str, words: str
) -> None:
    (tmp_path / "my_parts.py").write_text(
        "import numpy as np\nfrom device_profiles import load_profile\ncalls = []\n"
        "class Mine:\n    name = source = 'mine'\n    reference_model = reference_flops = None\n"
        f"    def draw(self, num_clients, generator):\n        {before}\n"
        f"        return load_profile('iot').draw(num_clients + {more}, generator)\n"
    )
    ended = driftscale("check", write_small(tmp_path, devices={"profile": "my_parts:Mine"}))
    assert ended.code == 2, ended.err
    assert words in ended.error
    assert "device profile 'my_parts:Mine'" in ended.error


def test_what_the_machine_fails_at_in_own_code_costs_no_checkpoint(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    fails = 'if args[2].round == 2 and Path("full").exists(): raise OSError(28, "No space left on device")'
    write(tmp_path, "selector", f"from pathlib import Path\n        {fails}", "answer")
    (tmp_path / "full").touch()
    stored = ("run", "mine.toml", "--set", "checkpoint.every_rounds=1")
    ended = driftscale(*stored)
    assert "select raised OSError: [Errno 28] No space left on device (" in ended.err
    assert "It resumes from its last checkpoint, round 2," in ended.err
    (tmp_path / "full").unlink()
    again = driftscale(*stored)
    assert again.code == 0, again.err
    assert "resuming from round 2" in again.err


def test_a_first_round_that_ends_by_itself_is_said_and_left_to_the_run(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write(tmp_path, "selector", "pass", "answer")
    diverging = ("--set", "faults.corrupt=1", "--set", "round.nonfinite_updates=stop")
    checked = driftscale("check", "mine.toml", *diverging)
    assert checked.code == 0
    assert "arm 'mine': in a trial of its first round: round 0: " in checked.err
    ended = driftscale("run", "mine.toml", *diverging)
    assert ended.code == 3
    assert "FAILED: " in ended.err


def test_what_is_kept_beside_the_state_is_refused_however_short_the_run(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write(tmp_path, "selector", "args[2].round < 2 or setattr(self, 'late', True)", "answer")
    ended = driftscale("run", "mine.toml")
    assert ended.code == 3
    assert "its attribute late has changed since it was made" in ended.err


def test_a_state_that_cannot_be_stored_is_refused_by_name(driftscale: Driftscale, tmp_path: Path) -> None:
    write(tmp_path, "selector", "self.state_fields, self.late = ('late',), {1}", "answer")
    checked = driftscale("check", "mine.toml")
    assert checked.code == 2
    assert "the selector cannot be stored: " in checked.error.splitlines()[-1]


def test_leaving_python_in_own_code_is_an_error_of_it(driftscale: Driftscale, tmp_path: Path) -> None:
    write(tmp_path, "selector", "args[2].round < 2 or sys.exit()", "answer")
    (tmp_path / "my_parts.py").write_text("import sys\n" + (tmp_path / "my_parts.py").read_text())
    ended = driftscale("run", "mine.toml")
    assert ended.code == 3
    assert "FAILED: round 2: selector 'my_parts:Mine': select raised SystemExit (" in ended.err


def test_a_trial_takes_two_local_steps(driftscale: Driftscale, tmp_path: Path) -> None:
    write(tmp_path, "solver", "assert args[0].step < 2", "answer")
    longer = ("--set", "training.local_steps=5")
    assert driftscale("check", "mine.toml", *longer).code == 0
    assert driftscale("run", "mine.toml", *longer).code == 3


def test_a_trial_evaluates_though_its_round_is_not_due(driftscale: Driftscale, tmp_path: Path) -> None:
    write(tmp_path, "clusterer", "1 / 0", "answer")
    checked = driftscale("check", "mine.toml", "--set", "round.evaluate_every=4")
    assert "serve raised ZeroDivisionError" in checked.error


TRANSFORMS = """\
import numpy as np
from coordinator.adaptations.transformed import Transforming
class Mine(Transforming):
    "Mine."
    def transforms(self):
        return {}
"""


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (
            "[np.positive, lambda x: x[:, 1:]]",
            "transforms: number 1 makes (2, 7, 8) of two samples, and must keep shapes",
        ),
        ("[np.positive, lambda x: x / int(0 * x.sum())]", "own code raised "),
        ("[lambda x: x + np.random.normal()]", "draws from or seeds the global generator of numpy"),
        ("[]", "adaptation 'my_parts:Mine': transforms returned []: must be a list of functions, one"),
        ("[np.positive, 3]", "must be a list of functions, one at least"),
        ("7", "adaptation 'my_parts:Mine': transforms returned 7: must be Sequence"),
    ],
)
def test_own_transforms_that_are_wrong_are_one_line(
    driftscale: Driftscale, tmp_path: Path, returned: str, words: str
) -> None:
    (tmp_path / "my_parts.py").write_text(TRANSFORMS.format(returned))
    ended = driftscale("check", write_small(tmp_path, arm=[{"name": "m", "adaptation": "my_parts:Mine"}]))
    assert ended.code == 2, ended.err
    assert words in ended.error


def test_own_transforms_that_are_right_are_tried_and_run(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "my_parts.py").write_text(TRANSFORMS.format("[np.positive, lambda x: x[:, ::-1]]"))
    mine = {"kind": "my_parts:Mine", "by": "class_means"}
    path = write_small(tmp_path, arm=[{"name": "mine", "adaptation": mine}])
    for command in ("check", "run"):
        ended = driftscale(command, path)
        assert ended.code == 0, ended.err
        assert "my_parts:Mine" in driftscale("check", path).out
