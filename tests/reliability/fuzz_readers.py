"""Fuzzer: feeds damaged and hostile files to every reader, which must accept them or raise an EmulatorError.

    python tests/reliability/fuzz_readers.py --inputs 100000 --seed 0
    python tests/reliability/fuzz_readers.py --builders --damaged 20 --seed 0

An input is a valid file after a few mutations. The seed, the reader's name and the input's number determine
its bytes. Each reader runs in a process of its own with a limited address space, which is killed when an
input takes too long: so crashes, hangs and excessive allocations are detected as well as exceptions. Inputs
that cause a finding are saved, and the exit code is then 1.

With `--builders`, every data set of `hostile_data_sets.py` is built instead, by the command in a process of
its own with the same limit, and then so many damaged ones: each must end well, or in one line, exit code 2.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.processes.forked import ROOT, run
from tests.reliability.hostile_data_sets import HOSTILE, damage
from tests.reliability.mutations import make_input
from tests.reliability.readers import READERS

MOST_S = 10.0
"""Wall seconds for one input, of some kilobytes."""
ADDRESS_SPACE = 3 * 2**30
"""Bytes that the process may map in addition to what it has at its start."""
PROGRESS = re.compile(r"[0-9,]+ of [0-9,]+|left out: .*")
"""What a build prints besides an error."""
MOST_SHOWN = 100
"""Findings to print; all of them are saved."""
TRACED_EVERY = 16
"""Inputs per input whose allocations are traced, which is slow."""


@dataclass
class Tally:
    """Counts and maxima over the inputs of one reader."""

    accepted: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    most_bytes: int = 0

    def add(self, counts: dict[str, Any]) -> None:
        self.accepted += counts["accepted"]
        self.refused += counts["refused"]
        self.slowest_s = max(self.slowest_s, counts["slowest_s"])
        self.most_bytes = max(self.most_bytes, counts["most_bytes"])


def content_of(reader: str, seed: int, number: int) -> bytes:
    """The bytes of input `number` of a reader."""
    return make_input(READERS[reader], f"{seed}/{reader}/{number}")


# -- the process that reads ---------------------------------------------------------------------------------


def child(reader: str, seed: int, first: int, last: int, progress_file: Path) -> None:
    """Read inputs [first, last), and print the tally and the findings as one line of JSON.

    `progress_file` holds the number of the current input, 8 bytes little-endian, in case the process dies.
    """
    import pyarrow as pa

    from emulator.errors import EmulatorError

    warnings.simplefilter("error")
    findings: list[dict[str, Any]] = []
    tally = Tally()
    spec = READERS[reader]
    with tempfile.TemporaryDirectory() as folder, progress_file.open("r+b") as file:
        present = mmap.mmap(file.fileno(), 8)
        surroundings = spec.prepare(Path(folder))
        limit_memory()
        for number in range(first, last):
            content = content_of(reader, seed, number)
            present[:] = number.to_bytes(8, "little")
            if traced := number % TRACED_EVERY == 0:
                tracemalloc.start()
            start = time.perf_counter()
            try:
                spec.read(surroundings, content, number)
                tally.accepted += 1
            except EmulatorError as error:
                tally.refused += 1
                if not str(error) or "Traceback" in str(error):
                    findings.append(
                        {"number": number, "problem": f"an error without a usable message: {error!r}"}
                    )
            except BaseException as error:  # any other exception is a finding
                findings.append({"number": number, "problem": f"{type(error).__name__}: {error}"[:500]})
            seconds = time.perf_counter() - start
            peak = pa.default_memory_pool().max_memory()
            if traced:
                peak = max(peak, tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
            if peak > spec.most_bytes and tally.most_bytes <= spec.most_bytes:
                findings.append({"number": number, "problem": f"{peak:,} bytes, of {spec.most_bytes:,}"})
            tally.slowest_s, tally.most_bytes = max(tally.slowest_s, seconds), max(tally.most_bytes, peak)
    print(json.dumps({"findings": findings, **vars(tally)}))


def limit_memory() -> None:
    """Limit the address space to `ADDRESS_SPACE` more than is mapped now. Linux only."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        limit = pages * resource.getpagesize() + ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


# -- the process that watches -------------------------------------------------------------------------------


def fuzz(reader: str, seed: int, inputs: int, save: Path) -> tuple[Tally, list[str]]:
    """Read `inputs` inputs; returns their tally and the findings, whose inputs are saved under `save`."""
    tally, problems = Tally(), []
    first = 0
    with tempfile.NamedTemporaryFile() as progress:
        while first < inputs:
            progress.seek(0)
            progress.write(first.to_bytes(8, "little"))
            progress.flush()
            counts, ended = watch(reader, seed, first, inputs, Path(progress.name))
            findings = counts["findings"] if counts else []
            if counts:
                tally.add(counts)
                first = inputs
            else:
                number = int.from_bytes(Path(progress.name).read_bytes(), "little")
                findings = [{"number": number, "problem": ended}]
                first = number + 1
            for finding in findings:
                name = f"{finding['number']:06d}-seed-{seed}{READERS[reader].suffix}"
                file = save / reader / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content_of(reader, seed, finding["number"]))
                problems.append(f"{file}: {finding['problem']}")
    return tally, problems


