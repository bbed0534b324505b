"""Builds the wheel, installs it into a fresh environment and uses it from another folder (`make check`).

The environment shares the libraries of the environment that runs this script, but not the source tree. With
--pythons (CI) the same is done with other installed versions of Python, each with libraries of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"coordinator", "device_profiles", "driftscale", "emulator", "executor", "experiments", "traces"}
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist", "runs")
DATA = {
    "device_profiles/catalogue/fedscale_bandwidth.csv",
    "device_profiles/catalogue/fedscale_compute.csv",
    "device_profiles/catalogue/smartphones.toml",
    "experiments/configs/covid-mnist.toml",
    "experiments/configs/drift/groups.toml",
    "experiments/configs/feddrift/sine-2.toml",
    "experiments/configs/fielding/hear.toml",
    "experiments/configs/personal/digits.toml",
    "experiments/configs/digits.toml",
    "experiments/configs/first-fleet.toml",
    "experiments/minutes.toml",
    "experiments/results/pages/report_page.html",
    "traces/availability/diurnal_curve.csv",
    *(f"{package}/py.typed" for package in PACKAGES),
}
MOST_BYTES = 3_000_000
TINY = (
    *("--arms", "global", "--seeds", "0,1"),
    *("--set", "round.rounds=4", "--set", "trace.clients=20", "--set", "trace.drift.events=[]"),
)
SHORT = (
    *("--arms", "global,fielding", "--seeds", "0"),
    *("--set", "round.rounds=36", "--set", "report.horizon_s=9000"),
)


OTHER_PYTHONS = ("python3.12", "python3.13", "python3.14")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        check_content(wheel)
        if "--pythons" in sys.argv:
            for python in OTHER_PYTHONS:
                check_python(python, wheel, folder / python)
        else:
            check_use(install(wheel, folder / "fresh"), folder / "elsewhere")
            print(f"ok: {wheel.name} is complete, installs and runs")


def check_python(python: str, wheel: Path, folder: Path) -> None:
    """Use the wheel with another version of Python; print a line if that is not installed."""
    executable = shutil.which(python)
    if (
        executable is None
        or subprocess.run([executable, "--version"], capture_output=True, check=False).returncode
    ):
        print(f"{python}: not tested, since it is not installed")
        return
    call(executable, "-m", "venv", folder / "fresh")
    commands = folder / "fresh" / "bin"
    constraints = ROOT / "constraints.txt"
    call(commands / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel)
    check_use(commands, folder / "elsewhere")
    print(f"{python}: ok")


def build(folder: Path) -> Path:
    """The wheel, built from a copy of the tree, so that builds leave nothing in it and use no old output."""
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source)
    [wheel] = folder.glob("*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    files = set(zipfile.ZipFile(wheel).namelist())
    strangers = {name for name in files if name.split("/")[0] not in PACKAGES and ".dist-info/" not in name}
    assert not strangers, f"the wheel has files of other packages: {sorted(strangers)}"
    written = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    missing = (written | DATA) - files
    assert not missing, f"the wheel lacks {sorted(missing)}"
    assert any(name.endswith("/LICENSE") for name in files), "the wheel lacks the licence"
    size = wheel.stat().st_size
    assert size <= MOST_BYTES, (
        f"the wheel has {size:,} bytes, more than {MOST_BYTES:,}: what has come into it?"
    )


def install(wheel: Path, environment: Path) -> Path:
    """The folder of the commands of a fresh environment with the wheel in it."""
    venv.create(environment, with_pip=False)
    commands = environment / "bin"
    call(
        sys.executable, "-m", "pip", "--python", commands / "python", "install", "--no-deps", "--quiet", wheel
    )
    # After the installation: pip would take the editable installation for the wheel. Python does not read the
    # .pth files in a folder that a .pth file adds, so the editable installation stays invisible.
    libraries = sysconfig.get_path("purelib")
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(libraries + "\n")
    return commands


def check_use(commands: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    code = "import experiments; print(experiments.__path__[0])"
    experiments = Path(call(commands / "python", "-c", code, folder=elsewhere).strip())
    assert commands.parent in experiments.parents, f"not the installed package: {experiments}"
    check_import(commands, elsewhere)
    check_new(commands, elsewhere / "new")
    driftscale = commands / "driftscale"
    assert "Usage: driftscale" in call(driftscale, "--help", folder=elsewhere)
    assert "smartphones" in call(driftscale, "profiles", "list", folder=elsewhere)
    checked = call(driftscale, "check", "digits", folder=elsewhere)
    assert "client updates in all" in checked, checked
    for jobs in ("1", "2"):
        call(driftscale, "run", "digits", *TINY, "--jobs", jobs, "--out", f"jobs-{jobs}", folder=elsewhere)
    one_by_one, in_parallel = (logs(elsewhere / f"jobs-{jobs}") for jobs in ("1", "2"))
    assert len(one_by_one) == 2, sorted(one_by_one)
    assert one_by_one == in_parallel, "runs in parallel have other logs than runs one after another"


def check_new(commands: Path, elsewhere: Path) -> None:
    """Write, check and run a configuration, in an empty folder."""
    elsewhere.mkdir()
    driftscale = commands / "driftscale"
    assert "first-fleet" in call(driftscale, "configs", folder=elsewhere)
    call(driftscale, "new", "mine.toml", folder=elsewhere)
    call(driftscale, "check", "mine.toml", folder=elsewhere)
    call(driftscale, "run", "mine.toml", *SHORT, folder=elsewhere)
    assert (elsewhere / "runs" / "mine" / "report.html").is_file(), "no report"


def check_import(commands: Path, elsewhere: Path) -> None:
    """Import driftscale in a folder that has nothing, and in one that shadows a package of ours."""
    assert call(commands / "python", "-c", "import driftscale as d; print(d.__version__)", folder=elsewhere)
    shadowing = elsewhere / "shadowing"
    (shadowing / "traces").mkdir(parents=True)
    (shadowing / "traces" / "__init__.py").write_text("")
    code = "try:\n    import driftscale\nexcept ImportError as error:\n    print(error)"
    line = call(commands / "python", "-c", code, folder=shadowing)
    assert line.startswith(f"the package 'traces' comes from {shadowing}, but driftscale is in "), line
    assert line.count("\n") == 1, line


def logs(run_directory: Path) -> dict[str, bytes]:
    """The log of each run, by its path in the run directory."""
    return {
        str(path.relative_to(run_directory)): path.read_bytes() for path in run_directory.rglob("log.jsonl")
    }


def call(*command: str | Path, folder: Path | None = None) -> str:
    """The output of the command; SystemExit with all of its output if it fails."""
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
    if done.returncode:
        line = " ".join(map(str, command))
        sys.exit(f"{line} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
