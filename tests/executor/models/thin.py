"""The published networks with few channels, which train in a second."""

from __future__ import annotations

from executor.models.resnet18 import Resnet18
from executor.models.shufflenet_v2 import ShufflenetV2
from executor.models.vit_tiny import VitTiny


class ThinResnet18(Resnet18):
    channels = (4, 8, 16, 32)


class ThinShufflenetV2(ShufflenetV2):
    channels = (4, 8, 16, 32, 8)
    units = (2, 2, 2)


class ThinVit(VitTiny):
    layers, heads, width = 2, 3, 12


THIN = {"resnet18": ThinResnet18, "shufflenet_v2": ThinShufflenetV2, "vit_tiny": ThinVit}
"""By the name of the model that each is a thin one of."""
