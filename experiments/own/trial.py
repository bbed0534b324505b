"""A trial of own code: the first round of an arm, played twice before any run begins; nothing is written.

The round is that of a run, in the world of a seed that is drawn anyway, but that a task takes at most
`LOCAL_STEPS` steps, and that clients are evaluated at its end. Meanwhile every call of own code is looked at:
no global generator may move, and no argument change. The second time the run is stored and restored after
each of its steps. Records and states must be the same, to the bit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.emulation import Emulation
from emulator.errors import ConfigurationError, ResumableError, RunError, naming
from emulator.messages import ArrayUpdates, TrainTasks, VisitRows
from emulator.own.code import OwnCodeError, before_any_run
from emulator.own.guards import Call, inspecting, without_chance
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree, from_bytes, to_bytes
from experiments.build import World, build_emulation, build_executor, build_world
from experiments.config import Arm, Experiment
from experiments.locating import Locate
from experiments.own.parts import named, own_parts
from experiments.own.watch import Watch
from experiments.reference import build_measuring, build_reference
from experiments.sameness import WritesError, left_alone, same
from experiments.stopwatch import Stopwatch

LOCAL_STEPS = 2
"""Local steps of a task in a trial, at most; of a solver that stops early, one epoch."""

LONG_S = 60.0
"""Wall seconds after which a trial says where its time went."""


def try_world(experiment: Experiment, world: World, locate: Locate, scratch: Path | None) -> None:
    """Draw the world of a seed once more, if own code has made it.

    Args:
        experiment: The configuration.
        world: The world.
        locate: Finds the files that the configuration names.
        scratch: Folder for the file of a large trace.

    Raises:
        ConfigurationError: It is another world.
    """
    own = own_parts(experiment)
    if not own:
        return
    again = build_world(experiment, world.streams.seed, locate, scratch).fingerprint()
    for what, sha256 in world.fingerprint().items():
        if again[what] != sha256:
            raise ConfigurationError(
                f"the {what} of seed {world.streams.seed}, drawn again, is another; own code must make the "
                f"same of the same random streams: {named(own)}"
            )


def tried_arms(experiment: Experiment, arms: Sequence[str]) -> list[str]:
    """Those of `arms` that a trial plays: all that have own code; the first, if only the world has."""
    shared = len(own_parts(experiment))
    with_own_code = [arm for arm in arms if len(own_parts(experiment, [arm])) > shared]
    return with_own_code or list(arms[: min(shared, 1)])


def try_arms(experiment: Experiment, arms: Sequence[str], world: World) -> list[str]:
    """Play the first round of each arm twice.

    Args:
        experiment: The configuration.
        arms: Names of arms with own code.
        world: The world of a seed.

    Returns:
        A line on each arm whose trial took more than a minute: what took how long; and on each whose first
        round nothing of own code ends, such as one that diverges.

    Raises:
        ConfigurationError: Own code has raised an error, returned what its protocol does not declare, drawn
            from a global generator, changed an argument, or done something else the second time.
    """
    notes = []
    for name in arms:
        arm, start_s, stopwatch = experiment.find_arm(name), time.perf_counter(), Stopwatch()
        where = f"arm {name!r}: in a trial of its first round"
        try:
            with naming(where), before_any_run(), inspecting(_inspected):
                once = _played(experiment, arm, world, stopwatch, is_stored=False)
                again = _played(experiment, arm, world, stopwatch, is_stored=True)
                _refuse_another(once, again, named(own_parts(experiment, [name])))
        except RunError as error:
            if isinstance(error, ResumableError):  # of the machine
                raise
            notes.append(f"{where}: {error}")  # as it diverges: the run itself ends in that
        took_s = time.perf_counter() - start_s
        if took_s > LONG_S:
            parts = sorted(stopwatch.seconds.items(), key=lambda item: -item[1])
            spent = ", ".join(f"{activity.removesuffix('_s')} {seconds:.0f} s" for activity, seconds in parts)
            notes.append(f"arm {name!r}: the trial of its own code took {took_s:.0f} s: {spent}")
    return notes


@contextmanager
def _inspected(call: Call) -> Iterator[None]:
    """An inspector of calls: what must not move has not."""
    try:
        with without_chance(call), left_alone(*call.arguments):
            yield
    except WritesError as error:
        raise OwnCodeError(f"{call.whose}: {call.method} writes to its arguments; change a copy") from error


@dataclass
class _Round:
    """A first round that was played: digests of the state after each step, by part, and what was logged.

    It is the log of its emulation.
    """

    states: list[Mapping[str, str]] = field(default_factory=list)
    records: list[RoundRecord] = field(default_factory=list)
    visits: list[VisitRows] = field(default_factory=list)

    def append(self, record: RoundRecord) -> None:
        self.records.append(record)

    def append_visits(self, rows: VisitRows) -> None:
        self.visits.append(rows)


class _Brief:
    """An executor whose tasks take few steps."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        """Train the tasks as the executor does, but with few steps."""
        settings = dict(tasks.settings)
        for name, most in (("local_steps", LOCAL_STEPS), ("local_epochs", 1)):
            if name in settings:
                settings[name] = np.minimum(settings[name], most)
        brief = replace(tasks, settings=settings)
        trained: ArrayUpdates = self._executor.train(brief, models, start, weights)
        return trained


def _played(
    experiment: Experiment, arm: Arm, world: World, stopwatch: Stopwatch, *, is_stored: bool
) -> _Round:
    """The first round of `arm`; stored and restored after each step if it `is_stored`."""
    rounds = experiment.round.model_copy(update={"evaluate_every": 1, "evaluate_every_s": None})
    threads = experiment.executor.model_copy(update={"threads": 1})  # so that calls come one by one
    brief = experiment.model_copy(update={"round": rounds, "executor": threads})
    reference, measuring = build_reference(brief, arm, world), build_measuring(brief, arm, world)
    # What draws outside of a guarded call, as the module of a model does, moves a generator in the round.
    played, watch = _Round(), Watch(own_parts(experiment, [arm.name]), by_call=False)

    def begun(state: bytes | None) -> Emulation:
        executor: Any = _Brief(build_executor(brief, arm, world))
        log = watch.over(played)
        emulation = build_emulation(brief, arm, world, executor, log, (), stopwatch, reference, measuring)
        if state is not None:
            emulation.restore(from_bytes(state))
        return emulation

    emulation = begun(None)
    steps = watch.steps(emulation.steps())
    while not played.records and next(steps, played) is not played:
        state = _stored(emulation)
        played.states.append(_digests(state))
        if is_stored:
            emulation = begun(to_bytes(state))
            steps = watch.steps(emulation.steps())
    return played


def _stored(emulation: Emulation) -> Tree:
    """The state of an emulation; OwnCodeError if a part of it cannot be stored."""
    where = ""
    try:
        state = emulation.state()
        for name, part in state["coordinator"]["federation"]["_stored"].items():
            where = f"the {name} cannot be stored: "
            to_bytes(part)
    except RunError as error:
        raise OwnCodeError(f"{where}{error}") from error
    return state


def _digests(state: Tree) -> Mapping[str, str]:
    """The sha256 of the state of each part, by name, and of all else in the state of an emulation."""
    federation = dict(state["coordinator"]["federation"])
    parts = federation.pop("_stored")
    else_ = {**state, "coordinator": {**state["coordinator"], "federation": federation}}
    trees = {**parts, "run": else_}
    return {name: hashlib.sha256(to_bytes(tree)).hexdigest() for name, tree in trees.items()}


def _refuse_another(once: _Round, again: _Round, of: str) -> None:
    """OwnCodeError unless two rounds went through the same states, and logged the same; `of` own parts."""
    others = [
        f"the state of the {name}"
        for before, after in zip(once.states, again.states, strict=False)
        for name in before
        if before[name] != after.get(name)
    ]
    for first, second in zip(once.records, again.records, strict=False):
        pairs = zip(vars(first).items(), vars(second).values(), strict=True)
        others += [f"its record's {name}" for (name, value), other in pairs if not same(value, other)]
    if others or len(once.states) != len(again.states) or not same(once.visits, again.visits):
        raise OwnCodeError(
            f"played again, and stored and restored after each step, it is another round: "
            f"{others[0] if others else 'its steps'} is not the same; own code must answer the same to the "
            f"same arguments, and name in state_fields what it remembers: {of}"
        )
