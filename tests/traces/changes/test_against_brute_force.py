"""What clients hold under random changes, retentions and absences, against loops over all samples."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.errors import EmulatorError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import NOISE_NUMBERS, SPLITS, arrivals_of
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.tables.sorted import SortedTable
from traces.trace import Trace, TraceStream

TRACES, CLIENTS, STEPS, LABELS = 45, 25, 9, 4
"""Together 1,000 streams of clients, each with samples and changes of its own; a few traces have no data."""

RELABELLED = {"xor": [1, 0, 3, 2], "reverse": [3, 2, 1, 0], "swap": [0, 3, 2, 1]}


@dataclass
class Drawn:
    """A random stream: its rows, its changes, and how long samples are held."""

    samples: dict[tuple[int, int], list[tuple[int, int, int]]]
    """By (client, split): data step of arrival, label and image of each sample."""
    changes: list[dict[str, Any]]
    retain: tuple[int, int]
    trace: Trace


class OneTable:
    """Makes the table of noise once for all traces: no sample here has noise, and drawing it takes long."""

    normal = np.zeros(NOISE_NUMBERS, dtype=np.float32)

    def standard_normal(self, size: int, dtype: Any) -> Any:
        return self.normal

    def integers(self, high: int) -> int:
        return 0


def drawn(seed: int) -> Drawn | None:
    """The stream of that seed; None if nobody holds data at the start, or a change reaches nobody."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(80, 500))
    retain = (int(generator.integers(1, 7)), int(generator.integers(1, 7)))
    arrivals = arrivals_of(
        client=generator.integers(0, CLIENTS, size),
        split=generator.integers(0, 2, size),
        arrival=generator.integers(-3, STEPS, size),
        label=generator.integers(0, LABELS, size),
        image=np.arange(size),
        noise_start=np.zeros(size),
    )
    changes = [random_change(generator) for _ in range(int(generator.integers(1, 6)))]
    images = some_images(LABELS, 40)
    try:
        trace = Trace(
            images,
            SortedTable(arrivals, CLIENTS, None, last_step=STEPS - 1),
            retain_steps=retain[0],
            test_retain_steps=retain[1],
            rounds_per_step=1,
            noise=0.0,
            generator=OneTable(),  # type: ignore[arg-type]
            test_then_train=False,
        )
        parsed = [Change.model_validate(change) for change in changes]
        trace = with_changes(trace, parsed, STEPS, RandomStreams(seed))
    except EmulatorError as error:
        if "changes no sample" not in str(error) and "at the start" not in str(error):
            raise
        return None
    samples: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    columns = (arrivals.client, arrivals.split, arrivals.arrival, arrivals.label, arrivals.image)
    for client, split, *sample in zip(*(column.tolist() for column in columns), strict=True):
        samples[client, split].append((sample[0], sample[1], sample[2]))
    return Drawn(samples, changes, retain, trace)


def random_change(generator: np.random.Generator) -> dict[str, Any]:
    what = generator.choice(["xor", "reverse", "swap"])
    onset = int(generator.integers(0, STEPS))
    splits = [["train", "test"], ["train", "test"], ["train"], ["test"]][generator.integers(4)]
    clients = np.flatnonzero(generator.random(CLIENTS) < 0.6)
    change: dict[str, Any] = {
        "what": {"swap": [[1, 3]]} if what == "swap" else str(what),
        "on": str(generator.choice(["held", "arrivals"])),
        "at_step": onset,
        "splits": splits,
        "clients": {"names": [str(client) for client in clients] or ["0"]},
    }
    if generator.random() < 0.5:
        change["until_step"] = onset + int(generator.integers(1, 5))
    return change


def is_on(change: dict[str, Any], client: int, split: str, step: int) -> bool:
    if str(client) not in change["clients"]["names"] or split not in change["splits"]:
        return False
    return bool(change["at_step"] <= step < change.get("until_step", STEPS))


def expected(stream: Drawn, client: int, split: int, step: int) -> list[tuple[int, int]]:
    """The (image, label) of each sample that a client holds at a step, sorted."""
    held = []
    for born, label, image in stream.samples[client, split]:
        if not step - stream.retain[split] < born <= step:
            continue
        for change in stream.changes:
            at = step if change["on"] == "held" else max(born, 0)
            if is_on(change, client, SPLITS[split], at):
                what = change["what"] if isinstance(change["what"], str) else "swap"
                label = RELABELLED[what][label]
        held.append((image, label))
    return sorted(held)


FLIPPED = np.array([1, 3, 8])
"""Clients whose training labels a fault flips, in some of the streams."""


def test_what_clients_hold_and_their_label_counts_are_those_of_loops_over_all_samples() -> None:
    streams = 0
    everyone = np.arange(CLIENTS)
    for seed in range(TRACES):
        stream = drawn(seed)
        if stream is None:
            continue
        trace, flips = stream.trace, seed % 4 == 0
        if flips:
            trace = trace.with_flipped_labels(FLIPPED)
        cursor = TraceStream(trace)
        before: list[Any] = [None] * CLIENTS
        for step in range(0, STEPS, 1 + seed % 3):  # whole steps are skipped, too
            changed = cursor.advance_to_round(step).tolist()
            histograms = cursor.label_histograms(everyone)
            arrived = cursor.arrived(everyone, 0, step)
            for split in (0, 1):
                held = cursor.held(everyone, SPLITS[split])
                if split == 0:
                    assert arrived.first.tolist() == held.first.tolist()
                    assert arrived.last.tolist() == held.last.tolist()
                for client in range(CLIENTS):
                    rows = held.rows(client)
                    images = trace.table.take("image", rows).tolist()
                    found = sorted(zip(images, trace.labels(rows).tolist(), strict=True))
                    want = expected(stream, client, split, step)
                    if flips and split == 0 and client in FLIPPED:
                        want = sorted((image, LABELS - 1 - label) for image, label in want)
                    assert found == want, (seed, step, client, split)
                    if split == 0:
                        counts = [sum(label == of for _, of in want) for label in range(LABELS)]
                        assert (histograms[client] * max(len(want), 1)).round(9).tolist() == counts
                        assert want == before[client] or client in changed
                        before[client] = want
        streams += CLIENTS
    assert streams >= 1000
