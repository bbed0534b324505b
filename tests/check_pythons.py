"""Uses the wheel with the other versions of Python that this machine has (`make check-pythons`).

Each version has libraries of its own, in the versions of constraints.txt, which are kept in `build/pythons`.
Without a CPU build of torch for a version, everything but models is used. The last line says which versions
were tested, and how far.
"""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.check_wheel import PACKAGES, TINY, check_use
from tests.wheel import KEPT, ROOT, call, install, installed_wheel, kept, packages_of, pip

VERSIONS = ("3.12", "3.13", "3.14")
FOLDERS = (
    "{pyenv}/versions/{version}*/bin",
    "{uv}/cpython-{version}*/bin",
    *("~/.local/bin", "/usr/bin", "/usr/local/bin", "/opt/*/bin", "/opt/homebrew/bin"),
    "/Library/Frameworks/Python.framework/Versions/{version}/bin",
)
"""Where pyenv, uv and systems keep versions of Python that no path leads to."""
IMPORT_ALL = """
import importlib, pkgutil, sys, sysconfig
folder = sysconfig.get_path("purelib")
found = [module.name for package in sys.argv[1:]
         for module in pkgutil.walk_packages([f"{folder}/{package}"], f"{package}.")]
names = [*sys.argv[1:], *(name for name in found if not name.endswith("__main__"))]
lacking = 0
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != "torch":
            raise
        lacking += 1
print(f"{len(names) - lacking} of {len(names)} modules")
"""


def main() -> None:
    found = {version: next(pythons(version), None) for version in VERSIONS}
    there = {version: python for version, python in found.items() if python is not None}
    wheel, commands = installed_wheel()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(VERSIONS)) as pool:
        folder = Path(name)
        call(commands / "driftscale", "run", "digits", *TINY, "--out", folder / "kept")
        report = call(commands / "driftscale", "report", folder / "kept", "--format", "json")
        tests = {
            version: pool.submit(check_python, version, python, wheel, folder, report)
            for version, python in there.items()
        }
        lines = [
            f"Python {version} {tests[version].result() if version in tests else 'is not installed'}"
            for version in VERSIONS
        ]
    print("" if there else "no other Python was tested: ", "; ".join(lines), sep="")


def pythons(version: str, variables: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The programs that are Python of this version: from the path, and from where versions are kept.

    A program on the path may be another's stand-in that only says that it has no such version.
    """
    home = Path(variables.get("HOME", "~"))
    places = {
        "version": version,
        "pyenv": variables.get("PYENV_ROOT", str(home / ".pyenv")),
        "uv": variables.get("UV_PYTHON_INSTALL_DIR", str(home / ".local/share/uv/python")),
    }
    by_pattern = (pattern.format(**places).replace("~", str(home)) for pattern in FOLDERS)
    kept = (path for pattern in by_pattern for path in sorted(Path("/").glob(pattern.removeprefix("/"))))
    for folder in (*map(Path, variables["PATH"].split(os.pathsep)), *kept):
        python = folder / f"python{version}"
        if python.is_file() and os.access(python, os.X_OK) and answers(python, version):
            yield str(python)


def answers(python: Path, version: str) -> bool:
    """Whether the program runs, is of this version, and makes environments."""
    code = "import sys, venv; print('{}.{}'.format(*sys.version_info))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def check_python(version: str, python: str, wheel: Path, folder: Path, report: str) -> str:
    """Use the wheel with another version of Python; what was used."""
    libraries = libraries_of(version, python, wheel)
    commands = install(wheel, folder / version, python=python, libraries=str(packages_of(libraries)))
    elsewhere = folder / f"elsewhere-{version}"
    if (packages_of(libraries) / "torch").is_dir():
        check_use(commands, elsewhere)
        return "is tested"
    elsewhere.mkdir()
    imported = check_without_torch(commands, elsewhere)
    again = call(commands / "driftscale", "report", folder / "kept", "--format", "json", folder=elsewhere)
    assert again == report, f"Python {version} reports other numbers of the same runs"
    return f"is tested but for models ({imported}), since there is no CPU build of torch for it here"


def libraries_of(version: str, python: str, wheel: Path) -> Path:
    """An environment with the libraries that the wheel needs, except torch where it has no CPU build."""
    required = requirements(wheel)
    constraints = ROOT / "constraints.txt"
    [torch] = [line for line in constraints.read_text(encoding="utf-8").split() if line.startswith("torch==")]
    # Elsewhere than on Linux all builds are CPU builds; there, the plain version may be one of gigabytes.
    torch += "+cpu" if sys.platform == "linux" else ""

    def make(environment: Path) -> None:
        call(python, "-m", "venv", "--without-pip", environment)
        commands = environment / "bin"
        install_command = ("install", "--quiet", "--only-binary", ":all:", "--constraint", constraints)
        pip(*install_command, *(line for line in required if not line.startswith("torch")), commands=commands)
        try:
            pip(*install_command, torch, commands=commands)
        except SystemExit as error:
            if "ResolutionImpossible" not in str(error) and "No matching distribution" not in str(error):
                raise

    folder = KEPT / "pythons" / version
    # With what pip is configured to install from: that may have a build of torch one day.
    key = (
        python,
        required,
        constraints.read_text(encoding="utf-8"),
        call(sys.executable, "-m", "pip", "config", "list"),
    )
    kept(folder, repr(key), make)
    return folder


def requirements(wheel: Path) -> Sequence[str]:
    """What the wheel needs without any extra."""
    with zipfile.ZipFile(wheel) as files:
        [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        lines = email.message_from_bytes(files.read(name)).get_all("Requires-Dist", [])
    return [line for line in lines if "extra ==" not in line]


def check_without_torch(commands: Path, elsewhere: Path) -> str:
    """Use what needs no model; the number of modules that were imported."""
    driftscale = commands / "driftscale"

    def run(*arguments: str, code: int = 0) -> str:
        return call(driftscale, *arguments, folder=elsewhere, code=code)

    modules = call(commands / "python", "-c", IMPORT_ALL, *sorted(PACKAGES), folder=elsewhere)
    assert "Usage: driftscale" in run("--help")
    assert "smartphones" in run("profiles", "list")
    run("new", "mine.toml")
    assert "unknown key 'rouds'" in run("check", "mine.toml", "--set", "round.rouds=4", code=2)
    assert "No module named 'torch'" in run("check", "mine.toml", code=3)
    assert "digits" in run("traces", "inspect", "mine.toml")
    rows = (f"{client},{step},{client % 2},{step}.5" for client in range(4) for step in range(30))
    (elsewhere / "rows.csv").write_text("\n".join(["client,step,label,x", *rows]) + "\n", encoding="utf-8")
    columns = ("--client", "client", "--step", "step", "--label", "label")
    run("traces", "build", "table", "--root", "rows.csv", *columns, "--out", "built")
    assert "120" in run("traces", "inspect", "built")
    return modules.strip()


if __name__ == "__main__":
    main()
