"""Who changes when: the spans of data steps in which a change is on for a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.changes.settings import Change, ChangedClients
from traces.patterns import NUM_SEEDED, SEEDED, named_pattern, read_pattern
from traces.tables.base import NEVER


@dataclass(frozen=True)
class Run:
    """The clients and the data steps of a run, as a change needs them.

    `steps` are those that the run plays; the clients may be tested on data of step `steps`, the one after, if
    `tests_ahead`. `names` are the names of the clients, or none.
    """

    num_clients: int
    steps: int
    rounds_per_step: int
    streams: RandomStreams
    tests_ahead: bool
    names: Sequence[str] = ()

    def step_of_round(self, round_: int, key: str) -> int:
        """The data step that a round, the value of `key`, begins; ConfigurationError if it begins none."""
        if round_ % self.rounds_per_step:
            raise ConfigurationError(
                f"{key} = {round_}: must be a multiple of trace.rounds_per_step = {self.rounds_per_step}, so "
                f"that a data step begins with it"
            )
        return round_ // self.rounds_per_step


@dataclass(frozen=True)
class Spans:
    """When a change is on, as columns of shape (n,), ascending by (client, start); a client's do not overlap.

    It is on for `client` at the data steps [start, stop). `value` says what is on: the index of an operation,
    or of what a client's own swaps have come to.
    """

    client: Ints
    start: Ints
    stop: Ints
    value: Ints

    def at(self, client: Ints, step: Ints) -> Ints:
        """(n,) the span that is on for each `client` (n,) at `step` (n,); -1 for none.

        >>> spans = spans_of(np.array([1, 1]), np.array([2, 5]), np.array([4, NEVER]), np.array([0, 0]))
        >>> spans.at(np.array([1, 1, 1, 1, 0]), np.array([1, 3, 4, 9, 3])).tolist()
        [-1, 0, -1, 1, -1]
        """
        if len(self.client) == 0:
            return np.full(len(client), -1)
        width = 1 + max(int(self.start.max()), int(step.max(initial=0)))
        newest = np.searchsorted(self.client * width + self.start, client * width + step, side="right") - 1
        is_on = (newest >= 0) & (self.client[newest] == client) & (step < self.stop[newest])
        return np.where(is_on, newest, -1)


def spans_of(client: Ints, start: Ints, stop: Ints, value: Ints) -> Spans:
    """The spans with these columns, in order; those that are empty are left out."""
    order = np.lexsort((start, client))
    order = order[start[order] < stop[order]]
    return Spans(*(column[order].astype(np.int64) for column in (client, start, stop, value)))


def draw_spans(change: Change, key: str, run: Run) -> Spans:
    """The spans of a change that is no own_swap; `key` names it in a message, such as "trace.changes.0".

    Raises:
        ConfigurationError: its times or clients do not fit the run.
    """
    if change.pattern is not None:
        return _of_pattern(change, key, run)
    if change.staggered is not None and change.every is None:
        raise ConfigurationError(
            f"{key}: staggered = {change.staggered}: needs every, the rounds from one share of the clients "
            f"to the next"
        )
    onset, end = onset_and_end(change, key, run)
    if change.staggered is not None:
        return _staggered(change, key, run, onset, end)
    if change.every is None:
        clients = drawn_clients(change.clients, key, run)
        return _same_for_all(clients, onset, end)
    return _recurring(change, key, run, onset, end)


def onset_and_end(change: Change, key: str, run: Run) -> tuple[int, int]:
    """The data steps of the onset and of the end, NEVER if it has none.

    Without a key it begins at the start, or an own_swap at its first `every`.

    Raises:
        ConfigurationError: a round is within a data step, the onset is beyond the run, or the end before it.
    """
    begins = change.onset_key or ("every" if change.is_own_swap else None)
    onset = 0 if begins is None else _step(change, begins, key, run)
    end = NEVER if change.end_key is None else _step(change, change.end_key, key, run)
    if begins is not None:
        _refuse_beyond(change, key, run, begins, onset, "it would begin")
    if end <= onset:
        raise ConfigurationError(
            f"{key}: {change.end_key} = {getattr(change, str(change.end_key))} is data step {end}; must be "
            f"after the onset, data step {onset}"
        )
    return onset, end


def events_of(change: Change, key: str, run: Run, onset: int, end: int) -> range:
    """The data steps of its events, at the onset and then at each `every`, before its end and the run's."""
    assert change.every is not None, "it has events"
    period = run.step_of_round(change.every, f"{key}.every")
    return range(onset, min(end, run.steps + run.tests_ahead), period)


