from __future__ import annotations

import numpy as np

from coordinator.detectors.changed import Changed
from coordinator.reports import Reports
from emulator.plugins import NoParameters

CHANGED = {"changed": Changed(NoParameters())}
A, B = [1.0, 0.0], [0.5, 0.5]


def test_news_waits_until_it_is_taken() -> None:
    reports = Reports(3, 2)
    reports.data_changed(np.array([0, 2]))
    assert reports.with_news().tolist() == [0, 2]
    reports.taken(np.array([0]))
    assert reports.with_news().tolist() == [2]
    reports.taken(np.array([2]))
    assert reports.with_news().tolist() == []


def test_whoever_never_reported_reports_whatever_the_detectors_say() -> None:
    reports = Reports(2, 2)
    reporting, drift = reports.hear(np.array([1]), np.array([A]), {})
    assert reporting.tolist() == [1]
    assert drift == {}
    np.testing.assert_array_equal(reports.latest, [[np.nan, np.nan], A])


def test_a_client_is_compared_with_its_last_report_and_not_with_its_last_look() -> None:
    reports = Reports(1, 2)
    client = np.array([0])
    reports.hear(client, np.array([A]), CHANGED)
    reporting, drift = reports.hear(client, np.array([A]), CHANGED)
    assert reporting.tolist() == []
    assert drift["changed"].tolist() == [False]
    reporting, drift = reports.hear(client, np.array([B]), CHANGED)
    assert reporting.tolist() == [0]
    assert drift["changed"].tolist() == [True]
    np.testing.assert_array_equal(reports.latest, [B])
