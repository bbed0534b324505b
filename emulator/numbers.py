"""Types of the numbers in a configuration: which values are numbers, and the bounds of each kind.

Every number in a part's or a table's settings is annotated with a type of this module, or with a `Number` of
its own. The bounds are far outside any useful value: with them an absurd value is a one-line error instead
of an overflow in the middle of a run. `experiments.contracts.check_numbers` tests that every number has
bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

MOST = 10**9
"""Upper bound of counts; the product of two counts fits into 64 bits."""

MOST_MODELS = 1000
"""Upper bound of the number of models created at once."""

MOST_UNITS = 2**16
"""Upper bound of the units in a layer of a model."""

MOST_STEPS = 10**5
"""Upper bound of the local steps of one task."""

MOST_EPOCHS = 1000
"""Upper bound of the local epochs of one task."""

LARGEST = 1e38
"""Upper bound of factors applied to model parameters, which are in single precision."""

LARGEST_LOGGED = 1e100
"""Upper bound of the size of a recorded number: any that we come to, and its squares have sums."""

DEVICE_BOUNDS: dict[str, tuple[float, float]] = {
    "seconds_per_sample": (1e-15, 1e9),
    "download_bytes_per_s": (1e-6, 1e18),
    "upload_bytes_per_s": (1e-6, 1e18),
    "latency_s": (0, 1e9),
}
"""Bounds of each column of a fleet: so wide that every real device fits, and all times stay finite."""


@dataclass(frozen=True)
class Number:
    """Annotation of an int or a float field: no bool and no text, between a lower and an upper bound.

    Args:
        ge: inclusive lower bound; exactly one of `ge` and `gt` is given.
        gt: exclusive lower bound.
        le: inclusive upper bound; exactly one of `le` and `lt` is given.
        lt: exclusive upper bound.

    Raises:
        TypeError: there is not exactly one lower and one upper bound.

    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(Annotated[float, Number(ge=0, lt=1)]).validate_python(0)
    0.0
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __post_init__(self) -> None:
        """Check that there is one bound on each side."""
        if (self.ge is None) == (self.gt is None) or (self.le is None) == (self.lt is None):
            raise TypeError(f"{self}: a number has one lower and one upper bound")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: the schema of the annotated type, with these bounds."""
        schema: Any = handler(source)
        expected: Literal["int_type", "float_type"] = "int_type" if schema["type"] == "int" else "float_type"

        def refuse_non_number(value: Any) -> Any:
            # Not pydantic's strict mode, which refuses 1e6 as a whole number.
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise PydanticKnownError(expected)
            return value

        bounds = {name: bound for name, bound in vars(self).items() if bound is not None}
        return core_schema.no_info_before_validator_function(refuse_non_number, {**schema, **bounds})


Count = Annotated[int, Number(ge=1, le=MOST)]
CountOrZero = Annotated[int, Number(ge=0, le=MOST)]
TwoOrMore = Annotated[int, Number(ge=2, le=MOST)]
ModelCount = Annotated[int, Number(ge=1, le=MOST_MODELS)]
Units = Annotated[int, Number(ge=1, le=MOST_UNITS)]
LocalSteps = Annotated[int, Number(ge=1, le=MOST_STEPS)]
LocalEpochs = Annotated[int, Number(ge=1, le=MOST_EPOCHS)]
Seed = Annotated[int, Number(ge=0, lt=2**32)]

Share = Annotated[float, Number(ge=0, le=1)]
PositiveShare = Annotated[float, Number(gt=0, le=1)]
InnerShare = Annotated[float, Number(gt=0, lt=1)]
ShareBelowHalf = Annotated[float, Number(ge=0, lt=0.5)]
ShareBelowOne = Annotated[float, Number(ge=0, lt=1)]

Factor = Annotated[float, Number(ge=0, le=LARGEST)]
PositiveFactor = Annotated[float, Number(gt=0, le=LARGEST)]
FactorFromOne = Annotated[float, Number(ge=1, le=LARGEST)]

Duration = Annotated[float, Number(gt=0, le=1e12)]
"""Seconds or days."""
