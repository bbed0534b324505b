"""What was learned of the clients, and of which of them it still holds."""

import numpy as np

from coordinator.federation.hearing.hearing import Heard


def test_a_report_from_before_the_data_changed_again_decides_nothing_about_the_new_ones() -> None:
    flags = np.array([False, True, True])
    heard = Heard(np.array([1, 2]), {"moved": flags}, 2, 2, 0, np.array([1, 2]))
    everyone, nobody = np.ones(3, dtype=bool), np.zeros(0, dtype=np.int64)
    assert heard.among(everyone, np.array([0, 2])).decided.tolist() == [1]
    among = heard.among(np.array([True, True, False]), nobody)
    assert (among.decided.tolist(), among.drift["moved"].tolist()) == ([1], [False, True, False])
