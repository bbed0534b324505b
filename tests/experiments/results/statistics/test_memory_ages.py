from experiments.results.statistics.memory_ages import accuracy_in_band, age_bands
from tests.experiments.synthetic_runs import a_record


def an_evaluation(number, accuracies, clients):
    """Accuracies and clients in the bands from 1, 2 and 10 rounds of age."""
    ages = (1, 2, 10)
    return a_record(
        number,
        personal_accuracy_by_age=dict(zip(ages, accuracies, strict=True)),
        clients_by_age=dict(zip(ages, clients, strict=True)),
    )


def test_an_evaluation_has_as_many_parts_as_clients_in_the_band():
    records = [
        a_record(0, accuracy=None),
        an_evaluation(1, [1.0, 0.5, None], [3, 1, 0]),
        an_evaluation(2, [0.5, 0.25, None], [1, 3, 0]),
    ]
    assert age_bands(records) == [1, 2, 10]
    assert accuracy_in_band(records, 0) == (3 * 1.0 + 1 * 0.5) / 4
    assert accuracy_in_band(records, 1) == (1 * 0.5 + 3 * 0.25) / 4


def test_a_band_that_is_always_empty_or_is_not_there_has_no_accuracy():
    records = [an_evaluation(0, [1.0, 0.5, None], [3, 1, 0])]
    assert accuracy_in_band(records, 2) is accuracy_in_band(records, 3) is None
    assert accuracy_in_band([a_record(0)], 0) is None
