"""The folder in which a trace is built, `<out>.building`, until it is complete and gets the name `<out>`.

A build can be killed at any instant and begun again: the workspace records what is being built, and how far
it has come. Nothing half-built has the name of a trace folder, and no two builds share a workspace.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import Timeout

from emulator.errors import InputError, ResumableError
from emulator.storage.bounded import read_json
from emulator.storage.checkpoints import delete_folder, naming_file, sync_folder, write_durably
from emulator.storage.locks import Lock
from emulator.storage.own_files import path_below
from traces.files.facts import ARRIVALS, FACTS, FEATURES, FileFacts, TraceFacts, file_facts, write_facts
from traces.files.features import TARGETS

SUFFIX = ".building"
PLAN, PROGRESS = "plan.json", "progress.json"

OURS = (ARRIVALS, FEATURES, TARGETS, FACTS, PLAN, PROGRESS)
"""The names of files in a workspace; those that are written aside have them behind a dot."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Workspace:
    """The workspace of one build; made by `workspace`.

    Attributes:
        path: The folder to write `arrivals.parquet` and `features.npy` in, and any other files, which are
            deleted at the end.
        progress: What the last `record` of an earlier attempt stored; empty at first.
    """

    def __init__(self, path: Path, out: Path, progress: Mapping[str, Any]) -> None:
        self.path = path
        self.progress = progress
        self._out = out

    def record(self, progress: Mapping[str, Any]) -> None:
        """Store how far the build has come, for another attempt; JSON values only.

        What it states to be done must be on the disk (fsync) before.
        """
        write_durably(self.path / PROGRESS, _json(progress))
        self.progress = progress

    def finish(self, facts: TraceFacts, known: Mapping[str, FileFacts]) -> int:
        """Complete the trace folder: digests and `trace.toml`, then the name `<out>`; returns its bytes.

        Args:
            facts: the facts of the trace, whose `files` are filled in here.
            known: those of files that were hashed already, by name: others than these and the arrivals are
                deleted.
        """
        digests = {ARRIVALS: file_facts(self.path / ARRIVALS), **known}
        for entry in self.path.iterdir():
            if entry.name not in (*digests, PLAN):
                delete_folder(entry) if entry.is_dir() else entry.unlink()
        for name in digests:
            with naming_file(self.path / name), (self.path / name).open("rb") as file:
                os.fsync(file.fileno())
        write_facts(self.path, facts.model_copy(update={"files": digests}))
        (self.path / PLAN).unlink()
        num_bytes = sum(file.stat().st_size for file in self.path.iterdir())
        sync_folder(self.path)
        self.path.rename(self._out)  # from here on others may change it
        try:
            sync_folder(self._out.parent)
        except OSError:
            self._out.rename(self.path)  # the same command would refuse to build what is there
            raise
        return num_bytes


@contextmanager
def workspace(
    out: Path,
    plan: Mapping[str, Any],
    *,
    fresh: bool = False,
    nothing_after: type[BaseException] | tuple[()] = (),
) -> Iterator[Workspace]:
    """Context in which the trace folder `out` is built; a build that was interrupted is resumed.

    An error or an interruption in it leaves the workspace, which the same build takes up again. An InputError
    before anything is recorded leaves nothing, as the same build would end the same way.

    Args:
        out: the trace folder, which must not exist.
        plan: all that determines the result, as JSON values: the kind, the options, a digest of the rows.
        fresh: delete what an earlier build left, instead of resuming it.
        nothing_after: an exception that leaves nothing, whatever is recorded.

    Raises:
        InputError: `out` exists, another build of it is at work or was begun with another plan, or its folder
            cannot be written in.
        ForeignFileError: something in the workspace is a link, a pipe or a folder; nothing is changed.
        ResumableError: the disk is full; the same command resumes the build.
    """
    refuse_existing(out)
    path = out.with_name(out.name + SUFFIX)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock(path_below(out.parent, f".{out.name}.lock"), timeout=0)
        lock.acquire()
    except Timeout as error:
        if not Path(lock.lock_file).exists():  # nobody has it: it cannot be made
            raise InputError(f"--out {out}: cannot be written in {out.parent}") from error
        raise InputError(
            f"--out {out}: another process, or a call in this one, is building it; wait, or take another name"
        ) from error
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror})") from error
    try:
        with naming_file(path):
            refuse_existing(out)  # another process may have finished it since
            _refuse_foreign(path)
            if fresh and path.exists():
                delete_folder(path)
            space = Workspace(path, out, _begun(path, out, plan))
            try:
                yield space
            except BaseException as error:
                is_useless = isinstance(error, InputError) and not space.progress
                if (is_useless or isinstance(error, nothing_after)) and path.exists():
                    delete_folder(path)
                raise
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise ResumableError(
            f"{error.filename or path}: {error.strerror}; make room, and give the same command again"
        ) from error
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def refuse_existing(out: Path) -> None:
    """Raise InputError if there is anything in the place of the trace folder `out`."""
    if out.exists() or out.is_symlink():
        raise InputError(f"--out {out}: exists already; delete it, or take another name")


def _refuse_foreign(path: Path) -> None:
    """Raise InputError if what is in the place of the workspace is not one: it would be deleted.

    ForeignFileError if an entry of it is no file: what is behind a link would be written or deleted.
    """
    if not os.path.lexists(path):
        return
    temporary = tuple(f".{name}." for name in OURS)
    is_folder = path.is_dir() and not path.is_symlink()
    entries = sorted(entry.name for entry in path.iterdir()) if is_folder else []
    if not is_folder or any(name not in OURS and not name.startswith(temporary) for name in entries):
        raise InputError(f"{path}: is no unfinished build; move it away, or take another --out")
    for name in entries:
        path_below(path, name)


def _begun(path: Path, out: Path, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Create the workspace, or check that it was begun with the same plan; returns the progress so far.

    One begun with another plan is begun anew if nothing is recorded in it: no work is lost.
    """
    text = _json(plan)
    if not (path / PLAN).exists():
        return _created(path, text)
    try:
        begun, progress = read_json(path / PLAN), {}
        if (path / PROGRESS).exists():
            progress = read_json(path / PROGRESS)
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); delete it, or give --fresh") from error
    if _json(begun) != text:
        if not progress:
            return _created(path, text)
        differing = sorted(key for key in {*begun, *plan} if begun.get(key) != plan.get(key))
        raise InputError(
            f"{path}: an unfinished build of {out.name} was begun with another {', '.join(differing)}; give "
            f"--fresh to begin it again, or take another --out"
        )
    return progress


def _created(path: Path, plan: str) -> Mapping[str, Any]:
    """Create the workspace, empty but for its plan; returns the progress, which is none."""
    if path.exists():
        delete_folder(path)
    path.mkdir()
    write_durably(path / PLAN, plan)
    return {}


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, indent=1, allow_nan=False)
