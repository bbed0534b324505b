"""FedScale's time model on the profile `smartphones` gives the durations of FedScale's own device data.

The figures are those of the true marginals: batches of 20, each direction the whole model, the round the
100th fastest of 130 clients that are all online. Each printed figure is reproduced within 5 %.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from device_profiles import load_profile
from emulator.latency import FedScaleLatency
from emulator.messages import Work

MEGABYTE = 1e6
SELECTED, KEPT, ROUNDS, BATCH = 130, 100, 4000, 20


@pytest.mark.parametrize(
    ("megabytes", "steps", "compute", "communication", "total", "round_s"),
    [
        pytest.param(44.8, 5, [12, 57], [115, 499], [28, 140, 412, 684], 288, id="ResNet-18, 5 steps"),
        pytest.param(44.8, 20, [49, 227], [115, 499], [50, 225, 514, 804], 365, id="ResNet-18, 20 steps"),
        pytest.param(30, 20, [49, 227], [77, 334], [43, 193, 394, 599], 285, id="ShuffleNet-2x"),
        pytest.param(1, 20, [49, 227], [2.6, 11], [25, 52, 213, 240], 182, id="1 MB"),
    ],
)
def test_each_figure_is_within_5_percent(
    generator: Callable[[], np.random.Generator],
    megabytes: float,
    steps: int,
    compute: list[float],
    communication: list[float],
    total: list[float],
    round_s: float,
) -> None:
    clients = SELECTED * ROUNDS
    fleet = load_profile("smartphones").draw(clients, generator())
    model_bytes = np.full(clients, megabytes * MEGABYTE)
    samples = np.full(clients, float(BATCH * steps))
    work = Work(model_bytes, model_bytes, np.zeros(clients), samples)

    phases = FedScaleLatency(fleet).phases(np.arange(clients), work)

    communication_s = phases.download_s + phases.upload_s
    slowest_kept = np.partition(phases.total_s.reshape(ROUNDS, SELECTED), KEPT - 1, axis=1)[:, KEPT - 1]
    assert np.quantile(phases.compute_s, [0.5, 0.95]) == pytest.approx(compute, rel=0.05)
    assert np.quantile(communication_s, [0.5, 0.95]) == pytest.approx(communication, rel=0.05)
    assert np.quantile(phases.total_s, [0.05, 0.5, 0.9, 0.99]) == pytest.approx(total, rel=0.05)
    assert slowest_kept.mean() == pytest.approx(round_s, rel=0.05)
