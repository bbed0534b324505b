"""Composed configurations: parts, settings, sources and populations drawn from the registry.

Settings are drawn by the types that the parts declare, so that a new part or setting is drawn without a word
here. Sizes are kept small by name. Many draws contradict each other: these are refused, which is tested too,
and then repaired.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ValidationError

from coordinator.aggregators import AGGREGATORS, Aggregator
from coordinator.population import FaultSettings
from emulator.errors import ConfigurationError
from emulator.numbers import Number
from emulator.plugins import ChoiceOf, Registry
from executor.flat import FlatModel
from executor.models import MODELS
from executor.models.settings import MlpSettings
from executor.objectives import OBJECTIVES
from executor.rules import RULES
from executor.rules.base import Chain, build_chain
from executor.settings import ExecutorSettings
from experiments.config import Arm, Devices, PartsRow, Round, Training
from tests.experiments.small import DEVICES, merged, write_idx_folder, write_label_trace
from tests.traces.tiny import write_trace_folder
from traces.concepts import CONCEPT_SETS
from traces.files import TARGETS
from traces.partitions import PARTITIONS
from traces.shared_sets import SharedSet
from traces.sources import SOURCES

CHANGED = 0.3
"""Probability that a setting is drawn, and not left at its default."""

TRIES = 4
"""How often a piece is drawn that the rest of a configuration refuses, before it is left out."""

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
    **dict.fromkeys(("depth", "groups"), (1, 2)),
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
    | {"start", "starts_with", "split", "timeout_s", "assign", "unmatched"}
)
"""Settings that name files or columns, affect no result, or fit hardly any draw; `draw_trace` sets some."""

LARGE = frozenset({"resnet18", "shufflenet_v2", "vit_tiny"})
"""Models of millions of numbers, of which no setting makes a small one; `thin.py` has some to test."""

OF_TEXTS = frozenset({"char_lstm", "word_transformer"})
"""Models of texts, which are drawn with a source of texts alone."""

OF_TARGETS = ("absolute_error", "multi_label", "squared_error")
"""Objectives of targets, which are drawn with the folder that has some."""

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
    """A part of a registry with its settings, as the table that names it; all sizes of a model are small."""
    names = [name for name in registry.names() if name not in LARGE | OF_TEXTS]
    return draw_named(registry, draw.choice(names), draw, key)


def draw_named(registry: Registry[Any], name: str, draw: random.Random, key: str = "kind") -> dict[str, Any]:
    """The part of that name with its settings, as `draw_part`."""
    changed = 1.0 if registry is MODELS else CHANGED
    return {key: name, **draw_settings(registry.find(name).Settings, draw, changed)}


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
    write_trace_folder(folder / "targets", columns)
    np.save(folder / "targets" / TARGETS, rng.integers(0, 2, (50, 3)).astype(np.uint8))
    for name, rows in (("coming", coming), ("few", few)):
        write_trace_folder(folder / name, {key: column[rows] for key, column in columns.items()})


def draw_source(draw: random.Random, rounds: int) -> dict[str, Any]:
    """A trace of one of the sources, by the files of `write_data`, of which only swaps are changes."""
    name = draw.choice(SOURCES.names())
    drawn = {
        "source": name,
        **draw_settings(SOURCES.find(name).Settings, draw),
        "rounds_per_step": draw.randint(1, 3),
    }
    sizes = {"samples_per_step": draw.randint(3, 8), "test_samples_per_step": draw.randint(2, 6)}
    if name == "synthetic":  # of most seeds some clients have thousands of samples
        drawn |= {"clients": 3, "data_seed": draw.choice([33, 48, 58])}
    if name == "concepts":
        drawn |= {"samples_per_step": draw.randint(3, 8), **draw_concepts(draw, rounds)}
    if name in ("concepts", "synthetic"):
        return drawn
    if name == "markov_text":
        drawn.pop("noise", None)  # which tokens do not take
    drawn["retain_rounds"] = draw.randint(1, 6)
    if name == "file":
        return {**drawn, "folder": draw.choice(["drawn", "given", "coming", "few", "targets"])}
    if name == "label_replay":
        columns = {"group": "place", "time": "day", "label": "kind", "count": "seen"}
        files = {"table": "labels.csv", "images": "images", **columns}
        observed = {"samples": "observed", "test_share": draw.uniform(0.1, 0.6)}
        drawn = {key: value for key, value in drawn.items() if key not in {"window", *sizes}}
        return {**drawn, **files, "clients_per_group": draw.randint(1, 3), **draw.choice([sizes, observed])}
    files = {"idx": {"folder": "images"}, "markov_text": {"length": 6, "texts": 20}}
    own = {"clients": draw.randint(4, 10), **files.get(name, {})}
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


def draw_concepts(draw: random.Random, rounds: int) -> dict[str, Any]:
    """Concepts of a few clients over `rounds`, of a concept set that needs no file, or images."""
    concepts = draw_part(CONCEPT_SETS, draw)
    if concepts["kind"] == "tables":
        concepts = {"kind": "sine"}
    elif concepts["kind"].startswith("label_"):
        concepts = {"kind": "label_subsets", "folder": "images", "subsets": [[0, 1], [1, 2]], "reuse": True}
    per_step = draw.choice([number for number in range(1, rounds) if rounds % number == 0])
    pattern = draw_pattern(draw, draw.randint(3, 6), rounds // per_step, 1)
    return {"concepts": concepts, "rounds_per_step": per_step, "pattern": pattern}


def draw_pattern(draw: random.Random, clients: int, steps: int, most: int) -> list[str]:
    """A row of digits up to `most` for each step, and the last one once more, for the last test."""
    rows = ["".join(str(draw.randint(0, most)) for _ in range(clients)) for _ in range(steps)]
    return [*rows, rows[-1]]


def draw_change(draw: random.Random, trace: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """A change of labels or features: once, again and again, of more and more clients, or by a pattern."""
    per_step = trace.get("rounds_per_step", 1)
    steps = -(-rounds // per_step)
    of_labels: list[Any] = ["xor", "reverse", "permute", {"swap": [[0, 1]]}]
    noise, turn = draw.uniform(0.1, 1), draw.uniform(1, 180)
    of_features: list[Any] = [{"noise": noise}, {"replace": [0, 1]}, {"rotate": turn}]
    of_features += [{"mix": kind} for kind in ("orthogonal", "gains", "monotone")]
    of_rules = [["rule"]] if trace.get("source") == "synthetic" else []
    kind = draw.choice([of_labels, of_features, *of_rules])
    what, onset = draw.choice(kind), draw.randint(0, min(2, steps - 1))
    change: dict[str, Any] = {"what": what, "on": draw.choice(["held", "arrivals"])}
    curve = {"from": draw.random(), "to": draw.random(), "over": draw.randint(1, 4)}
    when = draw.choice(["once", "every", "staggered", "pattern"])
    if draw.random() < CHANGED:
        change["splits"] = [draw.choice(["train", "test"])]
    if when == "pattern":
        clients = len(trace["pattern"][0]) if "pattern" in trace else trace.get("clients", 9)
        operations = draw.sample(kind, draw.randint(1, min(2, len(kind))))
        return {**change, "what": operations, "pattern": draw_pattern(draw, clients, steps, len(operations))}
    if draw.random() < CHANGED:
        change["samples"] = draw.choice([draw.random(), curve])
    if kind is of_features and draw.random() < 0.5:
        change |= {"magnitude": curve, "cumulative": change["on"] == "held" and draw.random() < 0.5}
    begins = {"at_step": onset, "at_round": onset * per_step, "at_share": onset / steps}
    if draw.random() < 0.7:
        key = draw.choice(list(begins))
        change[key] = begins[key]
    drawn = {"redraw": when == "every" or draw.random() < 0.5}
    who: list[dict[str, Any]] = [{"share": draw.uniform(0.3, 1), **drawn}, {"count": 2, **drawn}]
    who += [{"part": 1, "of": 2}, {"names": draw.sample(range(3), draw.randint(1, 2))}]
    if draw.random() < 0.7:
        change["clients"] = draw.choice(who)
    if when == "staggered":
        return {**change, "every": per_step, "staggered": draw.uniform(0.3, 0.9)}
    if when == "every":  # it ends before it begins anew, or other clients change
        change["every"] = per_step * draw.randint(1, 2)
    if draw.random() < 0.5:
        change["until_step"] = onset + (1 if when == "every" else draw.randint(1, 3))
    return change


# -- methods ------------------------------------------------------------------------------------------------


def fits(chain: Chain, aggregator: Aggregator) -> bool:
    """Whether the rules give the aggregator all that it reads, and are sent all that they read."""
    facts = chain.facts
    lasting = {name for name, slot in facts.state.items() if slot.until == "model"}
    return (
        facts.receives == aggregator.broadcasts
        and aggregator.averages <= lasting
        and facts.shares == aggregator.shares
        and ("step_norm" not in aggregator.needs or facts.form is not None)
    )


def draw_method(draw: random.Random, solver: str | None, aggregator: str | None) -> dict[str, Any]:
    """A solver and an aggregator that fit one another, with settings; one of them may be given."""
    optimisers = [name for name in RULES.names() if RULES.find(name).is_optimiser]
    others = [name for name in RULES.names() if name not in optimisers]
    layout = FlatModel(MODELS.find("mlp")(MlpSettings(hidden=(4,))), (4,), 3).layout
    while True:
        rule, averaging = solver or draw.choice(RULES.names()), aggregator or draw.choice(AGGREGATORS.names())
        names = [rule] if rule in optimisers else [rule, draw.choice(optimisers)]
        names = [draw.choice(others), *names] if draw.random() < CHANGED else names
        rules = {name: draw_named(RULES, name, draw) for name in names}
        drawn = draw_named(AGGREGATORS, averaging, draw)
        for shared in AGGREGATORS.find(averaging)(AGGREGATORS.find(averaging).Settings()).shares:
            name, _, key = shared.rpartition(".")  # a number that is the same in both
            drawn |= {key: rules[name][key]} if key in rules.get(name, {}) else {}
        method = {"solver": [*rules.values()], "aggregator": drawn}
        try:
            row = PartsRow.model_validate(method)
            chain = build_chain([chosen.build() for chosen in row.solver], layout)
        except (ValidationError, ConfigurationError):
            continue
        if fits(chain, row.aggregator.build()):
            return {
                **method,
                **({"training": {"local_epochs": draw.randint(1, 2)}} if chain.facts.stops else {}),
            }


def with_arm(table: Mapping[str, Any], arm: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """`table` with changes of an arm: its detectors and settings of training are added to those it has."""
    arms = list(table["arm"])
    for key, value in changes.items():
        is_added = key in ("detectors", "training")
        arms[arm] = {**arms[arm], key: {**arms[arm].get(key, {}), **value} if is_added else value}
    return {**table, "arm": arms}


def add_method(
    draw: random.Random, table: Mapping[str, Any], arm: int, kind: str, name: str
) -> dict[str, Any]:
    """Add a solver and an aggregator, one of which has that name."""
    names = {"solver": None, "aggregator": None, kind: name}
    return with_arm(table, arm, draw_method(draw, names["solver"], names["aggregator"]))


def add_part(draw: random.Random, table: Mapping[str, Any], arm: int, name: str) -> dict[str, Any]:
    """Add a part of that kind, or parts, and what they need."""
    field = PartsRow.model_fields[name]
    part = draw_value(field.annotation, field.metadata, draw, name)
    changes = {name: part}
    if name == "clusterer" and part["kind"] == "auxo":
        part |= {"split_rounds": [1, 2], "min_participants": 2}
    if name == "clusterer" and part["kind"] == "kue":
        changes["training"] = {"model": {"kind": "masked", "inner": {"kind": "mlp", "hidden": [4]}}}
    if name == "clusterer" and part["kind"] == "drift_groups":
        part["groups"] = {"drifted": ["watching"]}
        watching = draw.choice(["ddm", "hddm_w", {"kind": "loss_jump", "delta": 1.01, "warm_start": 1}])
        changes["detectors"] = {"watching": watching}
    if name == "pacing":  # some visits take longer, and some do not: of others no update would be absorbed
        times = [key for key in ("deadline_s", "duration_s") if key in part]
        times += ["timeout_s"] if part["kind"] != "fixed" and draw.random() < CHANGED else []
        part |= {key: draw.uniform(2, 9) for key in times}
    for schedule in part if name == "schedules" else ():
        if schedule["kind"] == "by_cluster":
            schedule["clusters"] = {str(draw.randint(0, 1)): {"learning_rate": draw.uniform(0.01, 0.1)}}
        if schedule["kind"] == "on_drift":
            schedule["number"] = "learning_rate"
            changes["detectors"] = {"news": "stepd"}
    return with_arm(table, arm, changes)


def add_model(draw: random.Random, table: Mapping[str, Any], arm: int, name: str) -> dict[str, Any]:
    """Add a model of an arm."""
    return with_arm(table, arm, {"training": {"model": draw_named(MODELS, name, draw)}})


# -- whole configurations -----------------------------------------------------------------------------------


def set_trace(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take a trace of another source, with its changes before those that there are."""
    trace = draw_source(draw, table["round"]["rounds"])
    changes = [*trace.get("changes", ()), *table["trace"].get("changes", ())]
    if trace["source"] == "markov_text":
        model = draw_named(MODELS, draw.choice(sorted(OF_TEXTS)), draw)
        table = {**table, "training": {**table["training"], "model": model}}
    if trace.get("folder") == "targets":
        objective = draw_named(OBJECTIVES, draw.choice(OF_TARGETS), draw)
        table = {**table, "training": {**table["training"], "objective": objective}}
    return {**table, "trace": {**trace, **({"changes": changes} if changes else {})}}


