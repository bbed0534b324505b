"""Contract checks for parts: plain functions that raise AssertionError when a part breaks a rule of its kind.

All parts of driftscale pass them; third parties can call them from their own tests:

    from experiments.contracts import check_part, check_selector

    def test_my_selector():
        check_part(MySelector, MySettings())
        check_selector(lambda: MySelector(MySettings()))

Parts have state, so most checks take a function that makes a fresh part. Clusterers, memories, selectors,
aggregators and schedules are run in the real federation over fake ports, among simple parts. Where a check
compares two parts that have state, one of them is stored and restored before every call, as in a run that was
interrupted. All checks that run a part also fail if it draws from or seeds a global random generator.

`check_model`, `check_objective` and `check_rule` need torch, which is imported when one is first used.
"""

from typing import TYPE_CHECKING

from coordinator.checks import check_assignment, check_plan, check_ranges
from experiments.contracts.adaptations import check_adaptation
from experiments.contracts.aggregators import check_aggregator, check_robust_aggregator
from experiments.contracts.clusterers import check_clusterer
from experiments.contracts.memories import check_memory
from experiments.contracts.numbers import check_numbers
from experiments.contracts.pacings import check_pacing
from experiments.contracts.parts import check_detector, check_part, check_schedule
from experiments.contracts.representations import check_representation
from experiments.contracts.selectors import check_selector
from experiments.contracts.surroundings import (
    check_availability,
    check_device_profile,
    check_drift,
    check_partition,
)
from experiments.contracts.traces import check_concepts, check_trace_source

if TYPE_CHECKING:
    from experiments.contracts.executors import check_model, check_objective, check_rule
else:

    def __getattr__(name: str) -> object:
        if name not in ("check_model", "check_objective", "check_rule"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from experiments.contracts import executors

        return getattr(executors, name)


__all__ = [
    "check_adaptation",
    "check_aggregator",
    "check_assignment",
    "check_availability",
    "check_clusterer",
    "check_concepts",
    "check_detector",
    "check_device_profile",
    "check_drift",
    "check_memory",
    "check_model",
    "check_numbers",
    "check_objective",
    "check_pacing",
    "check_part",
    "check_partition",
    "check_plan",
    "check_ranges",
    "check_representation",
    "check_robust_aggregator",
    "check_rule",
    "check_schedule",
    "check_selector",
    "check_trace_source",
]
