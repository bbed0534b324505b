"""FedYogi and q-FedAvg move a model as FedScale's optimisers do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coordinator.aggregators.fedyogi import FedYogi, FedYogiSettings
from coordinator.aggregators.qfedavg import QFedAvg, QFedAvgSettings
from tests.coordinator.aggregators.arrived import arrived
from tests.golden.parity.recorded import recorded

FAIR = recorded("qfedavg")["cases"]
ONE = np.zeros(1, dtype=np.int64)
UNEQUAL = [1, 50, 7, 20]
"""Samples by client, which do not matter here: updates are averaged without weights."""


def test_fedyogi_makes_the_same_steps_with_the_preset_of_fedscale() -> None:
    yogi, content = FedYogi(FedYogiSettings(preset="fedscale")), recorded("fedyogi")
    models = np.array([content["first"]], dtype=np.float32)
    for number, step in enumerate(content["steps"]):
        updates = arrived(step["updates"], model=[0] * 4, num_samples=UNEQUAL)
        models = yogi.aggregate(updates, SimpleNamespace(models=models, model_ids=ONE))
        np.testing.assert_allclose(models[0], step["model"], rtol=0, atol=2e-6, err_msg=str(number))


@pytest.mark.parametrize("case", FAIR, ids=[f"q-{case['q']}" for case in FAIR])
def test_q_fedavg_makes_the_same_step(case: Mapping[str, Any]) -> None:
    delta = arrived(case["updates"], model=[0] * 4, num_samples=UNEQUAL)
    updates = replace(delta, metrics={"loss_before": np.array(case["loss_before"])})
    view = SimpleNamespace(
        models=np.array([case["first"]], dtype=np.float32), model_ids=ONE, learning_rate=case["learning_rate"]
    )
    moved = QFedAvg(QFedAvgSettings(q=case["q"])).aggregate(updates, view)
    np.testing.assert_allclose(moved[0], case["model"], rtol=0, atol=1e-6)
