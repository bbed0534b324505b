"""Any one call on a file fails: the command ends in one line; the same command then succeeds."""

from __future__ import annotations

import errno
import json
import re
import shutil
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from experiments.cluster.keys import CERTIFICATE, KEY
from tests.experiments.small import write_small
from tests.reliability.failing_calls import COMPILER, SCRATCH, Ended, Failing
from tests.traces.building.layouts import idx
from tests.traces.building.table.tables import write

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the calls fail in a library that must be compiled")

ERRORS = {
    "read": (errno.EIO,),
    "readdir": (errno.EIO,),
    "stat": (errno.EIO, errno.EACCES),
    "close": (errno.EIO, errno.ENOSPC),
}
OTHER_ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
"""The errors of each call, and of those that change files."""

CODES = (0, 2, 3)
LOCK = ".lock"
"""The end of the names of locks; those that cannot be deleted stay, and another command takes them over."""

TABLE = "who,kind,day,a,b\nann,up,3,1,10\nbob,down,1,2,20\nann,down,1,,30\nbob,up,2,4,40\n"
COLUMNS = ("--client", "who", "--label", "kind", "--step", "day", "--missing", "mean", "--test-share", "0")


@dataclass(frozen=True)
class Row:
    """A command, in the words of which OUT is its output, ALL its folder and IN the folder of its input.

    `after` is the row whose output it begins with. One that `plays` writes timings. One that is `once`
    refuses to do again what is done.
    """

    words: str
    after: str | None = None
    plays: bool = False
    once: bool = False


ROWS: Mapping[str, Row] = {
    "run": Row("run IN/small.toml --out OUT", plays=True),
    "run --fresh": Row("run IN/small.toml --out OUT --fresh", after="run", plays=True),
    "run --sweep": Row("run IN/small.toml --out OUT --sweep round.participants=2,3", plays=True),
    "report": Row("report OUT", after="run"),
    "report of a folder": Row("report OUT", after="run --sweep"),
    "export to csv": Row("export OUT --to csv", after="run"),
    "export to parquet": Row("export OUT --to parquet", after="run"),
    "compare": Row("compare OUT", after="run --sweep"),
    "build table": Row(f"traces build table --root IN/table.csv --out OUT {' '.join(COLUMNS)}", once=True),
    "build idx": Row("traces build idx --root IN/idx --out OUT --partition iid --clients 2", once=True),
    "write_trace": Row("write_trace OUT", once=True),
    "inspect": Row("traces inspect OUT --html ALL/page.html", after="build table"),
    "new": Row("new ALL/mine.toml", once=True),
    "keys": Row("cluster keys OUT", once=True),
    "keys --fresh": Row("cluster keys OUT --fresh", after="keys"),
}

DRAWN = (
    *("run", "run", "report", "export to csv", "build table", "build idx", "write_trace"),
    *("new", "inspect", "keys", "keys", "keys --fresh"),
)

TIMED = ("summary.json", "table.json")
PAGE_BYTES = 2**20
"""More than any script of a page has but plotly.js."""


