"""A worker process of a run on this machine: `python -m experiments.worker STORE`.

Only its coordinator starts it; see `executor.workers.processes`.
"""

from __future__ import annotations

import sys

from executor.workers.processes import Coordinator


def main(store: str) -> None:
    coordinator = Coordinator()  # before anything heavy is imported: it ends when the other one does
    from emulator.seeding import RandomStreams
    from emulator.state_tree import Tree
    from executor.executor import LocalExecutor
    from executor.workers.serving import serve
    from experiments.build import build_executor_over
    from experiments.config import parse_experiment
    from traces.shared import MappedSamples

    def set_up(body: Tree, number: int) -> LocalExecutor:
        experiment = parse_experiment(body["experiment"], "the coordinator's configuration")
        reader = MappedSamples(body["trace"], coordinator.descriptors(number))
        return build_executor_over(
            experiment, experiment.find_arm(body["arm"]), reader, RandomStreams(body["seed"])
        )

    serve(coordinator.connect(store), set_up)


if __name__ == "__main__":
    main(sys.argv[1])