def drawn_clients(clients: ChangedClients | None, key: str, run: Run, event: int = 0) -> Ints:
    """The clients of an event, ascending; ConfigurationError if that is nobody, or they do not exist.

    All changes draw from one order of the clients, so that shares are nested and parts disjoint; with
    `redraw` each event has its own.
    """
    everyone = np.arange(run.num_clients)
    if clients is None:
        return everyone
    if clients.names is not None:
        return _named(clients.names, key, run)
    order = run.streams.generator("changes", event if clients.redraws else 0).permutation(run.num_clients)
    first, last = 0, 0
    if clients.share is not None:
        last = round(clients.share * run.num_clients)
        rule = f"clients.share = {clients.share}: of {run.num_clients} clients that is nobody"
    elif clients.count is not None:
        last = clients.count
        rule = f"clients.count = {last}: there are {run.num_clients} clients"
    elif clients.part is None or clients.of is None:
        raise ConfigurationError(
            f"{key}: clients: must have one of share, count, names, or part and of: {{ part = 2, of = 3 }} "
            f"is the second of three parts"
        )
    else:
        first, last = (
            (number * run.num_clients) // clients.of for number in (clients.part - 1, clients.part)
        )
        rule = f"clients.of = {clients.of}: of {run.num_clients} clients part {clients.part} has nobody"
    if first == last or last > run.num_clients:
        raise ConfigurationError(f"{key}: {rule}")
    return np.sort(order[first:last])


def _same_for_all(clients: Ints, onset: int, end: int) -> Spans:
    """One span for each of `clients`, ascending."""
    full = (np.full(len(clients), number) for number in (onset, end, 0))
    return spans_of(clients, *full)


def _staggered(change: Change, key: str, run: Run, onset: int, end: int) -> Spans:
    """A share more of the clients at each event, in a random order, until all have changed.

    Raises ConfigurationError if the run or the change ends before all have changed.
    """
    assert change.staggered is not None
    assert change.every is not None
    clients = drawn_clients(change.clients, key, run)
    stages = int(np.ceil(1 / change.staggered - 1e-9))
    period = run.step_of_round(change.every, f"{key}.every")
    last = onset + (stages - 1) * period
    _refuse_beyond(change, key, run, "staggered", last, f"the last of {stages} shares would change")
    if last >= end:
        raise ConfigurationError(
            f"{key}: {change.end_key}: the last of {stages} shares of the clients would change at data step "
            f"{last}, after the end, data step {end}"
        )
    order = run.streams.generator("changes", 0).permutation(run.num_clients)
    in_order = order[np.isin(order, clients)]
    sizes = np.round(np.minimum(np.arange(1, stages + 1) * change.staggered, 1.0) * len(clients))
    stage = np.searchsorted(sizes, np.arange(len(clients)), side="right")
    return spans_of(in_order, onset + stage * period, np.full(len(clients), end), np.zeros_like(stage))


def _recurring(change: Change, key: str, run: Run, onset: int, end: int) -> Spans:
    """The change anew at each event: for as long as to its first end, or up to the next event."""
    assert change.every is not None
    period = run.step_of_round(change.every, f"{key}.every")
    clients = change.clients
    if end == NEVER and not (clients is not None and clients.redraws):
        raise ConfigurationError(
            f"{key}: every = {change.every} changes nothing: without an end, and with the same clients at "
            f"each event, all stays as it was; set until_round, or clients with redraw = true"
        )
    lasts = min(end - onset, period)
    if end != NEVER and end - onset > period:
        raise ConfigurationError(
            f"{key}: every = {change.every}: it would begin anew before its end, {end - onset} data steps "
            f"after its onset"
        )
    if onset + period >= run.steps:
        raise ConfigurationError(
            f"{key}: every = {change.every}: it would begin anew at data step {onset + period}, after the "
            f"last of the run, {run.steps - 1}; leave every out, or raise round.rounds"
        )
    parts = [
        _same_for_all(drawn_clients(clients, key, run, event), start, start + lasts)
        for event, start in enumerate(range(onset, run.steps + run.tests_ahead, period))
    ]
    columns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("client", "start", "stop", "value")
    )
    return spans_of(*columns)


