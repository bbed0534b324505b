"""The workloads by name, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from benchmarks.figures import Figure
from benchmarks.measure import Say
from emulator.errors import InputError, UnknownNameError

Measure = Callable[[int, Say], list[Figure]]
"""A function that measures a workload at full size; takes the number of repeats and a `Say` for progress."""


@dataclass(frozen=True)
class Workload:
    """A workload: a function of a module of this package, which is imported only to be measured.

    `needs` lists the modules of the extra `dev` that it imports. A workload that `is_long` is measured only
    if it is named.
    """

    about: str
    module: str
    function: str
    needs: tuple[str, ...] = ()
    is_long: bool = False

    def load(self) -> Measure:
        measure: Measure = getattr(import_module(f"benchmarks.{self.module}"), self.function)
        return measure


WORKLOADS: Mapping[str, Workload] = {
    "w1": Workload("local training of a small dense network, 50 clients a round", "training", "measure_w1"),
    "w2": Workload(
        "local training of a small convolutional network, 50 clients a round", "training", "measure_w2"
    ),
    "solvers": Workload(
        "w1 by scaffold, ditto and apfl, with what clients remember read and committed",
        "parts.solvers",
        "measure_solvers",
    ),
    "stopping": Workload(
        "w1 by a solver that stops early, against as many steps without it",
        "parts.stopping",
        "measure_stopping",
    ),
    "w1-2-ranks": Workload("w1 by two ranks of one job", "training", "measure_w1_ranks"),
    "w2-2-ranks": Workload("w2 by two ranks of one job", "training", "measure_w2_ranks"),
    "cohort-size": Workload(
        "training time against the number of clients a round, as w1", "training", "measure_cohort_sizes"
    ),
    "evaluate": Workload(
        "200 clients evaluated, each with one of eight small dense networks", "training", "measure_evaluation"
    ),
    "e1": Workload(
        "one emulated round over 1,000,000 devices, with faked training",
        "rounds",
        "measure_rounds",
        ("simpy",),
    ),
    "e1-size": Workload(
        "such a round, and its selection alone, over 10,000 to 1,000,000 devices",
        "rounds",
        "measure_fleet_sizes",
    ),
    "oort": Workload("selection by Oort over 1,000,000 devices", "rounds", "measure_oort"),
    "e2": Workload(
        "1,000,000 completions of asynchronous visits, 10,000 in flight",
        "asynchronous.completions",
        "measure_completions",
        ("simpy",),
    ),
    "buffered": Workload(
        "server steps with 10,000 visits of 1,000,000 devices in flight, against synchronous rounds",
        "asynchronous.buffered",
        "measure_buffered",
    ),
    "k1": Workload(
        "exact global re-clustering of 5,078 clients x 100 labels, and their reassignment",
        "clustering",
        "measure_exact",
    ),
    "k2": Workload("one re-clustering of 1,000,000 clients x 10 labels", "clustering", "measure_million"),
    "recluster": Workload(
        "re-clustering of 200 clients x 10 labels; and of 5,078 x 100 by Jensen-Shannon distances",
        "clustering",
        "measure_recluster",
    ),
    "gradients": Workload(
        "gradients of 302 clients at 50,890 parameters, sketched and clustered",
        "gradients",
        "measure_gradients",
    ),
    "detectors": Workload(
        "a decision of 1,000,000 clients by each detector that watches training, against objects of river",
        "parts.detectors",
        "measure_detectors",
    ),
    "memory": Workload(
        "memory of 1,000,000 devices with availability and label histograms", "memory", "measure_memory"
    ),
    "memory-growth": Workload(
        "growth of the memory of a run of 2,000 rounds, per round",
        "memory",
        "measure_growth",
    ),
    "streaming": Workload(
        "10,000 clients whose data arrives and expires, and training on it", "streaming", "measure_streaming"
    ),
    "changes": Workload(
        "what 100,000 clients hold where data change, and building such a trace", "changes", "measure_changes"
    ),
    "read-log": Workload(
        "reading the log of a run of 3,000 rounds back, with all its checks",
        "files.read_log",
        "measure_read_log",
    ),
    "trace-folder": Workload(
        "opening a trace folder of 5,000,000 samples, and reading it",
        "files.trace_folder",
        "measure_trace_folder",
    ),
    "trace-check": Workload(
        "driftscale traces check of 5,000,000 samples, in the order of a table and in a random one",
        "files.trace_check",
        "measure_trace_check",
    ),
    "decoding": Workload(
        "large JPEGs decoded to small samples, as a build of a trace of images does",
        "building.decoding",
        "measure_decoding",
    ),
    "table": Workload(
        "building a trace of a table of 500,000 rows x 64 floats, from Parquet and CSV",
        "building.table",
        "measure_table",
    ),
    "table-5m": Workload(
        "the same of 5,000,000 rows, from Parquet; takes minutes, and is measured only if it is named",
        "building.table",
        "measure_large_table",
        is_long=True,
    ),
    "digits": Workload(
        "one arm and seed of digits-online, from configuration to report", "digits", "measure_digits"
    ),
    "round-calls": Workload(
        "calls of Python and C in a round of digits that is trained, evaluated, logged and reported",
        "digits",
        "measure_round_calls",
    ),
    "aggregators": Workload(
        "a round of digits with fedyogi, against one with fedavg", "digits", "measure_aggregators"
    ),
    "typo": Workload("CPU time of a command until it reports a misspelt key", "typo", "measure_typo"),
    "runs-2-jobs": Workload(
        "3 arms x 5 seeds of small digits with --jobs 2, the whole command", "jobs", "measure_runs"
    ),
    "runs-8-of-30s": Workload(
        "eight runs of about 30 s with --jobs 2; takes half an hour, and is measured only if it is named",
        "jobs",
        "measure_long_runs",
        is_long=True,
    ),
}


def chosen(names: Sequence[str]) -> dict[str, Workload]:
    """The named workloads in registry order; without names, all that are not long.

    Raises UnknownNameError, which lists the choices, and InputError if a required module is missing.
    """
    for name in names:
        if name not in WORKLOADS:
            raise UnknownNameError("workload", name, WORKLOADS)
    workloads = {
        name: workload
        for name, workload in WORKLOADS.items()
        if (name in names if names else not workload.is_long)
    }
    for name, workload in workloads.items():
        require(workload.needs, f"the workload {name!r}")
    return workloads


def require(modules: Sequence[str], what: str) -> None:
    """Raise InputError, which names the extra to install, unless all `modules` can be imported."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(f"{what} needs {' and '.join(missing)}, which the extra `dev` installs: make setup")
