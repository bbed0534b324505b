"""Workloads W1, W2 and cohort size: local training by the executor, against a plain PyTorch loop.

W1: a dense network 64-128-10. W2: two convolutions on 28 x 28 images, 800 inputs to the last layer. Both have
100 samples per client, 20 local SGD steps on batches of 20, and 50 clients per round. Measured are client
updates per second, by one process and by two ranks; ranks also compute the mean of the updates. Training by
cohort size measures milliseconds of one wave of W1, for several numbers of clients. Evaluation is that of 200
clients, each served by one of eight models of W1, on 50 samples each.

The executor's time includes drawing and gathering the batches; the plain loop has each client's samples in
memory and its batches already drawn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import ROOT, Measured, Say, interleaved, timed
from benchmarks.rivals.plain_loop import PlainLoop
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import InferencePlan, SampleRanges, TrainTasks
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.gloo import Job, file_store, join
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.ranks import Ranks
from executor.replicas import ReplicatedExecutor
from executor.rules import RULES
from executor.rules.base import LocalRule
from executor.settings import ExecutorSettings

SEED = 4
LEARNING_RATE = 0.05
Evaluated = Callable[[], tuple[Floats, Floats]]
"""A function that evaluates clients once, and returns the accuracy and the mean loss of each."""

RANK_MODULE = "benchmarks.probes.training_rank"
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PLAIN_LOOP = "a plain loop over the clients with torch.optim.SGD, 1 thread"


@dataclass(frozen=True)
class Schedule:
    """A client's local training in a round: the samples it holds, its steps and its batch size."""

    samples: int = 100
    steps: int = 20
    batch_size: int = 20


@dataclass(frozen=True)
class Network:
    """A model, by its name and settings, with the shape of its samples and its number of labels."""

    model: str
    settings: Mapping[str, object]
    sample_shape: tuple[int, ...]
    num_labels: int = 10

    def spec(self) -> ModelSpec:
        kind = MODELS.find(self.model)
        return kind(kind.Settings(**self.settings))


DENSE = Network("mlp", {"hidden": (128,)}, (64,))
CONVOLUTIONAL = Network("cnn", {}, (28, 28))


class Samples:
    """A `SampleReader` of `num_samples` random samples in memory."""

    def __init__(self, network: Network, num_samples: int) -> None:
        rng = np.random.default_rng(SEED)
        self.sample_shape = network.sample_shape
        self.num_labels = network.num_labels
        self._features = rng.standard_normal((num_samples, *network.sample_shape), dtype=np.float32)
        self._labels = rng.integers(network.num_labels, size=num_samples)

    def features(self, rows: Ints) -> Floats32:
        return self._features.take(rows, axis=0)

    def labels(self, rows: Ints) -> Ints:
        return self._labels[rows]

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 0 * rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        of_label = [np.flatnonzero(self._labels == label)[:per_label] for label in range(self.num_labels)]
        return np.sort(np.concatenate(of_label))


def wave(clients: int, schedule: Schedule, round_: int) -> TrainTasks:
    """The tasks of one round: one for each client, with its own samples.

    Client c holds the rows from c * `schedule.samples` on.
    """
    ids = np.arange(clients)
    first = ids * schedule.samples
    settings = {
        "learning_rate": LEARNING_RATE,
        "local_steps": schedule.steps,
        "batch_size": schedule.batch_size,
    }
    return TrainTasks(
        client=ids,
        model=np.zeros(clients, dtype=np.int64),
        visit=round_ * clients + ids,
        samples=SampleRanges.one_each(first, first + schedule.samples),
        settings={name: np.full(clients, float(value)) for name, value in settings.items()},
        dispatch=np.full(clients, round_),
        step=np.zeros(clients, dtype=np.int64),
    )


