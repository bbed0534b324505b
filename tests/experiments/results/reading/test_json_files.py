from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from emulator.errors import DataFileError
from experiments.results.reading.json_files import PORTION, Identity, Manifest

MANY = 200 * PORTION


def a_command(arguments: str = '["a"]', **changes: object) -> str:
    """A manifest with one command, whose arguments are given as JSON."""
    command = {"arguments": json.loads(arguments), "started": "2026-01-31T12:00:00Z", **changes}
    return json.dumps({"commands": [command]})


@pytest.mark.parametrize(
    ("arguments", "arms"),
    [
        (["driftscale", "run", "x"], None),
        (["driftscale", "run", "x", "--arms", "global"], ["global"]),
        (["driftscale", "run", "x", "--arms=global, fielding", "--jobs", "2"], ["global", "fielding"]),
        (["driftscale", "run", "x", "--arms", "global", "--arms", "fielding"], ["fielding"]),
        (["driftscale", "run", "x", "… (7 more arguments)"], None),
        (["driftscale", "run", "x", "--arms"], None),
        (["driftscale", "run", "arms=x"], None),
        (["driftscale.run", "arms=x", "seeds=[0]"], None),
        (["driftscale.run", "x", "arms='global'"], ["global"]),
        (["driftscale.run", "x", """arms=['global', "it's"]""", "trial=False"], ["global", "it's"]),
        (["driftscale.run"], None),
    ],
)
def test_a_command_tells_which_arms_it_asked_for(arguments: list[str], arms: list[str] | None) -> None:
    [command] = Manifest.model_validate_json(a_command(json.dumps(arguments))).commands
    assert command.arms == arms


def test_a_manifest_may_lack_what_was_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"versions": {"python": "3.11"}, "sha256": {"0": {"trace": "00"}}}'
    )
    manifest = Manifest.read(tmp_path / "manifest.json")
    assert manifest == Manifest(versions={"python": "3.11"}, sha256={"0": {"trace": "00"}})
    assert (manifest.later_versions, manifest.files) == ([], {})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"versions": 3}', "versions = 3: must be a table"),
        ('{"versions": {"python": 3.11}}', "versions.python = 3.11: input should be a valid string"),
        ('{"later_versions": []}', "later_versions: list should have at least 1 item"),
        ('{"later_versions": {"python": "3.11"}}', "later_versions: input should be a valid list"),
        ('{"later_versions": [3]}', "later_versions.0 = 3: must be a table"),
        ('{"sha256": {"0": {"trace": null}}}', "sha256.0.trace: input should be a valid string"),
        ('{"files": {"a.csv": {"size": 1}}}', "files.a.csv.sha256: field required"),
        (
            '{"files": {"a.csv": {"size": -1, "sha256": "0"}}}',
            "files.a.csv.size = -1: input should be greater",
        ),
        (
            '{"files": {"a.csv": {"size": 1, "sha256": 0}}}',
            "files.a.csv.sha256 = 0: input should be a valid string",
        ),
        (
            '{"files": {"a.csv": {"size": 1, "sha256": "0", "x": 0}}}',
            "files.a.csv: unknown key 'x'; choices: size, sha256",
        ),
        (
            '{"sweep": {"of": "a", "keys": {}, "order": {"x": 1}}}',
            "sweep.order.x = 1: input should be a valid list",
        ),
        ('{"commands": []}', "commands: list should have at least 1 item"),
        ('{"commands": {"0": 1}}', "commands: input should be a valid list"),
        ('{"commands": ["driftscale"]}', "commands.0 = 'driftscale': must be a table"),
        ('{"commands": [{"arguments": ["a"]}]}', "commands.0.started: field required"),
        (a_command("[]"), "commands.0.arguments: list should have at least 1 item"),
        (a_command("[3]"), "commands.0.arguments.0 = 3: input should be a valid string"),
        (
            a_command('["a", "b\\u001b[2J"]'),
            "commands.0.arguments.1 = 'b\\x1b[2J': must be a text of printable characters",
        ),
        (
            a_command('["a\\u202eb"]'),
            "commands.0.arguments.0 = 'a\\u202eb': must be a text of printable characters",
        ),
        (a_command(json.dumps(["a"] * 1001)), "commands.0.arguments: list should have at most 1000 items"),
        (a_command(json.dumps(["a" * 16385])), "commands.0.arguments: must have at most 16384 letters"),
        *(
            (
                a_command(started=wrong),
                "commands.0.started = " + repr(wrong) + ": must be a date and time in UTC, such as 2026-",
            )
            for wrong in ("yesterday", "2026-02-31T12:00:00Z", "2026-01-31T12:00:00", "٢026-01-31T12:00:00Z")
        ),
        *(
            (a_command(git_commit=wrong), "commands.0.git_commit")
            for wrong in (None, "HEAD", "0" * 41, "G" * 40, "0" * 40 + "\n", 3, ["0" * 40])
        ),
        (
            a_command(git_commit="HEAD"),
            "commands.0.git_commit = 'HEAD': must be the hash of a commit (40 or 64",
        ),
        (
            json.dumps({"commands": [{"arguments": ["a"], "started": "2026-01-31T12:00:00Z"}] * 51}),
            "commands: list should have at most 50 items",
        ),
        ('{"file": {}}', "unknown key 'file'; choices: versions, later_versions, commands,"),
        ("[]", "must hold a JSON object"),
        ('{"versions": {}', "cannot be read as JSON"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_named_by_file_and_key(
    tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(DataFileError, match=r"manifest\.json: " + re.escape(problem)):
        Manifest.read(tmp_path / "manifest.json")


@pytest.mark.parametrize("value", ["x" * 10**6, "\x1b[2J"])
def test_an_error_quotes_little_of_a_value_and_nothing_that_a_terminal_obeys(
    tmp_path: Path, value: str
) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"files": value}))
    with pytest.raises(DataFileError, match=r"files = .*: must be a table") as caught:
        Manifest.read(tmp_path / "manifest.json")
    assert len(str(caught.value)) < len(str(tmp_path)) + 100
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "content",
    [
        {str(number): 0 for number in range(MANY)},
        {"versions": {str(number): 0 for number in range(MANY)}},
        {"versions": dict.fromkeys(map(str, range(MANY)), "1") | {"last": 0}},
        {"later_versions": [0] * MANY},
        {"commands": [0] * MANY},
        {"commands": [{"arguments": [0] * MANY, "started": "x" * MANY, "git_commit": "x" * MANY}] * MANY},
        {"sha256": {str(seed): {str(part): 0 for part in range(200)} for seed in range(200)}},
        {"files": {str(number): 0 for number in range(MANY)}},
        {"files": {"a": {str(number): 0 for number in range(MANY)}}},
    ],
    ids=[
        "keys",
        "values",
        "the last",
        "list",
        "commands",
        "arguments",
        "tables of tables",
        "files",
        "keys of a file",
    ],
)
def test_a_file_full_of_errors_is_refused_over_the_first_of_them(content: dict[str, object]) -> None:
    """Each error takes half a kilobyte or more, but as little as two bytes of a file of up to 64 MiB."""
    with pytest.raises(ValidationError) as caught:
        Manifest.model_validate(content)
    assert caught.value.error_count() <= PORTION**2


def test_a_table_of_any_size_is_read_whole_and_in_order() -> None:
    files = {str(number): Identity(size=number, sha256="0") for number in range(3 * PORTION + 1)}
    read = Manifest.model_validate({"files": {name: file.model_dump() for name, file in files.items()}})
    assert list(read.files.items()) == list(files.items())
