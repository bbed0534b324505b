"""Sha256 of the logs of small runs, one of each kind, and of three experiments of the package, one seed each.

    python -m tests.golden.logs           run all and compare; exit code 1 if any differ, which are printed
    python -m tests.golden.logs --small   run the small runs only
    python -m tests.golden.logs --write   run all and store their hashes; with --small, only of these

MNIST is looked for in `DRIFTSCALE_DATA`, or in ../shared/data. A refactoring must not change any log. Its
last bits depend on the type of machine and on torch, which are stored beside the hashes: on another machine,
first run --write at the commit to compare with.

A log is hashed without the field `onsets` of its header, the last one: the hashes are older than it, and it
follows from the trace, on which all that is hashed depends. So a change of it needs no new hashes, which only
the machine of the old ones could make; tests of the header check the field itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from experiments.build import build_world
from experiments.locating import locator
from tests.reliability.rows import ARMS, AVAILABILITY, row
from tests.reliability.stops import Stopped

STORED = Path(__file__).with_name("logs.json")
DATA = Path(os.environ.get("DRIFTSCALE_DATA", Path(__file__).parents[3] / "shared" / "data"))
CONFIGS = Path(__file__).parents[2] / "experiments" / "configs"
EXPERIMENTS = ("digits.toml", "covid-mnist.toml", "feddrift/sine-2.toml")


def machine() -> dict[str, str]:
    """Facts about this machine that the last bits of a log depend on."""
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _small_runs(out: Path) -> Iterator[tuple[str, str]]:
    """Run every row, and one with fixed batches; the name of each and the sha256 of its log."""
    (out / "availability.csv").write_text(AVAILABILITY)
    kinds = {name: row(name) for name in ARMS}
    # 40 samples make 4 batches of 12, of which the last is filled up.
    kinds["fixed-batches"] = row("oracle", training={"batches": "fixed", "batch_size": 12})
    for name, experiment in kinds.items():
        world = build_world(experiment, 0, locator(out, None))
        run = Stopped(experiment, world, out / name)
        run.play()
        yield name, log_sha256(run.log_path)


def _experiments(out: Path) -> Iterator[tuple[str, str]]:
    """Run the three experiments with seed 0; the path of each run and the sha256 of its log."""
    for config in EXPERIMENTS:
        folder = out / Path(config).stem
        arguments = ["run", str(CONFIGS / config), "--seeds", "0", "--data", str(DATA), "--out", str(folder)]
        arguments += ["--set", "round.log_client_accuracy=false"]  # the hashes are older than it in the demo
        subprocess.run([sys.executable, "-m", "experiments.cli", *arguments], check=True, capture_output=True)
        for log in sorted(folder.rglob("log.jsonl")):
            yield str(log.parent.relative_to(out)), log_sha256(log)


def log_sha256(path: Path) -> str:
    """The sha256 of a log without its header's `onsets`."""
    header, rounds = path.read_bytes().split(b"\n", 1)
    fields = json.loads(header)
    if "onsets" in fields:
        written = ',"onsets":' + json.dumps(fields["onsets"], separators=(",", ":")) + "}"
        assert header.endswith(written.encode()), f"{path}: onsets must be the last field of its header"
        header = header.removesuffix(written.encode()) + b"}"
    return hashlib.sha256(header + b"\n" + rounds).hexdigest()


def main(arguments: list[str]) -> int:
    small, write = "--small" in arguments, "--write" in arguments
    stored = json.loads(STORED.read_text())
    known = stored["logs"]
    if stored["machine"] != machine():
        print(f"the stored hashes are of {stored['machine']}, and this machine is {machine()}")
        if small and write:
            print("a file has hashes of one machine: store all of them, without --small")
            return 1
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        played = dict(_small_runs(out)) | ({} if small else dict(_experiments(out)))
    if write:
        kept = {name: sha256 for name, sha256 in known.items() if small and "/" in name}
        STORED.write_text(json.dumps({"machine": machine(), "logs": played | kept}, indent=1) + "\n")
        return 0
    differing = [name for name in played if played[name] != known.get(name)]
    print(f"{len(played) - len(differing)} of {len(played)} logs as stored", *differing, sep="\n  ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
