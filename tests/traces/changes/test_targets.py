"""Targets beside labels that are mapped by a line: of whom and when, and that nothing else moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.arrays import Floats32
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, some_images, trace_of
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.images import ImageSet
from traces.trace import Trace

NUMBERS = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
POOL = replace(some_images(), numbers=NUMBERS)
STATIC: list[Row] = [
    (client, split, 0, label) for client in (0, 1) for split in (0, 1) for label in (0, 1, 2)
]
LINE = {"target": {"scale": 1.5, "shift": 0.2}}


def changed(*changes: dict[str, Any], pool: ImageSet = POOL, noise: float = 0.0) -> Trace:
    plain = trace_of(STATIC, images=pool, retain_steps=9, test_then_train=False, noise=noise)
    parsed = [
        Change.model_validate({"what": LINE, "on": "held", "at_step": 2} | change) for change in changes
    ]
    return with_changes(plain, parsed, 8, RandomStreams(1))


def held(trace: Trace, step: int, client: int = 0, split: Any = "train") -> tuple[Floats32, Floats32]:
    """(n, 2) the targets that a client holds, and those of the samples without changes."""
    rows = trace.held(np.array([client]), split, step).rows(0)
    return trace.targets(rows), NUMBERS[trace.table.take("image", rows)]


def mapped(targets: Floats32, magnitude: float = 1.0, scale: float = 1.5, shift: float = 0.2) -> np.ndarray:
    """By the definition, in double precision."""
    return targets + magnitude * ((scale - 1) * targets.astype(np.float64) + shift)


def test_targets_are_on_another_line_from_the_onset_to_the_end_for_its_clients() -> None:
    trace = changed({"until_step": 5, "clients": {"names": [0]}})
    for split in ("train", "test"):
        for step in (1, 5, 7):
            assert np.array_equal(*held(trace, step, split=split))
        for step in (2, 4):
            targets, before = held(trace, step, split=split)
            np.testing.assert_allclose(targets, 1.5 * before + 0.2, rtol=1e-6, atol=1e-6)
            assert targets.dtype == np.float32
        assert np.array_equal(*held(trace, 3, client=1, split=split))


def test_a_magnitude_goes_from_no_change_to_the_whole_one() -> None:
    trace = changed({"on": "arrivals", "at_step": 0, "magnitude": 0.25})
    targets, before = held(trace, 0)
    np.testing.assert_allclose(targets, mapped(before, 0.25), rtol=1e-6, atol=1e-6)
    growing = changed({"magnitude": {"from": 0, "to": 1, "over": 4}})
    for step, magnitude in ((2, 0.0), (3, 0.25), (5, 0.75), (7, 1.0)):
        targets, before = held(growing, step)
        np.testing.assert_allclose(targets, mapped(before, magnitude), rtol=1e-6, atol=1e-6)


def test_changes_of_targets_and_of_features_apply_in_their_order_each_to_its_own() -> None:
    noisy = {"what": {"noise": 0.5}}
    other = {"what": {"target": {"scale": -1.0, "shift": 3.0}}}
    trace, alone = changed({}, noisy, other, noise=0.1), changed(noisy, noise=0.1)
    targets, before = held(trace, 3)
    np.testing.assert_allclose(targets, mapped(mapped(before), 1, -1, 3), rtol=1e-5, atol=1e-5)
    rows, same = (one.held(np.array([0]), "train", 3).rows(0) for one in (trace, alone))
    assert trace.features(rows).shape == alone.features(same).shape
    assert np.array_equal(*held(alone, 3))


def test_features_and_labels_stay_to_the_bit() -> None:
    plain = trace_of(STATIC, images=POOL, retain_steps=9, test_then_train=False, noise=0.3)
    trace = changed({}, noise=0.3)
    for client in (0, 1):
        rows, before = (one.held(np.array([client]), "test", 4).rows(0) for one in (trace, plain))
        assert trace.features(rows).tobytes() == plain.features(before).tobytes()
        assert trace.labels(rows).tobytes() == plain.labels(before).tobytes()


def test_it_is_a_concept_of_its_own_and_a_drift_by_its_name() -> None:
    trace = changed({"until_step": 5, "clients": {"names": [0]}})
    assert trace.concepts is not None
    assert trace.concepts[:, 0].tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert not trace.concepts[:, 1].any()
    assert trace.onsets is not None
    assert trace.onsets.step.tolist() == [2, 5]
    assert [turns.name for turns in trace.turns] == ["target"]
    assert trace.digest() != changed({"clients": {"names": [0]}}).digest()


def test_a_trace_without_targets_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        changed({}, pool=some_images())
    assert str(refusal.value) == (
        "trace.changes.0: target: the samples here have no targets beside their label; choices: a trace "
        "folder with targets.npy, or a change of labels or features, such as 'permute'"
    )


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ({"target": {}}, "scale = 1, shift = 0: changes nothing; give another scale, or a shift"),
        ({"target": {"scale": 1e7}}, "less than or equal to 1000000"),
        ("target", "'target' needs a value: write a table, { target = ... }"),
        ({"target": {"factor": 2.0}}, "factor"),
    ],
)
def test_settings_that_say_nothing_are_refused(what: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Change.model_validate({"what": what, "on": "held"})
