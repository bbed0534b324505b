"""Rows: one small run for every pacing and every part that has state from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.config import Experiment, parse_experiment
from tests.experiments.small import SMALL, merged

PHONES: Mapping[str, Any] = merged(
    SMALL,
    {
        "trace": {"clients": 16, "drift": {"kind": "label_mix", "move_probability": 0.3}},
        "devices": {"profile": "smartphones"},
        "round": {"rounds": 16, "participants": 5, "over_commit": 1.6},
    },
)
"""Sixteen phones, each of which drifts at a step with probability 0.3.

Lanes close at different times, and there are stragglers.
"""

CONCEPTS: Mapping[str, Any] = {
    "name": "concepts",
    "seeds": [0],
    "trace": {
        "source": "concepts",
        "concepts": "sine",
        "pattern": ["00000", "00110", "01111", "11011", "10011", "00101"],
        "samples_per_step": 40,
        "rounds_per_step": 3,
    },
    "devices": {"profile": "uniform", "availability": "always", "model_factor": 1},
    "training": {
        "model": {"kind": "mlp", "hidden": [4]},
        "local_steps": 10,
        "batch_size": 10,
        "learning_rate": 0.05,
    },
    "round": {"rounds": 15, "participants": 5, "over_commit": 1, "evaluate_every": 3},
    "report": {"window": 1},
    "parts": {"solver": [{"kind": "adam", "amsgrad": True}]},
}
"""Five clients that move between two concepts, with a stateful solver."""

REPORTING: Mapping[str, Any] = merged(
    SMALL,
    {
        "devices": {"profile": "smartphones", "availability": "availability.csv"},
        "round": {"rounds": 10, "participants": 4, "over_commit": 1.6, "evaluate_every": 2},
    },
)
"""Twelve phones that come and go, for five data steps."""

MOVING: Mapping[str, Any] = merged(
    REPORTING, {"trace": {"drift": {"kind": "label_mix", "move_probability": 0.3}}}
)
"""The same, each of which drifts at a step with probability 0.3."""

QUICKLY = {"epochs": 2, "per_label": 4}
"""Settings of a reference model that is trained in a moment."""

SWAPS: Mapping[str, Any] = {
    "trace": {
        "static": True,
        "drift": {"kind": "buckets", "labels_per_client": 3, "buckets": 1, "samples_per_client": 12},
        "changes": [
            {"what": "own_swap", "on": "held", "clients": {"share": 0.5, "redraw": True}, "every": 2}
        ],
    }
}
"""Static data of which half of the clients swap two labels every two rounds, which only gradients show."""

RECLUSTERED: Mapping[str, Any] = {
    "clusterer": {"kind": "fielding", "max_clusters": 3, "trigger": {"threshold": 0.05}}
}
"""Clusters that are made anew at nearly every drift."""

MASKED = {"model": {"kind": "masked", "inner": {"kind": "mlp", "hidden": [4]}}}


def own(name: str, **arguments: Any) -> dict[str, Any]:
    """The training of a module of `tests.executor.modules.foreign`, on the digits."""
    of_digits = {"d": 64, "n": 10} if name == "LoRAMLP" else {"d_in": 64, "n_classes": 10}
    of_digits = {} if name == "SensorGRU" else of_digits
    return {
        "training": {"model": {"kind": f"tests.executor.modules.foreign:{name}", **of_digits, **arguments}}
    }


ARMS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    # pacings
    "lane": (PHONES, {"clusterer": {"kind": "fielding", "max_clusters": 3}}),
    "pooled": (
        PHONES,
        {"clusterer": {"kind": "fielding", "max_clusters": 3}, "pacing": {"kind": "sync", "close": "pooled"}},
    ),
    "deadline": (
        PHONES,
        {"clusterer": {"kind": "fielding", "max_clusters": 3}, "pacing": {"kind": "sync", "deadline_s": 1.5}},
    ),
    "buffered": (
        merged(PHONES, {"round": {"rounds": 12}}),
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3, "trigger": {"threshold": 0.05}},
            "aggregator": "fedbuff",
            "pacing": {"kind": "buffered", "buffer": 3},
            "solver": [{"kind": "sgd", "momentum": 0.9}],
        },
    ),
    "buffered-by-seconds": (
        merged(
            PHONES,
            {
                "devices": {
                    "availability": "availability.csv",
                    "jitter": {"compute": 0.1, "network": 0.3, "model": 0.2},
                },
                "round": {"rounds": 6, "seconds_per_round": 1.5, "evaluate_every_s": 2},
                "faults": {"crash": 0.1, "loss": 0.1},
            },
        ),
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3},
            "pacing": {
                "kind": "buffered",
                "buffer": 1,
                "concurrency": 6,
                "refill": 2,
                "timeout_s": 1.0,
                "max_staleness": 6,
                "push": "online",
            },
            "selector": "fewest_updates",
            "detectors": {"own": "changed", "news": {"kind": "stepd", "significance": 0.4}},
            "schedules": ["on_drift", "slowness"],
            "solver": [{"kind": "fedprox", "mu": 0.05}, "aso_memory", "sgd"],
            "aggregator": "sample_share",
        },
    ),
    # where clients stop early, tasks of several dispatches are trained before they are absorbed together
    "buffered-early-stopping": (
        merged(PHONES, {"round": {"rounds": 5}, "faults": {"crash": 0.2}}),
        {
            **RECLUSTERED,
            "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4},
            "training": {"local_epochs": 4},
            "solver": [{"kind": "early_stopping", "gamma": 0.05, "first": "infinite"}, "sgd"],
            "aggregator": {"kind": "async_mix", "staleness": "hinge", "b": 1},
        },
    ),
    # clusterers
    "single": (PHONES, {}),
    "static": (PHONES, {"clusterer": {"kind": "static", "max_clusters": 3}}),
    "fielding-from-the-last": (
        PHONES,
        {
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "trigger": {"kind": "centre_shift", "threshold": 0.05, "shift_from": "last_global"},
            }
        },
    ),
    "fielding-learned": (
        PHONES,
        {
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "trigger": {"kind": "learned", "thresholds": [0, 0.5], "explore_events": 1, "keep_events": 1},
            }
        },
    ),
    # representations, triggers, partitions, and who is heard
    "embedding": (
        merged(MOVING, {"round": {"hear": "check_in"}}),
        {
            "representation": {"kind": "embedding", "model": {"kind": "mlp", "hidden": [6]}, **QUICKLY},
            "detectors": {"moved": {"kind": "distance", "eps": 0.01, "distance": "cosine"}},
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "distance": "cosine",
                "trigger": {"threshold": 0.5, "shift_from": "last_global"},
            },
        },
    ),
    "gradient": (
        merged(merged(REPORTING, SWAPS), {"round": {"hear": "everyone"}}),
        {
            "representation": {"kind": "gradient", "sketch": 40, **QUICKLY},
            "detectors": {"moved": {"kind": "distance", "eps": 0.01}},
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "partition": "kcenter",
                "trigger": {"kind": "pairwise", "delta": 2.0},
                "average": "every_drift",
            },
            "pacing": {"kind": "sync", "share": "equal"},
        },
    ),
    "gradient-in-full": (
        merged(MOVING, {"trace": {"shared": "one"}}),
        {
            "representation": {"kind": "gradient", **QUICKLY},
            "detectors": {"moved": {"kind": "distance", "eps": 0.1, "distance": "euclidean"}},
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "distance": "squared_euclidean",
                "trigger": {"threshold": 0.18, "shift_from": "previous"},
                "follow": "participants",
            },
        },
    ),
    "gradient-at-the-mean-model": (
        MOVING,
        {
            "representation": {"kind": "gradient", "at": "global"},
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "trigger": {"kind": "pairwise", "delta": 4.0, "rule": "printed"},
            },
        },
    ),
    "labels-by-js": (
        merged(
            REPORTING,
            {
                "trace": {
                    "drift": {
                        "kind": "buckets",
                        "labels_per_client": 9,
                        "buckets": 3,
                        "after": "repeat",
                        "samples_per_client": 60,
                    }
                },
                "round": {"hear": "check_in"},
            },
        ),
        {
            "clusterer": {
                "kind": "fielding",
                "max_clusters": 3,
                "distance": "js",
                "trigger": {"kind": "pairwise", "delta": 0.78, "rule": "fixed"},
                "follow": "participants",
            },
        },
    ),
    "ifca": (CONCEPTS, {"clusterer": {"kind": "ifca", "num_models": 3, "metric": "loss"}}),
    "ifca-by-step": (CONCEPTS, {"clusterer": {"kind": "ifca", "choose": "step"}, "memory": "claimed"}),
    "auxo": (
        PHONES,
        {
            "clusterer": {"kind": "auxo", "split_rounds": [3, 6], "min_participants": 3},
            "pacing": {"kind": "sync", "share": "equal"},
        },
    ),
    "hypcluster": (CONCEPTS, {"clusterer": {"kind": "hypcluster", "num_models": 3}}),
    "flexcfl": (MOVING, {"clusterer": {"kind": "flexcfl", "num_groups": 2, "pretrain_steps": 3}}),
    "cfl": (CONCEPTS, {"clusterer": {"kind": "cfl", "eps1": 10.0, "eps2": 0.001, "min_size": 2}}),
    "feddrift": (CONCEPTS, {"clusterer": {"kind": "feddrift", "delta": 0.05}, "memory": "claimed"}),
    "feddrift-c": (CONCEPTS, {"clusterer": {"kind": "feddrift_c", "delta": 0.05}, "memory": "claimed"}),
    "feddrift-eager": (
        CONCEPTS,
        {
            "clusterer": {"kind": "feddrift_eager", "delta": 0.05},
            "memory": {"kind": "claimed", "window": 2},
        },
    ),
    "driftsurf": (CONCEPTS, {"clusterer": {"kind": "driftsurf", "delta": 0.05}, "memory": "claimed"}),
    "aue": (CONCEPTS, {"clusterer": "aue", "memory": "claimed"}),
    "aue-pc": (CONCEPTS, {"clusterer": {"kind": "aue_pc", "weigh": "updates"}, "memory": "claimed"}),
    "kue": (
        CONCEPTS,
        {
            "clusterer": {"kind": "kue", "num_models": 4},
            "memory": {"kind": "held", "window": 1, "bootstrap": True},
            "training": MASKED,
        },
    ),
    "oracle": (CONCEPTS, {"clusterer": "oracle", "memory": "claimed"}),
    # detectors that watch training, all of them, groups by their flags, and numbers of tasks by group
    "drift-groups": (
        merged(CONCEPTS, {"detection": {}}),
        {
            "detectors": {
                "jump": {"kind": "loss_jump", "delta": 1.1, "theta": 0.1, "warm_start": 2},
                "trend": {"kind": "loss_trend", "short": 2, "long": 3},
                "ddm": {"kind": "ddm", "warm_start": 3, "threshold": 1.0},
                "eddm": {"kind": "eddm", "warm_start": 2, "wrong_from": 0.3},
                "hddm_a": {"kind": "hddm_a", "confidence": 0.3},
                "hddm_w": {"kind": "hddm_w", "confidence": 0.5, "two_sided": True, "signal": "losses"},
                "page_hinkley": {"kind": "page_hinkley", "warm_start": 3, "threshold": 0.2},
                "adwin": {"kind": "adwin", "clock": 4, "delta": 0.9},
            },
            "clusterer": {
                "kind": "drift_groups",
                "groups": {"sudden": ["jump"], "incremental": ["trend"], "both": ["jump", "trend"]},
                "sticky": False,
            },
            "schedules": [
                "adaptive_lr",
                {"kind": "by_cluster", "clusters": {"2": {"adam.beta1": 0.6, "local_steps": 7}}},
            ],
        },
    ),
    # memories, schedules, solvers
    "held-with-weights": (CONCEPTS, {"memory": {"kind": "held", "weighting": "exponential"}}),
    "adaptive-lr": (CONCEPTS, {"schedules": ["adaptive_lr"], "solver": ["sgd"]}),
    "momentum": (CONCEPTS, {"solver": [{"kind": "sgd", "momentum": 0.9}]}),
    "adam-by-step": (CONCEPTS, {"solver": [{"kind": "adam", "keep": "step"}], "memory": "claimed"}),
    # what clients remember, while clusters move and are made anew, and what their aggregator sends along
    "scaffold": (
        merged(PHONES, {"round": {"rounds": 8}}),
        {**RECLUSTERED, "solver": ["scaffold", "sgd"], "aggregator": "scaffold"},
    ),
    "scaffold-claimed": (
        CONCEPTS,
        {
            "clusterer": {"kind": "feddrift", "delta": 0.05},
            "memory": "claimed",
            "solver": ["scaffold", "sgd"],
            "aggregator": "scaffold",
        },
    ),
    "feddyn": (
        merged(PHONES, {"round": {"rounds": 8}}),
        {**RECLUSTERED, "solver": ["feddyn", "sgd"], "aggregator": "feddyn"},
    ),
    "feddc": (
        merged(PHONES, {"round": {"rounds": 8}}),
        {
            **RECLUSTERED,
            "training": {"local_epochs": 3},
            "solver": ["feddc", {"kind": "early_stopping", "gamma": 0.05}, "sgd"],
            "aggregator": "feddc",
        },
    ),
    "ditto": (
        merged(PHONES, {"round": {"rounds": 8, "accuracies": ["trained", "pooled"]}}),
        {
            **RECLUSTERED,
            "solver": ["ditto", "sgd"],
            "aggregator": "fedbuff",
            "pacing": {"kind": "buffered", "buffer": 3},
        },
    ),
    "apfl": (
        merged(PHONES, {"round": {"rounds": 8, "accuracies": ["trained"]}}),
        {**RECLUSTERED, "solver": [{"kind": "apfl", "adaptive": True}, "sgd"]},
    ),
    "personal-layers": (
        merged(PHONES, {"round": {"rounds": 8}, "training": {"model": {"kind": "mlp", "hidden": [4]}}}),
        {**RECLUSTERED, "solver": [{"kind": "personal_layers", "alternate": True}, "sgd"]},
    ),
    # aggregators with state or metrics of their own, where models change
    "fedyogi": (
        PHONES,
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3},
            "aggregator": {"kind": "fedyogi", "moments": "averaged"},
        },
    ),
    "flash": (
        merged(PHONES, {"round": {"rounds": 8}}),
        {
            **RECLUSTERED,
            "training": {"local_epochs": 3, "last": "short"},
            "solver": [{"kind": "early_stopping", "gamma": 0.05}, "sgd"],
            "aggregator": {"kind": "flash", "moments": "averaged"},
        },
    ),
    "fednova": (
        PHONES,
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3},
            "solver": ["fedprox", {"kind": "sgd", "momentum": 0.5}],
            "aggregator": "fednova",
        },
    ),
    "qfedavg": (
        PHONES,
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3},
            "aggregator": {"kind": "qfedavg", "q": 0.5},
        },
    ),
    # selectors that request scores, compare reports, or remember losses and visits
    "power-of-choice": (MOVING, {"clusterer": {"kind": "fielding"}, "selector": "power_of_choice"}),
    "oort": (
        PHONES,
        {
            "clusterer": {"kind": "fielding", "max_clusters": 3},
            "selector": {"kind": "oort", "exploration_min": 0.1, "exploration_decay": 0.7, "pacer_step": 3},
        },
    ),
    "distance": (MOVING, {"clusterer": {"kind": "fielding", "max_clusters": 3}, "selector": "distance"}),
    "last-losses": (MOVING, {"selector": {"kind": "power_of_choice", "loss": "last", "candidates": 1.5}}),
    # adaptations: with batches of their own, scores, reports of labels beside others, and state
    "tuned": (
        merged(PHONES, {"round": {"rounds": 6}}),
        {"clusterer": {"kind": "fielding", "max_clusters": 3}, "adaptation": "tuned"},
    ),
    "tuned-kept": (
        merged(CONCEPTS, {"round": {"evaluate_clients": 3, "evaluate_every": 1}}),
        {"adaptation": {"kind": "tuned", "again": "data"}},
    ),
    "relabelled": (CONCEPTS, {"clusterer": "oracle", "memory": "claimed", "adaptation": "relabelled"}),
    # ways in which samples are read: in scores and visits, in flight, of labels, and by what was heard
    "ways-by-loss": (
        merged(PHONES, {"round": {"rounds": 6, "accuracies": ["trained"]}}),
        {
            "clusterer": {"kind": "ifca", "num_models": 2},
            "selector": "power_of_choice",
            "adaptation": {"kind": "transformed", "rotations": 4},
        },
    ),
    "ways-by-class-means": (
        merged(PHONES, {"round": {"rounds": 5}, "faults": {"crash": 0.2}}),
        {
            "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4},
            "training": {"local_epochs": 4},
            "solver": [{"kind": "early_stopping", "gamma": 0.05, "first": "infinite"}, "sgd"],
            "aggregator": "async_mix",
            "detectors": {"news": {"kind": "stepd", "significance": 0.4}},
            "schedules": ["slowness"],
            "adaptation": {"kind": "transformed", "rotations": 4, "by": "class_means"},
        },
    ),
    "ways-of-labels": (
        merged(CONCEPTS, {"round": {"accuracies": ["trained"], "log_model_accuracy": True}}),
        {
            "clusterer": "aue",
            "memory": "claimed",
            "adaptation": {"kind": "relabelled", "train": True, "by": "class_means"},
        },
    ),
    "context": (
        merged(PHONES, {"round": {"rounds": 6, "evaluate_clients": 7}}),
        {
            **RECLUSTERED,
            "pacing": {"kind": "buffered", "buffer": 3},
            "aggregator": "fedbuff",
            "representation": {"kind": "gradient", "sketch": 40, **QUICKLY},
            "training": {"model": {"kind": "context", "inner": "linear", "size": 5}},
        },
    ),
    "mixture": (
        CONCEPTS,
        {"training": {"model": {"kind": "mixture", "inner": "linear", "size": 5, "experts": 2}}},
    ),
    "prior": (
        merged(MOVING, {"round": {"hear": "check_in", "rounds": 6}}),
        {
            "clusterer": {"kind": "ifca", "num_models": 2},
            "representation": {"kind": "embedding", **QUICKLY},
            "adaptation": {"kind": "prior", "shares": "reported"},
        },
    ),
    "alone": (
        merged(CONCEPTS, {"round": {"evaluate_clients": 3}}),
        {"adaptation": {"kind": "alone", "steps_per_round": 1.7}},
    ),
    # surroundings
    "faulty": (
        merged(
            PHONES,
            {
                "faults": {
                    "crash": 0.2,
                    "corrupt": 0.2,
                    "loss": 0.1,
                    "byzantine": [
                        {"kind": kind, "share": 0.2} for kind in ("noise", "misreport", "label_flip")
                    ],
                }
            },
        ),
        {"clusterer": {"kind": "fielding", "max_clusters": 3}, "aggregator": "trimmed_mean"},
    ),
    # modules of one's own
    "dropout": (
        merged(PHONES, {"round": {"rounds": 8}}),
        {**RECLUSTERED, "solver": ["ditto", "sgd"], **own("MLPDropout", hidden=16, p=0.4)},
    ),
    "batch-norm": (
        merged(PHONES, {"round": {"rounds": 8}, "faults": {"crash": 0.2}}),
        {
            **RECLUSTERED,
            "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4},
            "training": {"local_epochs": 3, **own("BNMLP", hidden=8)["training"]},
            "solver": [{"kind": "early_stopping", "gamma": 0.05}, "sgd"],
            "aggregator": "async_mix",
        },
    ),
    "batch-norm-kept": (
        merged(PHONES, {"round": {"rounds": 8, "accuracies": ["trained"]}}),
        {**RECLUSTERED, "training": {"batch_norm": "kept", **own("BNMLP", hidden=8)["training"]}},
    ),
    # a frozen body, which clients download once: also along with requests, and again if it did not arrive
    "low-rank": (
        merged(
            PHONES,
            {
                "devices": {"availability": "availability.csv"},
                "faults": {"crash": 0.2},
                "round": {"rounds": 8},
            },
        ),
        {
            **RECLUSTERED,
            "selector": "power_of_choice",
            "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4, "push": "online"},
            "aggregator": "fedbuff",
            **own("LoRAMLP", hidden=8),
        },
    ),
    "recurrent": (
        merged(PHONES, {"round": {"rounds": 4}}),
        own("SensorGRU", channels=8, hidden=4),
    ),
    "away": (
        merged(
            PHONES,
            {
                "devices": {"availability": "availability.csv"},
                "round": {"evaluate_clients": 7, "min_online": 3},
            },
        ),
        {"clusterer": {"kind": "fielding", "max_clusters": 3}},
    ),
}


AVAILABILITY = """\
device_id,start_s,end_s,period_s
a,0,5,6
b,0,2,6
b,3,6,6
c,1,5.5,6
d,0,6,6
e,0.5,4.5,6
"""
"""The availability table of the row `away`: visits take about a second, and many clients drop out."""


def row(name: str, **changes: Any) -> Experiment:
    """The experiment of a row, with one arm; both have the name of the row."""
    table, arm = ARMS[name]
    names = {"name": name, "arm": [{"name": name, **arm}]}
    return parse_experiment(merged(merged(table, names), changes), name)
