"""What breaks a rule of the format, each with the words that its refusal has."""

from __future__ import annotations

from datetime import date, time
from typing import Any

import numpy as np

from tests.traces.files.written import ROWS, with_cell, without
from traces.files import FEATURES

BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    (without("sample"), "column 'sample' is missing; it has client, label, step, split"),
    (without("client"), "column 'client' is missing"),
    (without("label"), "column 'label' is missing"),
    (without(weight=[1] * 6), "unknown column 'weight'; known are client, label, sample, step, time,"),
    (without("step"), "must have exactly one of the columns step, time, order"),
    (without("step"), "it has none of them"),
    (without(order=[0, 1, 2] * 2), "it has step and order"),
    ({name: [] for name in ROWS}, "has no rows"),
    (
        without(label=[0.0, 1.0, 0.5] * 2),
        "is double, a regression target; labels are classes: integers",
    ),
    (without(label=[[0], [1], [0]] * 2), "is list<"),
    (
        without(label=[[0], [1], [0]] * 2),
        "a sequence or several labels of a sample; labels are classes",
    ),
    (
        without(label=[True, False, True] * 2),
        "'label' is bool; it must hold texts or whole numbers",
    ),
    (without(client=[0.5, 1, 2] * 2), "column 'client' is double; it must hold texts or whole numbers"),
    (with_cell("label", 3, -1), "row 3: label = -1: must be from 0 to 32767"),
    (with_cell("label", 3, 2**15), "row 3: label = 32768: must be from 0 to 32767"),
    (with_cell("label", 3, None), "row 3: label is missing"),
    (with_cell("client", 2, None), "row 2: client is missing"),
    (with_cell("client", 2, "  "), "row 2: client is missing"),
    (with_cell("sample", 6, 6), "row 6: sample = 6: features.npy has rows 0 to 5"),
    (with_cell("sample", 6, -1), "row 6: sample = -1: must be from 0"),
    (with_cell("split", 4, "valid"), "row 4: split 'valid': must be train or test"),
    (with_cell("split", 4, None), "row 4: split is missing"),
    (without(split=[0, 1, 0, 0, 0, 1]), "column 'split' is int64; it must hold texts"),
    (without(count=[1, 1, 1, 1, -2, 1]), "row 5: count = -2: must be from 0"),
    (without(count=[1, 1, 1, 1, 1.5, 1]), "column 'count' is double; it must hold whole numbers"),
    (without(concept=[0, 0, 0, 0, 0, -1]), "row 6: concept = -1: must be from 0"),
    (with_cell("step", 5, None), "row 5: step is missing"),
    (
        without(step=[0.0, 0.0, 1.0] * 2),
        "'step' is double; it must hold whole numbers (see 'time')",
    ),
    (without("step", order=[0, 1, 2, 0, 1, -2]), "row 6: order = -2: must be from 0"),
    (
        without("step", time=["2015-01-31"] * 6),
        "'time' is string; a time is a date or a timestamp",
    ),
    (without("step", time=["2015-01-31"] * 6), "such as 2015-01-31T12:00:00Z"),
    (without("step", time=[1422662400] * 6), "column 'time' is int64; a time is a date or a timestamp"),
    (
        without("step", time=[time(12)] * 6),
        "'time' is time64[us]; a time is a date or a timestamp",
    ),
    (without("step", time=[date(2015, 1, 31)] * 5 + [None]), "row 6: time is missing"),
]

BAD_FEATURES: list[tuple[np.ndarray, str]] = [
    (np.zeros((6, 2), np.float64), "holds float64; features are uint8 or float32 in row-major order"),
    (np.zeros((6, 2), ">f4"), "holds >f4; features are uint8 or float32"),
    (np.asfortranarray(np.zeros((6, 2), np.float32)), "holds float32 in column-major order"),
    (np.zeros((0, 2), np.float32), "has the shape (0, 2); it must be (samples, *shape)"),
    (np.zeros((6, 0), np.uint8), "has the shape (6, 0)"),
    (np.zeros(6, np.uint8), "has the shape (6,); it must be (samples, *shape)"),
    (np.array([{}] * 6).reshape(6, 1), "holds object; features are"),
]

BAD_FACTS: list[tuple[dict[str, Any], str]] = [
    ({"version": 3}, "version: Input should be 1 or 2"),
    ({"lable": ["a"]}, "unknown key 'lable'; choices: classes, deviation, files, licence"),
    ({"mean": [0.5]}, "mean: has 1 numbers, but samples of shape (2,) have 2 channel(s)"),
    ({"deviation": [1.0] * 3}, "deviation: has 3 numbers, but samples of shape (2,) have 2 channel(s)"),
    ({"deviation": [1.0, 0.0]}, "deviation.1: Input should be greater than 0"),
    ({"deviation": [1.0, float("nan")]}, "deviation.1: "),
    ({"mean": [1e30, 0.0], "deviation": [1e-30, 1.0]}, "mean / deviation = 1e+60 of channel 0"),
    ({"scale": 1e30, "deviation": [1e-30, 1.0]}, "scale / deviation = 1e+60 of channel 0"),
    ({"deviation": [1.0, 5e-324]}, "scale / deviation = inf of channel 1: must be at most 1e+38"),
    ({"scale": 0}, "scale: Input should be greater than 0"),
    ({"shape": [3]}, "shape: states (3,), but features.npy has (2,)"),
    (
        {"tokens": {"vocabulary": 80}, "mean": [0.0] * 2},
        "mean: is for numbers, and samples of tokens are ids",
    ),
    (
        {"tokens": {"vocabulary": 80}, "scale": 1.0},
        "scale: is for numbers, and samples of tokens are ids; leave",
    ),
    ({"tokens": {"vocabulary": 80, "padding": 80}}, "tokens: padding = 80: must be below vocabulary = 80"),
    (
        {"tokens": {"vocabulary": 2**24 + 1}},
        "tokens.vocabulary: Input should be less than or equal to 16777216",
    ),
    ({"tokens": {}}, "tokens.vocabulary: Field required"),
    ({"objective": 3}, "objective: Input should be a valid"),
    ({"classes": ["a", "b", "a"]}, "classes: has 'a' twice; every class has a name of its own"),
    ({"classes": ["a", " "]}, "classes: ' ' is no name of a class"),
    ({"files": {"other.csv": {"bytes": 1, "sha256": "0" * 64}}}, "files: 'other.csv': must be arrivals"),
    ({"files": {FEATURES: {"bytes": 1, "sha256": "0"}}}, "files.features.npy.sha256: "),
]
