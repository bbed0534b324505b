"""A line that is not TOML is shown, with what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.storage.bounded import read_toml
from emulator.storage.slips import meant


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("a = 5%", "0.05"),
        ("a = { b = 12.5 %, c = 1 }", "0.125"),
        ("a = 0,05", "0.05"),
        ("a = 1,000", "1000"),
        ("a = .5", "0.5"),
        ("a = 5.", "5.0"),
        ("a = 6.7h", "24120"),
        ("a = 5 min", "300"),
        ("a = 2 days", "172800"),
        ("a = 0..2", "[0, 1, 2]"),
        ("a = True", "true"),
        ("a = no", "false"),
        ("a = None", "nothing: a key that has no value is left out"),
        ("a = digits", '"digits", in quotes'),
        ("a = { kind = mlp, hidden = [4] }", '"mlp", in quotes'),
        ("a = [x, 'y']", '"x", in quotes'),
        ("a = data/my-phones.csv", '"data/my-phones.csv", in quotes'),
        ("a == 3", "one = between key and value"),
        ("a: 3", "key = value, with = in place of :"),
        ("a = \u201cx\u201d", 'straight quotes, as in "text"'),
        (r'a = "C:\data"', r"a text that has \ in single quotes, as in 'C:\data'"),
        (r'a = "C:\Users"', r"a text that has \ in single quotes, as in 'C:\data'"),
        ("a = [{", "an inline table { ... } on one line"),
        ("a = { b = 1,", "an inline table { ... } on one line"),
        ("[t]", "[t] once for a table, or [[t]] above each entry of a list"),
        ("[[t]]", "[t] once for a table, or [[t]] above each entry of a list"),
        ("z = 3", "each key once"),
    ],
)
def test_a_slip_is_shown_with_its_place_and_with_what_to_write(
    tmp_path: Path, line: str, instead: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"z = 1\nt.y = 2\n{line}  # as I think\nb = 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"\(at line 3, column \d+\)") as refused:
        read_toml(path)
    assert str(refused.value).endswith(f"): {line}; write {instead}")


@pytest.mark.parametrize("line", ["a = 007", "a = 1 b = 2", "= 3", "a = $HOME", "a = 0..99", "a b = 3"])
def test_a_slip_that_has_no_known_remedy_is_shown_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.toml").write_text(f"{line}\nb = 3\n")
    with pytest.raises(ValueError, match=r"\(at line 1, ") as refused:
        read_toml(tmp_path / "a.toml")
    assert str(refused.value).endswith(f"): {line}")


def test_a_document_that_does_not_end_has_no_line_to_show(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = [1,\n")
    with pytest.raises(ValueError, match=r"\(at end of document\)$"):
        read_toml(tmp_path / "a.toml")


def test_a_long_line_is_shown_as_far_as_its_first_letters(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f"a = {'9,' * 400_000}\n")
    with pytest.raises(ValueError, match="Expected") as refused:
        read_toml(tmp_path / "a.toml")
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["smartphones", "", "1,2,3", "1..", "2..0", "0..99", "1e", "9" * 81])
def test_a_text_that_is_no_other_spelling_of_a_value_has_no_meaning(text: str) -> None:
    assert meant(text) is None
