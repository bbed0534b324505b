"""The script that times a model: whose module it builds, what it reads, and what it refuses."""

from __future__ import annotations

import datetime
import importlib
import inspect
import math
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from emulator.errors import ConfigurationError, RunError
from emulator.own_parts import OUR_PACKAGES, top_of
from executor.models import MODELS
from experiments.measuring.script import measure, script
from experiments.reading import load_experiment
from tests.experiments.small import write_small
from tests.processes import forked

MODELS_WITH_SETTINGS: list[dict[str, Any]] = [
    *({"kind": kind} for kind in MODELS.names()),
    {"kind": "cnn", "channels": [4], "padding": 1, "hidden": [5]},
    {"kind": "masked", "inner": "cnn", "feddrift_unmasked_inference": True},
    {"kind": "resnet18", "norm": "batch", "stem": "imagenet"},
    {"kind": "shufflenet_v2", "norm": "batch", "stem": "imagenet"},
]

TEXTS = {"source": "markov_text", "length": 9, "texts": 20}

OWN = '''\
"""A model of one's own, beside what has nothing to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

import own_blocks
from own_blocks import WIDTHS as widths, ranked

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE = np.ones(3)


def unread():
    return np.zeros(3)


@ranked
class Net(nn.Module):
    """Two layers.

    With a \\"quote\\" and a \\\\ in it.
    """

    depth = len(widths)

    def __init__(self, sample_shape: tuple[int, ...], num_labels, scale=own_blocks.SCALE):
        super().__init__()
        self.first = own_blocks.Scaled(sample_shape[0] * sample_shape[1], widths["hidden"], scale)
        self.last = nn.Linear(widths["hidden"], num_labels)

    def forward(self, x, table: DataFrame | None = None):
        return self.last(self.first(x.flatten(1)).relu())


def make(num_labels, sample_shape):
    return Net(sample_shape, num_labels, scale=2.0)


def made():
    class Inner(Net):
        pass

    return Inner


Made = made()


class Numeric(Net):
    def forward(self, x):
        return super().forward(x) * float(np.mean(TABLE))
'''

BLOCKS = """\
import math

import scipy
from torch import nn

WIDTHS = {}
WIDTHS["hidden"] = 6
SCALE = math.sqrt(2)


def ranked(kind):
    kind.rank = 1
    return kind


def unread():
    return scipy.__version__


class Scaled(nn.Linear):
    def __init__(self, inputs, outputs, scale):
        super().__init__(inputs, outputs)
        self.scale = scale

    def forward(self, x):
        return super().forward(x) * self.scale
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Torch's threads wait for one another at work, which is most of the work here."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def configured(folder: Path, model: Any, shape: tuple[int, int] = (8, 8), **values: Any) -> Path:
    training = {"model": model, "local_steps": 2, "batch_size": 4}
    return write_small(folder, training=training, **values)


def is_hidden(module: str) -> bool:
    return top_of(module) in OUR_PACKAGES or module.startswith("own_")


def alone(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """The module that a script builds, where modules of ours and of one's own have not been imported."""
    file = folder / "measure.py"
    file.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [path for path in sys.path if Path(path) != folder])
        patch.setattr(sys, "meta_path", [*sys.meta_path])
        hidden = {name: sys.modules.pop(name) for name in [*sys.modules] if is_hidden(name)}
        try:
            ran = runpy.run_path(str(file), run_name="measure")
            built: nn.Module = ran["build"]()
        finally:
            imported = {name: sys.modules.pop(name) for name in [*sys.modules] if is_hidden(name)}
            sys.modules.update(hidden)
    assert all(isinstance(module.__loader__, ran["Sources"]) for module in imported.values())
    return built


def assert_equal_logits(
    built: nn.Module, ours: nn.Module, shape: tuple[int, ...] = (8, 8), *, whole: bool = False
) -> None:
    assert built is not ours
    built.load_state_dict(ours.state_dict())
    images = torch.rand(3, *shape, generator=torch.Generator().manual_seed(1))
    images = (28 * images).long() if whole else images
    for module in (built, ours):
        module.train()
    assert torch.equal(built(images), ours(images))
    assert torch.equal(built.eval()(images), ours.eval()(images))
    trains = [{n: p.requires_grad for n, p in m.named_parameters()} for m in (built, ours)]
    assert trains[0] == trains[1]


