"""Feeds damaged and hostile files to every reader: each must end well, or in one error of ours.

    python tests/reliability/fuzz_readers.py --inputs 100000 --seed 0

An input is a valid file after a few mutations, made from the seed, the reader's name and a number alone: the
same three give the same bytes. A reader runs in a process of its own. Its address space is limited, and it is
killed when an input takes too long, so that a crash, a hang and an allocation over the bound are found as any
other exception is. What is found is saved, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import mmap
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

from tests.reliability.mutations import made
from tests.reliability.readers import READERS

MOST_S = 10.0
"""For one input, of some kilobytes."""
ADDRESS_SPACE = 3 * 2**30
"""Beyond what the process has when it begins."""
MOST_SHOWN = 100
"""Findings that are printed; all are saved."""
TRACED_EVERY = 16
"""Inputs per one whose allocations are traced, which makes it slower."""


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    accepted: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    most_bytes: int = 0

    def add(self, other: dict[str, Any]) -> None:
        self.accepted += other["accepted"]
        self.refused += other["refused"]
        self.slowest_s = max(self.slowest_s, other["slowest_s"])
        self.most_bytes = max(self.most_bytes, other["most_bytes"])


def content_of(reader: str, seed: int, number: int) -> bytes:
    """Input `number` of a reader."""
    return made(READERS[reader], f"{seed}/{reader}/{number}")


# -- the process that reads ---------------------------------------------------------------------------------


def child(reader: str, seed: int, first: int, last: int, place: Path) -> None:
    """Read inputs [first, last); the number of the present one is in `place`, what was found on stdout."""
    import pyarrow as pa

    from emulator.errors import EmulatorError

    warnings.simplefilter("error")
    found: list[dict[str, Any]] = []
    tally = Tally()
    spec = READERS[reader]
    with tempfile.TemporaryDirectory() as folder, place.open("r+b") as file:
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
                    found.append({"number": number, "problem": f"an error that says nothing: {error!r}"})
            except BaseException as error:  # whatever it is: it is what is looked for
                found.append({"number": number, "problem": f"{type(error).__name__}: {error}"[:500]})
            seconds = time.perf_counter() - start
            peak = pa.default_memory_pool().max_memory()
            if traced:
                peak = max(peak, tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
            if peak > spec.most_bytes and tally.most_bytes <= spec.most_bytes:
                found.append({"number": number, "problem": f"{peak:,} bytes, of {spec.most_bytes:,}"})
            tally.slowest_s, tally.most_bytes = max(tally.slowest_s, seconds), max(tally.most_bytes, peak)
    print(json.dumps({"found": found, **vars(tally)}))


def limit_memory() -> None:
    """The address space that is there already, and `ADDRESS_SPACE`."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        limit = pages * resource.getpagesize() + ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


# -- the process that watches -------------------------------------------------------------------------------


def fuzz(reader: str, seed: int, inputs: int, save: Path) -> tuple[Tally, list[str]]:
    """What became of `inputs` inputs of a reader, and what was found, each saved under `save`."""
    tally, problems = Tally(), []
    first = 0
    with tempfile.NamedTemporaryFile() as place:
        while first < inputs:
            place.seek(0)
            place.write(first.to_bytes(8, "little"))
            place.flush()
            done, ended = watch(reader, seed, first, inputs, Path(place.name))
            found = done["found"] if done else []
            if done:
                tally.add(done)
                first = inputs
            else:
                number = int.from_bytes(Path(place.name).read_bytes(), "little")
                found = [{"number": number, "problem": ended}]
                first = number + 1
            for one in found:
                name = f"{one['number']:06d}-seed-{seed}{READERS[reader].suffix}"
                file = save / reader / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content_of(reader, seed, one["number"]))
                problems.append(f"{file}: {one['problem']}")
    return tally, problems


def watch(reader: str, seed: int, first: int, last: int, place: Path) -> tuple[dict[str, Any] | None, str]:
    """(what the child tells, or how it ended instead)."""
    numbers = [str(number) for number in (seed, first, last)]
    command = [sys.executable, "-X", "faulthandler", __file__, "--child", reader, *numbers, str(place)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        # The first input waits for the imports.
        number, since, patience = -1, time.monotonic(), 6 * MOST_S
        while True:
            try:
                code = process.wait(timeout=0.05)
                break
            except subprocess.TimeoutExpired:
                now = int.from_bytes(place.read_bytes(), "little")
                if now != number:
                    patience = MOST_S if now > first else 6 * MOST_S
                    number, since = now, time.monotonic()
                if time.monotonic() - since > patience:
                    process.kill()
                    process.wait()
                    return None, f"more than {MOST_S:g} s"
        out.seek(0)
        err.seek(0)
        said, complaint = out.read(), err.read()
        if code == 0 and said:
            return json.loads(said.splitlines()[-1]), ""
        return None, f"the process ended with {code}: {complaint[-400:]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", choices=READERS, help="only these")
    parser.add_argument("--save", type=Path, default=Path("found"), help="where findings are saved")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        reader, *numbers, place = asked.child
        child(reader, *map(int, numbers), Path(place))
        return
    readers = asked.reader or list(READERS)
    each = -(-asked.inputs // len(readers))
    everything: list[str] = []
    total = 0
    print(f"{'reader':<24}{'inputs':>8}{'accepted':>10}{'refused':>9}{'slowest s':>11}{'most MiB':>10}")
    for reader in readers:
        tally, problems = fuzz(reader, asked.seed, each, asked.save)
        everything += problems
        total += each
        print(
            f"{reader:<24}{each:>8}{tally.accepted:>10}{tally.refused:>9}{tally.slowest_s:>11.3f}"
            f"{tally.most_bytes / 2**20:>10.1f}",
            flush=True,
        )
    print(f"{total} inputs, {len(everything)} findings")
    for problem in everything[:MOST_SHOWN]:
        print(problem)
    sys.exit(1 if everything else 0)


if __name__ == "__main__":
    main()
