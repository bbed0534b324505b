"""The numbers of a configuration: what counts as one, and the bounds of each kind.

Every number of a part's or a table's settings is annotated with a kind of this module, or with a `Number`
of its own. The bounds are far outside what anybody runs; they are there so that an absurd value is one line
of error instead of an overflow in the middle of a run. `experiments.contracts.check_numbers` tests that no
number is without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

MOST = 10**9
"""Of whatever is counted. The product of two counts fits into 64 bits."""

MOST_MODELS = 1000
"""Models that are made at once."""

MOST_UNITS = 2**16
"""Units of a layer of a model."""

LARGEST = 1e38
"""Of what is multiplied with parameters, in single precision."""


@dataclass(frozen=True)
class Number:
    """Annotates an int or a float: a number, neither a bool nor a text, within a lower and an upper bound.

    Args:
        ge: lowest value; `gt`: a bound that lies below all values.
        le: highest value; `lt`: a bound that lies above all values.

    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(Annotated[float, Number(ge=0, lt=1)]).validate_python(0)
    0.0
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __post_init__(self) -> None:
        if (self.ge is None) == (self.gt is None) or (self.le is None) == (self.lt is None):
            raise TypeError(f"{self}: a number has one lower and one upper bound")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        expected: Literal["int_type", "float_type"] = "int_type" if schema["type"] == "int" else "float_type"

        def refuse_what_is_no_number(value: Any) -> Any:
            # Not pydantic's strict mode, which takes 1e6 for no whole number.
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise PydanticKnownError(expected)
            return value

        bounds = {name: bound for name, bound in vars(self).items() if bound is not None}
        return core_schema.no_info_before_validator_function(refuse_what_is_no_number, {**schema, **bounds})


Count = Annotated[int, Number(ge=1, le=MOST)]
CountOrZero = Annotated[int, Number(ge=0, le=MOST)]
TwoOrMore = Annotated[int, Number(ge=2, le=MOST)]
ModelCount = Annotated[int, Number(ge=1, le=MOST_MODELS)]
Units = Annotated[int, Number(ge=1, le=MOST_UNITS)]
Seed = Annotated[int, Number(ge=0, lt=2**32)]

Share = Annotated[float, Number(ge=0, le=1)]
PositiveShare = Annotated[float, Number(gt=0, le=1)]
ShareBelowHalf = Annotated[float, Number(ge=0, lt=0.5)]
ShareBelowOne = Annotated[float, Number(ge=0, lt=1)]

Factor = Annotated[float, Number(ge=0, le=LARGEST)]
PositiveFactor = Annotated[float, Number(gt=0, le=LARGEST)]

Duration = Annotated[float, Number(gt=0, le=1e12)]
"""In seconds, or in days."""
