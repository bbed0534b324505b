"""The wheel of this tree, installed: built once for what the tree holds, and kept in `build/`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build"
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist", "runs")
MADE_FOR = "made-for"
_HELD: dict[Path, IO[str]] = {}
"""Locks of the folders that this process uses; the system releases them at its end."""


def installed_wheel() -> tuple[Path, Path]:
    """The wheel of what the tree holds now, and the folder of the commands of an environment that has it.

    Built from a copy of the tree, so that builds leave nothing in it and use no old output.
    """
    with tempfile.TemporaryDirectory() as name:
        source = copied_tree(Path(name) / "source")

        def make(folder: Path) -> None:
            call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source)
            install(next(folder.glob("*.whl")), folder / "fresh")

        folder = KEPT / "wheel"
        kept(folder, f"{sys.version} {sysconfig.get_path('purelib')} {content_key(source)}", make)
    [wheel] = folder.glob("*.whl")
    return wheel, folder / "fresh" / "bin"


def copied_tree(folder: Path) -> Path:
    """`folder`, which is made a copy of what the tree holds, without what was made of it."""
    return shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_SOURCE))


def content_key(folder: Path) -> str:
    """A digest of the names and the contents of all files below the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    parts = (f"{path.relative_to(folder)}\0{_digest(path.read_bytes())}\n" for path in files)
    return _digest("".join(parts).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def kept(folder: Path, key: str, make: Callable[[Path], None]) -> None:
    """Have `folder` filled by `make` for this key: anew if it is of another key, or was not finished.

    Until this process ends, no other one makes it anew.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder not in _HELD:
        _HELD[folder] = folder.with_name(f"{folder.name}.lock").open("w", encoding="utf-8")
    lock = _HELD[folder]
    stamp = folder / MADE_FOR

    def is_made() -> bool:
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == key

    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if is_made():
            return
        fcntl.flock(lock, fcntl.LOCK_EX)  # not held in between: another process may have made it
        if not is_made():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            stamp.write_text(key, encoding="utf-8")


def install(
    wheel: Path, environment: Path, *options: str, python: str = sys.executable, libraries: str = ""
) -> Path:
    """The folder of the commands of a fresh environment of `python` with the wheel in it.

    It shares the `libraries` of a folder: of the environment that runs this, if none is named. With `options`
    of pip, it may be a source tree.
    """
    if python == sys.executable:
        venv.create(environment, with_pip=False)
    else:
        call(python, "-m", "venv", "--without-pip", environment)
    commands = environment / "bin"
    # Python does not read the .pth files in a folder that a .pth file adds, so an editable installation among
    # the libraries stays invisible, but to pip, which would take it for the wheel.
    (packages_of(environment) / "libraries.pth").write_text(
        f"{libraries or sysconfig.get_path('purelib')}\n", encoding="utf-8"
    )
    pip("install", "--no-deps", "--quiet", "--ignore-installed", *options, wheel, commands=commands)
    return commands


def packages_of(environment: Path) -> Path:
    """The folder of the packages of an environment."""
    [packages] = environment.glob("lib/python*/site-packages")
    return packages


def pip(*arguments: str | Path, commands: Path) -> str:
    """The output of pip, which works on the environment of these commands."""
    return call(sys.executable, "-m", "pip", "--python", commands / "python", *arguments)


def call(*command: str | Path, folder: Path | None = None, code: int = 0) -> str:
    """The output of the command; SystemExit with all of its output if it ends with another code."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DRIFTSCALE"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != code:
        line = " ".join(map(str, command))
        sys.exit(f"{line} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stdout + done.stderr
