"""What people read of runs whose objective is not `labels`: word, unit and direction, and no accuracy."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import driftscale as notebook
from emulator.errors import InputError
from tests.experiments import numbered
from tests.experiments.cli.conftest import Driftscale

WITHIN = {"kind": "squared_error", "tolerance": 0.3, "unit": "MW"}
OBJECTIVES = [("multi_label", "labels right"), (WITHIN, "within 0.3 MW")]

NUMBERED: dict[str, Any] = {
    "seeds": [0, 1],
    "trace": {
        "rounds_per_step": 2,
        "retain_rounds": 4,
        "samples_per_step": 6,
        "test_samples_per_step": 4,
        "changes": [
            {"what": {"noise": 1.0}, "on": "held", "clients": {"share": 0.5}, "at_step": 1},
        ],
    },
    "devices": {"profile": "uniform", "availability": "always", "model_factor": 1},
    "training": {"model": "linear", "local_steps": 2, "batch_size": 4},
    "round": {
        "rounds": 6,
        "participants": 3,
        "log_client_accuracy": True,
        "log_model_accuracy": True,
        "accuracies": ["trained", "pooled"],
    },
    "report": {"targets": [0.3, "reference"]},
    "arm": [
        {"name": "global", "baseline": True},
        {"name": "high-accuracy", "clusterer": {"kind": "fielding", "max_clusters": 2}},
        {"name": "tuned", "adaptation": "tuned"},
    ],
}

KEYS = re.compile(
    r"[\w.]*[_.]accurac\w*|accuracy_target_\d|accuracies(?= trained|\W*=)|high-accuracy"
    r"|(?<=[`'\"])accuracy(?=[`'\"])"
)
"""Names of columns and settings, and of an arm."""

NUMBERS = itertools.count()


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A trace source of samples with numbers, in a module that no other test has imported."""
    path = tmp_path / f"numbered_{next(NUMBERS)}.py"
    shutil.copy(numbered.__file__, path)
    return f"{path.stem}:Numbered"


def write(folder: Path, name: str, source: str, objective: Any, **changes: Any) -> Path:
    trace = {**NUMBERED["trace"], "source": source}
    training = {**NUMBERED["training"], "objective": objective}
    table = {"name": name, **NUMBERED, **changes, "trace": trace, "training": training}
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def left(text: str) -> list[str]:
    """Where a text says accuracy or cross-entropy, but for keys and the name of an arm."""
    text = KEYS.sub("", text)
    return [text[max(0, at.start() - 60) : at.end() + 20] for at in re.finditer(r"(?i)accurac|entropy", text)]


def shown(page: Path) -> str:
    """What people read on a page: its text, and what its scripts draw, without the code of plotly."""
    html = page.read_text(encoding="utf-8")
    html = re.sub(r"(?s)<script[^>]*>(?!Plotly\.newPlot).*?</script>", "", html)
    html = re.sub(r'Plotly\.newPlot\("[^"]*"', "", html)
    html = re.sub(r'\b(?:id|href|download)="[^"]*"', "", html)
    return unescape(html)


