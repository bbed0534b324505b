"""What every part must keep to, as plain functions that assert it: ours are run through them, and so can be
a third party's, from its own tests:

    from experiments.contracts import check_part, check_selector

    def test_my_selector():
        check_part(MySelector, MyParameters())
        check_selector(lambda: MySelector(MyParameters()))

Parts have state, so a check takes a function that makes a fresh one. Where two are played side by side, one
is stored and put back before whatever is asked of it, as in a run that was interrupted. Knows no torch: what
a model or a local rule must keep to is not here.
"""

from experiments.contracts.clusterers import check_assignment, check_clusterer, check_plan
from experiments.contracts.memories import check_memory, check_ranges
from experiments.contracts.numbers import check_numbers
from experiments.contracts.pacings import check_pacing
from experiments.contracts.parts import (
    check_aggregator,
    check_detector,
    check_part,
    check_robust_aggregator,
    check_schedule,
    check_selector,
)
from experiments.contracts.surroundings import check_availability, check_device_profile, check_drift

__all__ = [
    "check_aggregator",
    "check_assignment",
    "check_availability",
    "check_clusterer",
    "check_detector",
    "check_device_profile",
    "check_drift",
    "check_memory",
    "check_numbers",
    "check_pacing",
    "check_part",
    "check_plan",
    "check_ranges",
    "check_robust_aggregator",
    "check_schedule",
    "check_selector",
]
