"""The promises of SECURITY.md: no module runs data, and a configuration reaches no other files."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from device_profiles import read_profile
from emulator.errors import ConfigurationError, DataFileError, InputError
from experiments.cli import main
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.leftovers import clear
from tests.experiments.small import DEVICES, write_idx_folder, write_small
from tests.experiments.synthetic_runs import a_directory, a_run, store
from tests.packages import AT_ROOT
from tests.reliability.readers import MIXTURE, beside_the_mixture

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for package in AT_ROOT for path in (ROOT / package).rglob("*.py"))

LICENSED = {
    ROOT / "device_profiles" / "fedscale.py": {"pickle", "pickletools"},
    ROOT / "experiments" / "own" / "sources.py": {"compile"},
}
"""The only importer of pickles: it scans the file first, and lets it build nothing but numbers. And what
compiles statements of one's own modules, for the names that these read: it runs none.
"""

# -- code that no module may have ---------------------------------------------------------------------------

RUNS_DATA = {
    *("pickle", "_pickle", "cPickle", "pickletools", "shelve", "marshal", "dill", "cloudpickle", "joblib"),
    *("yaml", "ruamel", "jsonpickle", "code", "codeop", "xmlrpc"),
}
"""Modules that can run data as code; a module that needs one must be licensed above."""

BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {
    *("torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "torch.package.PackageImporter"),
    *("pandas.read_pickle", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("numpy.lib.format.read_array", "runpy.run_path", "runpy.run_module"),
    *("multiprocessing.connection.Client", "multiprocessing.connection.Listener"),
}
"""Functions that run data or shell commands; `exec*` and `spawn*` of `os` are refused too."""

OF_OBJECTS = ("_object", "_object_list")
"""Suffixes of collectives that pickle their arguments, such as `torch.distributed.gather_object`."""


def dangers(tree: ast.AST) -> list[str]:
    """All names in a module that could run data as code, as qualified names."""
    known = dict(_names(tree))
    return [name for node in ast.walk(tree) for name in _dangers(node, known)]


def _names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(local name, qualified name) of everything that is imported anywhere in the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dangers(node: ast.AST, known: dict[str, str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name.split(".")[0] in RUNS_DATA)
        case ast.ImportFrom(module=str(module)) if module.split(".")[0] in RUNS_DATA:
            yield module
        case ast.Name(id=name) if name in BUILTINS and name not in known:
            yield name
        case ast.Attribute() | ast.Name():
            name = _qualified(node, known)
            pickles = name.startswith("torch.distributed.") and name.endswith(OF_OBJECTS)
            if pickles or name in CALLS or name.startswith(("os.exec", "os.spawn", "builtins.")):
                yield name
        case ast.keyword(arg="allow_pickle" | "shell" as name, value=value) if not _is_false(value):
            yield name
        case ast.keyword(arg=None, value=ast.Dict(keys=keys, values=values)):
            for key, value in zip(keys, values, strict=True):
                if (
                    isinstance(key, ast.Constant)
                    and key.value in ("allow_pickle", "shell")
                    and not _is_false(value)
                ):
                    yield str(key.value)


def _qualified(node: ast.expr, known: dict[str, str]) -> str:
    """The qualified name: `torch.load` for `t.load` after `import torch as t`; empty if not imported."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            owner = _qualified(value, known)
            return f"{owner}.{attribute}" if owner else ""
    return ""


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def test_the_scan_sees_every_package() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(AT_ROOT)
    assert len(MODULES) > 80


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_runs_no_data(path: Path) -> None:
    names = set(dangers(ast.parse(path.read_text(encoding="utf-8"))))
    assert names <= LICENSED.get(path, set())


