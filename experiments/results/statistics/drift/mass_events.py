"""Mass events that the header of a log tells: data steps at which half of the clients have an onset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from emulator.storage.runlog import RoundRecord
from experiments.results.reading.header_truth import clients_of, known_onsets
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.horizon import number_of


def mass_events_s(
    run: FinishedRun, configured: Sequence[int] = (), seconds_per_round: float | None = None
) -> dict[int, float]:
    """When the first round of each data step opened at which half of the clients or more have an onset.

    By data step, without those that the run did not reach, and those that begin with one of the rounds
    `configured` or are the first after it. A step that no round has, as several took effect at once, begins
    with the next one. Rounds are counted as `horizon.number_of` does.
    """
    known, num_clients = known_onsets(run.header), clients_of(run.header)
    if known is None or num_clients is None:
        return {}
    first: dict[int, RoundRecord] = {}
    for record in run.records:
        first.setdefault(record.step, record)
    reached = sorted(first)
    begins = [number_of(first[step], seconds_per_round) for step in reached]
    found = {}
    for step in known.mass_events(num_clients):
        place = bisect_left(reached, step)
        if place < len(reached):
            before = begins[place - 1] if place else -1
            if not any(before < round_ <= begins[place] for round_ in configured):
                found[step] = first[reached[place]].opened_s
    return found
