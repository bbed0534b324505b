"""Workload E2: the events of an asynchronous run, with a constant number of visits in flight.

The clients of all visits are drawn beforehand; a visit's length follows from its client's device and link.
Whenever a visit completes, the next one drawn starts at that instant. Three implementations complete the same
visits in the same order: ours, a heap (`heapq`) and SimPy.

Ours takes visits out of its queue in batches, and puts their replacements in together. A batch stops, at the
latest, before the first visit that does not end earlier than every replacement in the batch: up to there the
order of ends cannot change. An asynchronous coordinator could batch its visits in the same way.
"""

from __future__ import annotations

import heapq

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say, interleaved, timed
from benchmarks.population import SEED, Population
from emulator.arrays import Floats, Ints
from emulator.in_flight import InFlight, VisitEnds
from emulator.messages import COMPLETED

HEAPQ = "a heapq of tuples, one visit at a time"
SIMPY = "SimPy processes"

FEWEST_TOGETHER = 256  # visits that are requested from the queue at once, at least, but for the last


def measure_completions(repeats: int, say: Say) -> list[Figure]:
    return completion_figures(100_000, 10_000, 1_000_000, repeats, say)


def completion_figures(
    clients: int, in_flight: int, completions: int, repeats: int, say: Say
) -> list[Figure]:
    """Completions per second, against heapq and against SimPy."""
    from benchmarks.rivals.completions_by_simpy import complete_by_simpy

    visit_client, visit_s = draw_visits(clients, in_flight + completions)
    samples = interleaved(
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
    rate = {name: completions / seconds for name, seconds in samples.items()}
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
    """The client and the seconds of each visit, both of shape (visits,), in the order of their starts."""
    population = Population.of(clients)
    rng = np.random.default_rng(SEED)
    client = rng.integers(clients, size=visits)
    return client, population.visit_s(client)


def complete_in_bulk(client: Ints, visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """The visits in the order in which they end, of shape (completions,); by operations on batches of visits.

    `client` and `visit_s` (visits,) are those of `draw_visits`.
    """
    queue = InFlight()
    ended = np.zeros(completions, dtype=np.int64)
    outcome = np.full(len(visit_s), COMPLETED)
    first = slice(0, in_flight)
    queue.push(VisitEnds(visit_s[first], client[first], np.arange(in_flight), outcome[first]))
    done, most = 0, FEWEST_TOGETHER
    while done < completions:
        ends = queue.first(np.inf, most=min(most, completions - done))
        visits = slice(in_flight + done, in_flight + done + len(ends))
        following_s = ends.time_s + visit_s[visits]
        # The batch stops before the first visit that a replacement overtakes, or ties with.
        overtaken = ends.time_s[1:] >= np.minimum.accumulate(following_s)[:-1]
        count = int(overtaken.argmax()) + 1 if overtaken.any() else len(ends)
        queue.pop(count)
        ended[done : done + count] = ends.visit[:count]
        sent = slice(visits.start, visits.start + count)
        queue.push(
            VisitEnds(following_s[:count], client[sent], np.arange(sent.start, sent.stop), outcome[sent])
        )
        done, most = done + count, max(FEWEST_TOGETHER, 2 * count)
    return ended


def complete_by_heapq(client: Ints, visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """The result of `complete_in_bulk`, by a heap, one visit at a time."""
    clients, lengths_s = client.tolist(), visit_s.tolist()
    heap = [(lengths_s[visit], clients[visit], visit) for visit in range(in_flight)]
    heapq.heapify(heap)
    ended = []
    for following in range(in_flight, in_flight + completions):
        now_s, _, visit = heap[0]
        ended.append(visit)
        heapq.heapreplace(heap, (now_s + lengths_s[following], clients[following], following))
    return np.array(ended)
