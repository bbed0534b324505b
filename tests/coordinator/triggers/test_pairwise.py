import numpy as np
import pytest

from coordinator.distances import DISTANCES
from coordinator.triggers import pairwise as pairwise_module
from coordinator.triggers.base import Moved
from coordinator.triggers.pairwise import Pairwise, PairwiseSettings
from emulator.messages import PairwiseTrigger

# The largest distance within a cluster at each of six drifts.
SIX = (0.5, 0.5, 0.5, 0.5, 0.3, 0.0)


def moved(reports, members, distance="l1") -> Moved:
    reports, members = np.array(reports, dtype=np.float64), np.array(members)
    centers = np.zeros((members.max() + 1, reports.shape[1]))
    return Moved(reports, members, centers, centers, centers, distance, rng=np.random.default_rng)


def apart(largest: float) -> Moved:
    """Two clients of a cluster at this distance, and one of another cluster far away."""
    return moved([[0.0], [largest], [9.0]], [0, 0, 1])


def evaluated(rule: str, largest=SIX) -> list[tuple[float, bool]]:
    """The limit at each drift, and whether it fired."""
    trigger = Pairwise(PairwiseSettings(rule=rule))
    logged = [trigger.evaluate(apart(distance)) for distance in largest]
    assert [item.largest_distance for item in logged] == list(largest)
    return [(item.delta, item.fired) for item in logged]


def test_the_mended_rule_over_six_drifts():
    # Doubled at the second, third and fourth drift, of which each fired after one that fired; then 0.8 - 0.1,
    # and 0.7 - 0.1.
    wanted = [(0.1, True), (0.1, True), (0.2, True), (0.4, True), (0.8, False), (0.7, False)]
    assert evaluated("mended") == pytest.approx(np.array(wanted))


def test_the_printed_rule_over_six_drifts():
    # min(0.1, 0.1 - 0.1) = 0, which doubling leaves; nothing is above 0 at the sixth drift.
    wanted = [(0.1, True), (0, True), (0, True), (0, True), (0, True), (0, False)]
    assert evaluated("printed") == pytest.approx(np.array(wanted))


def test_the_fixed_rule_over_six_drifts():
    assert evaluated("fixed") == [(0.1, distance > 0.1) for distance in SIX]


def test_the_mended_limit_does_not_go_below_its_start():
    assert [delta for delta, _ in evaluated("mended", [0.0] * 4)] == [0.1] * 4


def test_the_printed_limit_goes_below_0_where_equal_reports_are_too_far_apart():
    assert evaluated("printed", [0.0] * 3) == pytest.approx(
        np.array([(0.1, False), (0, False), (-0.1, True)])
    )


def test_a_printed_limit_below_0_stays_finite():
    trigger = Pairwise(PairwiseSettings(rule="printed"))
    assert np.isfinite([trigger.evaluate(apart(0.0)).delta for _ in range(1200)]).all()


def test_the_limit_itself_is_not_too_far():
    assert evaluated("fixed", [0.1]) == [(0.1, False)]
    assert evaluated("fixed", [float(np.nextafter(0.1, 1))]) == [(0.1, True)]


def test_clusters_of_one_client_have_no_distance_within():
    trigger = Pairwise(PairwiseSettings(rule="printed"))
    alone = moved([[0.0], [1.0]], [0, 1])
    assert [trigger.evaluate(alone).fired for _ in range(4)] == [False] * 4
    assert trigger.evaluate(alone).largest_distance is None


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("at_once", [1, 30, 10_000])
def test_the_largest_distance_is_that_of_all_pairs_in_blocks_of_any_size(monkeypatch, distance, at_once):
    monkeypatch.setattr(pairwise_module, "AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    reports, members = rng.dirichlet(np.ones(3), size=20), rng.integers(3, size=20)
    pairs = DISTANCES[distance](reports, reports)[members[:, None] == members]
    logged = Pairwise(PairwiseSettings()).evaluate(moved(reports, members, distance))
    assert logged.largest_distance == pytest.approx(pairs.max(), rel=1e-12)


def test_a_stored_trigger_goes_on_as_if_it_had_not_been():
    trigger = Pairwise(PairwiseSettings())
    for distance in SIX[:3]:
        trigger.evaluate(apart(distance))
    again = Pairwise(PairwiseSettings())
    again.restore(trigger.state())
    assert [again.evaluate(apart(distance)) for distance in SIX[3:]] == [
        trigger.evaluate(apart(distance)) for distance in SIX[3:]
    ]


def test_the_log_has_plain_numbers():
    logged = Pairwise(PairwiseSettings()).evaluate(apart(0.5))
    assert logged == PairwiseTrigger(0.5, 0.1, 2, True)
    assert {type(value) for value in vars(logged).values()} == {float, int, bool}


@pytest.mark.parametrize("settings", [{"delta": 0}, {"rule": "literal"}])
def test_the_start_is_positive_and_the_rules_have_names(settings):
    with pytest.raises(ValueError, match=r"greater than 0|'mended', 'printed' or 'fixed'"):
        PairwiseSettings(**settings)
