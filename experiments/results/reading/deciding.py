"""The part of a configuration that decides the results of a run, and how two configurations differ in it.

Works on configurations as tables, as `Experiment.resolved` and `RunDirectory.experiment` return them: every
default is written out, and plug-ins need not be installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

WITHOUT_EFFECT = {
    "executor": ("threads", "worker_timeout_s", "on_out_of_memory"),
    "trace": ("build",),
    "detection": ("positive", "first_round", "last_round", "tolerance"),
}
"""Keys of tables that have other, deciding keys."""

WITHOUT_EFFECT_IN_AN_ARM = ("baseline",)
"""Keys of an arm that affect no run, only what the results compare."""

WITHOUT_EFFECT_ALONE = ("seeds", "checkpoint", "output", "report", "atlas", "training")
"""Keys at the top that affect no run: in a resolved configuration, every arm has its own `training`."""


def deciding(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that affect the result of an (arm, seed), with the arms by name; also `name`.

    These are all keys but those of seeds, threads, worker timeout, lack of memory, checkpoints, output,
    report, what was chosen for the atlas, baselines, how detectors are scored, and the command that builds a
    trace folder.
    """
    kept = {key: value for key, value in experiment.items() if key not in WITHOUT_EFFECT_ALONE}
    for section, keys in WITHOUT_EFFECT.items():
        if isinstance(kept.get(section), Mapping):
            kept[section] = {key: value for key, value in kept[section].items() if key not in keys}
    arms = {
        arm["name"]: {key: value for key, value in arm.items() if key not in WITHOUT_EFFECT_IN_AN_ARM}
        for arm in experiment["arm"]
    }
    return {**kept, "arm": arms}


def run_identities(experiment: Mapping[str, Any]) -> dict[str, str]:
    """By arm, a text that is the same for two configurations exactly if their runs of that arm are the same.

    The name of the experiment and its other arms do not count.
    """
    kept = deciding(experiment)
    arms = kept.pop("arm")
    kept.pop("name", None)
    shared = json.dumps(kept, sort_keys=True, default=str)
    return {name: f"{shared} {json.dumps(arm, sort_keys=True, default=str)}" for name, arm in arms.items()}


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """`key was X, is Y` for each value that differs; an arm that only one side has does not count."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            if path == "arm" and not (key in old and key in new):
                continue
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif (old, new) in ((None, {}), ({}, None)):  # a table that decides by being there
        yield f"[{path}] was {'left out, is given' if old is None else 'given, is left out'}"
    elif old != new:
        yield f"{path} was {old!r}, is {new!r}"
