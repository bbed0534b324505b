from __future__ import annotations

from typing import ClassVar

import numpy as np

from coordinator.detectors.changed import Changed
from coordinator.federation.hearing.reports import Reports
from emulator.arrays import Bools, Floats, Ints
from emulator.plugins import NoSettings

CHANGED = {"changed": Changed(NoSettings())}
A, B = [1.0, 0.0], [0.5, 0.5]


class OnlineFrom:
    """Client i is online from `start_s[i]` to `end_s[i]`; counts the clients that `online` checked."""

    facts: ClassVar[dict[str, int]] = {}

    def __init__(self, start_s: list[float], end_s: list[float]) -> None:
        self.start_s, self.end_s = np.array(start_s), np.array(end_s)
        self.checked = 0

    def online(self, ids: Ints, time_s: float) -> Bools:
        self.checked += len(ids)
        return (self.start_s[ids] <= time_s) & (time_s < self.end_s[ids])

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        return np.where(self.start_s[ids] > time_s, self.start_s[ids], np.inf)

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        raise AssertionError("reports must not use next_offline_s")


def test_what_a_client_reported_is_forgotten_with_its_news_and_its_next_report_is_a_first_one() -> None:
    reports, availability = Reports(3, 2), OnlineFrom([0.0, 9.0, 0.0], [50.0] * 3)
    reports.forget(np.array([0]))  # nobody has reported yet
    reports.hear(np.arange(3), np.array([A, A, A]), CHANGED)
    reports.data_changed(np.array([0, 1]))
    assert reports.online_with_news(availability, 5.0).tolist() == [0]
    reports.forget(np.array([0, 1]))
    assert reports.all_with_news().tolist() == []
    assert reports.checked_in(20.0)[0].tolist() == []
    assert np.isnan(reports.latest).all(axis=1).tolist() == [True, True, False]
    heard, drift, _ = reports.hear(np.array([1, 2]), np.array([A, A]), CHANGED)
    assert heard.tolist() == [1]
    assert drift["changed"].tolist() == [False, True, False]


def test_clients_have_news_until_they_are_checked() -> None:
    reports = Reports(3, 2)
    reports.data_changed(np.array([0, 2]))
    assert reports.all_with_news().tolist() == [0, 2]
    reports.taken(np.array([0]))
    assert reports.all_with_news().tolist() == [2]
    reports.taken(np.array([2]))
    assert reports.all_with_news().tolist() == []


def test_offline_clients_with_news_are_found_when_they_come_online_and_not_looked_up_before() -> None:
    availability = OnlineFrom([0.0, 10.0, 30.0, 0.0], [50.0, 20.0, 50.0, 1.0])
    reports = Reports(4, 2)
    reports.data_changed(np.array([0, 1, 2, 3]))
    assert reports.online_with_news(availability, 5.0).tolist() == [0]
    reports.taken(np.array([0]))
    assert availability.checked == 4
    assert reports.online_with_news(availability, 9.0).tolist() == []
    assert availability.checked == 4
    assert reports.online_with_news(availability, 10.0).tolist() == [1]
    # Client 1 was not marked as checked, and is offline again at 35 s.
    assert reports.online_with_news(availability, 35.0).tolist() == [2]
    # Client 3 never comes back, but is looked up again after a new arrival.
    reports.data_changed(np.array([3]))
    assert reports.online_with_news(availability, 0.5 + 35.0).tolist() == [2]


def test_clients_that_were_found_offline_check_in_at_the_instant_at_which_they_come_online() -> None:
    availability = OnlineFrom([0.0, 10.0, 30.0, 60.0, 10.0], [50.0, 20.0, 50.0, 70.0, 20.0])
    reports = Reports(5, 2)
    reports.data_changed(np.array([0, 1, 2, 3]))
    assert reports.checked_in(5.0)[0].tolist() == []  # nobody has been looked up
    reports.taken(reports.online_with_news(availability, 5.0))
    ids, online_s = reports.checked_in(30.0)  # client 2 comes online at this very instant
    assert (ids.tolist(), online_s.tolist()) == ([1], [10.0])
    reports.taken(ids)
    assert reports.online_with_news(availability, 30.0).tolist() == [2]
    reports.taken(np.array([2]))
    reports.data_changed(np.array([1, 3]))  # before client 3 came online: it is looked up again
    assert reports.checked_in(65.0)[0].tolist() == []


def test_clients_that_are_not_followed_keep_their_news_and_do_not_check_in() -> None:
    availability = OnlineFrom([0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 20.0, 20.0])
    reports = Reports(4, 2)
    reports.data_changed(np.array([0, 1, 2, 3]))
    assert reports.online_with_news(availability, 5.0, among=np.array([1, 2])).tolist() == [1]
    assert reports.checked_in(15.0)[0].tolist() == [2]
    assert reports.all_with_news(among=np.array([0, 3])).tolist() == [0, 3]
    # Client 2 is followed no more, and its news wait.
    assert reports.online_with_news(availability, 6.0, among=np.array([0])).tolist() == [0]
    assert reports.checked_in(15.0)[0].tolist() == []
    assert reports.online_with_news(availability, 15.0).tolist() == [0, 1, 2, 3]


def test_no_report_takes_no_memory() -> None:
    latest = Reports(1_000_000, 10).latest
    assert latest.shape == (1_000_000, 10)
    assert latest.strides == (0, 0)
    assert np.isnan(latest[7, 3])


def test_a_client_that_never_reported_reports_whatever_the_detectors_return() -> None:
    reports = Reports(2, 2)
    reporting, drift, _ = reports.hear(np.array([1]), np.array([A]), {})
    assert reporting.tolist() == [1]
    assert drift == {}
    np.testing.assert_array_equal(reports.latest, [[np.nan, np.nan], A])


def test_a_client_is_compared_with_its_last_report_and_not_with_its_last_look() -> None:
    reports = Reports(1, 2)
    client = np.array([0])
    reports.hear(client, np.array([A]), CHANGED)
    reporting, drift, _ = reports.hear(client, np.array([A]), CHANGED)
    assert reporting.tolist() == []
    assert drift["changed"].tolist() == [False]
    reporting, drift, _ = reports.hear(client, np.array([B]), CHANGED)
    assert reporting.tolist() == [0]
    assert drift["changed"].tolist() == [True]
    np.testing.assert_array_equal(reports.latest, [B])


def test_a_detector_sees_only_clients_that_have_reported() -> None:
    class Watching(Changed):
        def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
            shown.append((signal.tolist(), last.tolist()))
            return super().detect(clients, signal, last)

    shown: list[tuple[list[list[float]], list[list[float]]]] = []
    reports, detectors = Reports(3, 2), {"changed": Watching(NoSettings())}
    assert reports.hear(np.array([0]), np.array([A]), detectors)[0].tolist() == [0]
    reporting, drift, _ = reports.hear(np.array([0, 2]), np.array([B, B]), detectors)
    assert reporting.tolist() == [0, 2]
    assert drift["changed"].tolist() == [True, False, True]
    assert shown == [([B], [A])]
