"""The recipes of docs/howto/from-python.md: each is run, and what it writes is recounted from its source."""

from __future__ import annotations

import ast
import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftscale
from tests.docs.blocks import Block, read_page

MOST_LINES = 8

BLOCKS = [block for block in read_page("docs/howto/from-python.md").blocks if block.language == "python"]
IMPORTS, DATA, *REST = BLOCKS
RECIPES = {block.content.partition('"traces/')[2].partition('"')[0]: block for block in REST[:-2]}
NEEDS = {"photos": ["datasets"], "flower": ["datasets", "flwr_datasets"], "pets": ["torchvision"]}


def run(block: Block, namespace: dict[str, Any]) -> None:
    exec(compile(block.content, block.page, "exec"), namespace)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what the recipes read; caches of libraries are in it, and nothing is downloaded."""
    folder = tmp_path_factory.mktemp("recipes")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HF_HOME", str(folder / "cache"))
        patched.setenv("HF_HUB_OFFLINE", "1")
        patched.chdir(folder)
        namespace: dict[str, Any] = {}
        run(IMPORTS, namespace)
        run(DATA, namespace)
        yield folder


def pixels(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image).transpose(2, 0, 1)


def sensors() -> Counter[Any]:
    return Counter(pd.read_csv("sensors.csv")[["device", "activity"]].itertuples(index=False, name=None))


def scans() -> Counter[Any]:
    from sklearn.datasets import load_digits

    return Counter(str(label) for label in load_digits().target)


def leaf() -> Counter[Any]:
    users = json.loads(Path("leaf.json").read_text())["user_data"]
    return Counter((name, str(label)) for name, user in users.items() for label in user["y"])


def sent140() -> Counter[Any]:
    users = json.loads(Path("sent140.json").read_text())["user_data"]
    return Counter((name, mood) for name, user in users.items() for mood in user["y"])


def readings() -> Counter[Any]:
    return Counter((device, "all") for device in pd.read_csv("sensors.csv").device)


def pictures() -> Counter[Any]:
    return Counter(path.parent.name for path in Path("pictures").glob("*/*.png"))


RECOUNTS: Mapping[str, Callable[[], Counter[Any]]] = {
    "sensors": sensors,
    "scans": scans,
    "leaf": leaf,
    "sent140": sent140,
    "readings": readings,
    "photos": pictures,
    "flower": pictures,
    "pets": pictures,
}
CLIENTS = {
    "sensors": 8,
    "scans": 30,
    "leaf": 3,
    "sent140": 2,
    "readings": 8,
    "photos": 6,
    "flower": 4,
    "pets": 6,
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_writes_what_a_recount_of_its_source_says(
    data: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in NEEDS.get(name, []):
        pytest.importorskip(library, reason=f"{library} is not installed", exc_type=ImportError)
    monkeypatch.chdir(data)
    if "datasets" in NEEDS.get(name, []):
        config = importlib.import_module("datasets.config")
        monkeypatch.setattr(config, "HF_DATASETS_CACHE", data / "cache" / "datasets")
    namespace: dict[str, Any] = {"Path": Path}
    run(IMPORTS, namespace)
    run(RECIPES[name], namespace)
    folder = driftscale.open_trace(Path("traces", name))
    expected = RECOUNTS[name]()
    columns = ["client", "label"] if isinstance(next(iter(expected)), tuple) else "label"
    found = folder.arrivals.astype({"label": str})[columns]
    rows = found if isinstance(columns, str) else found.itertuples(index=False, name=None)
    assert Counter(rows) == expected
    assert folder.arrivals.client.nunique() == CLIENTS[name]
    if RECOUNTS[name] is pictures:
        classes = dict(zip(folder.arrivals["sample"], folder.arrivals.label, strict=True))
        written = {(folder.features[sample].tobytes(), classes[sample]) for sample in classes}
        assert written == {
            (pixels(path).tobytes(), path.parent.name) for path in Path("pictures").glob("*/*")
        }


def test_the_frame_that_opens_and_the_error_are_as_the_page_says(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(data)
    namespace: dict[str, Any] = {"Path": Path}
    run(IMPORTS, namespace)
    for name in ("sensors", "leaf"):
        if not Path("traces", name).exists():
            run(RECIPES[name], namespace)
    [opening, failing] = REST[-2:]
    run(opening, namespace)
    assert len(namespace["held"]) > 0
    frame = pd.DataFrame({"writer": ["f0001"] * 4, "character": [0, 1, 0, 1]})
    namespace |= {"features": np.zeros((4, 28, 28)), "frame": frame}
    run(failing, namespace)
    printed = failing.content.partition("# ")[2].partition("\n")[0]
    assert capsys.readouterr().out.strip() == printed.strip()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_at_most_eight_lines(name: str) -> None:
    assert len(RECIPES[name].content.replace("\n\n", "\n").splitlines()) <= MOST_LINES
    ast.parse(RECIPES[name].content)
