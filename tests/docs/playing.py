"""Plays the blocks of one page in an empty folder, in an environment of the wheel."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar

from tests.docs.blocks import Block, Command, Page
from tests.docs.shell import words_without_shell
from tests.processes.forked import Forked, is_forkable

MOST_S = 300.0
"""Wall seconds for a command, or for a block of Python."""
ANYTHING = "…"
"""Stands for any text in a line of documented output, and alone for any lines."""
TAKES_A_START = ("--jobs", "-j", "--cluster", "cluster", "pip")
"""Words of commands whose processes are not only Python's own, or that change the environment."""
JOBS = re.compile(r"--jobs[ =]\S+ ?")
RUN_WITH_JOBS = re.compile(rf"\bdriftscale run\b.*{JOBS.pattern}", re.DOTALL)
KEPT_FROM_HOME = ".config/pip/pip.conf"


class FailedBlockError(Exception):
    """A block that has failed; the text has its page, line, command and output."""


@dataclass
class Played:
    """What became of a page: the number of its blocks that were run, and of those that were shortened.

    `not_run` has a line for each block that was not, with the reason; `num_without_jobs` is the number of
    commands whose --jobs was left out; `failure` is the text of the block that has failed, or empty.
    """

    page: str
    num_run: int = 0
    num_shortened: int = 0
    not_run: list[str] = field(default_factory=list)
    num_without_jobs: int = 0
    failure: str = ""
    seconds: float = 0.0

    @property
    def counts(self) -> tuple[int, int, int]:
        """Blocks run, shortened and not run."""
        return self.num_run, self.num_shortened, len(self.not_run)


