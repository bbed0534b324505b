"""A worker for tests: it builds the executors of `cases`."""

from __future__ import annotations

import sys

from executor.workers.processes import Coordinator


def main(store: str) -> None:
    coordinator = Coordinator()
    from emulator.state_tree import Tree
    from executor.executor import LocalExecutor
    from executor.workers.serving import serve
    from tests.executor.workers.cases import build

    def set_up(body: Tree, number: int) -> LocalExecutor:
        return build(body["case"])

    serve(coordinator.connect(store), set_up)


if __name__ == "__main__":
    main(sys.argv[1])
