"""Checks of the schedules of arms, in the world of a seed, before any run."""

from __future__ import annotations

from pydantic import ValidationError

from coordinator.detectors import DETECTORS
from coordinator.federation.method import Parts
from coordinator.schedules.base import TASK_SETTINGS
from coordinator.schedules.by_cluster import ByCluster
from coordinator.schedules.on_drift import OnDrift, OnDriftSettings
from emulator.errors import ConfigurationError, naming
from emulator.messages import SolverFacts
from experiments.config import Arm


def check_schedules(parts: Parts, arm: Arm, solver: SolverFacts) -> None:
    """Reject schedules that set what nobody reads or takes, or that never change anything.

    Args:
        parts: The parts of the arm.
        arm: The arm.
        solver: What is known of its solver.

    Raises:
        ConfigurationError: One line with the schedule, the value and the rule.
    """
    choices = ", ".join(sorted({*TASK_SETTINGS, *solver.settings}))
    for schedule, chosen in zip(parts.schedules, arm.schedules, strict=True):
        for name in sorted(schedule.sets - {*TASK_SETTINGS, *solver.settings}):
            raise ConfigurationError(
                f"schedule {chosen.kind!r}: sets {name!r}, which no rule of the solver "
                f"[{', '.join(rule.kind for rule in arm.solver)}] reads; choices: {choices}"
            )
        with naming(f"schedule {chosen.kind!r}"):
            if isinstance(schedule, ByCluster):
                for cluster, numbers in schedule.settings.clusters.items():
                    for name in sorted(numbers.keys() & solver.settings.keys()):
                        with naming(f"clusters.{cluster}"):
                            _refuse_number(name, numbers[name], arm)
            if isinstance(schedule, OnDrift):
                _refuse_without_news(schedule.settings.detector, parts)
                _refuse_product(schedule.settings, arm, solver)


def _refuse_number(name: str, number: float, arm: Arm) -> None:
    """ConfigurationError unless the rule of the solver that reads a number such as "adam.beta1" takes it."""
    key = name.rpartition(".")[2]
    rule = next(rule for rule in (chosen.build() for chosen in arm.solver) if name in rule.task_settings)
    try:
        rule.Settings.model_validate({**rule.settings.model_dump(by_alias=True), key: number})
    except ValidationError as error:
        raise ConfigurationError(f"{name} = {number:g}: {error.errors()[0]['msg'].lower()}") from error


def _refuse_without_news(detector: str | None, parts: Parts) -> None:
    """ConfigurationError unless the arm has the detector, or any, that watches arrivals."""
    watching = parts.detectors_on("arrivals")
    if not watching:
        kinds = ", ".join(kind for kind in DETECTORS.ours() if DETECTORS.find(kind).watches == "arrivals")
        raise ConfigurationError(
            f"the arm has no detector that watches arrivals; give it one in detectors; choices: {kinds}"
        )
    if detector is not None and detector not in watching:
        raise ConfigurationError(
            f"detector = {detector!r}: is no detector of the arm that watches arrivals; choices: "
            f"{', '.join(watching)}"
        )


def _refuse_product(settings: OnDriftSettings, arm: Arm, solver: SolverFacts) -> None:
    """ConfigurationError unless the number that `on_drift` multiplies, and its bounds, fit one another."""
    name, least, most = settings.number, settings.least, settings.most
    if name in solver.settings:
        for bound in ("least", "most"):
            with naming(bound):
                _refuse_number(name, getattr(settings, bound), arm)
    base = solver.settings.get(name, arm.training.learning_rate)
    if base != 0 and not least <= base <= most:
        raise ConfigurationError(
            f"{name} = {base:g}, as it is without drift, must be from least = {least:g} to most = {most:g}"
        )
    if min(max(base * settings.factor, least), most) == base or base == 0:
        raise ConfigurationError(
            f"{name} = {base:g}: times factor = {settings.factor:g}, from least = {least:g} to most = "
            f"{most:g}, it is the same number, so that a drift would change nothing"
        )
