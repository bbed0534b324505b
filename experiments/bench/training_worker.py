"""A worker of the bench: it draws the samples of a workload by itself, and trains on them."""

from __future__ import annotations

import sys

from executor.workers.processes import Coordinator


def main(store: str) -> None:
    coordinator = Coordinator()
    from emulator.state_tree import Tree
    from executor.executor import LocalExecutor
    from executor.workers.serving import serve
    from experiments.bench.training import Contest, Network, Schedule

    def set_up(body: Tree, number: int) -> LocalExecutor:
        network = Network(body["model"], body["parameters"], body["sample_shape"], body["num_labels"])
        return Contest(network, body["clients"], Schedule(**body["schedule"])).executor(1)

    serve(coordinator.connect(store), set_up)


if __name__ == "__main__":
    main(sys.argv[1])
