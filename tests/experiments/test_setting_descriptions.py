from __future__ import annotations

from pydantic import Field

from emulator.plugins import NoSettings, Settings
from experiments.setting_descriptions import descriptions


class Plain(Settings):
    """Settings with a docstring of their own."""

    width: int = 3
    """How wide
    it is."""

    depth: int = Field(2, description="how  deep")
    """Not this, as there is a description."""

    bare: int = 0


class Derived(Plain):
    """Settings that extend others."""

    height: float = 1.0
    """How high it is."""


def test_a_field_is_described_by_its_description_or_by_the_docstring_below_it() -> None:
    assert descriptions(Plain) == {"width": "How wide it is.", "depth": "how deep", "bare": ""}


def test_inherited_fields_are_described_where_they_are_declared() -> None:
    assert descriptions(Derived) == {**descriptions(Plain), "height": "How high it is."}
    assert descriptions(NoSettings) == {}


def test_a_class_without_a_source_has_the_descriptions_of_its_fields() -> None:
    made = type("Made", (Settings,), {"__annotations__": {"x": int}, "x": Field(1, description="made")})
    assert descriptions(made) == {"x": "made"}
