from __future__ import annotations

from collections.abc import Sequence

from benchmarks.probes.start import meet
from tests.experiments.jobs.fakes import FakePool, facts


class SlowlyComing(FakePool):
    """Its workers come one by one; one of them is gone before it replies."""

    def __init__(self) -> None:
        super().__init__(())

    def addresses(self) -> Sequence[str]:
        address = f"worker-{len(self.present)}"
        self.facts[address] = None if address == "worker-1" else facts(address)
        self.present.append(address)
        return super().addresses()


def test_each_worker_is_met_once_until_enough_are_ready() -> None:
    pool = SlowlyComing()
    meet(pool, 2)
    assert pool.log == ["meet worker-0", "meet worker-1", "meet worker-2"]
