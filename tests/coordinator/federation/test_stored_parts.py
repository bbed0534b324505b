from collections import deque

import numpy as np
import pytest

from coordinator.federation.stored_parts import StoredParts
from emulator.errors import RunError
from emulator.storage.stateful import Stateful


class Counter(Stateful):
    """A part with one attribute of state, `_seen`."""

    state_fields = ("_seen",)

    def __init__(self):
        self.settings = object()
        self.limits = np.array([1, 2])
        self.calls = 0
        self._seen = 0
        self._cached = [1]


def test_parts_are_stored_and_put_back_by_name():
    counter, restored = Counter(), Counter()
    stored = StoredParts({"selector": counter, "memory": Counter()})
    counter._seen = 3
    StoredParts({"selector": restored, "memory": Counter()}).restore(stored.state())
    assert restored._seen == 3


class Holder(Stateful):
    """A part with an attribute that is not a state tree."""

    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize(
    ("held", "change"),
    [
        ({1}, lambda held: held.add(2)),
        (deque([1]), lambda held: held.append(2)),
        ({(1, 2): 0}, lambda held: held.update({(1, 2): 1})),
        ([{1}], lambda held: held[0].add(2)),
        (np.random.default_rng(0), lambda held: held.random()),
        (Counter(), lambda held: setattr(held, "_seen", 3)),
    ],
    ids=["set", "deque", "dict of pairs", "list of sets", "generator", "part within"],
)
def test_a_change_within_an_attribute_that_is_not_state_is_named(held, change):
    stored = StoredParts({"selector": Holder(held)})
    stored.state()
    change(held)
    with pytest.raises(RunError, match="its attribute held has changed since it was made"):
        stored.state()


def test_another_part_that_is_stored_itself_may_change():
    counter = Counter()
    stored = StoredParts({"selector": Holder(counter), "memory": counter})
    counter._seen = 3
    assert stored.state()["memory"] == {"_seen": 3}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda part: setattr(part, "calls", 1), "the selector cannot be stored: its attribute calls has"),
        (lambda part: part.limits.__setitem__(0, 5), "its attribute limits has changed since it was made"),
        (lambda part: setattr(part, "settings", object()), "its attribute settings has changed"),
        (lambda part: setattr(part, "_late", 1), "its attribute _late has changed since it was made, and is"),
        (lambda part: setattr(part, "_cached", [2]), "its attribute _cached has changed"),
        (lambda part: delattr(part, "_seen"), "Counter has no attribute '_seen', one of its state_fields"),
    ],
)
def test_an_attribute_that_would_be_lost_is_named(change, problem):
    part = Counter()
    stored = StoredParts({"selector": part})
    stored.state()
    change(part)
    with pytest.raises(RunError) as raised:
        stored.state()
    assert problem in str(raised.value)


class Keeper(Stateful):
    """A part whose state is that of a counter within."""

    state_fields = ("counter",)

    def __init__(self):
        self.counter = Counter()


def test_a_part_within_is_stored_with_its_holder_and_stays():
    stored, again = Keeper(), Keeper()
    stored.counter._seen = 3
    within = again.counter
    parts = StoredParts({"selector": again, "memory": Holder(within)})
    parts.restore({"selector": stored.state(), "memory": {}})
    assert again.counter is within
    assert parts.state()["selector"] == {"counter": {"_seen": 3}}


class Other(Counter):
    """Another class with the same state."""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda keeper: setattr(keeper.counter, "calls", 7),
            "its attribute counter.calls has changed since it",
        ),
        (lambda keeper: setattr(keeper, "counter", None), "its attribute counter is of another class"),
        (lambda keeper: setattr(keeper, "counter", Other()), "its attribute counter is of another class"),
    ],
)
def test_a_change_of_a_part_within_that_would_be_lost_is_named(change, problem):
    keeper = Keeper()
    parts = StoredParts({"selector": keeper})
    parts.state()
    change(keeper)
    with pytest.raises(RunError, match=f"the selector cannot be stored: {problem}"):
        parts.state()


def test_a_part_within_that_appears_later_is_named():
    keeper = Keeper()
    keeper.counter = None
    parts = StoredParts({"selector": keeper})
    keeper.counter = Counter()
    with pytest.raises(RunError, match="its attribute counter is of another class"):
        parts.state()


@pytest.mark.parametrize("names", [["selector"], ["memory", "pacing", "selector"]])
def test_a_state_of_other_parts_is_refused(names):
    stored = StoredParts({"selector": Counter(), "memory": Counter()})
    with pytest.raises(ValueError, match=r"state of the parts: \['.*'\], not \['memory', 'selector'\]"):
        stored.restore({name: {"_seen": 3} for name in names})
