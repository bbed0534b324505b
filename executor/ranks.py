"""The ranks of one job, and the exchange that is their only communication: an all-gather of state trees.

`executor.gloo` connects the ranks, on one machine or several. Every rank plays the same deterministic run,
so all ranks make the same exchanges in the same order: each contributes a tree and receives the trees of
all. A rank that fails makes one more exchange, which reports its error, and all ranks raise that error; so
their counts of exchanges stay equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emulator.errors import EmulatorError, ResumableError
from emulator.storage.state_tree import Tree, from_bytes, to_bytes
from executor.failures import packed_error, unpacked_error

Bytes = npt.NDArray[np.uint8]

FIRST_TIMEOUT_S = 600.0  # until rank 0 has sent the others its executor.worker_timeout_s

NEAR_BYTES, FAR_BYTES = 2**17, 2**12
"""How many bytes of a body are sent along with its header: between ranks on loopback, and between others.

The rest needs a second gather, which takes a tenth of a millisecond on one machine, where bytes cost next to
nothing.
"""

MOST_BYTES = 2**33
"""The largest body. A header's length is checked against it before memory is allocated."""

NO_DIGEST = bytes(32)

HEADER = np.dtype(
    [
        ("sequence", "<i8"),
        ("well", "<i8"),
        ("asked", "<i8"),
        ("length", "<i8"),
        ("cpu_s", "<f8"),
        ("memory_bytes", "<f8"),
        ("digest", "V32"),
    ]
)


class LostError(Exception):
    """Another rank has exited, or was silent for too long."""


class Gather(Protocol):
    """All-gather: contributes `array`, and returns the arrays of all ranks, in the order of ranks.

    All ranks must contribute arrays of the same length. Raises LostError after `timeout_s`, or when a rank
    has exited.
    """

    def __call__(self, array: Bytes, timeout_s: float) -> Sequence[Bytes]: ...


@dataclass
class Spent:
    """CPU seconds and peak memory in bytes, each summed over the other ranks, as of the last exchange."""

    cpu_s: float = 0.0
    memory_bytes: float = 0.0


