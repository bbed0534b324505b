"""What is swept, in which order, and how cells are named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import ConfigurationError
from experiments.running.sweep import (
    MOST_CELLS,
    cell_name,
    cells,
    given_order,
    merged_axes,
    num_cells,
    parse_axis,
    refuse_too_many_cells,
    short_keys,
    table_axes,
    without_effect,
)
from tests.experiments.small import small

THRESHOLD = "arm.fielding.clusterer.trigger.threshold"


def refused(option: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        parse_axis(option)
    return str(error.value).removeprefix(f"--sweep {option}: ")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5,10", (5, 10)),
        (" 5 , 10", (5, 10)),
        ("0.1,never,0.25", (0.1, "never", 0.25)),
        ('"0.1","a,b"', ("0.1", "a,b")),
        ("[0.5],[0.5, 0.65]", ([0.5], [0.5, 0.65])),
        ('{kind="fielding", threshold=0.1},static', ({"kind": "fielding", "threshold": 0.1}, "static")),
        ('"say \\"a, b\\"",plain', ('say "a, b"', "plain")),
        ("true,yes", (True, "yes")),
        ("o'b,images", ("o'b", "images")),
        ("1]\nx = [2", ("1]\nx = [2",)),
        ("1", (1,)),
    ],
)
def test_values_are_toml_or_text_between_commas(text: str, values: tuple[object, ...]) -> None:
    assert parse_axis(f"a.b={text}").values == values


def test_the_order_of_very_many_values_is_not_recorded() -> None:
    axes = [
        parse_axis(f"{key}={','.join(map(str, range(1000, last)))}")
        for key, last in (("a", 3000), ("b", 2000))
    ]
    assert given_order(axes) == {"b": list(range(1000, 2000))}


def test_an_option_without_key_or_value_is_refused() -> None:
    form = "must be KEY=VALUE,VALUE,..., as in round.participants=5,10"
    assert refused("round.participants") == form
    assert refused("=5") == form
    assert refused("round.participants=") == f"has no value; {form}"
    assert refused("round.participants=a,,b") == f"has an empty value; {form}"


def test_a_value_is_given_once_in_whatever_form() -> None:
    assert refused("a=1,1.0") == "the value 1.0 is given twice"
    assert refused("a=x,'x'") == "the value 'x' is given twice"
    assert refused("a={x=1},{x=1.0}") == "the value {'x': 1.0} is given twice"
    assert parse_axis("a=1,true,'1'").values == (1, True, "1")


def test_values_that_json_lacks_are_refused() -> None:
    rule = "a value is a text, a finite number, true or false, or a list or table of these"
    assert refused("a=1.0,inf") == f"inf cannot be swept; {rule}"
    assert refused("a=2021-01-01") == f"2021-01-01 cannot be swept; {rule}"


def test_what_cells_do_not_differ_in_cannot_be_swept() -> None:
    assert refused("name=a,b") == "name cannot be swept, since cells get names of their own"
    assert refused("seeds=[1],[2]").startswith(
        "seeds cannot be swept, since every cell is run with all seeds"
    )
    assert refused("sweep.a=1") == "sweep.a cannot be swept, since a cell is one configuration"
    assert refused("arm.global.name=1,2").endswith(
        "cannot be swept, since arms are compared within each cell"
    )
    assert parse_axis("trace.name=a").key == "trace.name"


def test_a_table_may_quote_its_keys_or_nest_them() -> None:
    table = {"round.participants": [5, 10], "round": {"rounds": [3]}, "arm": {"a": {"memory": ["held"]}}}
    axes = [(axis.key, axis.values) for axis in table_axes(table, "f.toml")]
    assert axes == [("round.participants", (5, 10)), ("round.rounds", (3,)), ("arm.a.memory", ("held",))]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([1], 'f.toml: sweep must be a table, as in "round.participants" = [5, 10]'),
        (
            {"round": {"rounds": 5}},
            "f.toml: [sweep] round.rounds = 5: must be a list of values, as in [5, 10]",
        ),
        ({"a.b": [1], "a": {"b": [2]}}, "f.toml: [sweep] a.b: is given twice"),
        ({"a": []}, "f.toml: [sweep] a: has no value; must be"),
        ({"a": [1, 1.0]}, "f.toml: [sweep] a: the value 1.0 is given twice"),
        ({"name": ["a"]}, "f.toml: [sweep] name: name cannot be swept"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_with_its_file(table: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        table_axes(table, "f.toml")


def test_an_option_replaces_the_axis_of_the_same_key() -> None:
    axes = merged_axes(table_axes({"a": [1, 2], "b": [3]}, "f.toml"), ["a=7,8", "c=9"])
    assert [(axis.key, axis.values) for axis in axes] == [("a", (7, 8)), ("b", (3,)), ("c", (9,))]
    with pytest.raises(ConfigurationError, match=r"^--sweep a=2: a is given twice; list all values once$"):
        merged_axes([], ["a=1", "a=2"])


def test_the_values_of_the_first_key_change_slowest() -> None:
    axes = [parse_axis("a=1,2"), parse_axis("b=x,y,z")]
    assert [tuple(cell.values()) for cell in cells(axes)] == [
        *((1, "x"), (1, "y"), (1, "z")),
        *((2, "x"), (2, "y"), (2, "z")),
    ]
    assert (num_cells(axes), num_cells([])) == (6, 1)


def test_too_many_cells_are_counted_and_not_made() -> None:
    many = [parse_axis(f"k{key}=" + ",".join(map(str, range(1000)))) for key in range(4)]
    refuse_too_many_cells([[many[0], parse_axis("a=" + ",".join(map(str, range(MOST_CELLS // 1000))))]])
    with pytest.raises(ConfigurationError) as error:
        refuse_too_many_cells([many, [parse_axis("a=1,2")]])
    assert str(error.value) == (
        "1,000,000,000,002 cells (1000 x 1000 x 1000 x 1000 + 2), and a sweep has at most 10,000; sweep "
        "fewer values, or give --yes to run them all"
    )


# -- names ---------------------------------------------------------------------------------------------------


def test_a_cell_is_named_after_the_ends_of_its_keys_and_its_values() -> None:
    values = {THRESHOLD: 0.1, "round.participants": 5}
    assert cell_name("digits", values) == "digits,threshold=0.1,participants=5"
    assert cell_name("digits", dict(reversed(values.items()))) == "digits,threshold=0.1,participants=5"


def test_ends_of_keys_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    keys = [THRESHOLD, "arm.always.clusterer.trigger.threshold", "a.b", "b"]
    assert short_keys(keys) == {
        THRESHOLD: "fielding.clusterer.trigger.threshold",
        "arm.always.clusterer.trigger.threshold": "always.clusterer.trigger.threshold",
        "a.b": "a.b",
        "b": "b",
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, "5"),
        (-0.5, "-0.5"),
        (1e-05, "1e-05"),
        (True, "true"),
        ("never", "never"),
        ("0.5", "0.5-"),  # a text, which the number 0.5 must not be taken for
        ("a b/c", "a-b-c-"),
        ("", "-"),
        ("x" * 41, "x" * 40 + "-"),
        ({"kind": "fielding", "threshold": 0.1}, "kind-fielding-threshold-0.1-"),
        ([1, 2], "1-2-"),
    ],
)
def test_a_value_is_shown_as_it_is_or_with_a_digest(value: object, shown: str) -> None:
    name = cell_name("n", {"k": value}).removeprefix("n,k=")
    assert name == shown or (shown.endswith("-") and re.fullmatch(rf"{re.escape(shown)}[0-9a-f]{{8}}", name))


def test_values_with_the_same_letters_have_different_names() -> None:
    values = ["a b", "a/b", ["a", "b"], {"a": "b"}, "a-b", 1, "1", True, "true"]
    assert len({cell_name("n", {"k": value}) for value in values}) == len(values)
    assert cell_name("n", {"k": 1.0}) == cell_name("n", {"k": 1})


def test_a_long_name_ends_in_a_digest() -> None:
    names = {cell_name("b" * 250, {"key": value}) for value in range(100)}
    assert {len(name) for name in names} == {255}
    assert len(names) == 100


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda key: "." not in key),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
        max_size=4,
    )
)
def test_every_cell_has_a_name_that_an_experiment_may_have(values: dict[str, Any]) -> None:
    name = cell_name("digits", values)
    assert small(name=name).name == name == Path(name).name


# -- keys that no run depends on -----------------------------------------------------------------------------


def test_a_key_is_without_effect_if_no_two_cells_differ_by_it_alone() -> None:
    first, second = parse_axis("a=1,2"), parse_axis("b=1,2")
    by_first = {(a, b): [f"run {a}"] for a in "12" for b in "12"}
    assert without_effect([first, second], by_first) is second
    assert without_effect([second, first], {(b, a): runs for (a, b), runs in by_first.items()}) is second
    in_one_place = {**by_first, ("2", "2"): ["another"]}
    assert without_effect([first, second], in_one_place) is None
    assert without_effect([parse_axis("c=1"), first], {("1", a): [a] for a in "12"}) is None


# -- any text ------------------------------------------------------------------------------------------------


@given(st.text(alphabet="ab.=,[]{}'\"\\ #\n01-", max_size=30))
def test_any_option_is_an_axis_or_refused_in_one_error(option: str) -> None:
    try:
        axis = parse_axis(option)
    except ConfigurationError as error:
        shown = str(error)
    else:
        shown = axis.where + ": "
        names = {cell_name("n", {axis.key: value}) for value in axis.values}
        assert len(names) == len(axis.values) > 0
    assert shown.startswith(f"--sweep {option}: ")


@given(
    st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique_by=float)
)
def test_numbers_are_read_as_they_are_written(numbers: list[float]) -> None:
    within = [number for number in numbers if not isinstance(number, int) or abs(number) < 2**63]
    if within:
        assert list(parse_axis("a=" + ",".join(map(str, within))).values) == within
