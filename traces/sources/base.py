"""What a trace source is: settings in, a `Trace` out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emulator.plugins import Configured
from emulator.seeding import RandomStreams
from traces.trace import Trace


@dataclass(frozen=True)
class TraceContext:
    """What a source is told besides its own settings."""

    rounds: int
    streams: RandomStreams
    locate: Callable[[str], Path]  # finds a path of a configuration: as it stands, or under --data
    scratch: Path | None = None  # a folder with room for the samples of a large trace; None: the system's


class TraceSource(Configured, ABC):
    """Base of trace sources; built with its own frozen settings."""

    @abstractmethod
    def build(self, context: TraceContext) -> Trace:
        """The trace of one seed."""
