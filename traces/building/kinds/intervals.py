"""Objects cut out of the frames of videos: those that are large enough, arriving interval by interval."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import InputError
from emulator.numbers import Count, Number
from traces.building.images import EncodedImageSettings
from traces.building.rows import interval_of

BoxSide = Annotated[float, Number(ge=0, le=1e5)]


class IntervalSettings(EncodedImageSettings):
    """The sizes of objects, and the intervals in which they arrive."""

    min_box: BoxSide = Field(0, description="leave out objects whose box is not wider and higher than that")
    intervals: Count = Field(10, description="cut each client's frames into that many intervals of time")
    owned_steps: Count = Field(1, description="intervals that clients have from the start")

    def steps(self, rank: Ints, size: Ints) -> Ints:
        """(n,) the data step of the objects in a client's frame `rank` (n,) of `size` (n,).

        Raises InputError if there are more intervals at the start than there are.
        """
        if self.owned_steps > self.intervals:
            raise InputError(
                f"--owned-steps {self.owned_steps}: must be at most --intervals {self.intervals}"
            )
        return interval_of(rank, size, self.intervals) - (self.owned_steps - 1)
