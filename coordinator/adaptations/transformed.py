"""A client undoes a change of its features: it has its samples read in the way that fits them best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.adaptations.base import Adaptation, ClientView, Served
from coordinator.adaptations.class_means import ClassMeans, Sums
from coordinator.adaptations.families import Channels, Family, Quantiles, Standardised, Transform, Tried
from coordinator.adaptations.tries import TriesSettings
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import Work
from emulator.numbers import LARGEST, Number, PositiveFactor
from emulator.plugins import returns
from traces.changes.features import rotated

FAMILIES = ("rotations", "shifts", "scales", "standardised", "quantiles", "channels")
"""The settings of which `transformed` has one."""


Shift = Annotated[float, Number(ge=-LARGEST, le=LARGEST)]


class TransformedSettings(TriesSettings):
    """One family of changes, of which a client undoes its own."""

    rotations: Annotated[int, Number(ge=2, le=360)] | None = Field(
        None, description="try this many turns of an image by equal angles", examples=[8]
    )
    shifts: Annotated[tuple[Shift, ...], Field(min_length=1)] | None = Field(
        None, description="try taking each of these numbers off all features, and none"
    )
    scales: Annotated[tuple[PositiveFactor, ...], Field(min_length=1)] | None = Field(
        None, description="try dividing all features by each of these numbers, and by 1"
    )
    standardised: Literal[True] | None = Field(
        None, description="read each feature less its own mean, over its own standard deviation"
    )
    quantiles: Literal[True] | None = Field(
        None, description="read each feature as its rank among the client's own"
    )
    channels: Literal[True] | None = Field(
        None,
        description="read channels, the first axis of a sample, in the order that fits what clients reported",
    )

    @model_validator(mode="after")
    def _has_one_family(self) -> Self:
        chosen = [name for name in FAMILIES if getattr(self, name) is not None]
        if len(chosen) != 1:
            raise ValueError(
                f"families of changes: {', '.join(chosen) or 'none'}; set one of {', '.join(FAMILIES)}"
            )
        if chosen[0] in ("standardised", "quantiles") and self.by != "loss":
            raise ValueError(
                f"by = {self.by!r}: {chosen[0]} is measured, and nothing is compared; leave it out"
            )
        if chosen[0] == "channels" and self.by == "loss":
            raise ValueError("channels: too many orders to try each; set by = 'class_means'")
        return self


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
        """Functions of features (s, *shape) that return as many, one for each way; the first wins a tie."""

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
        other = ~np.isnan(ways).any(axis=1) if ways.shape[1] > 0 else np.zeros(len(features), dtype=bool)
        if not other.any():
            return features
        result = features.copy()
        result[other] = self.family.read(features[other], ways[other])
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

    A finite family (`rotations`, `shifts`, `scales`) is tried on its training samples, for each model anew at
    each dispatch, request and evaluation; the others are measured of them. With `train` what it chooses is
    how it trains, too, so that all clients learn one model of features as they were. No parameter is indexed
    by group: it is the rival of clusters where the family is known, but not who changed.

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
        settings = self.settings
        if settings.rotations is not None:
            angles = [360 * turn / settings.rotations for turn in range(settings.rotations)]
            return [partial(rotated, degrees=angle) if angle else _as_it_is for angle in angles]
        shifts, scales = settings.shifts or (), settings.scales or ()
        taken_off = [partial(_less, number=number) for number in shifts]
        return [_as_it_is, *taken_off, *(partial(_over, number=number) for number in scales)]

    @cached_property
    def family(self) -> Family:
        if self.settings.standardised:
            return Standardised()
        if self.settings.quantiles:
            return Quantiles()
        if self.settings.channels:
            return Channels()
        return Tried(self.transforms(), self.settings.by, images=self.settings.rotations is not None)


def _as_it_is(features: Floats32) -> Floats32:
    return features


def _less(features: Floats32, number: float) -> Floats32:
    return features - np.float32(number)


def _over(features: Floats32, number: float) -> Floats32:
    return features / np.float32(number)
