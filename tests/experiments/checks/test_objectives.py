"""What has no meaning where models are not trained on labels is refused by name, with the remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftscale import write_trace
from emulator.errors import ConfigurationError
from experiments.build import build_world, stated_objective
from experiments.checks.arms import check_arms
from experiments.checks.objectives import refused_of_folder
from experiments.config import parse_experiment
from experiments.locating import locator
from tests.experiments import numbered
from tests.experiments.small import merged, small_table
from traces.files import open_folder
from traces.files.facts import read_facts, write_facts


def check(objective: Any, arm: dict[str, Any], **changes: Any) -> None:
    """Check an arm on samples that have labels and numbers."""
    trace = {"source": f"{numbered.__name__}:Numbered", "rounds_per_step": 2, "samples_per_step": 6}
    table = {**small_table(training={"objective": objective}), "trace": trace, "arm": [{"name": "a", **arm}]}
    experiment = parse_experiment(merged(table, changes), "numbered")
    check_arms(experiment, ["a"], build_world(experiment, 0, locator(None, None)))


@pytest.mark.parametrize(
    ("arm", "what", "instead"),
    [
        ({"clusterer": "kue"}, "clusterer = 'kue'", "take another"),
        ({"clusterer": "aue"}, "clusterer = 'aue'", "take another"),
        ({"clusterer": "aue_pc"}, "clusterer = 'aue_pc'", "take another"),
        ({"adaptation": "prior"}, "adaptation = 'prior'", "take another"),
        ({"adaptation": "relabelled"}, "adaptation = 'relabelled'", "take another"),
        ({"detectors": {"d": "ddm"}}, "detector d = 'ddm'", "set signal = 'losses'"),
        ({"detectors": {"d": "eddm"}}, "detector d = 'eddm'", "set signal = 'losses'"),
        ({"detectors": {"d": "stepd"}}, "detector d = 'stepd'", "take another"),
    ],
)
def test_a_part_that_reads_labels_is_refused_by_name(arm: dict[str, Any], what: str, instead: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"arm 'a': {what}: reads which labels")) as error:
        check("multi_label", arm)
    assert str(error.value).endswith(f"training.objective = 'multi_label'; {instead}")


@pytest.mark.parametrize("what", ["xor", "reverse", "permute", {"swap": [[0, 1]]}])
def test_a_change_of_labels_that_no_model_sees_is_refused(what: Any) -> None:
    change = {"what": what, "on": "held", "clients": {"share": 0.5}, "at_step": 1}
    name = what if isinstance(what, str) else "swap"
    with pytest.raises(ConfigurationError, match=f"trace.changes: what = '{name}' .* no model sees that"):
        check("multi_label", {}, trace={"changes": [change]})


def test_samples_with_targets_need_an_objective_that_is_named() -> None:
    with pytest.raises(ConfigurationError, match="nothing says what is told; choices: 'squared_error'"):
        check(None, {})
    check("labels", {})


def test_a_text_without_a_token_to_tell_is_refused_by_its_number(tmp_path: Path) -> None:
    texts = np.array([[1, 2, 1], [2, 1, 0], [2, 0, 0]], np.uint8)
    frame = {"client": [0, 0, 1], "mood": [0, 1, 0]}
    folder = tmp_path / "texts"
    write_trace(folder, texts, frame, client="client", label="mood", tokens=0, vocabulary=3, test_share=0)
    objective = {"kind": "next_token"}
    facts = read_facts(folder)
    write_facts(folder, facts.model_copy(update={"objective": objective}))
    [finding] = refused_of_folder(open_folder(folder))
    assert (finding.path.name, finding.problem) == (
        "features.npy",
        "sample 2: has no token behind its first one, so none to tell",
    )


def test_an_objective_of_ones_own_is_set_in_the_configuration_alone() -> None:
    with pytest.raises(ConfigurationError, match="'mine:Mine' is of your own; set it as training"):
        stated_objective({"kind": "mine:Mine"})


LINE = {"what": {"target": {"scale": 2.0}}, "on": "held", "clients": {"share": 0.5}, "at_step": 1}


@pytest.mark.parametrize("kind", ["labels", "multi_label"])
def test_a_change_of_targets_is_refused_where_no_numbers_are_told(kind: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        check(kind, {}, trace={"changes": [LINE]})
    assert str(refusal.value) == (
        f"trace.changes: what = 'target' maps numbers, and training.objective = {kind!r} reads none; set "
        f"'squared_error' or 'absolute_error', or leave it out"
    )


def test_a_change_of_targets_is_taken_where_numbers_are_told() -> None:
    check({"kind": "squared_error", "tolerance": 0.5}, {}, trace={"changes": [LINE]})


def test_flipped_labels_that_no_model_sees_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"faults.byzantine: kind = 'label_flip' .*: 'sign_flip'"):
        check("multi_label", {}, faults={"byzantine": {"kind": "label_flip", "share": 0.2}})


@pytest.mark.parametrize(
    ("arm", "changes"),
    [
        ({"detectors": {"d": {"kind": "ddm", "signal": "losses"}}}, {"detection": {}}),
        ({"adaptation": "tuned"}, {}),
        ({}, {"faults": {"byzantine": {"kind": "sign_flip", "share": 0.2}}}),
    ],
)
def test_what_reads_losses_is_taken_beside_another_objective(
    arm: dict[str, Any], changes: dict[str, Any]
) -> None:
    change = {"what": {"noise": 1.0}, "on": "held", "clients": {"share": 0.5}, "at_step": 1}
    check("multi_label", arm, **{"trace": {"changes": [change]}, **changes})


def test_all_of_it_is_taken_beside_labels() -> None:
    change = {"what": "xor", "on": "held", "clients": {"share": 0.5}, "at_step": 1}
    for arm in ({"clusterer": "aue"}, {"adaptation": "prior"}, {"adaptation": "relabelled"}):
        check("labels", arm, trace={"changes": [change]})
