"""Checks the wheel: what it holds, and what it does in an environment of its own (`make check`).

And that an installation in place, as `make setup` makes it, is imported where the wheel is.

The environment shares the libraries of the environment that runs this script, but not the source tree.
`check_pythons.py` uses the wheel with other versions of Python.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.wheel import ROOT, call, copied_tree, install, installed_wheel

PACKAGES = {"coordinator", "device_profiles", "driftscale", "emulator", "executor", "experiments", "traces"}
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
    "emulator/storage/slips.toml",
    "experiments/minutes.toml",
    "experiments/remedies/misreadings.toml",
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


def main() -> None:
    wheel, commands = installed_wheel()
    check_content(wheel)
    with tempfile.TemporaryDirectory() as name:
        check_use(commands, Path(name) / "elsewhere")
        check_editable(Path(name))
    print(f"ok: {wheel.name} is complete, installs and runs, and the tree is installed in place")


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
    """Import driftscale in the tutorial's folder, and in one that shadows a package of ours."""
    check_tutorial(commands, elsewhere / "tutorial")
    shadowing = elsewhere / "shadowing"
    (shadowing / "traces").mkdir(parents=True)
    (shadowing / "traces" / "__init__.py").write_text("")
    code = "try:\n    import driftscale\nexcept ImportError as error:\n    print(error)"
    line = call(commands / "python", "-c", code, folder=shadowing)
    assert line.startswith(f"the package 'traces' comes from {shadowing}, but driftscale is in "), line
    assert line.count("\n") == 1, line


def check_editable(elsewhere: Path) -> None:
    """Install a copy of the tree in place, as the Makefile does, and import it in the tutorial's folder."""
    [options] = re.findall(r"^EDITABLE := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    tree, fresh = copied_tree(elsewhere / "tree"), elsewhere / "fresh"
    check_tutorial(install(tree, fresh, "--no-build-isolation", *options.split()), elsewhere / "in-place")


def check_tutorial(commands: Path, elsewhere: Path) -> None:
    """Import driftscale in the folder that the tutorial makes: as a notebook, as a script, as the command."""
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    [folder] = set(re.findall(r"^\$ driftscale traces build .*--out (\S+)", tutorial, re.MULTILINE))
    (elsewhere / folder).mkdir(parents=True)
    code = "import driftscale as d; print(d.__version__)"
    (elsewhere / "script.py").write_text(code)
    for start in (("python", "-c", code), ("python", "script.py"), ("driftscale", "--version")):
        assert call(commands / start[0], *start[1:], folder=elsewhere), "the version is printed"


def logs(run_directory: Path) -> dict[str, bytes]:
    """The log of each run, by its path in the run directory."""
    return {
        str(path.relative_to(run_directory)): path.read_bytes() for path in run_directory.rglob("log.jsonl")
    }


if __name__ == "__main__":
    main()
