"""What detectors declare as their threshold."""

from __future__ import annotations

import pytest

from coordinator.detectors import DETECTORS

HAVE_NONE = {"changed", "loss_trend"}


@pytest.mark.parametrize("kind", DETECTORS.ours())
def test_a_threshold_is_a_number_among_the_settings_of_a_detector(kind: str) -> None:
    part = DETECTORS.find(kind)
    if kind in HAVE_NONE:
        assert part.threshold is None
    else:
        assert part.Settings.model_fields[part.threshold or ""].annotation is float