def _of_pattern(change: Change, key: str, run: Run) -> Spans:
    """A span for each run of equal digits above 0; digit d is the operation d - 1.

    Raises ConfigurationError if the rows or columns do not fit the run.
    """
    digits = _digits(change.pattern, key, run.streams.seed)
    rows, columns = digits.shape
    if columns != run.num_clients:
        raise ConfigurationError(f"{key}: pattern has {columns} clients, and the trace {run.num_clients}")
    if rows != run.steps + 1:
        raise ConfigurationError(
            f"{key}: pattern has {rows} rows; must have {run.steps + 1}, one for each of the {run.steps} "
            f"data steps of the run, and one for the last test"
        )
    if int(digits.max()) > len(change.what):
        raise ConfigurationError(
            f"{key}: pattern has digit {digits.max()}: what must be a list of as many operations, and has "
            f"{len(change.what)}"
        )
    if not run.tests_ahead and (digits[-1] != digits[-2]).any():
        raise ConfigurationError(
            f"{key}: the last row of pattern is for tests of the next data step, and differs from the one "
            f"before: set trace.test_on = 'next', or repeat the row"
        )
    by_client = digits.T
    is_first = np.ones(by_client.shape, dtype=np.bool_)
    is_first[:, 1:] = by_client[:, 1:] != by_client[:, :-1]
    client, start = np.nonzero(is_first)
    follows = np.append(client[1:] == client[:-1], False)
    stop = np.where(follows, np.append(start[1:], 0), NEVER)
    value = by_client[client, start] - 1
    some = value >= 0
    return spans_of(client[some], start[some], stop[some], value[some])


def _digits(pattern: str | tuple[str, ...] | None, key: str, seed: int) -> Ints:
    """(steps + 1, clients) the digits of a pattern in a run of that seed; ConfigurationError without one."""
    assert pattern is not None, "it has a pattern"
    if not isinstance(pattern, str):
        return read_pattern(pattern)
    if pattern == SEEDED and seed >= NUM_SEEDED:
        raise ConfigurationError(
            f'{key}: pattern "{SEEDED}" stands for {SEEDED} and the run\'s seed, and there are {SEEDED}0 to '
            f"{SEEDED}{NUM_SEEDED - 1}; seed {seed} has none"
        )
    return named_pattern(f"{SEEDED}{seed}" if pattern == SEEDED else pattern)


def _named(names: Sequence[str], key: str, run: Run) -> Ints:
    """The clients of these names, or of these numbers, if the clients have no names; ascending.

    Raises ConfigurationError for the first that there is not.
    """
    if not names:
        raise ConfigurationError(f"{key}: clients.names: is empty; must name a client")
    known = run.names or range(run.num_clients)
    place = {str(name): client for client, name in enumerate(known)}
    for name in names:
        if name not in place:
            shown = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
            raise ConfigurationError(
                f"{key}: clients.names: there is no client {name!r}; there are {len(known)}: {shown}"
            )
    return np.unique([place[name] for name in names])


def _step(change: Change, name: str, key: str, run: Run) -> int:
    """The data step that the key `name` of a change means."""
    value = getattr(change, name)
    if name.endswith("_step"):
        return int(value)
    if name.endswith("_share"):
        return int(np.round(value * run.steps))
    return run.step_of_round(value, f"{key}.{name}")


def _refuse_beyond(change: Change, key: str, run: Run, name: str, step: int, what: str) -> None:
    """ConfigurationError if the run ends before `step`, which follows from the key `name`."""
    if step >= run.steps:
        first = step * run.rounds_per_step
        way_out = f"raise round.rounds above {first}, or let it begin earlier"
        raise ConfigurationError(
            f"{key}: {name} = {getattr(change, name)}: {what} at data step {step} (round {first}), after the "
            f"last of the run, {run.steps - 1}; {'lower it' if name.endswith('_share') else way_out}"
        )


def steps_of_spans(spans: Spans, steps: int) -> tuple[Ints, Ints]:
    """(n,) clients and (n,) data steps at which a span begins or ends, from 1 to below `steps`."""
    client = np.concatenate([spans.client, spans.client])
    step = np.concatenate([spans.start, spans.stop])
    within: Bools = (step >= 1) & (step < steps)
    return client[within], step[within]
