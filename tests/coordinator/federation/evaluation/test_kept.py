"""What clients have of their own, as a run keeps it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from coordinator.federation.evaluation.kept import Own, own_tensors
from emulator.ports import Segment
from tests.fakes import ints


def test_models_of_clients_are_let_go_one_by_one_but_for_what_is_kept() -> None:
    made: list[weakref.ReferenceType[Any]] = []

    def parts() -> Iterator[Own]:
        for client in range(5):
            assert sum(one() is not None for one in made) <= 1  # the last one, until the next is here
            models = np.full((1, 3), [0, 0, client + 1], dtype=np.float32)
            made.append(weakref.ref(models))
            yield Own(ints(client), ints(0), models)
            del models

    layout = {"body": Segment(0, 2, (2,)), "head": Segment(2, 3, (1,))}
    clients, own, shares = own_tensors(parts(), np.zeros((1, 3), dtype=np.float32), layout, 20)
    assert clients.tolist() == list(range(5))
    assert own is not None
    assert shares is None
    assert {name: rows.ravel().tolist() for name, rows in own.items()} == {"head": [1, 2, 3, 4, 5]}
