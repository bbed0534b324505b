"""Workload E2: an asynchronous run's events. So many visits are out at any time; each that completes is
replaced at once by that of the next client, whose length comes from the fleet's arrays.

All three ways complete the same visits in the same order. Ours is the bulk path of the queue of visits in
flight: what ends before the first of the visits that start in the meantime is known, and is taken out and
replaced together, as an asynchronous coordinator can do it.
"""

from __future__ import annotations

import heapq

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.in_flight import InFlight, VisitEnds
from experiments.bench.figures import Figure, Reference, Target, figure
from experiments.bench.measure import Say, interleaved, timed
from experiments.bench.population import SEED, Population

HEAPQ = "a heapq of tuples, one visit at a time"
SIMPY = "SimPy processes"

FIRST_LOOK = 256  # visits that are looked at together at least


def measure_completions(repeats: int, say: Say) -> list[Figure]:
    return completion_figures(100_000, 10_000, 1_000_000, repeats, say)


def completion_figures(
    clients: int, in_flight: int, completions: int, repeats: int, say: Say
) -> list[Figure]:
    """Completions per second, against heapq and against SimPy."""
    from experiments.bench.rivals.completions_by_simpy import complete_by_simpy

    visit_client, visit_s = draw_visits(clients, in_flight + completions)
    found = interleaved(
        {
            "ours": timed(lambda: complete_in_bulk(visit_client, visit_s, in_flight, completions)),
            "heapq": timed(lambda: complete_by_heapq(visit_client, visit_s, in_flight, completions)),
            "simpy": timed(lambda: complete_by_simpy(visit_s, in_flight, completions)),
        },
        repeats,
        warm_up=False,
        say=say,
    )
    about = f"completions with {in_flight:,} visits in flight"
    rate = {name: completions / seconds for name, seconds in found.items()}
    return [
        figure(
            "e2-completions",
            about,
            rate["ours"],
            "completions/s",
            better="higher",
            against=Reference(rate["heapq"], HEAPQ),
            target=Target("value", 1e6, 1e7),
        ),
        figure(
            "e2-completions-against-simpy",
            about,
            rate["ours"],
            "completions/s",
            better="higher",
            against=Reference(rate["simpy"], SIMPY),
            target=Target("ratio", 4.0),
        ),
    ]


def draw_visits(clients: int, visits: int) -> tuple[Ints, Floats]:
    """(visits,) the client of each visit, in the order in which they start, and its seconds."""
    population = Population.of(clients)
    rng = np.random.default_rng(SEED)
    client = rng.integers(clients, size=visits)
    return client, population.visit_s(client)


def complete_in_bulk(client: Ints, visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """(completions,) the visits in the order in which they end."""
    queue = InFlight()
    ended = np.zeros(completions, dtype=np.int64)
    arrives = np.zeros(len(visit_s), dtype=bool)  # nobody goes offline here
    first = slice(0, in_flight)
    queue.push(VisitEnds(visit_s[first], client[first], np.arange(in_flight), arrives[first]))
    done, most = 0, FIRST_LOOK
    while done < completions:
        ends = queue.first(np.inf, most=min(most, completions - done))
        visits = slice(in_flight + done, in_flight + done + len(ends))
        following_s = ends.time_s + visit_s[visits]
        # Up to the first that a visit which starts in the meantime comes before, or meets.
        overtaken = ends.time_s[1:] >= np.minimum.accumulate(following_s)[:-1]
        count = int(overtaken.argmax()) + 1 if overtaken.any() else len(ends)
        queue.pop(count)
        ended[done : done + count] = ends.visit[:count]
        sent = slice(visits.start, visits.start + count)
        queue.push(
            VisitEnds(following_s[:count], client[sent], np.arange(sent.start, sent.stop), arrives[sent])
        )
        done, most = done + count, max(FIRST_LOOK, 2 * count)
    return ended


def complete_by_heapq(client: Ints, visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """The same, one visit at a time."""
    clients, lengths_s = client.tolist(), visit_s.tolist()
    heap = [(lengths_s[visit], clients[visit], visit) for visit in range(in_flight)]
    heapq.heapify(heap)
    ended = []
    for following in range(in_flight, in_flight + completions):
        now_s, _, visit = heap[0]
        ended.append(visit)
        heapq.heapreplace(heap, (now_s + lengths_s[following], clients[following], following))
    return np.array(ended)
