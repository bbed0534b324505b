"""Composed configurations: parts, settings, sources and populations drawn from the registry.

Settings are drawn by the types that the parts declare, so that a new part or setting is drawn without a word
here. Sizes are kept small by name. Many draws contradict each other: these are refused, which is tested too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel

from coordinator.clusterers import CLUSTERERS
from coordinator.population import FaultSettings
from emulator.numbers import Number
from emulator.plugins import ChoiceOf, Registry
from executor.settings import ExecutorSettings
from experiments.config import Arm, Devices, PartsRow, Round, Training
from tests.experiments.small import DEVICES, merged, write_idx_folder, write_label_trace
from tests.traces.tiny import write_trace_folder
from traces.concepts import CONCEPT_SETS
from traces.partitions import PARTITIONS
from traces.shared_sets import SharedSet
from traces.sources import SOURCES

CHANGED = 0.3
"""Probability that a setting is drawn, and not left at its default."""

SPELLS = """\
device_id,start_s,end_s,period_s
a,0,5,6
b,0,2,6
b,3,6,6
c,1,5.5,6
d,0,6,6
e,3,3,6
"""
"""Spells of five devices that come and go within seconds; the last one is never online."""

SIZES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("clients", "clients_per_group"), (3, 10)),
    **dict.fromkeys(("samples_per_step", "test_samples_per_step", "samples_per_client"), (2, 8)),
    **dict.fromkeys(
        ("rounds_per_step", "retain_rounds", "local_steps", "epochs", "per_label", "pretrain_steps"), (1, 3)
    ),
    **dict.fromkeys(("rounds", "hidden", "channels", "batch_size", "sketch"), (3, 8)),
    **dict.fromkeys(("num_models", "num_groups", "max_models", "max_clusters", "chunk"), (2, 4)),
    **dict.fromkeys(("participants", "min_online", "evaluate_every", "at_round", "warmup_rounds"), (1, 3)),
    **dict.fromkeys(("min_participants", "min_size", "min_expected", "num_devices", "merge_samples"), (1, 3)),
    **dict.fromkeys(("kmeans_clients", "silhouette_clients"), (10, 12)),
    **dict.fromkeys(("labels_per_client", "starts", "window"), (2, 4)),
    **dict.fromkeys(("buckets", "mixes", "labels_per_mix", "at_start", "min_clusters"), (1, 2)),
    **dict.fromkeys(("evaluate_clients", "split_rounds", "candidates"), (2, 6)),
}
"""The least and the most of what is counted, by the name of the setting."""

LEFT_OUT = frozenset(
    {"folder", "table", "images", "files", "build", "windows", "devices", "align", "profile", "threads"}
    | {
        "worker_timeout_s",
        "max_wait_days",
        "labels",
        "since",
        "until",
        "exclude",
        "step_width",
        "window_days",
    }
    | {"group", "time", "label", "count", "concepts", "pattern", "features", "on_out_of_memory", "published"}
    | {"feddrift_unmasked_inference", "drop_never_online", "min_windows", "most_common", "events"}
    | {"changes", "partition", "samples", "test_share", "static", "shared", "samples_per_client"}
    | {"starts_with", "split", "timeout_s"}
)
"""Settings that name files or columns, affect no result, or fit hardly any draw; `draw_trace` sets some."""

NOTHING = object()


def draw_settings(settings: type[BaseModel], draw: random.Random, changed: float = CHANGED) -> dict[str, Any]:
    """A table of `settings`: all that it requires, and each other setting with probability `changed`."""
    table = {}
    for name, field in settings.model_fields.items():
        if name in LEFT_OUT or not (field.is_required() or draw.random() < changed):
            continue
        value = draw_value(field.annotation, field.metadata, draw, name)
        if value is not NOTHING:
            table[field.alias or name] = value
    return table


def draw_value(annotation: Any, metadata: Sequence[Any], draw: random.Random, name: str) -> Any:
    """A value of a setting of that name and type; NOTHING if it is of a type that is not drawn."""
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*metadata, *more]
    choice = next((item for item in metadata if isinstance(item, ChoiceOf)), None)
    number = next((item for item in metadata if isinstance(item, Number)), None)
    origin, arguments = get_origin(annotation), get_args(annotation)
    value: Any = NOTHING
    if choice is not None:
        value = draw_part(choice.registry, draw, choice.key)
    elif number is not None:
        value = draw_number(number, annotation is int, draw, name)
    elif annotation is bool:
        value = draw.random() < 0.5
    elif origin is Literal:
        value = draw.choice(arguments)
    elif origin in (Union, UnionType):
        value = draw_value(draw.choice([kind for kind in arguments if kind is not NoneType]), (), draw, name)
    elif origin is tuple:
        kinds = [arguments[0]] if arguments[-1] is Ellipsis else arguments
        values = [draw_value(kind, (), draw, name) for kind in kinds]
        value = NOTHING if NOTHING in values else values
    elif origin is dict:
        drawn = draw_value(arguments[1], (), draw, name)
        value = NOTHING if drawn is NOTHING else {"one": drawn}
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        value = draw_settings(annotation, draw)
    return value


def draw_number(number: Number, is_whole: bool, draw: random.Random, name: str) -> float:
    """A number within its bounds: in a small range for counts, over some orders of magnitude for factors."""
    low = number.ge if number.ge is not None else number.gt
    high = number.le if number.le is not None else number.lt
    assert low is not None
    assert high is not None
    if is_whole:
        least, most = SIZES.get(name, (int(low), int(low) + 5))
        return draw.randint(max(least, int(low) + (number.ge is None)), min(most, int(high)))
    if high - low <= 1:
        return low + (high - low) * draw.uniform(0.01, 0.99)
    return min(max(low, 0.0) + 10 ** draw.uniform(-2, 1), high)


def draw_part(registry: Registry[Any], draw: random.Random, key: str = "kind") -> dict[str, Any]:
    """A part of a registry with its settings, as the table that names it."""
    name = draw.choice(registry.names())
    return {key: name, **draw_settings(registry.find(name).Settings, draw)}


# -- sources and populations --------------------------------------------------------------------------------


def write_data(folder: Path) -> None:
    """Write the files that composed configurations name."""
    (folder / "spells.csv").write_text(SPELLS)
    (folder / "phones.csv").write_text(DEVICES)
    write_label_trace(folder / "labels.csv", days=14)
    write_idx_folder(folder / "images", labels=5, train=80, test=40)
    rng = np.random.default_rng(0)
    number = 600
    columns = {
        "client": rng.integers(0, 9, number),
        "label": rng.integers(0, 4, number),
        "sample": np.arange(number) % 50,
        "step": rng.integers(-2, 5, number),
    }
    coming = (columns["step"] + columns["client"]) % 6 < 4  # clients come and go
    split = np.where(rng.random(number) < 0.3, "test", "train")
    few = np.arange(number) < 60
    write_trace_folder(folder / "drawn", columns)
    write_trace_folder(folder / "given", {**columns, "split": split, "concept": columns["step"] % 2})
    for name, rows in (("coming", coming), ("few", few)):
        write_trace_folder(folder / name, {key: column[rows] for key, column in columns.items()})


def draw_trace(draw: random.Random) -> dict[str, Any]:
    """A trace of one of the sources, by the files of `write_data`, whose data may change."""
    trace = draw_source(draw)
    if "changes" not in trace and draw.random() < CHANGED:
        trace["changes"] = [draw_change(draw) for _ in range(draw.randint(1, 3))]
    return trace


def draw_change(draw: random.Random) -> dict[str, Any]:
    """A change that fits most traces, at one of the first data steps."""
    of_labels = ["xor", "reverse", "permute", {"swap": [[0, 1]]}]
    of_features = [{"noise": draw.uniform(0.1, 1)}, {"replace": [0, 1]}]
    what, onset = draw.choice([*of_labels, *of_features]), draw.randint(0, 2)
    curve = {"from": draw.random(), "to": draw.random(), "over": draw.randint(1, 4)}
    change: dict[str, Any] = {"what": what, "on": draw.choice(["held", "arrivals"]), "at_step": onset}
    if draw.random() < 0.5:
        change["until_step"] = onset + draw.randint(1, 3)
    if draw.random() < 0.5:
        change["clients"] = draw.choice([{"share": draw.uniform(0.3, 1)}, {"part": 1, "of": 2}, {"count": 2}])
    if draw.random() < 0.3:
        change["samples"] = draw.choice([draw.random(), curve])
    if draw.random() < 0.3:
        change["splits"] = [draw.choice(["train", "test"])]
    if what in of_features and draw.random() < 0.5:
        change |= {"magnitude": curve, "cumulative": change["on"] == "held" and draw.random() < 0.5}
    return change


def draw_source(draw: random.Random) -> dict[str, Any]:
    """A trace of one of the sources, by the files of `write_data`, of which only swaps are changes."""
    name = draw.choice(SOURCES.names())
    drawn = {
        "source": name,
        **draw_settings(SOURCES.find(name).Settings, draw),
        "rounds_per_step": draw.randint(1, 3),
    }
    sizes = {"samples_per_step": draw.randint(3, 8), "test_samples_per_step": draw.randint(2, 6)}
    if name in ("concepts", "synthetic"):
        few = {"samples_per_step": draw.randint(3, 8), **draw_pattern(draw)} if name == "concepts" else {}
        return {**drawn, **few}
    drawn["retain_rounds"] = draw.randint(1, 6)
    if name == "file":
        return {**drawn, "folder": draw.choice(["drawn", "given", "coming", "few"])}
    if name == "label_replay":
        columns = {"group": "place", "time": "day", "label": "kind", "count": "seen"}
        files = {"table": "labels.csv", "images": "images", **columns}
        observed = {"samples": "observed", "test_share": draw.uniform(0.1, 0.6)}
        drawn = {key: value for key, value in drawn.items() if key not in {"window", *sizes}}
        return {**drawn, **files, "clients_per_group": draw.randint(1, 3), **draw.choice([sizes, observed])}
    own = {"clients": draw.randint(4, 10), **({"folder": "images"} if name == "idx" else {})}
    way = draw.choice(["drift", "drift", "shared", "partition", "swaps"])
    if way == "partition":
        kept = {key: value for key, value in drawn.items() if key in ("source", "rounds_per_step", "noise")}
        starts = sorted(draw.uniform(0.1, 1) for _ in range(2))
        arrives = {"starts_with": starts} if draw.random() < CHANGED else {}
        return {**kept, **own, "partition": draw_part(PARTITIONS, draw), **arrives}
    if way == "swaps":
        every = drawn["rounds_per_step"] * draw.randint(1, 2)
        clients = {"share": draw.uniform(0.3, 1), "redraw": draw.random() < 0.5}
        swap = {"what": "own_swap", "on": "held", "clients": clients, "every": every}
        fixed = {"static": True, "test_on": "present", "drift": "none", "changes": [swap]}
        return {**drawn, **own, **sizes, **fixed}
    shared = {"shared": draw.choice(get_args(SharedSet))} if way == "shared" else {}
    return {**drawn, **own, **sizes, **shared}


def draw_pattern(draw: random.Random) -> dict[str, Any]:
    """The concepts of a few clients over a few steps, of a concept set that needs no file, or images."""
    concepts = draw_part(CONCEPT_SETS, draw)
    if concepts["kind"] == "tables":
        concepts = {"kind": "sine"}
    elif concepts["kind"].startswith("label_"):
        concepts = {"kind": "label_subsets", "folder": "images", "subsets": [[0, 1], [1, 2]], "reuse": True}
    clients, steps = draw.randint(3, 6), draw.randint(2, 4)
    pattern = ["".join(draw.choice("01") for _ in range(clients)) for _ in range(steps + 1)]
    return {"concepts": concepts, "pattern": pattern}


def count_steps(training: dict[str, Any], draw: random.Random) -> None:
    """Give drawn settings of training a few epochs, if they have any, and else a few steps."""
    if "local_epochs" in training:
        training["local_epochs"] = draw.randint(1, 2)
    else:
        training["local_steps"] = draw.randint(1, 3)
    if "local_steps" in training or training.get("batches") == "fixed":
        training.pop("last", None)


def fit_schedules(arm: dict[str, Any], draw: random.Random) -> None:
    """Give the drawn schedules of an arm numbers to set, and the detector that they need."""
    for schedule in arm.get("schedules", ()):
        if schedule["kind"] == "by_cluster":
            schedule["clusters"] = {str(draw.randint(0, 1)): {"learning_rate": draw.uniform(0.01, 0.1)}}
        if schedule["kind"] == "on_drift":
            schedule["number"] = "learning_rate"
            arm.setdefault("detectors", {})["news"] = "stepd"


def fit_pacing(arm: dict[str, Any], draw: random.Random) -> None:
    """Give some pacings a time-out that some visits make: with shorter ones runs are given up, slowly."""
    pacing = arm.get("pacing", {})
    if pacing.get("kind") in ("sync", "buffered") and draw.random() < CHANGED:
        pacing["timeout_s"] = draw.uniform(1.0, 4.0)


def draw_table(key: str, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The configuration of a key: the same whenever it is drawn.

    `fixed` are keys of the only arm, or tables of the configuration, that are not drawn.
    """
    draw = random.Random(key)
    fixed = dict(fixed or {})
    trace = draw_trace(draw)
    trace = fixed.pop("trace", trace)
    rounds = draw.randint(3, 8)
    if trace["source"] == "concepts":
        rounds = trace.get("rounds_per_step", 1) * (len(trace["pattern"]) - 1)
    table = {
        "name": "composed",
        "seeds": sorted(draw.sample(range(50), draw.randint(1, 2))),
        "trace": trace,
        "devices": {
            **draw_settings(Devices, draw),
            "profile": draw.choice(["smartphones", "uniform", "phones.csv"]),
            "model_factor": 1,
        },
        "faults": draw_settings(FaultSettings, draw, 0.1),
        "training": {
            **draw_settings(Training, draw),
            "model": draw.choice(["linear", {"kind": "mlp", "hidden": [4]}]),
            "batch_size": draw.randint(2, 5),
            "learning_rate": 0.05,
        },
        "round": {
            **draw_settings(Round, draw, 0.2),
            "rounds": rounds,
            "participants": draw.randint(1, 3),
            "over_commit": draw.choice([1, 1.3, 2]),
            "max_wait_days": 0.002,  # spells last seconds, and each is waited for
        },
        "executor": draw_settings(ExecutorSettings, draw),
        "checkpoint": {"every_rounds": draw.randint(1, 3)},
        "report": {"window": 1},
        "arm": [{"name": "one", **draw_settings(PartsRow, draw), "clusterer": draw_part(CLUSTERERS, draw)}],
    }
    training = table["training"]
    count_steps(training, draw)
    if "evaluate_every_s" not in table["round"]:
        table["round"]["evaluate_every"] = 1
    clusterer = table["arm"][0]["clusterer"]
    if clusterer["kind"] == "auxo":
        clusterer.setdefault("split_rounds", [1, 2])
    if clusterer["kind"] == "kue":
        table["training"]["model"] = {"kind": "masked", "inner": {"kind": "mlp", "hidden": [4]}}
    if table["devices"].get("availability", {}).get("kind") == "intervals":
        table["devices"]["availability"] = "spells.csv"
    arm = {key: fixed.pop(key) for key in list(fixed) if key in Arm.model_fields}
    if clusterer["kind"] == "drift_groups":
        watching = draw.choice(["ddm", "hddm_w", {"kind": "loss_jump", "delta": 1.01, "warm_start": 1}])
        clusterer["groups"] = {"drifted": ["watching"]}
        table["arm"][0].setdefault("detectors", {})["watching"] = watching
    fit_schedules(table["arm"][0], draw)
    fit_pacing(table["arm"][0], draw)
    if "solver" in table["arm"][0]:  # a chain ends with its only optimiser
        optimiser = draw.choice(
            ["sgd", {"kind": "sgd", "momentum": 0.9}, "adam", {"kind": "adam", "keep": "step"}]
        )
        first = "early_stopping" if "local_epochs" in training else "fedprox"
        table["arm"][0]["solver"] = draw.choice([[optimiser], [first, optimiser]])
    table["arm"] = [{**table["arm"][0], **arm}]
    return merged(table, fixed)
