"""A device profile from a `.toml`: classes of devices with shares, and a distribution for each column.

    reference_model = "MobileNet v2 at 224x224"
    reference_flops = 0.6e9
    source = "measured by us, 2024"

    [[class]]
    name = "phone"
    share = 0.8
    seconds_per_sample = { quantiles = [[0, 0.05], [0.5, 0.12], [1, 0.6]] }
    bandwidth_kibit_per_s = { quantiles = "bandwidth.csv" }   # columns quantile, value
    latency_s = 0.03

    [[class]]
    name = "board"
    share = 0.2
    compute_ms_per_sample = { discrete = [[44, 2], [79, 1]] } # value, weight; or a .csv with those columns
    download_kbps = { lognormal = { median = 5000, sigma = 0.5, clip = [100, 10000] } }
    upload_kbps = 2500

A column has any name of `device_profiles.fleet.SOURCES`. File names are relative to the `.toml`'s folder, and
the files lie inside it. Within a class, the columns that it gives are drawn independently of each other.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from device_profiles.fleet import COLUMNS, MAY_BE_ZERO, SOURCES, Fleet, match_columns
from emulator.arrays import Floats
from emulator.errors import DataFileError, did_you_mean
from emulator.numbers import Number, PositiveShare
from emulator.plugins import Settings
from emulator.storage.bounded import has_controls, is_file, read_toml
from emulator.storage.tables import read_table

SHARE_TOLERANCE = 1e-6
MOST_PAIRS = 2**17
"""Most rows of a distribution's table, which are checked one by one; FedScale's bandwidths have 258."""

MOST_SIGMA = 20.0
"""Largest sigma of a lognormal: e^20 is half a billion."""

Value = Annotated[float, Number(ge=0, le=1e18)]
"""A value of a column in its unit, a weight or a probability; the fleet has bounds of its own."""

Pairs = tuple[tuple[Value, Value], ...]


def _pairs_from_file(first: str, second: str) -> Callable[[Any, ValidationInfo], Any]:
    """Validator that replaces the path of a table by the pairs of its two columns."""

    def read(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        folder: Path = info.context["folder"] if info.context else Path()
        path = folder / value
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{value!r} must lie inside {folder}")
        table = read_table(path)
        table.refuse_others({first, second})
        if len(table) > MOST_PAIRS:
            raise ValueError(f"{value!r} has {len(table)} rows; a distribution has at most {MOST_PAIRS}")
        return list(zip(table.numbers(first).tolist(), table.numbers(second).tolist(), strict=True))

    return read


class Constant(RootModel[Value]):
    """The same value for every device."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    @property
    def lowest(self) -> float:
        return self.root

    def draw(self, num: int, generator: np.random.Generator) -> Floats:
        return np.full(num, self.root)


class Quantiles(Settings):
    """A distribution by its quantiles, whose logarithms are interpolated linearly.

    So it is the same distribution whether quantiles of a speed or of a time are given.
    """

    quantiles: Annotated[Pairs, BeforeValidator(_pairs_from_file("quantile", "value"))]

    @field_validator("quantiles")
    @classmethod
    def _increases(cls, pairs: Pairs) -> Pairs:
        if not pairs or pairs[0][0] != 0 or pairs[-1][0] != 1:
            raise ValueError("the probabilities of a quantile table must run from 0 to 1")
        for row, ((low, below), (high, above)) in enumerate(pairwise(pairs), start=2):
            if high <= low or above < below:
                raise ValueError(
                    f"row {row}: ({high:g}, {above:g}) follows ({low:g}, {below:g}); "
                    "probabilities must increase and values never decrease"
                )
        if pairs[0][1] <= 0:
            raise ValueError(f"row 1: value {pairs[0][1]:g} must be greater than 0")
        return pairs

    @property
    def lowest(self) -> float:
        return self.quantiles[0][1]

    def draw(self, num: int, generator: np.random.Generator) -> Floats:
        probabilities, values = np.array(self.quantiles).T
        drawn: Floats = np.exp(np.interp(generator.random(num), probabilities, np.log(values)))
        return drawn