def test_the_license_is_needed() -> None:
    for path, licensed in LICENSED.items():
        assert licensed <= set(dangers(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import pickle", ["pickle"]),
        ("import cPickle as p", ["cPickle"]),
        ("from pickle import loads", ["pickle"]),
        ("def f():\n    from dill import load", ["dill"]),
        ("import joblib; joblib.load(p)", ["joblib"]),
        ("from joblib import load", ["joblib"]),
        ("import shelve", ["shelve"]),
        ("import marshal", ["marshal"]),
        ("import yaml.loader", ["yaml.loader"]),
        ("from yaml import safe_load", ["yaml"]),
        ("eval('1')", ["eval"]),
        ("exec(open('x').read())", ["exec"]),
        ("list(map(eval, texts))", ["eval"]),
        ("__import__(name)", ["__import__"]),
        ("import builtins; builtins.eval('1')", ["builtins.eval"]),
        ("import torch; torch.load(path)", ["torch.load"]),
        ("import torch as t; t.load(path, weights_only=True)", ["torch.load"]),
        ("from torch import load as read; read(path)", ["torch.load"]),
        ("import torch; torch.save(x, path)", ["torch.save"]),
        (
            "import torch.distributed as dist; dist.broadcast_object_list(x)",
            ["torch.distributed.broadcast_object_list"],
        ),
        (
            "from torch import distributed; distributed.all_gather_object(a, b)",
            ["torch.distributed.all_gather_object"],
        ),
        ("import numpy as np; np.load(path, allow_pickle=True)", ["allow_pickle"]),
        ("np.load(path, allow_pickle=trusted)", ["allow_pickle"]),
        ("np.load(path, **{'allow_pickle': True})", ["allow_pickle"]),
        ("np.load(path, allow_pickle=False)", []),
        ("import os; os.system('ls')", ["os.system"]),
        ("from os import system; system('ls')", ["os.system"]),
        ("import os; os.execvp(a, b)", ["os.execvp"]),
        ("import subprocess; subprocess.run('ls', shell=True)", ["shell"]),
        ("import subprocess; subprocess.run(['ls'])", []),
        ("model.eval()", []),
        ("re.compile('x')", []),
        ("import torch; model.load(path)", []),
    ],
)
def test_the_scan_finds_dangerous_names(code: str, names: list[str]) -> None:
    assert dangers(ast.parse(code)) == names


