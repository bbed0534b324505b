import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from tests.fakes import ints


def applied(bank: ModelBank, mixing, successor, extra=()) -> None:
    """Apply an assignment by its matrix; members do not matter to the bank."""
    mixing = np.array(mixing, dtype=np.float64)
    bank.apply(
        Assignment(
            mixing=mixing,
            extra=np.array(extra, dtype=np.float32).reshape(-1, bank.parameters.shape[1]),
            successor=np.array(successor, dtype=np.int64),
            members=np.zeros((1, 1), dtype=np.int64),
        )
    )


def bank_of(*rows: float) -> ModelBank:
    """A bank of models with one parameter each: ids, labels 0 .. k - 1, versions 0."""
    bank = ModelBank(1)
    applied(bank, np.eye(len(rows)), [], [[row] for row in rows])
    return bank


def names(bank: ModelBank) -> tuple[list[int], list[int], list[int]]:
    return bank.ids.tolist(), bank.versions.tolist(), bank.labels.tolist()


def test_a_bank_starts_empty_and_counts_from_zero():
    assert len(ModelBank(3)) == 0
    assert names(bank_of(1, 2)) == ([0, 1], [0, 0], [0, 1])


def test_publishing_replaces_what_was_updated_and_counts_its_version():
    bank = bank_of(1, 2)
    bank.publish(np.array([[5], [6]], dtype=np.float32), updated=np.array([False, True]))
    assert bank.parameters.tolist() == [[1], [6]]
    assert names(bank) == ([0, 1], [0, 1], [0, 1])


def test_a_successor_by_a_unit_row_is_the_same_model_in_another_place():
    bank = bank_of(1, 2)
    bank.publish(bank.parameters, updated=np.array([True, False]))
    applied(bank, [[0, 1], [1, 0]], successor=[1, 0])
    assert bank.parameters.tolist() == [[2], [1]]
    assert names(bank) == ([1, 0], [0, 1], [1, 0])


def test_a_copy_that_is_nobodys_successor_has_a_name_of_its_own():
    # A split: both new models are copies of the old one, and the second is its successor.
    bank = bank_of(7)
    bank.publish(bank.parameters, updated=np.array([True]))
    applied(bank, [[1], [1]], successor=[1])
    assert bank.parameters.tolist() == [[7], [7]]
    assert names(bank) == ([1, 0], [0, 1], [1, 0])


def test_a_mixed_successor_keeps_the_label_but_is_a_new_model():
    bank = bank_of(1, 3)
    bank.publish(bank.parameters, updated=np.array([True, True]))
    applied(bank, [[0.5, 0.5]], successor=[0, -1])
    assert bank.parameters.tolist() == [[2]]
    assert names(bank) == ([2], [0], [0])


def test_of_two_models_that_merge_the_lowest_row_passes_on_its_label():
    bank = bank_of(1, 2, 5)
    applied(bank, [[0, 0, 1], [0.75, 0.25, 0]], successor=[1, 1, 0])
    assert bank.parameters.tolist() == [[5], [1.25]]
    assert names(bank) == ([2, 3], [0, 0], [2, 0])


def test_a_merge_whose_content_is_that_of_the_lowest_row_is_that_model():
    bank = bank_of(1, 2)
    applied(bank, [[1, 0]], successor=[0, 0])
    assert names(bank) == ([0], [0], [0])


def test_fresh_models_come_from_outside_with_new_names():
    bank = bank_of(1)
    applied(bank, [[1, 0, 0], [0, 0.5, 0.5]], successor=[0], extra=[[4], [8]])
    assert bank.parameters.tolist() == [[1], [6]]
    assert names(bank) == ([0, 1], [0, 0], [0, 1])


def test_no_id_and_no_label_is_ever_used_twice():
    bank = bank_of(1, 2)
    seen_ids, seen_labels = [set(bank.ids.tolist())], [set(bank.labels.tolist())]
    for _ in range(4):  # no model has a successor; two new models are created
        applied(bank, [[0, 0, 1], [0, 0, 1]], successor=[-1, -1], extra=[[9]])
        seen_ids.append(set(bank.ids.tolist()))
        seen_labels.append(set(bank.labels.tolist()))
    assert len(set.union(*seen_ids)) == 10
    assert len(set.union(*seen_labels)) == 10


def test_id_and_version_name_one_content_for_ever():
    rng = np.random.default_rng(3)
    bank = bank_of(0.1, 0.2, 0.3)
    contents: dict[tuple[int, int], bytes] = {}
    for _ in range(200):
        if rng.random() < 0.5:
            fresh = rng.random((len(bank), 1), dtype=np.float32)
            bank.publish(fresh, updated=rng.random(len(bank)) < 0.5)
        else:
            count = int(rng.integers(1, 5))
            mixing = np.eye(len(bank))[rng.integers(len(bank), size=count)]
            mixed = rng.random(count) < 0.3
            mixing[mixed] = 1 / len(bank)
            applied(bank, mixing, rng.integers(-1, count, size=len(bank)))
        assert len(set(bank.ids.tolist())) == len(bank)
        assert len(set(bank.labels.tolist())) == len(bank)
        for id_, version, row in zip(bank.ids, bank.versions, bank.parameters, strict=True):
            assert contents.setdefault((int(id_), int(version)), row.tobytes()) == row.tobytes()


def test_a_unit_row_copies_even_beside_a_model_that_is_not_finite():
    bank = bank_of(1, np.nan)
    applied(bank, [[1, 0]], successor=[0, -1])
    assert bank.parameters.tolist() == [[1]]


def test_parameters_stay_float32():
    bank = bank_of(1, 2)
    applied(bank, [[0.5, 0.5]], successor=[-1, -1])
    assert bank.parameters.dtype == np.float32
    bank.publish(np.array([[3]], dtype=np.float32), updated=np.array([True]))
    assert bank.parameters.dtype == np.float32


def test_an_old_array_of_parameters_is_left_as_it_was():
    bank = bank_of(1, 2)
    before = bank.parameters
    bank.publish(np.array([[8], [9]], dtype=np.float32), updated=np.array([True, True]))
    applied(bank, [[0.5, 0.5]], successor=[0, 0])
    assert before.tolist() == [[1], [2]]


@pytest.mark.parametrize("successor", [[], ints(0)])
def test_an_assignment_for_another_number_of_models_is_an_error(successor):
    with pytest.raises(IndexError):
        applied(bank_of(1, 2), np.eye(2), successor)
