"""`make reality`, which makes the venv of Flower's side: emulates, predicts, has Flower play, and compares.

Predictions are in prediction.csv of each fleet's folder in build/reality before anything is played; all
figures are in reality.json after it.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import machine, versions
from benchmarks.measure import ROOT
from benchmarks.reality.comparing import BAR, BEFORE, error, predictions, refuse
from benchmarks.reality.emulated import Emulated, emulate, seconds_per_sample, work
from emulator.errors import InputError, RunError
from experiments.cli import main
from experiments.cli.output import as_text, note, print_table, say

OUT, PYTHON = ROOT / "build" / "reality", ROOT / "build" / "reality-venv" / "bin" / "python"
FLEETS = ("alike", "computing", "links")
LONGEST_S = 900.0  # of a play, which takes three minutes
SHOWN = ("shortest_s", "longest_s", "wire_over_charged", "accuracy", "accuracy_by_flower", "load")
SCOPE = f"""\
Errors are shares of the predicted seconds: the size in the median round, the sum, the worst round. The
emulator and its mutants are given the seconds that clients reported to have computed: what they predict from
profile and log before the play is transfers and the wait for the last answer. The bar of {BAR:.0%}, of median
and sum, is theirs. "{BEFORE}" takes what profiles measure says of this machine; it has no
bar. Not shown: over-commitment, drop-outs, buffers, phones, a server's link."""


def reality() -> None:
    """Predict, play and compare; RunError if a process fails, or as `refuse` says."""
    if not PYTHON.exists():
        raise InputError(f"{PYTHON}: no such file; `make reality` makes this venv of Flower")
    began, given = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", work()
    per_sample_s = seconds_per_sample()
    runs = {name: emulate(name, OUT / name, per_sample_s) for name in FLEETS}
    fleets = {}
    for name, run in runs.items():
        note(f"{name}: Flower plays {len(run.rounds)} rounds")
        given |= run.work(per_sample_s)
        fleets[name] = compared(run, flower(OUT / name, given | {"batch_seeds": [0]}))
    note("Flower plays them five times at full speed, with other batch seeds")
    given |= {"links": [[1e9, 1e9, 0.0]] * len(run.fleet), "times_as_slow": np.ones(len(run.fleet))}
    played = flower(OUT / "full_speed", given | {"batch_seeds": range(1, 6)})
    surroundings = {"machine": machine(), "began": began, **versions(), **played["versions"]}
    report = {"surroundings": surroundings, "accuracies": played["accuracies"], "fleets": fleets}
    (OUT / "reality.json").write_text(json.dumps(report, indent=1))
    for name, fleet in fleets.items():
        print_table([{"seconds by": by, **percent(shares)} for by, shares in fleet["errors"].items()], name)
        say(", ".join(f"{key} {as_text(fleet[key])}" for key in SHOWN))
    least, most = min(played["accuracies"]), max(played["accuracies"])
    say(f"{SCOPE}\nAccuracy of those five plays at the end: {least:.4f} to {most:.4f}.")
    say(", ".join(map(" ".join, surroundings.items())))
    refuse({name: fleet["errors"] for name, fleet in fleets.items()})


def percent(shares: dict[str, float]) -> dict[str, str]:
    return {name: f"{share:{'' if name == 'median' else '+'}.2%}" for name, share in shares.items()}


def flower(folder: Path, arrays: dict[str, Any]) -> Any:
    """What Flower's server measures; RunError, with its last line, if it fails or takes too long."""
    result = folder / "played.json"
    folder.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    np.savez(folder / "work.npz", **arrays)
    command = [str(PYTHON), "-m", "benchmarks.reality.flower", "serve", str(folder)]
    quiet, log = os.environ | {"FLWR_TELEMETRY_ENABLED": "0"}, folder / "flower.log"
    with log.open("wb") as out:
        try:
            ended = subprocess.run(command, stdout=out, stderr=out, cwd=ROOT, env=quiet, timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            raise RunError(f"reality: Flower takes longer than {LONGEST_S:.0f} s; see {log}") from None
    if not result.exists():
        last = log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise RunError(f"reality: Flower ended with code {ended.returncode}: {last}; see {log}")
    return json.loads(result.read_text())


def compared(run: Emulated, played: dict[str, Any]) -> dict[str, Any]:
    """What was played, beside what is predicted; errors and bytes leave the first round out."""
    rounds, measured_s = run.rounds, np.array(played["round_s"])
    predicted = predictions(run.fleet, run.visits, np.array(played["computed_s"]))
    predicted[BEFORE] = (rounds.closed_s - rounds.dispatched_s).to_numpy()
    charged, wire = (rounds.download_bytes + rounds.upload_bytes).tolist(), played["wire_bytes"]
    return played | {
        "errors": {name: error(measured_s[1:], seconds[1:]) for name, seconds in predicted.items()},
        "predicted_s": {name: seconds.tolist() for name, seconds in predicted.items()},
        "shortest_s": measured_s[1:].min(),
        "longest_s": measured_s[1:].max(),
        "wire_over_charged": (wire[-1] - wire[0]) / (charged[-1] - charged[0]) - 1,
        "accuracy": rounds.accuracy.iloc[-1],
        "accuracy_by_flower": played["accuracies"][0],
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main(reality)
