from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from emulator.storage.bounded import (
    MOST_KEY_PARTS,
    MOST_TOML_BYTES,
    has_controls,
    json_document,
    read_bytes,
    read_json,
    read_toml,
    toml_document,
)


def test_a_mark_before_the_first_line_of_a_toml_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes("# of Notepad\r\na = 1\r\n".encode("utf-8-sig"))
    assert read_toml(tmp_path / "a.toml") == {"a": 1}


def test_a_file_is_read_up_to_its_bound_and_not_beyond(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(bytes(100))
    assert read_bytes(file, 100) == bytes(100)
    with pytest.raises(ValueError, match="more than the 99 bytes"):
        read_bytes(file, 99)


@pytest.mark.slow
def test_a_sparse_file_of_terabytes_is_refused_at_once(tmp_path: Path) -> None:
    for name, read in (("x.toml", read_toml), ("x.json", read_json)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**40)
        with pytest.raises(ValueError, match="more than the"):
            read(tmp_path / name)


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe", "device", "too long"])
def test_a_path_that_is_not_a_regular_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = {"device": Path("/dev/zero"), "too long": tmp_path / ("a" * 5000)}.get(kind, tmp_path / "x")
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ValueError, match="not a regular file"):
        read_bytes(path, 10)


@pytest.mark.slow
@pytest.mark.parametrize("deep", [100, 10_000, 200_000])
def test_a_document_nested_too_deeply_is_refused(deep: int) -> None:
    for text in ("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "[" * deep):
        with pytest.raises(ValueError, match=r"nested deeper|Expecting"):
            json_document(text)
        with pytest.raises(ValueError, match="nested deeper"):
            toml_document(f"a = {'[' * deep}{']' * deep}")


def test_a_document_nested_as_deeply_as_ours_is_read() -> None:
    assert json_document("[[[[[[[[]]]]]]]]") == toml_document("a = [[[[[[[[]]]]]]]]")["a"]


@pytest.mark.parametrize(
    "key",
    ["a" + ".a" * MOST_KEY_PARTS, '"="' + '."="' * MOST_KEY_PARTS, "[a" + ".'b]'" * MOST_KEY_PARTS + "]"],
)
def test_a_key_of_many_parts_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="more than 16 parts"):
        toml_document(key if key[0] == "[" else f"{key} = 1")


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{"b." * 100}"',
        f"a = '{'b.' * 100}'",
        f'a = """\n{"b." * 100}\n"quoted" \\""""\n',
        f"a = '''\n{'b.' * 100}\n'quoted''''\n",
        f"# {'b.' * 100}\na = 1",
        f"a = [{'0.5, ' * 100}]",
        "a.b.c.d.e = 1",
        'a = "..." # a "comment\nb = 1',
    ],
)
def test_dots_in_strings_comments_and_numbers_do_not_count_as_parts_of_a_key(text: str) -> None:
    assert "a" in toml_document(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a." * (MOST_TOML_BYTES // 2) + "a=1", "'''" * (MOST_TOML_BYTES // 3), '"\\' * (MOST_TOML_BYTES // 2)],
    ids=["key", "quotes", "escapes"],
)
def test_a_document_as_long_as_one_may_be_is_refused_in_a_moment(text: str) -> None:
    start = time.process_time()  # not wall time: the machine may be busy
    with pytest.raises(ValueError, match=r"."):
        toml_document(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63) - 1), "9" * 5000])
def test_whole_numbers_of_more_than_64_bits_are_refused(number: str) -> None:
    for read, text in ((json_document, number), (toml_document, f"a = {number}")):
        with pytest.raises(ValueError, match=r"more than 64 bits|digits"):
            read(text)


def test_the_widest_whole_numbers_are_read() -> None:
    assert json_document(f"[{2**63 - 1}, {-(2**63)}]") == [2**63 - 1, -(2**63)]
    with pytest.raises(ValueError, match="64 bits"):
        toml_document(f"a = 0x{'f' * 1000}")


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_nan_and_infinity_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        json_document(text)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        json_document('["\\ud800"]')


def test_control_characters_are_told_from_text() -> None:
    assert has_controls("a\x1b[2J")
    assert has_controls("\x9b1m")
    assert not has_controls("two lines\n\tand é 端末 <b>")
