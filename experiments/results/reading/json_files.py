"""JSON files of a run directory as types: the manifest and the timing.

They are validated on reading, so that their users need no checks: a run directory may come from somebody
else.
"""

from __future__ import annotations

import re
import reprlib
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from emulator.errors import DataFileError
from emulator.storage.bounded import read_json

T = TypeVar("T")

PORTION = 100
"""Number of items of a table that are validated together."""

MOST_TEXT_LETTERS = 255
"""Most letters of the name of a host or of its CPU capability."""

MOST_COMMANDS = 50
"""Most commands of a manifest: the first one, and the newest others."""

MOST_ARGUMENTS = 1000
"""Most arguments of a recorded command."""

MOST_COMMAND_LETTERS = 2**14
"""Most letters of the arguments of a recorded command together."""

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
"""Date and time in UTC, as ISO 8601 has it."""

CALL = "driftscale.run"
"""The first argument that is recorded of a call from Python."""

_QUOTED = re.compile(r"""(['"])(.*?)\1""")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _in_portions(table: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate `table` in portions, and stop at the first portion with an error; returns the valid table.

    Pydantic makes half a kilobyte of each error, and has no other way to stop at the first error of a table.
    """
    if not isinstance(table, dict) or not table:
        return validate(table)
    items = iter(table.items())
    valid: dict[str, Any] = {}
    while portion := dict(islice(items, PORTION)):
        valid |= validate(portion)
    return valid


def _refuse_unprintable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be a text of printable characters")
    return text


def _refuse_null(value: object) -> object:
    if value is None:
        raise ValueError("must be a number, or left out")
    return value


def is_commit(text: str) -> bool:
    """Whether `text` is the full hash of a git commit: 40 or 64 hexadecimal digits, in lower case."""
    return _COMMIT.fullmatch(text) is not None


def _refuse_other_than_a_time(text: str) -> str:
    try:
        if _TIME.fullmatch(text):
            datetime.strptime(text, TIME_FORMAT)
            return text
    except ValueError:  # such as the 31st of February
        pass
    raise ValueError("must be a date and time in UTC, such as 2026-01-31T12:00:00Z")


def _refuse_other_than_a_commit(value: object) -> object:
    if not isinstance(value, str) or not is_commit(value):
        raise ValueError("must be the hash of a commit (40 or 64 hexadecimal digits), or left out")
    return value


def _refuse_long_command(arguments: list[str]) -> list[str]:
    if sum(map(len, arguments)) > MOST_COMMAND_LETTERS:
        raise ValueError(f"must have at most {MOST_COMMAND_LETTERS} letters together")
    return arguments


Table = Annotated[dict[str, T], WrapValidator(_in_portions)]
Text = Annotated[str, Field(max_length=MOST_TEXT_LETTERS), AfterValidator(_refuse_unprintable)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
NotMeasured = Annotated[Amount | None, BeforeValidator(_refuse_null)]
"""A number, or None if the key is left out; null is refused."""


class JsonTable(BaseModel):
    """Base of these files and their tables: immutable; refuses unknown keys and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_key(cls, values: object) -> object:
        """Refuse the first unknown key; by default, pydantic collects all of them."""
        for key in values if isinstance(values, dict) and cls.model_config["extra"] == "forbid" else ():
            if key not in cls.model_fields:
                raise ValueError(f"unknown key {reprlib.repr(key)}; choices: {', '.join(cls.model_fields)}")
        return values

    @classmethod
    def read(cls, path: Path) -> Self:
        """The content of the file; DataFileError names the file, the key and the rule that is broken."""
        try:
            content = read_json(path)
        except (OSError, ValueError) as error:
            raise DataFileError(path, f"cannot be read as JSON ({error})") from error
        if not isinstance(content, dict):
            raise DataFileError(path, "must hold a JSON object")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise DataFileError(path, _first_problem(error)) from error


def _first_problem(error: ValidationError) -> str:
    """`key.path = value: rule` for the first error."""
    problem = error.errors(include_url=False)[0]
    key, value = ".".join(map(str, problem["loc"])), problem["input"]
    shown = f" = {reprlib.repr(value)}" if isinstance(value, str | int | float) else ""
    is_table = problem["type"] in ("dict_type", "model_type")
    rule = "must be a table" if is_table else problem["msg"].removeprefix("Value error, ")
    return f"{key}{shown}: {rule[0].lower()}{rule[1:]}" if key else rule


class Identity(JsonTable):
    """A file's size in bytes and its sha256."""

    size: Count
    sha256: str


class Command(JsonTable):
    """A command that played runs: its arguments, when it was started, and of which commit.

    `git_commit` is the one that was checked out in the configuration's folder; left out if it has none.
    """

    arguments: Annotated[
        list[Annotated[str, AfterValidator(_refuse_unprintable)]],
        Field(min_length=1, max_length=MOST_ARGUMENTS),
        FailFast(),
        AfterValidator(_refuse_long_command),
    ]
    started: Annotated[str, AfterValidator(_refuse_other_than_a_time)]
    git_commit: Annotated[str | None, BeforeValidator(_refuse_other_than_a_commit)] = None

    @property
    def arms(self) -> list[str] | None:
        """The arms that it asked for; None for all, and where its arguments do not say.

        >>> typed = ["driftscale", "run", "digits", "--arms", "global, prior"]
        >>> called, at = ["driftscale.run", "digits", "arms=['global', 'prior']"], "2026-01-31T12:00:00Z"
        >>> [Command(arguments=given, started=at).arms for given in (typed, called, typed[:3])]
        [['global', 'prior'], ['global', 'prior'], None]
        """
        program, *given = self.arguments
        if program == CALL:
            calls = [text for text in given[1:] if text.startswith("arms=")]
            return [name for _, name in _QUOTED.findall(calls[-1])] if calls else None
        values = [value for option, value in pairwise(given) if option == "--arms"]
        values += [text.removeprefix("--arms=") for text in given if text.startswith("--arms=")]
        return [name.strip() for name in values[-1].split(",")] if values else None


class SweepCell(JsonTable):
    """The cell of a sweep.

    `of` names the swept configuration, `keys` has this cell's values by key. `order` has the values of each
    key in the order given to the command that last played runs of this cell; it leaves out keys with too many
    values (`swept_values.MOST_ORDER_LETTERS`).
    """

    of: Text
    keys: Table[JsonValue]
    order: Table[list[JsonValue]] = {}


class Manifest(JsonTable):
    """`manifest.json`: the versions, commands, machine, files and worlds behind a directory's runs."""

    versions: Table[str] = {}
    later_versions: Annotated[list[Table[str]], Field(min_length=1), FailFast()] = []
    commands: Annotated[list[Command], Field(min_length=1, max_length=MOST_COMMANDS), FailFast()] = []
    """The commands that recorded a world, in order: the first one, and the newest others."""
    machine: str = ""
    profile: Table[str] = {}
    availability: Table[int] = {}
    random_streams: str = ""
    random_layers: str = ""
    sha256: Table[Table[str]] = {}
    """The hash of each part of a world, by seed and by name of the part."""
    files: Table[Identity] = {}
    """The files that were read, by their path in the configuration."""
    sweep: SweepCell | None = None
    """The cell of a sweep that the runs belong to; left out for other runs."""


class Until(JsonTable):
    """Where --until stopped a run: at `rounds`, of `planned`, which is None if only its end shows it.

    >>> str(Until(rounds=100, planned=200)), str(Until(rounds=100, planned=None))
    ('100 of 200 rounds', 'round 100')
    """

    rounds: Annotated[int, Field(ge=1)]
    planned: int | None

    def __str__(self) -> str:
        return f"round {self.rounds}" if self.planned is None else f"{self.rounds} of {self.planned} rounds"


class Timing(JsonTable):
    """`timing.json`: times and memory of a run, and where it ran.

    Times and counts that are left out are 0; `cpu_s` and `peak_memory_bytes`, if left out, were not measured.
    """

    host: Text = ""
    cpu_capability: Text = ""
    wall_s: Amount
    train_s: Amount = 0.0
    evaluate_s: Amount = 0.0
    score_s: Amount = 0.0
    report_s: Amount = 0.0
    cluster_s: Amount = 0.0
    cpu_s: NotMeasured = None
    peak_memory_bytes: NotMeasured = None
    resumed: Count = 0
    halved_cohorts: Count = 0
    lost_workers: Count = 0
    runs_beside: Count = 0
    arms_beside: Count = 0
