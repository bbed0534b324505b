"""Ranks as threads of one process: a `Gather` over a shared dictionary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from executor.ranks import Bytes, Gather, LostError, Ranks

INLINE_BYTES = 64  # so that short and long bodies occur


class Meeting:
    """Connects `size` ranks in this process; for the others, a rank that leaves is lost."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._board: dict[int, dict[int, Bytes]] = {}
        self._counts = [0] * size
        self._left: set[int] = set()
        self._changed = threading.Condition()

    def gather(self, rank: int) -> Gather:
        def gather(array: Bytes, timeout_s: float) -> Sequence[Bytes]:
            with self._changed:
                arrays = self._board.setdefault(self._counts[rank], {})
                self._counts[rank] += 1
                arrays[rank] = array.copy()
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: len(arrays) == self.size or self._left - set(arrays), timeout_s
                )
                if len(arrays) < self.size:
                    raise LostError("gone")
                assert len({len(contributed) for contributed in arrays.values()}) == 1
                return [arrays[of_rank] for of_rank in range(self.size)]

        return gather

    def leave(self, rank: int) -> None:
        with self._changed:
            self._left.add(rank)
            self._changed.notify_all()

    def ranks(self, rank: int, **options: Any) -> Ranks:
        options.setdefault("inline_bytes", INLINE_BYTES)
        return Ranks(rank, self.size, self.gather(rank), **options)


def together(size: int, play: Callable[[Ranks], Any], **options: Any) -> list[Any]:
    """What `play` returns in each of `size` ranks, or the error that it raises there."""
    meeting = Meeting(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        of_rank = {name: values[rank] for name, values in options.items()}
        try:
            results[rank] = play(meeting.ranks(rank, **of_rank))
        except BaseException as error:
            results[rank] = error
        finally:
            meeting.leave(rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a rank waits for ever"
    return results


def columns(length: int) -> np.ndarray:
    return np.arange(length, dtype=np.float64)
