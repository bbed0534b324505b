"""The order of swept values, as several commands may have given it."""

from experiments.results.reading.swept_values import canonical, given_ranks


def test_values_are_in_the_order_given_also_numbers():
    assert given_ranks([[2, 0.5, 1.0]]) == {"2": 0, "0.5": 1, "1": 2}
    assert given_ranks([["b", {"kind": "a"}, [1.0]]]) == {'"b"': 0, '{"kind":"a"}': 1, "[1]": 2}


def test_the_longest_order_comes_first_and_values_of_shorter_ones_follow():
    orders = [["d", "a"], ["c", "b", "a"], ["b", "e"]]
    assert list(given_ranks(orders)) == ['"c"', '"b"', '"a"', '"e"', '"d"']
    assert given_ranks(orders) == given_ranks(orders[::-1])


def test_ascending_numbers_are_no_order_unless_another_command_gave_one():
    assert given_ranks([]) == given_ranks([[], [5, 10.5], [7]]) == {}
    assert given_ranks([[10, 5], [7]]) == {"10": 0, "5": 1, "7": 2}
    assert given_ranks([[False, True]]) == {"false": 0, "true": 1}


def test_equal_values_are_the_same_however_they_are_written():
    assert canonical({"b": [1.0], "a": 2}) == canonical({"a": 2.0, "b": [1]})
    assert canonical(True) != canonical(1)