class Contest:
    """The executor and the plain loop, with the same samples and the same initial parameters."""

    def __init__(self, network: Network, clients: int, schedule: Schedule) -> None:
        self.schedule = schedule
        self.network = network
        self.reader = Samples(network, clients * schedule.samples)
        self.streams = RandomStreams(SEED)
        self.start = self.executor(1).initial(0)

    def executor(self, threads: int, chain: Sequence[str] = ("sgd",)) -> LocalExecutor:
        rules = [RULES.find(name) for name in chain]
        return self.by_rules(threads, [rule(rule.Settings()) for rule in rules])

    def by_rules(self, threads: int, rules: Sequence[LocalRule]) -> LocalExecutor:
        settings = ExecutorSettings(threads=threads)
        return LocalExecutor(self.reader, self.network.spec(), rules, self.streams, settings)

    def ours(self, clients: int, threads: int, waves: int = 1) -> Measured:
        """A function that trains `waves` waves, each of another round; returns the mean seconds of one."""
        executor = self.executor(threads)
        models, start = self.start[None, :], np.zeros(clients, dtype=np.int64)
        rounds = count()

        def measured() -> float:
            ready = [wave(clients, self.schedule, next(rounds)) for _ in range(waves)]
            return timed(lambda: [executor.train(tasks, models, start) for tasks in ready])() / waves

        return measured

    def by_ranks(self, clients: int, ranks: Ranks, waves: int = 1) -> Measured:
        """A function that trains `waves` waves by `ranks` and returns the mean seconds of one.

        A wave includes the mean of its updates. The calling process is rank 0.
        """
        executor = ReplicatedExecutor(self.executor(1), ranks)
        first = 0

        def measured() -> float:
            nonlocal first
            ranks.exchange({"first": first, "waves": waves})
            work = self.replicated(executor, clients, range(first, first + waves))
            first += waves
            return timed(work)() / waves

        return measured

    def replicated(
        self, executor: ReplicatedExecutor, clients: int, rounds: Sequence[int]
    ) -> Callable[[], object]:
        """A function that does a rank's work for `rounds`: training, and the mean of each round's updates."""
        models, start = self.start[None, :], np.zeros(clients, dtype=np.int64)
        mean = np.full((1, clients), 1 / clients)
        ready = [wave(clients, self.schedule, round_) for round_ in rounds]
        return lambda: [executor.train(tasks, models, start, mean).weighted_sum(mean) for tasks in ready]

    def plain(self, clients: int) -> Measured:
        """A function that trains a wave by the plain loop, on batches already drawn; returns the seconds."""
        loop = PlainLoop(self.reader, self.network.spec(), self.streams)
        rounds = count()

        def measured() -> float:
            loop.load(wave(clients, self.schedule, next(rounds)))
            return timed(lambda: loop.train(self.start))()

        return measured

    def evaluation(self, clients: int, num_models: int) -> tuple[Evaluated, Evaluated]:
        """Functions that evaluate all clients, each with one model, by the executor and by the plain loop."""
        executor, loop = self.executor(1), PlainLoop(self.reader, self.network.spec(), self.streams)
        models = np.stack([executor.initial(number) for number in range(num_models)])
        serves, tasks = np.arange(clients) % num_models, wave(clients, self.schedule, 0)
        plan = InferencePlan(serves[:, None], np.ones((clients, 1)))
        loop.load(tasks)

        def ours() -> tuple[Floats, Floats]:
            evaluation = executor.evaluate(models, plan, tasks.samples)
            return evaluation.accuracy, evaluation.loss

        return ours, lambda: loop.evaluate(models, serves)


def measure_w1(repeats: int, say: Say) -> list[Figure]:
    targets = {1: Target("ratio", 8.0, 12.0), 2: Target("ratio", 14.0, 25.0)}
    # One of our waves takes a few hundredths of a second: several of them last as long as one of the plain
    # loop.
    return training_figures("w1", DENSE, repeats, say, targets, waves=8)


def measure_w2(repeats: int, say: Say) -> list[Figure]:
    targets = {1: Target("ratio", 1.05), 2: Target("ratio", 1.55)}
    return training_figures("w2", CONVOLUTIONAL, repeats, say, targets, warm_up=False)


def measure_w1_ranks(repeats: int, say: Say) -> list[Figure]:
    return rank_figures("w1", DENSE, repeats, say, Target("ratio", 14.0), waves=8)


def measure_w2_ranks(repeats: int, say: Say) -> list[Figure]:
    return rank_figures("w2", CONVOLUTIONAL, repeats, say, Target("ratio", 1.9), warm_up=False)


def measure_evaluation(repeats: int, say: Say) -> list[Figure]:
    return evaluation_figures(200, 8, repeats, say)


def measure_cohort_sizes(repeats: int, say: Say) -> list[Figure]:
    return cohort_size_figures((10, 50, 200, 800), repeats, say)


def training_figures(
    name: str,
    network: Network,
    repeats: int,
    say: Say,
    targets: Mapping[int, Target],
    clients: int = 50,
    schedule: Schedule | None = None,
    waves: int = 1,
    warm_up: bool = True,
) -> list[Figure]:
    """Client updates per second, for each number of threads in `targets`."""
    contest = Contest(network, clients, schedule or Schedule())
    contenders = {str(threads): contest.ours(clients, threads, waves) for threads in targets}
    samples = interleaved({**contenders, "plain": contest.plain(clients)}, repeats, warm_up=warm_up, say=say)
    plain = Reference(clients / samples["plain"], PLAIN_LOOP)
    return [
        figure(
            f"{name}-{threads}-thread{'s' if threads > 1 else ''}",
            f"client updates through the executor, strategy {contest.executor(threads).strategy}",
            clients / samples[str(threads)],
            "clients/s",
            better="higher",
            threads=threads,
            against=plain,
            target=target,
        )
        for threads, target in targets.items()
    ]


