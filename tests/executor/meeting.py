"""Ranks as threads of one process: a `Gather` over a shared dictionary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from executor.ranks import Bytes, Gather, LostError, Ranks

INLINE_BYTES = 64  # so that bodies are gathered both ways


class Meeting:
    """Connects `size` ranks in this process; for the others, a rank that leaves is lost."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._board: dict[int, dict[int, Bytes]] = {}
        self._counts = [0] * size
        self._gone: set[int] = set()
        self._changed = threading.Condition()

    def gather(self, rank: int) -> Gather:
        def gather(own: Bytes, timeout_s: float) -> Sequence[Bytes]:
            with self._changed:
                handed = self._board.setdefault(self._counts[rank], {})
                self._counts[rank] += 1
                handed[rank] = own.copy()
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: len(handed) == self.size or self._gone - set(handed), timeout_s
                )
                if len(handed) < self.size:
                    raise LostError("gone")
                assert len({len(each) for each in handed.values()}) == 1
                return [handed[other] for other in range(self.size)]

        return gather

    def leave(self, rank: int) -> None:
        with self._changed:
            self._gone.add(rank)
            self._changed.notify_all()

    def ranks(self, rank: int, **options: Any) -> Ranks:
        options.setdefault("inline_bytes", INLINE_BYTES)
        return Ranks(rank, self.size, self.gather(rank), **options)


def together(size: int, play: Callable[[Ranks], Any], **options: Any) -> list[Any]:
    """What `play` returns in each of `size` ranks, or the error that it raises there."""
    meeting = Meeting(size)
    found: list[Any] = [None] * size

    def run(rank: int) -> None:
        own = {name: value[rank] for name, value in options.items()}
        try:
            found[rank] = play(meeting.ranks(rank, **own))
        except BaseException as error:
            found[rank] = error
        finally:
            meeting.leave(rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a rank waits for ever"
    return found


def columns(length: int) -> np.ndarray:
    return np.arange(length, dtype=np.float64)
