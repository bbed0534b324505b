"""Runs, arms and traces of figures that are drawn in tests."""

import numpy as np

from experiments.results.drawing.arms import Arm
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import TIMING, a_record


def a_summary(runs, **settings):
    return summarise(runs, **{"name": "x", "window": 1, "reference_arm": runs[0].arm, **settings})


def drawn_arms(summary):
    return [Arm(arm.arm, arm.runs, arm.curves, position) for position, arm in enumerate(summary.rows)]


def a_clustered_run(memberships, **changes):
    """A run with a round for each entry of `memberships`; None leaves memberships unchanged."""
    records = [
        a_record(number, members=None if members is None else np.array(members), clusters=[0, 1], **changes)
        for number, members in enumerate(memberships)
    ]
    return ReportedRun("fielding", 0, {}, records, TIMING)


def an_arm(name, records, position=0, seeds=1):
    return Arm(name, [ReportedRun(name, seed, {}, records, TIMING) for seed in range(seeds)], [], position)


def traces(figure, kind):
    return [trace for trace in figure.data if trace.type == kind]


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]
