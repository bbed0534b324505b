"""Personal accuracy by the age of what clients remember, in the bands of ages that a log has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from emulator.storage.runlog import RoundRecord


def age_bands(records: Iterable[RoundRecord]) -> list[int]:
    """The least age of each band, in rounds, ascending; none without personal accuracies.

    The bands are those of the first round that has some; all rounds of a run have the same.
    """
    by_age = (record.personal_accuracy_by_age for record in records)
    return sorted(next((found for found in by_age if found is not None), {}))


def accuracy_in_band(records: Sequence[RoundRecord], band: int) -> float | None:
    """The mean personal accuracy in a band over evaluations, weighted by the clients in it.

    Args:
        records: The rounds.
        band: The number of the band, from 0, by age.

    Returns:
        The mean; None if there is no such band, or never a client in it.
    """
    ages = age_bands(records)[band : band + 1]
    parts = [
        (record.clients_by_age.get(age) or 0.0, accuracy)
        for record in records
        if record.personal_accuracy_by_age is not None and record.clients_by_age is not None
        for age in ages
        if (accuracy := record.personal_accuracy_by_age.get(age)) is not None
    ]
    clients = math.fsum(count for count, _ in parts)
    return math.fsum(count * accuracy for count, accuracy in parts) / clients if clients else None


def bands_in_words(ages: Sequence[int]) -> list[str]:
    """What tables call the bands with these least ages.

    >>> bands_in_words([1, 2, 10])
    ['age 1', 'age 2-9', 'age 10+']
    """
    closed = [
        f"age {least}" if least == following - 1 else f"age {least}-{following - 1}"
        for least, following in pairwise(ages)
    ]
    return [*closed, *(f"age {least}+" for least in ages[-1:])]
