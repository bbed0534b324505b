"""The representation of data by the gradient of the loss at a model that all clients share."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.representations.base import At, LocalData, ReferenceSettings, Representation
from coordinator.representations.sketch import count_sketch
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.messages import BYTES_PER_PARAMETER, Work
from emulator.numbers import Count

AT_ONCE = 2**24
"""Numbers of gradients that are in memory at once, beside the reports."""


class GradientSettings(ReferenceSettings):
    """The model at which gradients are taken, and how long a report is."""

    at: At = Field(
        "frozen",
        description="frozen: the reference model; global: the mean of the present models, which each client "
        "downloads for each report. Reports on different models are not comparable, so with `global` all "
        "clients report whenever any client has new data",
    )
    sketch: Count | None = Field(
        None,
        description="clients fold a gradient into this many numbers, by a count sketch, before they send it; "
        "if omitted, they send all of it",
        examples=[256],
    )

    @model_validator(mode="after")
    def _reference_is_used(self) -> Self:
        if self.at == "global":
            for name, field in ReferenceSettings.model_fields.items():
                if getattr(self, name) != field.default:
                    raise ValueError(
                        f'{name} is a setting of the reference model, which at = "global" does not use; '
                        f'leave it out, or set at = "frozen"'
                    )
        return self


class Gradient(Representation):
    """The gradient of the mean loss over the training samples that a client holds.

    Fielding's gradient, which also follows a change of what labels mean. It costs a forward and a backward
    pass of all these samples, and an upload as large as the model, unless it is sketched.

    Source: Fielding, its representation for concept drift; the sketch is ours.

    Two clients, the second of which holds three samples:

    >>> from types import SimpleNamespace
    >>> data = SimpleNamespace(
    ...     num_parameters=lambda at: 2,
    ...     gradients=lambda clients, at: np.array([[0.5, -1.0], [0.0, 2.0]], dtype=np.float32),
    ...     num_samples=lambda clients: np.array([1, 3]),
    ...     cost=lambda at: 1.0,
    ... )
    >>> clients, gradient = np.array([4, 7]), Gradient(GradientSettings(at="global"))
    >>> gradient.measure(clients, data).tolist()
    [[0.5, -1.0], [0.0, 2.0]]
    >>> work = gradient.work(clients, data)
    >>> work.trained_samples.tolist(), work.download_bytes.tolist()  # the model, 4 bytes a parameter
    ([1.0, 3.0], [8.0, 8.0])
    """

    Settings = GradientSettings
    settings: GradientSettings
    distance = "euclidean"

    @property
    def reference(self) -> ReferenceSettings | None:
        return self.settings if self.settings.at == "frozen" else None

    @property
    def at_present_models(self) -> bool:
        return self.settings.at == "global"

    def size(self, data: LocalData) -> int:
        length, sketch = data.num_parameters(self.settings.at), self.settings.sketch
        if sketch is not None and sketch > length:
            raise ConfigurationError(
                f"representation.sketch = {sketch}: must not be above the {length} numbers of a gradient; "
                f"leave it out to send all of them"
            )
        return length if sketch is None else sketch

    def measure(self, clients: Ints, data: LocalData) -> Floats:
        length, size = data.num_parameters(self.settings.at), self.size(data)
        sketch = None if self.settings.sketch is None else count_sketch(length, size, data.streams)
        reports = np.empty((len(clients), size))
        # Whole gradients of a large fleet would not fit into memory.
        at_once = max(1, AT_ONCE // length)
        for first in range(0, len(clients), at_once):
            part = slice(first, first + at_once)
            gradients = data.gradients(clients[part], self.settings.at)
            reports[part] = gradients if sketch is None else sketch.of(gradients)
        return reports

    def work(self, clients: Ints, data: LocalData) -> Work:
        at = self.settings.at
        downloaded = float(BYTES_PER_PARAMETER * data.num_parameters(at)) if at == "global" else 0.0
        work = Work.of(len(clients), download_bytes=downloaded)
        passes: Floats = data.num_samples(clients) * np.float64(data.cost(at))
        return replace(work, trained_samples=passes)
