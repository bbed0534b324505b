"""The contract of clusterers refuses clusterers that break a rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.view import ClaimedBy
from emulator.errors import RunError
from emulator.messages import InferencePlan, NamedNumbers, Trigger
from emulator.plugins import NoSettings
from experiments import contracts
from tests.fakes import NOTHING, ints


def called(value) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(
    ("trigger", "complaint"),
    [
        (Trigger(np.float64(1), None, None, 1, False), "must be a float, an int and a bool"),
        (Trigger(1.0, None, None, 1, np.bool_(False)), "must be a float, an int and a bool"),
        (Trigger(float("nan"), 1.0, 0.5, 2, False), "must be finite"),
        (Trigger(1.0, 1.0, float("inf"), 2, False), "must be finite"),
        (NamedNumbers({"spread": np.float64(1)}, 2, False), "spread must be a finite number"),
        (NamedNumbers({"spread": [1.0]}, 2, False), "spread has 1 numbers, for 2 clusters"),
        (NamedNumbers({"The spread": 1.0}, 2, False), "'The spread' cannot name a number"),
        (NamedNumbers({}, np.int64(2), False), "clusters must be an int"),
    ],
)
def test_triggers_that_a_log_cannot_hold_are_refused(trigger, complaint):
    class Logs(Single):
        def on_data(self, view):
            view.log_trigger(trigger)
            return super().on_data(view)

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_clusterer(lambda: Logs(NOTHING))


def test_triggers_that_are_random_or_logged_while_serving_are_refused():
    rng = np.random.default_rng(0)

    class Random(Single):
        def on_data(self, view):
            view.log_trigger(Trigger(float(rng.random()), None, None, 1, False))
            return super().on_data(view)

    class Serving(Single):
        def serve(self, view):
            view.log_trigger(Trigger(1.0, None, None, 1, False))
            return super().serve(view)

    for part, complaint in ((Random, "log different triggers"), (Serving, "serve must not log triggers")):
        with pytest.raises(AssertionError, match=complaint):
            contracts.check_clusterer(lambda part=part: part(NOTHING))


class Spoilt(Single):
    """Single, whose first assignment is replaced by `spoil` of it."""

    watches_data = True
    fixed_clusters = None

    def __init__(self, spoil) -> None:
        super().__init__(NOTHING)
        self.spoil = spoil

    def on_data(self, view):
        assignment = super().on_data(view)
        return self.spoil(view, assignment) if assignment is not None else None


def spoilt_models():
    def half(view, assignment):
        return replace(assignment, mixing=assignment.mixing / 2)

    def endless(view, assignment):
        return replace(assignment, mixing=assignment.mixing * np.inf)

    def narrow(view, assignment):
        return replace(assignment, mixing=np.ones((1, 2)) / 2)

    def short(view, assignment):
        return replace(assignment, extra=assignment.extra[:, 1:])

    def double(view, assignment):
        return replace(assignment, extra=assignment.extra.astype(np.float64))

    def successors(view, assignment):
        return replace(assignment, successor=ints(0))

    def nothing(view, assignment):
        return None

    def vandal(view, assignment):
        view.changed[0] += 1
        return assignment

    return [
        (half, "sum to 1"),
        (endless, "must be finite"),
        (narrow, "mixing has shape"),
        (short, "models have 6 parameters"),
        (double, "not float32"),
        (successors, "a row for each old model"),
        (nothing, "must return an assignment"),
        (vandal, "writes to its arguments"),
    ]


def spoilt_members():
    rng = np.random.default_rng(0)

    def stranger(view, assignment):
        return replace(assignment, members=assignment.members + 1)

    def missing(view, assignment):
        return replace(assignment, members=assignment.members[1:])

    def flat(view, assignment):
        return replace(assignment, members=assignment.members[:, 0])

    def gap(view, assignment):
        return replace(assignment, members=np.hstack([assignment.members - 1, assignment.members]))

    def twice(view, assignment):
        return replace(assignment, members=np.hstack([assignment.members, assignment.members]))

    def lane(view, assignment):
        return replace(assignment, lanes=assignment.members[:, 0] + 1)

    def lanes(view, assignment):
        return replace(assignment, lanes=assignment.members)

    def barred(view, assignment):
        return replace(assignment, lanes=assignment.members[:, 0] - 1)

    def whim(view, assignment):
        return Assignment.fresh(rng.integers(2, size=view.num_clients), 2, view.initial(0))

    return [
        (stranger, "rows of the new models"),
        (missing, "a row for each client"),
        (flat, "must have shape"),
        (gap, "pad rows of members at the end"),
        (twice, "of the same model twice"),
        (lane, "lanes must be rows of the models"),
        (lanes, "lanes must have a row for each client"),
        (barred, "no client can be selected"),
        (whim, "behave differently on equal views"),
    ]


@pytest.mark.parametrize(("spoil", "complaint"), [*spoilt_models(), *spoilt_members()], ids=called)
def test_clusterers_that_break_a_rule_are_refused(spoil, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_clusterer(lambda: Spoilt(spoil))


def test_a_clusterer_that_never_returns_an_assignment_is_refused():
    class Silent(Clusterer):
        Settings = NoSettings

    with pytest.raises(AssertionError, match="must return an assignment"):
        contracts.check_clusterer(lambda: Silent(NOTHING))


@pytest.mark.parametrize("moment", ["on_data", "on_participants", "on_updates"])
def test_later_assignments_must_obey_the_same_rules(moment):
    class Late(Single):
        def again(self, view):
            first = Single.on_data(self, view)
            # All models stay, and yet none is its own successor.
            return first or replace(Assignment.moved(view.members, 1), successor=ints(-1))

    setattr(Late, moment, Late.again)
    with pytest.raises(AssertionError, match="its own successor"):
        contracts.check_clusterer(lambda: Late(NOTHING))


def test_clusterers_whose_clusters_are_not_those_that_they_declare_are_refused():
    class Two(Single):
        fixed_clusters = 2

    with pytest.raises(AssertionError, match="fixed_clusters = 2, and an assignment has 1 models"):
        contracts.check_clusterer(lambda: Two(NOTHING))


def test_clusterers_that_need_no_clear_thing_are_refused():
    class Curious(Single):
        needs_reports = "gradient"

    with pytest.raises(AssertionError, match="needs_reports = 'gradient': must be bool"):
        contracts.check_clusterer(lambda: Curious(NOTHING))


class Requesting(Single):
    """Single that sends the request `score` when data arrive, and passes the response to `then`."""

    watches_data = True

    def __init__(self, score, then=lambda view, response: None) -> None:
        super().__init__(NOTHING)
        self.score = score
        self.then = then

    def on_data(self, view):
        if view.assignment is not None and len(view.changed) > 0:
            self.then(view, self.score(view))
        return super().on_data(view)


def requests_of_wrong_ids():
    def stranger(view):
        return view.score(ints(view.num_clients), ints(0), "arrived")

    def backwards(view):
        return view.score(ints(1, 0), ints(0), "arrived")

    def twice(view):
        return view.score(ints(0, 0), ints(0), "arrived")

    def missing(view):
        return view.score(ints(0), ints(1), "arrived")

    def last(view):
        return view.score(ints(0), ints(-1), "arrived")

    def none(view):
        return view.score(ints(0), ints(), "arrived")

    def floats(view):
        return view.score(np.zeros(1), ints(0), "arrived")

    return [
        (stranger, "clients .* must be 0 to"),
        (backwards, "not ascending and distinct"),
        (twice, "not ascending and distinct"),
        (missing, "models .* must be 0 to 0"),
        (last, "models .* must be 0 to 0"),
        (none, "without models"),
        (floats, "not int64"),
    ]


def requests_of_wrong_samples():
    def elsewhere(view):
        return view.score(ints(0), ints(0), ClaimedBy(1))

    def tomorrow(view):
        return view.score(ints(0), ints(0), "tomorrow")

    def vague(view):
        return view.score(ints(0), ints(0), "arrived", frozenset())

    def clever(view):
        return view.score(ints(0), ints(0), "arrived", frozenset({"wit"}))

    def few(view):
        return view.score(ints(0), ints(0), "arrived", limit=0)

    return [
        (elsewhere, "claimed for model 1; must be 0 to 0"),
        (tomorrow, "samples = 'tomorrow'"),
        (vague, "without metrics"),
        (clever, "metrics \\['wit'\\]; choices"),
        (few, "limit = 0 samples"),
    ]


@pytest.mark.parametrize(
    ("score", "complaint"), [*requests_of_wrong_ids(), *requests_of_wrong_samples()], ids=called
)
def test_requests_that_no_run_can_serve_are_refused(score, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_clusterer(lambda: Requesting(score))


def test_clusterers_with_random_requests_are_refused():
    rng = np.random.default_rng(3)

    def one_at_random(view):
        return view.score(rng.choice(view.changed, size=1), ints(0), "arrived")

    with pytest.raises(AssertionError, match="send different requests to equal clients"):
        contracts.check_clusterer(lambda: Requesting(one_at_random))


def test_clusterers_that_rely_on_every_response_are_refused():
    def everybody(view):
        return view.score(view.changed, ints(0), "arrived")

    def every_client_responded(view, response):
        assert len(response.clients) == len(view.changed), "somebody did not respond"

    with pytest.raises(AssertionError, match="somebody did not respond"):
        contracts.check_clusterer(lambda: Requesting(everybody, every_client_responded))

    def any_client_responded(view, response):
        assert len(response.clients) > 0, "nobody responded"

    with pytest.raises(AssertionError, match="nobody responded"):
        contracts.check_clusterer(lambda: Requesting(everybody, any_client_responded))


class Serving(Single):
    """Single whose inference plans `plan` makes."""

    state_fields = ("_served",)

    def __init__(self, plan) -> None:
        super().__init__(NOTHING)
        self.plan = plan
        self._served = 0

    def serve(self, view):
        self._served += 1
        return self.plan(self, view)


def plans_of_wrong_models():
    def stranger(part, view):
        return InferencePlan.alike(view.members + 1)

    def missing(part, view):
        return InferencePlan.alike(view.members[1:])

    def flat(part, view):
        return InferencePlan(view.members[:, 0], np.ones(view.num_clients))

    def narrow(part, view):
        return InferencePlan.alike(view.members.astype(np.int32))

    def curious(part, view):
        view.score(ints(0), ints(0), "arrived")
        return InferencePlan.alike(view.members)

    def vandal(part, view):
        view.members[0] -= 1
        return InferencePlan.alike(view.members)

    return [
        (stranger, "rows of the bank"),
        (missing, "a row for each client"),
        (flat, "must have shape"),
        (narrow, "not int64"),
        (curious, "serve must not send requests"),
        (vandal, "writes to its arguments"),
    ]


def plans_of_wrong_weights():
    def weightless(part, view):
        return InferencePlan(view.members, np.ones((view.num_clients, 2)))

    def half(part, view):
        return InferencePlan(view.members, np.full(view.members.shape, 0.5))

    def negative(part, view):
        return InferencePlan(
            np.tile([0, 0], (view.num_clients, 1)), np.tile([2.0, -1.0], (view.num_clients, 1))
        )

    def endless(part, view):
        return InferencePlan(view.members, np.full(view.members.shape, np.nan))

    def padded(part, view):
        return InferencePlan(np.tile([0, -1], (view.num_clients, 1)), np.full((view.num_clients, 2), 0.5))

    def medley(part, view):
        return replace(InferencePlan.alike(view.members), combine="medley")

    def moody(part, view):
        return replace(
            InferencePlan.alike(view.members), combine="votes" if part._served % 2 else "probabilities"
        )

    return [
        (weightless, "a weight for each of its models"),
        (half, "sum to 1"),
        (negative, "must not be negative"),
        (endless, "must be finite"),
        (padded, "0 where models are padded"),
        (medley, "combine = 'medley'; choices"),
        (moody, "serve return different plans"),
    ]


@pytest.mark.parametrize(
    ("plan", "complaint"), [*plans_of_wrong_models(), *plans_of_wrong_weights()], ids=called
)
def test_clusterers_that_serve_against_a_rule_are_refused(plan, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_clusterer(lambda: Serving(plan))


def test_clusterers_that_cannot_bear_clients_without_a_model_are_refused():
    class Counting(Single):
        def on_data(self, view):
            if view.assignment is not None:
                np.bincount(view.members[:, 0])
            return super().on_data(view)

    with pytest.raises(ValueError, match="negative"):
        contracts.check_clusterer(lambda: Counting(NOTHING))


def test_clusterers_that_place_a_joined_client_in_a_model_that_is_not_there_are_refused():
    class Strange(Single):
        def on_joined(self, view):
            return Assignment.moved(np.where(view.members < 0, 1, 0), 1)

    with pytest.raises(AssertionError, match="members must be rows of the new models"):
        contracts.check_clusterer(lambda: Strange(NOTHING))


@pytest.mark.slow
def test_what_a_clusterer_says_of_clients_that_hold_no_data_does_not_count():
    class Careless(Single):
        def on_participants(self, view):
            return Assignment.moved(np.where(view.holding, 0, 7), 1)

        def serve(self, view):
            return InferencePlan.alike(np.where(view.holding, 0, 7)[:, None])

    contracts.check_clusterer(lambda: Careless(NOTHING))


def test_clusterers_that_forget_when_they_are_stored_are_refused():
    class Forgetful(Single):
        """Moves all clients to another model in round 2; counts rounds in an undeclared attribute."""

        fixed_clusters = 2

        def __init__(self, settings):
            super().__init__(settings)
            self.rounds = 0

        def on_data(self, view):
            self.rounds += 1
            if view.assignment is None:
                return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 2, view.initial(0))
            return Assignment.moved(np.ones(view.num_clients, dtype=np.int64), 2) if self.rounds > 1 else None

    with pytest.raises(RunError, match="its attribute rounds has changed since it was made"):
        contracts.check_clusterer(lambda: Forgetful(NOTHING))


def test_clusterers_that_cannot_be_stored_are_refused():
    class Closed(Single):
        state_fields = ("_secret",)

        def __init__(self, settings):
            super().__init__(settings)
            self._secret = object()

    with pytest.raises(RunError, match="_secret: a object cannot be stored"):
        contracts.check_clusterer(lambda: Closed(NOTHING))


@pytest.mark.slow
def test_clients_without_a_model_need_not_be_served():
    class Some(Single):
        def on_data(self, view):
            first = super().on_data(view)
            if first is None or view.num_clients == 1:
                return first
            return replace(first, members=np.where(np.arange(view.num_clients) == 1, -1, 0)[:, None])

    contracts.check_clusterer(lambda: Some(NOTHING))


def test_clusterers_whose_assignments_depend_on_serve_are_refused():
    class Counting(Serving):
        def on_data(self, view):
            first = super().on_data(view)
            if first is not None or view.round < 2:
                return first
            return replace(Assignment.moved(view.members, 1), reclustered=self._served > 2)

    with pytest.raises(AssertionError, match="behave differently on equal views"):
        contracts.check_clusterer(lambda: Counting(lambda part, view: InferencePlan.alike(view.members)))