def watch(
    reader: str, seed: int, first: int, last: int, progress_file: Path
) -> tuple[dict[str, Any] | None, str]:
    """Run a child process; returns its JSON output, or None and how the child ended."""
    numbers = [str(number) for number in (seed, first, last)]
    interpreter = [sys.executable, "-X", "faulthandler"]
    command = [*interpreter, __file__, "--child", reader, *numbers, str(progress_file)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        # The first input has more time, for the imports.
        number, since, patience = -1, time.monotonic(), 6 * MOST_S
        while True:
            try:
                code = process.wait(timeout=0.05)
                break
            except subprocess.TimeoutExpired:
                now = int.from_bytes(progress_file.read_bytes(), "little")
                if now != number:
                    patience = MOST_S if now > first else 6 * MOST_S
                    number, since = now, time.monotonic()
                if time.monotonic() - since > patience:
                    process.kill()
                    process.wait()
                    return None, f"more than {MOST_S:g} s"
        out.seek(0)
        err.seek(0)
        output, errors = out.read(), err.read()
        if code == 0 and output:
            return json.loads(output.splitlines()[-1]), ""
        return None, f"the process ended with {code}: {errors[-400:]}"


# -- builders -----------------------------------------------------------------------------------------------

BUILD = """
import sys
import experiments.cli, traces.building.images, traces.building.table.build
from tests.reliability.fuzz_readers import limit_memory
limit_memory()
sys.argv = ["driftscale", "traces", "build", *sys.argv[1:]]
experiments.cli.main()
"""
MOST_BUILD_S = 120.0


def built(name: str, folder: Path, draw: random.Random | None = None) -> str:
    """Build a hostile data set, with `draw` a damaged one, below `folder`; the finding, or ""."""
    arguments = HOSTILE[name](folder)
    if draw is not None:
        damage(folder, draw)
    command = [sys.executable, "-c", BUILD, *arguments, "--out", str(folder / "out"), "--workers", "2"]
    try:
        ended = run(command, cwd=ROOT, capture_output=True, text=True, timeout=MOST_BUILD_S)
    except subprocess.TimeoutExpired:
        return f"more than {MOST_BUILD_S:g} s"
    lines = [line for line in ended.stderr.splitlines() if not PROGRESS.fullmatch(line)]
    if ended.returncode == 0 or (
        ended.returncode == 2 and len(lines) == 1 and lines[0].startswith("error: ")
    ):
        return ""
    return f"ended with {ended.returncode}: {ended.stderr[-1000:]}"


def fuzz_builders(seed: int, num_damaged: int) -> list[str]:
    """Build all hostile data sets, and damaged ones drawn from `seed`; returns the findings."""
    draws: list[random.Random | None] = [random.Random(f"{seed}/{number}") for number in range(num_damaged)]
    inputs: list[tuple[str, random.Random | None]] = [(name, None) for name in HOSTILE]
    inputs += [(draw.choice(list(HOSTILE)), draw) for draw in draws if draw is not None]
    problems = []
    for number, (name, draw) in enumerate(inputs):
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            problem = built(name, Path(folder), draw)
            shown = f"{number}: {name}{', damaged' if draw else ''}"
            print(f"{shown}: {problem or 'ok'}, {time.monotonic() - start:.1f} s", flush=True)
            problems += [f"{shown}: {problem}"] * bool(problem)
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", choices=READERS, help="only these")
    parser.add_argument("--save", type=Path, default=Path("found"), help="where findings are saved")
    parser.add_argument("--builders", action="store_true", help="build hostile data sets")
    parser.add_argument("--damaged", type=int, default=0, help="of these, so many damaged ones as well")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.builders:
        sys.exit(1 if fuzz_builders(arguments.seed, arguments.damaged) else 0)
    if arguments.child:
        reader, *numbers, progress_file = arguments.child
        child(reader, *map(int, numbers), Path(progress_file))
        return
    readers = arguments.reader or list(READERS)
    inputs = -(-arguments.inputs // len(readers))
    all_problems: list[str] = []
    total = 0
    print(f"{'reader':<24}{'inputs':>8}{'accepted':>10}{'refused':>9}{'slowest s':>11}{'most MiB':>10}")
    for reader in readers:
        tally, problems = fuzz(reader, arguments.seed, inputs, arguments.save)
        all_problems += problems
        total += inputs
        print(
            f"{reader:<24}{inputs:>8}{tally.accepted:>10}{tally.refused:>9}{tally.slowest_s:>11.3f}"
            f"{tally.most_bytes / 2**20:>10.1f}",
            flush=True,
        )
    print(f"{total} inputs, {len(all_problems)} findings")
    for problem in all_problems[:MOST_SHOWN]:
        print(problem)
    sys.exit(1 if all_problems else 0)


if __name__ == "__main__":
    main()
