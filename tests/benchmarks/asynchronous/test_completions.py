from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.asynchronous.completions import (
    complete_by_heapq,
    complete_in_bulk,
    completion_figures,
    draw_visits,
)
from benchmarks.rivals.completions_by_simpy import complete_by_simpy


def test_all_three_ways_complete_the_same_visits_in_the_same_order() -> None:
    client, visit_s = draw_visits(500, 3_000)
    ours = complete_in_bulk(client, visit_s, 100, 2_900)
    assert ours.tolist() == complete_by_heapq(client, visit_s, 100, 2_900).tolist()
    assert ours.tolist() == complete_by_simpy(visit_s, 100, 2_900).tolist()
    assert len(np.unique(ours)) == 2_900


@given(
    lengths=st.lists(st.integers(1, 4), min_size=12, max_size=60),
    in_flight=st.integers(1, 10),
    seed=st.integers(0, 9),
)
def test_the_order_is_exact_where_visits_end_at_one_instant(
    lengths: list[int], in_flight: int, seed: int
) -> None:
    visit_s = np.array(lengths, dtype=np.float64)
    client = np.random.default_rng(seed).integers(5, size=len(visit_s))
    completions = len(visit_s) - in_flight
    ours = complete_in_bulk(client, visit_s, in_flight, completions)
    assert ours.tolist() == complete_by_heapq(client, visit_s, in_flight, completions).tolist()


def test_completions_have_a_figure_against_heapq_and_one_against_simpy() -> None:
    heapq, simpy = completion_figures(100, 20, 200, 1, lambda text: None)
    assert (heapq.name, simpy.name) == ("e2-completions", "e2-completions-against-simpy")
    assert heapq.value == simpy.value
    assert simpy.target is not None
