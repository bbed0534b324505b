from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BeforeValidator, Field

from coordinator.selectors import SELECTORS, Selector
from emulator.numbers import Count, Number, Seed, Share
from emulator.plugins import ChoiceOf, Chosen, Settings, alone_is_a_list
from experiments.setting_facts import REQUIRED, UNSET, default_text, setting_facts, toml_value


class Inner(Settings):
    width: Count = Field(3, description="how wide")


class Many(Settings):
    whole: Count = 5
    seed: Seed = 0
    share: Share = 0.25
    number: Annotated[float, Number(gt=0, lt=20)] = 1e-8
    may_miss: Count | None = None
    text: str = Field(min_length=1, max_length=9)
    plain: str = "a"
    flag: bool = False
    day: date | None = None
    choice: Literal["near", "far"] = "near"
    either: Count | Literal["all"] = "all"
    whole_list: tuple[Count, ...] = Field((1, 2), min_length=1)
    pairs: tuple[tuple[Count, Count], ...] = ()
    few: tuple[Share, ...] = Field((), max_length=3)
    one_or_two: Annotated[tuple[Share, ...], Field(min_length=1, max_length=2)] = (0.5,)
    names: tuple[str, ...] = ()
    part: Annotated[Chosen[Selector], ChoiceOf(SELECTORS)] = Field("random", validate_default=True)
    parts: Annotated[
        tuple[Annotated[Chosen[Selector], ChoiceOf(SELECTORS)], ...], BeforeValidator(alone_is_a_list)
    ] = ()
    by_name: dict[str, Annotated[Chosen[Selector], ChoiceOf(SELECTORS)]] = Field(default_factory=dict)
    table: Inner = Inner()
    tables: tuple[Inner, ...] = ()
    anything: dict[str, Any] = Field(default_factory=dict)


FACTS = {
    "whole": ("whole number", "1 to 1,000,000,000", "5"),
    "seed": ("whole number", "0 to 4,294,967,295", "0"),
    "share": ("share", "0 to 1", "0.25"),
    "number": ("number", "above 0, below 20", "1e-8"),
    "may_miss": ("whole number", "1 to 1,000,000,000", UNSET),
    "text": ("text", "at most 9 letters, not empty", REQUIRED),
    "plain": ("text", "", '"a"'),
    "flag": ("true or false", "", "false"),
    "day": ("date", "", UNSET),
    "choice": ('one of "near", "far"', "", '"near"'),
    "either": ('whole number or "all"', "1 to 1,000,000,000", '"all"'),
    "whole_list": ("list of whole numbers", "1 to 1,000,000,000 each; at least 1 of them", "[1, 2]"),
    "pairs": ("list of lists of 2 whole numbers", "1 to 1,000,000,000 each", "[]"),
    "few": ("list of shares", "0 to 1 each; at most 3 of them", "[]"),
    "one_or_two": ("list of shares", "0 to 1 each; 1 or 2 of them", "[0.5]"),
    "names": ("list of texts", "", "[]"),
    "part": ("part of kind selector", "", '"random"'),
    "parts": ("list of parts of kind selector, or one alone", "", "[]"),
    "by_name": ("table of parts of kind selector by name", "", "{}"),
    "table": ("table", "", "{}"),
    "tables": ("list of tables", "", "[]"),
    "anything": ("table", "", "{}"),
}


@pytest.mark.parametrize("name", FACTS)
def test_type_bounds_and_default_follow_from_the_annotation(name: str) -> None:
    facts = setting_facts(Many)[name]
    assert (facts.type, facts.bounds, facts.default) == FACTS[name]


def test_every_field_is_tried_here() -> None:
    assert list(setting_facts(Many)) == list(FACTS)


def test_the_kind_of_part_is_known_wherever_the_part_stands() -> None:
    kinds = {name: facts.kind for name, facts in setting_facts(Many).items()}
    of_parts = {"part", "parts", "by_name"}
    assert kinds == {name: "selector" if name in of_parts else None for name in FACTS}


def test_the_keys_of_a_table_are_described_too() -> None:
    for name in ("table", "tables"):
        keys = setting_facts(Many)[name].keys
        assert keys is not None
        assert (keys["width"].about, keys["width"].default) == ("how wide", "3")


def test_a_type_of_somebody_else_goes_by_its_name() -> None:
    class Odd(Settings):
        size: complex = 1j

    assert setting_facts(Odd)["size"].type == "complex"
    assert default_text(Odd.model_fields["size"]) == "1j"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e38, "1e38"), (600.0, "600"), ({}, "{}"), (("a", 1), '["a", 1]'), (date(2024, 1, 2), "2024-01-02")],
)
def test_a_value_is_written_as_toml_has_it(value: Mapping[str, Any], text: str) -> None:
    assert toml_value(value) == text