class Discrete(Settings):
    """A finite set of values with weights."""

    discrete: Annotated[Pairs, BeforeValidator(_pairs_from_file("value", "weight"))]

    @field_validator("discrete")
    @classmethod
    def _sort(cls, pairs: Pairs) -> Pairs:
        if not pairs:
            raise ValueError("a discrete distribution needs at least one (value, weight)")
        for row, (value, weight) in enumerate(pairs, start=1):
            if weight <= 0:
                raise ValueError(f"row {row}: weight {weight:g} of value {value:g} must be greater than 0")
        return tuple(sorted(pairs))  # so that the order of a file's rows changes no draw

    @property
    def lowest(self) -> float:
        return self.discrete[0][0]

    def draw(self, num: int, generator: np.random.Generator) -> Floats:
        values, weights = np.array(self.discrete).T
        drawn: Floats = values[_choose(weights, num, generator)]
        return drawn


class LognormalSettings(Settings):
    median: Annotated[float, Number(gt=0, le=1e18)]
    sigma: Annotated[float, Number(ge=0, le=MOST_SIGMA)]
    clip: tuple[Value, Value] | None = None

    @model_validator(mode="after")
    def _clips_around_the_median(self) -> Self:
        if self.clip is not None and not 0 < self.clip[0] <= self.median <= self.clip[1]:
            raise ValueError(f"clip {list(self.clip)} must be above 0 and contain the median {self.median:g}")
        return self


class Lognormal(Settings):
    """median x exp(sigma x a standard normal), clipped to `clip` if given."""

    lognormal: LognormalSettings

    @property
    def lowest(self) -> float:
        clip = self.lognormal.clip
        return clip[0] if clip else sys.float_info.min

    def draw(self, num: int, generator: np.random.Generator) -> Floats:
        values = self.lognormal.median * np.exp(self.lognormal.sigma * generator.standard_normal(num))
        return values if self.lognormal.clip is None else np.clip(values, *self.lognormal.clip)