class Ranks:
    """A job of connected ranks, as seen by its rank `rank` of `size`.

    `wants_stop()` returns whether this rank was asked to stop, `spent()` the CPU seconds and the peak memory
    of this process so far. The attribute `stop_requested` is the same in all ranks: whether one of them had
    been asked to stop before the last exchange. After an error that all ranks raise, `ends` tells whether it
    ends the job or only the current run. `is_alone`: another rank is lost, which ends the job too.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        gather: Gather,
        wants_stop: Callable[[], bool] = lambda: False,
        spent: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
        inline_bytes: int = NEAR_BYTES,
    ) -> None:
        self.rank, self.size = rank, size
        self.timeout_s = FIRST_TIMEOUT_S
        self.stop_requested = False
        self.ends = False
        self.is_alone = False
        self.others = Spent()
        self.exchanges = 0
        self._gather = gather
        self._wants_stop = wants_stop
        self._spent = spent
        self._inline_bytes = inline_bytes
        self._shared_error: BaseException | None = None  # that every rank raises

    def exchange(self, content: Tree, digest: bytes = NO_DIGEST, doing: str = "") -> list[Tree]:
        """Send `content` to all ranks; returns the contents of all ranks, in the order of ranks.

        `digest` is a hash of the inputs of what the rank is `doing`. In all ranks, raises the error of the
        lowest rank that reports one, and ResumableError when a rank's digest differs from that of rank 0.
        Also raises ResumableError when a rank has exited or was silent for `timeout_s`, or its message cannot
        be read.
        """
        try:
            headers, bodies = self._exchange(content, True, digest)
        except LostError as error:
            self._shared_error, self.is_alone = ResumableError(str(error)), True
            raise self._shared_error from error
        if (headers["well"] == 0).any():
            self._shared_error = self._reported_error(headers, bodies)
            raise self._shared_error
        deviating = np.flatnonzero(headers["digest"] != headers["digest"][0])
        if len(deviating):
            raise self.agreed(
                ResumableError(
                    f"rank {deviating[0]} computes something else than rank 0"
                    f"{f', {doing}' if doing else ''}: another CPU or another version of a library rounds "
                    f"differently"
                )
            )
        return bodies

    @contextmanager
    def telling(self, *, ends: bool) -> Iterator[None]:
        """Within it, an error of this rank alone is reported to the others, and all ranks raise it.

        If a lower rank reports an error in the same exchange, all raise that one. Not reported, but raised as
        they are: an error that all ranks raise already, and a KeyboardInterrupt once `stop_requested`.
        `ends`: whether the error ends the job, or only the current run.
        """
        try:
            yield
        except BaseException as error:
            if self._is_shared(error) or (isinstance(error, KeyboardInterrupt) and self.stop_requested):
                raise
            try:
                headers, bodies = self._exchange({"ends": ends, **packed_error(error)}, False, NO_DIGEST)
            except LostError:
                self.is_alone = True
                raise error from None
            reported = self._reported_error(headers, bodies)
            self._shared_error = error if headers["well"][: self.rank].all() else reported
            if self._shared_error is error:
                raise
            raise reported from error

    def _is_shared(self, error: BaseException | None) -> bool:
        """Whether all ranks raise `error`, or the error that caused it."""
        while error is not None and error is not self._shared_error:
            error = error.__cause__
        return error is not None

    def agreed(self, error: EmulatorError) -> EmulatorError:
        """Take note that every rank raises `error` for the same reason, and return it for raising.

        The error ends the job; `telling` does not report it.
        """
        self._shared_error, self.ends = error, True
        return error

    def _reported_error(self, headers: npt.NDArray[np.void], bodies: Sequence[Tree]) -> BaseException:
        """The error of the lowest rank that reports one."""
        rank = int(np.flatnonzero(headers["well"] == 0)[0])
        body = dict(bodies[rank])
        self.ends = bool(body.pop("ends"))
        return unpacked_error(body, f"in rank {rank} of {self.size}")

    def _exchange(self, content: Tree, well: bool, digest: bytes) -> tuple[npt.NDArray[np.void], list[Tree]]:
        """The headers and the bodies of all ranks; that of a rank that is not `well` is its packed error."""
        body = b"" if content is None else to_bytes(content)
        cpu_s, memory_bytes = self._spent()
        header = np.array(
            [(self.exchanges, well, self._wants_stop(), len(body), cpu_s, memory_bytes, digest)], dtype=HEADER
        )
        self.exchanges += 1
        first = np.zeros(HEADER.itemsize + self._inline_bytes, dtype=np.uint8)
        first[: HEADER.itemsize] = header.view(np.uint8)
        _put(first[HEADER.itemsize :], body[: self._inline_bytes])
        firsts = self._gathered(first)
        headers = np.concatenate([message[: HEADER.itemsize] for message in firsts]).view(HEADER)
        self._read_headers(headers)
        try:
            return headers, self._bodies(content, body, headers, firsts)
        except MemoryError as error:  # cannot be reported: the other ranks wait for this one's body
            raise LostError(f"no memory for a message of {headers['length'].max()} bytes") from error

    def _bodies(
        self, content: Tree, body: bytes, headers: npt.NDArray[np.void], firsts: Sequence[Bytes]
    ) -> list[Tree]:
        """The content of each rank, in the order of ranks; gathers a second time if a body is long.

        Long means longer than the `inline_bytes` that were sent along with the headers in `firsts`. `content`
        is this rank's own, and `body` the same in bytes.
        """
        parts = [[message[HEADER.itemsize :]] for message in firsts]
        more = int(headers["length"].max()) - self._inline_bytes
        if more > 0:
            second = np.empty(more, dtype=np.uint8)
            _put(second, memoryview(body)[self._inline_bytes :])
            for part, rest in zip(parts, self._gathered(second), strict=True):
                part.append(rest)
        bodies = []
        for rank, (part, length) in enumerate(zip(parts, headers["length"].tolist(), strict=True)):
            if rank == self.rank:
                bodies.append(content)
            elif length <= self._inline_bytes:
                bodies.append(self._tree(part[0][:length].tobytes()))
            else:
                bodies.append(self._tree(np.concatenate(part)[:length].tobytes()))
        return bodies

    def _gathered(self, array: Bytes) -> Sequence[Bytes]:
        try:
            return self._gather(array, self.timeout_s)
        except LostError as error:
            lost = f"rank {1 - self.rank}" if self.size == 2 else f"another of the {self.size} ranks"
            raise LostError(
                f"{lost} is gone, or silent for executor.worker_timeout_s = {self.timeout_s:g} ({error})"
            ) from error

    def _read_headers(self, headers: npt.NDArray[np.void]) -> None:
        """Update `stop_requested` and `others` from the headers of all ranks.

        Raises LostError for a header of another exchange, or one that announces a body of an impossible
        length.
        """
        if (headers["sequence"] != self.exchanges - 1).any():
            sequence = ", ".join(str(number) for number in headers["sequence"])
            raise LostError(f"ranks are out of step, in exchanges {sequence}: a mistake in driftscale")
        if headers["length"].min() < 0 or headers["length"].max() > MOST_BYTES:
            raise LostError(f"a message of {headers['length'].max()} bytes: must be at most {MOST_BYTES}")
        self.stop_requested = self.stop_requested or bool(headers["asked"].any())
        others = np.arange(self.size) != self.rank
        self.others = Spent(
            float(headers["cpu_s"][others].sum()), float(headers["memory_bytes"][others].sum())
        )

    def _tree(self, content: bytes) -> Tree:
        if not content:
            return None
        try:
            return from_bytes(content)
        except ValueError as error:
            raise LostError(f"a message that is not a state tree ({error})") from error


def _put(target: Bytes, content: bytes | memoryview) -> None:
    target[: len(content)] = np.frombuffer(content, dtype=np.uint8)
