"""Links between clients and a server of this machine: proxies that forward bytes as a device's link would.

A link knows a rate and a latency for each direction, and nothing of messages, rounds or the time model.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass

HOST, CHUNK_BYTES = "127.0.0.1", 4096


@dataclass
class Direction:
    """One direction of a link, which sends one chunk after the other; `passed_bytes` is what it has accepted.

    >>> direction = Direction(bytes_per_s=100.0, latency_s=0.5)
    >>> [direction.delivery_s(arrival_s, 50) for arrival_s in (0.0, 0.0, 9.0)]
    [1.0, 1.5, 10.0]
    """

    bytes_per_s: float
    latency_s: float
    free_s: float = 0.0
    passed_bytes: int = 0

    def delivery_s(self, arrival_s: float, size: int) -> float:
        """When the last byte of a chunk is delivered: the latency after it was sent at the rate."""
        self.passed_bytes += size
        self.free_s = max(self.free_s, arrival_s) + size / self.bytes_per_s
        return self.free_s + self.latency_s


def open_links(links: Iterable[tuple[Direction, Direction]], port: int) -> list[int]:
    """The ports at which clients reach the server at `port` over `links`, each (down, up), in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return [asyncio.run_coroutine_threadsafe(_listen(down, up, port), loop).result() for down, up in links]


async def _listen(down: Direction, up: Direction, port: int) -> int:
    async def join(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(HOST, port)
        try:
            await asyncio.gather(_forward(server, to_client, down), _forward(client, to_server, up))
        except OSError:  # of a process that was killed, which the other side must learn
            to_client.close()
            to_server.close()

    listener = await asyncio.start_server(join, HOST, 0)
    return int(listener.sockets[0].getsockname()[1])


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter, direction: Direction) -> None:
    loop = asyncio.get_running_loop()
    while chunk := await source.read(CHUNK_BYTES):
        loop.call_at(direction.delivery_s(loop.time(), len(chunk)), target.write, chunk)
    loop.call_at(direction.free_s + direction.latency_s, target.close)
