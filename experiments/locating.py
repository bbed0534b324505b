"""Finding the files and folders that a configuration names, within those that it may read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from shlex import quote

from emulator.errors import DataFileError, MissingFileError
from emulator.own_parts import look_in
from experiments.shipped import is_shipped

Locate = Callable[[str], Path]

DataFolders = Path | Sequence[Path] | None
"""The folders of --data: several, one, or none."""

MOST_SHOWN = 200
"""Most characters of an invalid path in an error message."""


MOST_ENTRIES = 100_000
"""Most files and folders in a folder that a configuration names."""


class OutsideError(DataFileError):
    """A path of a configuration leads outside the folders that it may read."""


def folders_of(data: DataFolders) -> tuple[Path, ...]:
    """The folders of --data in their order.

    >>> folders_of(None), folders_of(Path("a"))
    ((), (PosixPath('a'),))
    """
    if data is None:
        return ()
    return (data,) if isinstance(data, Path) else tuple(data)


def locator(data: DataFolders, config: Path | None, here: Path = Path()) -> Locate:
    """A function that finds the files and folders that a configuration names.

    It looks for a path in `here`, under each folder of `data`, and beside the configuration, in this order,
    and takes the first existing one that lies in one of these folders after links are followed. The links
    in a folder that it finds, however deep, must lead into one of them too; hidden folders in it are not
    entered. So a link in one folder of `data` may lead to another one, or into it.

    The modules of parts named by "my_module:MyPart" are looked for beside the configuration and in `here`,
    until the next call. Nothing is looked for beside a shipped configuration.

    Args:
        data: The folders of --data, in the order in which they are searched.
        config: The file of the configuration; None without one.
        here: The current folder.

    Returns:
        A function from a path as written in the configuration to an existing file or folder. It raises
        MissingFileError if there is none, and OutsideError if the path leads outside these folders.

    Raises:
        DataFileError: One of `data` is not a folder.
    """
    given = folders_of(data)
    for folder in given:
        if not folder.is_dir():
            raise DataFileError(folder, "no such folder; --data (or DRIFTSCALE_DATA) must name a folder")
    beside = [] if config is None or is_shipped(config) else [config.parent]
    look_in(*beside, here)
    folders = [here, *given, *beside]
    roots = list(dict.fromkeys(folder.resolve() for folder in folders))

    def locate(path: str) -> Path:
        try:
            tried = [folder / Path(path).expanduser() for folder in folders]
            existing = [candidate for candidate in tried if candidate.exists()]
            outside = {candidate: _first_outside(candidate, roots) for candidate in existing}
        except (OSError, RuntimeError, ValueError) as error:  # ~ of an unknown user, a null byte, too long
            raise DataFileError(path[:MOST_SHOWN], f"is not a path ({error})") from error
        for candidate in existing:
            if outside[candidate] is None:
                if not (candidate.is_file() or candidate.is_dir()):
                    raise DataFileError(candidate, "is neither a file nor a folder")
                return candidate
        if existing:
            target = outside[existing[0]]
            assert target is not None, "every candidate leads outside"
            inside = ", ".join(map(str, roots))
            way_out = quote(str(target if target.is_dir() else target.parent))
            raise OutsideError(
                path,
                f"leads to {target}; a configuration may only read files in {inside}; to allow it, add "
                f"--data {way_out} (--data takes several folders)",
            )
        looked = ", ".join(dict.fromkeys(map(str, tried)))
        raise MissingFileError(path, f"not found; looked for {looked}; --data names a folder to look in")

    return locate


def entries_below(folder: Path) -> Iterator[Path]:
    """The files and links in `folder` and in all folders below it, but for those in hidden folders.

    Entries of a folder are in order of their names, and come before those of the folders in it. Links to
    folders are entered after they are yielded, but no folder twice, so that circles of links end.

    Raises:
        DataFileError: A folder cannot be read, or there are more than `MOST_ENTRIES`.
    """
    number, pending, entered = 0, [folder], set()
    while pending:
        here = pending.pop(0)
        try:
            state = here.stat()
            if (state.st_dev, state.st_ino) in entered:
                continue
            entered.add((state.st_dev, state.st_ino))
            entries = sorted(here.iterdir())
        except OSError as error:
            raise DataFileError(here, f"cannot be read ({error.strerror})") from error
        inner = []
        for entry in entries:
            number += 1
            if number > MOST_ENTRIES:
                raise DataFileError(
                    folder,
                    f"has more than {MOST_ENTRIES:,} files and folders; a run reads a smaller folder, such "
                    f"as a trace that driftscale traces build makes of them",
                )
            is_folder = entry.is_dir()
            if is_folder and not entry.name.startswith("."):
                inner.append(entry)
            if not is_folder or entry.is_symlink():
                yield entry
        pending = inner + pending


def _first_outside(path: Path, roots: Sequence[Path]) -> Path | None:
    """The first target outside all `roots`: of `path` or, in a folder, of the links in it, however deep.

    None if all targets lie inside.
    """
    below = entries_below(path) if path.is_dir() else iter(())
    for item in chain([path], below):  # a link is looked at before the folder that it leads to is entered
        if item != path and not item.is_symlink():
            continue
        resolved = item.resolve()
        if not any(resolved.is_relative_to(root) for root in roots):
            return resolved
    return None