def add_change(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Add a change of what labels or features mean."""
    trace = table["trace"]
    change = draw_change(draw, trace, table["round"]["rounds"])
    return {**table, "trace": {**trace, "changes": [*trace.get("changes", ()), change]}}


def set_devices(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take other devices."""
    profile = draw.choice(["smartphones", "uniform", "phones.csv"])
    devices = {**draw_settings(Devices, draw), "profile": profile, "model_factor": 1}
    if devices.get("availability", {}).get("kind") == "intervals":
        devices["availability"] = "spells.csv"
    return {**table, "devices": devices}


def set_training(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take other settings of training: a few steps, or a few epochs."""
    known = table["training"]
    drawn = {**draw_settings(Training, draw), **{key: known[key] for key in known if key == "objective"}}
    if "local_epochs" in drawn:
        drawn.pop("local_steps", None)
        drawn["local_epochs"] = draw.randint(1, 2)
    else:
        drawn["local_steps"] = draw.randint(1, 3)
    if "local_steps" in drawn or drawn.get("batches") == "fixed":
        drawn.pop("last", None)
    kept = {"model": known["model"], "batch_size": draw.randint(2, 5), "learning_rate": 0.05}
    return {**table, "training": {**drawn, **kept}}


def set_round(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take other settings of rounds, but as many."""
    drawn = {**draw_settings(Round, draw, 0.2), **table["round"]}
    if "evaluate_every_s" in drawn:
        drawn.pop("evaluate_every")
    if "seconds_per_round" in drawn:  # a visit takes about a second
        drawn["seconds_per_round"] = draw.uniform(1, 6)
    return {**table, "round": drawn}


def set_faults(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take other faults."""
    return {**table, "faults": draw_settings(FaultSettings, draw, 0.1)}


def set_executor(draw: random.Random, table: Mapping[str, Any]) -> dict[str, Any]:
    """Take another executor."""
    return {**table, "executor": draw_settings(ExecutorSettings, draw)}


Piece = Callable[[random.Random, Mapping[str, Any]], dict[str, Any]]
"""Draws a piece of a configuration from a stream: returns the configuration, as drawn so far, with it."""


def draw_base(draw: random.Random, arms: int) -> dict[str, Any]:
    """A configuration without pieces, which nothing refuses."""
    sizes = {"clients": 8, "rounds_per_step": 2, "samples_per_step": 6, "test_samples_per_step": 4}
    return {
        "name": "composed",
        "seeds": sorted(draw.sample(range(50), draw.choice([1, 1, 1, 2]))),
        "trace": {"source": "digits", **sizes},
        "devices": {"model_factor": 1},
        "training": {
            "model": {"kind": "mlp", "hidden": [4]},
            "local_steps": 2,
            "batch_size": 4,
            "learning_rate": 0.05,
        },
        "round": {
            "rounds": draw.randint(4, 8),
            "participants": draw.randint(1, 3),
            "over_commit": draw.choice([1, 1.3, 2]),
            "evaluate_every": 1,
            "max_wait_days": 0.002,  # spells last seconds, and each is waited for
        },
        "checkpoint": {"every_rounds": draw.randint(1, 3)},
        "report": {"window": 1},
        "arm": [{"name": name} for name in ("one", "two", "three")[:arms]],
    }


class Drawn:
    """The configuration of a key, "seed/number": the same whenever it is drawn, and repaired.

    Its pieces are drawn each from a stream of its own. The first ones are solvers and aggregators, over which
    the numbers of a seed go in turn, as over models; the others are in a drawn order, and yield to those
    before them.

    `fixed` are keys of the only arm, or tables of the configuration, that are not drawn.
    """

    def __init__(self, key: str, fixed: Mapping[str, Any] | None = None) -> None:
        draw = random.Random(key)
        self._key, self._fixed = key, dict(fixed or {})
        arms = 1 if self._fixed else draw.choice([2, 2, 3])
        base = draw_base(draw, arms)
        seed, _, number = key.rpartition("/")
        turns = [*(("solver", name) for name in RULES.names())]
        turns += [("aggregator", name) for name in AGGREGATORS.names()]
        random.Random(seed).shuffle(turns)
        models = [name for name in MODELS.names() if name not in LARGE | OF_TEXTS]
        random.Random(seed).shuffle(models)
        named = [turns[(2 * int(number) + arm) % len(turns)] for arm in range(arms)]
        methods = [
            partial(add_method, arm=arm, kind=kind, name=name) for arm, (kind, name) in enumerate(named)
        ]
        others: list[Piece] = [set_devices, set_training, set_round, set_faults, set_executor]
        others += [add_change] * draw.choice([0, 1, 1, 2])
        for arm in range(arms):
            drawn = [
                name
                for name in PartsRow.model_fields
                if draw.random() < (0.6 if name == "pacing" else CHANGED)
            ]
            parts = {"clusterer", *drawn} - {"solver", "aggregator"}
            others += [partial(add_part, arm=arm, name=name) for name in sorted(parts)]
            model = models[(2 * int(number) + arm) % len(models)]
            others += [partial(add_model, arm=arm, name=model)] * (draw.random() < 0.7)
        draw.shuffle(others)
        self._pieces: list[Piece] = [*methods, set_trace, *others]
        self._tries = [0] * len(self._pieces)
        self._tables = [base]  # with none of its pieces, with the first one, and so on, without what is fixed

    def table(self, first: int | None = None) -> dict[str, Any]:
        """The configuration with all its pieces, or with the first ones only."""
        count = len(self._pieces) if first is None else first
        while len(self._tables) <= count:
            number, table = len(self._tables) - 1, self._tables[-1]
            if (tries := self._tries[number]) < TRIES:
                table = self._pieces[number](random.Random(f"{self._key}/{number}/{tries}"), table)
            self._tables.append(table)
        table = self._tables[count]
        for name, value in self._fixed.items():
            if name in Arm.model_fields:
                table = with_arm(table, 0, {name: value})
            else:
                table = merged(table, {name: value}) if name != "trace" else {**table, name: value}
        return merged(table, {})

    def repair(self, refuses: Callable[[Mapping[str, Any]], bool]) -> bool:
        """Draw the pieces anew that those before them refuse, until nothing is refused.

        A piece of which `TRIES` draws are refused is left out. False if that is not enough: what is fixed is
        refused.
        """
        fitting = 0
        while refuses(self.table()):
            if fitting == 0 and refuses(self.table(0)):
                return False
            refused = len(self._pieces)  # the first of them fit, the first `refused` do not
            while refused - fitting > 1:
                middle = (fitting + refused) // 2
                fitting, refused = (fitting, middle) if refuses(self.table(middle)) else (middle, refused)
            while self._tries[fitting] < TRIES and refuses(self.table(refused)):
                self._tries[fitting] += 1
                del self._tables[refused:]
            fitting += 1
        return True


def parts_of(table: Mapping[str, Any]) -> Counter[str]:
    """How often a configuration has each solver, aggregator, model, ..., change and number of arms."""
    shared = {"solver": "sgd", "aggregator": "fedavg", "pacing": "sync", "clusterer": "single"}
    stated = "next_token" if table["trace"]["source"] == "markov_text" else "labels"
    found = Counter([f"arms: {len(table['arm'])}", f"source: {table['trace']['source']}"])
    found.update(f"objective: {name}" for name in names_of(table["training"].get("objective", stated)))
    for arm in table["arm"]:
        parts = {**shared, **table["training"], **arm.get("training", {}), **arm}
        for kind in ("model", *shared):
            found.update(f"{kind}: {name}" for name in names_of(parts[kind]))
    for change in table["trace"].get("changes", ()):
        who = change.get("clients", {}).keys() & {"share", "part", "count", "names"}
        found.update(f"change: {name}" for name in names_of(change["what"]))
        found.update(f"change when: {when}" for when in change.keys() & {"pattern", "staggered", "every"})
        found.update(f"change of: {key}" for key in who)
    return found


def names_of(parts: Any) -> list[str]:
    """The names of a part or an operation, or of a list of them."""
    if isinstance(parts, list):
        return [name for part in parts for name in names_of(part)]
    return [parts if isinstance(parts, str) else parts.get("kind", next(iter(parts)))]
