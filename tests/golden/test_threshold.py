"""The exact threshold of a global re-clustering, in numbers that float64 holds exactly."""

import pytest

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from tests.fakes import FakeExecutor, FakeStream, Population, one_hot

HAIR = 2.0**-40


def second_round(drifted_to: list[float], threshold: float):
    """Clients 0, 1 hold label 0; clients 2, 3 hold label 1 until client 3 drifts."""
    before = one_hot(0, 0, 1, 1, of=3)
    after = before.copy()
    after[3] = drifted_to
    return (
        Population(
            FakeExecutor([0.0] * 4),
            stream=FakeStream([before, after]),
            clusterer=Fielding(FieldingSettings(trigger={"threshold": threshold})),
            rounds=2,
        )
        .play()
        .records[1]
    )


# Client 3 drifts to (0, x, 1 - x), nearest to its own centre. That goes from (0, 1, 0) to
# (0, (1 + x) / 2, (1 - x) / 2): a shift of 1 - x. Its distance from (1, 0, 0) stays 2.
# With threshold 1/4 the border is at 1 - x = 1/2.
@pytest.mark.parametrize(
    ("x", "reclustered"),
    [(0.5, True), (0.5 + HAIR, False), (0.5 - HAIR, True)],
    ids=["at the threshold", "a hair below", "a hair above"],
)
def test_a_shift_of_exactly_the_threshold_reclusters_and_a_hair_below_does_not(x, reclustered):
    record = second_round([0.0, x, 1 - x], threshold=0.25)
    assert record.reported == 1
    assert record.reclustered is reclustered


@pytest.mark.parametrize(("threshold", "reclustered"), [(0.25, True), (0.25 + HAIR, False)])
def test_the_threshold_itself_can_be_a_hair_too_high(threshold, reclustered):
    assert second_round([0.0, 0.5, 0.5], threshold).reclustered is reclustered


def test_a_threshold_of_zero_reclusters_at_every_drift_even_if_no_centre_moved():
    # Two clients of one cluster swap what they hold: the centre stays where it is.
    before = [[1, 0, 0], [0.75, 0.25, 0], [0, 0, 1], [0, 0, 1]]
    after = [[0.75, 0.25, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    for threshold, reclustered in ((0.0, True), (HAIR, False)):
        records = (
            Population(
                FakeExecutor([0.0] * 4),
                stream=FakeStream([before, after]),
                clusterer=Fielding(FieldingSettings(trigger={"threshold": threshold})),
                rounds=2,
            )
            .play()
            .records
        )
        assert [record.reclustered for record in records] == [False, reclustered]
