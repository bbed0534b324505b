"""Mass events: those that are configured, and those that the header of a log tells.

The latter are data steps at which half of the clients or more have an onset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from emulator.storage.runlog import RoundRecord
from experiments.results.reading.header_truth import clients_of, known_onsets
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Compared, Run, once
from experiments.results.statistics.horizon import number_of


@once
def first_events_s(compared: Compared) -> Mapping[Run, float] | None:
    """By run, when the drift began that recovery is counted from, in virtual seconds.

    It is the first event that is configured, as in the gain after drift, if that is before the horizon in
    every run; else the first mass event that its log tells. None without runs, and unless every run has one.
    """
    if compared.has_event:
        return _of_every_run(compared, lambda run: run.event_s)
    return first_mass_events_s(compared)


@once
def first_mass_events_s(compared: Compared) -> Mapping[Run, float] | None:
    """By run, when its first mass event took effect, in virtual seconds.

    None without runs, and unless every run has one before the horizon.
    """
    return _of_every_run(compared, first_mass_event_s)


def first_mass_event_s(run: Run) -> float | None:
    """When the first mass event of a run took effect; None without one before the horizon."""
    return next(iter(events_by_the_horizon_s(run)), None)


def events_by_the_horizon_s(run: Run) -> list[float]:
    """When mass events took effect before the horizon, ascending.

    They are those in the log: a configured event in which fewer than half of the clients drift does not
    count. For a log without onsets it is the configured one.
    """
    logged_s = events_of_log_s(run.log)
    if logged_s is not None:
        return [event_s for event_s in logged_s if event_s < run.horizon.horizon_s]
    return [] if run.event_s is None else [run.event_s]


def _of_every_run(compared: Compared, of_run: Callable[[Run], float | None]) -> Mapping[Run, float] | None:
    """By run; None without runs, and unless all have a value."""
    found = {run: of_run(run) for run in compared.runs}
    known = {run: value for run, value in found.items() if value is not None}
    return known if known and len(known) == len(found) else None


@once
def events_of_log_s(run: ReportedRun) -> list[float] | None:
    """When the mass events took effect that the log tells, ascending; None if it tells no onsets."""
    return None if known_onsets(run.header) is None else sorted(mass_events_s(run).values())


def mass_events_s(
    run: ReportedRun, configured: Sequence[int] = (), seconds_per_round: float | None = None
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
