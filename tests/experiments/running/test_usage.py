from __future__ import annotations

import time

from executor.ranks import Spent
from experiments.running.usage import Usage, own_spent


def spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_small_run_has_spent_something_and_not_in_ticks() -> None:
    usage = Usage()
    spend(0.0015)
    assert 0.0015 <= usage.cpu_s < 0.01
    assert usage.peak_memory_bytes > 10_000_000


def test_what_the_other_ranks_spend_from_now_on_counts_and_all_that_they_hold() -> None:
    others = Spent(100.0, 5e12)
    usage = Usage(lambda: others)
    others = Spent(103.0, 6e12)
    assert 3.0 <= usage.cpu_s < 4.0
    assert 6e12 < usage.peak_memory_bytes < 6.5e12


def test_a_rank_reports_what_it_has_spent_since_it_began() -> None:
    before_s, _ = own_spent()
    spend(0.0015)
    after_s, held_bytes = own_spent()
    assert after_s >= before_s + 0.0015
    assert held_bytes > 10_000_000
