import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from emulator.errors import RunError
from emulator.messages import (
    TASK_METRICS,
    AnyTrigger,
    NamedNumbers,
    PairwiseTrigger,
    SampleRanges,
    TrainTasks,
    Trigger,
)
from emulator.storage.state_tree import ROOT, as_tree, from_bytes, from_tree, to_bytes

NUMBERS = st.sampled_from(["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
SHAPES = arrays.array_shapes(min_dims=0, min_side=0, max_side=4)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | NUMBERS.flatmap(lambda kind: arrays.arrays(kind, SHAPES))
    | NUMBERS.flatmap(lambda kind: arrays.arrays(kind, ())).map(lambda array: array[()])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def bits(tree):
    """The content of a tree in a form that compares to the bit."""
    if isinstance(tree, np.ndarray | np.generic):
        return type(tree), tree.dtype.str, tree.shape, tree.tobytes()
    if isinstance(tree, float):
        return "nan" if math.isnan(tree) else (float, tree, math.copysign(1, tree))
    if isinstance(tree, list | tuple):
        return type(tree), [bits(item) for item in tree]
    if isinstance(tree, dict):
        return [(type(key), key, bits(item)) for key, item in tree.items()]
    return type(tree), tree


@pytest.mark.slow
@given(TREES)
def test_what_is_read_is_what_was_written_to_the_bit(tree):
    assert bits(from_bytes(to_bytes(tree))) == bits(tree)


def test_the_same_tree_gives_the_same_bytes():
    def tree():
        return {"a": [np.arange(4), (1.5, None)], 3: np.float32(0.1)}

    assert to_bytes(tree()) == to_bytes(tree())


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_arrays_lie_in_memory_as_they_did(axes):
    # Sums run in memory order: another order could change the last bits.
    array = np.random.default_rng(0).normal(size=(3, 4, 5)).transpose(axes)
    read = from_bytes(to_bytes(array))
    assert read.strides == array.strides
    assert read.sum(axis=0).tobytes() == array.sum(axis=0).tobytes()


def test_arrays_that_were_read_are_their_own_and_writeable():
    array = np.zeros(3)
    read = from_bytes(to_bytes({"a": array, "b": array[::2], "c": np.broadcast_to(array, (2, 3))}))
    read["a"][0] = read["b"][0] = read["c"][0, 0] = 1.0
    assert array.tolist() == [0, 0, 0]
    assert read["c"].tolist() == [[1, 0, 0], [0, 0, 0]]


def test_the_file_is_one_of_safetensors_with_the_arrays_by_their_path():
    from safetensors.numpy import load

    tensors = load(to_bytes({"bank": {"ids": np.array([4, 2])}}))
    assert sorted(tensors) == ["/bank/ids", ROOT]
    assert tensors[ROOT].tobytes() == b'{"dict":[["bank",{"dict":[["ids",{"array":"/bank/ids"}]]}]]}'


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"part": {"model": object()}}, "state/part/model: a object cannot be stored"),
        ([1, {2.5: 1}], "state/1: a dict cannot be stored"),
        ((np.array(["a"]),), "state/0: an array of <U1 cannot be stored"),
        ({"z": 1j}, "state/z: a complex cannot be stored"),
        ([np.arange(3, dtype=">i4")], "state/0: an array of >i4 cannot be stored"),
        ({"a": np.array([1.5], dtype=">f8")}, "state/a: an array of >f8 cannot be stored"),
    ],
)
def test_a_value_that_is_not_a_tree_is_named_by_its_path(tree, problem):
    with pytest.raises(RunError) as raised:
        to_bytes(tree)
    assert str(raised.value).startswith(problem)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="no float of more than 64 bits here")
def test_a_float_of_more_bits_is_refused():
    with pytest.raises(RunError, match=r"state/0: an array of .* cannot be stored"):
        to_bytes([np.longdouble(1)])


