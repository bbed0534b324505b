"""A client undoes a change of its features: it has its samples read in the way that fits them best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.adaptations.base import Adaptation, ClientView, Served
from coordinator.adaptations.class_means import ClassMeans, Sums
from coordinator.adaptations.families import (
    Channels,
    Family,
    Orthogonal,
    Quantiles,
    Standardised,
    Transform,
    Tried,
)
from coordinator.adaptations.tries import TriesSettings
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import Work
from emulator.numbers import LARGEST, Number
from emulator.plugins import returns
from traces.changes.features import rotated

TRIED = ("rotations", "shifts", "scales")
"""The settings of families whose changes are tried, each with each."""

MEASURED = ("standardised", "quantiles", "channels", "orthogonal")
"""Those of families that are measured, of which there is one."""

FAMILIES = (*TRIED, *MEASURED)

MOST_TRIED = 1_000
"""Ways beyond which trying each is refused."""


Shift = Annotated[float, Number(ge=-LARGEST, le=LARGEST)]
Scale = Annotated[float, Number(ge=1e-6, le=1e6)]


class TransformedSettings(TriesSettings):
    """The changes among which is that which a client undoes."""

    rotations: Annotated[int, Number(ge=2, le=360)] | None = Field(
        None, description="try this many turns of an image by equal angles", examples=[8]
    )
    shifts: Annotated[tuple[Shift, ...], Field(min_length=1)] | None = Field(
        None, description="try taking each of these numbers off all features, and none", examples=[(0.5, 1.0)]
    )
    scales: Annotated[tuple[Scale, ...], Field(min_length=1)] | None = Field(
        None,
        description="try dividing all features by each of these numbers, and by 1",
        examples=[(0.5, 2.0)],
    )
    standardised: bool = Field(
        False, description="read each feature less its own mean, over its own standard deviation"
    )
    quantiles: bool = Field(False, description="read each feature as its rank among the client's own")
    channels: bool = Field(
        False,
        description="read channels, the first axis of a sample, in the order that fits what clients reported",
    )
    orthogonal: bool = Field(
        False,
        description="turn all features so that means of labels come nearest to what clients reported",
    )

    @model_validator(mode="after")
    def _has_one_family(self) -> Self:
        chosen = [name for name in FAMILIES if getattr(self, name)]
        measured = [name for name in MEASURED if name in chosen]
        if not chosen or (measured and len(chosen) > 1):
            raise ValueError(
                f"families of changes: {', '.join(chosen) or 'none'}; set one of {', '.join(FAMILIES)}, or "
                f"several of {', '.join(TRIED)}"
            )
        compares = measured in (["channels"], ["orthogonal"])
        if measured and not compares and self.by != "loss":
            raise ValueError(
                f"by = {self.by!r}: {measured[0]} is measured, and nothing is compared; leave it out"
            )
        if compares and self.by == "loss":
            many = "orders" if self.channels else "maps"
            raise ValueError(f"{measured[0]}: too many {many} to try each; set by = 'class_means'")
        if self.combined > MOST_TRIED:
            raise ValueError(f"{self.combined:,} combinations to try; at most {MOST_TRIED:,} are supported")
        return self

    @property
    def combined(self) -> int:
        """How many ways are tried, if any are."""
        return (self.rotations or 1) * (len(self.shifts or ()) + 1) * (len(self.scales or ()) + 1)


class Transforming(Adaptation):
    """Each client tries some transforms of its samples, and has them read by the one that fits best.

    Of a class of one's own `transforms` is all that it needs; settings are `by` and `train`. State: what
    clients have reported, with `by = "class_means"`.
    """

    Settings = TriesSettings
    settings: TriesSettings
    state_fields = ("_means",)
    reads: ClassVar[bool] = True
    serves_one: ClassVar[bool] = True
    late_modules = ("scipy.optimize",)

    def __init__(self, settings: TriesSettings) -> None:
        super().__init__(settings)
        self._means = ClassMeans()

    @abstractmethod
    @returns("coordinator.checks:transforms")
    def transforms(self) -> Sequence[Transform]:
        """Functions of features (s, *shape) that return as many, one for each way; the first wins a tie.

        Each reads a sample by itself, whatever is beside it, and the same whenever it is asked.
        """

    @cached_property
    def family(self) -> Family:
        """What is tried, or measured."""
        return Tried(self.transforms(), self.settings.by)

    @property
    def trains(self) -> bool:
        return self.settings.train

    @property
    def hears(self) -> bool:
        return self.trains or self.family.compares

    def check_features(self, shape: tuple[int, ...], *, integers: bool) -> None:
        if integers:
            raise ConfigurationError(
                "samples here are whole numbers, such as tokens, which no transform leaves whole; choices: "
                "'relabelled', 'tuned', 'prior'"
            )
        if (wrong := self.family.check(shape)) is not None:
            raise ConfigurationError(f"{wrong}, and samples here have shape {shape}")

    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan, self.family.choose(view, self._means))

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        undone = ~np.isnan(ways).any(axis=1) if ways.shape[1] > 0 else np.zeros(len(features), dtype=bool)
        if not undone.any():
            return features
        result = features.copy()
        result[undone] = self.family.read(features[undone], ways[undone])
        return result

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        if not self.family.compares:
            return None
        assert served.ways is not None
        for held in view.held():
            ways = served.ways[held.rows, 0]
            read = replace(held, features=self.read(held.features, ways[held.owner]))
            self._means.add(Sums.of(read, view.num_labels))
        return self._means.reporting(view)

    def choosing_work(self, view: ClientView) -> Work | None:
        return self._means.comparing(view) if self.family.compares else self._forward(view)

    def work(self, view: ClientView) -> Work | None:
        return self._forward(view) if view.evaluated else None

    def _forward(self, view: ClientView) -> Work | None:
        """The predictions of all transforms; None if ways are measured."""
        if self.family.tried == 0:
            return None
        models = view.plan.used.sum(axis=1) * self.family.tried
        return replace(Work.of(len(view.clients)), forward_samples=(view.num_samples * models).astype(float))


class Transformed(Transforming):
    """Each client undoes a change of its features, of a family that it knows, on its own samples alone.

    Finite families (`rotations`, `shifts`, `scales`, each with each) are tried on its training samples, for
    each model anew at each dispatch, request and evaluation; the others are measured of them. With `train`
    what it chooses is how it trains, too, so that all clients learn one model of features as they were. No
    parameter is indexed by group: it is the rival of clusters where the family is known, but not who changed.

    Source: ours.

    Images of two pixels by two, upright and turned by 90 degrees, of which the model has seen upright ones:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import InferencePlan
    >>> view = SimpleNamespace(
    ...     models=np.zeros((1, 1)),
    ...     plan=InferencePlan.alike(np.zeros((2, 1), dtype=int)),
    ...     losses=lambda ways: np.array([[[0.1, 3.0, 3.0, 3.0]], [[3.0, 3.0, 3.0, 0.2]]]),
    ... )
    >>> Transformed(TransformedSettings(rotations=4)).adapt(view).ways.tolist()
    [[[0.0]], [[3.0]]]
    """

    Settings = TransformedSettings
    settings: TransformedSettings

    def transforms(self) -> Sequence[Transform]:
        turns = self.settings.rotations or 1
        angles = [360 * turn / turns for turn in range(turns)]
        shifts, scales = (0.0, *(self.settings.shifts or ())), (1.0, *(self.settings.scales or ()))
        return [partial(_undone, change=change) for change in product(angles, shifts, scales)]

    @cached_property
    def family(self) -> Family:
        if self.settings.standardised:
            return Standardised()
        if self.settings.quantiles:
            return Quantiles()
        if self.settings.channels:
            return Channels()
        if self.settings.orthogonal:
            return Orthogonal()
        return Tried(self.transforms(), self.settings.by, images=self.settings.rotations is not None)


def _undone(features: Floats32, change: tuple[float, float, float]) -> Floats32:
    """Features turned by an angle, less a number, over another; as they are by (0, 0, 1)."""
    angle, shift, scale = change
    turned = rotated(features, angle) if angle else features
    return (turned - np.float32(shift)) / np.float32(scale)
