from dataclasses import replace

import numpy as np

from experiments.results.reading.clusters_in_force import clusters_in_force, num_clients
from tests.experiments.synthetic_runs import a_record, a_run


def test_clusters_stay_in_force_until_they_change():
    records = [a_record(number, members=None) for number in range(4)]
    records[1] = a_record(1, members=np.array([0, 1]))
    found = clusters_in_force(records)
    assert found[0] is None
    assert [members.tolist() for members in found[1:]] == [[0, 1], [0, 1], [0, 1]]


def test_the_number_of_clients_is_that_of_the_header_or_of_the_first_memberships():
    run = a_run("global", 0, [0.5, 0.5])
    assert num_clients(run) == 4
    assert num_clients(replace(run, header={"num_clients": 7})) == 7
    assert num_clients(replace(run, records=run.records[1:])) == 0
