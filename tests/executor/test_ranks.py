from __future__ import annotations

import hashlib
import threading

import numpy as np
import pytest

from emulator.errors import ResumableError, RunError, UnknownNameError
from emulator.storage.state_tree import Tree
from executor.failures import PeerFaultError
from executor.ranks import HEADER, Bytes, LostError, Ranks
from tests.executor.meeting import INLINE_BYTES, columns, together


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_gets_the_contents_of_all_of_any_length(size: int) -> None:
    def play(ranks: Ranks) -> list[Tree]:
        lengths = (0, 1, 5, 400)
        return [
            *(ranks.exchange({"rank": ranks.rank, "column": columns(length)}) for length in lengths),
            ranks.exchange({"column": columns(300)} if ranks.rank == size - 1 else None),
            ranks.exchange(None),
        ]

    for exchanges in together(size, play):
        for length, contents in zip((0, 1, 5, 400), exchanges, strict=False):
            assert [content["rank"] for content in contents] == list(range(size))
            assert all(content["column"].tolist() == columns(length).tolist() for content in contents)
        assert exchanges[-2][:-1] == [None] * (size - 1)
        assert len(exchanges[-2][-1]["column"]) == 300 > INLINE_BYTES
        assert exchanges[-1] == [None] * size


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RunError("diverged"), RunError, "diverged"),
        (ResumableError("no room"), ResumableError, "no room"),
        (UnknownNameError("arm", "x", ["y"]), Exception, "unknown arm 'x'"),
        (OSError(28, "No space left", "log.jsonl"), OSError, "log.jsonl"),
        (MemoryError("8 GiB"), MemoryError, "8 GiB"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
        (ZeroDivisionError("by zero"), PeerFaultError, "in rank 1 of 3: ZeroDivisionError: by zero"),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_the_error_of_one_rank_is_raised_in_all(
    error: BaseException, kind: type[BaseException], text: str, ends: bool
) -> None:
    def play(ranks: Ranks) -> tuple[object, ...]:
        try:
            with ranks.telling(ends=ends):
                if ranks.rank == 1:
                    raise error
                ranks.exchange({"well": True})
        except BaseException as raised:
            return type(raised), str(raised), ranks.ends, ranks.exchange(ranks.rank)
        return ()

    results = together(3, play)
    assert [result[3] for result in results] == [[0, 1, 2]] * 3  # the next exchange works
    assert results[1][:3] == (type(error), str(error), ends)
    for raised, message, ended, _ in (results[0], results[2]):
        assert issubclass(raised, kind)
        assert text in message
        assert ended == ends


def test_of_several_errors_that_of_the_lowest_rank_is_raised() -> None:
    def play(ranks: Ranks) -> None:
        with ranks.telling(ends=False):
            if ranks.rank > 0:
                raise RunError(f"of rank {ranks.rank}")
            ranks.exchange(None)

    assert [str(error) for error in together(4, play)] == ["of rank 1"] * 4


def test_an_error_that_all_raise_is_reported_once_even_if_wrapped() -> None:
    def play(ranks: Ranks) -> int:
        for _ in range(3):
            with pytest.raises(ResumableError, match="stopped in round 3"):
                fail(ranks)
        return ranks.exchanges

    def fail(ranks: Ranks) -> None:
        with ranks.telling(ends=True), ranks.telling(ends=False):
            try:
                if ranks.rank == 0:
                    raise OSError(28, "No space left")
                ranks.exchange(None)
            except OSError as error:
                raise ResumableError("stopped in round 3") from error

    assert together(2, play) == [3, 3]


def test_a_rank_that_computes_something_else_is_named_in_all() -> None:
    def play(ranks: Ranks) -> None:
        content = b"another" if ranks.rank == 2 else b"the same"
        ranks.exchange(None, hashlib.sha256(content).digest(), "training in round 7")

    for error in together(4, play):
        assert isinstance(error, ResumableError)
        assert str(error).startswith("rank 2 computes something else than rank 0, training in round 7")


def test_a_rank_that_is_gone_or_silent_ends_the_others() -> None:
    def play(ranks: Ranks) -> None:
        ranks.exchange(None)
        if ranks.rank == 1:
            return
        ranks.timeout_s = 0.2
        ranks.exchange(None)

    first, second, third = together(3, play)
    assert second is None
    for error in (first, third):
        assert isinstance(error, ResumableError)
        assert "another of the 3 ranks is gone, or silent for executor.worker_timeout_s = 0.2" in str(error)
    assert "rank 1 is gone" in str(together(2, play)[0])


def test_a_silent_rank_is_given_up_after_the_timeout() -> None:
    given_up = threading.Event()

    def play(ranks: Ranks) -> None:
        ranks.timeout_s = 0.2
        if ranks.rank == 1:
            assert given_up.wait(60)
            return
        with pytest.raises(ResumableError, match="rank 1 is gone, or silent"):
            ranks.exchange(None)
        assert ranks.is_alone
        given_up.set()

    assert together(2, play) == [None, None]


def test_a_rank_raises_its_own_error_if_the_others_are_gone() -> None:
    def play(ranks: Ranks) -> None:
        with ranks.telling(ends=True):
            if ranks.rank == 0:
                raise RunError("mine")

    assert [str(error) for error in together(2, play)] == ["mine", "None"]


def test_a_stop_of_one_rank_is_agreed_on_in_the_next_exchange() -> None:
    def play(ranks: Ranks) -> list[bool]:
        requested = []
        for _ in range(3):
            ranks.exchange(None)
            requested.append(ranks.stop_requested)
        return requested

    counts = iter(range(100))
    wants_stop = [lambda: False, lambda: next(counts) >= 1, lambda: False]
    assert together(3, play, wants_stop=wants_stop) == [[False, True, True]] * 3


def test_cpu_time_and_memory_of_the_others_are_summed() -> None:
    def play(ranks: Ranks) -> tuple[float, float]:
        ranks.exchange(None)
        return ranks.others.cpu_s, ranks.others.memory_bytes

    spent = [lambda: (1.0, 10.0), lambda: (2.0, 20.0), lambda: (4.0, 40.0)]
    assert together(3, play, spent=spent) == [(6.0, 60.0), (5.0, 50.0), (3.0, 30.0)]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("sequence", 5, "out of step, in exchanges 0, 5"),
        ("length", 2**40, r"a message of 1099511627776 bytes: must be at most"),
        ("length", 9, "a message that is not a state tree"),
    ],
)
def test_an_invalid_message_is_refused_before_it_is_used(name: str, value: int, text: str) -> None:
    def gather(array: Bytes, timeout_s: float) -> list[Bytes]:
        invalid = array.copy()
        invalid[: HEADER.itemsize].view(HEADER)[name] = value
        return [array, invalid]

    with pytest.raises(ResumableError, match=text):
        Ranks(0, 2, gather).exchange(None)


def test_a_lost_rank_is_resumable() -> None:
    def gather(array: Bytes, timeout_s: float) -> list[Bytes]:
        raise LostError("Connection closed by peer")

    with pytest.raises(ResumableError, match=r"rank 0 is gone, .* \(Connection closed by peer\)"):
        Ranks(1, 2, gather).exchange(np.zeros(3))


def test_a_content_that_cannot_be_sent_is_an_error_of_all() -> None:
    def play(ranks: Ranks) -> int:
        with pytest.raises(RunError, match="cannot be stored"), ranks.telling(ends=False):
            ranks.exchange(object() if ranks.rank == 1 else None)
        return ranks.exchanges

    assert together(2, play) == [1, 1]
