"""The contract of selectors refuses selectors that break a rule, and tells all that can happen to visits."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.selectors.random import Random
from emulator.errors import RunError
from emulator.messages import Outcome
from experiments import contracts
from tests.fakes import NOTHING


def check(selector: type[Random]) -> None:
    contracts.check_selector(lambda: selector(NOTHING))


def test_its_stories_have_every_outcome_rounds_without_updates_and_changing_lanes():
    outcomes, lanes, sizes, updated = set(), set(), set(), set()

    class Listening(Random):
        def select(self, candidates, wanted, view):
            lanes.add(len(candidates))
            sizes.update(len(candidates.ids(lane)) for lane in range(len(candidates)))
            return super().select(candidates, wanted, view)

        def feedback(self, visits, updates):
            assert visits.client.tolist() == sorted(visits.client.tolist())
            outcomes.update(visits.outcome.tolist())
            updated.add(updates is not None)

    check(Listening)
    assert outcomes == {Outcome.COMPLETED, Outcome.DROPPED, Outcome.ABANDONED}
    assert lanes == {1, 2, 3, 4}
    assert {0, 1} < sizes
    assert updated == {True, False}


def test_selectors_that_write_to_what_they_learn_of_visits_are_refused():
    class Greedy(Random):
        def feedback(self, visits, updates):
            visits.outcome[:] = 0

    with pytest.raises(AssertionError, match="writes to its arguments"):
        check(Greedy)


def test_selectors_that_write_to_updates_are_refused():
    class Greedy(Random):
        def feedback(self, visits, updates):
            if updates is not None:
                updates.metrics["loss"][:] = 0

    with pytest.raises(AssertionError, match="writes to its arguments"):
        check(Greedy)


def test_selectors_that_write_to_assignments_are_refused():
    class Greedy(Random):
        def models_changed(self, assignment):
            assignment.mixing[:] = 0

    with pytest.raises(AssertionError, match="writes to its arguments"):
        check(Greedy)


def test_selectors_whose_state_is_not_declared_are_refused():
    class Counting(Random):
        """Counts the rounds."""

        def __init__(self, settings):
            super().__init__(settings)
            self.rounds = 0

        def feedback(self, visits, updates):
            self.rounds += 1

    with pytest.raises(RunError, match="rounds"):
        check(Counting)


def test_selectors_that_behave_differently_after_feedback_are_refused():
    rng = np.random.default_rng(0)

    class Moody(Random):
        """May select fewer once it has learned of visits."""

        state_fields = ("fewer",)

        def __init__(self, settings):
            super().__init__(settings)
            self.fewer = False

        def feedback(self, visits, updates):
            self.fewer = bool(rng.random() < 0.5)

        def select(self, candidates, wanted, view):
            chosen = super().select(candidates, wanted, view)
            return chosen[: max(len(chosen) - self.fewer, 1)]

    with pytest.raises(AssertionError, match="behave differently"):
        check(Moody)


def test_selectors_that_need_metrics_nobody_computes_are_refused():
    class Curious(Random):
        needs = frozenset({"accuracy"})

    with pytest.raises(AssertionError, match=r"needs \['accuracy'\]; choices: .*, step_norm"):
        check(Curious)


def test_ids_of_another_type_are_refused():
    class Narrow(Random):
        def select(self, candidates, wanted, view):
            return super().select(candidates, wanted, view).astype(np.int32)

    with pytest.raises(AssertionError, match="participants are int32, not int64"):
        check(Narrow)