# -- paths of a configuration -------------------------------------------------------------------------------


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three folders to read from, each with a table, and a secret elsewhere; `work` is the current folder."""
    for name in ("work", "data", "configs", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_text(DEVICES, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    return tmp_path


def test_the_roots_are_the_current_folder_the_data_and_the_configuration(roots: Path) -> None:
    locate = locator(roots / "data", roots / "configs" / "c.toml")
    assert locate("work.csv") == Path("work.csv")
    assert locate("data.csv") == roots / "data" / "data.csv"
    assert locate("configs.csv") == roots / "configs" / "configs.csv"
    assert locate(str(roots / "data" / "data.csv")) == roots / "data" / "data.csv"
    # A path that goes up and down again stays inside.
    assert locate("../data/data.csv") == Path("../data/data.csv")


@pytest.mark.parametrize(
    "way", ["up", "absolute", "home", "link", "folder behind a link", "link in a folder"]
)
def test_a_path_that_leads_out_of_every_root_is_refused(roots: Path, way: str) -> None:
    secret = roots / "elsewhere" / "elsewhere.csv"
    Path("link.csv").symlink_to(secret)
    Path("folder").symlink_to(secret.parent)
    Path("images").mkdir()
    (Path("images") / "train-labels-idx1-ubyte").symlink_to(secret)
    path = {
        "up": "../elsewhere/elsewhere.csv",
        "absolute": str(secret),
        "home": "~/elsewhere.csv",
        "link": "link.csv",
        "folder behind a link": "folder/elsewhere.csv",
        "link in a folder": "images",
    }[way]
    with pytest.raises(DataFileError) as refused:
        locator(roots / "data", roots / "configs" / "c.toml")(path)
    readable = ", ".join(str(roots / name) for name in ("work", "data", "configs"))
    assert str(refused.value) == (
        f"{path}: leads to {secret}; a configuration may only read files in {readable}; to allow it, add "
        f"--data {secret.parent} (--data takes several folders)"
    )
    assert locator([roots / "data", secret.parent], roots / "configs" / "c.toml")(path)
    assert locator(secret.parent, None)(path)  # a folder named by --data is readable


def test_of_two_files_of_the_same_name_the_one_inside_is_taken(roots: Path) -> None:
    Path("t.csv").symlink_to(roots / "elsewhere" / "elsewhere.csv")
    (roots / "data" / "t.csv").write_text(DEVICES, encoding="utf-8")
    assert locator(roots / "data", None)("t.csv") == roots / "data" / "t.csv"


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x.csv", "a\0b.csv", "a" * 5000 + ".csv"])
def test_an_invalid_path_is_an_error_of_one_line(path: str) -> None:
    with pytest.raises(DataFileError, match=r"is not a path|not found"):
        locator(None, None)(path)


def test_a_trace_source_outside_is_refused_and_not_taken_for_a_misspelt_name(roots: Path) -> None:
    write_idx_folder(roots / "elsewhere" / "letters")
    config = write_small(roots / "configs", trace={"source": "../elsewhere/letters"})
    with pytest.raises(DataFileError, match=r"letters: leads to .*; a configuration may only read files in"):
        load_experiment(config)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_anything_but_a_regular_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    from emulator.storage.tables import read_table

    path = Path("/dev/zero")
    if kind == "pipe":
        path = tmp_path / "x"
        os.mkfifo(path)
    if kind == "folder":
        path = tmp_path / "x"
        path.mkdir()
    for suffix, read in (
        (".toml", load_experiment),
        (".toml", read_profile),
        (".csv", read_table),
        (".parquet", read_table),
    ):
        link = tmp_path / f"link{suffix}"
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        with pytest.raises(InputError):
            read(link)  # type: ignore[operator]


def test_a_configuration_cannot_name_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "devices.csv")
    with pytest.raises(DataFileError, match=r"devices\.csv: is neither a file nor a folder"):
        locator(tmp_path, None)("devices.csv")


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("name", ["os:system", "elsewhere:Part", "../elsewhere/elsewhere:Part"])
def test_a_configuration_imports_no_module_from_outside_its_folder_and_the_present_one(
    roots: Path, name: str
) -> None:
    for folder in ("elsewhere", "data"):
        (roots / folder / "elsewhere.py").write_text("raise AssertionError('imported')")
    config = write_small(roots / "configs", arm=[{"name": "a", "selector": name}])
    with pytest.raises(ConfigurationError, match=r"no module|is not of the form"):
        load_experiment(config, data=roots / "data")


# -- output to a terminal ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "shown"), [("\x1b[2J\x9b1m", "\\x1b[2J\\x9b1m"), ("a\u202eb", "a\\u202eb")])
def test_an_error_escapes_control_characters(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["driftscale", "profiles", "check", f"{name}.csv"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {shown}.csv: no such file\n"


def test_an_error_that_quotes_a_whole_file_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["driftscale", "parts", "x" * 100_000])
    with pytest.raises(SystemExit):
        main()
    error = capsys.readouterr().err
    assert len(error) < 5000
    assert error.endswith(" letters)\n")


@pytest.mark.parametrize("key", ["name", "reference_model", "source"])
def test_a_profile_cannot_have_control_characters(tmp_path: Path, key: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(tomli_w.dumps({**MIXTURE, key: "a\x1b[2J"}), encoding="utf-8")
    beside_the_mixture(tmp_path)
    with pytest.raises(DataFileError, match=f"{key}: has characters that nobody can read"):
        read_profile(path)
    path.write_text(tomli_w.dumps(MIXTURE), encoding="utf-8")
    assert read_profile(path)


# -- names that become folders ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../x", "a/b", "/tmp/x", "a\\b", "a\0", "~", "-x", "a b", "a\n", "a" * 256]
)
def test_an_experiment_or_an_arm_cannot_be_named_like_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        load_experiment(write_small(tmp_path, name=name))
    with pytest.raises(InputError, match=r"arm|name"):
        load_experiment(write_small(tmp_path, arm=[{"name": name}]))


@pytest.mark.parametrize("name", ["..", ".", "", "../x", "a/b", "/etc", "a\0"])
def test_an_arm_of_a_run_directory_cannot_lead_out_of_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"must serve as the name of a folder|nobody can read"):
        a_directory(tmp_path, [name], [0]).reported_runs()


def test_files_behind_a_link_are_not_deleted_with_a_run_directory(tmp_path: Path) -> None:
    linked = a_directory(tmp_path / "other", ["global"], [0])
    store(linked, a_run("global", 0, [0.5]))
    directory = a_directory(tmp_path / "run", ["global"], [0])
    (directory.path / "global").symlink_to(linked.path / "global")
    with pytest.raises(InputError, match=r"run/global: is a link to .*other/global"):
        clear(RunDirectory(directory.path))
    assert linked.is_done("global", 0)
