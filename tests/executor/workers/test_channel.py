from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch._C._distributed_c10d import FileStore

from executor.workers.channel import COORDINATOR, NEAR_FRAME_BYTES, WORKER, Channel, LostError, connect

Pair = tuple[Channel, Channel]


def listening() -> set[str]:
    """The addresses, in the kernel's hexadecimal, that this process listens on."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            own.add(str(link.readlink()))
        except OSError:  # the descriptor that lists the others
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.add(fields[1].partition(":")[0])
    return found


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    ends: dict[int, Channel] = {}

    def meet(rank: int) -> None:
        ends[rank] = connect(FileStore(str(tmp_path / "store"), 2), rank, loopback=True)

    threads = [threading.Thread(target=meet, args=(rank,)) for rank in (COORDINATOR, WORKER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield ends[COORDINATOR], ends[WORKER]
    ends.clear()


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do it in a thread: what is sent waits for whoever receives it."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()


def send_frame(channel: Channel, *head: int) -> None:
    frame = np.zeros(NEAR_FRAME_BYTES, dtype=np.uint8)
    frame[: len(head)] = head
    channel._group.send([torch.from_numpy(frame)], WORKER, 0).wait()


@pytest.mark.parametrize("numbers", [0, 3, NEAR_FRAME_BYTES // 8, 50_000])
def test_a_message_of_any_length_arrives_as_it_was(pair: Pair, numbers: int) -> None:
    message = {"numbers": np.arange(float(numbers)), "nothing": None, "pair": (1, "two")}
    with meanwhile(lambda: pair[0].send(message)):
        found = pair[1].receive(60)
    assert found["numbers"].tobytes() == message["numbers"].tobytes()
    assert (found["nothing"], found["pair"]) == (None, (1, "two"))
    assert pair[0].sent_bytes == pair[1].received_bytes >= 8 * numbers


def test_messages_keep_their_order_both_ways(pair: Pair) -> None:
    for one, other in (pair, pair[::-1]):
        with meanwhile(lambda one=one: [one.send(number) for number in range(5)]):  # type: ignore[misc]
            assert [other.receive(60) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_length_over_the_bound_is_refused_before_anything_is_allocated(pair: Pair) -> None:
    too_much = rf"a message of {2**62} bytes: must be at most {2**33}"
    with (
        meanwhile(lambda: send_frame(pair[0], *(2**62).to_bytes(8, "little"))),
        pytest.raises(LostError, match=too_much),
    ):
        pair[1].receive(60)


def test_bytes_that_are_no_message_are_refused(pair: Pair) -> None:
    with meanwhile(lambda: send_frame(pair[0], 100)), pytest.raises(LostError, match="message that is none"):
        pair[1].receive(60)


def test_silence_is_noticed(pair: Pair) -> None:
    with pytest.raises(LostError):
        pair[0].receive(0.05)


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="needs /proc")  # noqa: PTH110
def test_it_listens_on_the_loopback_interface_alone(pair: Pair) -> None:
    assert listening() == {"0100007F"}
