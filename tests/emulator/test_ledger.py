from __future__ import annotations

import numpy as np

from emulator.ledger import Ledger


def test_training_traffic_is_kept_by_direction() -> None:
    ledger = Ledger()
    ledger.charge_training(np.array([10.0, 20.0]), np.array([1.0, 2.5]))
    ledger.charge_training(np.array([5.0]), np.array([0.0]))
    assert (ledger.download_bytes, ledger.upload_bytes, ledger.control_bytes) == (35.0, 3.5, 0.0)


def test_control_traffic_of_both_ways_is_one_sum_apart_from_training() -> None:
    ledger = Ledger()
    ledger.charge_control(np.array([10.0, 20.0]), np.array([1.0, 2.5]))
    assert (ledger.download_bytes, ledger.upload_bytes, ledger.control_bytes) == (0.0, 0.0, 33.5)


def test_requests_to_no_clients_cost_nothing() -> None:
    ledger = Ledger()
    ledger.charge_control(np.zeros(0), np.zeros(0))
    assert ledger == Ledger()
