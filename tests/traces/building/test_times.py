from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pytest

from traces.building.times import parse_pattern, refuse_pattern


@pytest.mark.parametrize(
    ("text", "pattern", "wanted"),
    [
        ("cam1_20240131_101112", "*_%Y%m%d_%H%M%S", datetime(2024, 1, 31, 10, 11, 12)),
        ("a_b_20240131_101112", "*_%Y%m%d_%H%M%S", datetime(2024, 1, 31, 10, 11, 12)),
        ("20240131", "*%Y%m%d*", datetime(2024, 1, 31)),
        ("IMG120240131", "*%Y%m%d", datetime(2024, 1, 31)),
        ("a[1].+20240131", "a[*.+%Y%m%d", datetime(2024, 1, 31)),
        ("x_2024_y_0131", "*_%Y*_%m%d", datetime(2024, 1, 31)),
        ("on 03 may 24 at 12h05 AM.25", "on*%d %b %y*%Ih%M %p.%f", datetime(2024, 5, 3, 0, 5, 0, 250_000)),
        ("100%_2024_060", "*%%_%Y_%j", datetime(2024, 2, 29)),
    ],
)
def test_a_star_in_a_pattern_stands_for_any_text(text: str, pattern: str, wanted: datetime) -> None:
    assert parse_pattern(text, pattern) == (wanted - datetime(1970, 1, 1)).total_seconds() * 1e6


@pytest.mark.parametrize(
    ("text", "pattern", "problem"),
    [
        ("x_2024013", "*_%Y%m%d", "no part of it is so written"),
        ("x_20240131", "*_%Y%m%d_*", "no part of it is so written"),
        ("x_20240230", "*_%Y%m%d", "day is out of range"),
        (
            "x_20240131_20240201",
            "*_%Y%m%d*",
            r"two parts of it are so written, '2024 01 31' and '2024 02 01'",
        ),
        ("1" * 255, "*1" * 20 + "*%Y*2", "no part of it is so written"),
    ],
)
def test_a_text_without_the_pattern_or_with_two_readings_is_refused(
    text: str, pattern: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_pattern(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("*%a", "%a does not go with *; these do: %Y %y %m %d"),
        ("*%", "% does not go with *"),
        ("*%Y%Y", "%Y occurs twice"),
        ("**", "has no directive"),
    ],
)
def test_directives_that_do_not_go_with_a_star_are_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        refuse_pattern(pattern)


@pytest.mark.parametrize("pattern", ["*%y*", "*0%y*1*", "*%y*%d", "%y*%m*0"])
def test_a_reading_is_found_exactly_if_there_is_one_only(pattern: str) -> None:
    """Against all readings, by trying every text for every star."""
    generator = np.random.default_rng(0)
    count = {0: 0, 1: 0, 2: 0}
    for _ in range(150):
        text = "".join(generator.choice(list("01a"), generator.integers(2, 9)))
        readings = set(all_readings(text, pattern))
        count[min(len(readings), 2)] += 1
        if len(readings) == 1:
            [spans] = readings
            names = re.findall("%.", pattern)
            written = " ".join(text[start : start + 2] for start in spans)
            stamp = datetime.strptime(written, " ".join(names))
            assert parse_pattern(text, pattern) == (stamp - datetime(1970, 1, 1)).total_seconds() * 1e6
        else:
            with pytest.raises(ValueError, match="two parts" if readings else "no part"):
                parse_pattern(text, pattern)
    assert all(count.values())


def all_readings(text: str, pattern: str, at: int = 0) -> Iterator[tuple[int, ...]]:
    """Where the directives of a pattern, of two digits each, can be in `text`, from place `at` on."""
    if not pattern:
        if at == len(text):
            yield ()
    elif pattern[0] == "*":
        for end in range(at, len(text) + 1):
            yield from all_readings(text, pattern[1:], end)
    elif pattern[0] == "%":
        two, most = text[at : at + 2], {"y": 99, "m": 12, "d": 31}[pattern[1]]
        if len(two) == 2 and two.isdigit() and (pattern[1] == "y" or 1 <= int(two) <= most):
            for rest in all_readings(text, pattern[2:], at + 2):
                yield (at, *rest)
    elif text[at : at + 1] == pattern[0]:
        yield from all_readings(text, pattern[1:], at + 1)
