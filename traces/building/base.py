"""Base class of builders, which make a trace folder of a data set as it is published."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from emulator.numbers import Number, Seed
from emulator.plugins import Configured, Settings
from emulator.storage.reading.bounds import MOST_CELLS
from traces.files.arrivals import When

KEEPS_ALL: Mapping[str, object] = {"retain_rounds": "all"}
"""Settings of the source `file` with which clients keep all samples, as where all are owned at the start."""


@dataclass(frozen=True)
class Watch:
    """Where a build reports: `progress(done, total)` in images or rows, `note(text)` in lines."""

    progress: Callable[[int, int], None] = lambda done, total: None
    note: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class Request:
    """What a builder gets besides its settings.

    Attributes:
        root: The data set: a folder or, for a kind that says so, a file.
        out: The trace folder to make.
        workers: Threads that decode; any number gives the same bytes.
        fresh: Delete what an interrupted build of `out` left, instead of resuming it.
        watch: Where to report.
    """

    root: Path
    out: Path
    workers: int = 1
    fresh: bool = False
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True)
class Built:
    """What a build has made.

    `first` and `last` are the earliest and the latest arrival in the unit of `when`: data steps,
    microseconds since 1970, or ranks. `left_out` counts the samples that could not be read. `play` has the
    settings of the source `file` that the data set is played with, besides `folder`.
    """

    clients: int
    train: int
    test: int
    classes: int
    shape: tuple[int, ...]
    when: When
    first: int
    last: int
    left_out: int
    num_bytes: int
    notes: tuple[str, ...] = ()
    play: Mapping[str, object] = field(default_factory=dict)


class BuilderSettings(Settings):
    """The settings that every builder has."""

    seed: Seed = Field(0, description="seed of all that is drawn: test samples, partitions, buckets")
    most_cells: Annotated[int, Number(ge=1, le=2**40)] = Field(
        MOST_CELLS, description="most cells (rows x columns) that are read, each of which may take six bytes"
    )


class Builder(Configured, ABC):
    """Base class of all builders, built with its own frozen settings.

    `needs` says in one line what `root` must have, for the help; `licence` is written into `trace.toml`.
    """

    needs: ClassVar[str]
    licence: ClassVar[str] = ""

    Settings: ClassVar[type[Settings]] = BuilderSettings

    @classmethod
    def refuse_root(cls, root: Path) -> None:
        """Raise DataFileError if the name alone says that the kind cannot read it, before settings are read.

        Args:
            root: the data set.
        """

    @abstractmethod
    def build(self, request: Request) -> Built:
        """Build the trace folder `request.out`; a build that was interrupted is resumed.

        Args:
            request: the data set, the folder to make, and how to go about it.

        Returns:
            What has been made.

        Raises:
            InputError: the data set or the settings break a rule.
            ResumableError: the disk is full; the same request resumes the build.
        """