class Environment:
    """Starts processes of a page: with the commands of the wheel, and a home that is empty.

    If it `forks`, a process that is Python is forked from one that has imported what a run imports
    (`tests/processes/`), unless that would not be the same: workers, pip, and what needs a shell.

    A run with --jobs is the same run without, by one process: the option is left out where no output is
    shown. An environment with `workers` keeps it in the first such line.
    """

    running: ClassVar[set[int]] = set()
    """The processes at work, each the first of a group of its own."""
    is_stopped: ClassVar[bool] = False
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, commands: Path, home: Path, *, forks: bool = False, workers: bool = False) -> None:
        home.mkdir()
        self._forks = forks
        self._has_workers = workers
        self.num_without_jobs = 0
        ours = Path.home() / KEPT_FROM_HOME
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "DRIFTSCALE", "VIRTUAL_ENV", "XDG_"))
        }
        if ours.is_file():
            kept.setdefault("PIP_CONFIG_FILE", str(ours))
        self.commands = commands
        self.variables = kept | {
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "MPLBACKEND": "Agg",
            "BROWSER": "true",
            "OMP_NUM_THREADS": "1",
        }

    @contextlib.contextmanager
    def process(
        self, *command: str | Path, folder: Path, output: IO[bytes], pass_fds: Sequence[int] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A process that writes into `output`; at the end, it and what it has started are killed."""
        is_forked = self._forks and Path(command[0]) == self.commands / "python"
        with self.lock:
            if self.is_stopped:
                raise KeyboardInterrupt
            started = (Forked if is_forked else subprocess.Popen)(
                [str(word) for word in command],
                cwd=folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )
            self.running.add(started.pid)
        try:
            yield started
        finally:
            with self.lock:
                _kill_group(started.pid)
                self.running.discard(started.pid)
            started.wait()

    def command(self, line: str, *, is_shown: bool = False) -> Sequence[str | Path]:
        """The process for a line of a shell: Python itself where that can be forked, else the shell.

        `is_shown` says whether the page shows the line's output.
        """
        if RUN_WITH_JOBS.search(line) and not is_shown:
            if self._has_workers:
                self._has_workers = False
            else:
                line = JOBS.sub("", line)
                self.num_without_jobs += 1
        words = words_without_shell(line) if self._forks else None
        if words is None or any(word.partition("=")[0] in TAKES_A_START for word in words):
            return ("bash", "-c", line)
        if words[0] == "driftscale":
            return (self.commands / "python", self.commands / "driftscale", *words[1:])
        if words[0] == "python" and is_forkable(words):
            return (self.commands / "python", *words[1:])
        return ("bash", "-c", line)

    @classmethod
    def stop_all(cls) -> None:
        """Kill all processes that are at work, and start no others."""
        with cls.lock:
            cls.is_stopped = True
            for group in cls.running:
                _kill_group(group)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def play(page: Page, environment: Environment, place: Path) -> Played:
    """Play the blocks of `page` in folders in `place`, up to the first that fails."""
    played = Played(page.name)
    start = time.perf_counter()
    stretch = Stretch(environment, place / "page")
    try:
        for block in page.blocks:
            if block.begins_folder:
                stretch.close()
                stretch = Stretch(environment, place / f"page-from-line-{block.line}")
            if block.not_run:
                played.not_run.append(f"{page.name}:{block.line}: {block.not_run}")
            elif stretch.play(block):
                played.num_run += 1
                played.num_shortened += block.is_shortened
    except FailedBlockError as error:
        played.failure = str(error)
    finally:
        stretch.close()
    played.num_without_jobs = environment.num_without_jobs
    played.seconds = time.perf_counter() - start
    return played


class Stretch:
    """Blocks that share a folder and a namespace."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        folder.mkdir()
        self._environment = environment
        self._folder = folder
        self._resources = contextlib.ExitStack()
        self._python: Namespace | None = None

    def close(self) -> None:
        """End the process of the namespace."""
        self._resources.close()

    def play(self, block: Block) -> bool:
        """Run the block, or write its file; False if neither is done with such a block.

        Raises FailedBlockError.
        """
        name = block.file or block.append
        if name is not None:
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w" if block.file else "a", encoding="utf-8") as file:
                file.write(block.as_run)
        elif block.language == "console":
            commands = block.commands_as_run
            for command in commands:
                self._run(block, command, block.fails if command is commands[-1] else 0)
        elif block.language == "python":
            if self._python is None:
                self._python = self._resources.enter_context(Namespace(self._environment, self._folder))
            self._python.run(block)
        else:
            return False
        return True

    def _run(self, block: Block, command: Command, expected_code: int) -> None:
        """Run a command of a console block, and compare its output."""
        where = f"{block.page}:{command.line}: {command.text}"
        with tempfile.TemporaryFile() as output:
            with self._environment.process(
                *self._environment.command(command.text, is_shown=bool(command.output)),
                folder=self._folder,
                output=output,
            ) as process:
                try:
                    code = process.wait(MOST_S)
                except subprocess.TimeoutExpired:
                    raise FailedBlockError(
                        f"{where}\nhas not ended within {MOST_S:.0f} s\n{_read(output)}"
                    ) from None
            text = _read(output)
        if code != expected_code:
            expected = f", not with {expected_code}" if expected_code else ""
            raise FailedBlockError(f"{where}\nended with {code}{expected}\n{text}")
        if command.output and not block.is_shortened and not matches(command.output, text):
            shown = "\n".join(command.output)
            raise FailedBlockError(f"{where}\nprinted\n{text}\nand the page shows\n{shown}")


class Namespace:
    """A process that runs blocks of Python one after another, in one namespace."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Namespace:
        with contextlib.ExitStack() as resources:
            self._output = resources.enter_context(tempfile.TemporaryFile())
            given, self._requests = os.pipe()
            self._responses, out = os.pipe()
            for descriptor in (self._requests, self._responses):
                resources.callback(os.close, descriptor)
            resources.enter_context(
                self._environment.process(
                    self._environment.commands / "python",
                    Path(__file__).with_name("namespace.py"),
                    *map(str, (given, out)),
                    folder=self._folder,
                    output=self._output,
                    pass_fds=(given, out),
                )
            )
            os.close(given)
            os.close(out)
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def run(self, block: Block) -> None:
        """Run the block; FailedBlockError with its output and its traceback if it fails."""
        before = self._output.tell()
        request = {"code": block.as_run, "page": block.page, "line": block.line + 1}
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        response = b""
        deadline = time.monotonic() + MOST_S
        while not response.endswith(b"\n"):
            ready, _, _ = select.select([self._responses], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(self._responses, 2**16) if ready else b""
            if not piece:
                problem = "its process has ended" if ready else f"has not ended within {MOST_S:.0f} s"
                raise self._failure(block, problem, before)
            response += piece
        if error := json.loads(response)["error"]:
            raise self._failure(block, error, before)
        self._output.seek(0, os.SEEK_END)

    def _failure(self, block: Block, problem: str, before: int) -> FailedBlockError:
        first = block.content.strip().splitlines()[0]
        return FailedBlockError(
            f"{block.page}:{block.line}: {first} …\n{_read(self._output, before)}{problem}"
        )


def _read(output: IO[bytes], before: int = 0) -> str:
    output.seek(before)
    return output.read().decode(errors="replace")


def matches(expected: Sequence[str], text: str) -> bool:
    """Whether a page shows `text`; blanks at the ends of lines, and blank lines at the end, do not count.

    >>> matches(["1 of …", "…", "done"], "1 of 3\\n2 of 3\\n3 of 3\\ndone\\n")
    True
    >>> matches(["done"], "done, with a warning\\n")
    False
    """
    pattern = "".join(
        r"(?:.*\n)*"
        if line.strip() == ANYTHING
        else ".*".join(re.escape(piece) for piece in line.rstrip().split(ANYTHING)) + r"\n"
        for line in expected
    )
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


if not hasattr(os, "killpg"):
    sys.exit("docs-test needs process groups, as Linux and macOS have them")
