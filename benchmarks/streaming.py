"""The workload streaming: at every data step samples arrive at every client and old ones expire.

It has 10,000 clients of the digits experiment with its label drift, without mass events. Our `TraceStream`
counts only the samples that arrive or expire; the reference counts all samples of each client from scratch.
Training is that of 50 clients on the samples that they hold at a step, which the executor reads from the
trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from benchmarks.digits import digits_online
from benchmarks.figures import Figure, Reference, figure
from benchmarks.measure import Measured, Say, interleaved, timed
from benchmarks.rivals.plain_loop import PlainLoop
from benchmarks.training import PLAIN_LOOP
from emulator.arrays import Floats
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.models.base import ModelSpec
from experiments.locating import locator
from traces.sources import TraceContext
from traces.trace import Trace, TraceStream

SEED = 0
RETAINED_STEPS = 5
RECOUNT = "counting all samples of each client from scratch, client by client"


@dataclass(frozen=True)
class StreamSizes:
    """Numbers of clients, of data steps after the first, and of participants of a round."""

    clients: int = 10_000
    steps: int = 4
    participants: int = 50


def measure_streaming(repeats: int, say: Say) -> list[Figure]:
    return streaming_figures(StreamSizes(), repeats, say)


def streaming_figures(sizes: StreamSizes, repeats: int, say: Say) -> list[Figure]:
    """Milliseconds to advance one data step, with all histograms, and client updates per second."""
    say(f"drawing the samples of {sizes.clients:,} clients")
    workload = Streaming(sizes)
    samples = interleaved(
        {
            "advance": workload.advance,
            "recount": workload.recount,
            "train": workload.train(),
            "plain": workload.train_plainly(),
        },
        repeats,
        say=say,
    )
    return [
        figure(
            "streaming-advance",
            f"one data step of {sizes.clients:,} clients: arrivals, expiries and all histograms",
            1000 * samples["advance"],
            "ms",
            better="lower",
            against=Reference(1000 * samples["recount"], RECOUNT),
        ),
        figure(
            "streaming-train",
            f"client updates, {sizes.participants} a round, on the samples held at that step",
            sizes.participants / samples["train"],
            "clients/s",
            better="higher",
            against=Reference(sizes.participants / samples["plain"], PLAIN_LOOP),
        ),
    ]


class Streaming:
    """The trace of the digits experiment with many clients, and one data step per round."""

    def __init__(self, sizes: StreamSizes) -> None:
        self.sizes = sizes
        self.streams = RandomStreams(SEED)
        rounds = sizes.steps + 1
        self.experiment = digits_online(
            f"trace.clients={sizes.clients}",
            "trace.rounds_per_step=1",
            f"trace.retain_rounds={RETAINED_STEPS}",
            f"round.rounds={rounds}",
            "trace.drift.events=[]",
        )
        context = TraceContext(rounds, self.streams, locator(None, None))
        self.trace = self.experiment.trace.build().build(context)
        self._everyone = np.arange(sizes.clients)
        self._steps = range(1, rounds)

    def stream_at(self, step: int) -> TraceStream:
        stream = TraceStream(self.trace)
        stream.advance_to_round(step)
        return stream

    def advance(self) -> float:
        """Mean seconds of one step, over all steps except the first."""
        stream = self.stream_at(0)

        def follow() -> None:
            for step in self._steps:
                stream.advance_to_round(step)
                stream.label_histograms(self._everyone)

        return timed(follow)() / len(self._steps)

    def recount(self) -> float:
        """Mean seconds of one recounted step, over the same steps."""
        return timed(lambda: [recounted(self.trace, step) for step in self._steps])() / len(self._steps)

    def train(self) -> Measured:
        """A function that trains one wave, of the next round and data step, and returns the seconds."""
        executor = self.executor()
        models, start = executor.initial(0)[None, :], np.zeros(self.sizes.participants, dtype=np.int64)
        waves = self.waves()

        def measured() -> float:
            tasks = next(waves)
            return timed(lambda: executor.train(tasks, models, start))()

        return measured

    def train_plainly(self) -> Measured:
        """A function that trains the same waves by the plain loop; loading their samples is not measured."""
        start, waves = self.executor().initial(0), self.waves()
        loop = PlainLoop(self.trace, self.model(), self.streams)

        def measured() -> float:
            loop.load(next(waves))
            return timed(lambda: loop.train(start))()

        return measured

    def waves(self) -> Iterator[TrainTasks]:
        """The tasks of one round after another, without end: the next clients, with the samples they hold."""
        training = self.experiment.arm[0].training
        settings = {
            "learning_rate": training.learning_rate,
            "local_steps": training.local_steps,
            "batch_size": training.batch_size,
        }
        participants = self.sizes.participants
        streams = {step: self.stream_at(step) for step in self._steps}
        for round_, step in enumerate(cycle(self._steps)):
            first = round_ * participants % (self.sizes.clients - participants + 1)
            clients = self._everyone[first : first + participants]
            yield TrainTasks(
                client=clients,
                model=np.zeros(participants, dtype=np.int64),
                visit=round_ * participants + np.arange(participants),
                samples=streams[step].held(clients, "train"),
                settings={name: np.full(participants, float(value)) for name, value in settings.items()},
                dispatch=np.full(participants, round_),
                step=np.full(participants, step),
            )

    def model(self) -> ModelSpec:
        spec: ModelSpec = self.experiment.arm[0].training.model.build()
        return spec

    def executor(self) -> LocalExecutor:
        return LocalExecutor(
            self.trace,
            self.model(),
            [rule.build() for rule in self.experiment.arm[0].solver],
            self.streams,
            self.experiment.executor,
        )


def recounted(trace: Trace, step: int) -> Floats:
    """Label shares of the samples each client holds at `step`, of shape (N, labels), counted from scratch."""
    shares = np.zeros((trace.num_clients, trace.num_labels))
    held = trace.held(np.arange(trace.num_clients), "train", step)
    for client, (first, last) in enumerate(zip(held.first.tolist(), held.last.tolist(), strict=True)):
        counts = np.bincount(trace.labels(np.arange(first, last)), minlength=trace.num_labels)
        shares[client] = counts / max(counts.sum(), 1)
    return shares
