from __future__ import annotations

import random

from experiments.cluster.generators import set_dask_apart


def test_dask_draws_from_a_generator_of_its_own() -> None:
    import dask.sizeof
    import distributed.protocol.compression
    import distributed.worker_state_machine

    set_dask_apart()
    before = random.getstate()
    dask.sizeof.sizeof(list(range(1000)))
    distributed.protocol.compression.randint(0, 9)  # type: ignore[attr-defined]
    assert distributed.worker_state_machine.random.Random(0).random() == random.Random(0).random()  # type: ignore[attr-defined]
    assert random.getstate() == before