class Trials:
    """The commands of the rows, each of which begins with a fresh copy of what it needs, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._input, self._place = folder, folder / "in", folder / "place"
        self._out = self._place / "all" / "out"  # in a folder whose entries are counted too
        self._input.mkdir()
        write_small(
            self._input,
            arm=[{"name": "global"}],
            round={"rounds": 2, "log_visits": True},
            checkpoint={"every_rounds": 1},
        )
        write(self._input, TABLE)
        idx(self._input / "idx")
        self._failing = Failing(self._place, folder)
        self._whole: dict[str, tuple[Sequence[str], Mapping[str, bytes]]] = {}

    def calls(self, name: str) -> Sequence[str]:
        """The calls of a command of which none fails."""
        return self._without_faults(name)[0]

    def fails(self, name: str, nth: int, error: int) -> Ended | None:
        """Let call `nth` fail, check how the command ends, and then that it succeeds.

        Returns how it ended; None if it has no such call.
        """
        _, whole = self._without_faults(name)
        self._begin(name)
        ended = self._run(name, nth=nth, error=error)
        if len(ended.calls) < nth:
            return None
        print(f"{name}, call {nth}, {errno.errorcode[error]}: {ended.calls[nth - 1]} -> {ended.code}")
        self._check_end(ended)
        if ended.code == 0:
            left = self._results(name)
            stray = [path for path in left if path not in whole and not path.endswith(LOCK)]
            assert not stray
            assert {path: left.get(path) for path in whole} == whole
        if ended.code != 0 or not ROWS[name].once:
            again = self._run(name)
            assert again.code == 0, again.stderr
            assert self._results(name) == whole
        return ended

    def _check_end(self, ended: Ended) -> None:
        assert ended.code in CODES, ended.stderr
        assert "Traceback" not in ended.stderr
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == (ended.code != 0), ended.stderr
        if errors:
            assert errors == ended.stderr.splitlines()[-1:]
            assert str(self._place) in errors[0], "no file is named"

    def _without_faults(self, name: str) -> tuple[Sequence[str], Mapping[str, bytes]]:
        """The calls and the results of a command of which no call fails."""
        if name not in self._whole:
            self._begin(name)
            ended = self._run(name)
            assert ended.code == 0, ended.stderr
            shutil.copytree(self._place, self._folder / name)
            self._whole[name] = ended.calls, self._results(name)
        return self._whole[name]

    def _begin(self, name: str) -> None:
        after = ROWS[name].after
        if after is not None:
            self._without_faults(after)
        shutil.rmtree(self._place, ignore_errors=True)
        if after is not None:
            shutil.copytree(self._folder / after, self._place)
        self._out.parent.mkdir(parents=True, exist_ok=True)

    def _run(self, name: str, nth: int = 0, error: int = 0) -> Ended:
        places = {"OUT": self._out, "ALL": self._out.parent, "IN": self._input}
        words = [
            re.sub("^(OUT|ALL|IN)(?=/|$)", lambda place: str(places[place[0]]), word)
            for word in ROWS[name].words.split()
        ]
        return self._failing.run(*words, nth=nth, error=error)

    def _results(self, name: str) -> dict[str, bytes]:
        """The contents of all files by path, and of folders none; timings apart."""
        found = {}
        for path in self._place.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            if path.name in (CERTIFICATE, KEY):
                content = oct(path.stat().st_mode).encode()
            elif path.name == LOCK:  # the process that had it
                content = b""
            elif ROWS[name].plays:
                content = without_timings(path.name, content)
            found[str(path.relative_to(self._place))] = content
        if name.startswith("keys"):
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._out / CERTIFICATE, self._out / KEY)
        assert not list((self._place / SCRATCH).iterdir())
        return found


def without_timings(name: str, content: bytes) -> bytes:
    """The content of a file that a run writes, without what differs from one run to the next."""
    if name == "timing.json":
        return b""
    if name == "manifest.json":
        return json.dumps({**json.loads(content), "commands": []}).encode()
    if name in TIMED or name.endswith(".html"):
        parts = [part for part in content.split(b"</script>") if len(part) < PAGE_BYTES]
        page = re.sub(rb"<tr><th>(later )?commands?<.*?</tr>\s*", b"", b"".join(parts))
        return re.sub(rb"nonce[-=\"]+[0-9a-f]+|[0-9.e+-]*[0-9]", b"#", page)
    return content


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("failing"))


def drawn(name: str) -> np.random.Generator:
    return np.random.default_rng([*name.encode()])


def error_of(call: str, draw: np.random.Generator) -> int:
    """An errno with which this call may fail."""
    return int(draw.choice(ERRORS.get(call.split()[0], OTHER_ERRORS)))


@pytest.mark.parametrize(("number", "name"), [*enumerate(DRAWN)])
def test_a_call_that_fails_ends_a_command_in_one_line_and_the_same_command_then_succeeds(
    number: int, name: str, trials: Trials
) -> None:
    draw = drawn(f"{name} {number}")
    calls = trials.calls(name)
    nth = int(draw.integers(len(calls)))
    assert trials.fails(name, nth + 1, error_of(calls[nth], draw))


@pytest.mark.sweep
@pytest.mark.parametrize("name", ROWS)
def test_every_call_may_fail(name: str, trials: Trials) -> None:
    draw = drawn(name)
    ends: Counter[int] = Counter()
    calls = trials.calls(name)
    for nth, call in enumerate(calls, 1):
        ended = trials.fails(name, nth, error_of(call, draw))
        assert ended
        ends[ended.code] += 1
    print(f"{name}: {len(calls)} calls, by exit code: {dict(sorted(ends.items()))}")
    assert trials.fails(name, len(calls) + 1, errno.EIO) is None
