"""What parts reject before a run begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.view import Part, RunFacts
from emulator.errors import ConfigurationError
from experiments import unfit
from experiments.build import build_parts, build_world
from experiments.locating import locator
from tests.experiments.small import small


def with_aggregator(monkeypatch: pytest.MonkeyPatch, part: Part) -> Callable[[], None]:
    """A function that checks an arm with this aggregator, of 3 participants and 4 rounds of 12 clients."""
    experiment = small(trace={"clients": 12}, round={"participants": 3, "rounds": 4})

    world = build_world(experiment, 0, locator(None, None))

    def parts(*of: Any) -> Any:
        return replace(build_parts(*of), aggregator=part)

    monkeypatch.setattr(unfit, "build_parts", parts)
    return lambda: unfit.refuse_unfit_arms(experiment, [experiment.arm[0].name], world)


def test_a_metric_that_nobody_computes_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Needy(FedAvg):
        needs = frozenset({"loss_after", "loss_before"})

    problem = (
        r"Needy needs the metric 'loss_after' of training, which .*; choices: loss_before, loss_squared$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        with_aggregator(monkeypatch, Needy(FedAvgSettings()))()


def test_needs_that_are_no_set_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wordy(FedAvg):
        needs: Any = "loss_before"

    problem = r"Wordy\.needs is 'loss_before': must be a property that returns a frozenset of metrics"
    with pytest.raises(ConfigurationError, match=problem):
        with_aggregator(monkeypatch, Wordy(FedAvgSettings()))()


def test_a_part_can_refuse_a_run_by_its_rounds_participants_and_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Choosy(FedAvg):
        def check_run(self, run: RunFacts) -> None:
            raise ConfigurationError(f"{run.num_clients} clients, {run.rounds} rounds, {run.participants}")

    with pytest.raises(ConfigurationError, match=r"^arm '\w+': 12 clients, 4 rounds, 3$"):
        with_aggregator(monkeypatch, Choosy(FedAvgSettings()))()


@pytest.mark.parametrize(
    ("arm", "problem"),
    [
        (
            {"adaptation": "tuned", "clusterer": "aue", "memory": "claimed"},
            r"adaptation = 'tuned': adapts the one model .* clusterer = 'aue' combines several; .*'prior'",
        ),
        (
            {"adaptation": "alone", "clusterer": "ifca"},
            r"adaptation = 'alone': no models are federated, and clusterer = 'ifca' makes some",
        ),
        (
            {"adaptation": "alone", "solver": "adam"},
            r"Alone: to keep [\d,]+ numbers for each of 12 clients takes 0\.0 GiB .*; set round\.evaluate",
        ),
    ],
)
def test_an_adaptation_that_does_not_fit_its_arm_or_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, arm: dict[str, Any], problem: str
) -> None:
    experiment = small(trace={"clients": 12}, arm=[{"name": "only", **arm}])
    world = build_world(experiment, 0, locator(None, None))
    monkeypatch.setattr(unfit, "available_bytes", lambda: 40_000)
    with pytest.raises(ConfigurationError, match=f"^arm 'only': {problem}"):
        unfit.refuse_unfit_arms(experiment, ["only"], world)