@pytest.mark.parametrize(("objective", "word"), OBJECTIVES)
def test_nobody_reads_accuracy_of_another_objective(
    driftscale: Driftscale, tmp_path: Path, source: str, objective: Any, word: str
) -> None:
    configuration = write(tmp_path, "numbers", source, objective)
    checked = driftscale("check", configuration)
    played = driftscale("run", configuration, "--out", "out", "--jobs", "1")
    explained = driftscale("report", "out", "--explain")
    for ended in (checked, played, explained):
        assert ended.code == 0, ended.err
        assert left(ended.out + ended.err) == []
    assert re.search(rf", {word} \d\d?\.\d%;", played.err)
    assert f"final {word}" in " ".join(explained.out.split())

    page = shown(tmp_path / "out" / "report.html")
    assert left(page) == []
    assert f"mean client {word} (%)" in page
    assert f"{word[0].upper()}{word[1:]} against virtual time" in page
    assert re.search(rf"mean {word} of \d+\.\d %, \d+\.\d pp [^.]* above", page)

    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert 0 < summary["arms"]["global"]["mean_accuracy"]["mean"] < 1
    results = notebook.load("out")
    plots = [results.plot_accuracy(), results.plot_difference(), results.plot_clients_by("label")]
    plots += [results.plot_client_accuracy(), results.plot_model_accuracy(), results.plot_below()]
    texts = [repr(results), str(results._repr_html_()), *(plot.to_json() for plot in plots)]
    texts += [str(results.columns(frame)["meaning"].tolist()) for frame in ("clients", "rounds", "summary")]
    assert [left(text) for text in texts] == [[]] * len(texts)
    with pytest.raises(InputError, match=f"no arm has a personal {word}"):
        results.plot_personal()


def test_runs_of_several_objectives_have_a_table_each_and_are_not_compared(
    driftscale: Driftscale, tmp_path: Path, source: str
) -> None:
    for name, (objective, _) in zip(("many", "numbers"), OBJECTIVES, strict=True):
        configuration = write(tmp_path, name, source, objective, seeds=[0])
        assert driftscale("run", configuration, "--out", f"runs/{name}", "--jobs", "1").code == 0

    ended = driftscale("report", "runs")
    assert left(ended.out) == []
    for word in ("labels right", "within 0.3 MW"):
        assert f"mean {word} over virtual time, and gains" in ended.out or word in ended.out
    assert left(driftscale("report", "runs", "--explain").out) == []
    assert left(shown(tmp_path / "runs" / "table.html")) == []

    refused = driftscale("compare", "runs/many", "runs/numbers")
    assert refused.code != 0
    assert (
        "runs/many and runs/numbers have other objectives (multi_label: labels right and squared_error: "
        "within 0.3 MW)" in refused.error
    )


def test_a_regression_that_diverges_ends_in_one_line(
    driftscale: Driftscale, tmp_path: Path, source: str
) -> None:
    steep = {**NUMBERED["training"], "learning_rate": 1e9, "objective": WITHIN}
    table = {**NUMBERED, "trace": {**NUMBERED["trace"], "source": source}, "training": steep, "seeds": [0]}
    rounds = {"rounds": 12, "participants": 3}
    table |= {"round": rounds, "arm": [{"name": "a"}]}
    (tmp_path / "c.toml").write_text(tomli_w.dumps({"name": "c", **table}))
    ended = driftscale("run", "c.toml", "--out", "out", "--jobs", "1")
    *_, failed, last = ended.err.splitlines()
    assert (ended.code, last) == (3, "error: 1 of 1 runs failed (a, seed 0); finished runs are kept in out")
    assert "FAILED: round 10: training diverged, " in failed
    assert failed.endswith("a lower training.learning_rate than 1e+09 may help")
    assert "Traceback" not in ended.err


def test_a_sweep_has_the_word_on_its_page(driftscale: Driftscale, tmp_path: Path, source: str) -> None:
    unlogged = {"rounds": 6, "participants": 3}
    configuration = write(tmp_path, "numbers", source, WITHIN, seeds=[0], round=unlogged)
    swept = driftscale(
        "run", configuration, "--out", "sweep", "--jobs", "1", "--sweep", "round.participants=2,3"
    )
    assert swept.code == 0, swept.err
    page = shown(tmp_path / "sweep" / "table.html")
    assert left(swept.out + swept.err + page) == []
    assert "mean within 0.3 MW (%)" in page
    results = notebook.load("sweep")
    results = results[results.experiments[0]]
    with pytest.raises(InputError, match=r"recorded no within 0\.3 MW of models by concept; with round"):
        results.model_accuracy  # noqa: B018
    with pytest.raises(InputError, match=r"recorded no within 0\.3 MW of clients; with round"):
        results.plot_client_accuracy()
