"""The workload changes: what a client holds where data change, beside the same trace without changes.

It has 100,000 clients with 100 samples each, five of which arrive at each of 20 data steps and are held for
five; at step 10 labels change for a share of the clients, in all that they hold. The reference of what is
held is the table before the change. A million clients receive one sample at each of ten steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say, interleaved, timed
from emulator.seeding import RandomStreams
from traces.arrivals import arrivals_of
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.images import ImageSet
from traces.tables.sorted import SortedTable
from traces.trace import Trace, TraceStream

SEED = 0
RETAINED_STEPS = 5
LABELS, IMAGES = 10, 100
BEFORE = "the same trace without the change"


@dataclass(frozen=True)
class ChangeSizes:
    """Numbers of clients, data steps, and samples of a client at each; and of clients of the large trace."""

    clients: int = 100_000
    steps: int = 20
    samples: int = 5
    many_clients: int = 1_000_000


def measure_changes(repeats: int, say: Say) -> list[Figure]:
    return change_figures(ChangeSizes(), repeats, say)


def change_figures(sizes: ChangeSizes, repeats: int, say: Say) -> list[Figure]:
    """Milliseconds to find what all clients hold, and seconds to build a trace with one held change."""
    say(f"drawing the samples of {sizes.clients:,} clients")
    plain = stream_of(sizes.clients, sizes.steps, sizes.samples)
    some, more = (changed(plain, sizes.steps, share) for share in (0.1, 0.3))
    everyone, step = np.arange(sizes.clients), sizes.steps * 3 // 5
    samples = interleaved(
        {
            "plain": timed(lambda: plain.held(everyone, "train", step)),
            "some": timed(lambda: some.held(everyone, "train", step)),
            "more": timed(lambda: more.held(everyone, "train", step)),
            "build": timed(lambda: changed(plain, sizes.steps, 0.1)),
            "build more": timed(lambda: changed(plain, sizes.steps, 0.3)),
        },
        repeats,
        say=say,
    )
    say(f"drawing the samples of {sizes.many_clients:,} clients")
    many = stream_of(sizes.many_clients, 10, 1)
    built = changed(many, 10, 0.1)
    of_many = interleaved(
        {
            "build": timed(lambda: changed(many, 10, 0.1)),
            "advance": timed(lambda: play(built, 10)),
            "plain": timed(lambda: play(many, 10)),
        },
        max(1, repeats // 2),
        say=say,
    )
    total = sizes.clients * sizes.steps * sizes.samples
    return [
        figure(
            f"changes-held-{share}",
            f"what {sizes.clients:,} clients hold, of whom {share} % have changed once",
            1000 * samples[name],
            "ms",
            better="lower",
            against=Reference(1000 * samples["plain"], BEFORE),
            target=Target("ratio", 1 / 1.3) if share == 10 else None,
        )
        for share, name in ((10, "some"), (30, "more"))
    ] + [
        figure(
            "changes-build-10",
            f"a held change of 10 % of the clients, with {total:,} rows",
            samples["build"],
            "s",
            better="lower",
            target=Target("value", 0.5),
        ),
        figure(
            "changes-build-30", "the same for 30 % of the clients", samples["build more"], "s", better="lower"
        ),
        figure(
            "changes-million",
            f"a held change of 10 % of {sizes.many_clients:,} clients, with ten rows each",
            of_many["build"],
            "s",
            better="lower",
        ),
        figure(
            "changes-million-steps",
            "ten data steps of these, with all label counts",
            of_many["advance"],
            "s",
            better="lower",
            against=Reference(of_many["plain"], BEFORE),
        ),
    ]


def stream_of(clients: int, steps: int, samples: int) -> Trace:
    """A trace of `clients` who receive `samples` for training at each of `steps`, and one test sample."""
    generator = np.random.default_rng(SEED)
    trained = clients * steps * samples
    client = np.repeat(np.arange(clients), steps * samples)
    arrivals = arrivals_of(
        client=np.append(client, np.arange(clients)),
        split=np.repeat([0, 1], [trained, clients]),
        arrival=np.append(np.tile(np.repeat(np.arange(steps), samples), clients), np.zeros(clients)),
        label=generator.integers(0, LABELS, trained + clients),
        image=generator.integers(0, IMAGES, trained + clients),
        noise_start=np.zeros(trained + clients),
    )
    numbers = np.arange(IMAGES)
    pixels = np.zeros((IMAGES, 2, 2), np.uint8)
    images = ImageSet(pixels, 1.0, numbers % LABELS, LABELS, numbers[: IMAGES // 2], numbers[IMAGES // 2 :])
    return Trace(
        images,
        SortedTable(arrivals, clients, None),
        retain_steps=RETAINED_STEPS,
        rounds_per_step=1,
        noise=0.0,
        generator=np.random.default_rng(SEED),
        test_then_train=False,
    )


def changed(trace: Trace, steps: int, share: float) -> Trace:
    """The trace in which a share of the clients reverses all labels that they hold, at half of the steps."""
    change = Change.model_validate(
        {"what": "reverse", "on": "held", "at_share": 0.5, "clients": {"share": share, "redraw": False}}
    )
    return with_changes(trace, [change], steps, RandomStreams(SEED))


def play(trace: Trace, steps: int) -> None:
    """Advance a stream over the trace from its start to its end."""
    stream = TraceStream(trace)
    for step in range(steps):
        stream.advance_to_round(step)