def written_by_hand(text, **tensors):
    from safetensors.numpy import save

    return save({**tensors, ROOT: np.frombuffer(text.encode(), dtype=np.uint8)})


GOOD = to_bytes({"a": np.arange(5)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a state",
        GOOD[:-1],
        GOOD + b"x",
        GOOD[:8] + b"[" + GOOD[9:],
        (2**62).to_bytes(8, "little") + GOOD[8:],
        written_by_hand("{"),
        written_by_hand('{"array":"a"}'),
        written_by_hand("1", a=np.zeros(2)),
        written_by_hand('{"array":"a","axes":[0,0]}', a=np.zeros((2, 2))),
        written_by_hand('{"array":"a","axes":[9]}', a=np.zeros(2)),
        written_by_hand('[{"array":"a"},{"array":"a"}]', a=np.zeros(2)),
        written_by_hand('{"object":"os.system"}'),
        written_by_hand('{"float":"0.1"}'),
        written_by_hand('{"dict":[[1]]}'),
        written_by_hand('{"dict":[[[],1]]}'),
        written_by_hand("[" * 100_000),
    ],
)
def test_bytes_that_are_not_a_state_are_refused(content):
    with pytest.raises(ValueError, match="not a serialised state"):
        from_bytes(content)


@dataclass(frozen=True)
class Inner:
    values: np.ndarray


@dataclass(frozen=True)
class Outer:
    inner: Inner
    maybe: Inner | None
    rest: dict


def test_dataclasses_become_trees_and_trees_become_dataclasses():
    outer = Outer(Inner(np.arange(2)), None, {3: Inner(np.arange(3))})
    tree = as_tree(outer)
    assert bits(tree) == bits(
        {"inner": {"values": np.arange(2)}, "maybe": None, "rest": {3: {"values": np.arange(3)}}}
    )
    again = from_tree(Outer, from_bytes(to_bytes({**tree, "maybe": tree["inner"]})))
    assert again.maybe.values.tolist() == again.inner.values.tolist() == [0, 1]


@dataclass(frozen=True)
class Decided:
    trigger: AnyTrigger | None


@pytest.mark.parametrize(
    "trigger",
    [
        Trigger(0.5, None, 0.2, 1, True),
        PairwiseTrigger(None, 0.2, 2, False),
        NamedNumbers({"spread": 0.5, "sizes": [3, 4.5]}, 2, False),
        None,
    ],
)
def test_a_field_of_several_dataclasses_is_read_as_the_one_that_was_stored(trigger):
    stored = to_bytes(as_tree(Decided(trigger)))
    assert from_tree(Decided, from_bytes(stored)) == Decided(trigger)


def test_tasks_travel_as_trees():
    ones = np.ones(1, dtype=np.int64)
    tasks = TrainTasks(ones, ones, ones, SampleRanges.one_each(ones, ones), {"rate": np.ones(1)}, ones, ones)
    read = from_tree(TrainTasks, from_bytes(to_bytes(as_tree(tasks))))
    assert bits(as_tree(read)) == bits(as_tree(tasks))
    assert isinstance(read.samples, SampleRanges)
    assert read.measure == frozenset()


def test_a_set_in_a_dataclass_is_stored_in_ascending_order_and_read_as_a_set():
    ones = np.ones(1, dtype=np.int64)
    tasks = TrainTasks(
        *(ones, ones, ones, SampleRanges.one_each(ones, ones), {}, ones, ones),
        measure=frozenset(reversed(TASK_METRICS)),
    )
    tree = as_tree(tasks)
    assert tree["measure"] == TASK_METRICS
    assert from_tree(TrainTasks, from_bytes(to_bytes(tree))).measure == set(TASK_METRICS)


@pytest.mark.parametrize("tree", [None, {}, {"values": 1, "more": 2}, [1]])
def test_a_tree_of_other_fields_is_refused(tree):
    with pytest.raises(ValueError, match="not the fields of Inner: must be values"):
        from_tree(Inner, tree)
