from __future__ import annotations

import numpy as np
import pytest

from emulator.plugins import Settings
from traces.drift import DRIFTS
from traces.drift.label_mix import LabelMix, LabelMixSettings, MixShape
from traces.drift.none import NoDrift


def test_no_drift_never_changes_a_share() -> None:
    first, *later = NoDrift(MixShape(mixes=3)).shares(50, 9, 10, -4, 5, np.random.default_rng(1))
    assert len(later) == 8
    assert all(np.array_equal(shares, first) for shares in later)
    assert np.allclose(first.sum(axis=1), 1)


def test_its_clients_are_those_that_label_mix_starts_with() -> None:
    shape = {"mixes": 5, "labels_per_mix": 2, "concentration": 9.0}
    moving = LabelMix(LabelMixSettings.model_validate({**shape, "move_probability": 0.5}))
    still = NoDrift(MixShape.model_validate(shape))
    first, second = (
        list(drift.shares(50, 9, 10, -4, 5, np.random.default_rng(1)))[:5] for drift in (moving, still)
    )
    assert np.array_equal(first, second)


def test_it_has_nothing_that_moves_clients() -> None:
    with pytest.raises(ValueError, match="unknown key 'events'"):
        MixShape.model_validate({"events": []})


def test_drifts_go_by_name() -> None:
    assert DRIFTS.names() == ["buckets", "label_mix", "none"]
    for _, drift in DRIFTS:
        assert issubclass(drift.Settings, Settings)
