from dataclasses import replace

import pytest

from experiments.results.statistics.drift.mass_events import mass_events_s
from tests.experiments.synthetic_runs import a_moving_run, a_run


def test_a_mass_event_opens_with_the_first_round_of_its_data_step():
    assert mass_events_s(a_moving_run(0, [1, 2])) == {1: 20.0, 2: 40.0}
    assert mass_events_s(a_moving_run(0, [1, 9])) == {1: 20.0}  # the run ends before data step 9
    few = a_moving_run(0, [1])
    few.header["num_clients"] = 5
    assert mass_events_s(few) == {}
    assert mass_events_s(a_run("global", 0, [0.5])) == {}


def test_of_nominal_rounds_a_mass_event_is_at_the_first_opening_in_it_or_after_it():
    run = a_moving_run(0, [1, 2])  # rounds of 10 s, two of them a data step
    assert mass_events_s(run, [2], 10.0) == {2: 40.0}
    assert mass_events_s(run, [1], 20.0) == {2: 40.0}
    without_a_step = replace(run, records=[record for record in run.records if record.step != 1])
    assert mass_events_s(without_a_step) == {1: 40.0, 2: 40.0}  # both took effect there


CONFIGURED = [([1], [2]), ([2], [2]), ([3], [1]), ([0], [1, 2]), ([2, 4], [])]


@pytest.mark.parametrize(("configured", "others"), CONFIGURED)
def test_a_mass_event_of_the_configuration_is_no_other_one(configured, others):
    assert list(mass_events_s(a_moving_run(0, [1, 2]), configured)) == others
