"""Patterns over paths: which client a file is of, and which patterns are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.errors import DataFileError
from traces.building.path_patterns import match_files, parse_path_pattern


@pytest.mark.parametrize(
    ("pattern", "path", "client"),
    [
        ("{client}/*.csv", "ann/1.csv", "ann"),
        ("{client}/*.csv", "ann/2024/1.csv", None),  # a star ends at a slash
        ("{client}/*.csv", "ann/1.csv.gz", None),
        ("{client}.csv", "ann b.csv", "ann b"),
        ("{client}.csv", ".csv", None),  # a client has a letter
        ("*/{client}_*.jpg", "cat/ann_7_b.jpg", "ann"),  # as short as possible, from left to right
        ("*/*_{client}.jpg", "cat/7_ann_b.jpg", "ann_b"),
        ("data/*/{client}/x(1)[+].csv", "data/a/ann/x(1)[+].csv", "ann"),
        ("{client}/{client}_*.csv", "ann_b/ann_b_1.csv", "ann_b"),
        ("{client}-{client}.csv", "a-b-a-b.csv", "a-b"),
        ("p*q*r{client}s.csv", "pxqyrzs.csv", "z"),
        ("{client}/*.csv", "ann\n/1.csv", "ann\n"),
    ],
)
def test_a_client_is_that_part_of_a_path(pattern: str, path: str, client: str | None) -> None:
    assert parse_path_pattern(pattern).client(path) == client


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("*.csv", "has no {client}, which stands for the client, as in {client}/*.csv"),
        ("**/{client}.csv", "has **; a * is a text within one folder: write one for each, as */*.csv"),
        ("/data/{client}.csv", "is no path below the root, as {client}/*.csv is: folders between single"),
        ("../{client}.csv", "is no path below the root"),
        ("{client}*.csv", "has {client}*: with no text between, there is no telling where one ends"),
        ("{client}{client}.csv", "has {client}{client}: with no text between"),
        ("{client}/{day}.csv", "has other braces than those of {client}"),
        ("{client}" * 200, "has 1600 letters; a pattern has at most 1024"),
    ],
)
def test_a_pattern_that_is_none_is_refused_by_its_rule(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        parse_path_pattern(pattern)


def test_files_that_do_not_match_are_counted_and_two_clients_or_no_match_are_refused() -> None:
    paths = ["a.csv", "ann/1.csv", "bob/1.csv", "bob/x/1.csv"]
    matched = match_files("{client}/*.csv", Path("r"), paths, "table")
    assert (matched.numbers, matched.clients) == ((1, 2), ("ann", "bob"))
    assert matched.note == ("2 tables do not match --client-from {client}/*.csv: left out; the first: a.csv")
    with pytest.raises(DataFileError) as error:
        match_files("{client}/*.tsv", Path("r"), paths, "table")
    assert str(error.value) == (
        "r: no table in it matches --client-from {client}/*.tsv; one that is there is a.csv"
    )
    with pytest.raises(DataFileError) as error:
        match_files("{client}/{client}.csv", Path("r"), [*paths, "cid/dan.csv"], "table")
    assert str(error.value) == (
        "r: ann/1.csv: --client-from {client}/{client}.csv finds two clients in this path, 'ann' and '1'; a "
        "file is one client's: put a * in place of the other"
    )


def test_stars_are_not_tried_at_every_place() -> None:
    """With backtracking, 20 stars over 250 letters would not end."""
    assert parse_path_pattern("*a" * 20 + "{client}b.csv").client("a" * 250) is None
