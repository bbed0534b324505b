"""`trace.toml`: what the samples of a trace folder are, and the digests of the other files."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field, ValidationError, field_validator, model_validator

from emulator.errors import DataFileError
from emulator.numbers import LARGEST, Count, Number
from emulator.plugins import Settings
from emulator.storage.bounded import has_controls, read_toml
from emulator.storage.checkpoints import write_durably
from traces.files.features import TARGETS

FACTS, ARRIVALS, FEATURES = "trace.toml", "arrivals.parquet", "features.npy"

MOST_FACTS_BYTES = 2**24
"""Largest `trace.toml`: the names of a hundred thousand classes."""

MOST_TOKENS = 2**24
"""Most tokens of a vocabulary: their ids are exact as numbers of 32 bits."""

_PIECE = 2**20

_SETTLED_NS = 2 * 10**9
"""Age of a file's last change from which a further one shows in its times, on every file system."""

_hashed: dict[tuple[int, ...], FileFacts] = {}

Size = Annotated[int, Number(ge=0, lt=2**63)]
Finite = Annotated[float, Number(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Number(gt=0, le=LARGEST)]


class FileFacts(Settings):
    """The size and the digest of a file."""

    num_bytes: Size = Field(alias="bytes")
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class TokenFacts(Settings):
    """Samples are texts: ids of tokens, whole numbers below `vocabulary`; `padding` fills up short ones."""

    vocabulary: Annotated[int, Number(ge=1, le=MOST_TOKENS)] = Field(description="number of tokens")
    padding: Annotated[int, Number(ge=0, lt=MOST_TOKENS)] | None = Field(
        None, description="the id that fills up short texts, and is no token"
    )

    @model_validator(mode="after")
    def _padding_is_an_id(self) -> TokenFacts:
        if self.padding is not None and self.padding >= self.vocabulary:
            raise ValueError(f"padding = {self.padding}: must be below vocabulary = {self.vocabulary}")
        return self


class TraceFacts(Settings):
    """The content of `trace.toml`; only `version` is required.

    A feature is (value * scale - mean) / deviation, with one mean and one deviation per channel: the first
    dimension of a sample of one or three dimensions; samples of two have one channel.
    """

    version: Literal[1, 2]
    """Version 2: samples that expire, or names of classes that a builder has taken from its table."""
    shape: tuple[Count, ...] | None = None
    """The shape of a sample; if given, it must be that of `features.npy`."""
    scale: Positive | None = None
    """Factor of the values; if left out, 1/255 for bytes and 1 for floats."""
    mean: tuple[Finite, ...] | None = None
    deviation: tuple[Positive, ...] | None = None
    classes: tuple[str, ...] | None = None
    """Class i is named `classes[i]`; if left out, the labels of the arrivals name them."""
    tokens: TokenFacts | None = None
    """If given, values are ids, and no features: there is no scale, mean or deviation."""
    objective: Mapping[str, Any] | None = None
    """What a model is to be trained on and scored by, as a configuration has it; if left out, labels."""
    origin: str = ""
    licence: str = ""
    files: Mapping[str, FileFacts] = Field(default_factory=dict)
    """Sizes and digests; a folder without them is hashed whenever it is read."""

    @field_validator("objective", mode="before")
    @classmethod
    def _a_word_is_its_kind(cls, objective: Any) -> Any:
        return {"kind": objective} if isinstance(objective, str) else objective

    @field_validator("files")
    @classmethod
    def _files_are_known(cls, files: Mapping[str, FileFacts]) -> Mapping[str, FileFacts]:
        for name in files:
            if name not in (ARRIVALS, FEATURES, TARGETS):
                raise ValueError(f"{name!r}: must be {ARRIVALS}, {FEATURES} or {TARGETS}")
        return files

    @field_validator("classes")
    @classmethod
    def _classes_differ(cls, classes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        names = classes or ()
        if len(set(names)) < len(names):
            [(twice, _)] = Counter(names).most_common(1)
            raise ValueError(f"has {twice!r} twice; every class has a name of its own")
        for name in names:
            if not name.strip() or has_controls(name):
                raise ValueError(f"{name!r} is no name of a class")
        return classes


def read_facts(folder: Path) -> TraceFacts:
    """Read the `trace.toml` of a trace folder.

    Raises:
        DataFileError: it is missing, is not TOML, or breaks a rule; the message names the key.
    """
    path = folder / FACTS
    if not folder.is_dir():
        raise DataFileError(folder, "no such folder")
    if not path.exists():
        raise DataFileError(
            folder, f"not a trace folder: it has no {FACTS}; it needs {FACTS}, {ARRIVALS} and {FEATURES}"
        )
    try:
        return TraceFacts.model_validate(read_toml(path, MOST_FACTS_BYTES))
    except ValidationError as error:
        raise DataFileError(path, broken_rule(error.errors()[0])) from error
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read as TOML ({error})") from error


def broken_rule(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors in one line, with the key if it is of one."""
    key = ".".join(map(str, error["loc"]))
    rule = str(error["msg"]).removeprefix("Value error, ")
    return f"{key}: {rule}" if key else rule


def write_facts(folder: Path, facts: TraceFacts) -> None:
    """Write the `trace.toml` of a trace folder, and flush it to the disk; a link there is replaced."""
    table: dict[str, Any] = facts.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not table["files"]:
        del table["files"]
    write_durably(folder / FACTS, tomli_w.dumps(table))


def file_facts(path: Path) -> FileFacts:
    """Read the size and compute the digest of a file; DataFileError if it cannot be read.

    The whole file is read; `remembered_facts` reads it once.
    """
    state, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                state.update(piece)
                size += len(piece)
    except OSError as error:
        raise DataFileError(path, f"cannot be read ({error.strerror})") from error
    return FileFacts(bytes=size, sha256=state.hexdigest())


def remembered_facts(path: Path) -> FileFacts:
    """Like `file_facts`, but a file that has not changed since this process hashed it is not read again.

    It counts as unchanged if it is the same file with the same size and times, and was not written to
    shortly before it was hashed: a second change within one tick of the clock would leave its times alone.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise DataFileError(path, f"cannot be read ({error.strerror})") from error
    key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    if key in _hashed:
        return _hashed[key]
    facts = file_facts(path)
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED_NS:
        _hashed[key] = facts
    return facts
