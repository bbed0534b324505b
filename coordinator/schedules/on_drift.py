"""FedConD's schedule: a number of a client's tasks that grows while its newest data drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from coordinator.detectors import DETECTORS
from coordinator.schedules.base import Schedule
from coordinator.schedules.by_cluster import WHOLE
from coordinator.view import RunFacts, View
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import ConfigurationError, naming
from emulator.numbers import Factor, PositiveFactor
from emulator.plugins import Settings
from emulator.storage.state_tree import Tree


class OnDriftSettings(Settings):
    """Which number a drift multiplies, by what, and within which bounds."""

    number: str = Field(
        "fedprox.mu",
        description="what is multiplied: learning_rate, or a number that a local rule reads",
    )
    factor: PositiveFactor = Field(
        2.0, description="of the number, each time that the client's newest data drift", examples=[1.5]
    )
    most: PositiveFactor = Field(1.0, description="largest product")
    least: Factor = Field(0.0, description="smallest product")
    detector: str | None = Field(
        None,
        description="name of the detector that decides, one that watches arrivals; without it, any of these",
        examples=["news"],
    )

    @field_validator("number")
    @classmethod
    def _is_not_whole(cls, number: str) -> str:
        if number in WHOLE:
            raise ValueError(f"{number!r}: is a whole number, which is not multiplied; take learning_rate")
        return number

    @field_validator("factor")
    @classmethod
    def _changes_something(cls, factor: float) -> float:
        if factor == 1:
            raise ValueError("1 changes nothing")
        return factor

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least = {self.least:g}: must not be above most = {self.most:g}")
        if self.number == "learning_rate" and self.factor < 1 and self.least == 0:
            raise ValueError("least = 0: must be above 0 if factor is below 1, since learning_rate must be")
        return self


class OnDrift(Schedule):
    """Multiplies a number of a client's tasks each time that its newest data drift.

    A participant that has scored what has arrived for it either is flagged, as by the detector `stepd`, or
    is not. If it is, its number becomes clip(number x `factor`, `least`, `most`); if not, it is the arm's
    own again. Clients without news keep what they have. So FedConD pulls a client whose data drift more
    strongly to the federation's model, with `fedprox` in the solver.

    State: how often in a row each client was flagged, of those that were at the last time.

    Source: Chen et al., "Asynchronous Federated Learning for Sensor Data with Concept Drift", IEEE Big Data
    2021 (FedConD), section on drift adaptation; there neither base nor increment is given, and these are
    ours.

    Of clients 0 to 2, client 0 is flagged at two dispatches, client 1 at the first, and client 2 has no news:

    >>> from types import SimpleNamespace
    >>> schedule, base = OnDrift(OnDriftSettings()), {"fedprox.mu": np.full(3, 0.3)}
    >>> for flags in ([True, True, False], [True, False, False]):
    ...     drift = {"news": np.array(flags)}
    ...     view = SimpleNamespace(num_clients=3, changed=np.array([0, 1]), drift=drift)
    ...     schedule.observe(view)
    ...     print(schedule.task_settings(np.arange(3), np.zeros(3), base, view)["fedprox.mu"].tolist())
    [0.6, 0.6, 0.3]
    [1.0, 0.3, 0.3]
    """

    Settings = OnDriftSettings
    settings: OnDriftSettings
    state_fields = ("_times",)

    def __init__(self, settings: OnDriftSettings) -> None:
        super().__init__(settings)
        self._times: Ints = np.zeros(0, dtype=np.int64)  # (N,) from the first dispatch on

    @property
    def sets(self) -> frozenset[str]:  # type: ignore[override]  # of an instance: its settings say
        return frozenset({self.settings.number})

    def check_run(self, run: RunFacts) -> None:
        detector, name = self.settings.detector, self.settings.number
        least, most, factor = self.settings.least, self.settings.most, self.settings.factor
        if not run.watching_arrivals:
            kinds = ", ".join(kind for kind in DETECTORS.ours() if DETECTORS.find(kind).watches == "arrivals")
            raise ConfigurationError(
                f"the arm has no detector that watches arrivals; give it one in detectors; choices: {kinds}"
            )
        if detector is not None and detector not in run.watching_arrivals:
            raise ConfigurationError(
                f"detector = {detector!r}: is no detector of the arm that watches arrivals; choices: "
                f"{', '.join(run.watching_arrivals)}"
            )
        for key, bound in (("least", least), ("most", most)):
            with naming(key):
                run.check_number(name, bound)
        base = run.numbers[name]
        if base != 0 and not least <= base <= most:
            raise ConfigurationError(
                f"{name} = {base:g}, as it is without drift, must be from least = {least:g} to most = "
                f"{most:g}"
            )
        if min(max(base * factor, least), most) == base or base == 0:
            raise ConfigurationError(
                f"{name} = {base:g}: times factor = {factor:g}, from least = {least:g} to most = {most:g}, "
                f"it is the same number, so that a drift would change nothing"
            )

    def state(self) -> dict[str, Tree]:
        flagged = np.flatnonzero(self._times)
        return {"_times": {"clients": len(self._times), "of": np.stack([flagged, self._times[flagged]])}}

    def restore(self, state: Mapping[str, Tree]) -> None:
        self._times = np.zeros(state["_times"]["clients"], dtype=np.int64)
        flagged, times = state["_times"]["of"]
        self._times[flagged] = times

    def observe(self, view: View) -> None:
        if len(self._times) == 0:
            self._times = np.zeros(view.num_clients, dtype=np.int64)
        if len(changed := view.changed) > 0:
            self._times[changed] = np.where(self._flags(view)[changed], self._times[changed] + 1, 0)

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        settings, numbers, times = self.settings, base[self.settings.number].copy(), self._times[client]
        for step in range(int(times.max(initial=0))):
            before = numbers
            product = np.clip(before * settings.factor, settings.least, settings.most)
            numbers = np.where(times > step, product, before)
            if np.array_equal(numbers, before):  # all that are multiplied are at a bound
                break
        return {settings.number: numbers}

    def _flags(self, view: View) -> Bools:
        """(N,) whom the detector, or any, flags."""
        if self.settings.detector is not None:
            return view.drift[self.settings.detector]
        flags: Bools = np.logical_or.reduce([np.zeros(view.num_clients, dtype=bool), *view.drift.values()])
        return flags
