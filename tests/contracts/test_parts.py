"""Every registered plug-in passes the contract of its kind."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

from coordinator.adaptations.context import WithContext
from coordinator.aggregators import AGGREGATORS
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from device_profiles import PROFILES, load_profile
from emulator.errors import UnknownNameError
from emulator.plugins import Registry
from experiments import contracts
from tests.contracts.registries import REGISTRIES, REQUIRED
from traces.partitions import Samples

BY = ("loss", "class_means")

# Settings with which a part behaves differently than with its defaults.
VARIANTS = {
    "adaptations": [
        ("alone", {"steps_per_round": 0.3}),
        ("prior", {"shares": "reported"}),
        *(("relabelled", {"by": by, "train": train}) for by in BY for train in (True, False)),
        *(
            ("transformed", {"rotations": 4, "by": by, "train": train})
            for by in BY
            for train in (True, False)
        ),
        ("transformed", {"shifts": (0.5, 2.0), "by": "class_means"}),
        ("transformed", {"scales": (0.5, 2.0), "train": False}),
        *(("transformed", {family: True}) for family in ("standardised", "quantiles")),
        ("transformed", {"channels": True, "by": "class_means"}),
        ("tuned", {"learning_rate": 0.0}),
        ("tuned", {"again": "data"}),
    ],
    "aggregators": [
        ("async_mix", {"staleness": "polynomial", "alpha": 1.0}),
        ("async_mix", {"staleness": "constant", "alpha": 0.5}),
        ("fedbuff", {"divide_by": "sum", "cut_off": 2, "weighting": "samples"}),
        ("fedadagrad", {"beta1": 0.5, "initial_v": 0.0}),
        ("fedadam", {"moments": "averaged"}),
        ("fedavg", {"weighting": "uniform"}),
        ("fedyogi", {"preset": "fedscale"}),
        ("krum", {"byzantine": 0.4, "keep": 3}),
        ("norm_clip", {"max_norm": 0.5}),
        ("qfedavg", {"q": 2.5, "learning_rate": 0.5}),
        ("trimmed_mean", {"trim": 0.4}),
    ],
    "clusterers": [
        ("aue", {"num_models": 2, "weigh": "updates", "feddrift_aue_offbyone": True}),
        ("auxo", {"split_rounds": (1, 3, 5), "min_participants": 2, "explore": 0.5}),
        ("auxo", {"split_rounds": "automatic", "min_participants": 2, "min_expected": 0}),
        ("cfl", {"child_init": "initial", "eps1": 5.0, "eps2": 1e-6, "gamma": 0.0, "max_models": 3}),
        ("driftsurf", {"delta": 0.0, "reactive_steps": 2}),
        ("feddrift", {"new_model_init": "copy_best", "max_models": 2, "merge_samples": 7}),
        ("feddrift_eager", {"max_models": 1}),
        ("fielding", {"trigger": {"kind": "pairwise", "delta": 1.5}, "partition": "kcenter"}),
        ("fielding", {"trigger": {"kind": "pairwise", "rule": "printed"}, "average": "every_drift"}),
        ("fielding", {"distance": "js", "trigger": {"kind": "centre_shift", "shift_from": "last_global"}}),
        ("fielding", {"distance": "cosine", "trigger": {"kind": "centre_shift", "threshold": 0}}),
        ("fielding", {"trigger": {"kind": "learned", "explore_events": 1, "keep_events": 1}}),
        ("fielding", {"distance": "squared_euclidean", "min_clusters": 2, "max_clusters": 2}),
        ("flexcfl", {"num_groups": 2, "drift": "sorted_counts", "sampled_per_group": 1, "threshold": 0.0}),
        ("flexcfl", {"num_groups": 1, "pretrain_steps": 1}),
        ("hypcluster", {"num_models": 4}),
        ("ifca", {"choose": "step", "metric": "loss", "first": "choose", "num_models": 4}),
    ],
    "detectors": [
        ("adwin", {"clock": 5, "max_buckets": 2, "min_window_length": 2, "signal": "losses"}),
        ("ddm", {"warm_start": 3, "threshold": 1.0}),
        ("distance", {"eps": 0.5, "distance": "js"}),
        ("eddm", {"wrong_from": 0.15, "warm_start": 3}),
        ("hddm_a", {"two_sided": True}),
        ("hddm_w", {"two_sided": True, "decay": 0.2, "signal": "losses"}),
        ("loss_jump", {"loss": "mean", "delta": 1.5, "theta": 0.5}),
        ("loss_trend", {"loss": "mean", "short": 2, "long": 3, "releases": False}),
        ("page_hinkley", {"threshold": 1.0}),
        ("stepd", {"test": "literal", "significance": 0.3, "queue": 3}),
        ("stepd", {"test": "threshold", "queue": 1}),
    ],
    "memories": [
        ("claimed", {"window": 1}),
        ("held", {"window": 2, "weighting": "exponential"}),
        ("held", {"window": 1, "bootstrap": True}),
    ],
    "partitions": [
        ("dirichlet", {"alpha": 0.01}),
        ("lognormal", {"sigma": 3.0, "min_samples": 4}),
        ("quarters", {"sizes": (1500, 2250, 2750, 3500)}),
        ("shards", {"shards_per_client": 1}),
    ],
    "representations": [
        ("gradient", {"sketch": 4}),
        ("gradient", {"at": "global"}),
    ],
    "schedules": [
        ("adaptive_lr", {"every": "round"}),
        ("on_drift", {"number": "learning_rate", "factor": 0.5, "least": 0.03, "detector": "news"}),
    ],
    "selectors": [
        ("distance", {"distance": "cosine"}),
        ("power_of_choice", {"candidates": 1.0}),
        ("power_of_choice", {"candidates": 3.5, "loss": "last"}),
    ],
}


def required(kind: str, name: str, part):
    return part.Settings(**REQUIRED.get((kind, name), {}))


def parts(kind: str):
    """Parametrises `make`: makes each part of a kind, of its required settings and of its variants.

    The contract of a clusterer plays whole stories, about a second each: their variants are among the sweeps.
    """
    registry = REGISTRIES[kind]
    marks = [pytest.mark.sweep] if kind == "clusterers" else []

    def maker(part, settings, id_: str, marks=()):
        return pytest.param(lambda *facts: part(settings, *facts), id=id_, marks=marks)

    makers = [maker(part, required(kind, name, part), name) for name, part in registry]
    for name, variant in VARIANTS.get(kind, []):
        part = registry.find(name)
        id_ = f"{name}-{'-'.join(map(str, variant.values()))}"
        makers.append(maker(part, part.Settings(**variant), id_, marks))
    return pytest.mark.parametrize("make", makers)


def test_every_part_has_a_doctest():
    finder, without = doctest.DocTestFinder(), []
    for kind, registry in REGISTRIES.items():
        for name, part in registry:
            module = importlib.import_module(part.__module__)
            tests = [*finder.find(part), *finder.find(module)]
            if not any(test.examples for test in tests):
                without.append(f"{kind} {name}")
    assert without == []


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.names()]
)
def test_a_part_describes_itself_and_guards_its_settings(kind, name):
    part = REGISTRIES[kind].find(name)
    settings = required(kind, name, part)
    contracts.check_part(part, settings)
    with pytest.raises(ValueError, match=r"frozen|has no field"):
        setattr(settings, next(iter(type(settings).model_fields), "anything"), None)
    if kind != "pacings":
        assert part(settings) is not part(settings)


@pytest.mark.parametrize("registry", [*REGISTRIES.values(), PROFILES], ids=lambda registry: registry.group)
def test_names_are_listed_in_order_and_an_unknown_one_lists_them(registry: Registry):
    assert registry.names() == sorted(registry.names())
    assert all(name in registry for name in registry.names())
    assert registry.group.startswith("driftscale.")
    with pytest.raises(UnknownNameError, match=", ".join(registry.names())):
        registry.find("no-such-part")


def test_no_two_kinds_share_an_entry_point_group():
    groups = [registry.group for registry in (*REGISTRIES.values(), PROFILES)]
    assert len(set(groups)) == len(groups)


@pytest.mark.slow
@parts("clusterers")
def test_clusterers(make):
    contracts.check_clusterer(make)


@parts("adaptations")
def test_adaptations_keep_their_contract(make):
    contracts.check_adaptation(make)


def test_what_gives_clients_their_context_keeps_the_contract_of_adaptations():
    contracts.check_adaptation(lambda: WithContext(size=3))


def test_settings_of_variants_are_read_back():
    for kind, variants in VARIANTS.items():
        for name, variant in variants:
            settings = (declared := REGISTRIES[kind].find(name).Settings)(**variant)
            assert declared.model_validate(settings.model_dump(mode="json", by_alias=True)) == settings


@parts("detectors")
def test_detectors(make):
    contracts.check_detector(make)


@parts("representations")
def test_representations(make):
    contracts.check_representation(make)


@pytest.mark.slow
@parts("selectors")
def test_selectors(make):
    contracts.check_selector(make)


@pytest.mark.slow
@parts("memories")
def test_memories(make):
    contracts.check_memory(make)


@pytest.mark.slow
@parts("aggregators")
def test_aggregators(make):
    contracts.check_aggregator(make)


@pytest.mark.parametrize("name", ["krum", "median", "norm_clip", "trimmed_mean"])
def test_robust_aggregators(name):
    part = AGGREGATORS.find(name)
    contracts.check_robust_aggregator(lambda: part(part.Settings()))


def test_a_mean_is_not_a_robust_aggregator():
    with pytest.raises(AssertionError, match="one update of ten, of size 1000, moves its model by"):
        contracts.check_robust_aggregator(lambda: FedAvg(FedAvgSettings()))


@pytest.mark.slow
@parts("pacings")
def test_pacings(make):
    contracts.check_pacing(make)


@parts("schedules")
def test_schedules(make):
    contracts.check_schedule(make)


@parts("drifts")
def test_drifts(make):
    contracts.check_drift(make)


@parts("partitions")
def test_partitions(make):
    numbers = np.random.default_rng(1).permutation(600)
    contracts.check_partition(make, Samples(numbers % 10, {"camera": numbers // 30}))
    # Labels that nobody has, in an order that must not matter.
    contracts.check_partition(make, Samples(numbers[::-1] % 10 * 3, {"camera": numbers // 30}))


@parts("availabilities")
def test_availabilities(make, tmp_path):
    # Two devices with a period of 100 s, and one that is online once.
    rows = ["device_id,start_s,end_s,period_s", "a,0,20,100", "a,50,75.5,100", "b,90,100,100", "c,5,6,1000"]
    (tmp_path / "windows.csv").write_text("\n".join(rows) + "\n")
    availability = make().build(40, np.random.default_rng(7), lambda path: tmp_path / path)
    times_s = [0.0, 5.0, 20.0, 99.75, 100.0, 3_600.0, 86_400.0, 1_234_567.5]
    contracts.check_availability(availability, 40, times_s)
    again = make().build(40, np.random.default_rng(7), lambda path: tmp_path / path)
    ids = np.arange(40)
    for time_s in times_s:
        assert again.online(ids, time_s).tolist() == availability.online(ids, time_s).tolist()


@pytest.mark.parametrize("name", PROFILES.names())
def test_device_profiles(name):
    contracts.check_device_profile(load_profile(name))