def rank_figures(
    name: str,
    network: Network,
    repeats: int,
    say: Say,
    target: Target | None,
    size: int = 2,
    clients: int = 50,
    schedule: Schedule | None = None,
    waves: int = 1,
    warm_up: bool = True,
) -> list[Figure]:
    """Client updates per second by `size` local ranks, and by one process, against the plain loop."""
    schedule = schedule or Schedule()
    contest = Contest(network, clients, schedule)
    with started_ranks(network, clients, schedule, size) as ranks:
        contenders = {
            "ranks": contest.by_ranks(clients, ranks, waves),
            "alone": contest.ours(clients, 1, waves),
            "plain": contest.plain(clients),
        }
        contenders["ranks"]()  # so that all ranks have started
        samples = interleaved(contenders, repeats, warm_up=warm_up, say=say)
    plain = Reference(clients / samples["plain"], PLAIN_LOOP)
    about = f"strategy {contest.executor(1).strategy}"
    return [
        figure(
            f"{name}-{what}",
            f"client updates through {by}, {about}",
            clients / samples[contender],
            "clients/s",
            better="higher",
            threads=threads,
            against=plain,
            target=aim,
        )
        for what, by, contender, threads, aim in (
            (f"{size}-ranks", f"{size} ranks, with the mean of their updates", "ranks", size, target),
            ("beside-ranks", "one process, in turns with the ranks", "alone", 1, None),
        )
    ]


@contextmanager
def started_ranks(network: Network, clients: int, schedule: Schedule, size: int) -> Iterator[Ranks]:
    """Yield `size` ranks on this machine: this process as rank 0, and the others, which it starts."""
    table = json.dumps({**asdict(network), "clients": clients, "schedule": asdict(schedule)})
    with ExitStack() as stack:
        store = Path(stack.enter_context(TemporaryDirectory(prefix="driftscale-"))) / "store"
        for rank in range(1, size):
            command = [sys.executable, "-P", "-m", RANK_MODULE, str(store), str(rank), str(size), table]
            stack.enter_context(subprocess.Popen(command, env=environment()))
        ranks = join(Job(0, size, on_loopback=True), file_store(str(store), size))
        yield ranks
        ranks.exchange({"first": 0, "waves": 0})


def evaluation_figures(clients: int, num_models: int, repeats: int, say: Say) -> list[Figure]:
    """Clients evaluated per second by the executor, on one thread."""
    ours, plain = Contest(DENSE, clients, Schedule(samples=50)).evaluation(clients, num_models)
    samples = interleaved({"ours": timed(ours), "plain": timed(plain)}, repeats, say=say)
    return [
        figure(
            "evaluate",
            f"{clients} clients evaluated, served by {num_models} models",
            clients / samples["ours"],
            "clients/s",
            better="higher",
            against=Reference(
                clients / samples["plain"], "a plain loop over models and their clients, 1 thread"
            ),
        )
    ]


def environment() -> dict[str, str]:
    """The environment of a rank: ours, with our packages first on the path and libraries on one thread."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict.fromkeys(ONE_THREAD, "1")}


def cohort_size_figures(
    sizes: Sequence[int],
    repeats: int,
    say: Say,
    network: Network = DENSE,
    schedule: Schedule | None = None,
) -> list[Figure]:
    """Milliseconds of a wave of each of `sizes` clients, on one thread.

    The reference is the plain loop's time for the smallest wave, scaled to the size.
    """
    contest = Contest(network, max(sizes), schedule or Schedule())
    smallest, largest = min(sizes), max(sizes)
    contenders = {str(size): contest.ours(size, 1, -(-largest // (4 * size))) for size in sizes}
    samples = interleaved({**contenders, "plain": contest.plain(smallest)}, repeats, say=say)
    return [
        figure(
            f"cohort-{size}",
            f"one wave of {size} clients through the executor",
            1000 * samples[str(size)],
            "ms",
            better="lower",
            against=Reference(1000 * samples["plain"] * size / smallest, PLAIN_LOOP),
            curve="training",
            size=size,
        )
        for size in sizes
    ]