def _kind(value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "<constant>"
    if isinstance(value, Mapping):
        return next((f"<{kind}>" for kind in ("quantiles", "discrete", "lognormal") if kind in value), None)
    return None


Distribution = Annotated[
    Annotated[Constant, Tag("<constant>")]
    | Annotated[Quantiles, Tag("<quantiles>")]
    | Annotated[Discrete, Tag("<discrete>")]
    | Annotated[Lognormal, Tag("<lognormal>")],
    Discriminator(
        _kind,
        custom_error_type="distribution",
        custom_error_message="must be a number, or a table with one of quantiles, discrete, lognormal",
    ),
]


class DeviceClass(BaseModel):
    """Devices of one kind: their share of the fleet, and a distribution for each column, under its name."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Distribution]

    name: str = Field(min_length=1)
    share: PositiveShare

    @property
    def distributions(self) -> dict[str, Distribution]:
        return self.__pydantic_extra__

    @model_validator(mode="before")
    @classmethod
    def _knows_every_key(cls, keys: Any) -> Any:
        known = {"name", "share", *SOURCES}
        for key in keys if isinstance(keys, Mapping) else ():
            if key not in known:
                choices, hint = ", ".join(sorted(known)), did_you_mean(str(key), known)
                raise ValueError(f"unknown key {key!r}; known are {choices}{hint}")
        return keys

    @model_validator(mode="after")
    def _gives_every_column(self) -> Self:
        for column, name in match_columns(self.distributions).items():
            lowest, zero = self.distributions[name].lowest, column in MAY_BE_ZERO
            if lowest < 0 or (lowest == 0 and not zero):
                raise ValueError(f"{name} = {lowest:g} must be {'at least' if zero else 'greater than'} 0")
        return self

    def draw(self, num: int, generator: np.random.Generator) -> dict[str, Floats]:
        """Draw `num` values of each column given; a bandwidth for both directions is drawn once."""
        # In the order of SOURCES, so that the order of the keys in the file changes no draw.
        drawn = {
            name: SOURCES[name].convert(self.distributions[name].draw(num, generator))
            for name in SOURCES
            if name in self.distributions
        }
        return {column: drawn[name] for column, name in match_columns(drawn).items()}


class MixtureProfile(Settings):
    """Classes of devices in given shares; each client's device is drawn independently of the others.

    >>> profile = MixtureProfile.model_validate(
    ...     {
    ...         "name": "boards",
    ...         "reference_model": "MobileNet v2",
    ...         "reference_flops": 0.6e9,
    ...         "source": "an example",
    ...         "class": [
    ...             {
    ...                 "name": "board",
    ...                 "share": 1,
    ...                 "compute_ms_per_sample": {"discrete": [[44, 2], [79, 1]]},
    ...                 "download_kbps": 8000,
    ...                 "upload_kbps": 800,
    ...             }
    ...         ],
    ...     }
    ... )
    >>> fleet = profile.draw(3, np.random.default_rng(1))
    >>> fleet.seconds_per_sample.round(3).tolist()  # three times 44 ms or 79 ms
    [0.237, 0.132, 0.132]
    >>> fleet.upload_bytes_per_s.tolist()
    [100000.0, 100000.0, 100000.0]
    """

    name: str = Field(min_length=1)
    reference_model: str = Field(min_length=1)
    reference_flops: Annotated[float, Number(ge=1, le=1e30)]
    source: str = Field(min_length=1)
    classes: tuple[DeviceClass, ...] = Field(alias="class", min_length=1)

    @field_validator("name", "reference_model", "source")
    @classmethod
    def _can_be_shown(cls, text: str) -> str:
        if has_controls(text):
            raise ValueError("has characters that nobody can read")
        return text

    @field_validator("classes")
    @classmethod
    def _shares_sum_to_one(cls, classes: tuple[DeviceClass, ...]) -> tuple[DeviceClass, ...]:
        total = sum(class_.share for class_ in classes)
        if abs(total - 1) > SHARE_TOLERANCE:
            raise ValueError(f"the shares sum to {total:g}; they must sum to 1")
        name, times = Counter(class_.name for class_ in classes).most_common(1)[0]
        if times > 1:
            raise ValueError(f"{times} classes have the name {name!r}")
        return tuple(sorted(classes, key=lambda class_: class_.name))  # file order changes no draw

    def draw(self, num_clients: int, generator: np.random.Generator) -> Fleet:
        """Draw each client's class by the shares, then its columns by the distributions of that class."""
        shares = np.array([class_.share for class_ in self.classes])
        chosen = _choose(shares, num_clients, generator)
        columns = {name: np.zeros(num_clients) for name in COLUMNS}
        for index, class_ in enumerate(self.classes):
            members = np.flatnonzero(chosen == index)
            for name, values in class_.draw(len(members), generator).items():
                columns[name][members] = values
        return Fleet(device=None, ids=None, **columns)

    @property
    def counts(self) -> Mapping[str, int]:
        return {"classes": len(self.classes)}


def read_mixture(path: Path) -> MixtureProfile:
    """Read the profile in a `.toml` of this module's layout; without a `name` it is named after the file.

    DataFileError names file, key and rule.
    """
    if not is_file(path):
        raise DataFileError(path, "no such file")
    try:
        document = read_toml(path)
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read as TOML ({error})") from error
    try:
        return MixtureProfile.model_validate({"name": path.stem} | document, context={"folder": path.parent})
    except ValidationError as error:
        raise DataFileError(path, _one_line(error)) from error


def _one_line(error: ValidationError) -> str:
    """The first error: its key, the rule and, if it is short, the value."""
    first = error.errors(include_url=False)[0]
    key = ""
    for part in first["loc"]:
        if isinstance(part, int):
            key += f"[{part}]"
        elif not part.startswith("<"):  # such a part is not a key, but the tag of a distribution
            key += f".{part}" if key else part
    value = first["input"]
    shown = f" (it is {value!r})" if isinstance(value, (str, int, float)) and len(repr(value)) < 60 else ""
    return f"{key}{': ' if key else ''}{first['msg'].removeprefix('Value error, ')}{shown}"


def _choose(weights: Floats, num: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """(num,) indices, each drawn with probability proportional to its weight."""
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative / cumulative[-1], generator.random(num), side="right")
