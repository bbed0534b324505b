"""A rank of the bench other than rank 0: it draws the samples of a workload itself, and trains its share."""

from __future__ import annotations

import json
import sys

from benchmarks.training import Contest, Network, Schedule
from executor.gloo import Job, file_store, join
from executor.replicas import ReplicatedExecutor


def main(store: str, rank: str, size: str, workload: str) -> None:
    table = json.loads(workload)
    network = Network(table["model"], table["settings"], tuple(table["sample_shape"]), table["num_labels"])
    contest = Contest(network, table["clients"], Schedule(**table["schedule"]))
    ranks = join(Job(int(rank), int(size), on_loopback=True), file_store(store, int(size)))
    executor = ReplicatedExecutor(contest.executor(1), ranks)
    while (request := ranks.exchange(None)[0])["waves"]:
        rounds = range(request["first"], request["first"] + request["waves"])
        contest.replicated(executor, table["clients"], rounds)()


if __name__ == "__main__":
    main(*sys.argv[1:])
