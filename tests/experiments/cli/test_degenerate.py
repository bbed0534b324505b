"""Every output of run directories in which something is one, or none.

The runs are made up: each factor below takes each of its values, in a covering array of strength three and
with each factor alone at its least; with `-m sweep` in all combinations.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftscale.results import Results, load
from emulator.errors import EmulatorError
from emulator.storage.recorded_tables import VISITS, write_clients
from emulator.storage.runlog import RoundRecord
from experiments.results.frames.frame_files import as_csv
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.tracking.finished import track_finished
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.synthetic_runs import TIMING, a_directory, a_record, store
from tests.experiments.tracking.fakes import FakeTracker

FACTORS: Mapping[str, tuple[Any, ...]] = {
    "arms": (1, 2),
    "seeds": (1, 2),
    "rounds": (1, 2),
    "clients": (1, 2),
    "visits": (False, True),
    "accuracies": (False, True),
    "horizon": ("before", "within", "after"),
    "clusters": (0, 1, 2),
    "events": (0, 1),
}
"""The values of each factor, the least first."""

Case = tuple[Any, ...]

MOST: Case = tuple(values[-1] for values in FACTORS.values())


def least_alone() -> Iterator[Case]:
    """A case for each factor, in which it has its least value and all others their last."""
    for place, values in enumerate(FACTORS.values()):
        yield (*MOST[:place], values[0], *MOST[place + 1 :])


def covering(strength: int) -> list[Case]:
    """Cases in which each combination of the values of any `strength` factors occurs; greedy, and no draw."""
    chosen = list(combinations(range(len(FACTORS)), strength))
    found = {
        case: {(places, tuple(case[place] for place in places)) for places in chosen}
        for case in product(*FACTORS.values())
    }
    missing = set().union(*found.values())
    cases: list[Case] = []
    while missing:
        best = max(found, key=lambda case: len(missing & found[case]))
        cases.append(best)
        missing -= found[best]
    return cases


# -- run directories ----------------------------------------------------------------------------------------


def horizon_s(of: str, rounds: int) -> float:
    """Before the first evaluation at 10 s, at or between later ones, or after all."""
    return {"before": 5.0, "within": 10.0 if rounds == 1 else 15.0, "after": 1000.0}[of]


def a_run_directory(path: Path, case: Case) -> RunDirectory:
    """Rounds of 10 s; one run has rounds of 25 s, and closes none before the others end."""
    of = dict(zip(FACTORS, case, strict=True))
    arms = ["global", "fielding"][: of["arms"]]
    events = [{"round": of["rounds"] - 1, "share": 0.8, "mixes": 4}] * of["events"]
    directory = a_directory(
        path,
        arms,
        range(of["seeds"]),
        report={
            "window": 2,
            "targets": [0.5, "reference"],
            "horizon_s": horizon_s(of["horizon"], of["rounds"]),
        },
        trace={
            "source": "digits",
            "clients": of["clients"],
            "drift": {"kind": "label_mix", "events": events},
        },
        round={"log_visits": of["visits"], "log_client_accuracy": of["accuracies"]},
    )
    for arm in arms:
        for seed in range(of["seeds"]):
            length_s = 25.0 if (arm, seed) == ("fielding", 0) else 10.0
            records = [_a_round(number, length_s, of) for number in range(of["rounds"])]
            header = {"num_clients": of["clients"], "num_parameters": 10}
            store(directory, ReportedRun(arm, seed, header, records, TIMING))
            ones = np.ones(of["clients"])
            columns = ("seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s")
            write_clients(
                directory.run_file(arm, seed, "clients.parquet"), dict.fromkeys(columns, ones), None
            )
            if of["visits"]:
                visits = [visit for record in records for visit in _visits_of(record)]
                pq.write_table(
                    pa.Table.from_pylist(visits, VISITS), directory.run_file(arm, seed, "visits.parquet")
                )
    return directory


def _a_round(number: int, length_s: float, of: Mapping[str, Any]) -> RoundRecord:
    clients = of["clients"]
    everyone = list(range(clients))
    return a_record(
        number,
        step=number,
        opened_s=length_s * number,
        dispatched_s=length_s * number + 1,
        closed_s=length_s * (number + 1),
        participants=everyone,
        completed=everyone[:1],  # the second client's visit is abandoned
        dropped=[],
        clusters=list(range(of["clusters"])),
        members=(np.arange(clients) + number) % of["clusters"] if of["clusters"] else None,
        reclustered=of["clusters"] > 1 and number > 0,
        accuracy=0.25 + 0.25 * number,
        scored_clients=clients,
        client_accuracy=np.linspace(0, 1, clients).astype(np.float32) if of["accuracies"] else None,
        client_label=np.zeros(clients, dtype=np.int64) if of["accuracies"] else None,
    )


def _visits_of(record: RoundRecord) -> list[dict[str, Any]]:
    length_s = record.closed_s - record.dispatched_s
    amounts = dict.fromkeys(("download_bytes", "upload_bytes", "payload_bytes"), 1.0)
    phases = {"requests_s": 0.0, "download_s": 1.0, "compute_s": length_s - 2, "upload_s": 1.0}
    return [
        {"round": record.round, "visit": 10 * record.round + client, "client": client, "device": None}
        | {"lane": 0, "models": [0], "dispatched_s": record.dispatched_s, "end_s": record.closed_s}
        | {"outcome": "completed" if client in record.completed else "abandoned", "crashed": False}
        | {**phases, **amounts}
        for client in record.participants
    ]


# -- outputs ------------------------------------------------------------------------------------------------


def every_frame_and_figure(results: Results) -> None:
    """Draw and show all there is; what there is not is an error of one line."""
    assert repr(results)
    assert results._repr_html_()
    frames: list[Callable[[], Any]] = [
        lambda name=name: getattr(results, name)
        for name in ("summary", "table", "rounds", "clients", "visits", "triggers")
    ]
    plain = [name for name in dir(results) if name.startswith("plot_")]
    special = {
        "plot_clients_by": [("device",), ("label",), ("cluster",)],
        "plot_timeline": [("global", 0, 0)],
    }
    figures = [
        lambda name=name, given=given: getattr(results, name)(*given)
        for name in plain
        for given in special.get(name, [()])
    ]
    lines = []
    for output in (*frames, *figures):
        try:
            output()
        except EmulatorError as error:
            lines.append(str(error))
    assert not any("\n" in line for line in lines)


def every_output(driftscale: Driftscale, path: Path, case: Case) -> None:
    """All commands and calls over a run directory of this case, and over it beside a copy."""
    directory = a_run_directory(path / "one" / "runs", case)
    reported = driftscale("report", directory.path)
    assert (reported.code, reported.err) == (0, "")
    assert directory.report_path.is_file()
    for kind in ("csv", "parquet"):
        exported = driftscale("export", directory.path, "--to", kind)
        assert (exported.code, exported.err) == (0, "")
    tracker = FakeTracker()
    assert track_finished(directory, "fake", lambda: tracker) == len(directory.reported_pairs())
    assert tracker.told[-1] == "finished"
    every_frame_and_figure(load(directory.path))

    shutil.copytree(directory.path, path / "one" / "again")
    compared = driftscale("compare", path / "one")
    assert compared.code == 0 or "nothing can be compared" in compared.error
    folder = driftscale("report", path / "one")
    assert (folder.code, folder.err) == (0, "")
    results = load(path / "one")
    every_frame_and_figure(results["synthetic"] if "synthetic" in results.experiments else results["runs"])
    assert repr(results)
    assert results._repr_html_()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id="-".join(map(str, case)))
        for case in dict.fromkeys([*least_alone(), *covering(3)])
    ],
)
def test_every_output_of_what_is_one_or_none(driftscale: Driftscale, tmp_path: Path, case: Case) -> None:
    every_output(driftscale, tmp_path, case)


@pytest.mark.sweep
def test_every_output_in_all_combinations(driftscale: Driftscale, tmp_path: Path) -> None:
    for number, case in enumerate(product(*FACTORS.values())):
        every_output(driftscale, tmp_path / str(number), case)
        shutil.rmtree(tmp_path / str(number))


def test_a_directory_without_its_last_run_is_exported_and_not_compared(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    """As a run leaves it that was killed: without DONE, and without the files of its end."""
    directory = a_run_directory(tmp_path / "one" / "runs", MOST)
    shutil.copytree(directory.path, tmp_path / "one" / "again")
    for name in ("DONE", "timing.json", "visits.parquet", "clients.parquet"):
        (directory.seed_path("fielding", 1) / name).unlink()
    exported = driftscale("export", directory.path, "--to", "csv")
    assert (exported.code, exported.err) == (0, "")
    assert ",1,fielding" not in (directory.path / "export" / "rounds.csv").read_text()
    for kind in ("csv", "parquet"):
        assert driftscale("export", tmp_path / "one", "--to", kind, "--out", tmp_path / kind).code == 0
    compared = driftscale("compare", tmp_path / "one")
    assert compared.code == 2
    assert "not finished: fielding, seed 1; finish them with driftscale run" in compared.error


def test_a_category_of_one_changes_no_byte_of_csv() -> None:
    plain = pd.DataFrame({"arm": ["global"] * 2, "models": [[3, 5], []], "closed_s": [0.5, None]})
    for names in (["global"], ["global", "fielding"]):
        arms = pd.Categorical(plain["arm"], categories=names, ordered=True)
        assert as_csv(plain.assign(arm=arms)) == as_csv(plain)
