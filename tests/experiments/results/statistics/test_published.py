import pytest

from experiments.results.statistics.published import agreement, beside_published, spread

FIGURE = "accuracy_omitting_drift"
REPORT = {"published": {FIGURE: {"window": [86.0, 0.5], "oracle": [98.0]}}}


def test_the_standard_deviation_is_that_of_a_sample():
    assert spread([1.0, 2.0, 3.0]) == {"mean": 2.0, "std": 1.0, "seeds": 3}
    assert spread([0.5, 0.7], scale=100.0) == {
        "mean": pytest.approx(60.0),
        "std": pytest.approx(200**0.5),
        "seeds": 2,
    }


def test_one_seed_has_no_standard_deviation():
    assert spread([4.0]) == {"mean": 4.0, "std": None, "seeds": 1}


def test_what_some_seed_lacks_is_not_averaged():
    assert spread([0.5, None]) is None
    assert spread([]) is None
    assert beside_published([None], FIGURE, "window", REPORT) is None


def test_ours_stands_beside_the_published_value_with_the_difference():
    assert beside_published([0.875], FIGURE, "window", REPORT) == {
        "mean": 87.5,
        "std": None,
        "seeds": 1,
        "published": {"mean": 86.0, "std": 0.5},
        "difference": 1.5,
        "outside": True,
        "unmarked": None,
    }
    alone = beside_published([0.875], FIGURE, "oracle", REPORT)
    assert alone is not None
    assert (alone["published"], alone["outside"]) == ({"mean": 98.0, "std": None}, None)


def test_without_a_published_value_there_is_no_difference():
    for report in (REPORT, {}):
        compared = beside_published([0.875], FIGURE, "aue", report)
        assert compared is not None
        assert (compared["published"], compared["difference"]) == (None, None)


@pytest.mark.parametrize(("mean", "outside"), [(87.0, False), (85.0, False), (87.1, True), (84.9, True)])
def test_outside_is_further_than_two_published_standard_deviations(mean: float, outside: bool) -> None:
    cell = beside_published([mean / 100], FIGURE, "window", REPORT)
    assert cell is not None
    assert cell["outside"] is outside


def test_marked_seeds_count_in_the_mean_and_are_left_out_beside_it():
    cell = beside_published([0.5, 0.9, 0.8], FIGURE, "window", REPORT, marked={7}, seed_ids=[7, 8, 9])
    assert cell is not None
    assert cell["mean"] == pytest.approx(73.33, abs=0.01)
    assert cell["unmarked"] == {"mean": pytest.approx(85.0), "std": pytest.approx(50**0.5), "seeds": 2}


def cells(**means: tuple[float, float]):
    report = {"published": {FIGURE: {arm: [value, 1.0] for arm, (_, value) in means.items()}}}
    return {arm: beside_published([ours / 100], FIGURE, arm, report) for arm, (ours, _) in means.items()}


def test_agreement_counts_the_methods_inside_and_ranks_their_means():
    # Ranks of ours 1 2 3 4, of the published ones 1 3 2 4: 1 - 6 (0 + 1 + 1 + 0) / (4 (16 - 1)) = 0.8.
    found = agreement(cells(a=(10, 10), b=(20, 40), c=(30, 30), d=(90, 91)))
    assert found == {
        "methods": 4,
        "inside": 3,
        "outside": ["b"],
        "rank_correlation": pytest.approx(0.8),
    }


def test_equal_means_share_their_average_rank():
    # Ours rank 1.5 1.5 3, the published ones 1 2 3: covariance 1.5 / (sqrt(1.5) sqrt(2)) = 0.866.
    found = agreement(cells(a=(10, 10), b=(10, 20), c=(30, 30)))
    assert found is not None
    assert found["rank_correlation"] == pytest.approx(0.75**0.5)


def test_two_methods_or_equal_means_have_no_rank_correlation():
    for means in ({"a": (10, 10), "b": (20, 20)}, {"a": (10, 10), "b": (10, 20), "c": (10, 30)}):
        found = agreement(cells(**means))
        assert found is not None
        assert found["rank_correlation"] is None


def test_without_published_values_there_is_no_agreement():
    assert agreement({"a": beside_published([0.5], FIGURE, "a", {})}) is None


def test_a_published_mean_alone_is_ranked_but_neither_inside_nor_outside():
    found = agreement({"oracle": beside_published([0.98], FIGURE, "oracle", REPORT)})
    assert found == {"methods": 1, "inside": 0, "outside": [], "rank_correlation": None}
