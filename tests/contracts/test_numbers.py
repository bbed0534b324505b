"""Every number of a configuration has bounds, and at these a run ends well or with an error of one line.

Each number of each part and of each table is set to its lowest and to its highest value.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import pytest
import scipy.optimize  # noqa: F401  # now: a run that is stopped would leave it half imported
import tomli_w
import torch
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from device_profiles.mixture import MixtureProfile
from emulator.errors import EmulatorError
from emulator.numbers import MOST, Count, Number, PositiveShare, Share
from emulator.plugins import Settings
from experiments.config import Experiment, parse_experiment
from experiments.contracts import check_numbers
from experiments.contracts.numbers import configured_numbers
from experiments.locating import locator
from experiments.results.pages import write_results
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.contracts.registries import REGISTRIES, REQUIRED
from tests.experiments.small import (
    DEVICES,
    DRIFTING,
    SMALL,
    WINDOWS,
    Story,
    merged,
    write_idx_folder,
    write_label_trace,
)
from tests.traces.tiny import daily_rows, write_trace_folder

LONGEST_S = 0.5
"""CPU seconds after which a run that is still at work counts as ending well, and is stopped."""

EXPERIMENT: dict[str, Any] = merged(
    SMALL,
    {
        "faults": {"byzantine": [{"kind": "sign_flip", "share": 0.5, "scale": 2.0}]},
        "report": {"targets": [0.5], "horizon_s": 60.0},
        "arm": [{"name": "global", "training": {"batch_size": 4}}],
    },
)
EXPERIMENT["training"] = {key: value for key, value in SMALL["training"].items() if key != "local_steps"}
"""A configuration in which every table has an item."""

FIGURES = ("accuracy_omitting_drift", "accuracy_including_drift")
START = {"file": "a.safetensors"}
CHOSEN = {"seeds": [100], "grid": ["reshuffled", "fixed"], "by": "mean accuracy"}
PUBLISHED = merged(
    EXPERIMENT,
    {
        "report": {"published": {figure: {"global": [50.0]} for figure in FIGURES}},
        "training": {"start": START},
        "arm": [{"name": "global", "training": {"start": START}}],
        "chosen": {"training.batches": CHOSEN},
        "atlas": {"seeds": [100], "rival": "global"},
        "tune": {"learning_rate": [0.1]},
    },
)
"""The same with published values, which would need another trace, a file to start from, and choices."""

CLASS = {
    "name": "a",
    "share": 1.0,
    "latency_s": 0.01,
    "seconds_per_sample": {"quantiles": [[0, 0.01], [1, 100.0]]},
    "download_bytes_per_s": {"discrete": [[1000.0, 1.0], [2000.0, 2.0]]},
    "upload_bytes_per_s": {"lognormal": {"median": 1000.0, "sigma": 0.5, "clip": [10.0, 1e5]}},
}
PROFILE: dict[str, Any] = {
    "name": "mine",
    "reference_model": "a model",
    "reference_flops": 1e6,
    "source": "nowhere",
    "class": [CLASS],
}
"""A profile with every kind of distribution."""


MOVING: dict[str, Any] = {**DRIFTING, "seeds": [0], "report": {}, "arm": [{"name": "only"}]}
STILL: dict[str, Any] = {**SMALL, "arm": [{"name": "only"}]}
TEXTS = {
    "source": "markov_text",
    "clients": 6,
    "length": 6,
    "texts": 20,
    "retain_rounds": 4,
    "rounds_per_step": 2,
}
SMALL_LSTM = {"kind": "char_lstm", "hidden": 4, "layers": 1}
"""Beside sources of texts, which no model of numbers takes."""


def in_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    return {**MOVING, "trace": {**MOVING["trace"], "concepts": trace}}


def with_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    masked = {"kind": "masked", "inner": {"kind": "mlp", "hidden": [4]}}
    return {**MOVING, "parts": parts, "training": {**MOVING["training"], "model": masked}}


# Where other settings must change too for a number to have an effect.
OVER: dict[str, dict[str, Any]] = {
    "devices.model_factor": {"devices": {"availability": "diurnal"}},
    "round.max_wait_days": {"devices": {"availability": "diurnal"}},
    "round.min_online": {"devices": {"availability": "diurnal"}},
}

HALVES = ("feddc", "feddyn", "scaffold")
"""Rules that need the aggregator of the same name, and the other way around."""


def other_half(part: Mapping[str, Any]) -> dict[str, Any]:
    """The half of the same name, with the numbers that both have."""
    return {"kind": part["kind"], **{key: part[key] for key in ("alpha",) if key in part}}


# For each kind, a run with a part that is given as a table.
RUNS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "adaptations": lambda part: with_parts({"adaptation": part}),
    "aggregators": lambda part: with_parts(
        {"aggregator": part, **({"solver": [other_half(part), "sgd"]} if part["kind"] in HALVES else {})}
    ),
    "availabilities": lambda part: merged(STILL, {"devices": {"availability": part}}),
    "clusterers": lambda part: with_parts(
        {
            "clusterer": part,
            "memory": "claimed",
            **({"detectors": {"jump": "loss_jump"}} if part["kind"] == "drift_groups" else {}),
        }
    ),
    "concept sets": in_trace,
    "detectors": lambda part: with_parts(
        {"detectors": {"changed": part}, **({"schedules": ["slowness"]} if part["kind"] == "stepd" else {})}
    ),
    "drifts": lambda part: merged(STILL, {"trace": {"drift": part}}),
    "memories": lambda part: with_parts({"memory": part}),
    "models": lambda part: {
        **STILL,
        **({"trace": TEXTS} if REGISTRIES["models"].find(part["kind"]).tells_next_token else {}),
        "training": {**STILL["training"], "model": part},
    },
    "pacings": lambda part: with_parts({"pacing": part}),
    "partitions": lambda part: {**STILL, "trace": {"source": "digits", "clients": 20, "partition": part}},
    "representations": lambda part: with_parts({"representation": part, "clusterer": "fielding"}),
    "rules": lambda part: with_parts(
        {
            "solver": [part] if part["kind"] in ("adam", "sgd") else [part, "sgd"],
            "aggregator": other_half(part) if part["kind"] in HALVES else "fedavg",
        }
    ),
    "schedules": lambda part: with_parts(
        {"schedules": [part], **({"detectors": {"news": "stepd"}} if part["kind"] == "on_drift" else {})}
    ),
    "selectors": lambda part: with_parts({"selector": part}),
    "triggers": lambda part: with_parts({"clusterer": {"kind": "fielding", "trigger": part}}),
    "sources": lambda part: {
        **STILL,
        "training": {**STILL["training"], **({"model": SMALL_LSTM} if part["kind"] == "markov_text" else {})},
        "trace": {"source" if k == "kind" else k: v for k, v in part.items()},
    },
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "label_mix": {"events": [{"round": 2, "share": 0.5}]},
    "idx": {
        "clients": 12,
        "retain_rounds": 4,
        "rounds_per_step": 2,
        "drift": {"kind": "label_mix", "labels_per_mix": 1, "mixes": 2},
    },
    "digits": {
        "clients": 12,
        "retain_rounds": 4,
        "rounds_per_step": 2,
        "static": True,
        "changes": [{"what": "own_swap", "on": "held", "clients": {"share": 0.5}, "every": 2}],
    },
    "concepts": {"pattern": ["000", "010", "011"], "rounds_per_step": 2, "samples_per_step": 20},
    "file": {"step_width": 1, "test_share": 0.25, "rounds_per_step": 2, "retain_rounds": 2},
    "synthetic": {"clients": 4, "rounds_per_step": 2},
    "markov_text": {key: value for key, value in TEXTS.items() if key != "source"},
    "label_replay": {"group": "place", "label": "kind", "rounds_per_step": 2, "retain_rounds": 4},
    "label_subsets": {"subsets": [[0, 1], [1, 2]]},
    "label_swaps": {"swaps": [[1, 2]]},
    "auxo": {"split_rounds": [2], "min_participants": 2},
    "cfl": {"eps1": 1.0, "eps2": 1.0},
    "early_stopping": {"epochs": 2},
    "embedding": {"epochs": 1},
    "gradient": {"epochs": 1},
}


def example_of(kind: str, name: str) -> dict[str, Any]:
    """Settings of the part with which its run in `RUNS` ends well."""
    return {**REQUIRED.get((kind, name), {}), **EXAMPLES.get(name, {})}


PARTS = [
    (kind, name)
    for kind, registry in REGISTRIES.items()
    for name in registry.names()
    if (kind, name) != ("partitions", "column")  # has no numbers, and digits have no columns
]


def extreme_tables(
    settings: type[BaseModel], example: Mapping[str, Any]
) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """For every number, its path and a valid table in which it has its lowest, or its highest, value."""
    for number in configured_numbers(settings, example):
        for value in (number.lowest, number.highest):
            with suppress(ValidationError):
                settings.model_validate(table := number.table_with(value))
                yield number.path, value, table


def extremes() -> Iterator[Any]:
    """(configuration, profile) with each number of each part and table at its lowest, and at its highest."""
    for kind, name in PARTS:
        settings = REGISTRIES[kind].find(name).Settings
        for path, value, table in extreme_tables(settings, example_of(kind, name)):
            if path.startswith("changes.") and name != "digits":
                continue  # one mechanism applies the changes of all sources
            yield pytest.param(RUNS[kind]({"kind": name, **table}), None, id=f"{name}.{path}={value:g}")
    for path, value, table in extreme_tables(Experiment, EXPERIMENT):
        if not path.startswith("arm."):  # an arm's training is laid over [training]
            yield pytest.param(merged(table, OVER.get(path, {})), None, id=f"{path}={value:g}")
    for path, value, table in extreme_tables(MixtureProfile, PROFILE):
        run = merged(STILL, {"devices": {"profile": "mine.toml"}})
        yield pytest.param(run, table, id=f"profile.{path}={value:g}")


@pytest.mark.parametrize(("run", "profile"), list(extremes()))
def test_a_run_at_an_extreme_ends_well_or_in_one_line(
    tmp_path: Path, files: Path, run: dict[str, Any], profile: dict[str, Any] | None
) -> None:
    if profile is not None:
        (files / "mine.toml").write_text(tomli_w.dumps(profile))
    with at_most(LONGEST_S), suppress(EmulatorError):
        play(run, files, tmp_path / "out")


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_the_runs_that_are_taken_to_extremes_end_well_without(
    tmp_path: Path, files: Path, kind: str, name: str
) -> None:
    play(RUNS[kind]({"kind": name, **example_of(kind, name)}), files, tmp_path / "out")


def test_the_tables_that_are_taken_to_extremes_end_well_without(tmp_path: Path, files: Path) -> None:
    (files / "mine.toml").write_text(tomli_w.dumps(PROFILE))
    play(
        merged(
            EXPERIMENT,
            {
                "devices": {"profile": "mine.toml"},
            },
        ),
        files,
        tmp_path / "out",
    )


@pytest.mark.parametrize(
    ("settings", "example"),
    [(Experiment, PUBLISHED), (MixtureProfile, PROFILE)],
    ids=["tables", "profile"],
)
def test_numbers_of_tables_keep_to_the_contract(settings: type[BaseModel], example: dict[str, Any]) -> None:
    check_numbers(settings, example)


def test_numbers_of_every_table_and_distribution_are_found() -> None:
    paths = {number.path for number in configured_numbers(Experiment, PUBLISHED)}
    assert paths >= {"seeds.0", "devices.model_factor", "faults.byzantine.0.scale", "round.over_commit"}
    assert paths >= {"executor.threads", "checkpoint.every_s", "report.window", "arm.0.training.batch_size"}
    assert "report.published.accuracy_omitting_drift.global.0" in paths
    paths = {number.path for number in configured_numbers(MixtureProfile, PROFILE)}
    assert paths >= {"reference_flops", "class.0.share", "class.0.latency_s"}
    assert paths >= {"class.0.seconds_per_sample.quantiles.0.1", "class.0.download_bytes_per_s.discrete.0.0"}
    assert "class.0.upload_bytes_per_s.lognormal.clip.1" in paths


class Careless(Settings):
    """Settings with mistakes that an author might make."""

    endless: float = Field(1.0, ge=0)
    bottomless: float = Field(1.0, le=1)
    plain: Annotated[int, Field(ge=0, le=10)] = 1
    choice: Literal[1, 2] = 1
    inner: tuple[Annotated[float, Field(gt=0, le=1)], ...] = ()
    free: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("endless", "Careless: endless has no upper bound"),
        ("bottomless", "Careless: bottomless has no lower bound"),
        ("plain", "Careless: plain takes True"),
        ("choice", "Careless: choice takes True"),
        ("inner", "Careless: inner.0 takes True"),
        ("free", "Careless: free.x has no upper bound"),
    ],
)
def test_numbers_that_break_the_contract_are_named(key: str, complaint: str) -> None:
    field = Careless.model_fields[key]
    only = create_model("Careless", __base__=Settings, **{key: (field.rebuild_annotation(), field)})
    with pytest.raises(AssertionError, match=f"^{re.escape(complaint)}"):
        check_numbers(only, {})


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        (Count, [1, 40, 1e6, MOST], [0, MOST + 1, 1.5, True, "40", None, [1], math.nan, math.inf]),
        (Share, [0, 1, 0.5], [-1e-9, 1.1, True, False, "0.5", math.nan]),
        (PositiveShare, [1e-300, 1], [0, 1.1]),
        (Annotated[float, Number(ge=0, lt=1)], [0], [1]),
    ],
)
def test_a_number_is_neither_a_bool_nor_a_text(kind: Any, taken: list[Any], refused: list[Any]) -> None:
    adapter = TypeAdapter(kind)
    for value in taken:
        assert adapter.validate_python(value) == value
    for value in refused:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


@pytest.mark.parametrize("bounds", [{}, {"ge": 0}, {"le": 1}, {"ge": 0, "gt": 0, "le": 1}])
def test_a_number_without_both_bounds_cannot_be_declared(bounds: dict[str, float]) -> None:
    with pytest.raises(TypeError, match="one lower and one upper bound"):
        Number(**bounds)


def play(run: Mapping[str, Any], files: Path, out: Path) -> None:
    """Run the configuration and write its report, in the folder `out`."""
    plan = plan_run(parse_experiment(run, "extreme"), out, None, locator(files, None), fresh=False)
    run_plan(plan, Story())
    if "targets" in plan.experiment.report.model_fields_set:
        write_results(RunDirectory(out))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the runs name."""
    folder = tmp_path_factory.mktemp("files")
    write_idx_folder(folder / "mnist", train=300, test=60)
    write_label_trace(folder / "labels.csv")
    write_trace_folder(folder / "own", daily_rows(clients=12, days=4))
    (folder / "windows.csv").write_text(WINDOWS)
    (folder / "devices.csv").write_text(DEVICES)
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("x,y\n" + "0.5,0\n0.25,1\n" * 20)
    for name in REGISTRIES["models"].names():  # so that `at_most` interrupts no import
        play(RUNS["models"]({"kind": name}), folder, folder / "before" / name)
    return folder


class TimeUp(BaseException):
    """Not an Exception, so that the code that runs does not catch it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Leaves its body after that many seconds of CPU time, which a busy machine does not shorten."""

    def leave(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == "gc_callback":  # where errors are lost: hypothesis's
            signal.setitimer(signal.ITIMER_PROF, 0.01)
            return
        raise TimeUp

    before = signal.signal(signal.SIGPROF, leave)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TimeUp:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        torch.set_grad_enabled(True)  # the time may have been up while torch entered its no_grad
