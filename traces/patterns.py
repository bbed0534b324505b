"""FedDrift's drift patterns, by name: the concept of each client at each data step.

A pattern is a matrix of concepts: row t is data step t, column c is client c, and the last row belongs to the
batch that is only used for tests. In text, a row is a string with one digit per client. Source:
Jothimurugesan et al. 2023 (FedDrift), figures 2 and 3, and the authors' files of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import did_you_mean

SEEDED = "R"
"""The name that stands for that one of R0, R1, ... whose number is the run's seed."""

_Y = """
0000000000 0000000000 0000000000 0100000100 0111010100 0111010110
1111011110 1111011110 1111111111 1111111111 1111111111
"""
_F = """
0000000000 0000000000 1112220000 1112220030 2211222130 2221232130
2321133133 3323133213 3033313213 0033312223 0033312223
"""
_FROM_STEP_4 = _Y.split()[4:]

# Every client starts at concept 0, and draws a concept, perhaps the same, at steps 2, 4, 6 and 8: four rows.
_REDRAWN = (
    "0111320212 2103222120 2210113323 1030032310",
    "2123110113 2001033203 1221012200 1321231201",
    "2223031121 0221320013 0002100230 0301021332",
    "0112021120 2031233031 3300012012 3021222010",
    "3000330333 2312002002 3030232002 0303033211",
    "2302131313 1121020233 1010032330 0230032102",
    "2010011301 1200131130 2300132122 2012231232",
    "1222311322 2311102013 3002311302 2101210012",
    "1211320202 2210120303 1102031331 3310012231",
    "2332331332 2303000210 0112303201 1112333223",
)


def _redrawn(rows: str) -> list[str]:
    """All rows of a pattern that redraws concepts every two steps, from the `rows` after the first.

    The first row is all zeros. Each row is repeated for two steps, and the last once more for the last test.
    """
    steps = [row for row in ["0" * 10, *rows.split()] for _ in range(2)]
    return [*steps, steps[-1]]


_PATTERNS: dict[str, list[str]] = {
    # Two concepts: clients drift at different steps, from step 3 (Y, Z), 1 (X) or 2 (W) to step 8.
    "Y": _Y.split(),
    "Z": _Y.replace("1", "2").split(),
    "X": ["0000000000", "0100000000", "0100000000", "0100000100", *_FROM_STEP_4],
    "W": ["0000000000", "0000000000", "0100000100", "0100000100", *_FROM_STEP_4],
    # Four concepts, which come, spread and return.
    "F": _F.split(),
    **{f"{SEEDED}{seed}": _redrawn(rows) for seed, rows in enumerate(_REDRAWN)},
}

NUM_SEEDED = len(_REDRAWN)
NAMES = (*_PATTERNS, SEEDED)


def named_pattern(name: str) -> Ints:
    """(steps + 1, clients) the concepts of the named pattern.

    Raises ValueError, which lists the choices, if there is no pattern of that name.

    >>> named_pattern("Y").shape
    (11, 10)
    """
    if name not in _PATTERNS:
        choices, hint = f"{', '.join(NAMES)}, or a list of rows of digits", did_you_mean(name, NAMES)
        raise ValueError(f"no such pattern; choices: {choices}{hint}")
    return read_pattern(_PATTERNS[name])


def read_pattern(rows: Sequence[str]) -> Ints:
    """(steps + 1, clients) the concepts of a pattern given as rows of digits; ValueError if it is invalid.

    >>> read_pattern(["00", "01"]).tolist()
    [[0, 0], [0, 1]]
    """
    if len(rows) < 2:
        raise ValueError(
            f"a pattern has at least 2 rows, one for each step and one for the last test; "
            f"this one has {len(rows)}"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, str) or not row or not set(row) <= set("0123456789"):
            raise ValueError(f"row {number} of the pattern is {row!r}, not a string of digits 0 to 9")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"row {number} of the pattern has {len(row)} digits, row 0 has {len(rows[0])}; "
                f"every row has one for each client"
            )
    return np.array([[int(digit) for digit in row] for row in rows], dtype=np.int64)


def drift_cells(pattern: Ints) -> Bools:
    """(steps, clients) whether a client's newest training samples and its test samples differ in concept.

    >>> drift_cells(read_pattern(["00", "01", "01"])).tolist()
    [[False, True], [False, False]]
    """
    cells: Bools = pattern[1:] != pattern[:-1]
    return cells
