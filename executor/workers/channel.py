"""Messages between two processes: trees over torch.distributed's point-to-point, never pickled objects.

A message is a length and so many bytes (`emulator.state_tree`); what is short goes in one frame with its
length. Each pair of processes has a group of two of
its own, so that one that is lost breaks nobody else's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import torch

from emulator.state_tree import Tree, from_bytes, to_bytes

if TYPE_CHECKING:  # not every torch has it, and runs without workers need none
    from torch._C._distributed_c10d import ProcessGroup, Store

MOST_BYTES = 2**33
"""Of one message. What a length claims is looked at before so much is allocated."""

LENGTH_BYTES = 8
NEAR_FRAME_BYTES, FAR_FRAME_BYTES = 2**17, 2**13
"""Of the first part of each message, on one machine and between several. Every part costs the two sides a
tenth of a millisecond, and bytes that are not needed next to nothing where no network carries them."""

FOREVER = timedelta(days=3650)
CONNECT_S = 120.0  # for both to have found each other

COORDINATOR, WORKER = 0, 1  # ranks in a group of two


class LostError(Exception):
    """The other side is gone, does not answer, or sends what is no message; nothing more can be sent."""


class Channel:
    """One end of a group of two."""

    def __init__(
        self, group: ProcessGroup, peer: int, frame_bytes: int, most_bytes: int = MOST_BYTES
    ) -> None:
        self._group = group
        self._peer = peer
        self._frame_bytes = frame_bytes
        self._most_bytes = most_bytes
        self.sent_bytes = 0
        self.received_bytes = 0

    def send(self, tree: Tree, timeout_s: float | None = None) -> None:
        """LostError unless all of it has been taken within `timeout_s` (None: however long it takes)."""
        content = to_bytes(tree)
        first = np.zeros(self._frame_bytes, dtype=np.uint8)
        first[:LENGTH_BYTES] = np.frombuffer(len(content).to_bytes(LENGTH_BYTES, "little"), np.uint8)
        short = content[: self._frame_bytes - LENGTH_BYTES]
        first[LENGTH_BYTES : LENGTH_BYTES + len(short)] = np.frombuffer(short, np.uint8)
        parts = [torch.from_numpy(first)]
        if len(content) > len(short):
            parts.append(torch.frombuffer(bytearray(memoryview(content)[len(short) :]), dtype=torch.uint8))
        try:
            works = [self._group.send([part], self._peer, 0) for part in parts]
            for work in works:
                work.wait(_limit(timeout_s))
        except RuntimeError as error:
            raise LostError(_first_line(error)) from error
        self.sent_bytes += len(content)

    def receive(self, timeout_s: float | None = None) -> Tree:
        """The next message; LostError where there is none within `timeout_s` (None: however long it takes),
        or it is longer than it may be, or no tree."""
        first = self._read(self._frame_bytes, timeout_s)
        length = int.from_bytes(first[:LENGTH_BYTES].tobytes(), "little")
        if not 0 < length <= self._most_bytes:
            raise LostError(f"a message of {length} bytes: must be at most {self._most_bytes}")
        content = first[LENGTH_BYTES : LENGTH_BYTES + length].tobytes()
        if length > len(content):
            content += self._read(length - len(content), timeout_s).tobytes()
        self.received_bytes += length
        try:
            return from_bytes(content)
        except ValueError as error:
            raise LostError(f"a message that is none ({error})") from error

    def _read(self, num_bytes: int, timeout_s: float | None) -> npt.NDArray[np.uint8]:
        place = torch.empty(num_bytes, dtype=torch.uint8)
        try:
            self._group.recv([place], self._peer, 0).wait(_limit(timeout_s))
        except RuntimeError as error:
            raise LostError(_first_line(error)) from error
        found: npt.NDArray[np.uint8] = place.numpy()
        return found


def connect(store: Store, rank: int, *, loopback: bool) -> Channel:
    """This end of a group of two, once the other one is there; LostError where it never comes.

    `loopback`, which both ends say alike: listen on the loopback interface alone. Else it is on the one that
    torch.distributed takes, which GLOO_SOCKET_IFNAME names.
    """
    from torch._C._distributed_c10d import ProcessGroupGloo

    options = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._timeout = timedelta(seconds=CONNECT_S)
    options._threads = 1
    device = (
        ProcessGroupGloo.create_device(hostname="127.0.0.1")
        if loopback
        else ProcessGroupGloo.create_default_device()
    )
    options._devices = [device]
    try:
        group = ProcessGroupGloo(store, rank, 2, options)
    except RuntimeError as error:
        raise LostError(_first_line(error)) from error
    # It has the verbs of a `ProcessGroup`, though to torch it is only what one is made of.
    peer = WORKER if rank == COORDINATOR else COORDINATOR
    return Channel(cast("ProcessGroup", group), peer, NEAR_FRAME_BYTES if loopback else FAR_FRAME_BYTES)


def _limit(timeout_s: float | None) -> timedelta:
    return FOREVER if timeout_s is None else timedelta(seconds=timeout_s)


def _first_line(error: RuntimeError) -> str:
    return str(error).partition("\n")[0].partition("] ")[2] or str(error).partition("\n")[0]
