"""Every mistake has its remedy: what users type, and the words that the answer holds."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from emulator.storage.bounded import read_toml
from experiments.cli.configurations.writing import write_new
from experiments.remedies.misreadings import TABLE
from experiments.shipped import CONFIGS
from tests.experiments.cli.conftest import Driftscale, Ended
from tests.experiments.cli.mistakes import IN_A_CONFIGURATION, NOT_TOML, TAKEN, TYPED, Mistake
from tests.experiments.small import write_small
from tests.experiments.synthetic_runs import a_directory, a_run, store

ROOT = Path(__file__).resolve().parents[3]
DATA = "user,time,label,x\nu0,0,0,0.5\nu1,1,1,0.25\n"


def played(driftscale: Driftscale, folder: Path, mistake: Mistake) -> Ended:
    write_new(folder / "mine.toml", "first-fleet")
    text = (folder / "mine.toml").read_text()
    for old, new in zip(mistake.edits[::2], mistake.edits[1::2], strict=True):
        assert old in text, f"{old!r} is not in the first configuration"
        text = text.replace(old, new, 1)
    (folder / "mine.toml").write_text(text)
    (folder / "data.csv").write_text(DATA)
    if "runs/mine" in mistake.command:
        directory = a_directory(folder / "runs" / "mine", ["global"], [0])
        store(directory, a_run("global", 0, [0.5]))
        if " runs/mine" in mistake.command.removesuffix("--out runs/mine"):
            directory.manifest_path.touch()
    return driftscale(*shlex.split(mistake.command))


def named(mistakes: tuple[Mistake, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mistake", mistakes, ids=[mistake.what for mistake in mistakes])


@named((*IN_A_CONFIGURATION, *NOT_TOML, *TYPED))
def test_a_mistake_is_answered_in_one_line_with_its_remedy(
    driftscale: Driftscale, tmp_path: Path, mistake: Mistake
) -> None:
    ended = played(driftscale, tmp_path, mistake)
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1, ended.err
    for word in mistake.words:
        assert word in ended.error, f"{word!r} is not in: {ended.error}"


@named(TAKEN)
def test_what_is_written_otherwise_is_taken_and_what_surprises_is_said(
    driftscale: Driftscale, tmp_path: Path, mistake: Mistake
) -> None:
    ended = played(driftscale, tmp_path, mistake)
    assert ended.code == 0
    for word in mistake.words:
        assert word in ended.err + ended.out, f"{word!r} is not in: {ended.err}{ended.out}"


def test_the_command_prints_all_mistakes_of_a_pass_a_line_each(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nseeds = "0"\nrouns = 3\n'
        '[trace]\nsource = "digits"\nclients = 12\n'
        '[training]\nlr = 0.1\nbatch_size = "4"\nmodel = "mpl"\n'
        "[round]\nrounds = 0\n"
        '[parts]\nselector = "oorrt"\n'
        '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nclusterer = "ifca2"\ntraining = { last = "long" }\n'
    )
    first, *more = driftscale("check", "mine.toml").err.splitlines()
    assert first.startswith("error: mine.toml: unknown key 'rouns'; choices: arm, ")
    assert [line.partition(";")[0] for line in more] == [
        "  seeds = '0': must be a list, as in [0]",
        "  training: unknown key 'lr'",
        "  training.model = 'mpl': unknown model 'mpl'",
        "  training.batch_size = '4': must be a whole number, as in 4, without quotes",
        "  round.rounds = 0: input should be greater than or equal to 1",
        "  round.participants: field required",
        "  parts.selector = 'oorrt': unknown selector 'oorrt'",
        "  arm.b.clusterer = 'ifca2': unknown clusterer 'ifca2'",
        "  arm.b.training.last = 'long': input should be 'filled' or 'short'",
    ]


def test_more_than_ten_mistakes_are_counted_no_further(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(
        tmp_path, report={f"key{number}": 0 for number in range(8)}, faults={"a": 0, "b": 0, "c": 0}
    )
    lines = driftscale("run", config).err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "  and others"


def test_a_table_with_an_unknown_key_lacks_none(driftscale: Driftscale, tmp_path: Path) -> None:
    """The absent key is probably the one that is misspelt."""
    config = write_small(tmp_path)
    config.write_text(config.read_text().replace("\nrounds = 4", "\nrouns = 4"))
    [line] = driftscale("run", config).err.splitlines()  # and none says that rounds is required
    assert "round: unknown key 'rouns'" in line


def test_every_key_that_a_remedy_names_exists() -> None:
    reference = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    shipped = "\n".join(path.read_text() for path in CONFIGS.rglob("*.toml"))
    for remedy in read_toml(TABLE)["key"]:
        if " " not in remedy:
            key = remedy.rpartition(".")[2]
            assert f"`{key}`" in reference or f"{key} = " in shipped, remedy


def test_every_command_and_option_that_a_remedy_names_exists(driftscale: Driftscale) -> None:
    helped = "".join(
        driftscale(*command, "--help").out for command in ((), ("run",), ("traces",), ("profiles",))
    )
    for command, option in re.findall(r"driftscale ([a-z]+)|did you mean (--[a-z]+)", TABLE.read_text()):
        assert re.search(rf"(?m)^  {option or command} ", helped), option or command
