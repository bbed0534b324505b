from __future__ import annotations

import socket
from itertools import pairwise

import pytest

from benchmarks.reality.link import HOST, Direction, open_links


def test_a_message_takes_its_latency_once_however_it_is_cut() -> None:
    direction = Direction(bytes_per_s=1000.0, latency_s=0.5)
    delivered_s = [direction.delivery_s(10.0, size) for size in (100, 400, 1500)]
    assert delivered_s == pytest.approx([10.6, 11.0, 12.5])  # 10 + 0.5 + 2,000 bytes / 1,000 a second
    assert direction.passed_bytes == 2000


def test_bytes_that_arrive_more_slowly_than_the_rate_wait_for_the_latency_alone() -> None:
    direction = Direction(bytes_per_s=1000.0, latency_s=0.5)
    assert [direction.delivery_s(arrival_s, 100) for arrival_s in (0.0, 5.0)] == pytest.approx([0.6, 5.6])


def test_no_chunk_overtakes_an_earlier_one() -> None:
    direction = Direction(bytes_per_s=1e9, latency_s=0.0)
    delivered_s = [direction.delivery_s(7.0, size) for size in (4096, 1, 1, 4096)]
    assert all(earlier < later for earlier, later in pairwise(delivered_s))


def test_a_link_passes_all_bytes_in_order_and_counts_them_by_direction() -> None:
    down, up = Direction(1e9, 0.0), Direction(1e9, 0.0)
    sent = bytes(range(256)) * 400
    with socket.create_server((HOST, 0)) as server:
        [port] = open_links([(down, up)], server.getsockname()[1])
        with socket.create_connection((HOST, port)) as client:
            accepted, _ = server.accept()
            with accepted, accepted.makefile("rb") as received:
                client.sendall(sent)
                assert received.read(len(sent)) == sent
                accepted.sendall(b"answer")
            with client.makefile("rb") as received:
                assert received.read() == b"answer"
    assert (down.passed_bytes, up.passed_bytes) == (6, len(sent))
