"""The models a configuration can name."""

from __future__ import annotations

from emulator.plugins import Registry
from executor.models.base import ModelSpec
from executor.models.cnn import Cnn
from executor.models.linear import Linear
from executor.models.masked import Masked
from executor.models.mlp import Mlp

MODELS: Registry[type[ModelSpec]] = Registry(
    "model", "driftscale.model", {"cnn": Cnn, "linear": Linear, "masked": Masked, "mlp": Mlp}
)
