"""Contract of every part, and those of detectors and schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from pydantic import ValidationError

from coordinator.assignment import Assignment
from coordinator.detectors import Detector
from coordinator.detectors.base import Watches
from coordinator.schedules import Schedule
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import BATCH_METRICS, EndedVisits
from emulator.own_parts import undefined
from emulator.plugins import NoSettings, Settings
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.numbers import check_numbers
from experiments.contracts.ports import NUM_LABELS, LabelStream, initial
from experiments.contracts.rounds import Rounds, Scripted, with_streams
from experiments.contracts.watched import Watch
from experiments.sameness import left_alone, resumed, same
from experiments.setting_descriptions import descriptions

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    "",
    "no such choice",
    [],
    [[]],
    {},
    {"kind": 1},
    {"no_such_key": {}},
)
"""Values that are tried in place of every setting: it must take them, or refuse with a ValidationError."""

TASKS = (np.array([0, 0, 1, 3]), np.array([0, 2, 1, 2]))
"""Clients and models of the tasks that every schedule gets in addition to those of a round."""

BASE_SETTINGS = {"learning_rate": 0.1, "local_steps": 20.0, "batch_size": 10.0}


def check_part(part: type, settings: Settings) -> None:
    """Check the class of a part and its settings.

    * The class has a docstring, and every one of its settings a description; it defines the attributes that
      its kind declares without a value.
    * Its `Settings` are a frozen subclass of `emulator.plugins.Settings`, and equal themselves after being
      written as JSON and read back.
    * They refuse unknown keys and invalid values with a pydantic ValidationError.
    * Every number among them passes `check_numbers`.

    Args:
        part: The class of the part.
        settings: Valid settings of the part.

    Raises:
        AssertionError: The part breaks a rule, which the message names.
    """
    assert (part.__doc__ or "").strip().splitlines(), f"{part.__name__} has no docstring"
    missing = undefined(part)
    assert not missing, f"{part.__name__} lacks what every part of its kind defines: {', '.join(missing)}"
    declared = getattr(part, "Settings", None)
    assert isinstance(declared, type), f"{part.__name__} has no class Settings"
    assert issubclass(declared, Settings), (
        f"{part.__name__}.Settings is not a subclass of emulator.plugins.Settings"
    )
    assert isinstance(settings, declared)
    assert settings.model_config.get("frozen"), f"{declared.__name__} is not frozen"
    written = settings.model_dump(mode="json", by_alias=True)
    assert declared.model_validate(written) == settings, f"{written} reads back as something else"
    described = descriptions(declared)
    for name, field in declared.model_fields.items():
        assert described[name], (
            f"{declared.__name__}: {name} has no description, which `driftscale parts` shows; give it a "
            f"Field(description=...)"
        )
        for value in STRANGE:
            _refusal(declared, {**written, field.alias or name: value})
    complaint = _refusal(declared, {**written, "no_such_key": 1})
    assert "no_such_key" in complaint, f"{declared.__name__} accepts an unknown key, or does not name it"
    check_numbers(declared, written)


def _refusal(settings: type[Settings], table: Mapping[str, Any]) -> str:
    """The message with which `settings` refuse the table; empty if they accept it.

    Raises AssertionError if they refuse it by another error than a ValidationError.
    """
    try:
        settings.model_validate(table)
    except ValidationError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{settings.__name__} refuses {dict(table)} with a {type(error).__name__} ({error}); a validator "
            f"must raise a ValueError that states what is wrong"
        ) from error
    return ""


@and_no_global_generator
def check_detector(make: Callable[[], Detector]) -> None:
    """Check a detector on several signals of what it watches.

    * It returns a flag for each client; none for no clients.
    * Two fresh detectors return the same flags for equal signals, one of them stored and restored between
      any two calls.
    * The flags of a client do not depend on the others, nor on their order; a client that it forgets is as
      new to it.
    * Of training it takes clients that it sees first, single steps, and clients without a step, which it does
      not flag; it needs the one metric that it watches, and any other detector none.
    * Of arrivals it takes clients that it sees first, and clients without samples, which it does not flag.
    * It does not write to its arguments.

    Args:
        make: Makes a fresh detector.

    Raises:
        AssertionError: The detector breaks a rule.
        RunError: The detector's state cannot be stored, or changes in an attribute that is not declared.
    """
    plain, watched = make, get_args(Watches)
    make = lambda: with_streams(plain())  # noqa: E731
    detector = make()
    assert detector.watches in watched, f"watches = {detector.watches!r}; choices: {', '.join(watched)}"
    if detector.watches == "training":
        choices = ", ".join(sorted(BATCH_METRICS))
        assert len(detector.needs) == 1, f"it watches training, and so needs one of {choices}"
        assert detector.needs <= BATCH_METRICS, f"needs {sorted(detector.needs)}; choices: {choices}"
        _check_on_training(make)
        return
    assert not detector.needs, (
        f"needs {sorted(detector.needs)}: it watches {detector.watches}, and so needs no metric of training"
    )
    if detector.watches == "arrivals":
        _check_on_arrivals(make)
        return
    one_each, spread = np.eye(NUM_LABELS), np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    first = (one_each[[0, 0, 0, 1, 1, 1, 1, 0]], one_each[[0, 2, 0, 1, 1, 2, 1, 0]])
    pairs = [first, (one_each[[0, 1]], one_each[[0, 1]]), (spread, spread[::-1].copy())]
    pairs += [(last[:0], now[:0]) for last, now in pairs[:1]]
    _check_flags(make, 12, [(np.arange(len(last)), now, last) for last, now in pairs])


Asked = tuple[Ints, Floats, Floats | None]
"""The arguments of a call of `Detector.detect`."""


def _check_on_training(make: Callable[[], Detector]) -> None:
    """Check a detector on five clients, whose numbers rise at once, slowly or not; one has none at all."""
    generator = np.random.default_rng(1)
    calls: list[Asked] = []
    for call in range(24):
        signal = 0.1 + 0.1 * generator.random((5, 8))
        signal[0] += 0.8 * (call >= 12)
        signal[1] += 0.03 * call
        signal[2, 1:] = np.nan  # a single step
        signal[3] = np.nan
        who = np.arange(5 if call > 8 else 4)  # the last joins later
        calls.append((who, signal[who], None))
    flags = _check_flags(make, 6, [*calls, (calls[0][0][:0], calls[0][1][:0], None)])
    for (who, _, _), of_call in zip(calls, flags, strict=False):
        assert not of_call[who == 3].any(), "it flags a client that has not trained"
    _check_forgotten(make, calls, flags)


def _check_on_arrivals(make: Callable[[], Detector]) -> None:
    """Check a detector on five clients, whose accuracy falls at once, slowly or not; one has no samples."""
    calls: list[Asked] = []
    for call in range(30):
        total = np.array([40.0, 25.0, 1.0 + call % 3, 0.0, 30.0]) * (call % 7 != np.array([5, 3, 9, 0, 2]))
        share = np.array([0.1 if call >= 15 else 0.9, 1 - 0.03 * call, 1.0, 1.0, 0.7])
        who = np.arange(5 if call > 8 else 4)  # the last joins later
        calls.append((who, np.stack([np.floor(share * total), total], axis=1)[who], None))
    flags = _check_flags(make, 6, [*calls, (calls[0][0][:0], calls[0][1][:0], None)])
    for (_, signal, _), of_call in zip(calls, flags, strict=False):
        assert not of_call[signal[:, 1] == 0].any(), "it flags a client for whom no samples have arrived"
    _check_forgotten(make, calls, flags)


def _check_forgotten(make: Callable[[], Detector], calls: Sequence[Asked], flags: Sequence[Bools]) -> None:
    """Check that clients that have been through these calls, and are forgotten, get the same flags again."""
    again = make()
    again.open(6)
    for who, signal, _ in calls:
        again.detect(who, signal, None)
    again.forget(np.arange(6))
    of_calls = [again.detect(who, signal, None) for who, signal, _ in calls]
    assert same(of_calls, flags[: len(calls)]), "it remembers something of clients that it was to forget"


def _check_flags(make: Callable[[], Detector], num_clients: int, calls: Sequence[Asked]) -> list[Bools]:
    """The flags of each call, the same by twins, in another order, and for each client alone."""
    everyone = np.arange(num_clients)
    outputs = [
        [_flags(detector, asked, everyone) for asked in calls]
        for detector in (opened(num_clients) for opened in (_opening(make), _opening(lambda: resumed(make))))
    ]
    assert same(*outputs), "two fresh detectors behave differently on equal signals"
    turned = _opening(make)(num_clients)
    of_turned = [_flags(turned, asked, everyone[::-1]) for asked in calls]
    assert same(of_turned, [flags[::-1] for flags in outputs[0]]), "flags depend on the order of the clients"
    for client in range(num_clients):
        alone = _opening(make)(num_clients)
        of_client = [_flags(alone, asked, everyone[[client]]) for asked in calls]
        together = [flags[asked[0] == client] for flags, asked in zip(outputs[0], calls, strict=True)]
        assert same(of_client, together), "a client's flags depend on the other clients"
    return outputs[0]


def _opening(make: Callable[[], Detector]) -> Callable[[int], Detector]:
    """A function from a number of clients to a fresh detector for so many."""

    def opened(num_clients: int) -> Detector:
        detector = make()
        detector.open(num_clients)
        return detector

    return opened


def _flags(detector: Detector, asked: Asked, among: Ints) -> Bools:
    """What a detector answers about those clients of a call that are `among` these, in their order."""
    clients, signal, last = asked
    rows = among[np.isin(among, clients)]  # clients are numbered from 0 on
    who, now, before = clients[rows], signal[rows], None if last is None else last[rows]
    with left_alone(who, now, before):
        flags = detector.detect(who, now, before)
    assert flags.shape == (len(rows),), f"flags have shape {flags.shape}, not ({len(rows)},)"
    assert flags.dtype == np.bool_, f"flags are {flags.dtype}, not bool"
    return flags


@and_no_global_generator
def check_schedule(make: Callable[[], Schedule]) -> None:
    """Check a schedule over rounds in which models change, and one is replaced by a new one.

    Some of the participants are flagged by a detector that watches arrivals, and all visits complete.

    * `task_settings` returns exactly the settings in `sets`, each a finite number above 0 for every task.
    * It does not write to its arguments.
    * Two fresh schedules return the same on equal views, one of them stored and restored.
    * It reads the true concepts and onsets only if it declares `oracle = True`.

    Args:
        make: Makes a fresh schedule.

    Raises:
        AssertionError: The schedule breaks a rule, which the message names.
        RunError: The schedule's state cannot be stored, or changes in an attribute that is not declared.
    """
    members = np.zeros((4, 1), dtype=np.int64)
    mixing = np.eye(3, 4)
    mixing[2, [2, 3]] = [0.0, 1.0]
    script = {
        0: Assignment.fresh(members, 3, np.stack([initial(number) for number in range(3)])),
        2: Assignment(mixing, initial(0)[None, :], np.array([0, 1, -1]), members),
    }
    twins = []
    for schedule in (make(), resumed(make)):
        watched = _WatchedSchedule(schedule)
        stream = LabelStream(np.full((2, 4, NUM_LABELS), 1 / NUM_LABELS), rounds_per_step=2)
        news = {"news": _Odd(NoSettings())}
        rounds = Rounds(stream, clusterer=Scripted(script), detectors=news, schedules=(watched,))
        twins.append((watched, rounds))
    for _ in range(4):
        for _, rounds in twins:
            rounds.play()
        assert same(*(watched.outputs for watched, _ in twins)), (
            "two fresh schedules behave differently on equal views"
        )


class _Odd(Detector):
    """Flags a client for whom an odd number of samples has arrived."""

    Settings = NoSettings
    watches = "arrivals"

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        odd: Bools = signal[:, 1] % 2 == 1
        return odd


class _WatchedSchedule(Schedule):
    """Wraps a schedule: checks the settings it returns for a round's tasks, for `TASKS` and for no tasks."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        vars(self)["sets"] = schedule.sets
        self.watch = Watch(schedule)
        self.outputs: list[Mapping[str, Floats]] = []

    def feedback(self, visits: EndedVisits) -> None:
        with left_alone(visits):
            self.schedule.feedback(visits)

    def observe(self, view: View) -> None:
        with left_alone(view):
            self.schedule.observe(self.watch.over(view))

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        of_tasks = {name: np.full(len(TASKS[0]), value) for name, value in BASE_SETTINGS.items()}
        self.outputs.append(self._settings(*TASKS, of_tasks, view))
        of_no_tasks = {name: values[:0] for name, values in base.items()}
        self._settings(client[:0], model[:0], of_no_tasks, view)
        return self._settings(client, model, base, view)

    def _settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        sets = sorted(self.schedule.sets)
        assert sets, "a schedule must set at least one setting"
        assert self.schedule.sets <= set(base), f"{sets}: tasks have only {sorted(base)}"
        with left_alone(client, model, base, view):
            settings = self.schedule.task_settings(client, model, base, self.watch.over(view))
        assert sorted(settings) == sets, f"it returns {sorted(settings)}, but declares sets = {sets}"
        for name, values in settings.items():
            if len(client) == 0:
                assert len(values) == 0, f"{name}: {len(values)} numbers for no tasks"
            assert np.shape(values) == client.shape, f"{name}: must have a number for each task"
            assert (np.isfinite(values) & (values > 0)).all(), f"{name} = {values}: must be above zero"
        return settings
