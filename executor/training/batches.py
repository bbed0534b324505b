"""The samples that a task trains on, step by step.

A pure function of the task and the seed: the other tasks of the wave and their order change nothing. Samples
that are held out are left out before anything is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from emulator.counts import LastBatch, epoch_steps
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams, StreamKeys, generators
from executor.settings import Batches


def step_counts(tasks: TrainTasks) -> Ints:
    """(n,) the number of local steps of each task; 0 for a task without samples."""
    return np.where(tasks.samples.counts() > 0, tasks.settings["local_steps"], 0).astype(np.int64)


def task_batches(
    tasks: TrainTasks,
    chosen: Ints,
    steps: Ints,
    streams: RandomStreams,
    batches: Batches = "reshuffled",
    last: LastBatch = "filled",
    held_out: Sequence[Bools] | None = None,
) -> Ints:
    """(max steps, n, batch_size) table rows of the batches of the `chosen` tasks (n,), all of one batch size.

    `steps` (n,): how many steps each of them takes; the rows of later steps are 0. A batch is always full,
    and its rows are of one range. With several ranges, each step first draws one of them, with a probability
    proportional to its weight times its size. For a bootstrap, a range is first resampled (`_rows`).

    "reshuffled": the rows of a range, permuted anew for each pass over it, are joined into one sequence, of
    which a step takes the next batch: every sample comes once before any comes twice. A batch may extend into
    the next pass, so a batch larger than its range has each sample about equally often. If the `last` batch
    of a pass is "short", the next pass begins with a new batch; the rows behind the last of its samples are
    arbitrary ones of the task (`batch_sizes` says how many count). With several ranges, each step draws one,
    and every ceil(samples / batch)-th batch is short.

    "fixed": the k rows of a range are permuted once and cut into ceil(k / batch_size) batches, of which each
    step draws one, uniformly and with replacement. The last batch is filled up from the start of the
    permutation, which is repeated if the range is smaller than a batch. The cut is the same for all
    dispatches and models of a client in a data step, and does not depend on the task's other ranges. This is
    what FedDrift's code does.

    The streams are ("batches", dispatch, client, model), for a bootstrap that of `_rows`, and ("cut", step,
    client) for the cut of every range. `held_out` has, by task, (k,) which of its k samples are left out.
    Raises ValueError if all ranges of a task with several have weight 0 or no samples.
    """
    size = int(tasks.settings["batch_size"][chosen[0]])
    drawn = np.zeros((int(steps.max()), len(chosen), size), dtype=np.int64)
    keys = streams.keys("batches", tasks.dispatch[chosen], tasks.client[chosen], tasks.model[chosen])
    # The model is not in the key of a cut: all models that a client trains on a range see the same one.
    cuts = streams.keys("cut", tasks.step[chosen], tasks.client[chosen]) if batches == "fixed" else None
    for column, (task, taken, rng) in enumerate(
        zip(chosen.tolist(), steps.tolist(), generators(keys), strict=True)
    ):
        if taken > 0:
            cut = None if cuts is None else cuts[column]
            held = None if held_out is None else held_out[task]
            drawn[:taken, column] = _of_one(tasks, task, taken, size, streams, rng, cut, last, held)
    return drawn


def batch_sizes(steps: Ints, samples: Ints, batch_size: int) -> Ints:
    """(max steps, n) how many samples of each batch of n tasks count, if the last one of a pass is short.

    `steps` (n,) are those of each task, and `samples` (n,) the number of its samples.

    >>> batch_sizes(np.array([3, 2]), np.array([5, 4]), 4).tolist()
    [[4, 4], [1, 4], [4, 4]]
    """
    in_epoch = np.maximum(epoch_steps(samples, batch_size), 1)
    ends = np.arange(1, int(steps.max(initial=0)) + 1)[:, None] % in_epoch == 0
    return np.where(ends, samples - (in_epoch - 1) * batch_size, batch_size)


def _of_one(
    tasks: TrainTasks,
    task: int,
    steps: int,
    batch: int,
    streams: RandomStreams,
    rng: np.random.Generator,
    cut: StreamKeys | None,
    last: LastBatch,
    held_out: Bools | None,
) -> Ints:
    """(steps, batch) table rows of one task's batches.

    `cut` (2,): the key of the cut of the task's ranges; None to reshuffle them. `held_out` (k,): which of its
    k samples are left out; None: none.
    """
    samples = tasks.samples
    begin, end = samples.offsets[task : task + 2].tolist()
    sizes, weights = samples.last[begin:end] - samples.first[begin:end], samples.weight[begin:end]
    if len(sizes) == 1 and not samples.bootstrap:
        rows = np.arange(samples.first[begin], samples.last[begin])
    else:
        rows = samples.rows(task)
    if held_out is not None:
        rows = rows[~held_out]
        sizes = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[~held_out], minlength=len(sizes))
    if samples.bootstrap:
        rows = _resampled(rows, tasks, task, sizes, streams)
    if cut is not None:
        fixed: Ints = rows[_fixed(sizes, weights, steps, batch, cut, rng)]
        return fixed
    if len(sizes) > 1:
        mixed: Ints = rows[_mixed(sizes, weights, steps, batch, rng)]
        return mixed
    begun = steps * batch / len(rows) if last == "filled" else steps / -(-len(rows) // batch)
    passes = np.empty((math.ceil(begun), len(rows)), dtype=np.int64)
    passes[:] = rows
    rng.permuted(passes, axis=1, out=passes)
    if last == "short":
        padding = -len(rows) % batch
        passes = np.concatenate([passes, np.full((len(passes), padding), rows[0])], axis=1)
    return passes.ravel()[: steps * batch].reshape(steps, batch)


def _resampled(rows: Ints, tasks: TrainTasks, task: int, sizes: Ints, streams: RandomStreams) -> Ints:
    """The `rows` of a task's ranges, of those `sizes`, each range resampled with replacement.

    A resample has the size of its range; how often it has each sample is distributed as independent
    Poisson(1) numbers, given their sum. The stream is ("bootstrap", step, client, model): all dispatches of a
    data step see the same resample.
    """
    rng = streams.generator(
        "bootstrap", int(tasks.step[task]), int(tasks.client[task]), int(tasks.model[task])
    )
    ends = np.cumsum(sizes)
    drawn: Ints = np.concatenate(
        [
            rows[end - size : end][rng.integers(0, size, size)] if size > 0 else rows[:0]
            for size, end in zip(sizes, ends, strict=True)
        ]
    )
    return drawn


def _fixed(
    sizes: Ints, weights: Floats, steps: int, batch: int, cut: StreamKeys, rng: np.random.Generator
) -> Ints:
    """(steps, batch) fixed batches drawn with replacement, as positions in the task's rows.

    Arguments and errors are those of `_mixed`; `cut` (2,): the key from whose start each range is permuted,
    so that ranges of one size have the same permutation.
    """
    drawn = _drawn_ranges(sizes, weights, steps, rng) if len(sizes) > 1 else np.zeros(steps, dtype=np.int64)
    counts = -(-sizes // batch)
    number = rng.integers(counts[drawn])  # of the batch within its range, for each step
    of_size, begins = np.unique(sizes[drawn]), np.zeros(len(sizes), dtype=np.int64)
    tables: list[Ints] = []
    for size, permuting in zip(of_size, generators(np.tile(cut, (len(of_size), 1))), strict=True):
        begins[sizes == size] = sum(map(len, tables))
        # `resize` fills the last batch up.
        tables.append(np.resize(permuting.permutation(size), (-(-size // batch), batch)))
    starts = np.cumsum(sizes) - sizes
    positions: Ints = starts[drawn][:, None] + np.concatenate(tables)[begins[drawn] + number]
    return positions


def _drawn_ranges(sizes: Ints, weights: Floats, steps: int, rng: np.random.Generator) -> Ints:
    """(steps,) the range that each step draws, with a probability proportional to its weight times its size.

    Raises ValueError if no range has samples and a weight above 0.
    """
    chance = np.cumsum(weights * sizes)
    if not chance[-1] > 0:
        raise ValueError(
            f"the weights of a task's ranges are {weights.tolist()}: must be above 0 for at least one range "
            f"with samples"
        )
    # The largest number below 1, times the sum, may round up to the sum: then take the last possible range.
    last = int(np.searchsorted(chance, chance[-1]))
    drawn: Ints = np.minimum(np.searchsorted(chance, rng.random(steps) * chance[-1], side="right"), last)
    return drawn


def _mixed(sizes: Ints, weights: Floats, steps: int, batch: int, rng: np.random.Generator) -> Ints:
    """(steps, batch) the batches of a task of several ranges, as positions in its rows.

    The rows are in order of ranges, `sizes` of each. Raises ValueError if no range has samples and a weight
    above 0.
    """
    starts = np.cumsum(sizes) - sizes
    drawn = _drawn_ranges(sizes, weights, steps, rng)
    uses = np.bincount(drawn, minlength=len(sizes))
    passes = -(-uses * batch // np.maximum(sizes, 1))
    # NOTE: one call for all ranges of the same size; a call per range takes twice as long with ten ranges.
    sequences, begins, filled = [], np.zeros(len(sizes), dtype=np.int64), 0
    for size in np.unique(sizes[uses > 0]):
        members = np.flatnonzero((sizes == size) & (uses > 0))
        table = np.repeat(starts[members], passes[members])[:, None] + np.arange(size)
        sequences.append(rng.permuted(table, axis=1).ravel())
        begins[members] = filled + (np.cumsum(passes[members]) - passes[members]) * size
        filled += len(sequences[-1])
    # The index, within its range's sequence, of the batch that each step takes.
    order = np.argsort(drawn, kind="stable")
    turn = np.empty(steps, dtype=np.int64)
    turn[order] = np.arange(steps) - np.repeat(np.cumsum(uses) - uses, uses)
    positions: Ints = np.concatenate(sequences)[(begins[drawn] + turn * batch)[:, None] + np.arange(batch)]
    return positions
