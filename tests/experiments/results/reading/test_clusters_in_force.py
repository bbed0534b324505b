import numpy as np

from experiments.results.reading.clusters_in_force import clusters_in_force
from tests.experiments.synthetic_runs import a_record


def test_clusters_stay_in_force_until_they_change():
    records = [a_record(number, members=None) for number in range(4)]
    records[1] = a_record(1, members=np.array([0, 1]))
    found = clusters_in_force(records)
    assert found[0] is None
    assert [members.tolist() for members in found[1:]] == [[0, 1], [0, 1], [0, 1]]
