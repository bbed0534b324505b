"""The foreign modules with arguments that make them small, and the samples that each takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from executor.models.base import ModelSpec
from tests.executor.fakes import FakeReader, module
from tests.executor.modules import foreign

LABELS = 4


@dataclass(frozen=True)
class Kept:
    """A module by its name, with its arguments, and the shape of its samples; `vocabulary`: of tokens."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = (8, 8)
    vocabulary: int = 0

    def spec(self) -> ModelSpec:
        return module(getattr(foreign, self.name), **self.arguments)

    def reader(self, rows: int = 60) -> FakeReader:
        return FakeReader(rows, self.shape, LABELS, self.vocabulary)


ZOO = [
    Kept("LogisticRegression", {"d_in": 64, "n_classes": LABELS}),
    Kept("MLPDropout", {"d_in": 64, "n_classes": LABELS}),
    Kept("LeafFemnistCNN", {"n_classes": LABELS, "side": 8, "dense": 32}),
    Kept("TffEmnistCNN", {"n_classes": LABELS, "side": 8, "dense": 32}),
    Kept("TffEmnistCNNFunctional", {"n_classes": LABELS, "side": 8, "dense": 32}),
    Kept("resnet_bn", {"n_classes": LABELS, "channels": 1, "width": 4, "layers": [1, 1]}),
    Kept("resnet_gn", {"n_classes": LABELS, "channels": 1, "width": 4, "layers": [1, 1]}),
    Kept("MobileBlockNet"),
    Kept("BNMLP", {"d_in": 64, "n_classes": LABELS}),
    Kept("ViTTiny", {"n_classes": LABELS, "size": 8, "dim": 16, "depth": 2, "channels": 1}),
    Kept("CharLSTM", {"hidden": 16, "n_out": LABELS}, (6,), 80),
    Kept("Sent140LSTM", {"vocab": 50, "emb": 8, "hidden": 16, "n_out": LABELS}, (6,), 50),
    Kept("SensorGRU", {"hidden": 8}, (5, 6)),
    Kept("BertClassifier", {"vocab": 50, "dim": 16}, (12,), 50),
    Kept("LoRAMLP", {"d": 64, "n": LABELS}),
    Kept("TiedAuto", {"d": 64, "n": LABELS}),
    Kept("Frozen", {"d": 64, "n": LABELS}),
    Kept("NoisyFourier", {"d": 64, "n": LABELS}),
]
