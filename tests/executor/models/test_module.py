"""A model that is a torch module of one's own."""

from __future__ import annotations

from torch import nn

from executor.models.module import as_model


def plain(num_labels: int, width: int = 1, depth: int = 2) -> nn.Module:
    return nn.Linear(width * depth, num_labels)


def test_settings_are_the_same_text_in_whichever_order_a_table_gives_them() -> None:
    """By which jitter keys the factors of devices."""
    kind = as_model(plain, f"{__name__}:plain", "model").Settings
    texts = {repr(kind(**values)) for values in ({"width": 3, "depth": 4}, {"depth": 4, "width": 3})}
    assert texts == {"Arguments(depth=4, width=3)"}