@pytest.mark.parametrize("model", MODELS_WITH_SETTINGS, ids=lambda model: "-".join(map(str, model.values())))
def test_the_module_of_a_shipped_model_has_the_logits_of_ours(
    model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_of_texts = MODELS.find(model["kind"]).tells_next_token
    path = configured(tmp_path, model, **({"trace": TEXTS} if is_of_texts else {}))
    built = alone(script(path, None, None, is_for_here=False), tmp_path, monkeypatch)
    [arm, *_] = load_experiment(path).arm
    shape = (128,) if model["kind"] in ("context", "mixture") else (8, 8)  # with 64 numbers behind 64 pixels
    shape, outputs = ((9,), 28) if is_of_texts else (shape, 10)
    assert_equal_logits(built, arm.training.model.build().build(shape, outputs), shape, whole=is_of_texts)


def test_a_model_of_numbers_is_not_timed_on_tokens(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"model mlp takes numbers, .*; choices: char_lstm, word_tr"):
        script(configured(tmp_path, "mlp", trace=TEXTS), None, None, is_for_here=False)


@pytest.fixture
def nets_folder(own_modules: None, tmp_path: Path) -> Path:
    (tmp_path / "own_nets.py").write_text(OWN)
    (tmp_path / "own_blocks.py").write_text(BLOCKS)
    return tmp_path


@pytest.mark.parametrize(
    "model", ["own_nets:Net", "own_nets:make", "own_nets:Made", {"kind": "own_nets:Net", "scale": 0.5}]
)
def test_a_module_of_ones_own_comes_by_its_source_and_what_it_reads(
    model: Any, nets_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = configured(nets_folder, model)
    text = script(path, None, None, is_for_here=False)
    for unread in ("numpy", "scipy", "pandas", "unread", "TABLE"):
        assert unread not in text
    built = alone(text, nets_folder, monkeypatch)
    [arm, *_] = load_experiment(path).arm
    assert_equal_logits(built, arm.training.model.build().build((8, 8), 10))
    assert (type(built).rank, type(built).depth) == (1, 1)  # type: ignore[attr-defined]
    assert inspect.getdoc(type(built)) == inspect.getdoc(importlib.import_module("own_nets").Net)


def test_a_module_may_have_a_name_of_the_script_and_arguments_may_be_infinite_or_dates(
    nets_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nets_folder / "main.py").write_text(
        "from own_nets import Net\n\n\ndef build(sample_shape, num_labels, limit, day):\n"
        "    assert limit == float('inf') and day.year == 2026\n    return Net(sample_shape, num_labels)\n"
    )
    monkeypatch.delitem(sys.modules, "main", raising=False)
    model = {"kind": "main:build", "limit": math.inf, "day": datetime.date(2026, 1, 1)}
    text = script(configured(nets_folder, model), None, None, is_for_here=False)
    assert type(alone(text, nets_folder, monkeypatch)).__name__ == "Net"
    assert "\nimport main" not in text


def test_a_model_that_reads_another_library_is_refused_by_name_with_the_remedy(nets_folder: Path) -> None:
    path = configured(nets_folder, "own_nets:Numeric")
    with pytest.raises(ConfigurationError) as refused:
        script(path, None, None, is_for_here=False)
    [line] = str(refused.value).splitlines()
    assert "training.model = 'own_nets:Numeric': own_nets reads 'numpy'" in line
    assert "driftscale profiles measure" in line
    assert "import numpy as np" in script(path, None, None, is_for_here=True)


def test_a_recipe_of_ones_own_is_refused_with_the_remedy(nets_folder: Path) -> None:
    (nets_folder / "own_specs.py").write_text(
        "from torch import nn\nfrom executor.models.base import ModelSpec\n"
        "class Spec(ModelSpec):\n    def build(self, shape, labels):\n        return nn.Linear(64, labels)\n"
    )
    with pytest.raises(ConfigurationError, match="a Linear in a model that is neither shipped nor a"):
        script(configured(nets_folder, "own_specs:Spec"), None, None, is_for_here=False)


def test_arms_with_different_models_need_a_name(tmp_path: Path) -> None:
    training = {"model": "mlp", "local_steps": 2, "batch_size": 9}
    path = configured(tmp_path, "linear", arm=[{"name": "a"}, {"name": "b", "training": training}])
    with pytest.raises(ConfigurationError, match="arms differ in model or batch size; choose --arm: a, b"):
        script(path, None, None, is_for_here=False)
    with pytest.raises(ConfigurationError, match="--arm c: no arm has that name; choices: a, b"):
        script(path, "c", None, is_for_here=False)
    assert "main(build, (8, 8), 10, 9, False, 'labels')" in script(path, "b", None, is_for_here=False)
    assert "main(build, (8, 8), 10, 4, False, 'labels')" in script(path, "a", None, is_for_here=False)


REFUSING = """\
import re, runpy, sys, time
from importlib.metadata import requires

names = [re.match(r"[\\w-]+", text)[0].replace("-", "_") for text in requires("torch")]
allowed = {*sys.stdlib_module_names, "torch", "numpy", *names}  # numpy, if it is there

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ImportError(f"refused: {name}")

for name in [name for name in sys.modules if name.partition(".")[0] not in allowed]:
    del sys.modules[name]
sys.meta_path.insert(0, Refuse())
time.sleep, time.perf_counter = lambda seconds: None, iter(range(10**6)).__next__
file = sys.argv.pop(1)
runpy.run_path(file, run_name="__main__")
"""


@pytest.mark.slow
def test_a_script_imports_nothing_but_python_torch_and_what_torch_imports(tmp_path: Path) -> None:
    file = tmp_path / "measure.py"
    ran: dict[str, subprocess.CompletedProcess[str]] = {}
    text = script(configured(tmp_path, "resnet"), None, None, is_for_here=False)
    for what, content in {
        "script": text,
        "pydantic": f"{text[: text.index('import torch')]}import pydantic",
    }.items():
        file.write_text(content)
        command = [sys.executable, "-c", REFUSING, str(file), "--threads", "1"]
        ran[what] = forked.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran["script"].returncode == 0, ran["script"].stderr
    assert ran["script"].stdout.startswith("device_id,seconds_per_sample,sd_of_log,peak_memory_bytes\n")
    assert "refused: pydantic" in ran["pydantic"].stderr


@pytest.mark.slow
def test_what_a_script_says_is_wrong_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", forked.run)
    assert measure("print(1)", {}) == ("1\n", "")
    with pytest.raises(RunError, match=r"^no memory$"):
        measure("import sys\nsys.stderr.write('a note\\n')\nsys.exit('no memory')", {"threads": 1})
    with pytest.raises(RunError, match="was ended by signal 9: memory may"):
        measure("import os\nos.kill(os.getpid(), 9)", {})
