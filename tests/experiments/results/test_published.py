import pytest

from experiments.results.published import beside_published, spread

REPORT = {"published": {"accuracy_omitting_drift": {"window": [86.0, 0.5], "oracle": [98.0]}}}


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
    assert beside_published([None], "accuracy_omitting_drift", "window", REPORT) is None


def test_ours_stands_beside_the_published_value_with_the_difference():
    assert beside_published([0.875], "accuracy_omitting_drift", "window", REPORT) == {
        "mean": 87.5,
        "std": None,
        "seeds": 1,
        "published": {"mean": 86.0, "std": 0.5},
        "difference": 1.5,
    }
    alone = beside_published([0.875], "accuracy_omitting_drift", "oracle", REPORT)
    assert alone is not None
    assert alone["published"] == {"mean": 98.0, "std": None}


def test_without_a_published_value_there_is_no_difference():
    for report in (REPORT, {}):
        compared = beside_published([0.875], "accuracy_omitting_drift", "aue", report)
        assert compared is not None
        assert (compared["published"], compared["difference"]) == (None, None)
