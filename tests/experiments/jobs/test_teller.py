from __future__ import annotations

from typing import Any

from experiments.jobs.workplace import _Teller
from experiments.planned_run import PlannedRun, Reached

RUN = PlannedRun("digits", "global", 0, 100)


def test_the_first_evaluation_is_told_at_once_and_other_rounds_twice_a_second() -> None:
    told: list[dict[str, Any]] = []
    clock_s = [10.0]
    teller = _Teller(RUN, told.append, lambda: clock_s[0])
    for number in range(20):  # eight rounds a second, every other one evaluated
        teller.round_done(RUN, Reached(number + 1, float(number), 0.5 if number % 2 else None))
        clock_s[0] += 0.125
    assert [(event["rounds"], event["evaluated"]) for event in told] == [
        (1, False),
        (2, True),
        (6, True),
        (10, True),
        (14, True),
        (18, True),
    ]
