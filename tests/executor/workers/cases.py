"""Executors that the coordinator and its workers build alike."""

from __future__ import annotations

import os

from emulator.arrays import Floats32, Ints
from executor.executor import LocalExecutor
from executor.prediction import EVALUATION_BATCH
from tests.executor.fakes import FakeReader, executor, model, rule

TORN_ROW = 25


class TornReader(FakeReader):
    """One sample cannot be read."""

    def features(self, rows: Ints) -> Floats32:
        if TORN_ROW in rows:
            raise OSError(5, "cannot be read", f"row {TORN_ROW}")
        return super().features(rows)


class FatalReader(FakeReader):
    """One sample kills whoever reads it."""

    def features(self, rows: Ints) -> Floats32:
        if TORN_ROW in rows:
            os.abort()
        return super().features(rows)


def build(case: str) -> LocalExecutor:
    """`<model>-<solver>-<reader>`, of two tasks a cohort."""
    kind, solver, reader = case.split("-")
    rules = {
        "sgd": [rule("sgd")],
        "adam": [rule("adam")],
        "prox": [rule("fedprox", mu=0.5), rule("sgd", momentum=0.9)],
    }
    readers = {"whole": FakeReader, "torn": TornReader, "fatal": FatalReader}
    samples = readers[reader](rows=6 * EVALUATION_BATCH, sample_shape=(8, 8))
    spec = model("cnn", channels=[3, 5]) if kind == "cnn" else model(kind)
    return executor(samples, spec, rules[solver], chunk=2)
