"""Finding the files and folders that a configuration names, within those that it may read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote

from emulator.errors import DataFileError

Locate = Callable[[str], Path]

DataFolders = Path | Sequence[Path] | None
"""The folders of --data: several, one, or none."""

MOST_SHOWN = 200
"""Most characters of an invalid path in an error message."""


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
    directly in a folder that it finds must lead into one of them too. So a link in one folder of `data` may
    lead to another one, or into it.

    Args:
        data: The folders of --data, in the order in which they are searched.
        config: The file of the configuration; None without one.
        here: The current folder.

    Returns:
        A function from a path as written in the configuration to an existing file or folder. It raises
        DataFileError if there is none, and OutsideError if the path leads outside these folders.

    Raises:
        DataFileError: One of `data` is not a folder.
    """
    given = folders_of(data)
    for folder in given:
        if not folder.is_dir():
            raise DataFileError(folder, "no such folder; --data (or DRIFTSCALE_DATA) must name a folder")
    folders = [here, *given, *([config.parent] if config else [])]
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
                f"--data {way_out} (--data may be given several times)",
            )
        looked = ", ".join(dict.fromkeys(map(str, tried)))
        raise DataFileError(path, f"not found; looked for {looked}; --data names a folder to look in")

    return locate


def _first_outside(path: Path, roots: Sequence[Path]) -> Path | None:
    """The first target outside all `roots`: of `path` or, in a folder, of the links directly in it.

    None if all targets lie inside.
    """
    links = [item for item in path.iterdir() if item.is_symlink()] if path.is_dir() else []
    for item in (path, *links):
        resolved = item.resolve()
        if not any(resolved.is_relative_to(root) for root in roots):
            return resolved
    return None
