"""Commands in processes of their own, and a clusterer in their runs that a test controls by files.

A test creates a file named after an act, such as `wait` or `kill-1`, in a folder. The first run that calls
the clusterer afterwards performs it. So the moment depends on the progress of a run and not on a clock, in
whichever process the run is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.processes import forked

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
POLL_S = 0.02

PART = '''
import os, signal, time
from pathlib import Path

from coordinator.clusterers.single import Single
from emulator.plugins import Settings


class ActingSettings(Settings):
    acts: str
    round: int = 3


class Acting(Single):
    """One model for all clients; from `round` on it performs the acts named by files in ACTS/`acts`."""

    Settings = ActingSettings

    def on_data(self, view):
        if view.round >= self.settings.round:
            self._act(Path(os.environ["ACTS"], self.settings.acts), view.round)
        return super().on_data(view)

    def _act(self, acts, round):
        if (acts / "wait").exists():
            (acts / f"waiting-{os.getpid()}").touch()
            while (acts / "wait").exists():
                time.sleep(0.01)
        if (acts / "divide").exists():
            1 / 0
        if (acts / "memory").exists():
            raise MemoryError
        for act in ("kill", "stop"):
            for file in sorted(acts.glob(f"{act}-*")):
                try:
                    file.unlink()
                except FileNotFoundError:  # another run has taken it
                    continue
                os.kill(os.getpid(), signal.SIGKILL if act == "kill" else signal.SIGSTOP)
'''


def write_part(folder: Path) -> Path:
    """Write the clusterer `acting` as a package into `folder`, which goes on PYTHONPATH; returns `folder`."""
    metadata = folder / "acting-1.dist-info"
    metadata.mkdir(parents=True)
    (folder / "acting.py").write_text(PART)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acting\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[driftscale.clusterer]\nacting = acting:Acting\n")
    return folder


class Command:
    """`driftscale ARGUMENTS` in a session of its own, as a terminal starts it.

    `temporary` is its folder for temporary files. `path` comes before the source tree `root` on its
    PYTHONPATH. `launcher` is a command line that starts it, `environment` holds further variables. It is
    forked, unless it `is_real`, or a launcher or another source tree takes a real start.
    """

    def __init__(
        self,
        *arguments: str | Path,
        temporary: Path,
        path: Sequence[Path] = (),
        root: Path = ROOT,
        launcher: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        is_real: bool = False,
    ) -> None:
        temporary.mkdir(exist_ok=True)
        self._stderr_file = temporary.with_name(f"{temporary.name}-stderr-{time.monotonic_ns()}")
        with self._stderr_file.open("wb") as stderr:
            start = subprocess.Popen if is_real or launcher or root != ROOT else forked.Forked
            self.process = start(
                [*launcher, sys.executable, "-m", "experiments.cli", *map(str, arguments)],
                cwd=root,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(map(str, [*path, root])),
                    "TMPDIR": str(temporary),
                    **(environment or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def stderr(self) -> str:
        """Standard error of all its processes so far."""
        return self._stderr_file.read_text()

    @property
    def lines(self) -> list[str]:
        return self.stderr.splitlines()

    def processes(self) -> list[int]:
        """The running processes of its session, except itself."""
        return [pid for pid in psutil.pids() if pid != self.process.pid and _session(pid) == self.process.pid]

    def workers(self) -> list[int]:
        """Its worker processes, which play runs."""
        return [pid for pid in self.processes() if "spawn_main" in _command_line(pid)]

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def wait(self) -> int:
        """Wait until it and every process of its session have ended; returns the exit code."""
        code = self.process.wait(PATIENCE_S)
        wait_until(lambda: not self.processes())
        return code

    def kill_all(self) -> None:
        """Kill all its processes that are still running, and wait for it."""
        for pid in [self.process.pid, *self.processes()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


def wait_until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> float:
    """Poll until `condition` is true; returns the wall seconds that it took."""
    start_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - start_s
        assert waited_s < patience_s, f"did not come within {patience_s:g} s"
        time.sleep(POLL_S)
    return time.monotonic() - start_s


def _session(pid: int) -> int:
    try:
        return os.getsid(pid) if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE else 0
    except (ProcessLookupError, psutil.Error):
        return 0


def _command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""
