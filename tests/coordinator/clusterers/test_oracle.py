import pytest

from coordinator.clusterers.oracle import Oracle
from emulator.errors import ConfigurationError
from tests.coordinator.clusterers.scored import Story
from tests.fakes import NOTHING


def a_story(clients: int) -> Story:
    return Story(Oracle(NOTHING), clients)


def test_every_client_is_on_the_model_of_its_concept():
    story = a_story(3).start(concepts=[1, 0, 1])
    assert story.rows == [1, 0, 1]
    assert story.models == [[0, 0], [0, 0]]


def test_a_concept_that_appears_gets_a_fresh_model_and_the_others_stay():
    story = a_story(3).start(concepts=[4, 4, 4])
    story.train([7, 7])
    assignment = story.step(None, concepts=[4, 2, 4])
    assert assignment is not None
    assert story.rows == [0, 1, 0]
    assert story.models == [[7, 7], [0, 0]]
    assert assignment.successor.tolist() == [0]


def test_a_concept_that_returns_finds_its_old_model():
    story = a_story(2).start(concepts=[0, 1])
    story.train([3, 3], [4, 4])
    story.step(None, concepts=[0, 0])
    story.step(None, concepts=[1, 0])
    assert story.rows == [1, 0]
    assert story.models == [[3, 3], [4, 4]]


def test_nothing_happens_while_concepts_stay_and_no_request_is_made():
    story = a_story(2).start(concepts=[0, 1])
    assert story.step(None, concepts=[0, 1]) is None
    story.step(None, concepts=[2, 1])
    assert story.requests == []


def test_a_trace_without_the_truth_is_refused():
    oracle = Oracle(NOTHING)
    oracle.check({}, knows_concepts=True)
    with pytest.raises(ConfigurationError, match=r"'oracle' .* this trace has none.*trace\.changes$"):
        oracle.check({}, knows_concepts=False)
