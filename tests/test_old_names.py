"""Old names keep working for plug-ins until version 0.2.0; tests/old_plugin_package was written with them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from pydantic import create_model

from coordinator import candidates, view
from coordinator.assignment import Assignment
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.memories.held import Held, HeldSettings
from coordinator.schedules import Schedule
from coordinator.schedules.adaptive_lr import AdaptiveLearningRate, AdaptiveLearningRateSettings
from coordinator.selectors import Selector
from emulator import deprecated, plugins
from emulator.messages import ArrayUpdates, SampleRanges
from executor.rules.adam import Adam
from executor.rules.base import LocalRule
from experiments import contracts
from tests.fakes import NOTHING, a_view, ints

PACKAGE = Path(__file__).with_name("old_plugin_package")


@pytest.fixture
def old_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(PACKAGE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield importlib.import_module("old_field_parts")


def test_parts_written_with_old_names_pass_the_contracts(old_parts: ModuleType) -> None:
    for part in (old_parts.EvenAndOdd, old_parts.Swapping):
        contracts.check_part(part, part.Parameters())
        contracts.check_clusterer(lambda part=part: part(NOTHING))
    contracts.check_pacing(lambda cohort: old_parts.SemiSync(old_parts.SemiSyncParameters(), cohort))
    contracts.check_trace_source(lambda: old_parts.Clouds(old_parts.CloudsParameters()))
    contracts.check_selector(lambda: old_parts.Firsts(NOTHING))
    contracts.check_aggregator(lambda: old_parts.Mean(NOTHING))
    contracts.check_memory(lambda: old_parts.Remembering(old_parts.HeldParameters()))
    contracts.check_schedule(lambda: old_parts.HalfRate(NOTHING))


def test_a_memory_is_notified_of_new_models_by_its_old_method(old_parts: ModuleType) -> None:
    memory = old_parts.Remembering(old_parts.HeldParameters())
    memory.models_changed(Assignment.moved(ints(0, 0), 1))
    assert memory.changes == 1


def test_old_and_new_names_are_the_same_objects() -> None:
    with pytest.warns(DeprecationWarning, match="emulator.plugins.Parameters is now Settings; .* 0.2.0"):
        assert plugins.Parameters is plugins.Settings
    with pytest.warns(DeprecationWarning, match="Pool is now Candidates"):
        assert candidates.Pool is candidates.Candidates
    with pytest.warns(DeprecationWarning, match="Answers is now ScoreResponse"):
        assert view.Answers is view.ScoreResponse
    with pytest.raises(AttributeError, match=r"module 'coordinator.view' has no attribute 'Anwsers'"):
        _ = view.Anwsers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_old_name_gives_what_has_the_present_one() -> None:
    for module, new_of_old in deprecated.NAMES.items():
        names = importlib.import_module(module)
        for old, new in new_of_old.items():
            assert getattr(names, old) is getattr(names, new)


def test_an_assignment_accepts_and_has_its_old_names() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        extra = np.zeros((0, 0), dtype=np.float32)
        old = Assignment(remix=np.eye(2), extra=extra, heir=ints(0, 1), members=ints(1, 0)[:, None])
        assert (old.remix is old.mixing, old.heir is old.successor) == (True, True)
        assert old.lane.tolist() == [1, 0]
    assert {str(warning.message).split(" is now ")[1].split(";")[0] for warning in warned} == {
        *("mixing=...", "successor=...", "mixing", "successor", "lane_of_client")
    }
    assert {Path(warning.filename) for warning in warned} == {Path(__file__)}


def test_a_warning_is_of_the_line_that_uses_the_old_name() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")

        class OldSelector(Selector):
            Parameters = plugins.NoSettings

            def select(self, candidates, wanted, view):
                return candidates.ids(0)

        class OldMemory(Held):
            def remix(self, assignment):
                super().remix(assignment)

        class OldSchedule(Schedule):
            def settings(self, client, model, base, view):
                return {}

        from coordinator.view import Answers  # noqa: F401

        OldMemory(HeldSettings()).models_changed(Assignment.moved(ints(0), 1))
    lines = Path(__file__).read_text().splitlines()
    uses = {lines[warning.lineno - 1].strip() for warning in warned if warning.filename == __file__}
    assert len(warned) >= 5
    assert {warning.filename for warning in warned} == {__file__}
    assert uses == {
        "class OldSelector(Selector):",
        "class OldMemory(Held):",
        "class OldSchedule(Schedule):",
        "from coordinator.view import Answers  # noqa: F401",
        "super().remix(assignment)",
    }


def test_updates_and_ranges_have_their_old_methods() -> None:
    updates = ArrayUpdates(ints(0), ints(0), ints(1), ints(1), np.ones((1, 2), dtype=np.float32))
    with pytest.warns(DeprecationWarning, match="Updates.mix is now Updates.weighted_sum"):
        assert updates.mix(np.array([[2.0]])).tolist() == [[2, 2]]
    ranges = SampleRanges.one_each(ints(0), ints(3))
    with pytest.warns(DeprecationWarning, match="side_by_side is now SampleRanges.joined"):
        assert SampleRanges.side_by_side([ranges, ranges]).counts().tolist() == [6]


def test_a_part_has_its_settings_under_both_names() -> None:
    class Old(plugins.Configured):
        def __init__(self, parameters: plugins.Settings) -> None:
            self.parameters = parameters

    class Copying(Fielding):
        def __init__(self, parameters: FieldingSettings) -> None:
            super().__init__(parameters)
            self.parameters = parameters.model_copy(update={"starts": 3})

    with pytest.warns(DeprecationWarning, match="Old.parameters is now settings"):
        assert Old(NOTHING).settings is NOTHING
    with pytest.warns(DeprecationWarning, match="Copying.parameters is now settings"):
        assert Copying(FieldingSettings()).settings.starts == 3
    with pytest.warns(DeprecationWarning, match="Configured.parameters is now settings"):
        assert plugins.Configured(NOTHING).parameters is NOTHING
    with pytest.warns(DeprecationWarning, match="Fielding.Parameters is now Settings"):
        assert Fielding.Parameters is FieldingSettings
    with pytest.warns(DeprecationWarning, match="LocalRule.Parameters is now Settings"):
        assert LocalRule.Parameters is plugins.NoSettings
    with pytest.warns(DeprecationWarning, match="parameters=.* is now settings=..."):
        assert Fielding(parameters=FieldingSettings(max_clusters=3)).settings.max_clusters == 3
    with pytest.warns(DeprecationWarning, match="parameters=.* is now settings=..."):
        assert Adam(parameters=Adam.Settings(beta1=0.5)).settings.beta1 == 0.5
    with pytest.raises(AttributeError, match="'Configured' object has no attribute 'paramters'"):
        _ = plugins.Configured(NOTHING).paramters


def test_parameters_that_are_a_models_are_left_alone() -> None:
    class Averaging(plugins.Configured):
        def __init__(self, settings: plugins.Settings) -> None:
            super().__init__(settings)
            self.parameters = np.zeros(2)

    class Spec(plugins.Configured, torch.nn.Module):
        def __init__(self, settings: plugins.Settings) -> None:
            torch.nn.Module.__init__(self)
            self.settings = settings
            self.layer = torch.nn.Linear(1, 1)

    class Fixed:
        parameters = 3

    class Sized(plugins.Configured, Fixed):
        pass

    assert Sized(NOTHING).parameters == 3
    part = Averaging(NOTHING)
    assert part.parameters.tolist() == [0, 0]
    assert part.settings is NOTHING
    assert sum(parameter.numel() for parameter in Spec(NOTHING).parameters()) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_members_of_mixins_are_adopted() -> None:
    class Counting:
        changes = 0

        def remix(self, assignment: Assignment) -> None:
            self.changes += 1

    class Limits:
        Parameters = FieldingSettings

    class Memory(Counting, Held):
        pass

    class Limited(Limits, Selector):
        def select(self, candidates, wanted, view):
            return candidates.ids(0)

    memory = Memory(HeldSettings())
    memory.models_changed(Assignment.moved(ints(0), 1))
    assert memory.changes == 1
    assert Limited.Settings is FieldingSettings


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_schedule_may_call_the_old_method_of_its_base() -> None:
    class Halving(AdaptiveLearningRate):
        def settings(self, client, model, base, view):
            rates = super().settings(client, model, base, view)["learning_rate"]
            return {"learning_rate": rates / 2}

    schedule, rows = Halving(AdaptiveLearningRateSettings()), ints(0)
    seen = a_view(models=[[4.0]], model_ids=ints(0))
    schedule.observe(seen)
    base = {"learning_rate": np.ones(1)}
    assert schedule.task_settings(rows, rows, base, seen)["learning_rate"].tolist() == [0.5]


def test_a_part_of_a_plug_in_may_have_the_name_of_a_base_of_ours() -> None:
    class Schedule(Selector):
        settings = NOTHING

        def remix(self) -> str:
            return "its own"

        def select(self, candidates, wanted, view):
            return candidates.ids(0)

    assert Schedule.settings is NOTHING
    assert Schedule(NOTHING).remix() == "its own"


def test_a_part_without_our_base_may_still_have_parameters() -> None:
    class Duck:
        Parameters = HeldSettings

        def __init__(self, parameters: HeldSettings) -> None:
            self.window = parameters.window

    choice = plugins.ChoiceOf(plugins.Registry("duck", "x.duck", {"duck": Duck}))
    kind: Any = create_model("Pond", duck=(Annotated[plugins.Chosen[Any], choice], ...))
    with pytest.warns(DeprecationWarning, match="Duck.Parameters is now Settings"):
        chosen = kind(duck={"kind": "duck", "window": 2}).duck
    assert chosen.build().window == 2
    with pytest.warns(DeprecationWarning, match="Chosen.parameters is now settings"):
        assert chosen.parameters is chosen.settings


def test_an_old_and_a_new_name_together_are_refused() -> None:
    with pytest.raises(TypeError, match="remix is the old name of mixing"):
        Assignment(mixing=np.eye(1), remix=np.eye(1))
