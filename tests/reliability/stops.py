"""Stops within one process: a run is stored, dropped, and resumed by fresh objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from coordinator.coordinator import Coordinator
from coordinator.federation.hearing.client_data import Reference
from emulator.storage.state_tree import as_tree, to_bytes
from emulator.storage.stateful import Stateful
from executor.executor import LocalExecutor
from executor.replicas import ReplicatedExecutor
from experiments.build import World, build_emulation, build_executor, device_factors, run_header
from experiments.config import Experiment
from experiments.own_packages import OUR_PACKAGES
from experiments.reference import build_measuring, build_reference
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.attempt import Attempt

END = object()

TORN = b'{"kind":"round","round":99,"participa'
"""An incomplete line, as a killed process may leave it at the end of a log."""


class Stopped:
    """The only arm of `experiment` in `world`, run into `path`; `notes` are those of all attempts.

    `kept` are the bytes of the models that the run has at its end.
    """

    def __init__(
        self,
        experiment: Experiment,
        world: World,
        path: Path,
        executor: Callable[[], LocalExecutor | ReplicatedExecutor] | None = None,
        reference: Callable[[], Reference | None] | None = None,
    ) -> None:
        self.experiment, self.world = experiment, world
        self.directory = RunDirectory(path)
        self.arm = experiment.arm[0]
        self._executor = executor or (lambda: build_executor(experiment, self.arm, world))
        self._reference = reference or (lambda: build_reference(experiment, self.arm, world))
        self.notes: list[str] = []
        self.resumes = 0
        self.kept = b""

    def attempt(self, observer: Callable[[Any], None] = lambda record: None) -> Attempt:
        """A new attempt from fresh objects, as another process would make it."""
        executor, reference = self._executor(), self._reference()
        measuring = build_measuring(self.experiment, self.arm, self.world)
        return Attempt(
            self.directory,
            self.arm.name,
            self.seed,
            self.experiment.checkpoint,
            header=run_header(self.experiment, self.arm, self.world, executor, reference, measuring),
            build=lambda log, observers, stopwatch: build_emulation(
                self.experiment,
                self.arm,
                self.world,
                executor,
                log,
                observers,
                stopwatch,
                reference,
                measuring,
            ),
            fleet=self.world.fleet,
            device_factor=device_factors(self.experiment, self.arm, self.world),
            client_names=self.world.trace.client_names,
            log_visits=self.experiment.round.log_visits,
            observer=observer,
            halved=lambda: executor.halved_groups,
            note=self.notes.append,
        )

    @property
    def seed(self) -> int:
        return self.world.streams.seed

    @property
    def log_path(self) -> Path:
        return self.directory.run_file(self.arm.name, self.seed, "log.jsonl")

    @property
    def log(self) -> bytes:
        return self.log_path.read_bytes()

    def play(self) -> bytes:
        """Play the run without a stop; returns the log."""
        with self.attempt() as attempt:
            attempt.emulation.run()
            self.keep(attempt)
        return self.log

    def play_with_stops(self, steps: Callable[[], int], lost: Callable[[], int] = lambda: 0) -> bytes:
        """Play the run with repeated stops; returns the log.

        Each attempt is stored after `steps()` steps and dropped after `lost()` more, with a torn line at the
        end of the log; the next one resumes.
        """
        for number in count():
            with self.attempt() as attempt:
                assert (attempt.stored is None) == (number == 0), self.notes
                self.resumes += number > 0
                playing = attempt.emulation.steps()
                if not _advance(steps(), playing):
                    self.keep(attempt)
                    return self.log
                attempt.store()
                _advance(lost(), playing)
            with self.log_path.open("ab") as log:
                log.write(TORN)
        raise AssertionError("unreachable")

    def keep(self, attempt: Attempt) -> None:
        """Take the models of an attempt that has ended."""
        coordinator = attempt.emulation.coordinator
        assert isinstance(coordinator, Coordinator)
        self.kept = to_bytes(as_tree(coordinator.federation.kept_models(inf)))


def state_fields(below: object) -> set[tuple[type, str]]:
    """(class, field) of every `state_fields` of the objects of ours that `below` refers to."""
    found: set[tuple[type, str]] = set()
    seen, waiting = {id(below)}, [below]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Stateful):
            found |= {(type(item), name) for name in item.state_fields}
        if isinstance(item, Mapping):
            others = list(item.values())
        elif isinstance(item, list | tuple):
            others = list(item)
        else:
            others = list(vars(item).values()) if type(item).__module__.startswith(OUR_PACKAGES) else []
        others = [other for other in others if id(other) not in seen]
        seen |= {id(other) for other in others}
        waiting += others
    return found


def _advance(steps: int, playing: Iterator[None]) -> bool:
    """Make `steps` steps; False if the run ended before."""
    return all(next(playing, END) is not END for _ in range(steps))
